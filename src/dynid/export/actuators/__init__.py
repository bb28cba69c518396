"""Actuators for simulators: MJCF, Isaac Lab, Newton, URDF, JSON."""
