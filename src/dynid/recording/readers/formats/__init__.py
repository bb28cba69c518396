"""File formats of logs, one per file; :mod:`dynid.recording.readers.formats.registry` holds the list."""
