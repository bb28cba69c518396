"""Friction with numbers inside it: how they are found, and which model is chosen."""
