"""Coulomb friction that turns over smoothly: ``tau = fc tanh(v / W)`` with ``W^2 = width^2 + (time a)^2``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dynid.robot.effects.effect import FormulaMotion
from dynid.robot.effects.jointwise import Coefficient
from dynid.robot.effects.mathematics import Mathematics, Value
from dynid.robot.effects.sign import SignEffect


@dataclass(frozen=True)
class SmoothCoulomb(SignEffect):
    """Coulomb friction with the smooth sign of :mod:`dynid.robot.effects.sign`, whose width and time can be searched for."""

    name: ClassVar[str] = "smooth_coulomb"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("fc", "N m", nonnegative=True, place="friction"),)

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        return (self.sign(m, motion, inner),)
