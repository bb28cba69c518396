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
    """``tau = fcp max(sign(v), 0) + fcn min(sign(v), 0)``.

    Away from zero speed it is Coulomb friction with an offset, so it takes the place of both, and one of the two may be
    negative where the offset is larger than the friction.
    """

    name: ClassVar[str] = "asymmetric_coulomb"
    linear: ClassVar[tuple[Coefficient, ...]] = (
        Coefficient("fcp", "N m", place="friction", share=0.5),
        Coefficient("fcn", "N m", place="friction", share=0.5),
    )

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        sign = self.sign(m, motion, inner)
        return m.maximum(sign, 0.0), m.minimum(sign, 0.0)
