"""What recursive least squares keeps between blocks: its columns, the triangle of all rows so far, the solution from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array, BoolArray, IntArray, freeze
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.result import Origin
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.channels import Channel

Form: TypeAlias = Literal["repaired", "literal"]
Over: TypeAlias = Literal["base", "standard"]
Flags: TypeAlias = NDArray[np.int8]
"""1 identified, 0 not excited, -1 linearly dependent."""

NOISE_MARGIN = 3.0
"""A column must exceed the error that motion noise causes in it by this factor."""
ROUND_OFF = 1e-9
"""A column below this fraction of the largest one is zero but for rounding."""
_MIXED = 1e-3


class RecursiveOptions(Protocol):
    """The options that the state depends on."""

    @property
    def threshold(self) -> float: ...
    @property
    def tolerance(self) -> float: ...
    @property
    def bounds(self) -> Mapping[str, tuple[float, float]]: ...
    @property
    def over(self) -> Over: ...
    @property
    def form(self) -> Form: ...
    @property
    def motion_noise(self) -> object | None: ...


@dataclass(frozen=True, eq=False)
class RecursiveEstimate:
    """What is known after a block."""

    names: tuple[str, ...]
    values: Array
    """Initial values where the flag is not 1; inside the bounds."""
    flags: Flags
    clipped: BoolArray
    n_samples: int
    residual_rms: float
    """Root mean square torque that the unclipped values leave, all joints together; over its noise where that is given."""

    @property
    def identified(self) -> tuple[str, ...]:
        return tuple(name for name, flag in zip(self.names, self.flags, strict=True) if flag == 1)

    def __getitem__(self, name: str) -> float:
        try:
            return float(self.values[self.names.index(name)])
        except ValueError:
            raise UnknownNameError("parameter", name, self.names) from None


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns to identify, in the order that flags depend on."""

    names: tuple[str, ...]
    parameter: IntArray
    """Regressor column of each, where each is one."""
    lift: Array | None
    """``Y lift`` for a grouping that is no choice of columns."""
    initial: Array
    lower: Array
    upper: Array

    @classmethod
    def of(cls, method: RecursiveOptions, prior: Parameters, base: BaseReduction) -> Columns:
        if base.parameter_names != prior.names:
            raise InputError(f"base reduction is over {base.n_parameters} parameters, the data over {len(prior)}")
        low, high = np.full(len(prior), -np.inf), np.full(len(prior), np.inf)
        for name, (lowest, highest) in method.bounds.items():
            low[prior.index(name)], high[prior.index(name)] = lowest, highest
        if method.over == "standard":
            order = prior.grouping()
            names = tuple(prior.names[i] for i in order)
            return cls(names, order, None, freeze(prior.values[order]), low[order], high[order])
        lower, upper = interval_product(base.K, low, high)
        initial = freeze(base.base_values(prior))
        if base.independent is None:
            return cls(base.names, freeze(range(0), dtype=np.int64), base.lift, initial, lower, upper)
        return cls(base.names, base.independent, None, initial, lower, upper)

    def chosen_from(self, channels: Sequence[Channel], weights: Array) -> ChosenRows:
        """How rows over these columns are made from the blocks of some channels, each times its weight."""
        return ChosenRows.of([self.select(channel.expansion) for channel in channels], weights, len(self.names))

    def select(self, W: Array) -> Array:
        """These columns of rows over all parameters."""
        return W[:, self.parameter] if self.lift is None else W @ self.lift


