"""What rows say about the colour of their noise, in numbers that add up: products of columns in cells of frequency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, IntArray, freeze


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
