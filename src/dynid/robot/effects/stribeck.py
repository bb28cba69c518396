"""Stribeck friction: what a slow joint needs beyond Coulomb friction, fading as the speed grows.

    tau = fs / (1 + (|v| / vs)^n) sign(v)     rational (Hess and Soom 1990)
    tau = fs exp(-(|v| / vs)^n) sign(v)       exponential (Bo and Pavelescu 1982)

The two hardly differ near ``vs``; the rational one has a tail, so that fast motion shows something of it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from dynid.errors import UnknownNameError
from dynid.robot.effects.effect import FormulaMotion
from dynid.robot.effects.jointwise import Coefficient, InnerNumber
from dynid.robot.effects.mathematics import Mathematics, Value
from dynid.robot.effects.sign import SignEffect

FORMS = ("rational", "exponential")


@dataclass(frozen=True)
class Stribeck(SignEffect):
    """``tau = fs fade(|v| / stribeck_speed) sign(v)``, beside Coulomb friction; a tuple gives one value per joint."""

    name: ClassVar[str] = "stribeck"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("fs", "N m", nonnegative=True),)
    inner: ClassVar[tuple[InnerNumber, ...]] = (
        *SignEffect.inner,
        InnerNumber("stribeck_speed", "rad/s", "positive", low=5e-3, high=5.0),
        InnerNumber("stribeck_exponent", "1", "positive"),
    )
    stribeck_speed: float | tuple[float, ...] = 0.1
    stribeck_exponent: float | tuple[float, ...] = 2.0
    form: Literal["rational", "exponential"] = "rational"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.form not in FORMS:
            raise UnknownNameError("form of Stribeck friction", self.form, FORMS)

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        x, n = abs(motion.velocity) / inner.stribeck_speed, inner.stribeck_exponent
        power = m.where(n == 2.0, lambda: x * x, lambda: x**n)
        fade = 1.0 / (1.0 + power) if self.form == "rational" else m.exp(-power)
        return (fade * self.sign(m, motion, inner),)
