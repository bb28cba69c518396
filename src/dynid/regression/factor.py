"""The data as small triangles: ``R^T R = [W tau]^T [W tau]`` per channel, whatever the length of the log.

Chunks of rows are folded into a triangle with LAPACK's ``tpqrt``; triangles of time blocks, of logs, of machines merge the
same way, in any order. Linear estimators work on the triangles and never on the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np

from dynid.arrays import Array, IntArray, freeze
from dynid.errors import InputError, NoRowsError
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction
from dynid.regression.channels import Channel, triangle_of
from dynid.regression.row_filter import FilteredRows, RowFilter
from dynid.regression.row_source import BLOCK_LIMIT, Cells, RowSource, as_logs, matrix_rows
from dynid.regression.torque_rows import TorqueRows, Weights
from dynid.signals.samples import Samples, SampleStream

_PANEL = 12
"""Columns that LAPACK reduces at a time; from 8 to 16 hardly matters for the few dozen columns of a channel."""
_MOST_PARTS = 16
"""Parts that a long log is split into for an engine, at most."""
_STACKED_NUMBERS = 4_000_000
"""Numbers of all channels side by side from which these are folded one after another instead."""
_LARGE, _AT_ONCE = 150, 96
"""Columns from which a triangle no longer stays in the cache, and rows that are then folded into it at once."""
_BLOCK_NUMBERS = 8_000_000
"""Numbers in the time blocks of all channels: of a long chain, whose triangles are large, fewer blocks are kept."""


@dataclass(frozen=True, eq=False)
class Factor:
    """Triangles of one channel: one per time block, and their merger ``R``."""

    channel: Channel
    blocks: Array
    rows: IntArray
    """Rows that went into each block."""

    @cached_property
    def R(self) -> Array:
        """Upper triangle of ``[W tau]`` over the channel's columns; the last column is torque."""
        return freeze(merge_triangles(self.blocks))

    @property
    def n_rows(self) -> int:
        return int(self.rows.sum())

    @property
    def torque_norm(self) -> float:
        """``||tau||`` of the channel."""
        return float(np.linalg.norm(self.R[:, -1]))

    def scaled(self, weight: float) -> Factor:
        """All rows multiplied by one weight."""
        return replace(self, blocks=freeze(self.blocks * weight))


