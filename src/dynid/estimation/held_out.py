"""Rows of a whole model, ready to ask what further columns would do to the error on blocks of time that were left out.

The columns ``A`` of the model over all joints are replaced by an orthonormal basis once; then leaving out a block and adding a
few columns is a small linear solve for each block:

    min || y - X b - C c ||  over the other blocks,    error: || y - X b - C c ||  over the block left out
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.linalg

from dynid.arrays import Array, BoolArray, IntArray
from dynid.estimation.friction.data import Log, time_blocks, torque_rows_of
from dynid.recording.samples import Samples
from dynid.regression.base import reduce_to_base
from dynid.regression.channels import torque_channels
from dynid.regression.memory import with_memory
from dynid.regression.row_filter import RowFilter
from dynid.robot.model import Robot
from dynid.robot.rotors import driven_motion

BLOCKS = 5
PIECES = 3
"""Stretches of time in every block: blocks of one stretch would ask for what other stretches never showed."""
GAP_S = 0.2
LEAST_ROWS = 20
"""Rows that a block must have of each joint."""
MOST_ROWS = 3_000
"""Rows of each joint that are kept where no row filter thins them."""
NEW = 1e-4
"""Part of its square that the model's own columns must leave of a direction, for the direction to be a new one."""
ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Added:
    """What some further columns do: the residual with them, as without, and their values over all blocks."""

    residual: Array
    values: Array


@dataclass(frozen=True, eq=False)
class _Grams:
    """Products of basis ``X``, further columns ``C`` and torque ``y`` over some rows."""

    XX: Array
    XC: Array
    CC: Array
    Xy: Array
    Cy: Array

    @classmethod
    def of(cls, held: HeldOut, C: Array, rows: BoolArray) -> _Grams:
        X, own = (np.concatenate(values[:, rows]) for values in (held.basis, C))
        y = held.torque[:, rows].ravel()
        return cls(X.T @ X, X.T @ own, own.T @ own, X.T @ y, own.T @ y)

    def all(self) -> tuple[Array, ...]:
        return self.XX, self.XC, self.CC, self.Xy, self.Cy

    def less(self, other: _Grams) -> _Grams:
        return _Grams(*(own - theirs for own, theirs in zip(self.all(), other.all(), strict=True)))


class _Fit:
    """The fit of the model to some rows, from which that with further columns follows."""

    def __init__(self, gram: _Grams) -> None:
        n = len(gram.XX)
        factor = np.linalg.cholesky(gram.XX + 1e-10 * np.trace(gram.XX) / n * np.eye(n))
        solved = scipy.linalg.cho_solve((factor, True), np.column_stack([gram.Xy, gram.XC]), check_finite=False)
        self.b, self.inside = solved[:, 0], solved[:, 1:]
        self._S = gram.CC - gram.XC.T @ self.inside
        self._size = np.sqrt(np.maximum(np.diag(gram.CC), 1e-300))
        self._right = gram.Cy - self.inside.T @ gram.Xy

    def values(self, part: slice) -> Array | None:
        """Values of some of the columns beside the model, along what is new of them; None where the model has them already."""
        size = self._size[part]
        left, V = np.linalg.eigh(self._S[part, part] / np.outer(size, size))
        new = left > NEW
        if not new.any():
            return None
        return np.asarray(V[:, new] @ ((V[:, new].T @ (self._right[part] / size)) / left[new]) / size)


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

    @classmethod
    def of(cls, robot: Robot, samples: Sequence[Samples], row_filter: RowFilter | None) -> HeldOut | None:
        """The rows of a robot; None where there are too few for blocks."""
        every = 1 if row_filter is not None else max(1, int(np.ceil(sum(len(one) for one in samples) / MOST_ROWS)))
        logs = tuple(
            Log(
                one,
                driven_motion(robot, one.position, one.velocity, one.acceleration, one.load, one.travel),
                row_filter,
                every,
            )
            for one in (with_memory(robot, given) for given in samples)
        )
        made = [torque_rows_of(robot, log) for log in logs]
        lift = reduce_to_base(robot).lift
        channels = torque_channels(robot)
        columns = [np.concatenate(parts) for parts in zip(*(blocks for blocks, _ in made), strict=True)]
        A = np.stack([own @ (channel.expansion @ lift) for own, channel in zip(columns, channels, strict=True)])
        y = np.concatenate([torque for _, torque in made]).T
        pieces = time_blocks(logs, PIECES * BLOCKS, GAP_S)
        block = np.where(pieces >= 0, pieces % BLOCKS, -1)
        counts = np.bincount(block[block >= 0], minlength=BLOCKS)
        if counts.min() < LEAST_ROWS or (counts.sum() - counts.max()) * robot.n_dof < 2 * A.shape[2]:
            return None
        weights = _weights(A, y)
        basis = _orthonormal((A * weights[:, None, None]).reshape(-1, A.shape[2])).reshape(*A.shape[:2], -1)
        return cls(robot, logs, basis, y * weights[:, None], weights, block)

    def rows(self, values: Sequence[Array]) -> Array:
        """Columns over the samples of every log as columns over rows, ``(rows, columns)``, not weighted."""
        return np.concatenate([log.rows([own]) for log, own in zip(self.logs, values, strict=True)])

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

    def residuals(self, sets: Sequence[Mapping[int, Array]] = ()) -> tuple[Array, list[Added | None]]:
        """Residual of every row by the fit that left its block out, ``(joints, rows)``, weighted, zero in rows of no block; and
        the same with each set of further columns, None for a set that is not new to the model."""
        C = np.concatenate([self._placed(one) for one in sets], axis=2) if sets else np.zeros((*self.torque.shape, 0))
        ends = np.cumsum([0, *(next(iter(one.values())).shape[1] for one in sets)])
        parts = [slice(a, b) for a, b in pairwise(ends.tolist())]
        grams = [_Grams.of(self, C, self.block == block) for block in range(BLOCKS)]
        total = _Grams(*(sum(own[1:], own[0]) for own in zip(*(g.all() for g in grams), strict=True)))
        left = np.zeros_like(self.torque)
        others = [np.zeros_like(self.torque) for _ in sets]
        new = np.ones(len(sets), dtype=bool)
        for block, gram in enumerate(grams):
            inside = self.block == block
            fit = _Fit(total.less(gram))
            X = self.basis[:, inside]
            left[:, inside] = self.torque[:, inside] - X @ fit.b
            outside = C[:, inside] - X @ fit.inside
            for k, part in enumerate(parts):
                c = fit.values(part)
                new[k] &= c is not None
                if c is not None:
                    others[k][:, inside] = left[:, inside] - outside[:, :, part] @ c
        whole = _Fit(total)
        added: list[Added | None] = []
        for k, part in enumerate(parts):
            values = whole.values(part) if new[k] else None
            added.append(None if values is None else Added(others[k], values))
        return left, added

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
