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
    """Coulomb friction, ``tau = fc sign(v)``.

    Near zero speed the measured sign is noise, and in a joint that hardly reverses the column is collinear with the offset.

    Args:
        dead_zone: speed, rad/s or m/s, below which the column is zero; one value, or a tuple with one per joint.
        smooth_width: speed, rad/s or m/s; where positive, ``tanh(v / smooth_width)`` replaces the sign.

    Neither is searched for; :class:`~dynid.robot.effects.SmoothCoulomb` has a width that is.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot(effects=[dynid.Viscous(), dynid.Coulomb(dead_zone=0.01)])
        >>> robot.parameters.names[-1]
        'fc7'
    """

    name: ClassVar[str] = "coulomb"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("fc", "N m", nonnegative=True, place="friction"),)
    inner: ClassVar[tuple[InnerNumber, ...]] = (DEAD_ZONE, InnerNumber("smooth_width", "rad/s"))
    smooth_width: float | tuple[float, ...] = 0.0

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        return (turning_sign(m, motion, inner.smooth_width, 0.0, inner.dead_zone),)
