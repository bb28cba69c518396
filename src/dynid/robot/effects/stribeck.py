"""Stribeck friction: what a slow joint needs beyond Coulomb friction, fading as the speed grows.

    tau = fs / (1 + (|v| / vs)^n) sign(v)     rational (Hess and Soom 1990)
    tau = fs exp(-(|v| / vs)^n) sign(v)       exponential (Bo and Pavelescu 1982)

The two hardly differ near ``vs``; the rational one has a tail, so that fast motion shows something of it too.

A peak narrower than the turn of the sign would hardly show, and its ``fs`` could be anything: ``vs`` counts as no less than the
width of that turn.
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
    """Additional friction at low speed, beside Coulomb friction: ``tau = fs fade(|v| / stribeck_speed) sign(v)``.

    Every number is one value, or a tuple with one per joint.

    Args:
        dead_zone: speed, rad/s or m/s, below which the column is zero.
        smooth_width: speed over which the sign changes, rad/s or m/s.
        smooth_time_s: time constant of the signal path, s.
        slide_distance: travel over which the sign changes after a reversal, rad or m; a joint at rest keeps its friction.
        stribeck_speed: speed, rad/s or m/s, at which the additional friction has faded; at least ``smooth_width``.
        stribeck_exponent: exponent of the fading.
        form: ``rational`` for ``1 / (1 + x^n)``, ``exponential`` for ``exp(-x^n)``.

    Examples:
        >>> import dynid
        >>> dynid.demo_robot(effects=[dynid.Coulomb(), dynid.Stribeck(stribeck_speed=0.05)]).parameters.names[-1]
        'fs7'
    """

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
        speed = m.maximum(inner.stribeck_speed, inner.smooth_width)
        x, n = abs(motion.velocity) / speed, inner.stribeck_exponent
        power = m.where(n == 2.0, lambda: x * x, lambda: x**n)
        fade = 1.0 / (1.0 + power) if self.form == "rational" else m.exp(-power)
        return (fade * self.sign(m, motion, inner),)
