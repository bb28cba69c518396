"""Effects that are linear in the motion.

viscous     tau = fv v                      bent by higher powers: tau = sum_p f_p |v|^(p-1) v
offset      tau = fo                        of a sensor or a current, or asymmetric Coulomb friction
armature    tau = Ia a                      reflected rotor inertia
load        tau = flv |load| v              gear teeth and bearings rub in proportion to the torque that they transmit
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.model.effects.effect import Motion
from dynid.model.effects.jointwise import Coefficient, JointwiseEffect, distinct_whole
from dynid.model.effects.mathematics import Mathematics, Value
from dynid.model.parameters import Kind


@dataclass(frozen=True)
class Viscous(JointwiseEffect):
    """Viscous friction: ``tau = fv v``.

    Examples:
        >>> import dynid
        >>> dynid.demo_robot(effects=[dynid.Viscous()]).parameters.units[-1]
        'N m s/rad'
    """

    name: ClassVar[str] = "viscous"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("fv", "N m s/rad", nonnegative=True, place="damping"),)

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        return (motion.velocity,)


HIGHEST_POWER = 6


@dataclass(frozen=True)
class ViscousPolynomial(JointwiseEffect):
    """Higher powers of speed beside linear viscous friction: ``tau = fvv |v| v + fvvv |v|^2 v + ..``, odd in speed.

    Args:
        powers: the powers of speed that have a column, each at least 2.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.linear import ViscousPolynomial
        >>> dynid.demo_robot(effects=[dynid.Viscous(), ViscousPolynomial(powers=(3,))]).parameters.names[-1]
        'fvvv7'
    """

    name: ClassVar[str] = "viscous_polynomial"
    powers: tuple[int, ...] = (2, 3)

    def __post_init__(self) -> None:
        expected = f"different ones from 2 to {HIGHEST_POWER}"
        powers = distinct_whole("viscous polynomial has powers", self.powers, range(2, HIGHEST_POWER + 1), expected)
        object.__setattr__(self, "powers", powers)

    def coefficients(self) -> tuple[Coefficient, ...]:
        """Of either sign: friction that grows less than linearly bends downward."""
        return tuple(Coefficient("f" + "v" * power, f"N m (s/rad)^{power}") for power in self.powers)

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        size = abs(motion.velocity)
        return tuple(size ** (power - 1) * motion.velocity for power in self.powers)


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

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        return (1.0,)

    def energy_signals(self, motion: Motion) -> Array:
        return np.asarray(motion.position)


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

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        return (motion.acceleration,)

    def momentum_signals(self, motion: Motion) -> Array:
        return np.asarray(motion.velocity)

    def energy_signals(self, motion: Motion) -> Array:
        return np.asarray(0.5 * motion.velocity**2)


@dataclass(frozen=True)
class LoadViscous(JointwiseEffect):
    """Viscous friction proportional to the transmitted torque: ``tau = flv |load| v``; of either sign beside ``fv``.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.linear import LoadViscous
        >>> dynid.demo_robot(effects=[dynid.Viscous(), LoadViscous()]).parameters.names[-1]
        'flv7'
    """

    name: ClassVar[str] = "load_viscous"
    needs_load: ClassVar[bool] = True
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("flv", "s/rad"),)

    def formula(self, m: Mathematics, motion: Motion, theta: Any) -> tuple[Value, ...]:
        return (abs(motion.load) * motion.velocity,)
