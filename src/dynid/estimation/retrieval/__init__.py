"""Retrieval of feasible parameters under any constraint (Gaz and others 2019)."""
