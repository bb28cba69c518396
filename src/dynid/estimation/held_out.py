"""Rows of a whole model, ready to ask what further columns would do to the error on blocks of time that were left out.

The columns ``A`` of the model over all joints are replaced by an orthonormal basis once; then leaving out a block and adding a
few columns is a small linear solve for each block:

    min || y - X b - C c ||  over the other blocks,    error: || y - X b - C c ||  over the block left out
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import scipy.linalg

from dynid.arrays import Array, BoolArray, IntArray
from dynid.dynamics.joint_effects import driven_motion
from dynid.estimation.friction.rows import Log, fewer_samples, time_blocks, torque_rows_of
from dynid.estimation.linear import used_alone
from dynid.model.robot import Robot
from dynid.regression.base import LONG_CHAIN, BaseReduction, reduce_to_base
from dynid.regression.channels import orthonormal_basis, torque_channels
from dynid.regression.row_filter import FilteredRows, RowFilter
from dynid.regression.row_source import RowSource
from dynid.signals.reversal_history import with_memory
from dynid.signals.samples import Samples

BLOCKS = 5
PIECES = 3
"""Stretches of time in every block: blocks of one stretch would ask for what other stretches never showed."""
GAP_S = 0.2
LEAST_ROWS = 10
"""Rows that a block must have of each joint."""
MOST_ROWS = 3_000
"""Rows of each joint that are kept where no row filter thins them."""
MOST_NUMBERS = 12_000_000
"""Numbers in the rows of all joints over all columns: of a long chain rows of windows are taken."""
NEW = 1e-4
"""Part of its square that the model's own columns must leave of a direction, for the direction to be a new one."""
SEEN = 1e-8
"""Part of the largest eigenvalue of the scaled normal matrix below which a direction keeps its described value."""
ROUNDS = 3


Added: TypeAlias = tuple[Mapping[int, Array], Array, Array]
"""Squared weighted error with some further columns, of every block: for each joint that they enter, and of all joints together;
and the values of the columns over all blocks."""


class _Sets:
    """Sets of further columns, weighted; each enters a few joints, and only there it has numbers."""

    def __init__(self, sets: Sequence[Mapping[int, Array]], weights: Array) -> None:
        self.columns = [{j: weights[j] * values for j, values in one.items()} for one in sets]
        ends = np.cumsum([0, *(next(iter(one.values())).shape[1] for one in sets)]).tolist()
        self.parts = [slice(a, b) for a, b in pairwise(ends)]
        self.width = ends[-1]
        self.of_joint: dict[int, tuple[IntArray, Array]] = {}
        """Numbers of all columns that enter a joint, and these columns side by side."""
        for j in sorted({j for one in sets for j in one}):
            found = [(part, one[j]) for part, one in zip(self.parts, self.columns, strict=True) if j in one]
            numbers = np.concatenate([np.arange(part.start, part.stop) for part, _ in found])
            self.of_joint[j] = numbers, np.hstack([values for _, values in found])


@dataclass(frozen=True, eq=False)
class _Grams:
    """Products of basis ``X``, further columns ``C`` and torque ``y`` over some rows; of ``C`` with itself set by set."""

    XX: Array
    XC: Array
    CC: tuple[Array, ...]
    Xy: Array
    Cy: Array

    @classmethod
    def of(cls, held: HeldOut, sets: _Sets, rows: BoolArray) -> _Grams:
        X, y = held.basis[:, rows], held.torque[:, rows]
        flat = X.reshape(-1, X.shape[2])
        XC, Cy = np.zeros((X.shape[2], sets.width)), np.zeros(sets.width)
        for j, (numbers, values) in sets.of_joint.items():
            XC[:, numbers] += X[j].T @ values[rows]
            Cy[numbers] += values[rows].T @ y[j]
        CC = tuple(sum(values[rows].T @ values[rows] for values in one.values()) for one in sets.columns)
        return cls(flat.T @ flat, XC, CC, flat.T @ y.ravel(), Cy)

    def plus(self, other: _Grams, sign: float = 1.0) -> _Grams:
        CC = tuple(own + sign * theirs for own, theirs in zip(self.CC, other.CC, strict=True))
        XX, XC = self.XX + sign * other.XX, self.XC + sign * other.XC
        return _Grams(XX, XC, CC, self.Xy + sign * other.Xy, self.Cy + sign * other.Cy)


