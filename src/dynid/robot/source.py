"""Where a robot came from: its file, and the links that reading it merged into others."""

from __future__ import annotations

from dataclasses import dataclass

from dynid.arrays import Array, matrix


@dataclass(frozen=True)
class MergedLink:
    """A link that is fixed to a body and was merged into it: its pose in the body's frame and its own ten parameters.

    ``body`` is -1 for links fixed to the ground.
    """

    name: str
    body: int
    placement: Array
    phi: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "placement", matrix(f"placement of link '{self.name}'", self.placement, (4, 4)))
        object.__setattr__(self, "phi", matrix(f"inertial of link '{self.name}'", self.phi, (10,)))


@dataclass(frozen=True)
class Source:
    """Where a robot came from: file, format, its bytes' hash, and what reading it decided."""

    path: str = ""
    format: str = "built"
    sha256: str = ""
    notes: tuple[str, ...] = ()
