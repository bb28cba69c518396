"""Viscous friction that bends with speed: ``tau = sum_p f_p |v|^(p-1) v``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.robot.effects.effect import JointwiseEffect, Motion

if TYPE_CHECKING:
    from dynid.robot.model import Joint

HIGHEST_POWER = 6


@dataclass(frozen=True)
class ViscousPolynomial(JointwiseEffect):
    """``tau = fvv |v| v + fvvv |v|^2 v + ..`` for the powers chosen, beside linear viscous friction; odd in speed."""

    name: ClassVar[str] = "viscous_polynomial"
    symbol: ClassVar[str] = "fvv"
    powers: tuple[int, ...] = (2, 3)

    def __post_init__(self) -> None:
        given = tuple(self.powers)
        whole = all(power == int(power) and 2 <= power <= HIGHEST_POWER for power in given)
        if not given or not whole or len(set(given)) != len(given):
            raise InputError(f"viscous polynomial has powers {given}, expected different ones from 2 to {HIGHEST_POWER}")
        object.__setattr__(self, "powers", tuple(int(power) for power in given))

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple("f" + "v" * power for power in self.powers)

    def unit(self, joint: Joint) -> str:
        return self.unit_of(self.symbols[0], joint)

    def unit_of(self, symbol: str, joint: Joint) -> str:
        power = len(symbol) - 1
        return f"N (s/m)^{power}" if joint.kind == "prismatic" else f"N m (s/rad)^{power}"

    def signals(self, motion: Motion) -> Array:
        v = motion.velocity
        return np.hstack([np.abs(v) ** (power - 1) * v for power in self.powers])
