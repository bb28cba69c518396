"""Position-controlled joints without torque: friction, rotor inertia, gains and delay from commands."""