class _Fit:
    """The fit of the model to some rows, from which that with further columns follows, and its error on other rows."""

    def __init__(self, gram: _Grams, parts: Sequence[slice]) -> None:
        n = len(gram.XX)
        factor = np.linalg.cholesky(gram.XX + 1e-10 * np.trace(gram.XX) / n * np.eye(n))
        solved = scipy.linalg.cho_solve((factor, True), np.column_stack([gram.Xy, gram.XC]), check_finite=False)
        self.b, self.inside = solved[:, 0], solved[:, 1:]
        self._gram, self._parts = gram, parts
        self._right = gram.Cy - self.inside.T @ gram.Xy

    def values(self, k: int) -> Array | None:
        """Values of a set of columns beside the model, along what is new of them; None where the model has them already."""
        part, CC = self._parts[k], self._gram.CC[k]
        S = CC - self._gram.XC[:, part].T @ self.inside[:, part]
        if len(S) == 1:
            return np.asarray(self._right[part] / S[0]) if S[0, 0] > NEW * CC[0, 0] else None
        size = np.sqrt(np.maximum(np.diag(CC), 1e-300))
        left, V = np.linalg.eigh(S / np.outer(size, size))
        new = left > NEW
        if not new.any():
            return None
        return np.asarray(V[:, new] @ ((V[:, new].T @ (self._right[part] / size)) / left[new]) / size)

    def look_at(self, left: Array, X: Array, gram: _Grams, sets: _Sets, rows: BoolArray) -> None:
        """Take in what is left of other rows, of which :meth:`square` tells the error.

        With what lies of further columns outside the model, ``O = C - X inside``, it falls by ``2 c^T O^T r - c^T O^T O c``.
        """
        self._before = float((left**2).sum())
        self._Or = -self.inside.T @ (X.reshape(-1, X.shape[2]).T @ left.ravel())
        for j, (numbers, values) in sets.of_joint.items():
            self._Or[numbers] += values[rows].T @ left[j]
        again = gram.XX @ self.inside
        self._OO = []
        for part, CC in zip(sets.parts, gram.CC, strict=True):
            own, cross = self.inside[:, part], gram.XC[:, part]
            self._OO.append(CC - own.T @ cross - cross.T @ own + own.T @ again[:, part])

    def square(self, k: int, c: Array) -> float:
        """Squared error of these rows with a set of columns at these values, all joints together."""
        return self._before - 2.0 * float(c @ self._Or[self._parts[k]]) + float(c @ self._OO[k] @ c)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows of all joints over an orthonormal basis of the model's columns, cut into blocks of time."""

    robot: Robot
    """With the parameters that fit these rows best; what they do not show stays as described."""
    logs: tuple[Log, ...]
    basis: Array
    """``(joints, rows, rank)``, weighted."""
    torque: Array
    """``(joints, rows)``, weighted."""
    weights: Array
    """Per joint: one over its noise."""
    block: IntArray
    times: tuple[Array, ...]
    """Of the rows of every log."""

    @classmethod
    def of(
        cls,
        robot: Robot,
        samples: Sequence[Samples],
        row_filter: RowFilter | None,
        known: Sequence[RowSource] = (),
        *,
        fixed: Mapping[str, float] | None = None,
    ) -> HeldOut | None:
        """The rows of a robot; None where there are too few for blocks.

        ``known`` are rows of a fit to the same samples. Of parameters that are ``fixed`` only their torque is left in the model.
        """
        every = 1 if row_filter is not None else max(1, int(np.ceil(sum(len(one) for one in samples) / MOST_ROWS)))
        base = reduce_to_base(robot)
        remembered = [with_memory(robot, one) for one in samples]
        fewer = fewer_samples(remembered, row_filter, robot.n_dof * base.n_base, MOST_NUMBERS)
        logs = tuple(
            Log(
                one,
                driven_motion(robot, one.position, one.velocity, one.acceleration, one.load, one.travel),
                row_filter,
                every,
            )
            for one in fewer
        )
        unchanged = all(one is other for one, other in zip(fewer, remembered, strict=True))
        sources = _filtered_rows_of(known if unchanged else (), robot, [log.samples for log in logs], row_filter)
        made = [torque_rows_of(robot, log, source) for log, source in zip(logs, sources, strict=True)]
        channels = torque_channels(robot)
        y = np.concatenate([torque for _, torque in made]).T
        A = np.empty((*y.shape, base.n_base))
        for d, (parts, channel) in enumerate(zip(zip(*(blocks for blocks, _ in made), strict=True), channels, strict=True)):
            np.matmul(np.concatenate(parts), base.regressor(channel.expansion), out=A[d])
        del made, parts  # of a long chain as large as a share of what follows
        pieces = time_blocks(logs, PIECES * BLOCKS, GAP_S)
        block = np.where(pieces >= 0, pieces % BLOCKS, -1)
        counts = np.bincount(block[block >= 0], minlength=BLOCKS)
        if counts.min() < LEAST_ROWS or (counts.sum() - counts.max()) * robot.n_dof < 2 * A.shape[2]:
            return None
        start, free = _free(robot, base, fixed or {})
        if free is not None:
            y -= A @ base.base_values(start.parameters)
            A = A @ free
        weights = _weights(A, y)
        A *= weights[:, None, None]
        wy = y * weights[:, None]
        fitted = _fitted(start, base, A.reshape(-1, A.shape[2]), wy.ravel(), free)
        basis = _orthonormal(A.reshape(-1, A.shape[2])).reshape(*A.shape[:2], -1)
        return cls(fitted, logs, basis, wy, weights, block, tuple(log.times for log in logs))

    def rows(self, values: Sequence[Array], joints: Sequence[int] | None = None) -> Array:
        """Columns over the samples of every log as columns over rows, ``(rows, columns)``, in units of torque.

        ``joints`` are those whose rows each column enters: rows that a fit does not use count as little there.
        """
        logs = zip(self.logs, values, strict=True)
        used = [(log, own if joints is None else log.used(own, np.asarray(joints))) for log, own in logs]
        return np.concatenate([log.rows([own]) for log, own in used])

    @property
    def n_joints(self) -> int:
        return len(self.weights)

    def with_columns(self, columns: Mapping[int, Array]) -> HeldOut:
        """The same with further columns in the model, ``(rows, columns)`` for each joint that they enter."""
        # Columns with their rows of every joint, weighted; zero for joints that they do not enter.
        width = next(iter(columns.values())).shape[1]
        placed = np.zeros((self.n_joints, len(self.block), width))
        for joint, values in columns.items():
            placed[joint] = self.weights[joint] * values
        wide = np.concatenate([self.basis, placed], axis=2)
        basis = _orthonormal(wide.reshape(-1, wide.shape[2])).reshape(*wide.shape[:2], -1)
        return replace(self, basis=basis)

    def coarse(self) -> HeldOut:
        """The same rows, with as few samples of every log as columns over them need."""
        fewer = [log.coarse for log in self.logs]
        logs = [
            log if own is None or own.kept is None else replace(own, samples=log.samples[own.kept], kept=None)
            for log, own in zip(self.logs, fewer, strict=True)
        ]
        return replace(self, logs=tuple(logs))

    def residuals(self) -> Array:
        """Residual of every row by the fit that left its block out, ``(joints, rows)``, weighted, zero in rows of no block."""
        return self.with_each([])[0]

    def with_each(self, sets: Sequence[Mapping[int, Array]]) -> tuple[Array, list[Added | None]]:
        """The residuals, and what each set of further columns does to them; None for a set that is not new to the model."""
        found = _Sets(sets, self.weights)
        grams = [_Grams.of(self, found, self.block == block) for block in range(BLOCKS)]
        total = reduce(_Grams.plus, grams)
        left = np.zeros_like(self.torque)
        own: list[dict[int, list[float]]] = [{j: [] for j in one} for one in sets]
        totals: list[list[float]] = [[] for _ in sets]
        new = np.ones(len(sets), dtype=bool)
        for block, gram in enumerate(grams):
            inside = self.block == block
            fit = _Fit(total.plus(gram, -1.0), found.parts)
            X = self.basis[:, inside]
            left[:, inside] = self.torque[:, inside] - X @ fit.b
            here = left[:, inside]
            fit.look_at(here, X, gram, found, inside)
            for k in range(len(sets)):
                c = fit.values(k)
                new[k] &= c is not None
                if c is None:
                    continue
                totals[k].append(fit.square(k, c))
                moved = fit.inside[:, found.parts[k]] @ c
                for j, values in found.columns[k].items():
                    after = here[j] - values[inside] @ c + X[j] @ moved
                    own[k][j].append(float(after @ after))
        whole = _Fit(total, found.parts)
        added: list[Added | None] = []
        for k in range(len(sets)):
            values = whole.values(k) if new[k] else None
            squares = {j: np.array(each) for j, each in own[k].items()}
            added.append(None if values is None else (squares, np.array(totals[k]), values))
        return left, added

    def values_of(self, columns: Mapping[int, Array]) -> tuple[Array, Array] | None:
        """Values of further columns beside the model and their standard deviations; None where the model has them already.

        The deviations are the largest of three: those of rows with independent noise, what leaving out blocks moves the values by, and the
        scatter of joints, ``S^-1 sum_j g_j g_j^T S^-1`` with the gradients ``g_j`` of each joint's rows: what the model lacks
        of a joint, such as the form of its friction, lasts over all blocks but differs between joints.
        """
        found = _Sets([columns], self.weights)
        grams = [_Grams.of(self, found, self.block == block) for block in range(BLOCKS)]
        total = reduce(_Grams.plus, grams)
        whole = _Fit(total, found.parts)
        values = whole.values(0)
        others = [_Fit(total.plus(gram, -1.0), found.parts).values(0) for gram in grams]
        seen = [one for one in others if one is not None]
        if values is None or len(seen) < BLOCKS:
            return None
        moved = np.sqrt((BLOCKS - 1) / BLOCKS * np.sum((np.array(seen) - np.mean(seen, axis=0)) ** 2, axis=0))
        S = total.CC[0] - total.XC.T @ whole.inside
        left = self.torque[:, self.block >= 0] - self.basis[:, self.block >= 0] @ whole.b
        variance = float((left**2).sum() - values @ S @ values) / max(left.size - len(whole.b) - len(values), 1)
        inverse = np.linalg.inv(S)
        # Gradient of each joint's rows by some further columns at their best values, beside the model, ``(joints,
        # columns)``.
        inside, gradients = self.block >= 0, []
        for j, own in columns.items():
            X = self.basis[j, inside]
            new = self.weights[j] * own[inside] - X @ whole.inside
            left = self.torque[j, inside] - X @ whole.b - new @ values
            gradients.append(new.T @ left)
        n = len(gradients)
        joints = np.asarray(np.sqrt(n / max(n - 1, 1)) * np.array(gradients)) @ inverse
        return values, np.maximum.reduce([np.sqrt(variance * np.diag(inverse)), moved, np.sqrt((joints**2).sum(axis=0))])

    def squares(self, left: Array) -> Array:
        """``(blocks, joints)``: squared weighted error."""
        return np.array([(left[:, self.block == block] ** 2).sum(axis=1) for block in range(BLOCKS)])


