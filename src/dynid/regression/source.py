"""Row sources: every physical statement that is linear in the parameters, ``y = W phi``, behind one door.

Joint torque, energy differences, polynomial approximation, inertia matrices of poses, the wrench of a sensor: each is a
:class:`RowSource`. What comes after the rows (row filter, factor, base parameters, estimators, uncertainty, validation)
asks for no more than what is declared here, so that it works for every source, and a new statement is one new file.

A source of your own says what it is, gives its rows, and takes the rest from :class:`Rows`:

    >>> import numpy as np
    >>> from dynid.parameters import Column, Parameters
    >>> from dynid.regression.channels import full_channel
    >>> from dynid.regression.factor import factorise
    >>> class Weighing(Rows):
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
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.parameters import Parameters
from dynid.recording.samples import Samples, SampleStream
from dynid.regression.channels import Channel
from dynid.robot.model import Robot

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
        >>> len(dynid.rows.Chunk([np.zeros((5, 3), order="F")]))
        5
    """

    blocks: list[Array]
    time: Array | None = None

    def __len__(self) -> int:
        return max(len(block) for block in self.blocks)


class RowSource(Protocol):
    """What a row source has: it makes the rows of some channels, any number of times.

    Examples:
        >>> import dynid
        >>> def n_rows(source: dynid.rows.RowSource) -> int:
        ...     return sum(len(block) for chunk in source.passes() for block in chunk.blocks)
        >>> n_rows(dynid.rows.TorqueRows(dynid.demo_robot(), (dynid.demo_samples(seconds=2.0),)))
        1400
    """

    @property
    def kind(self) -> str:
        """What the rows say, in one word."""
        ...

    @property
    def robot(self) -> Robot | None:
        """The robot whose rows these are, None where they come without one."""
        ...

    @property
    def parameters(self) -> Parameters:
        """The columns of the rows, with their nominal values."""
        ...

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The families of rows that are kept apart: one per joint for torque."""
        ...

    @property
    def timed(self) -> bool:
        """Whether rows follow one another in time, evenly and log by log, so that their residual has a spectrum."""
        ...

    @property
    def samples(self) -> tuple[Any, ...]:
        """The sets of samples that the rows are made from, one per log; empty where they are not made from motion."""
        ...

    def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
        """The rows in order, chunk by chunk; ``chunk_rows`` limits the samples of a chunk where the source can choose."""
        ...

    def channel_passes(self, channels: slice, chunk_rows: int | None = None) -> Iterator[list[Array]]:
        """The blocks of neighbouring channels alone, chunk by chunk; they stay valid."""
        ...

    def by_log(self) -> tuple[RowSource, ...]:
        """One source per log, so that nothing taken along time runs over the end of a log."""
        ...

    def split(self, most: int) -> tuple[RowSource, ...]:
        """Sources whose rows together are these, long logs in at most ``most`` parts: for work that runs beside other work."""
        ...

    def with_samples(self, samples: Sequence[Any]) -> RowSource:
        """The same statement about other samples."""
        ...

    def with_options(self, **options: Any) -> RowSource:
        """The same data under other ``effects`` or other options of the source."""
        ...

    def unweighted(self) -> RowSource:
        """The same rows without factors of their own."""
        ...

    def typical_rows(self) -> tuple[Array, ...] | None:
        """``W`` of every channel over all parameters at random states within the robot's limits, None without a robot.

        It tells how large a column is where it is excited: what thresholds are measured by.
        """
        ...


class Rows:
    """Defaults of a row source: one log, nothing to split, no samples or options to exchange. Derive your own source from it.

    Examples:
        >>> import dynid, numpy as np
        >>> class Weighing(dynid.rows.Rows):
        ...     kind, robot, samples, timed = "weighing", None, (), False
        ...     parameters = dynid.Parameters((dynid.rows.Column("mass", 1, "actuator", "kg", "body"),), np.ones(1))
        ...     channels = (dynid.rows.full_channel("force", 1),)
        ...
        ...     def passes(self, chunk_rows=None):
        ...         yield dynid.rows.Chunk([np.array([[9.0, 18.0], [11.0, 22.0]], order="F")])
        >>> dynid.rows.factorise(Weighing()).n_rows
        2
    """

    def channel_passes(self, channels: slice, chunk_rows: int | None = None) -> Iterator[list[Array]]:
        for chunk in cast(RowSource, self).passes(chunk_rows):
            yield [np.array(block, order="F") for block in chunk.blocks[channels]]

    def by_log(self) -> tuple[RowSource, ...]:
        return (cast(RowSource, self),)

    def split(self, most: int) -> tuple[RowSource, ...]:
        return cast(RowSource, self).by_log()

    def with_samples(self, samples: Sequence[Any]) -> RowSource:
        raise InputError(
            f"{cast(RowSource, self).kind} rows are not made from samples of motion, so other samples cannot take their place"
        )

    def with_options(self, **options: Any) -> RowSource:
        raise InputError(f"{cast(RowSource, self).kind} rows have no option '{next(iter(options), 'effects')}' to change")

    def unweighted(self) -> RowSource:
        return cast(RowSource, self)

    def typical_rows(self) -> tuple[Array, ...] | None:
        return None


@dataclass(frozen=True, eq=False)
class RowsOf(Rows):
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


def as_logs(samples: Any, one: tuple[type, ...] = (Samples,)) -> tuple[Any, ...]:
    """One set of samples, one stream or several of them as a tuple of logs.

    An iterator ends after one reading, so it is taken as a list of logs and not as a stream.
    """
    if isinstance(samples, one) or (isinstance(samples, SampleStream) and not isinstance(samples, (list, tuple, Iterator))):
        return (samples,)
    return tuple(samples)
