"""The compiled walk over positions behind :mod:`dynid.recording.travel`."""

from __future__ import annotations

import numpy as np

from dynid.adapters.numba import njit
from dynid.arrays import Array

DIRECTION, ORIGIN, FURTHEST, LOWEST, HIGHEST = range(5)


@njit(cache=True, nogil=True)
def travelled(position: Array, reversal: float, state: Array) -> Array:
    """Signed distance since the last reversal; ``state`` is carried from piece to piece, NaN before the first."""
    n, joints = position.shape
    found = np.zeros((n, joints))
    for j in range(joints):
        if n and np.isnan(state[DIRECTION, j]):
            state[DIRECTION, j] = 0.0
            state[1:, j] = position[0, j]
        direction, origin, furthest, lowest, highest = state[:, j]
        for k in range(n):
            x = position[k, j]
            if direction == 0.0:
                lowest, highest = min(lowest, x), max(highest, x)
                if x - lowest > reversal:
                    direction, origin, furthest = 1.0, lowest, x
                elif highest - x > reversal:
                    direction, origin, furthest = -1.0, highest, x
            elif direction * (x - furthest) > 0.0:
                furthest = x
            elif direction * (furthest - x) > reversal:
                direction, origin, furthest = -direction, furthest, x
            found[k, j] = direction * abs(furthest - origin)
        state[DIRECTION, j], state[ORIGIN, j], state[FURTHEST, j] = direction, origin, furthest
        state[LOWEST, j], state[HIGHEST, j] = lowest, highest
    return found
