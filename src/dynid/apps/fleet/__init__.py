"""Many robots over many days: a store of small triangles, and what they say about robots, days and the fleet."""
