"""Coulomb friction: ``tau = fc sign(v)``, with a dead zone or a smooth sign near zero speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dynid.robot.effects.effect import FormulaMotion
from dynid.robot.effects.jointwise import Coefficient, InnerNumber
from dynid.robot.effects.mathematics import Mathematics, Value
from dynid.robot.effects.sign import DEAD_ZONE, TurningEffect, turning_sign


@dataclass(frozen=True)
class Coulomb(TurningEffect):
    """``tau = fc sign(v)``.

    Near zero speed the sign is noise and, when the joint hardly reverses, collinear with the offset. ``dead_zone`` (rad/s or
    m/s) sets the signal to zero for slower motion; ``smooth_width`` replaces the sign by ``tanh(v / width)``.
    A tuple gives one value per joint. Neither is searched for; :class:`~dynid.robot.effects.SmoothCoulomb` is for that.
    """

    name: ClassVar[str] = "coulomb"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("fc", "N m", nonnegative=True, place="friction"),)
    inner: ClassVar[tuple[InnerNumber, ...]] = (DEAD_ZONE, InnerNumber("smooth_width", "rad/s"))
    smooth_width: float | tuple[float, ...] = 0.0

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        return (turning_sign(m, motion, inner.smooth_width, 0.0, inner.dead_zone),)