@dataclass(frozen=True, eq=False)
class Regression:
    """What the data say about the parameters: a triangular factor per channel; ``one + other`` merges two data sets.

    Args:
        parameters: the columns, with their nominal values.
        factors: the triangles, one set per channel.
        sources: the row sources that made them, for methods that need the rows again.
        cells: the colour of the noise, where the rows were made elsewhere and only this came back.
        stored_of: the robot whose rows made the triangles, where the rows themselves are not kept.

    Examples:
        >>> import dynid
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> one, other = (dynid.build_regression(robot, part) for part in (samples[:500], samples[500:]))
        >>> isinstance(one, dynid.Regression), (one + other).n_samples
        (True, 1000)
    """

    parameters: Parameters
    factors: tuple[Factor, ...]
    sources: tuple[RowSource, ...] = ()
    cells: Cells | None = None
    stored_of: Robot | None = None

    def __post_init__(self) -> None:
        if not self.factors:
            raise InputError("a regression needs at least one channel")

    def __add__(self, other: Regression) -> Regression:
        """Merge what two data sets say; the order does not matter."""
        if self.parameters.names != other.parameters.names:
            raise InputError(
                f"regressions with {len(self.parameters)} and {len(other.parameters)} parameters, or other names, "
                "cannot merge"
            )
        if len(self.factors) != len(other.factors) or not all(
            mine.channel.matches(theirs.channel) for mine, theirs in zip(self.factors, other.factors, strict=True)
        ):
            raise InputError("regressions of different robots cannot merge: their channels have other columns")
        factors = [
            replace(
                mine,
                blocks=freeze(np.concatenate([mine.blocks, theirs.blocks])),
                rows=freeze(np.concatenate([mine.rows, theirs.rows]), np.int64),
            )
            for mine, theirs in zip(self.factors, other.factors, strict=True)
        ]
        cells = None if self.cells is None or other.cells is None else self.cells + other.cells
        return Regression(
            self.parameters, tuple(factors), self.sources + other.sources, cells, self.stored_of or other.stored_of
        )

    @property
    def channel_names(self) -> tuple[str, ...]:
        return tuple(factor.channel.name for factor in self.factors)

    @property
    def n_rows(self) -> int:
        return sum(factor.n_rows for factor in self.factors)

    @property
    def n_samples(self) -> int:
        return max(factor.n_rows for factor in self.factors)

    @property
    def n_blocks(self) -> int:
        return max(len(factor.blocks) for factor in self.factors)

    @cached_property
    def torque_norms(self) -> Array:
        return freeze([factor.torque_norm for factor in self.factors])

    @property
    def robot(self) -> Robot:
        """The robot whose rows these are."""
        robot = next((source.robot for source in self.sources if source.robot is not None), self.stored_of)
        if robot is None:
            raise InputError("this regression was not built from the rows of a robot")
        return robot

    @property
    def has_robot(self) -> bool:
        """Whether the rows are known to be those of a robot."""
        return self.stored_of is not None or any(source.robot is not None for source in self.sources)

    @property
    def timed(self) -> bool:
        """Whether all rows can be made again and follow one another in time."""
        return bool(self.sources) and all(source.timed for source in self.sources)

    def logs(self) -> Iterator[RowSource]:
        """The sources, one log at a time, so that nothing runs over the end of a log."""
        for source in self.sources:
            yield from source.by_log()

    def channel_matrix(self, index: int, base: BaseReduction | None = None, triangle: Array | None = None) -> Array:
        """Triangle of one channel times its expansion, ``[A b]`` over base parameters, or over all without ``base``."""
        factor = self.factors[index]
        R = factor.R if triangle is None else triangle
        expansion = factor.channel.expansion
        if base is not None:
            self._check_base(base)
            expansion = base.regressor(expansion)
        return np.hstack([R[:, :-1] @ expansion, R[:, -1:]])

    def stacked(self, base: BaseReduction | None = None, weights: Sequence[float] | Array | None = None) -> Array:
        """``[A b]`` of all channels, each times its weight: the whole least-squares problem in a few hundred rows."""
        return np.vstack(self._weighted(base, weights))

    def triangle(self, base: BaseReduction | None = None, weights: Sequence[float] | Array | None = None) -> Array:
        """``[A b]`` of all channels reduced to one triangle."""
        return triangle_of_blocks(self._weighted(base, weights))

    def _weighted(self, base: BaseReduction | None, weights: Sequence[float] | Array | None) -> list[Array]:
        scale = np.ones(len(self.factors)) if weights is None else np.asarray(weights, dtype=np.float64)
        if scale.shape != (len(self.factors),):
            raise InputError(f"{scale.size} weights were given for {len(self.factors)} channels")
        return [weight * self.channel_matrix(i, base) for i, weight in enumerate(scale)]

    def without_sources(self) -> Regression:
        """The triangles alone, to store or to send."""
        return replace(self, sources=())

    def _check_base(self, base: BaseReduction) -> None:
        if base.parameter_names != self.parameters.names:
            raise InputError(
                f"base reduction is over {base.n_parameters} parameters, regression over {len(self.parameters)}; "
                "make both from the same robot and effects"
            )


MapOver: TypeAlias = Callable[[Callable[[RowSource], Regression], Sequence[RowSource]], Iterable[Regression]]
"""An engine's ``map``: a function over sources, answered in their order."""


def build_regression(
    robot: Robot,
    samples: Samples | SampleStream | Iterable[Samples | SampleStream],
    *,
    weights: Weights | None = None,
    row_filter: RowFilter | None = None,
    map_over: MapOver | None = None,
) -> Regression:
    """Regression of the torque rows of one or several sets of samples.

    Args:
        robot: the robot, with its effects.
        samples: one set of samples, one stream, or several of them.
        weights: a function from samples to a factor of every row.
        row_filter: a filter around the rows, such as ``FilterAndDecimate``.
        map_over: ``map`` of an engine: each set of samples, and each part of a long one, is then factored there.

    Returns:
        one triangle per joint, ``R^T R = [W tau]^T [W tau]``; regressions of the same robot can be added.

    Examples:
        >>> import dynid
        >>> data = dynid.build_regression(dynid.demo_robot(), dynid.demo_samples())
        >>> data.n_samples, data.channel_names[0]
        (1000, 'shoulder_yaw')
    """
    rows: RowSource = TorqueRows(robot, as_logs(samples), weights)
    if row_filter is not None:
        rows = FilteredRows(rows, row_filter)
    return factorise(rows) if map_over is None else factorise_parts(rows, map_over)


