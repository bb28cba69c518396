"""Regressors, the mergeable triangular factors they are reduced to, and base parameters."""
