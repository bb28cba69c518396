"""What the data can show: the base parameters whose columns are independent on these very rows.

Walking through the base parameters in order, one is *seen* if its column is independent of those seen before. The rest are
held at their prior value; a seen parameter whose column takes part in explaining an unseen one is *mixed*: its value is
right only as far as the prior of the other is.

Where a prior takes part in the estimate itself, a value is as much the data's as they narrow it down,

    share = 1 - posterior variance / prior variance = data information / (data information + prior information)

in the direction of that base parameter: from the data above 99 percent, from the prior below one, else mixed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.estimation.result import Origin
from dynid.regression.independence import ZERO_COLUMN, independent_columns, triangle_of

DATA_TOLERANCE = 1e-7
"""Relative part of a column that must lie outside the span of those before it to count as seen."""
MOSTLY = 0.99
"""Share of a value's precision from which it counts as coming from one side alone."""
_ORDER: tuple[Origin, ...] = ("data", "mixed", "prior")


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
    if _all_independent(A, tolerance):
        return Seen(np.ones(n, dtype=bool), ("data",) * n)
    found = independent_columns(A, np.arange(n), tolerance)
    mask = np.zeros(n, dtype=bool)
    mask[found.kept] = True
    mixed = np.zeros(n, dtype=bool)
    if not mask.all():
        mixed[found.kept] = np.abs(found.K[:, ~mask]).max(axis=1) > 1e-6
    origin: list[Origin] = ["prior" if not s else ("mixed" if m else "data") for s, m in zip(mask, mixed, strict=True)]
    return Seen(mask, tuple(origin))


def _all_independent(A: Array, tolerance: float) -> bool:
    """Whether every column clearly is independent of those before it: as much lies outside their span as the diagonal of R says."""
    if not A.shape[1] or A.shape[0] < A.shape[1]:
        return False
    R = triangle_of(A)
    norms = np.linalg.norm(R, axis=0)
    clear = np.abs(np.diag(R)) > 2.0 * tolerance * norms
    return bool(clear.all() and (norms > ZERO_COLUMN * norms.max()).all())


def origins_of(share: Array) -> tuple[Origin, ...]:
    """Origin of every value from the share of its precision that the data contribute."""
    return tuple("data" if s > MOSTLY else ("prior" if s < 1.0 - MOSTLY else "mixed") for s in share)


def with_prior(seen: Seen, share: Array) -> Seen:
    """What the data show where a prior takes part: each origin the one furthest from the data of rank and share."""
    both = zip(seen.origin, origins_of(share), strict=True)
    return Seen(seen.mask, tuple(max(pair, key=_ORDER.index) for pair in both))
