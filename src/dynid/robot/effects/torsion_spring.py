"""Torsion spring: ``tau = ks (q - rest)``, with the rest position given or found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dynid.robot.effects.conservative import ConservativeEffect
from dynid.robot.effects.effect import FormulaMotion
from dynid.robot.effects.jointwise import Coefficient, InnerNumber
from dynid.robot.effects.mathematics import Mathematics, Value

_STIFFNESS = Coefficient("ks", "N m/rad", nonnegative=True)
_AT_ZERO = Coefficient("kr", "N m")


@dataclass(frozen=True)
class TorsionSpring(ConservativeEffect):
    """A spring in a joint, ``tau = ks (q - rest_angle)``.

    Where the rest angle is to be found it is linear too: ``tau = ks q + kr``, with ``rest = -kr / ks``; an offset of the same
    joint cannot be told from ``kr``.

    Args:
        rest_angle: position without torque, rad or m; one value, or a tuple with one per joint.
        find_rest: find the rest position as a coefficient of its own; ``rest_angle`` is then where it is counted from.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot(effects=[dynid.effects.OnJoints(dynid.TorsionSpring(rest_angle=0.5), (2,))])
        >>> robot.parameters.names[-1], robot.parameters.units[-1]
        ('ks2', 'N m/rad')
    """

    name: ClassVar[str] = "torsion_spring"
    linear: ClassVar[tuple[Coefficient, ...]] = (_STIFFNESS,)
    inner: ClassVar[tuple[InnerNumber, ...]] = (InnerNumber("rest_angle", "rad", "any"),)
    rest_angle: float | tuple[float, ...] = 0.0
    find_rest: bool = False

    def coefficients(self) -> tuple[Coefficient, ...]:
        return (_STIFFNESS, _AT_ZERO) if self.find_rest else (_STIFFNESS,)

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        turned = motion.position - inner.rest_angle
        return (turned, 1.0) if self.find_rest else (turned,)

    def potential(self, m: Mathematics, position: Value, inner: Any) -> tuple[Value, ...]:
        turned = position - inner.rest_angle
        return (0.5 * turned * turned, turned) if self.find_rest else (0.5 * turned * turned,)
