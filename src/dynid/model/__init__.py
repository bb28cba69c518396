"""Robots: their joints, links and effects, and the readers of the files that describe them."""
