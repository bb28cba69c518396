"""How far each joint has moved since it last reversed: the memory that friction in presliding has.

A joint that comes to rest keeps the friction of its last direction, and after a reversal friction turns over a small distance
of travel, not at a speed (Dahl 1968). The signed distance since the last reversal says both: its sign is the direction of the
last motion, held while the joint stands, and its size how far that motion has gone. Movements to and fro by less than
``REVERSAL`` are sensor noise, and no reversal.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.recording.samples import Samples

REVERSAL = 1e-4
"""Smallest movement back that counts as a reversal, rad or m."""


class Travel:
    """Signed distance since the last reversal, piece by piece of one log.

    Examples:
        >>> import numpy as np
        >>> from dynid.recording.travel import Travel
        >>> position = np.array([[0.0], [0.5], [1.0], [1.0], [0.8]])
        >>> Travel(1).push(position).ravel().round(3).tolist()
        [0.0, 0.5, 1.0, 1.0, -0.2]
    """

    def __init__(self, n_joints: int) -> None:
        # direction, where the present motion began, its furthest place, and before any motion the lowest and highest place
        self._state = np.full((5, n_joints), np.nan)

    @property
    def state(self) -> Array:
        """What to keep to go on later."""
        return self._state.copy()

    def restore(self, state: Array) -> None:
        """Go on from a kept state."""
        self._state = np.array(state, dtype=np.float64)

    def push(self, position: Array) -> Array:
        """The distances for the next samples, ``(samples, joints)``."""
        from dynid.recording.travel_kernel import travelled

        return np.asarray(travelled(np.ascontiguousarray(position, dtype=np.float64), REVERSAL, self._state))


def with_travel(samples: Samples) -> Samples:
    """Samples that carry the distance since the last reversal; as they are where they do already."""
    if samples.travel is not None:
        return samples
    n = samples.velocity.shape[1]
    return replace(samples, travel=Travel(n).push(samples.position[:, samples.position.shape[1] - n :]))
