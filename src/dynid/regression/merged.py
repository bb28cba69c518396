"""Triangles of many parts, made anywhere and merged here in the order of the parts.

One triangle per channel and part travels, whatever the number of rows. They are kept as time blocks, and beyond
``BLOCK_LIMIT`` of them neighbours are merged pairwise: a tree whose shape depends on the number of parts alone, so that the
result does not depend on where or in which order the parts were done.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import freeze
from dynid.errors import InputError
from dynid.regression.factor import Factor, MapOver, Regression, factorise, merge_triangles
from dynid.regression.source import BLOCK_LIMIT, Chunk, RowsOf, RowSource


@dataclass(frozen=True, eq=False)
class OwnRows(RowsOf):
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


def one_block(source: RowSource) -> Regression:
    """The regression of a part as one triangle per channel, without what made it."""
    made = factorise(source)
    factors = tuple(Factor(one.channel, freeze(one.R[None]), freeze([one.n_rows], np.int64)) for one in made.factors)
    return Regression(made.parameters, factors)


def merged(parts: Sequence[RowSource], map_over: MapOver, whole: RowSource) -> Regression:
    """The regression of all parts, which together are ``whole``; each is made where ``map_over`` runs it."""
    found = list(map_over(one_block, parts))
    while len(found) > BLOCK_LIMIT:
        found = [_pair(found[k : k + 2]) for k in range(0, len(found), 2)]
    together = found[0]
    for one in found[1:]:
        together = together + one
    return replace(together, sources=(whole,))


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
    return Regression(two[0].parameters, factors)
