"""Drive gains from logs with and without a known load."""
