"""How far each joint has moved since it last reversed: the memory that friction in presliding has.

A joint that comes to rest keeps the friction of its last direction, and after a reversal friction turns over a small distance
of travel, not at a speed (Dahl 1968). The signed distance since the last reversal says both: its sign is the direction of the
last motion, held while the joint stands, and its size how far that motion has gone. Movements to and fro by less than
``REVERSAL`` are sensor noise, and no reversal. Samples carry it where an effect asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.compiled import njit
from dynid.model.robot import Robot
from dynid.signals.samples import Samples, SampleStream

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


REVERSAL = 1e-4
"""Smallest movement back that counts as a reversal, rad or m."""


class Travel:
    """Signed distance since the last reversal, piece by piece of one log.

    Examples:
        >>> import numpy as np
        >>> from dynid.signals.reversal_history import Travel
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

        return np.asarray(travelled(np.ascontiguousarray(position, dtype=np.float64), REVERSAL, self._state))


def with_travel(samples: Samples) -> Samples:
    """Samples that carry the distance since the last reversal; as they are where they do already."""
    if samples.travel is not None:
        return samples
    n = samples.velocity.shape[1]
    return replace(samples, travel=Travel(n).push(samples.position[:, samples.position.shape[1] - n :]))


def remembers(robot: Robot) -> bool:
    """Whether any effect of the robot depends on where its joint last reversed."""
    return any(effect.remembers for effect in robot.effects)


def with_memory(robot: Robot, samples: Samples) -> Samples:
    """Samples with the distance since the last reversal, where the robot needs it; else as they are."""
    return with_travel(samples) if remembers(robot) else samples


def pieces_with_memory(robot: Robot, source: Samples | SampleStream) -> Iterator[Samples]:
    """The pieces of one log, each with what it must know of the ones before."""
    travel = Travel(robot.n_dof) if remembers(robot) else None
    for piece in source:
        if travel is None or piece.travel is not None:
            yield piece
        else:
            yield replace(piece, travel=travel.push(piece.position[:, -robot.n_dof :]))
