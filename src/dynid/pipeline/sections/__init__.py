"""Sections of the report of a run, one kind a file."""
