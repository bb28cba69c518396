"""Actuators of position-controlled joints: linear start, output error, separability."""
