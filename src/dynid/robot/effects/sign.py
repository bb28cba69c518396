"""The sign of a speed as friction and filters leave it.

    sign_w(v, a) = tanh(v / W),    W^2 = width^2 + (time a)^2

``width`` is a property of the joint: friction turns over as the speed passes through zero, not at once. ``time`` is the
memory of the signal path: filtered torque steps over a fixed time, during which the speed changes by ``time a``, so a fast
reversal looks wider over speed than a slow one.

With a ``slide_distance`` the sign turns over a distance of travel instead, as elastic contacts do before they slide (Dahl 1968):

    sign_d(x) = sign(x) (1 - 2 exp(-|x| / distance)),    x the signed distance since the last reversal

A joint at rest keeps the friction of its last direction. Where no history is known (a state alone, generated code, a forward
simulation) joints count as sliding, with the smooth sign above.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.robot.effects.effect import Effect, FormulaMotion, NonlinearOption
from dynid.robot.effects.jointwise import InnerNumber, JointwiseEffect
from dynid.robot.effects.mathematics import Mathematics, Value

DEAD_ZONE = InnerNumber("dead_zone", "rad/s")
WIDTH = InnerNumber("smooth_width", "rad/s", low=1e-4, high=1.0)
TIME = InnerNumber("smooth_time_s", "s", low=1e-4, high=0.5)
DISTANCE = InnerNumber("slide_distance", "rad", low=2e-5, high=0.05)


def turning_sign(m: Mathematics, motion: FormulaMotion, width: Value, time: Value, dead_zone: Value) -> Value:
    """``sign_w(v, a)``, the sharp sign where width and time are zero, zero in the dead zone."""
    v = motion.velocity
    W = m.where(time > 0.0, lambda: m.sqrt(width * width + (time * motion.acceleration) ** 2), width)

    def smooth() -> Value:
        return m.tanh(v / W)

    sign = m.where(width > 0.0, smooth, lambda: m.where(W > 0.0, smooth, lambda: m.sign(v)))
    return m.where(dead_zone > 0.0, lambda: m.where(abs(v) < dead_zone, 0.0, sign), sign)


def sliding_sign(m: Mathematics, travel: Value, distance: Value) -> Value:
    """``sign_d(x)`` of the signed distance since the last reversal."""
    return m.sign(travel) * (1.0 - 2.0 * m.exp(-abs(travel) / distance))


@dataclass(frozen=True)
class TurningEffect(JointwiseEffect):
    """Options of every effect that turns with the sign of the speed and may jump there; a tuple gives one value per joint."""

    dead_zone: float | tuple[float, ...] = 0.0
    smooth_width: float | tuple[float, ...] = 0.02

    @property
    def dry(self) -> bool:
        return True

    @property
    def is_sharp(self) -> bool:
        return not np.any(np.asarray(self.smooth_width) > 0.0)

    def smoothed(self, widths: Array, *, at_least: bool = False) -> Effect:
        own = self.option_values("smooth_width", len(widths))
        new = np.maximum(own, widths) if at_least else np.where(own > 0.0, own, widths)
        return replace(self, smooth_width=tuple(new.tolist()), dead_zone=0.0)


@dataclass(frozen=True)
class SignEffect(TurningEffect):
    """Effects with the smooth sign of this module, whose width and time can be searched for.

    Near zero speed the sign is noise and, when the joint hardly reverses, collinear with the offset. ``dead_zone`` (rad/s or
    m/s) sets the sign to zero for slower motion; ``smooth_width`` (rad/s or m/s) and ``smooth_time_s`` make it smooth; both
    zero is the sharp sign.
    """

    inner: ClassVar[tuple[InnerNumber, ...]] = (DEAD_ZONE, WIDTH, TIME, DISTANCE)
    smooth_time_s: float | tuple[float, ...] = 0.0
    slide_distance: float | tuple[float, ...] = 0.0

    @property
    def remembers(self) -> bool:
        return bool(np.any(np.asarray(self.slide_distance) > 0.0))

    def nonlinear_options(self) -> tuple[NonlinearOption, ...]:
        """Where the sign turns over a distance, its width over speed is not searched for."""
        found = super().nonlinear_options()
        return tuple(one for one in found if one.name == DISTANCE.name) if self.remembers else found

    def sign(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> Value:
        """The smooth sign of the speed, or that of the last motion."""
        if self.remembers and motion.travel is not None:
            return sliding_sign(m, motion.travel, inner.slide_distance)
        return turning_sign(m, motion, inner.smooth_width, inner.smooth_time_s, inner.dead_zone)

    @property
    def is_sharp(self) -> bool:
        return super().is_sharp and not np.any(np.asarray(self.smooth_time_s) > 0.0)

    def without_memory(self) -> Effect:
        return replace(self, smooth_time_s=0.0)
