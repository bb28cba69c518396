"""One more pass over the rows of a regression: their residuals, and the same rows under other weights.

A row of channel ``j`` is ``[x tau]`` over the channel's own columns; its residual is ``tau - x E_j L beta`` with the
channel's expansion ``E_j`` and the lift ``L`` of the base reduction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression, factorise
from dynid.regression.source import Chunk, RowsOf, RowSource

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
class ReweightedRows(RowsOf):
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
