"""Reflected rotor inertia: ``tau = Ia a``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dynid.arrays import Array
from dynid.parameters import Kind
from dynid.robot.effects.effect import FormulaMotion, Motion
from dynid.robot.effects.jointwise import Coefficient, JointwiseEffect
from dynid.robot.effects.mathematics import Mathematics, Value


@dataclass(frozen=True)
class Armature(JointwiseEffect):
    """Reflected rotor inertia: ``tau = Ia a``.

    Examples:
        >>> import dynid
        >>> dynid.demo_robot(effects=[dynid.Armature()]).parameters.names[-1]
        'Ia7'
    """

    name: ClassVar[str] = "armature"
    kind: ClassVar[Kind] = "actuator"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("Ia", "kg m^2", nonnegative=True, place="armature"),)

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        return (motion.acceleration,)

    def momentum_signals(self, motion: Motion) -> Array:
        return motion.velocity

    def energy_signals(self, motion: Motion) -> Array:
        return 0.5 * motion.velocity**2
