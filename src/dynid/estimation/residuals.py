"""One more pass over the rows of a regression: their residuals, and the same rows under other weights.

A row of channel ``j`` is ``[x tau]`` over the channel's own columns; its residual is ``tau - x E_j L beta`` with the
channel's expansion ``E_j`` and the lift ``L`` of the base reduction.

Power of rows in cells of frequency: of their columns, of their residual, and of both while the residual is not known yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from dynid.arrays import Array, IntArray
from dynid.errors import InputError
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression, factorise, silent_rows
from dynid.regression.partitions import PartTriangles, one_block
from dynid.regression.row_source import ALL, Cells, Chunk, RowSource, WrappedRows
from dynid.regression.torque_rows import STRETCH_ROWS

RowWeight: TypeAlias = Callable[[int, Array], Array]
"""Factor of every row of a channel, from the channel's index and the residuals of the rows."""


def channel_coefficients(regression: Regression, base: BaseReduction, beta: Array) -> tuple[Array, ...]:
    """Values of each channel's own columns that give the prediction of ``beta``."""
    phi = base.lift @ beta
    return tuple(factor.channel.values(phi) for factor in regression.factors)


def residual_blocks(regression: Regression, coefficients: tuple[Array, ...]) -> Iterator[list[Array]]:
    """Residuals of every channel, chunk by chunk, in the order of the rows."""
    for source in regression.logs():
        for chunk in source.passes():
            yield [block[:, -1] - block[:, :-1] @ c for block, c in zip(chunk.blocks, coefficients, strict=True)]


@dataclass(frozen=True, eq=False)
class ReweightedRows(WrappedRows):
    """The rows of another source, each times a factor that depends on its residual."""

    timed = False
    coefficients: tuple[Array, ...]
    weight: RowWeight

    def by_log(self) -> tuple[RowSource, ...]:
        return tuple(replace(self, source=log) for log in self.source.by_log())

    def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
        for chunk in self.source.passes(chunk_rows):
            for j, (block, c) in enumerate(zip(chunk.blocks, self.coefficients, strict=True)):
                block *= self.weight(j, block[:, -1] - block[:, :-1] @ c)[:, None]
            yield chunk


def reweighted(regression: Regression, coefficients: tuple[Array, ...], weight: RowWeight) -> Regression:
    """The regression after every row was multiplied by its weight; row filters and weights it already has stay."""
    require_rows(regression, "robust weights")
    again: Regression | None = None
    for source in regression.sources:
        part = factorise(ReweightedRows(source, coefficients, weight))
        again = part if again is None else again + part
    assert again is not None
    return again


def require_rows(regression: Regression, purpose: str) -> None:
    """Refuse a regression whose rows cannot be made again."""
    if not regression.sources:
        raise InputError(f"{purpose} need every row again, and this regression holds only its triangles")


