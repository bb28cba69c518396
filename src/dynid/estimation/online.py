"""The online estimator: least squares with flags while rows come in, of which none is kept.

Rows ``y_j = W_j M_j x + W_j c_j`` of some channels (joints, axes of a sensor) come in. Kept of them is the triangle ``R`` of ``[W M y]``,
``R^T R = [K b; b^T .]``, over all channels together, or one triangle of ``[W_j y_j]`` for each channel, from which weights of the channels
are found again with every answer. Columns are taken in order: each is identified (flag 1), not excited (0) or linearly dependent on those
before it (-1). With the identified set ``S``

    x_S = K_SS^-1 (b_S - K_SS' x0_S'),    x_S' = x0_S'

and the standard deviation of ``x_S`` follows from ``K_SS`` and from how many rows count as one (:class:`RowNoise`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from dynid.arrays import Array, BoolArray, IntArray, freeze
from dynid.errors import InputError
from dynid.estimation.linear import DATA_TOLERANCE
from dynid.estimation.online_estimate import Columns, Flags, OnlineEstimate, RowNoise, origins_of_flags
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.channels import torque_channels
from dynid.regression.row_source import Chunk
from dynid.regression.torque_rows import typical_torque_rows
from dynid.regression.wrench_rows import WrenchRows
from dynid.signals.samples import WrenchSamples

NOISE_MARGIN = 3.0
"""A column must exceed the error that motion noise causes in it by this factor."""
ROUND_OFF = 1e-9
"""A column below this fraction of the largest one is zero but for rounding."""
SETTLED, MOST_ROUNDS = 1e-9, 20
"""Weights are found again until they change by less than this, or so many times."""
ROWS_AS_ONE = 10.0
"""Neighbouring rows share their noise: so many count as one in the standard deviation of a body."""
WINDOW_PARTS = 10
"""Triangles that a window of time is kept as; it moves on by one of them at a time."""


class Triangles:
    """``R^T R = [W y]^T [W y]`` of some channels, each over columns of its own, and how many times of rows went in."""

    def __init__(self, widths: Sequence[int], flat: Array | None = None, n_times: float = 0.0) -> None:
        self.widths = tuple(widths)
        self._sizes = np.array([width + 1 for width in widths], dtype=np.int64)
        self._flat, ends = np.zeros(int((self._sizes**2).sum())) if flat is None else flat, np.cumsum(self._sizes**2)
        self.R = [self._flat[end - n * n : end].reshape(n, n) for n, end in zip(self._sizes, ends, strict=True)]
        self.n_times = n_times
        self._buffer = np.empty((2, int(self._sizes.max(initial=1))))

    def add(self, rows: Array, fade: float = 1.0) -> None:
        """Fold rows, those of all channels side by side: one time after the other, so that digits depend on the rows alone and not on
        how they arrived. What was there before has the weight ``fade`` for each time."""
        from dynid.estimation.online_kernels import fold_times

        fold_times(self._flat, self._sizes, rows, np.sqrt(fade), self._buffer)
        for _ in range(len(rows)):
            self.n_times = self.n_times * fade + 1.0

    def merge(self, other: Triangles) -> None:
        """Fold what other triangles hold."""
        from dynid.estimation.online_kernels import fold_rows

        for R, theirs in zip(self.R, other.R, strict=True):
            fold_rows(R, theirs.copy(), self._buffer[0])
        self.n_times += other.n_times

    def copy(self) -> Triangles:
        """The same, which later rows do not change."""
        return Triangles(self.widths, self._flat.copy(), self.n_times)

    def state(self) -> dict[str, Any]:
        """Numbers to go on with."""
        return {"n": self.n_times, "R": self._flat.copy()}

    @classmethod
    def restored(cls, widths: Sequence[int], state: Mapping[str, Any]) -> Triangles:
        """Triangles that go on from these numbers."""
        if not state["n"] >= 0.0:
            raise ValueError(f"{state['n']} times of rows are in a triangle")
        return cls(widths, np.array(state["R"]), float(state["n"]))


class OnlineEstimator:
    """Feed it rows as they come; it answers with values, flags and standard deviations so far.

    Args:
        columns: what is identified.
        maps: for every channel, the matrix from its own columns to the identified ones.
        weights: of the rows of each channel; None for one.
        typical: rows of every channel over all parameters where all are excited, which thresholds are relative to; None to take for
            not excited only what is zero.
        threshold: root mean square per sample that a column, and its independent part, must exceed, relative to its typical one.
        tolerance: share of its own length that a column's independent part must exceed.
        by_channel: keep one triangle for each channel.
        settle: find the weights of channels from their residuals with every answer; needs ``by_channel``.
        known: for every channel, values of its own columns that are subtracted first; needs ``by_channel``.
        window_s: count the rows of so many seconds only; needs ``by_channel``.
        forget_s: time over which the weight of a row falls by e; needs ``by_channel``.
        row_period_s: time from row to row, for these two.

    Examples:
        >>> import numpy as np
        >>> from dynid.estimation.online_estimate import Columns
        >>> from dynid.model.parameters import Parameters, inertial_columns
        >>> columns = Columns.of(Parameters(inertial_columns(1, "load"), np.zeros(10)))
        >>> online = OnlineEstimator(columns, [columns.select(np.eye(10))])
        >>> W = np.random.default_rng(0).normal(size=(50, 10))
        >>> online.feed(Chunk([np.column_stack([W, W @ np.arange(1.0, 11.0)])]))
        >>> round(online.answer()["m1"], 6), len(online.answer(RowNoise(1.0)).sigma)
        (1.0, 10)
    """

    def __init__(
        self,
        columns: Columns,
        maps: Sequence[Array],
        weights: Array | None = None,
        *,
        typical: Sequence[Array] | None = None,
        threshold: float = 1e-3,
        tolerance: float = DATA_TOLERANCE,
        by_channel: bool = False,
        settle: bool = False,
        known: Sequence[Array] | None = None,
        window_s: float | None = None,
        forget_s: float | None = None,
        row_period_s: float = 1.0,
    ) -> None:
        self.columns, self._maps, self._known = columns, tuple(maps), known
        self._threshold, self._tolerance = threshold, tolerance
        self._by_channel, self._settle = by_channel, settle
        self._n_channels = len(self._maps)
        self.weights = np.ones(self._n_channels) if weights is None else np.array(weights, dtype=np.float64)
        if not (np.isfinite(self.weights) & (self.weights > 0.0)).all():
            raise InputError(f"weights of an online estimate are {self.weights.tolist()}, expected positive numbers")
        self._squares = None if typical is None else np.array([(columns.select(W) ** 2).mean(axis=0) for W in typical])
        self.noise_power: Array | None = None
        """Squares that motion noise caused in each column so far; None where it is not asked for."""
        self._identified: BoolArray | None = None
        self._entries = None if by_channel else _entries(self._maps)
        n = len(columns.names)
        self._bounded = bool(np.isfinite(columns.lower).any() or np.isfinite(columns.upper).any())
        self._T, self._buffer = np.empty((n + 1, n + 1)), np.empty(n + 1)
        self._free = freeze(np.zeros(n, dtype=bool), dtype=np.bool_)
        self._fixed_sizes = None if settle else self._sizes(self.weights)
        # what rows change
        self._n_rows, self._time_s = 0.0, float("nan")
        self._now = Triangles([len(one) for one in self._maps] if by_channel else [n])
        self._parts: list[Triangles] = []
        self._fade = 1.0 if forget_s is None else float(np.exp(-row_period_s / forget_s))
        span = np.inf if window_s is None else window_s / (WINDOW_PARTS * row_period_s)
        self._part_rows = np.inf if np.isinf(span) else max(1, round(span))

    @property
    def n_samples(self) -> int:
        """Times of rows that count."""
        return round(self.triangles().n_times)

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns of each triangle."""
        return self._now.widths

    def feed(self, chunk: Chunk) -> None:
        """Count rows in."""
        if len(chunk.blocks) != self._n_channels:
            raise InputError(f"rows of {len(chunk.blocks)} channels were given, expected {self._n_channels}")
        if chunk.time is not None and len(chunk.time):
            self._time_s = float(chunk.time[-1])
        if not self._by_channel:
            self.fold(self.choose_columns(chunk.blocks), len(chunk))
        else:
            self.add(np.concatenate(chunk.blocks, axis=1))

    def add(self, rows: Array) -> None:
        """Count rows in, where each channel has a triangle: those of all channels side by side, one time a row."""
        while len(rows):
            if self._now.n_times >= self._part_rows:
                self._parts = [*self._parts, self._now][-(WINDOW_PARTS - 1) :]
                self._now = Triangles(self._now.widths)
            room = len(rows) if np.isinf(self._part_rows) else int(self._part_rows - self._now.n_times)
            self._now.add(rows[:room], self._fade)
            rows = rows[room:]

    def fold(self, rows: Array, n_samples: int, noise_power: Array | None = None) -> None:
        """Fold weighted rows ``[Y y]`` over the identified columns, of so many samples, into the one triangle; they are used up."""
        from dynid.estimation.online_kernels import fold_rows

        if noise_power is not None:
            self.noise_power = noise_power if self.noise_power is None else self.noise_power + noise_power
        self._now.n_times += n_samples
        self._n_rows += len(rows)
        fold_rows(self._now.R[0], rows, self._buffer)

    def choose_columns(self, blocks: Sequence[Array]) -> Array:
        """Weighted rows over the identified columns from the blocks of all channels, one channel after the other.

        An identified column is nearly always one of the channel's own or none, so the few entries are listed instead of multiplied as
        matrices: an update by one sample spends its time here.
        """
        from dynid.estimation.online_kernels import choose_columns

        assert self._entries is not None
        counts = np.array([block.shape for block in blocks])
        made = np.zeros((counts[:, 0].sum(), len(self.columns.names) + 1))
        flat = np.concatenate([block.T.ravel() for block in blocks])
        choose_columns(flat, counts, *self._entries, self.weights, made)
        return made

    def triangles(self) -> Triangles:
        """Those of all rows that count; a copy of them can be answered from while rows go on coming in. Do not change them."""
        if not self._parts:
            return self._now
        merged = Triangles(self._now.widths)
        for part in (*self._parts, self._now):
            merged.merge(part)
        return merged

    def answer(
        self, noise: RowNoise | None = None, triangles: Triangles | None = None, *, origins: bool = False
    ) -> OnlineEstimate:
        """What the rows so far say.

        Args:
            noise: of the rows, for standard deviations.
            triangles: answer from these, a copy of :meth:`triangles` at an earlier time; answers are to be asked for in the order of time,
                since each starts from the weights and the identified columns of the one before.
            origins: also say where each value comes from.
        """
        found = self.triangles() if triangles is None else triangles
        if self._by_channel:
            return self._answer_by_channel(found, noise or RowNoise(1.0))
        R, n_rows = found.R[0], max(self._n_rows, 1)
        values, flags, clipped, squares = self._solved(R, found.n_times, self._fixed_sizes)
        sigma = None if noise is None else self._sigma([R.T @ R], flags, noise, np.sqrt([squares]), n_rows)
        origin = origins_of_flags(R[:, :-1], flags) if origins else ()
        rms = float(np.sqrt(squares / n_rows))
        return OnlineEstimate(
            self.columns.names, values, flags, clipped, found.n_times, rms, sigma, None, None, origin, self._time_s
        )

    def _answer_by_channel(self, found: Triangles, noise: RowNoise) -> OnlineEstimate:
        names, n_times = self.columns.names, found.n_times
        if n_times == 0.0:
            n, zero = len(names), freeze(np.zeros(self._n_channels))
            flags = freeze(np.zeros(n), np.int8)
            return OnlineEstimate(
                names, self.columns.initial, flags, self._free, 0.0, 0.0, freeze(np.full(n, np.inf)), zero, zero
            )
        blocks = [self._stated(j, R) for j, R in enumerate(found.R)]
        moments = np.array([block.T @ block for block in blocks])
        if self._settle:
            self.weights = self._settled_weights(blocks, moments, n_times)
        values, flags, clipped, _ = self._solved(self._weighted(blocks, self.weights), n_times, self._sizes(self.weights))
        norms = self._norms(blocks, values)
        if self._settle:  # the last round by the triangles themselves
            self.weights = self._residual_weights(blocks, norms, n_times)
        self._identified = flags == 1
        residual = freeze(norms / np.sqrt(n_times))
        return OnlineEstimate(
            names,
            values,
            flags,
            clipped,
            n_times,
            float(np.sqrt((residual**2).mean())),
            self._sigma(moments, flags, noise, norms, n_times),
            residual,
            freeze([np.linalg.norm(block[:, -1]) / np.sqrt(n_times) for block in blocks]),
        )

    def covariance(self, found: OnlineEstimate, noise: RowNoise) -> Array:
        """Covariance of all values of the last answer; zero rows and columns where the flag is not 1."""
        triangles = self.triangles()
        moments = [block.T @ block for block in (self._stated(j, R) for j, R in enumerate(triangles.R))]
        kept = np.flatnonzero(found.flags == 1)
        norms = np.asarray(found.residual) * np.sqrt(triangles.n_times)
        spread = np.maximum(noise.of(norms, triangles.n_times, len(kept) / self._n_channels), 1e-12)
        full = np.zeros((len(found.names),) * 2)
        if len(kept):
            full[np.ix_(kept, kept)] = _inverse(np.tensordot(spread**-2.0, moments, axes=1)[np.ix_(kept, kept)])
        return full

    def _solved(self, R: Array, n_samples: float, sizes: Array | None) -> tuple[Array, Flags, BoolArray, float]:
        """Values inside their bounds, flags, which values were moved, and the squares that they left before that."""
        values, flags, squares = self._values_and_flags(R, n_samples, sizes)
        clipped = self._free
        if self._bounded:
            inside = np.clip(values, self.columns.lower, self.columns.upper)
            # a value that no data moved is the user's own
            inside = np.where(flags == 1, inside, values)
            values, clipped = inside, freeze(inside != values, dtype=np.bool_)
        values.flags.writeable = False
        flags.flags.writeable = False
        return values, flags, clipped, squares

    def _values_and_flags(self, R: Array, n_samples: float, sizes: Array | None) -> tuple[Array, Flags, float]:
        from dynid.estimation.online_kernels import solve_identified

        n = len(self.columns.names)
        values, flags = np.empty(n), np.empty(n, dtype=np.int8)
        if sizes is None:  # nothing to compare with: only exact zeros are not excited
            own = (R[:-1, :-1] ** 2).sum(axis=0)
            bound = np.full(n, 1e-24 * own.max(initial=0.0))
        else:
            bound = n_samples * (self._threshold * sizes) ** 2
        if self.noise_power is not None:
            np.maximum(bound, NOISE_MARGIN**2 * self.noise_power, out=bound)
        start = self.columns.initial
        squares = solve_identified(R, start, bound, self._tolerance, self._T, self._buffer, flags, values)
        return values, flags, float(squares)

    def _sizes(self, weights: Array) -> Array | None:
        """Root mean square of every column where it is excited; one of round-off has no size of its own."""
        if self._squares is None:
            return None
        scale = np.sqrt((weights[:, None] ** 2 * self._squares).sum(axis=0))
        return np.asarray(np.maximum(scale, ROUND_OFF * scale.max(initial=0.0) / max(self._threshold, ROUND_OFF)))

    def _sigma(self, moments: Sequence[Array] | Array, flags: Flags, noise: RowNoise, norms: Array, n_rows: float) -> Array:
        """Standard deviations from the moments ``[K b; b^T .]`` and residual norms of some groups of rows, each with noise of its own."""
        kept = np.flatnonzero(flags == 1)
        sigma = np.full(len(flags), np.inf)
        spread = noise.of(norms, n_rows, len(kept) / len(moments))
        if len(kept) and (spread > 0.0).all():
            sigma[kept] = np.sqrt(np.diag(_inverse(np.tensordot(spread**-2.0, moments, axes=1)[np.ix_(kept, kept)])))
        elif len(kept):
            sigma[kept] = 0.0
        return freeze(sigma)

    def _stated(self, j: int, R: Array) -> Array:
        """The triangle of a channel over the identified columns, less what is known."""
        W = R[:, :-1]
        y = R[:, -1] if self._known is None else R[:, -1] - W @ self._known[j]
        return np.column_stack([W @ self._maps[j], y])

    def _weighted(self, blocks: Sequence[Array], weights: Array) -> Array:
        """One triangle of all blocks, each times its weight."""
        from dynid.estimation.online_kernels import fold_rows

        R = np.zeros_like(self._T)
        for block, weight in zip(blocks, weights, strict=True):
            fold_rows(R, np.ascontiguousarray(weight * block), self._buffer)
        return R

    def _settled_weights(self, blocks: Sequence[Array], moments: Array, n_times: float) -> Array:
        """Weights at which residuals and weights agree; the rounds work on moments, quick and exact enough for weights."""
        weights, kept = self.weights, self._identified
        if kept is None:
            kept = self._solved(self._weighted(blocks, weights), n_times, self._sizes(weights))[1] == 1
        values = np.array(self.columns.initial)
        if not kept.any():
            return weights
        for _ in range(MOST_ROUNDS):
            total = np.tensordot(weights**2, moments, axes=1)
            rest = total[:-1, -1] - total[:-1, :-1][:, ~kept] @ values[~kept]
            scale = 1.0 / np.sqrt(np.diag(total)[:-1][kept])
            factor, failed = dpotrf(total[:-1, :-1][np.ix_(kept, kept)] * np.outer(scale, scale))
            if failed:
                break  # too ill-conditioned for moments: the weights so far will do, and the next answer goes on from them
            values[kept] = dpotrs(factor, rest[kept] * scale)[0] * scale
            new = self._residual_weights(blocks, self._norms(blocks, values), n_times)
            change = float(np.abs(np.log(new / weights)).max())
            weights = new
            if change < SETTLED:
                break
        return weights

    def _residual_weights(self, blocks: Sequence[Array], norms: Array, n_times: float) -> Array:
        """One over the noise of each channel by its residual; their geometric mean is one."""
        floor = 1e-10 * max(float(max(np.linalg.norm(block[:, -1]) for block in blocks)), 1e-300)
        degrees = max(n_times - len(self.columns.names) / self._n_channels, 1.0)
        return relative_weights(1.0 / np.maximum(norms / np.sqrt(degrees), floor))

    @staticmethod
    def _norms(blocks: Sequence[Array], values: Array) -> Array:
        return np.array([np.linalg.norm(block[:, -1] - block[:, :-1] @ values) for block in blocks])

    def state(self) -> dict[str, Any]:
        """What rows have changed, to go on with."""
        return {"parts": [part.state() for part in (*self._parts, self._now)]}

    def answer_state(self) -> dict[str, Any]:
        """What answers have changed, to go on with: weights and identified columns, which the next answer starts from."""
        return {"weights": self.weights.copy(), "identified": self._identified}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what :meth:`state` and :meth:`answer_state` gave, both in one."""
        *self._parts, self._now = (Triangles.restored(self._now.widths, part) for part in state["parts"])
        self.weights, identified = np.array(state["weights"]), state["identified"]
        self._identified = None if identified is None else np.array(identified, np.bool_).reshape(len(self.columns.names))


def robot_estimator(
    robot: Robot, columns: Columns, full: Array | None = None, *, subtracted: bool = False, **options: Any
) -> OnlineEstimator:
    """An estimator of joint torque rows of a robot.

    Args:
        robot: the robot.
        columns: what is identified.
        full: the matrix from the parameters of these columns to those of the robot; None where they are the same.
        subtracted: identify what torque has more than the robot's own parameters explain.
        options: of the estimator.
    """
    channels, typical = torque_channels(robot), typical_torque_rows(robot)
    expansions = [channel.expansion if full is None else channel.expansion @ full for channel in channels]
    return OnlineEstimator(
        columns,
        [columns.select(expansion) for expansion in expansions],
        typical=typical if full is None else [W @ full for W in typical],
        known=[channel.expansion @ robot.parameters.values for channel in channels] if subtracted else None,
        **options,
    )


def online_body(parameters: Parameters, noise: Array) -> OnlineEstimator:
    """Ten parameters of a body while rows over all ``parameters`` come in, those of the body first.

    Args:
        parameters: the columns of the rows.
        noise: standard deviation of each channel's rows.
    """
    columns = Columns.of(parameters)
    maps = [columns.select(np.eye(len(parameters)))] * len(noise)
    return OnlineEstimator(columns, maps, 1.0 / np.asarray(noise), tolerance=1e-4)


def body_so_far(online: OnlineEstimator, parameters: Parameters) -> OnlineEstimate:
    """What is known of the body by now, in the order of its parameters; neighbouring rows share their noise."""
    return online.answer(RowNoise(ROWS_AS_ONE), origins=True).ordered(parameters.names)


def relative_weights(weights: Array) -> Array:
    """Weights whose geometric mean is one, which changes no answer."""
    return np.asarray(weights / np.exp(np.log(weights).mean()))


def _entries(maps: Sequence[Array]) -> tuple[IntArray, IntArray, IntArray, Array]:
    """Where the entries of each channel's map begin, and their rows, columns and values."""
    places = [np.nonzero(one) for one in maps]
    return (
        freeze(np.cumsum([0, *(len(source) for source, _ in places)]), np.int64),
        freeze(np.concatenate([source for source, _ in places]), np.int64),
        freeze(np.concatenate([target for _, target in places]), np.int64),
        freeze(np.concatenate([one[place] for one, place in zip(maps, places, strict=True)])),
    )


