"""Viscous friction: ``tau = fv v``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dynid.robot.effects.effect import FormulaMotion
from dynid.robot.effects.jointwise import Coefficient, JointwiseEffect
from dynid.robot.effects.mathematics import Mathematics, Value


@dataclass(frozen=True)
class Viscous(JointwiseEffect):
    """Viscous friction: ``tau = fv v``.

    Examples:
        >>> import dynid
        >>> dynid.demo_robot(effects=[dynid.Viscous()]).parameters.units[-1]
        'N m s/rad'
    """

    name: ClassVar[str] = "viscous"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("fv", "N m s/rad", nonnegative=True, place="damping"),)

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        return (motion.velocity,)
