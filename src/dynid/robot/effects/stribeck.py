"""Stribeck friction: what a slow joint needs beyond Coulomb friction, fading as the speed grows.

    tau = fs / (1 + (|v| / vs)^n) sign(v)     rational (Hess and Soom 1990)
    tau = fs exp(-(|v| / vs)^n) sign(v)       exponential (Bo and Pavelescu 1982)

The two hardly differ near ``vs``; the rational one has a tail, so that fast motion shows something of it too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import UnknownNameError
from dynid.robot.effects.effect import Motion, NonlinearOption, check_option
from dynid.robot.effects.sign import SignEffect

if TYPE_CHECKING:
    from dynid.robot.model import Joint

SPEED = NonlinearOption("stribeck_speed", 5e-3, 5.0)
FORMS = ("rational", "exponential")


@dataclass(frozen=True)
class Stribeck(SignEffect):
    """``tau = fs fade(|v| / stribeck_speed) sign(v)``, beside Coulomb friction; a tuple gives one value per joint."""

    name: ClassVar[str] = "stribeck"
    symbol: ClassVar[str] = "fs"
    stribeck_speed: float | tuple[float, ...] = 0.1
    stribeck_exponent: float | tuple[float, ...] = 2.0
    form: Literal["rational", "exponential"] = "rational"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.form not in FORMS:
            raise UnknownNameError("form of Stribeck friction", self.form, FORMS)
        for option in ("stribeck_speed", "stribeck_exponent"):
            check_option(self, option, positive=True)

    def unit(self, joint: Joint) -> str:
        return "N" if joint.kind == "prismatic" else "N m"

    def nonlinear_options(self) -> tuple[NonlinearOption, ...]:
        return (*super().nonlinear_options(), SPEED)

    def signals(self, motion: Motion) -> Array:
        return np.asarray(self._fade(motion) * self.sign(motion))

    def derivative(self, motion: Motion, option: str) -> Array:
        fade = self._fade(motion)
        if option != SPEED.name:
            return np.asarray(fade * self.sign_derivative(motion, option))
        # with y = x^n and x = |v| / vs: d fade / d vs = -fade'(y) n y / vs
        change = fade**2 if self.form == "rational" else fade
        n, speed = np.asarray(self.stribeck_exponent), np.asarray(self.stribeck_speed)
        return np.asarray(change * n / speed * self._power(motion) * self.sign(motion))

    def _power(self, motion: Motion) -> Array:
        x = np.abs(motion.velocity) / np.asarray(self.stribeck_speed)
        return np.asarray(x ** np.asarray(self.stribeck_exponent))

    def _fade(self, motion: Motion) -> Array:
        power = self._power(motion)
        return np.asarray(1.0 / (1.0 + power) if self.form == "rational" else np.exp(-power))
