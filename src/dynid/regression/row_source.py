"""Row sources: every physical statement that is linear in the parameters, ``y = W phi``, behind one door.

Joint torque, energy differences, polynomial approximation, inertia matrices of poses, the wrench of a sensor: each is a
:class:`RowSource`. What comes after the rows (row filter, factor, base parameters, estimators, uncertainty, validation)
asks for no more than what is declared here, so that it works for every source, and a new statement is one new file. Rows may
also be given as matrices (:class:`MatrixRows`) or wrap those of another source (:class:`WrappedRows`).

A source of your own says what it is, gives its rows, and takes the rest from :class:`RowSource`:

    >>> import numpy as np
    >>> from dynid.model.parameters import Column, Parameters
    >>> from dynid.regression.channels import full_channel
    >>> from dynid.regression.factor import factorise
    >>> class Weighing(RowSource):
    ...     '''A scale under a moving body: ``force = mass * acceleration``.'''
    ...
    ...     kind, robot, samples, timed = "weighing", None, (), False
    ...     parameters = Parameters((Column("mass", 1, "actuator", "kg", "body"),), np.ones(1))
    ...     channels = (full_channel("force", 1),)
    ...
    ...     def passes(self, chunk_rows=None):
    ...         yield Chunk([np.array([[9.0, 18.0], [11.0, 22.0]], order="F")])
    >>> R = factorise(Weighing()).factors[0].R
    >>> print(f"{R[0, 1] / R[0, 0]:.3f} kg")
    2.000 kg

What rows say about the colour of their noise, in numbers that add up: products of columns in cells of frequency.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dynid.arrays import Array, IntArray, check_finite, check_shape, freeze
from dynid.errors import InputError
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.channels import Channel, full_channel
from dynid.signals.samples import Samples, SampleStream

CHUNK_ROWS = 520
"""Samples per chunk: few enough that the rows of one joint stay in the cache while they are triangularised, and no power of
two, whose columns would all begin at the same place of the cache."""
BLOCK_LIMIT = 64
"""Most time blocks that a factor keeps per source; neighbours are merged beyond it."""
ALL = slice(None)
"""Every channel, where neighbouring ones can be asked for."""


@dataclass(frozen=True, eq=False)
class Chunk:
    """Rows of every channel for some consecutive samples.

    Args:
        blocks: ``[W y]`` of every channel over its own columns, column-major. They may be overwritten, and are invalid once
            the next chunk is asked for.
        time: times of the rows in seconds; None where rows have no clock.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.regression.row_source import Chunk
        >>> len(Chunk([np.zeros((5, 3), order="F")]))
        5
    """

    blocks: list[Array]
    time: Array | None = None

    def __len__(self) -> int:
        return max(len(block) for block in self.blocks) if self.time is None else len(self.time)

    def cut(self, rows: slice) -> Chunk:
        """Some consecutive rows."""
        return Chunk([block[rows] for block in self.blocks], None if self.time is None else self.time[rows])

    def joined(self, other: Chunk) -> Chunk:
        """These rows and those that follow them."""
        return Chunk.concatenate([self, other])

    @classmethod
    def concatenate(cls, chunks: Sequence[Chunk]) -> Chunk:
        """Consecutive chunks as one: a long log has many short ones, each with a price of its own."""
        if len(chunks) == 1:
            return chunks[0]
        columns = zip(*(one.blocks for one in chunks), strict=True)
        times = [one.time for one in chunks if one.time is not None]
        blocks = [np.concatenate([block.T for block in column], axis=1).T for column in columns]
        return cls(blocks, np.concatenate(times) if times else None)


class RowSource(ABC):
    """What a row source is: it makes the rows of some channels, any number of times. Derive your own from it.

    What has a default is that of one log, with nothing to split and no samples or options to exchange.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.model.parameters import Column
        >>> from dynid.regression.channels import full_channel
        >>> from dynid.regression.row_source import Chunk
        >>> class Weighing(dynid.RowSource):
        ...     kind, robot, samples, timed = "weighing", None, (), False
        ...     parameters = dynid.Parameters((Column("mass", 1, "actuator", "kg", "body"),), np.ones(1))
        ...     channels = (full_channel("force", 1),)
        ...
        ...     def passes(self, chunk_rows=None):
        ...         yield Chunk([np.array([[9.0, 18.0], [11.0, 22.0]], order="F")])
        >>> dynid.factorise(Weighing()).n_rows
        2
    """

    if TYPE_CHECKING:  # at run time a source has them as fields, properties or class variables

        @property
        def kind(self) -> str:
            """What the rows say, in one word."""

        @property
        def robot(self) -> Robot | None:
            """The robot whose rows these are, None where they come without one."""

        @property
        def parameters(self) -> Parameters:
            """The columns of the rows, with their nominal values."""

        @property
        def channels(self) -> tuple[Channel, ...]:
            """The families of rows that are kept apart: one per joint for torque."""

        @property
        def timed(self) -> bool:
            """Whether rows follow one another in time, evenly and log by log, so that their residual has a spectrum."""

        @property
        def samples(self) -> tuple[Any, ...]:
            """The sets of samples that the rows are made from, one per log; empty where they are not made from motion."""

    @abstractmethod
    def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
        """The rows in order, chunk by chunk; ``chunk_rows`` limits the samples of a chunk where the source can choose."""

    def channel_passes(self, channels: slice, chunk_rows: int | None = None) -> Iterator[list[Array]]:
        """The blocks of neighbouring channels alone, chunk by chunk; they stay valid."""
        for chunk in self.passes(chunk_rows):
            yield [np.array(block, order="F") for block in chunk.blocks[channels]]

    def by_log(self) -> tuple[RowSource, ...]:
        """One source per log, so that nothing taken along time runs over the end of a log."""
        return (self,)

    def split(self, most: int) -> tuple[RowSource, ...]:
        """Sources whose rows together are these, long logs in at most ``most`` parts: for work that runs beside other work."""
        return self.by_log()

    def with_samples(self, samples: Sequence[Any]) -> RowSource:
        """The same statement about other samples."""
        raise InputError(f"{self.kind} rows are not made from samples of motion, so other samples cannot take their place")

    def unweighted(self) -> RowSource:
        """The same rows without factors of their own."""
        return self

    def typical_rows(self) -> tuple[Array, ...] | None:
        """``W`` of every channel over all parameters at random states within the robot's limits, None without a robot.

        It tells how large a column is where it is excited: what thresholds are measured by.
        """
        return None


@dataclass(frozen=True, eq=False)
class SampleRows(RowSource):
    """Rows of one robot over samples, one set of samples or one stream of them per log."""

    robot: Robot
    samples: tuple[Any, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "samples", tuple(self.samples))
        if not self.samples:
            raise InputError("a regression needs at least one set of samples")

    @property
    def parameters(self) -> Parameters:
        return self.robot.parameters

    def with_samples(self, samples: Sequence[Any]) -> Self:
        return replace(self, samples=tuple(samples))

    def by_log(self) -> tuple[Self, ...]:
        return tuple(replace(self, samples=(one,)) for one in self.samples)


@dataclass(frozen=True, eq=False)
class WrappedRows(RowSource):
    """Rows made of those of another source: its statement, parameters and samples, and what a wrapper changes of the rows."""

    source: RowSource

    @property
    def kind(self) -> str:
        return self.source.kind

    @property
    def robot(self) -> Robot | None:
        return self.source.robot

    @property
    def parameters(self) -> Parameters:
        return self.source.parameters

    @property
    def channels(self) -> tuple[Channel, ...]:
        return self.source.channels

    @property
    def samples(self) -> tuple[Any, ...]:
        return self.source.samples

    def with_samples(self, samples: Sequence[Any]) -> Self:
        return replace(self, source=self.source.with_samples(samples))


def as_logs(samples: Any, one: tuple[type, ...] = (Samples,)) -> tuple[Any, ...]:
    """One set of samples, one stream or several of them as a tuple of logs.

    An iterator ends after one reading, so it is taken as a list of logs and not as a stream.
    """
    if isinstance(samples, one) or (isinstance(samples, SampleStream) and not isinstance(samples, (list, tuple, Iterator))):
        return (samples,)
    return tuple(samples)


@dataclass(frozen=True, eq=False)
class MatrixRows(RowSource):
    """Rows from explicit matrices ``[W y]``, one per channel, ``(rows, columns + 1)`` over the channel's own columns.

    Args:
        parameters: the columns, with their nominal values.
        channels: the families of rows.
        matrices: one matrix per channel.
        timed: whether the rows are those of one log in the order of time, evenly spaced and as many for every channel.
        robot: whose rows they are, where they belong to one.
        kind: what the rows are, in one word.
        chunk_rows: rows of a chunk.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.model.parameters import Column
        >>> from dynid.regression.channels import full_channel
        >>> from dynid.regression.row_source import MatrixRows
        >>> parameters = dynid.Parameters((Column("mass", 1, "actuator", "kg", "body"),), np.ones(1))
        >>> rows = MatrixRows(parameters, (full_channel("f", 1),), (np.array([[1.0, 2.0]]),))
        >>> dynid.factorise(rows).n_rows
        1
    """

    samples = ()
    parameters: Parameters
    channels: tuple[Channel, ...]
    matrices: tuple[Array, ...]
    timed: bool = False
    robot: Robot | None = None
    kind: str = "matrix"
    chunk_rows: int = CHUNK_ROWS

    def __post_init__(self) -> None:
        object.__setattr__(self, "matrices", tuple(freeze(block) for block in self.matrices))
        if len(self.matrices) != len(self.channels):
            raise InputError(f"{len(self.matrices)} matrices were given for {len(self.channels)} channels")
        for channel, block in zip(self.channels, self.matrices, strict=True):
            check_shape(f"[W tau] of channel '{channel.name}'", block, (None, channel.width + 1))
            check_finite(f"[W tau] of channel '{channel.name}'", block)
        counts = [len(block) for block in self.matrices]
        if self.timed and len(set(counts)) > 1:
            raise InputError(f"channels of one log have {counts} rows, expected as many for each")

    def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
        step = chunk_rows or self.chunk_rows
        for start in range(0, max(len(block) for block in self.matrices), step):
            yield Chunk([np.array(block[start : start + step], order="F") for block in self.matrices])


def matrix_rows(
    parameters: Parameters, names: Sequence[str], matrices: Sequence[Array], *, timed: bool = False, kind: str = "matrix"
) -> MatrixRows:
    """Rows from ``[W y]`` over all parameters, one matrix per named channel."""
    channels = tuple(full_channel(name, len(parameters)) for name in names)
    return MatrixRows(parameters, channels, tuple(matrices), timed=timed, kind=kind)


@dataclass(frozen=True, eq=False)
class Cells:
    """``G_j(f) = sum Re(z z^H)`` over the transforms ``z`` of the rows ``[x y]`` of each channel, in cells of frequency.

    With the values ``c`` of the columns, ``[-c 1] G_j(f) [-c 1]^T`` is the power of the residual: it can be had when ``c`` is known
    and the rows are gone. Symmetric matrices are kept by their upper halves.
    """

    count: Array
    """Real numbers in each cell."""
    halves: tuple[Array, ...]
    """``(cells, n (n + 1) / 2)`` for each channel of ``n`` columns, the last of them ``y``."""

    @classmethod
    def of(cls, count: Array, grams: tuple[Array, ...]) -> Cells:
        """From full matrices, ``(cells, n, n)`` for each channel."""
        return cls(freeze(count), tuple(freeze(gram[:, *np.triu_indices(gram.shape[1])]) for gram in grams))

    def __add__(self, other: Cells) -> Cells:
        halves = tuple(freeze(one + two) for one, two in zip(self.halves, other.halves, strict=True))
        return Cells(freeze(self.count + other.count), halves)

    def __reduce__(self) -> tuple[Any, ...]:
        """Cells without a number, of which short stretches have some, do not travel."""
        filled = np.flatnonzero(self.count)
        return _filled, (self.count, filled, tuple(half[filled] for half in self.halves))

    def gram(self, channel: int) -> Array:
        """``(cells, n, n)`` of one channel."""
        half = self.halves[channel]
        n = int((np.sqrt(8.0 * half.shape[1] + 1.0) - 1.0) / 2.0)
        full = np.zeros((len(half), n, n))
        above = np.triu_indices(n)
        full[:, *above] = half
        full[:, above[1], above[0]] = half
        return full


def _filled(count: Array, filled: IntArray, halves: tuple[Array, ...]) -> Cells:
    full = [np.zeros((len(count), half.shape[1])) for half in halves]
    for whole, half in zip(full, halves, strict=True):
        whole[filled] = half
    return Cells(freeze(count), tuple(freeze(whole) for whole in full))