@dataclass(frozen=True, eq=False)
class ChosenRows:
    """Rows ``[Y tau]`` over chosen columns from the blocks ``[W tau]`` of channels over their own.

    A chosen column is nearly always one of the channel's own or none, so the few entries are listed instead of multiplied
    as matrices: one update of an online estimate spends its time here.
    """

    width: int
    weights: Array
    first_entry: IntArray
    """Where the entries of each channel begin, and where the last ones end."""
    source: IntArray
    target: IntArray
    factor: Array

    @classmethod
    def of(cls, maps: Sequence[Array], weights: Array, n_columns: int) -> ChosenRows:
        """For every channel, its own columns times its map are the chosen ones."""
        entries = [np.nonzero(one) for one in maps]
        counts = [len(source) for source, _ in entries]
        return cls(
            n_columns + 1,
            freeze(weights),
            freeze(np.cumsum([0, *counts]), np.int64),
            freeze(np.concatenate([source for source, _ in entries]), np.int64),
            freeze(np.concatenate([target for _, target in entries]), np.int64),
            freeze(np.concatenate([one[entry] for one, entry in zip(maps, entries, strict=True)])),
        )

    def rows(self, blocks: Sequence[Array]) -> Array:
        """The rows of all channels, one channel after the other."""
        from dynid.estimation.methods.recursive_kernel import choose_columns

        counts = np.array([block.shape for block in blocks])
        if len(counts) != len(self.weights):
            raise InputError(f"rows of {len(counts)} channels were given, expected {len(self.weights)}")
        made = np.zeros((counts[:, 0].sum(), self.width))
        flat = np.concatenate([block.T.ravel() for block in blocks])
        choose_columns(flat, counts, self.first_entry, self.source, self.target, self.factor, self.weights, made)
        return made


