"""Ways to estimate, one file a method."""
