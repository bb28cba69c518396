"""Rows of poses: inertia matrices and gravity vectors of a robot (Gaz and others 2019, IV-A)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, freeze
from dynid.dynamics.inverse_dynamics import random_states_within_limits
from dynid.dynamics.regressors import static_matrix, static_regressor
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.channels import Channel, full_channel
from dynid.regression.factor import Regression, factorise
from dynid.regression.row_source import CHUNK_ROWS, Chunk, RowSource
from dynid.signals.recording import StaticRecording

_TYPICAL_POSES = 50


@dataclass(frozen=True, eq=False)
class StaticRows(RowSource):
    """Rows of a table of poses: entries of ``M`` and ``g``; rigid bodies only, effects do not act on poses.

    Args:
        robot: its rigid bodies are used.
        position: poses, ``(poses, joints)``.
        inertia: ``M(q)`` of every pose; None where unknown.
        gravity: ``g(q)`` of every pose; None where unknown.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.regression.static_rows import StaticRows
        >>> robot, q = dynid.demo_robot(), np.random.default_rng(0).uniform(-1, 1, (20, 7))
        >>> rows = StaticRows(robot, q, gravity=dynid.inverse_dynamics(robot, q, 0 * q, 0 * q, effects=False))
        >>> dynid.factorise(rows).n_rows
        120
    """

    kind = "static"
    timed = False
    samples = ()
    robot: Robot
    position: Array
    inertia: Array | None = None
    gravity: Array | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "robot", self.robot.with_effects(()))

    @classmethod
    def of(cls, robot: Robot, poses: StaticRecording) -> StaticRows:
        """The rows of a table of poses."""
        return cls(robot, poses.position, poses.inertia, poses.gravity)

    @property
    def parameters(self) -> Parameters:
        return self.robot.parameters

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        return (full_channel("poses", len(self.robot.parameters)),)

    @cached_property
    def matrix(self) -> Array:
        """``[W y]`` of all poses."""
        return freeze(static_matrix(self.robot, self.position, self.inertia, self.gravity))

    @property
    def n_poses(self) -> int:
        return len(self.position)

    def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
        step = chunk_rows or CHUNK_ROWS
        for start in range(0, len(self.matrix), step):
            yield Chunk([np.array(self.matrix[start : start + step], order="F")])

    def typical_rows(self) -> tuple[Array, ...]:
        q, _, _ = random_states_within_limits(self.robot, _TYPICAL_POSES, seed=2)
        inertia, gravity = static_regressor(self.robot, q)
        rows, columns = np.tril_indices(self.robot.n_dof)
        both = np.concatenate([inertia[:, rows, columns], gravity], axis=1)
        return (both.reshape(-1, both.shape[2]),)


def pose_regression(robot: Robot, q: ArrayLike, inertia: ArrayLike | None, gravity: ArrayLike | None) -> Regression:
    """Regression of poses over the inertial parameters of a robot."""
    poses = np.atleast_2d(np.asarray(q, dtype=np.float64))
    M, g = (None if part is None else np.asarray(part, dtype=np.float64) for part in (inertia, gravity))
    return factorise(StaticRows(robot, poses, M, g))
