"""Proofs that a model predicts: on unseen torque, and played forward."""