def _inverse(information: Array) -> Array:
    """Inverse of an information matrix, columns brought to one size first; infinite where it is singular."""
    scale = 1.0 / np.sqrt(np.diag(information))
    factor, failed = dpotrf(information * np.outer(scale, scale))
    if failed:
        return np.full_like(information, np.inf)
    return np.asarray(dpotrs(factor, np.eye(len(scale)))[0] * np.outer(scale, scale))


SENSOR_NOISE = (0.5, 0.5, 0.5, 0.03, 0.03, 0.03)
"""N and N m: how force and moment are weighed against one another before anything is known of their noise."""


def online_sensor_body(samples: WrenchSamples, block_s: float = 1.0) -> Iterator[OnlineEstimate]:
    """The body on a sensor block by block, as if the samples came in now.

    Args:
        samples: with the motion of the sensor.
        block_s: length of a block, s.
    """
    if not (np.isfinite(block_s) and block_s > 0.0):
        raise InputError(f"a block of {block_s:g} s was asked for, expected a positive length")
    parameters = WrenchRows(samples).parameters
    online = online_body(parameters, np.array(SENSOR_NOISE))
    rows = max(1, round(block_s * samples.rate_hz))
    for start in range(0, len(samples), rows):
        for chunk in WrenchRows(samples[start : start + rows]).passes():
            online.feed(chunk)
        yield body_so_far(online, parameters)
