"""Viscous friction that bends with speed: ``tau = sum_p f_p |v|^(p-1) v``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dynid.errors import InputError
from dynid.robot.effects.effect import FormulaMotion
from dynid.robot.effects.jointwise import Coefficient, JointwiseEffect
from dynid.robot.effects.mathematics import Mathematics, Value

HIGHEST_POWER = 6


@dataclass(frozen=True)
class ViscousPolynomial(JointwiseEffect):
    """Higher powers of speed beside linear viscous friction: ``tau = fvv |v| v + fvvv |v|^2 v + ..``, odd in speed.

    Args:
        powers: the powers of speed that have a column, each at least 2.

    Examples:
        >>> import dynid
        >>> dynid.demo_robot(effects=[dynid.Viscous(), dynid.ViscousPolynomial(powers=(3,))]).parameters.names[-1]
        'fvvv7'
    """

    name: ClassVar[str] = "viscous_polynomial"
    powers: tuple[int, ...] = (2, 3)

    def __post_init__(self) -> None:
        given = tuple(self.powers)
        whole = all(power == int(power) and 2 <= power <= HIGHEST_POWER for power in given)
        if not given or not whole or len(set(given)) != len(given):
            raise InputError(f"viscous polynomial has powers {given}, expected different ones from 2 to {HIGHEST_POWER}")
        object.__setattr__(self, "powers", tuple(int(power) for power in given))

    def coefficients(self) -> tuple[Coefficient, ...]:
        """Of either sign: friction that grows less than linearly bends downward."""
        return tuple(Coefficient("f" + "v" * power, f"N m (s/rad)^{power}") for power in self.powers)

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        size = abs(motion.velocity)
        return tuple(size ** (power - 1) * motion.velocity for power in self.powers)
