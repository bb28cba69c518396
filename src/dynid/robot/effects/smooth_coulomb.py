"""Coulomb friction that turns over smoothly: ``tau = fc tanh(v / W)`` with ``W^2 = width^2 + (time a)^2``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dynid.arrays import Array
from dynid.robot.effects.effect import Motion
from dynid.robot.effects.sign import SignEffect

if TYPE_CHECKING:
    from dynid.robot.model import Joint


@dataclass(frozen=True)
class SmoothCoulomb(SignEffect):
    """Coulomb friction with the smooth sign of :mod:`dynid.robot.effects.sign`, whose width and time can be searched for."""

    name: ClassVar[str] = "smooth_coulomb"
    symbol: ClassVar[str] = "fc"

    def unit(self, joint: Joint) -> str:
        return "N" if joint.kind == "prismatic" else "N m"

    def signals(self, motion: Motion) -> Array:
        return self.sign(motion)

    def derivative(self, motion: Motion, option: str) -> Array:
        return self.sign_derivative(motion, option)
