"""Friction that grows with the torque a joint transmits: gear teeth and bearings rub in proportion to their load.

    tau = flc |load| sign(v) + flv |load| v

The load itself is not measured apart from friction; it is the torque that the rigid bodies need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.robot.effects.effect import JointwiseEffect, Motion, transmitted
from dynid.robot.effects.sign import SignEffect

if TYPE_CHECKING:
    from dynid.robot.model import Joint


@dataclass(frozen=True)
class LoadCoulomb(SignEffect):
    """``tau = flc |load| sign(v)``: Coulomb friction proportional to the transmitted torque."""

    name: ClassVar[str] = "load_coulomb"
    symbol: ClassVar[str] = "flc"
    needs_load: ClassVar[bool] = True

    def unit(self, joint: Joint) -> str:
        return "1"

    def signals(self, motion: Motion) -> Array:
        return np.abs(transmitted(motion, self.name)) * self.sign(motion)

    def derivative(self, motion: Motion, option: str) -> Array:
        return np.abs(transmitted(motion, self.name)) * self.sign_derivative(motion, option)


@dataclass(frozen=True)
class LoadViscous(JointwiseEffect):
    """``tau = flv |load| v``: viscous friction proportional to the transmitted torque."""

    name: ClassVar[str] = "load_viscous"
    symbol: ClassVar[str] = "flv"
    needs_load: ClassVar[bool] = True

    def unit(self, joint: Joint) -> str:
        return "s/m" if joint.kind == "prismatic" else "s/rad"

    def signals(self, motion: Motion) -> Array:
        return np.abs(transmitted(motion, self.name)) * motion.velocity
