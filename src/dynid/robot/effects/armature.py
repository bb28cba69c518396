"""Reflected rotor inertia: tau = Ia a."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dynid.arrays import Array
from dynid.parameters import Kind
from dynid.robot.effects.effect import JointwiseEffect, Motion

if TYPE_CHECKING:
    from dynid.robot.model import Joint


@dataclass(frozen=True)
class Armature(JointwiseEffect):
    """Reflected rotor inertia: tau = Ia a."""

    name: ClassVar[str] = "armature"
    symbol: ClassVar[str] = "Ia"
    kind: ClassVar[Kind] = "actuator"

    def unit(self, joint: Joint) -> str:
        return "kg" if joint.kind == "prismatic" else "kg m^2"

    def signals(self, motion: Motion) -> Array:
        return motion.acceleration
