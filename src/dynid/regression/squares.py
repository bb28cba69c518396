"""Normal equations of rows, channel by channel: quick to add and to solve, with half of the digits.

    G = [W y]^T [W y],      beta = (X^T G_WW X)^-1 X^T G_Wy

Enough to compare filters on long chains; estimates are made from triangles.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.regression.base import BaseReduction
from dynid.regression.channels import Channel
from dynid.regression.row_source import RowSource

_AT_ONCE = 128
"""Rows that are added at once: products as large as these take longer to add than to make from few rows."""
_RIDGE = 1e-12  # of unit columns, for directions that the rows do not show


@dataclass(frozen=True, eq=False)
class Squares:
    """``[W y]^T [W y]`` of every channel over its own columns. Half of the digits of the rows are lost in it."""

    channels: tuple[Channel, ...]
    grams: tuple[Array, ...]

    @classmethod
    def of(cls, source: RowSource) -> Squares:
        """In one pass over the rows."""
        grams = [np.zeros((channel.width + 1, channel.width + 1)) for channel in source.channels]
        waiting: list[list[Array]] = [[] for _ in grams]

        def add() -> None:
            for gram, parts in zip(grams, waiting, strict=True):
                rows = np.concatenate(parts) if parts else np.zeros((0, len(gram)))
                gram += rows.T @ rows
                parts.clear()

        held = 0
        for chunk in source.passes():
            for parts, block in zip(waiting, chunk.blocks, strict=True):
                parts.append(block.copy())  # the source may fill its chunk again
            held += len(chunk)
            if held >= _AT_ONCE:
                add()
                held = 0
        add()
        return cls(source.channels, tuple(grams))

    def solve(self, base: BaseReduction) -> Array:
        """Base values that fit best, all channels counted alike; zero along what the rows do not show."""
        H, g = np.zeros((base.n_base, base.n_base)), np.zeros(base.n_base)
        for channel, gram in zip(self.channels, self.grams, strict=True):
            X = base.regressor(channel.expansion)
            own = np.flatnonzero(X.any(axis=0))  # a joint sees the links that it carries
            X = X[:, own]
            H[np.ix_(own, own)] += X.T @ (gram[:-1, :-1] @ X)
            g[own] += X.T @ gram[:-1, -1]
        size = np.sqrt(np.maximum(np.diag(H), 1e-300))
        return np.asarray(np.linalg.solve(H / np.outer(size, size) + _RIDGE * np.eye(len(g)), g / size) / size)

    def error(self, base: BaseReduction, beta: Array) -> float:
        """Relative error that base values leave of the rows."""
        phi, left, size = base.lift @ beta, 0.0, 0.0
        for channel, gram in zip(self.channels, self.grams, strict=True):
            c = np.append(channel.values(phi), -1.0)
            left, size = left + max(float(c @ gram @ c), 0.0), size + float(gram[-1, -1])
        found = float(np.sqrt(left / size)) if size > 0.0 else float("inf")
        return found if np.isfinite(found) else float("inf")
