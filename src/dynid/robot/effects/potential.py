"""A periodic potential of a joint's position as a Fourier series: any counterbalance, cogging, an unbalanced rotor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dynid.errors import InputError
from dynid.robot.effects.conservative import ConservativeEffect
from dynid.robot.effects.effect import FormulaMotion
from dynid.robot.effects.jointwise import Coefficient
from dynid.robot.effects.mathematics import Mathematics, Value

MOST_HARMONICS = 12


@dataclass(frozen=True)
class Potential(ConservativeEffect):
    """Torque of a periodic potential: ``tau = us sin(q) + uc cos(q) + uss sin(2 q) + ucc cos(2 q) + ..``.

    The first harmonic of a joint with a horizontal axis is also what gravity does; what data cannot tell apart is left to the
    base reduction.

    Args:
        harmonics: the harmonics that have columns.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot(effects=[dynid.effects.OnJoints(dynid.Potential(harmonics=(1, 2)), (2,))])
        >>> robot.parameters.names[-4:]
        ('us2', 'uss2', 'uc2', 'ucc2')
    """

    name: ClassVar[str] = "potential"
    harmonics: tuple[int, ...] = (1, 2, 3)

    def __post_init__(self) -> None:
        super().__post_init__()
        given = tuple(self.harmonics)
        whole = all(k == int(k) and 1 <= k <= MOST_HARMONICS for k in given)
        if not given or not whole or len(set(given)) != len(given):
            raise InputError(f"potential has harmonics {given}, expected different whole numbers from 1 to {MOST_HARMONICS}")
        object.__setattr__(self, "harmonics", tuple(int(k) for k in given))

    def coefficients(self) -> tuple[Coefficient, ...]:
        return tuple(Coefficient("u" + letter * k, "N m") for letter in "sc" for k in self.harmonics)

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        q = motion.position
        return (*(m.sin(float(k) * q) for k in self.harmonics), *(m.cos(float(k) * q) for k in self.harmonics))

    def potential(self, m: Mathematics, position: Value, inner: Any) -> tuple[Value, ...]:
        sines = (-m.cos(float(k) * position) / float(k) for k in self.harmonics)
        cosines = (m.sin(float(k) * position) / float(k) for k in self.harmonics)
        return (*sines, *cosines)
