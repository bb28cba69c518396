"""Coulomb friction: ``tau = fc sign(v)``, with a dead zone or a smooth sign near zero speed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.robot.effects.effect import JointwiseEffect, Motion

if TYPE_CHECKING:
    from dynid.robot.model import Joint


@dataclass(frozen=True)
class Coulomb(JointwiseEffect):
    """``tau = fc sign(v)``.

    Near zero speed the sign is noise and, when the joint hardly reverses, collinear with the offset. ``dead_zone`` (rad/s or
    m/s) sets the signal to zero for slower motion; ``smooth_width`` replaces the sign by ``tanh(v / width)``.
    A tuple gives one value per joint.
    """

    name: ClassVar[str] = "coulomb"
    symbol: ClassVar[str] = "fc"
    dead_zone: float | tuple[float, ...] = 0.0
    smooth_width: float | tuple[float, ...] = 0.0

    def __post_init__(self) -> None:
        for option in ("dead_zone", "smooth_width"):
            values = np.atleast_1d(getattr(self, option))
            if not (np.isfinite(values).all() and (values >= 0.0).all()):
                raise InputError(f"Coulomb {option} is {getattr(self, option)}, expected zero or positive numbers")

    def unit(self, joint: Joint) -> str:
        return "N" if joint.kind == "prismatic" else "N m"

    def signals(self, motion: Motion) -> Array:
        width, zone = np.asarray(self.smooth_width), np.asarray(self.dead_zone)
        v = motion.velocity
        if np.any(width > 0.0):
            smooth = np.tanh(v / np.where(width > 0.0, width, 1.0))
            sign = np.where(width > 0.0, smooth, np.sign(v))
        else:
            sign = np.sign(v)
        return np.where(np.abs(v) < zone, 0.0, sign) if np.any(zone > 0.0) else sign