def factorise_parts(source: RowSource, map_over: MapOver) -> Regression:
    """The same factor, its parts made where an engine says."""
    merged: Regression | None = None
    for part in map_over(_triangles, source.split(_MOST_PARTS)):
        merged = part if merged is None else merged + part
    assert merged is not None
    return replace(merged, sources=(source,))


def _triangles(rows: RowSource) -> Regression:
    """The triangles without the samples that made them, which need not travel back."""
    return factorise(rows).without_sources()


def factorise(source: RowSource) -> Regression:
    """The regression of a row source, in one pass over its rows.

    Args:
        source: any row source.

    Returns:
        one triangle ``R`` per channel with ``R^T R = [W y]^T [W y]``, and how many rows it stands for.

    Examples:
        >>> import dynid
        >>> from dynid.regression.energy_rows import EnergyRows
        >>> rows = EnergyRows(dynid.demo_robot(), (dynid.demo_samples(),), interval_s=0.1)
        >>> dynid.factorise(rows).channel_names
        ('energy',)
    """
    channels = source.channels
    folders = [_Folder(channel) for channel in channels]
    most, least_rows = _block_limits(channels)
    block_rows, filled = 0, 0
    for chunk in source.passes():
        n = len(chunk)
        block_rows = block_rows or max(n, least_rows)
        if filled >= block_rows:
            _close_blocks(folders)
            filled = 0
            if len(folders[0].closed) >= most:
                for folder in folders:
                    folder.halve()
                block_rows *= 2
        for folder, rows in zip(folders, chunk.blocks, strict=True):
            folder.fold(rows)
        filled += n
    _close_blocks(folders)
    factors = tuple(folder.factor() for folder in folders)
    if not factors or not any(factor.n_rows for factor in factors):
        raise NoRowsError("the samples hold no row to identify from")
    return Regression(source.parameters, factors, (source,))


