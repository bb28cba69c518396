"""Robots beside the same robots in Pinocchio, and smooth motions of theirs."""

from peer_robots import branches, peer, sampled, wave

__all__ = ["branches", "peer", "sampled", "wave"]
