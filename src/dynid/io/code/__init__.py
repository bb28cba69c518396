"""Equations of motion as source code."""
