"""Coulomb friction that differs with the direction: ``tau = fcp`` forwards and ``-fcn`` backwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dynid.robot.effects.effect import FormulaMotion
from dynid.robot.effects.jointwise import Coefficient
from dynid.robot.effects.mathematics import Mathematics, Value
from dynid.robot.effects.sign import SignEffect


@dataclass(frozen=True)
class AsymmetricCoulomb(SignEffect):
    """Coulomb friction that differs by direction: ``tau = fcp max(sign(v), 0) + fcn min(sign(v), 0)``.

    Away from zero speed it equals Coulomb friction with an offset, so it replaces both; one of the two values may be negative
    where the offset is larger than the friction.

    Args:
        dead_zone: speed, rad/s or m/s, below which the columns are zero; one value, or a tuple with one per joint.
        smooth_width: speed over which the sign changes, rad/s or m/s.
        smooth_time_s: time constant of the signal path, s.
        slide_distance: travel over which the sign changes after a reversal, rad or m; a joint at rest keeps its friction.

    Examples:
        >>> import dynid
        >>> dynid.demo_robot(effects=[dynid.AsymmetricCoulomb()]).parameters.names[-1]
        'fcn7'
    """

    name: ClassVar[str] = "asymmetric_coulomb"
    linear: ClassVar[tuple[Coefficient, ...]] = (
        Coefficient("fcp", "N m", place="friction", share=0.5),
        Coefficient("fcn", "N m", place="friction", share=0.5),
    )

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        sign = self.sign(m, motion, inner)
        return m.maximum(sign, 0.0), m.minimum(sign, 0.0)
