"""Constant torque: tau = fo, a sensor or current offset or asymmetric Coulomb friction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.parameters import Kind
from dynid.robot.effects.effect import JointwiseEffect, Motion

if TYPE_CHECKING:
    from dynid.robot.model import Joint


@dataclass(frozen=True)
class Offset(JointwiseEffect):
    """Constant torque: tau = fo, a sensor or current offset or asymmetric Coulomb friction."""

    name: ClassVar[str] = "offset"
    symbol: ClassVar[str] = "fo"
    kind: ClassVar[Kind] = "friction"

    def unit(self, joint: Joint) -> str:
        return "N" if joint.kind == "prismatic" else "N m"

    def signals(self, motion: Motion) -> Array:
        return np.ones_like(motion.velocity)
