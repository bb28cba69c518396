"""What the data check finds in the torque by comparing it with the nominal model, one kind of finding per file."""
