"""What the data can show: the base parameters whose columns are independent on these very rows.

Walking through the base parameters in order, one is *seen* if its column is independent of those seen before. The rest are
held at their prior value; a seen parameter whose column takes part in explaining an unseen one is *mixed*: its value is
right only as far as the prior of the other is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.estimation.estimate import Origin
from dynid.regression.independence import independent_columns

DATA_TOLERANCE = 1e-7
"""Relative part of a column that must lie outside the span of those before it to count as seen."""


@dataclass(frozen=True, eq=False)
class Seen:
    """Mask of the seen base parameters and the origin of each value."""

    mask: BoolArray
    origin: tuple[Origin, ...]

    @property
    def rank(self) -> int:
        return int(self.mask.sum())


def seen_parameters(A: Array, tolerance: float = DATA_TOLERANCE) -> Seen:
    """Decide from the (stacked or triangular) regressor over base parameters."""
    n = A.shape[1]
    found = independent_columns(A, np.arange(n), tolerance)
    mask = np.zeros(n, dtype=bool)
    mask[found.kept] = True
    mixed = np.zeros(n, dtype=bool)
    if not mask.all():
        mixed[found.kept] = np.abs(found.K[:, ~mask]).max(axis=1) > 1e-6
    origin: list[Origin] = ["prior" if not s else ("mixed" if m else "data") for s, m in zip(mask, mixed, strict=True)]
    return Seen(mask, tuple(origin))
