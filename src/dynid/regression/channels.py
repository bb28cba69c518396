"""Channels: the families of rows that are kept apart, and the few columns each of them really has.

Rows of joint ``j`` see only the links it carries, and of those columns many are zero or combinations of others in *every*
state: the mass of the last link never enters the last joint, say. So a channel keeps its own independent columns alone,

    W_j = W_j[:, columns] expansion,

which is exact and halves the work of triangularising.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import or_

import numpy as np

from dynid.arrays import Array, IntArray, freeze, frozen_view
from dynid.dynamics.inverse_dynamics import random_states
from dynid.dynamics.regressors import torque_regressor
from dynid.dynamics.structure import structure_of
from dynid.model.robot import Robot
from dynid.regression.independence import independent_columns


class Channel:
    """One family of rows, such as the torque of one joint.

    Args:
        name: of the family.
        columns: indices of its independent columns.
        expansion: matrix from those columns to all columns.

    Examples:
        >>> import dynid
        >>> from dynid.regression.channels import Channel
        >>> robot = dynid.demo_robot()
        >>> channel = dynid.build_regression(robot, dynid.demo_samples()).factors[6].channel
        >>> isinstance(channel, Channel), channel.width < len(robot.parameters)
        (True, True)
    """

    def __init__(self, name: str, columns: IntArray, expansion: Array) -> None:
        self.name, self.columns = name, columns
        self._n = expansion.shape[1]
        filled = np.flatnonzero(expansion.any(axis=0))
        others = np.setdiff1d(filled, columns)
        self._picks = np.array_equal(expansion[:, columns], np.eye(len(columns)))
        # of a long chain the matrices of all joints are large and mostly zero: what is neither zero nor a choice is kept
        self._others = others if self._picks else filled
        self._combination = freeze(expansion[:, self._others])

    @property
    def expansion(self) -> Array:
        """``(own columns, all columns)``."""
        found = np.zeros((self.width, self._n))
        if self._picks:
            found[np.arange(self.width), self.columns] = 1.0
        found[:, self._others] = self._combination
        return frozen_view(found)

    def values(self, parameters: Array) -> Array:
        """``expansion @ parameters``, the values of the own columns."""
        own = self._combination @ parameters[self._others]
        return np.asarray(parameters[self.columns] + own if self._picks else own)

    @property
    def width(self) -> int:
        return len(self.columns)

    def matches(self, other: Channel) -> bool:
        """Whether factors of the two can be merged."""
        return self is other or (
            self.name == other.name
            and np.array_equal(self.columns, other.columns)
            and np.allclose(self.expansion, other.expansion, rtol=1e-9, atol=1e-12)
        )


def full_channel(name: str, n_parameters: int) -> Channel:
    """A channel that keeps every column.

    Args:
        name: of the family of rows.
        n_parameters: number of columns.

    Examples:
        >>> import dynid
        >>> from dynid.regression.channels import full_channel
        >>> full_channel("force", 3).width
        3
    """
    return Channel(name, freeze(range(n_parameters), dtype=np.int64), freeze(np.eye(n_parameters)))


def torque_channels(robot: Robot) -> tuple[Channel, ...]:
    """One channel per torque; found once for all robots of one structure."""
    return structure_of(robot).once(find_torque_channels)


def find_torque_channels(robot: Robot) -> tuple[Channel, ...]:
    """The independent columns of every torque, from its rows at random states."""
    order = robot.parameters.grouping()
    # more states than any torque has columns: its bodies' ten each, and the effects that act on it
    if robot.loops:  # any motor may move any body
        n_states = len(robot.parameters) + 40
    else:
        carried = 10 * np.bincount(robot.tree.support, minlength=robot.n_dof)
        n_states = int((carried + np.count_nonzero(robot.effect_incidence, axis=1)).max()) + 40
    states = random_states(robot, n_states, seed=1)
    seen, rows = _seen_rows(robot, states)
    place_of = np.argsort(order)  # place of every column in the order of preference
    channels = []
    for name, own, Y in zip(robot.dof_names, seen, rows, strict=True):
        found = independent_columns(Y, freeze(np.argsort(place_of[own]), dtype=np.int64))
        kept = np.sort(found.kept)
        expansion = np.zeros((len(kept), len(robot.parameters)))
        expansion[:, own] = found.K[np.argsort(found.kept)]
        channels.append(Channel(name, freeze(own[kept], np.int64), expansion))
    return tuple(channels)


_STATES_AT_ONCE = 128


def _seen_rows(robot: Robot, states: Sequence[Array]) -> tuple[list[IntArray], list[Array]]:
    """Columns of each torque that are not zero, and its rows over these at as many states as it needs and 40 more.

    A long chain has many columns, of which every joint sees a part: they are made at a few states at a time.
    """

    def made() -> Iterator[tuple[int, Array]]:
        for start in range(0, len(states[0]), _STATES_AT_ONCE):
            yield start, torque_regressor(robot, *(one[start : start + _STATES_AT_ONCE] for one in states))

    filled = reduce(or_, [(Y != 0.0).any(axis=0) for _, Y in made()])
    seen = [np.flatnonzero(own) for own in filled]
    parts: list[list[Array]] = [[] for _ in seen]
    for start, Y in made():
        for d, own in enumerate(seen):
            wanted = len(own) + 40 - start
            if wanted > 0:
                parts[d].append(Y[:wanted, d][:, own])
    return seen, [np.concatenate(own) for own in parts]
