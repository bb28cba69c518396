"""Viscous friction: tau = fv v."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dynid.arrays import Array
from dynid.parameters import Kind
from dynid.robot.effects.effect import JointwiseEffect, Motion

if TYPE_CHECKING:
    from dynid.robot.model import Joint


@dataclass(frozen=True)
class Viscous(JointwiseEffect):
    """Viscous friction: tau = fv v."""

    name: ClassVar[str] = "viscous"
    symbol: ClassVar[str] = "fv"
    kind: ClassVar[Kind] = "friction"

    def unit(self, joint: Joint) -> str:
        return "N s/m" if joint.kind == "prismatic" else "N m s/rad"

    def signals(self, motion: Motion) -> Array:
        return motion.velocity
