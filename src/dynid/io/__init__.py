"""Files: robots, logs and code, read and written."""