def _free(robot: Robot, base: BaseReduction, fixed: Mapping[str, float]) -> tuple[Robot, Array | None]:
    """The robot with its fixed values, and the directions of base parameters that these leave; None where they leave all."""
    if not fixed:
        return robot, None
    names = robot.parameters.names
    directions = orthonormal_basis(base.K[:, [name not in fixed for name in names]].copy())
    return robot.with_parameters(dict(fixed)), directions if directions.shape[1] < base.n_base else None


def _fitted(robot: Robot, base: BaseReduction, A: Array, y: Array, free: Array | None = None) -> Robot:
    """The robot with the parameters nearest to its own that fit weighted rows over base parameters.

    Of rows over ``free`` directions of them alone, torque is what the robot's own parameters leave.
    """
    size = np.linalg.norm(A, axis=0)
    scale = np.where(size > 0.0, 1.0 / np.where(size > 0.0, size, 1.0), 0.0)
    H = scale[:, None] * (A.T @ A) * scale
    values, V = np.linalg.eigh(H)
    seen = values > SEEN * values[-1]
    left = scale * (A.T @ (y if free is not None else y - A @ base.base_values(robot.parameters)))
    step = scale * (V[:, seen] @ ((V[:, seen].T @ left) / values[seen]))
    step = step if free is None else free @ step
    change = base.K.T @ np.linalg.solve(base.K @ base.K.T, step)
    return robot.with_parameters(robot.parameters.with_values(robot.parameters.values + change))


