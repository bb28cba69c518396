"""Coulomb friction that differs with the direction: ``tau = fcp`` forwards and ``-fcn`` backwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.robot.effects.effect import Motion
from dynid.robot.effects.sign import SignEffect

if TYPE_CHECKING:
    from dynid.robot.model import Joint


@dataclass(frozen=True)
class AsymmetricCoulomb(SignEffect):
    """``tau = fcp max(sign(v), 0) + fcn min(sign(v), 0)``.

    Away from zero speed it is Coulomb friction with an offset, so it takes the place of both.
    """

    name: ClassVar[str] = "asymmetric_coulomb"
    symbol: ClassVar[str] = "fcp"

    @property
    def symbols(self) -> tuple[str, ...]:
        return ("fcp", "fcn")

    def unit(self, joint: Joint) -> str:
        return "N" if joint.kind == "prismatic" else "N m"

    def signals(self, motion: Motion) -> Array:
        sign = self.sign(motion)
        return np.hstack([np.maximum(sign, 0.0), np.minimum(sign, 0.0)])

    def derivative(self, motion: Motion, option: str) -> Array:
        sign, change = self.sign(motion), self.sign_derivative(motion, option)
        return np.hstack([np.where(sign > 0.0, change, 0.0), np.where(sign < 0.0, change, 0.0)])
