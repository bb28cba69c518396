"""What may be known of a robot beyond physical consistency."""
