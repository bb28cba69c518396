"""Bounds of masses: of one link, of several together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.estimation.constraints.rows import Rows, bounded_rows, check_between
from dynid.estimation.convex.layout import Layout


@dataclass(frozen=True)
class MassBounds:
    """``lower <= m_k <= upper``, kg (Sousa 25)."""

    kind: ClassVar[str] = "mass"
    link: int | str
    lower: float = 0.0
    upper: float = np.inf

    def __post_init__(self) -> None:
        check_between(f"mass of link {self.link}", self.lower, self.upper)

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        return bounded_rows(
            f"mass of link {self.link}", layout.link_slots(self.link)[:1], np.ones(1), self.lower, self.upper
        )


@dataclass(frozen=True)
class TotalMass:
    """``lower <= sum_k m_k <= upper``, kg, over the given links or all."""

    kind: ClassVar[str] = "total_mass"
    lower: float = 0.0
    upper: float = np.inf
    links: tuple[int | str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", tuple(self.links))
        check_between("total mass", self.lower, self.upper)

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        chosen = self.links or layout.links
        columns = np.array([layout.link_slots(link)[0] for link in chosen])
        return bounded_rows("total mass", columns, np.ones(len(columns)), self.lower, self.upper)
