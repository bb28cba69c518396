"""Sigmoid friction of Gaz and others (2019, equation 25): smooth, saturating, zero at rest.

    tau = fsig (1 / (1 + exp(-slope (v + shift))) - 1 / (1 + exp(-slope shift)))

Where viscous friction is small it describes a joint with three numbers and no jump at zero speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dynid.robot.effects.effect import FormulaMotion
from dynid.robot.effects.jointwise import Coefficient, InnerNumber, JointwiseEffect
from dynid.robot.effects.mathematics import Mathematics, Value


@dataclass(frozen=True)
class Sigmoid(JointwiseEffect):
    """Sigmoid friction of Gaz and others (2019), with three numbers per joint: ``fsig`` (linear), ``slope`` and ``shift``.

    It runs from ``-fsig / (1 + exp(-slope shift))`` to ``fsig / (1 + exp(slope shift))``; dry friction of ``fsig / 2`` is nearest.

    Args:
        slope: phi2 of the paper, s/rad; one value, or a tuple with one per joint.
        shift: phi3 of the paper, rad/s; one value, or a tuple with one per joint.

    Examples:
        >>> import dynid
        >>> dynid.demo_robot(effects=[dynid.Sigmoid(slope=20.0)]).parameters.names[-1]
        'fsig7'
    """

    name: ClassVar[str] = "sigmoid"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("fsig", "N m", nonnegative=True, place="friction", share=0.5),)
    inner: ClassVar[tuple[InnerNumber, ...]] = (
        InnerNumber("slope", "s/rad", "positive", low=0.5, high=500.0),
        InnerNumber("shift", "rad/s", "any", low=-0.5, high=0.5, logarithmic=False),
    )
    slope: float | tuple[float, ...] = 10.0
    shift: float | tuple[float, ...] = 0.0

    @property
    def dry(self) -> bool:
        return True

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        # 1 / (1 + exp(-x)) = (1 + tanh(x / 2)) / 2, which does not overflow
        half = 0.5 * inner.slope
        return (0.5 * (m.tanh(half * (motion.velocity + inner.shift)) - m.tanh(half * inner.shift)),)
