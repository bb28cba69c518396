"""One reader per file format, and the matching of their columns to the robot's joints."""
