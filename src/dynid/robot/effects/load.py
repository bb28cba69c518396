"""Friction that grows with the torque a joint transmits: gear teeth and bearings rub in proportion to their load.

    tau = flc |load| sign(v) + flv |load| v

The load itself is not measured apart from friction; it is the torque that the rigid bodies need.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dynid.robot.effects.effect import FormulaMotion
from dynid.robot.effects.jointwise import Coefficient, JointwiseEffect
from dynid.robot.effects.mathematics import Mathematics, Value
from dynid.robot.effects.sign import SignEffect


@dataclass(frozen=True)
class LoadCoulomb(SignEffect):
    """Coulomb friction proportional to the transmitted torque: ``tau = flc |load| sign(v)``.

    Args:
        dead_zone: speed, rad/s or m/s, below which the column is zero; one value, or a tuple with one per joint.
        smooth_width: speed over which the sign changes, rad/s or m/s.
        smooth_time_s: time constant of the signal path, s.
        slide_distance: travel over which the sign changes after a reversal, rad or m; a joint at rest keeps its friction.

    Examples:
        >>> import dynid
        >>> dynid.demo_robot(effects=[dynid.LoadCoulomb()]).parameters.names[-1]
        'flc7'
    """

    name: ClassVar[str] = "load_coulomb"
    needs_load: ClassVar[bool] = True
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("flc", "1", nonnegative=True),)

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        return (abs(motion.load) * self.sign(m, motion, inner),)


@dataclass(frozen=True)
class LoadViscous(JointwiseEffect):
    """Viscous friction proportional to the transmitted torque: ``tau = flv |load| v``; of either sign beside ``fv``.

    Examples:
        >>> import dynid
        >>> dynid.demo_robot(effects=[dynid.Viscous(), dynid.LoadViscous()]).parameters.names[-1]
        'flv7'
    """

    name: ClassVar[str] = "load_viscous"
    needs_load: ClassVar[bool] = True
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("flv", "s/rad"),)

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        return (abs(motion.load) * motion.velocity,)
