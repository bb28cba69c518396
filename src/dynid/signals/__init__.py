"""Recordings: any log in, clean samples out."""
