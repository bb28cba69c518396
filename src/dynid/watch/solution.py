"""Values, standard deviations and flags from the triangles: recursive least squares with flags, joints weighted by their noise.

What is asked for is a linear statement about the joints' rows, ``y_j - c_j = W_j M x``: base parameters of the robot, or ten parameters
of a load with the change of friction beside them and the model of a run subtracted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from dynid.arrays import Array, BoolArray, freeze
from dynid.estimation.methods.recursive import RecursiveLeastSquares
from dynid.estimation.methods.recursive_state import Columns, RecursiveEstimate, State, column_squares, sizes_of_squares
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.channels import Channel, torque_channels
from dynid.regression.torque_rows import typical_torque_rows
from dynid.robot.frames import Frame
from dynid.robot.model import Robot
from dynid.run.load_rows import load_parameters
from dynid.watch.triangles import JointTriangles

SETTLED, MOST_ROUNDS = 1e-9, 20
"""Weights are found again until they change by less than this, or so many times."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What is known now.

    Args:
        names: of the values.
        values: initial ones where the flag is not 1.
        sigma: standard deviations, infinite where the flag is not 1.
        flags: 1 identified, 0 not excited, -1 linearly dependent.
        clipped: whether a value was moved into its bounds.
        residual: root mean square torque that the values leave in the rows of each joint, N m or N.
        torque: root mean square torque of these rows.
    """

    names: tuple[str, ...]
    values: Array
    sigma: Array
    flags: Array
    clipped: Array
    residual: Array
    torque: Array


@dataclass(frozen=True, eq=False)
class RowNoise:
    """How uncertain one row is where neighbouring rows share their noise.

    Args:
        rows_as_one: rows that count as one where torque noise is white, by the filter of the rows.
        learned: standard deviation of a row that counts for itself, by joint, as blocks of time have shown it; NaN where not known.
    """

    rows_as_one: float
    learned: Array

    def of(self, norms: Array, n_times: float, n_values: float) -> Array:
        """Standard deviation that one row counts with, by joint; residual norms over so many times left so many values free."""
        effective = n_times / self.rows_as_one
        freedom = max(effective - n_values, 1.0)
        own = norms / np.sqrt(n_times) * np.sqrt(self.rows_as_one * effective / freedom)
        return np.asarray(np.fmax(own, self.learned))


class Question:
    """What is asked of the triangles.

    Args:
        channels: of the rows.
        method: thresholds and bounds.
        columns: what is identified.
        maps: for every channel, the matrix from its columns to the identified ones.
        known: for every channel, the values of its columns that are subtracted first; None for none.
        sizes: size of every identified column where it is excited, for unit weights.
    """

    def __init__(
        self,
        channels: Sequence[Channel],
        method: RecursiveLeastSquares,
        columns: Columns,
        maps: Sequence[Array],
        known: Sequence[Array] | None,
        typical: tuple[Array, ...],
    ) -> None:
        self.names = columns.names
        self._method, self._columns, self._maps, self._known = method, columns, tuple(maps), known
        self._squares = column_squares(columns, typical)
        self._n = len(channels)

    def solve(
        self, found: JointTriangles, weights: Array, identified: BoolArray | None, *, weighted: bool, noise: RowNoise
    ) -> tuple[Answer, Array]:
        """The answer, and the weights that the next one starts from.

        ``identified`` are the columns that the last answer identified, with which weights are found; None to find that out first.
        """
        if found.empty:
            return self._nothing(), weights
        blocks = [self._stated(j, R) for j, R in enumerate(found.R)]
        moments = np.array([block.T @ block for block in blocks])
        if weighted:
            weights = self._settled(blocks, moments, weights, identified, found.n_times)
        estimate = self._state(blocks, weights, found.n_times).solve()
        norms = self._norms(blocks, estimate.values)
        if weighted:  # the last round by the triangles themselves
            weights = self._weights(blocks, norms, found.n_times)
        return self._answer(blocks, moments, estimate, norms, found.n_times, noise), weights

    def _settled(
        self, blocks: Sequence[Array], moments: Array, weights: Array, identified: BoolArray | None, n_times: float
    ) -> Array:
        """Weights at which residuals and weights agree; the rounds work on moments, quick and exact enough for weights."""
        kept = self._state(blocks, weights, n_times).solve().flags == 1 if identified is None else identified
        values = np.array(self._columns.initial)
        if not kept.any():
            return weights
        for _ in range(MOST_ROUNDS):
            total = np.tensordot(weights**2, moments, axes=1)
            rest = total[:-1, -1] - total[:-1, :-1][:, ~kept] @ values[~kept]
            scale = 1.0 / np.sqrt(np.diag(total)[:-1][kept])
            factor, failed = dpotrf(total[:-1, :-1][np.ix_(kept, kept)] * np.outer(scale, scale))
            if failed:
                break  # too ill-conditioned for moments: the weights so far will do, and the next report goes on from them
            values[kept] = dpotrs(factor, rest[kept] * scale)[0] * scale
            new = self._weights(blocks, self._norms(blocks, values), n_times)
            change = float(np.abs(np.log(new / weights)).max())
            weights = new
            if change < SETTLED:
                break
        return weights

    def _weights(self, blocks: Sequence[Array], norms: Array, n_times: float) -> Array:
        floor = 1e-10 * max(float(max(np.linalg.norm(block[:, -1]) for block in blocks)), 1e-300)
        degrees = max(n_times - len(self.names) / self._n, 1.0)
        new = 1.0 / np.maximum(norms / np.sqrt(degrees), floor)
        return np.asarray(new / np.exp(np.log(new).mean()))

    def _nothing(self) -> Answer:
        """What is known before the first row."""
        n, zero = len(self.names), freeze(np.zeros(self._n))
        none = freeze(np.zeros(n), np.int8), freeze(np.zeros(n), np.bool_)
        return Answer(self.names, self._columns.initial, freeze(np.full(n, np.inf)), *none, zero, zero)

    def _stated(self, j: int, R: Array) -> Array:
        """The triangle of a channel over the identified columns, less what is known."""
        W = R[:, :-1]
        y = R[:, -1] if self._known is None else R[:, -1] - W @ self._known[j]
        return np.column_stack([W @ self._maps[j], y])

    def _state(self, blocks: Sequence[Array], weights: Array, n_times: float) -> State:
        from dynid.estimation.methods.recursive_kernel import fold_rows

        state = State(self._method, self._columns, self._sizes(weights))
        buffer = np.empty(state.R.shape[0])
        for block, weight in zip(blocks, weights, strict=True):
            fold_rows(state.R, np.ascontiguousarray(weight * block), buffer)
        state.n_samples, state.n_rows = n_times, n_times * self._n  # type: ignore[assignment]
        return state

    def _sizes(self, weights: Array) -> Array:
        return sizes_of_squares(self._method, (weights[:, None] ** 2 * self._squares).sum(axis=0))

    def _norms(self, blocks: Sequence[Array], values: Array) -> Array:
        return np.array([np.linalg.norm(block[:, -1] - block[:, :-1] @ values) for block in blocks])

    def _answer(
        self,
        blocks: Sequence[Array],
        moments: Array,
        estimate: RecursiveEstimate,
        norms: Array,
        n_times: float,
        noise: RowNoise,
    ) -> Answer:
        kept = np.flatnonzero(estimate.flags == 1)
        sigma = np.full(len(self.names), np.inf)
        spread = noise.of(norms, n_times, len(kept) / self._n)
        if len(kept) and (spread > 0.0).all():
            sigma[kept] = np.sqrt(np.diag(_inverse(np.tensordot(spread**-2.0, moments, axes=1)[np.ix_(kept, kept)])))
        elif len(kept):
            sigma[kept] = 0.0
        count = max(n_times, 1e-300)
        return Answer(
            self.names,
            freeze(estimate.values),
            freeze(sigma),
            freeze(estimate.flags, np.int8),
            freeze(estimate.clipped, np.bool_),
            freeze(norms / np.sqrt(count)),
            freeze([np.linalg.norm(block[:, -1]) / np.sqrt(count) for block in blocks]),
        )

    def covariance(self, found: JointTriangles, answer: Answer, noise: RowNoise) -> Array:
        """Covariance of all values; zero rows and columns where the flag is not 1."""
        blocks = [self._stated(j, R) for j, R in enumerate(found.R)]
        kept = np.flatnonzero(answer.flags == 1)
        norms = answer.residual * np.sqrt(found.n_times)
        spread = np.maximum(noise.of(norms, found.n_times, len(kept) / self._n), 1e-12)
        full = np.zeros((len(self.names), len(self.names)))
        if len(kept):
            total = sum((block.T @ block / s**2 for s, block in zip(spread, blocks, strict=True)), np.zeros(1))
            full[np.ix_(kept, kept)] = _inverse(np.asarray(total)[np.ix_(kept, kept)])
        return full


def _inverse(information: Array) -> Array:
    """Inverse of an information matrix, columns brought to one size first; infinite where it is singular."""
    scale = 1.0 / np.sqrt(np.diag(information))
    factor, failed = dpotrf(information * np.outer(scale, scale))
    if failed:
        return np.full_like(information, np.inf)
    return np.asarray(dpotrs(factor, np.eye(len(scale)))[0] * np.outer(scale, scale))


def ask_base(robot: Robot, bounds: Mapping[str, tuple[float, float]]) -> Question:
    """Base parameters of a robot, inside bounds on its parameters."""
    base = reduce_to_base(robot)
    method = RecursiveLeastSquares(bounds=dict(bounds))
    columns = Columns.of(method, robot.parameters, base)
    channels = torque_channels(robot)
    maps = [columns.select(channel.expansion) for channel in channels]
    return Question(channels, method, columns, maps, None, typical_torque_rows(robot))


def ask_load(robot: Robot, place: Frame) -> Question:
    """A load on a frame of a robot whose parameters are those of a run without it."""
    parameters = load_parameters(robot, place)
    friction = [i for i, column in enumerate(robot.parameters.columns) if column.kind == "friction"]
    full = np.zeros((len(robot.parameters), len(parameters)))
    full[10 * place.body : 10 * place.body + 10, :10] = place.into_body
    full[friction, 10 + np.arange(len(friction))] = 1.0
    base = BaseReduction.from_matrix(np.eye(len(parameters)), parameters.names)
    method = RecursiveLeastSquares(tolerance=1e-4)
    columns = Columns.of(method, parameters, base)
    channels = torque_channels(robot)
    maps = [columns.select(channel.expansion @ full) for channel in channels]
    known = [channel.expansion @ robot.parameters.values for channel in channels]
    typical = tuple(W @ full for W in typical_torque_rows(robot))
    return Question(channels, method, columns, maps, known, typical)
