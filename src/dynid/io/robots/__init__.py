"""Robot descriptions read and written, each file reloaded and compared."""
