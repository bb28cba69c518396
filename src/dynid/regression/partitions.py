"""Triangles of many parts, made anywhere and merged here in the order of the parts.

One triangle per channel and part travels, whatever the number of rows. They are kept as time blocks, and beyond
``BLOCK_LIMIT`` of them neighbours are merged pairwise: a tree whose shape depends on the number of parts alone, so that the
result does not depend on where or in which order the parts were done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.regression.factor import Factor, Regression, factorise, merge_triangles
from dynid.regression.row_source import BLOCK_LIMIT, Cells, Chunk, RowSource, WrappedRows


@dataclass(frozen=True, eq=False)
class OwnRows(WrappedRows):
    """The rows of a source with ``start_s <= time < stop_s``: what a part answers for, of what it had to read for its filters."""

    start_s: float
    stop_s: float

    timed = True

    def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
        for chunk in self.source.passes(chunk_rows):
            if chunk.time is None:
                raise InputError("rows without a clock have no part in time")
            first, last = np.searchsorted(chunk.time, [self.start_s, self.stop_s])
            if last > first:
                blocks = [np.asfortranarray(block[first:last]) for block in chunk.blocks]
                yield Chunk(blocks, chunk.time[first:last])


@dataclass(frozen=True, eq=False)
class PartTriangles:
    """What comes back of a part: one triangle per channel, rows in each, and perhaps the colour of the noise; no more travels."""

    triangles: tuple[Array, ...]
    rows: tuple[int, ...]
    cells: Cells | None = None

    def regression(self, whole: RowSource) -> Regression:
        """As a regression over the columns of the source that the part belongs to."""
        factors = tuple(
            Factor(channel, freeze(triangle[None]), freeze([n], np.int64))
            for channel, triangle, n in zip(whole.channels, self.triangles, self.rows, strict=True)
        )
        return Regression(whole.parameters, factors, cells=self.cells)


def one_block(source: RowSource) -> PartTriangles:
    """The triangles of a part."""
    made = factorise(source)
    return PartTriangles(tuple(one.R for one in made.factors), tuple(one.n_rows for one in made.factors))


PartMap: TypeAlias = Callable[[Callable[[RowSource], PartTriangles], Sequence[RowSource]], Iterable[PartTriangles]]
"""An engine's ``map`` over parts."""


def merged(
    parts: Sequence[RowSource],
    map_over: PartMap,
    whole: RowSource,
    make: Callable[[RowSource], PartTriangles] = one_block,
) -> Regression:
    """The regression of all parts, which together are ``whole``; each is made by ``make`` where ``map_over`` runs it."""
    return replace(merged_triangles(map_over(make, parts), whole), sources=(whole,))


def merged_triangles(parts: Iterable[PartTriangles], whole: RowSource) -> Regression:
    """What came back of some parts as one regression over the columns of ``whole``, without rows."""
    found = [part.regression(whole) for part in parts]
    while len(found) > BLOCK_LIMIT:
        found = [_pair(found[k : k + 2]) for k in range(0, len(found), 2)]
    together = found[0]
    for one in found[1:]:
        together = together + one
    return together


def _pair(two: Sequence[Regression]) -> Regression:
    if len(two) == 1:
        return two[0]
    factors = tuple(
        Factor(
            one.channel,
            freeze(merge_triangles(np.concatenate([one.blocks, other.blocks]))[None]),
            freeze([one.n_rows + other.n_rows], np.int64),
        )
        for one, other in zip(two[0].factors, two[1].factors, strict=True)
    )
    cells = None if two[0].cells is None or two[1].cells is None else two[0].cells + two[1].cells
    return Regression(two[0].parameters, factors, cells=cells)
