"""Motions that show a robot's parameters: what they are made of, what they must respect, how good they are."""
