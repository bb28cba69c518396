"""Small logs made of columns, for the tests of processing steps."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.signals.recording import Recording


def log(t: Array, q: Array, v: Array | None = None, tau: Array | None = None) -> Recording:
    """A log of joints a, b, .. from columns."""
    columns = [None if x is None else np.asarray(x).reshape(len(t), -1) for x in (q, v, tau)]
    assert columns[0] is not None
    names = tuple("abcdefg"[: columns[0].shape[1]])
    return Recording(time=t, position=columns[0], velocity=columns[1], torque=columns[2], joint_names=names)


def wave(t: Array, w: float = 3.0) -> tuple[Array, Array, Array]:
    return np.sin(w * t), w * np.cos(w * t), -(w**2) * np.sin(w * t)


def jittery_clock(n: int, step: float = 0.01, seed: int = 0) -> Array:
    return np.cumsum(np.random.default_rng(seed).uniform(0.5 * step, 1.5 * step, n))
