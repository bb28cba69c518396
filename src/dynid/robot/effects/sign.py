"""The sign of a speed as friction and filters leave it.

    sign_w(v, a) = tanh(v / W),    W^2 = width^2 + (time a)^2

``width`` is a property of the joint: friction turns over as the speed passes through zero, not at once. ``time`` is the
memory of the signal path: filtered torque steps over a fixed time, during which the speed changes by ``time a``, so a fast
reversal looks wider over speed than a slow one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.robot.effects.effect import JointwiseEffect, Motion, NonlinearOption, check_option

WIDTH = NonlinearOption("smooth_width", 1e-4, 1.0)
TIME = NonlinearOption("smooth_time_s", 1e-4, 0.5)


@dataclass(frozen=True)
class SignEffect(JointwiseEffect):
    """Options of every effect that turns with the sign of the speed; a tuple gives one value per joint.

    Near zero speed the sign is noise and, when the joint hardly reverses, collinear with the offset. ``dead_zone`` (rad/s or
    m/s) sets the sign to zero for slower motion; ``smooth_width`` (rad/s or m/s) and ``smooth_time_s`` make it smooth; both
    zero is the sharp sign.
    """

    dead_zone: float | tuple[float, ...] = 0.0
    smooth_width: float | tuple[float, ...] = 0.02
    smooth_time_s: float | tuple[float, ...] = 0.0

    def __post_init__(self) -> None:
        for option in ("dead_zone", "smooth_width", "smooth_time_s"):
            check_option(self, option)

    def nonlinear_options(self) -> tuple[NonlinearOption, ...]:
        """The smoothing options that are in use: a sharp sign stays sharp."""
        return tuple(option for option in (WIDTH, TIME) if np.all(np.asarray(getattr(self, option.name)) > 0.0))

    def sign(self, motion: Motion) -> Array:
        """``sign_w(v, a)``, zero in the dead zone."""
        v, scale = motion.velocity, self._scale(motion)
        if scale is None:
            return self._outside_dead_zone(v, np.sign(v))
        smooth = np.tanh(v / np.where(scale > 0.0, scale, 1.0))
        return self._outside_dead_zone(v, np.where(scale > 0.0, smooth, np.sign(v)))

    def sign_derivative(self, motion: Motion, option: str) -> Array:
        """Change of the sign with ``smooth_width`` or ``smooth_time_s``: ``-(1 - tanh^2) v / W^2 dW``."""
        v, scale = motion.velocity, self._scale(motion)
        if scale is None:
            return np.zeros_like(v)
        W = np.where(scale > 0.0, scale, 1.0)
        if option == WIDTH.name:
            dW = np.broadcast_to(np.asarray(self.smooth_width), v.shape) / W
        else:
            dW = np.asarray(self.smooth_time_s) * motion.acceleration**2 / W
        change = np.where(scale > 0.0, -(1.0 - np.tanh(v / W) ** 2) * v / W**2 * dW, 0.0)
        return self._outside_dead_zone(v, change)

    def _scale(self, motion: Motion) -> Array | None:
        width, time = np.asarray(self.smooth_width), np.asarray(self.smooth_time_s)
        if not (np.any(width > 0.0) or np.any(time > 0.0)):
            return None
        return np.asarray(np.hypot(np.broadcast_to(width, motion.velocity.shape), time * motion.acceleration))

    def _outside_dead_zone(self, v: Array, values: Array) -> Array:
        zone = np.asarray(self.dead_zone)
        return np.where(np.abs(v) < zone, 0.0, values) if np.any(zone > 0.0) else values
