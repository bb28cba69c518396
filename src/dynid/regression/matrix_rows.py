"""Rows that are given as matrices, one per channel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, check_finite, check_shape, freeze
from dynid.errors import InputError
from dynid.parameters import Parameters
from dynid.regression.channels import Channel, full_channel
from dynid.regression.source import CHUNK_ROWS, Chunk, Rows
from dynid.robot.model import Robot


@dataclass(frozen=True, eq=False)
class MatrixRows(Rows):
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
        >>> parameters = dynid.Parameters((dynid.rows.Column("mass", 1, "actuator", "kg", "body"),), np.ones(1))
        >>> rows = dynid.rows.MatrixRows(parameters, (dynid.rows.full_channel("f", 1),), (np.array([[1.0, 2.0]]),))
        >>> dynid.rows.factorise(rows).n_rows
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