def interval_product(K: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Interval of ``K x`` for ``x`` in a box: each term at the end that its sign asks for."""
    positive, negative = np.maximum(K, 0.0), np.minimum(K, 0.0)

    def total(up: Array, down: Array) -> Array:
        with np.errstate(invalid="ignore"):
            terms = np.where(positive != 0.0, positive * up, 0.0) + np.where(negative != 0.0, negative * down, 0.0)
        return np.asarray(terms.sum(axis=1))

    return total(low, high), total(high, low)


def column_sizes(
    method: RecursiveOptions, columns: Columns, typical: tuple[Array, ...] | None, weights: Array
) -> Array | None:
    """Root mean square of every column per sample where it is excited; None where the source cannot tell."""
    if typical is None or method.form == "literal":
        return None
    squares = column_squares(columns, typical)
    return sizes_of_squares(method, (weights[:, None] ** 2 * squares).sum(axis=0))


def column_squares(columns: Columns, typical: tuple[Array, ...]) -> Array:
    """Mean square of every column in the rows of each channel, where they are excited."""
    return np.array([(columns.select(W) ** 2).mean(axis=0) for W in typical])


def sizes_of_squares(method: RecursiveOptions, squares: Array) -> Array:
    """Root mean square of every column; one of round-off has no size of its own."""
    scale = np.sqrt(squares)
    return np.asarray(np.maximum(scale, ROUND_OFF * scale.max(initial=0.0) / max(method.threshold, ROUND_OFF)))


def origins_of_flags(A: Array, flags: Flags) -> tuple[Origin, ...]:
    """Where values come from: an identified one is mixed if it also carries a dependent one."""
    kept = flags == 1
    mixed = np.zeros(len(flags), dtype=bool)
    dependent = flags == -1
    if dependent.any() and kept.any():
        norms = np.linalg.norm(A, axis=0)
        unit = A / np.where(norms > 0.0, norms, 1.0)
        coefficients = np.linalg.lstsq(unit[:, kept], unit[:, dependent], rcond=None)[0]
        mixed[kept] = np.abs(coefficients).max(axis=1) > _MIXED
    return tuple("prior" if not k else ("mixed" if m else "data") for k, m in zip(kept, mixed, strict=True))


def notes_on_flags(columns: Columns, found: RecursiveEstimate) -> tuple[str, ...]:
    """What flags and bounds mean for the values, in words."""
    notes = []
    for flag, text in ((0, "not excited, initial value kept"), (-1, "linearly dependent, initial value kept")):
        names = [name for name, own in zip(columns.names, found.flags, strict=True) if own == flag]
        if names:
            notes.append(f"{text}: {', '.join(names)}")
    clipped = [name for name, out in zip(columns.names, found.clipped, strict=True) if out]
    if clipped:
        notes.append(f"moved into their bounds: {', '.join(clipped)}")
    return tuple(notes)


class State:
    """The triangle of all rows so far and the solution from it."""

    def __init__(self, method: RecursiveOptions, columns: Columns, scale: Array | None) -> None:
        n = len(columns.names)
        self.R = np.zeros((n + 1, n + 1))
        self.n_samples = self.n_rows = 0
        self.noise_power = np.zeros(n)
        self._method, self._columns, self._scale = method, columns, scale
        self._T, self._buffer = np.empty_like(self.R), np.empty(n + 1)
        self._literal = _LiteralState(method, columns) if method.form == "literal" else None
        self._bounded = bool(method.bounds)
        self._free = freeze(np.zeros(n, dtype=bool), dtype=np.bool_)

    def add(self, rows: Array, n_samples: int, noise_power: Array | None) -> None:
        """Fold a block ``[Y tau]`` of so many samples; the rows are used up."""
        from dynid.estimation.methods.recursive_kernel import fold_rows

        self.n_samples += n_samples
        self.n_rows += len(rows)
        if noise_power is not None:
            self.noise_power += noise_power
        if self._literal is not None:
            self._literal.add(rows)
        else:
            fold_rows(self.R, rows, self._buffer)

    def solve(self) -> RecursiveEstimate:
        if self._literal is not None:
            values, flags, residual = self._literal.theta.copy(), self._literal.flags.copy(), float("nan")
        else:
            values, flags, residual = self._solve()
        clipped = self._free
        if self._bounded:
            inside = np.clip(values, self._columns.lower, self._columns.upper)
            # a value that no data moved is the user's own
            inside = np.where(flags == 1, inside, values)
            values, clipped = inside, freeze(inside != values, dtype=np.bool_)
        values.flags.writeable = False
        flags.flags.writeable = False
        return RecursiveEstimate(self._columns.names, values, flags, clipped, self.n_samples, residual)

    def _solve(self) -> tuple[Array, Flags, float]:
        from dynid.estimation.methods.recursive_kernel import solve_identified

        n = len(self._columns.names)
        values, flags = np.empty(n), np.empty(n, dtype=np.int8)
        method, start = self._method, self._columns.initial
        squares = solve_identified(self.R, start, self._bound(), method.tolerance, self._T, self._buffer, flags, values)
        return values, flags, float(np.sqrt(squares / max(self.n_rows, 1)))

    def _bound(self) -> Array:
        """Square that a column's independent part must exceed over all samples so far."""
        if self._scale is None:  # no robot to ask: only exact zeros are not excited
            own = (self.R[:-1, :-1] ** 2).sum(axis=0)
            bound = np.full(len(own), 1e-24 * own.max(initial=0.0))
        else:
            bound = self.n_samples * (self._method.threshold * self._scale) ** 2
        if self._method.motion_noise is not None:
            np.maximum(bound, NOISE_MARGIN**2 * self.noise_power, out=bound)
        return np.asarray(bound)


class _LiteralState:
    """Fig. 1 as printed, but for the torque of the new block: ``theta += K^-1 Y^T (tau - Y theta)``."""

    def __init__(self, method: RecursiveOptions, columns: Columns) -> None:
        n = len(columns.names)
        self.K, self.theta, self.flags = np.zeros((n, n)), columns.initial.copy(), np.zeros(n, dtype=np.int8)
        self._threshold, self._columns = method.threshold, columns
        self._M = np.empty((n, 2 * n))

    def add(self, rows: Array) -> None:
        from dynid.estimation.methods.recursive_kernel import eliminate

        Y, tau = rows[:, :-1], rows[:, -1]
        self.K += Y.T @ Y
        eliminate(self.K, self._threshold, self._M, self.flags)
        inverse = self._M[:, len(self.K) :]
        self.theta = self.theta + inverse @ (Y.T @ (tau - Y @ self.theta))
        moved = self.flags == 1
        self.theta[moved] = np.clip(self.theta, self._columns.lower, self._columns.upper)[moved]
