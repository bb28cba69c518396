"""How far each joint has moved since its last reversals: the memory that friction in presliding has.

A joint that comes to rest keeps the friction of its last direction, and after a reversal friction turns over a small distance
of travel, not at a speed (Dahl 1968). The signed distance since the last reversal says both: its sign is the direction of the
last motion, held while the joint stands, and its size how far that motion has gone. A joint that moves to and fro by less than
friction needs to turn, as around a stop, has not turned it: the whole way since the reversals before the last tells from where it
came. Movements by less than ``REVERSAL`` are sensor noise, and no reversal. Samples carry it where an effect asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.compiled import njit
from dynid.model.robot import Robot
from dynid.signals.samples import Samples, SampleStream

DIRECTION, ORIGIN, FURTHEST, LOWEST, HIGHEST, STROKES_BEFORE = range(6)
REVERSALS = 4
"""Reversals that are remembered."""
LONG = 1e3
"""rad or m that a stroke had when a log began: most begin, or are cut, where friction has turned as far as it does."""


@njit(cache=True, nogil=True)
def travelled(position: Array, reversal: float, state: Array) -> Array:
    """Signed distance since the last reversal, and the way since each before it, ``(samples, joints, REVERSALS)``.

    ``state`` is carried from piece to piece, NaN before the first.
    """
    n, joints = position.shape
    found = np.zeros((n, joints, REVERSALS))
    for j in range(joints):
        if n and np.isnan(state[DIRECTION, j]):
            state[DIRECTION, j] = 0.0
            state[1:STROKES_BEFORE, j] = position[0, j]
            state[STROKES_BEFORE:, j] = LONG
        direction, origin, furthest, lowest, highest = state[:STROKES_BEFORE, j]
        strokes = state[STROKES_BEFORE:, j]
        for k in range(n):
            x = position[k, j]
            if direction == 0.0:
                lowest, highest = min(lowest, x), max(highest, x)
                if x - lowest > reversal:
                    direction, origin, furthest = 1.0, lowest - LONG, x
                elif highest - x > reversal:
                    direction, origin, furthest = -1.0, highest + LONG, x
            elif direction * (x - furthest) > 0.0:
                furthest = x
            elif direction * (furthest - x) > reversal:
                for i in range(REVERSALS - 2, 0, -1):
                    strokes[i] = strokes[i - 1]
                strokes[0] = abs(furthest - origin)
                direction, origin, furthest = -direction, furthest, x
            way = abs(furthest - origin)
            found[k, j, 0] = direction * way
            for i in range(REVERSALS - 1):
                way += strokes[i]
                found[k, j, i + 1] = way
        state[DIRECTION, j], state[ORIGIN, j], state[FURTHEST, j] = direction, origin, furthest
        state[LOWEST, j], state[HIGHEST, j] = lowest, highest
    return found


REVERSAL = 1e-4
"""Smallest movement back that counts as a reversal, rad or m."""


class Travel:
    """Signed distance since the last reversal, and ways since those before it, piece by piece of one log.

    Examples:
        >>> import numpy as np
        >>> from dynid.signals.reversal_history import Travel
        >>> position = np.array([[0.0], [0.5], [1.0], [1.0], [0.8]])
        >>> Travel(1).push(position)[:, 0, 0].round(3).tolist()
        [0.0, 1000.5, 1001.0, 1001.0, -0.2]
    """

    def __init__(self, n_joints: int) -> None:
        # direction, where the present motion began, its furthest place, before any motion the lowest and highest place, strokes before
        self._state = np.full((STROKES_BEFORE + REVERSALS - 1, n_joints), np.nan)

    @property
    def state(self) -> Array:
        """What to keep to go on later."""
        return self._state.copy()

    def restore(self, state: Array) -> None:
        """Go on from a kept state."""
        self._state = np.array(state, dtype=np.float64)

    def push(self, position: Array) -> Array:
        """The distances for the next samples, ``(samples, joints, REVERSALS)``."""

        return np.asarray(travelled(np.ascontiguousarray(position, dtype=np.float64), REVERSAL, self._state))


def with_travel(samples: Samples) -> Samples:
    """Samples that carry the way since the last reversals; as they are where they do already."""
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
