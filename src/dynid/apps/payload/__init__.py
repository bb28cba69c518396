"""A body that a robot carries, from torque or from a sensor."""
