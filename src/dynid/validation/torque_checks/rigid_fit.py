"""A log against any rigid model of the robot: how much of the torque no parameters at all explain.

The nominal masses may be wrong, so they decide nothing here: base parameters, rotors and friction are fitted to the log. With
``C_j = W_j^T W_j`` and ``c_jk = W_j^T tau_k`` per joint, the best fit of any order and signs of the torque columns is one small
solution; an exchange of two columns changes ``C_j`` of two joints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.arrays import Array, IntArray
from dynid.recording.samples import Samples
from dynid.regression.base import reduce_to_base
from dynid.regression.torque import torque_regressor
from dynid.robot.effects import Armature, Offset, SmoothCoulomb, Viscous
from dynid.robot.model import Robot

ROWS = 500
"""Rows that are fitted: more of the same motion add nothing to a decision."""
LEAST_ROWS = 50
"""Rows that are fitted of however many joints."""
_WORK = 3e9  # equations times the square of the parameters: what a fit costs
_RIDGE = 1e-9  # of scaled normal equations, for directions that the motion does not show


def fitted_model(robot: Robot) -> Robot:
    """The robot with the effects that every joint may have."""
    return robot.with_effects([Viscous(), SmoothCoulomb(), Offset(), Armature()])


@dataclass(frozen=True, eq=False)
class RigidFit:
    """Rows of every joint over base parameters, and their normal equations with each joint's torque of mean square 1."""

    rows: Array
    """``(rows, joints, base)``."""
    mixed: Array
    """``(joints, base, joints)``: joint of the rows, column, joint of the torque."""
    size: Array
    """``(joints,)``: root mean square of each torque column."""

    @classmethod
    def of(cls, robot: Robot, q: Array, v: Array, a: Array, torque: Array) -> RigidFit:
        """``robot`` has the effects to be fitted; every joint's torque counts alike."""
        size = np.sqrt(np.mean(torque**2, axis=0))
        tau = torque / np.where(size > 0.0, size, 1.0) / np.sqrt(len(q))
        W = reduce_to_base(robot).regressor(torque_regressor(robot, q, v, a)) / np.sqrt(len(q))
        return cls(W, np.stack([W[:, j].T @ tau for j in range(W.shape[1])]), size)

    @property
    def n_joints(self) -> int:
        return len(self.size)

    @cached_property
    def _gram(self) -> Array:
        """Normal matrix with every joint counted by its own torque."""
        weighted = (self.rows * self._weight(np.arange(self.n_joints))[:, None]).reshape(-1, self.rows.shape[2])
        return np.asarray(weighted.T @ weighted)

    def _weight(self, places: IntArray) -> Array:
        """A joint counts by the torque it has: one over the size of the column at its place."""
        return np.asarray(1.0 / np.where(self.size[places] > 0.0, self.size[places], 1.0))

    def unexplained(self, order: Sequence[int] | None = None, sign: Array | None = None) -> float:
        """Mean share of the torque's square that no parameters explain, with torque columns in another order or with signs."""
        n = self.n_joints
        places = np.arange(n) if order is None else np.asarray(order)
        signs = np.ones(n) if sign is None else sign
        weight, own = self._weight(places), self._weight(np.arange(n))
        A = self._gram.copy()
        for j in np.flatnonzero(places != np.arange(n)):
            A += (weight[j] ** 2 - own[j] ** 2) * (self.rows[:, j].T @ self.rows[:, j])
        b = np.einsum("j,jb->b", weight * signs, self.mixed[np.arange(n), :, places])
        # what is left of columns that cancel is rounding, on the diagonal as beside it
        scale = np.sqrt(np.maximum(np.diag(A), max(1e-24 * float(np.abs(A).max()), 1e-300)))
        A, b = A / np.outer(scale, scale), b / scale
        beta = np.linalg.solve(A + _RIDGE * np.eye(len(b)), b)
        rows = float(np.count_nonzero(self.size)) or 1.0
        return max(0.0, 1.0 - float(2.0 * b @ beta - beta @ A @ beta) / rows)


def few_rows(samples: Samples, robot: Robot) -> tuple[Array, Array, Array, Array]:
    """Position, velocity, acceleration and torque at about ``ROWS`` samples, of a long chain at fewer: each has more equations."""
    assert samples.torque is not None
    most = min(ROWS, int(_WORK / (robot.n_dof * len(robot.parameters) ** 2)))
    rows = slice(None, None, max(1, len(samples) // max(most, LEAST_ROWS)))
    return samples.position[rows], samples.velocity[rows], samples.acceleration[rows], samples.torque[rows]
