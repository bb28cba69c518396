"""Identification while the robot moves: lines come in, values, flags and alarms go out."""
