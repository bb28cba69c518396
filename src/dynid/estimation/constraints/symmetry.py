"""Links that are symmetric, or equal to one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.rows import AXES, Axis, Rows, rows_of
from dynid.estimation.convex.layout import Layout
from dynid.inertia import PSEUDO_BASIS, phi_from_pseudo_inertia


@dataclass(frozen=True)
class SymmetricLink:
    """Mirror symmetry about the plane ``x_axis = offset`` of the link's frame.

    int (x_n - o) rho = 0  and  int x_j (x_n - o) rho = 0 for the other axes j
    """

    kind: ClassVar[str] = "symmetric"
    link: int | str
    normal: Axis
    offset: float = 0.0

    def __post_init__(self) -> None:
        if self.normal not in AXES:
            raise UnknownNameError("axis", str(self.normal), AXES)

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        n = AXES.index(self.normal)
        u = np.zeros(4)
        u[n], u[3] = 1.0, -self.offset
        others = [3, *(j for j in range(3) if j != n)]
        M = np.einsum("kij,j->ik", PSEUDO_BASIS, u)[others]
        return (rows_of("zero", f"symmetry of link {self.link}", layout.link_slots(self.link), M),)


@dataclass(frozen=True)
class EqualLinks:
    """Links with the same ten parameters in their own frames, or mirrored ones: left and right limbs."""

    kind: ClassVar[str] = "equal"
    links: tuple[int | str, ...]
    mirror: Axis | None = None
    """The axis whose sign differs between the first link's frame and the others'."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "links", tuple(self.links))
        if len(self.links) < 2:
            raise InputError(f"{len(self.links)} link is named to be equal, expected at least two")
        if self.mirror is not None and self.mirror not in AXES:
            raise UnknownNameError("axis", str(self.mirror), AXES)

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        flip = np.ones(4)
        if self.mirror is not None:
            flip[AXES.index(self.mirror)] = -1.0
        S = phi_from_pseudo_inertia(flip[:, None] * PSEUDO_BASIS * flip).T
        first = layout.link_slots(self.links[0])
        M = np.hstack([np.eye(10), -S])
        return tuple(
            rows_of("zero", f"links {self.links[0]} and {other} equal", np.concatenate([first, layout.link_slots(other)]), M)
            for other in self.links[1:]
        )