def residual_sample(regression: Regression, coefficients: tuple[Array, ...], most: int = 200_000) -> tuple[Array, ...]:
    """Residuals of each channel at evenly spread rows, at most about ``most`` of them."""
    stride = max(1, -(-regression.n_samples // most))
    kept: list[list[Array]] = [[] for _ in coefficients]
    offset = [0] * len(kept)
    for blocks in residual_blocks(regression, coefficients):
        for j, block in enumerate(blocks):
            kept[j].append(block[(-offset[j]) % stride :: stride])
            offset[j] += len(block)
    return tuple(np.concatenate(parts) for parts in kept)


SEGMENT_ROWS = 2 * STRETCH_ROWS
"""Longest stretch that is transformed at once; the lowest frequency told from zero is its inverse."""
CELLS_PER_OCTAVE = 2
OCTAVES = 13
STRETCH_NUMBERS = 5_000_000
"""Numbers of a stretch that are held at a time: of a long chain a few channels after the others."""
SILENCE = 1e-5
"""Relative power of the noise below which a frequency adds nothing to the covariance: a filter has removed it."""


class Spectrum:
    """Power of one channel in cells of frequency: of its columns, of its residual, and how many numbers fell in each."""

    def __init__(self, width: int, n_cells: int) -> None:
        self.gram = np.zeros((n_cells, width, width))
        self.power = np.zeros(n_cells)
        self.count = np.zeros(n_cells)
        self.thin: list[list[Array] | None] = [[] for _ in range(n_cells)]
        """``X`` of a gram ``X X^T`` while it has far fewer columns than rows; None where it no longer has."""

    def add(self, rows: Array, cells: IntArray) -> None:
        """Rows ``[x r]`` of one stretch; ``cells`` holds the first bin of every cell and the end."""
        n = len(rows)
        transformed = np.fft.rfft(rows, axis=0, norm="ortho")
        double = _doubled(n)
        transformed *= double[:, None]
        taken = [(cell, first, last) for cell, (first, last) in enumerate(pairwise(cells)) if last > first]
        starts = [first for _, first, _ in taken]
        count = np.add.reduceat(double**2, starts) * (1.0 - silent_rows(rows) / n)
        power = np.add.reduceat(np.abs(transformed[:, -1]) ** 2, starts)
        density = power / np.maximum(count, 1e-300)
        # only the upper end may have no power: at the lower end it is the fit that leaves no residual
        loudest = np.flatnonzero(density > SILENCE * density.max()).max(initial=-1)
        for k, (cell, first, last) in enumerate(taken):
            self.count[cell] += count[k]
            self.power[cell] += power[k]
            if k <= loudest:
                x = np.ascontiguousarray(transformed[first:last, :-1].T).view(np.float64)
                self.gram[cell] += x @ x.T
                self._keep(cell, x)

    def _keep(self, cell: int, x: Array) -> None:
        kept = self.thin[cell]
        if kept is not None:
            kept.append(x)
            if 2 * sum(part.shape[1] for part in kept) > len(x):
                self.thin[cell] = None


def cell_starts(n_rows: int) -> IntArray:
    """First bin of every cell for a stretch of ``n_rows``: half octaves down from half the sampling rate, then the rest."""
    n_cells = CELLS_PER_OCTAVE * OCTAVES
    edges = 0.5 * 2.0 ** ((np.arange(1, n_cells) - n_cells) / CELLS_PER_OCTAVE)
    inner = np.ceil(edges * n_rows).astype(np.int64)
    n_bins = n_rows // 2 + 1
    return np.concatenate([[0], np.minimum(inner, n_bins), [n_bins]])


def stretches(source: RowSource, channels: slice = ALL) -> Iterator[list[Array]]:
    """Rows of some channels of one log in long stretches; copies, free to keep."""
    held: list[list[Array]] = []
    n_held = 0
    for blocks in source.channel_passes(channels, SEGMENT_ROWS):
        n = max(map(len, blocks))
        if n_held and n_held + n > SEGMENT_ROWS:
            yield [np.concatenate(parts) for parts in zip(*held, strict=True)]
            held, n_held = [], 0
        held.append(blocks)
        n_held += n
    if n_held:
        yield [np.concatenate(parts) for parts in zip(*held, strict=True)]


def channel_groups(widths: Sequence[int], n_rows: int) -> Iterator[slice]:
    """Neighbouring channels whose stretches can be held together; ``n_rows`` are those of the longest log."""
    rows, first, held = min(n_rows, SEGMENT_ROWS), 0, 0
    for k, width in enumerate(widths):
        if k > first and (held + width + 1) * rows > STRETCH_NUMBERS:
            yield slice(first, k)
            first, held = k, 0
        held += width + 1
    yield slice(first, len(widths))


def one_block_with_cells(source: RowSource) -> PartTriangles:
    """The triangles of a part and the colour of its noise: all that need come back from where its rows were made.

    Filtered rows are kept by their source, so the second pass over them costs little.
    """
    found = one_block(source)
    return replace(found, cells=cells_of(source, tuple(len(triangle) for triangle in found.triangles)))


def cells_of(source: RowSource, widths: tuple[int, ...]) -> Cells:
    """Products of the transformed columns of every channel, summed over the stretches of a source."""
    n_cells = CELLS_PER_OCTAVE * OCTAVES
    count, grams = np.zeros(n_cells), tuple(np.zeros((n_cells, width, width)) for width in widths)
    groups = list(channel_groups(widths, SEGMENT_ROWS))
    for log in source.by_log():
        for group in groups:
            for blocks in stretches(log, group):
                starts, double = cell_starts(len(blocks[0])), _doubled(len(blocks[0]))
                for cell, (first, last) in enumerate(pairwise(starts)):
                    count[cell] += float((double[first:last] ** 2).sum()) if group.start == 0 else 0.0
                for gram, block in zip(grams[group], blocks, strict=True):
                    transformed = np.fft.rfft(block, axis=0, norm="ortho") * double[:, None]
                    for cell, (first, last) in enumerate(pairwise(starts)):
                        if last > first:
                            z = np.ascontiguousarray(transformed[first:last].T).view(np.float64)
                            gram[cell] += z @ z.T
    return Cells.of(count, grams)


def spectra_of(cells: Cells, coefficients: tuple[Array, ...]) -> Iterator[Spectrum]:
    """The spectra that the rows would have given, one channel after another, from what is left of them and the values of the columns."""
    for k, c in enumerate(coefficients):
        whole, left = cells.gram(k), np.append(-c, 1.0)
        spectrum = Spectrum(len(c), len(cells.count))
        spectrum.thin = [None] * len(cells.count)  # only sums came back
        spectrum.count[:] = cells.count
        spectrum.power[:] = np.maximum(np.einsum("i,cij,j->c", left, whole, left), 0.0)
        density = np.divide(spectrum.power, cells.count, out=np.zeros_like(spectrum.power), where=cells.count > 0.0)
        loudest = np.flatnonzero(density > SILENCE * density.max()).max(initial=-1)
        spectrum.gram[: loudest + 1] = whole[: loudest + 1, :-1, :-1]
        yield spectrum


def _doubled(n_rows: int) -> Array:
    """Factors of a real transform: all bins but the ends stand for two real numbers."""
    double = np.full(n_rows // 2 + 1, np.sqrt(2.0))
    double[0] = 1.0
    if n_rows % 2 == 0:
        double[-1] = 1.0
    return double
