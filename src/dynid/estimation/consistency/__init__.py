"""The set of consistent parameters, and the convex programs over it."""
