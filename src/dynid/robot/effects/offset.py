"""Constant torque: ``tau = fo``, a sensor or current offset or asymmetric Coulomb friction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dynid.arrays import Array
from dynid.robot.effects.effect import FormulaMotion, Motion
from dynid.robot.effects.jointwise import Coefficient, JointwiseEffect
from dynid.robot.effects.mathematics import Mathematics, Value


@dataclass(frozen=True)
class Offset(JointwiseEffect):
    """Constant torque, ``tau = fo``: offset of a sensor or of a current, or the difference of Coulomb friction in both directions.

    Examples:
        >>> import dynid
        >>> dynid.demo_robot(effects=[dynid.Offset()]).parameters.names[-1]
        'fo7'
    """

    name: ClassVar[str] = "offset"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("fo", "N m"),)

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        return (1.0,)

    def energy_signals(self, motion: Motion) -> Array:
        return motion.position
