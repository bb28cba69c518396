"""Channels: the families of rows that are kept apart, and the few columns each of them really has.

Rows of joint ``j`` see only the links it carries, and of those columns many are zero or combinations of others in *every*
state: the mass of the last link never enters the last joint, say. So a channel keeps its own independent columns alone,

    W_j = W_j[:, columns] expansion,

which is exact and halves the work of triangularising.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, IntArray, freeze
from dynid.regression.independence import independent_columns
from dynid.regression.random_states import random_states
from dynid.regression.structure import structure_of
from dynid.regression.torque import torque_regressor
from dynid.robot.model import Robot


@dataclass(frozen=True, eq=False)
class Channel:
    """One family of rows, such as the torque of one joint.

    Args:
        name: of the family.
        columns: indices of its independent columns.
        expansion: matrix from those columns to all columns.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot()
        >>> channel = dynid.build_regression(robot, dynid.demo_samples()).factors[6].channel
        >>> isinstance(channel, dynid.rows.Channel), channel.width < len(robot.parameters)
        (True, True)
    """

    name: str
    columns: IntArray
    expansion: Array

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
        >>> dynid.rows.full_channel("force", 3).width
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
    Y = torque_regressor(robot, *random_states(robot, n_states, seed=1))
    channels = []
    for d, name in enumerate(robot.dof_names):
        seen = np.flatnonzero(np.abs(Y[:, d]).max(axis=0) > 0.0)
        found = independent_columns(Y[: len(seen) + 40, d], freeze(order[np.isin(order, seen)], dtype=np.int64))
        place = np.argsort(found.kept)
        channels.append(Channel(name, freeze(found.kept[place], np.int64), freeze(found.K[place])))
    return tuple(channels)
