"""Torque of cables and hoses that are twisted with a joint: an odd polynomial of its position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dynid.errors import InputError
from dynid.robot.effects.conservative import ConservativeEffect
from dynid.robot.effects.effect import FormulaMotion
from dynid.robot.effects.jointwise import Coefficient, InnerNumber
from dynid.robot.effects.mathematics import Mathematics, Value

HIGHEST_POWER = 9


@dataclass(frozen=True)
class Cable(ConservativeEffect):
    """Cable torque, odd about the position in which the cables are not twisted: ``tau = kc x + kccc x^3 + ..``, ``x = q - centre``.

    Args:
        powers: the odd powers that have a column.
        centre: position in which the cables are not twisted, rad or m; one value, or a tuple with one per joint.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot(effects=[dynid.effects.OnJoints(dynid.Cable(), (7,))])
        >>> robot.parameters.names[-2:]
        ('kc7', 'kccc7')
    """

    name: ClassVar[str] = "cable"
    inner: ClassVar[tuple[InnerNumber, ...]] = (InnerNumber("centre", "rad", "any"),)
    powers: tuple[int, ...] = (1, 3)
    centre: float | tuple[float, ...] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        given = tuple(self.powers)
        odd = all(power == int(power) and power % 2 == 1 and 1 <= power <= HIGHEST_POWER for power in given)
        if not given or not odd or len(set(given)) != len(given):
            raise InputError(f"cable torque has powers {given}, expected different odd ones from 1 to {HIGHEST_POWER}")
        object.__setattr__(self, "powers", tuple(int(power) for power in given))

    def coefficients(self) -> tuple[Coefficient, ...]:
        return tuple(Coefficient("k" + "c" * power, f"N m/rad^{power}" if power > 1 else "N m/rad") for power in self.powers)

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        x = motion.position - inner.centre
        return tuple(x**power for power in self.powers)

    def potential(self, m: Mathematics, position: Value, inner: Any) -> tuple[Value, ...]:
        x = position - inner.centre
        return tuple(x ** (power + 1) / (power + 1) for power in self.powers)