def _filtered_rows_of(
    known: Sequence[RowSource], robot: Robot, samples: Sequence[Samples], row_filter: RowFilter | None
) -> Sequence[RowSource | None]:
    """For every set of samples the source that has kept its filtered rows, where ``known`` are just these; else None."""
    logs = [log for source in known for log in source.by_log()]
    same = len(logs) == len(samples) and all(
        isinstance(log, FilteredRows)
        and (log.kind, log.row_filter) == ("torque", row_filter)
        and getattr(log.source, "weights", None) is None
        and log.robot is robot
        and isinstance(log.samples[0], Samples)  # rows of a stream are not kept
        and all(_same_array(getattr(log.samples[0], name), getattr(one, name)) for name in _MOTION)
        for log, one in zip(logs, samples, strict=True)
    )
    return logs if same else [None] * len(samples)


_MOTION = (
    "position",
    "velocity",
    "acceleration",
    "torque",
    "load",
    "weight",
)  # the distance since the last reversal follows from them


def _same_array(a: Array | None, b: Array | None) -> bool:
    return a is b or (a is not None and b is not None and a.shape == b.shape and a.ctypes.data == b.ctypes.data)


def _weights(A: Array, y: Array) -> Array:
    """One over the residual of each joint, found together with the fit."""
    scale = np.sqrt((y**2).mean(axis=1))
    weights = 1.0 / np.maximum(scale, 1e-9 * max(float(scale.max()), 1e-300))
    for _ in range(ROUNDS):
        flat = (A * weights[:, None, None]).reshape(-1, A.shape[2])
        wy = (y * weights[:, None]).ravel()
        left = (wy - _explained(flat, wy)).reshape(y.shape) / weights[:, None]
        noise = np.maximum(np.sqrt((left**2).mean(axis=1)), 1e-6 * np.maximum(scale, 1e-300))
        weights = 1.0 / used_alone(noise, np.asarray(y.any(axis=1)))
    return np.asarray(weights)


def _explained(A: Array, y: Array) -> Array:
    """The part of ``y`` that columns, which are overwritten, explain."""
    if A.shape[1] <= LONG_CHAIN:
        basis = _orthonormal(A)
        return np.asarray(basis @ (basis.T @ y))
    size = np.linalg.norm(A, axis=0)
    A /= np.where(size > 0.0, size, 1.0)
    return np.asarray(A @ np.linalg.solve(A.T @ A + 1e-12 * np.eye(A.shape[1]), A.T @ y))


def _orthonormal(A: Array) -> Array:
    """An orthonormal basis of the columns, which are overwritten.

    That of a long chain comes from its normal matrix: of directions down to a millionth it is as good, and far cheaper.
    """
    if A.shape[1] <= LONG_CHAIN:
        return orthonormal_basis(A)
    size = np.linalg.norm(A, axis=0)
    A /= np.where(size > 0.0, size, 1.0)
    values, V = np.linalg.eigh(A.T @ A)
    kept = values > 1e-12 * values[-1]
    return np.asarray(A @ (V[:, kept] / np.sqrt(values[kept])))