def _block_limits(channels: Sequence[Channel]) -> tuple[int, int]:
    """How many time blocks are kept, an even number, and rows that a block has at least where these are not all there could be."""
    size = sum((channel.width + 1) ** 2 for channel in channels)
    most = min(BLOCK_LIMIT, max(2, 2 * (_BLOCK_NUMBERS // (2 * size))))
    return most, 0 if most == BLOCK_LIMIT else max(channel.width for channel in channels)


def factorise_whole(source: RowSource) -> Regression:
    """The same factor of rows that are few, such as filtered ones: kept until the last, and then folded at once.

    It has no blocks of time.
    """
    kept: list[list[Array]] = [[] for _ in source.channels]
    for chunk in source.passes():
        for own, rows in zip(kept, chunk.blocks, strict=True):
            own.append(rows.copy())  # the source may fill its chunk again
    factors = []
    for channel, parts in zip(source.channels, kept, strict=True):
        folder = _Folder(channel)
        folder.fold(np.asfortranarray(np.concatenate(parts)) if parts else np.zeros((0, channel.width + 1)))
        folder.close()
        factors.append(folder.factor())
    if not any(factor.n_rows for factor in factors):
        raise NoRowsError("the samples hold no row to identify from")
    return Regression(source.parameters, tuple(factors), (source,))


def matrix_regression(
    parameters: Parameters,
    names: Sequence[str],
    matrices: Sequence[Array],
    *,
    timed: bool = False,
) -> Regression:
    """A regression from explicit ``[W tau]`` matrices, one per named channel, over all parameters.

    ``timed`` rows are those of one log in the order of time, so that the spectrum of their residual can be taken.
    """
    return factorise(matrix_rows(parameters, names, matrices, timed=timed))


def merge_triangles(triangles: Array) -> Array:
    """One triangle with the same ``R^T R`` as all of them together."""
    columns = np.array(np.swapaxes(triangles, 1, 2), order="C")
    for triangle in columns[1:]:
        _fold(columns[0], triangle, n_triangular=len(triangle))
    return np.array(columns[0].T, order="C")


def triangle_of_blocks(blocks: Sequence[Array]) -> Array:
    """Upper triangle of blocks of rows over the same columns, stacked.

    Rows of a long chain see the links that their joint carries, so most blocks begin with columns of zeros. Those that begin last are
    merged first, in triangles no larger than what is left of their columns.
    """
    n = blocks[0].shape[1]
    if not large(blocks):
        return triangle_of(np.vstack(blocks))
    first = [int(np.argmax(np.append(block.any(axis=0), True))) for block in blocks]
    found = np.zeros((0, 0))
    for k in sorted(range(len(blocks)), key=lambda k: -first[k]):
        found = _grown(found, n - first[k])
        _fold(found, np.ascontiguousarray(blocks[k][:, first[k] :].T))
    return _grown(found, n).T


def large(blocks: Sequence[Array]) -> bool:
    """Whether blocks of rows over the same columns are too many to be stacked."""
    return bool(blocks[0].shape[1] * sum(map(len, blocks)) >= _STACKED_NUMBERS)


def _grown(triangle: Array, size: int) -> Array:
    """A triangle, by columns, with columns of zeros before its own, so that there are ``size``."""
    if size <= len(triangle):
        return triangle
    found = np.zeros((size, size))
    before = size - len(triangle)
    found[before:, before:] = triangle
    return found


def _fold(R: Array, rows: Array, n_triangular: int = 0) -> None:
    """Triangle of ``R`` stacked on ``rows`` into ``R``; both are given by columns, and ``rows`` is overwritten.

    What lies below the diagonal of ``R`` is neither read nor written: zeros stay zeros.
    """
    from dynid.compiled import announced
    from dynid.dynamics import kernels as kernel

    if not rows.size:
        return
    panel = min(_PANEL, len(R))
    info = announced(kernel.fold)(R, rows, n_triangular, panel, np.empty(2 * panel * len(R)))
    if info != 0:
        raise RuntimeError(f"LAPACK tpqrt refused argument {-info}")


def silent_rows(rows: Array) -> int:
    """How many rows of ``[W y]`` are zero: they say nothing, and no noise is counted for them."""
    quiet = rows[:, -1] == 0.0
    return int(np.count_nonzero(~rows[quiet].any(axis=1))) if quiet.any() else 0


class _Folder:
    """The triangle of one channel while its rows go by."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._open, self._rows = self._empty(), 0
        self._waiting: list[Array] = []
        self.closed: list[Array] = []
        self._counts: list[int] = []

    def _empty(self) -> Array:
        return np.zeros((self._channel.width + 1, self._channel.width + 1))

    def fold(self, rows: Array) -> None:
        self._rows += len(rows) - silent_rows(rows)
        if self._channel.width < _LARGE:
            _fold(self._open, rows.T)
            return
        self._waiting.append(rows.copy())  # the source may fill its chunk again
        if sum(map(len, self._waiting)) >= _AT_ONCE:
            self._fold_waiting()

    def _fold_waiting(self) -> None:
        if self._waiting:
            _fold(self._open, np.ascontiguousarray(np.concatenate(self._waiting).T))
            self._waiting = []

    def close(self) -> None:
        self._fold_waiting()
        if self._rows:
            self.closed.append(self._open.T)
            self._counts.append(self._rows)
            self._open, self._rows = self._empty(), 0

    def halve(self) -> None:
        """Merge neighbouring blocks pairwise."""
        pairs = range(0, len(self.closed), 2)
        self._counts = [sum(self._counts[i : i + 2]) for i in pairs]
        self.closed = [merge_triangles(np.array(self.closed[i : i + 2])) for i in pairs]

    def factor(self) -> Factor:
        blocks = np.array(self.closed) if self.closed else self._empty()[None]
        counts = self._counts or [0]
        return Factor(self._channel, freeze(blocks), freeze(counts, np.int64))


def _close_blocks(folders: list[_Folder]) -> None:
    for folder in folders:
        folder.close()
