"""Rows of a whole model, ready to ask what further columns would do to the error on blocks of time that were left out.

The columns ``A`` of the model over all joints are replaced by an orthonormal basis once; then leaving out a block and adding a
few columns is a small linear solve for each block:

    min || y - X b - C c ||  over the other blocks,    error: || y - X b - C c ||  over the block left out
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg

from dynid.arrays import Array, BoolArray, IntArray
from dynid.estimation.friction.data import Log, time_blocks, torque_rows_of
from dynid.recording.samples import Samples
from dynid.regression.base import reduce_to_base
from dynid.regression.channels import torque_channels
from dynid.regression.row_filter import RowFilter
from dynid.robot.model import Robot
from dynid.robot.rotors import driven_motion

BLOCKS = 5
GAP_S = 0.3
LEAST_ROWS = 8
"""Rows that a block must have of each joint."""
MOST_ROWS = 3_000
"""Rows of each joint that are kept where no row filter thins them."""
NEW = 1e-4
"""Part of a column's square that the model's own columns must leave, for the column to be a new one."""
ROUNDS = 3


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows of all joints over an orthonormal basis of the model's columns, cut into blocks of time."""

    robot: Robot
    logs: tuple[Log, ...]
    basis: Array
    """``(joints, rows, rank)``, weighted."""
    torque: Array
    """``(joints, rows)``, weighted."""
    weights: Array
    """Per joint: one over its noise."""
    block: IntArray
    _solved: dict[int, tuple[Array, Array]] = field(default_factory=dict)

    @classmethod
    def of(cls, robot: Robot, samples: Sequence[Samples], row_filter: RowFilter | None) -> HeldOut | None:
        """The rows of a robot; None where there are too few for blocks."""
        every = 1 if row_filter is not None else max(1, int(np.ceil(sum(len(one) for one in samples) / MOST_ROWS)))
        logs = tuple(
            Log(one, driven_motion(robot, one.position, one.velocity, one.acceleration, one.load), row_filter, every)
            for one in samples
        )
        made = [torque_rows_of(robot, log) for log in logs]
        lift = reduce_to_base(robot).lift
        channels = torque_channels(robot)
        columns = [np.concatenate(parts) for parts in zip(*(blocks for blocks, _ in made), strict=True)]
        A = np.stack([own @ (channel.expansion @ lift) for own, channel in zip(columns, channels, strict=True)])
        y = np.concatenate([torque for _, torque in made]).T
        block = time_blocks(logs, BLOCKS, GAP_S)
        counts = np.bincount(block[block >= 0], minlength=BLOCKS)
        if counts.min() < LEAST_ROWS or (counts.sum() - counts.max()) * robot.n_dof < 2 * A.shape[2]:
            return None
        weights = _weights(A, y)
        basis = _orthonormal((A * weights[:, None, None]).reshape(-1, A.shape[2])).reshape(*A.shape[:2], -1)
        return cls(robot, logs, basis, y * weights[:, None], weights, block)

    def rows(self, values: Sequence[Array]) -> Array:
        """Columns over the samples of every log as columns over rows, ``(rows, columns)``, not weighted."""
        return np.concatenate([log.rows(own) for log, own in zip(self.logs, values, strict=True)])

    @property
    def n_joints(self) -> int:
        return len(self.weights)

    def with_columns(self, columns: Mapping[int, Array]) -> HeldOut:
        """The same with further columns in the model, ``(rows, columns)`` for each joint that they enter."""
        wide = np.concatenate([self.basis, self._placed(columns)], axis=2)
        basis = _orthonormal(wide.reshape(-1, wide.shape[2])).reshape(*wide.shape[:2], -1)
        return HeldOut(self.robot, self.logs, basis, self.torque, self.weights, self.block)

    def predicted(self) -> Array:
        """``(joints, rows)``: torque that the model explains, not weighted."""
        flat = self.basis.reshape(-1, self.basis.shape[2])
        fitted = flat @ (flat.T @ self.torque.ravel())
        return np.asarray(fitted.reshape(self.torque.shape) / self.weights[:, None])

    def residuals(self, columns: Mapping[int, Array] | None = None) -> tuple[Array, Array] | None:
        """Residual of every row, ``(joints, rows)``, weighted, by the fit that left its block out, and the values of the
        columns over all blocks; None where the columns are not new. Rows of no block are zero."""
        C = None if columns is None else self._placed(columns)
        left = np.zeros_like(self.torque)
        for block in range(BLOCKS):
            inside = self.block == block
            known = (self.block >= 0) & ~inside
            solved = self._fit(known, C, block)
            if solved is None:
                return None
            b, c = solved
            left[:, inside] = self.torque[:, inside] - self.basis[:, inside] @ b
            if C is not None:
                left[:, inside] -= C[:, inside] @ c
        whole = self._fit(self.block >= 0, C, -1)
        return None if whole is None else (left, whole[1])

    def _fit(self, rows: BoolArray, C: Array | None, key: int) -> tuple[Array, Array] | None:
        if key not in self._solved:
            X = self.basis[:, rows].reshape(-1, self.basis.shape[2])
            gram = X.T @ X
            factor = np.linalg.cholesky(gram + 1e-10 * np.trace(gram) / len(gram) * np.eye(len(gram)))
            self._solved[key] = factor, X.T @ self.torque[:, rows].ravel()
        factor, Xy = self._solved[key]
        solve = lambda right: scipy.linalg.cho_solve((factor, True), right, check_finite=False)  # noqa: E731
        if C is None:
            return solve(Xy), np.zeros(0)
        X = self.basis[:, rows].reshape(-1, self.basis.shape[2])
        own = C[:, rows].reshape(-1, C.shape[2])
        XC, Cy, CC = X.T @ own, own.T @ self.torque[:, rows].ravel(), own.T @ own
        inside = solve(XC)
        S = CC - XC.T @ inside
        size = np.sqrt(np.maximum(np.diag(CC), 1e-300))
        if (np.linalg.eigvalsh(S / np.outer(size, size)) < NEW).any():
            return None
        c = np.linalg.solve(S, Cy - inside.T @ Xy)
        return solve(Xy) - inside @ c, c

    def _placed(self, columns: Mapping[int, Array]) -> Array:
        """Columns with their rows of every joint, weighted; zero for joints that they do not enter."""
        width = next(iter(columns.values())).shape[1]
        placed = np.zeros((self.n_joints, len(self.block), width))
        for joint, values in columns.items():
            placed[joint] = self.weights[joint] * values
        return placed

    def squares(self, left: Array) -> Array:
        """``(blocks, joints)``: squared weighted error."""
        return np.array([(left[:, self.block == block] ** 2).sum(axis=1) for block in range(BLOCKS)])


def _weights(A: Array, y: Array) -> Array:
    """One over the residual of each joint, found together with the fit."""
    scale = np.sqrt((y**2).mean(axis=1))
    weights = 1.0 / np.maximum(scale, 1e-9 * max(float(scale.max()), 1e-300))
    for _ in range(ROUNDS):
        flat = _orthonormal((A * weights[:, None, None]).reshape(-1, A.shape[2]))
        wy = (y * weights[:, None]).ravel()
        left = (wy - flat @ (flat.T @ wy)).reshape(y.shape) / weights[:, None]
        noise = np.sqrt((left**2).mean(axis=1))
        weights = 1.0 / np.maximum(noise, 1e-6 * np.maximum(scale, 1e-300))
    return np.asarray(weights)


def _orthonormal(A: Array) -> Array:
    """An orthonormal basis of the columns, without directions that are round-off."""
    size = np.linalg.norm(A, axis=0)
    R = np.linalg.qr(A / np.where(size > 0.0, size, 1.0), mode="r")
    _, s, Vt = np.linalg.svd(R)
    kept = s > 1e-8 * s[0]
    return np.asarray(A @ (Vt[kept].T / s[kept] / np.where(size > 0.0, size, 1.0)[:, None]))
