"""Sigmoid friction of Gaz and others (2019, equation 25): smooth, saturating, zero at rest.

    tau = fsig (1 / (1 + exp(-slope (v + shift))) - 1 / (1 + exp(-slope shift)))

Where viscous friction is small it describes a joint with three numbers and no jump at zero speed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.robot.effects.effect import JointwiseEffect, Motion, NonlinearOption, check_option

if TYPE_CHECKING:
    from dynid.robot.model import Joint

SLOPE = NonlinearOption("slope", 0.5, 500.0)
SHIFT = NonlinearOption("shift", -0.5, 0.5, logarithmic=False)


@dataclass(frozen=True)
class Sigmoid(JointwiseEffect):
    """The three numbers of a joint: ``fsig`` (phi1, linear), ``slope`` (phi2, s/rad) and ``shift`` (phi3, rad/s)."""

    name: ClassVar[str] = "sigmoid"
    symbol: ClassVar[str] = "fsig"
    slope: float | tuple[float, ...] = 10.0
    shift: float | tuple[float, ...] = 0.0

    def __post_init__(self) -> None:
        check_option(self, "slope", positive=True)
        if not np.isfinite(np.asarray(self.shift)).all():
            raise InputError(f"Sigmoid shift is {self.shift}, expected finite numbers")

    def unit(self, joint: Joint) -> str:
        return "N" if joint.kind == "prismatic" else "N m"

    def nonlinear_options(self) -> tuple[NonlinearOption, ...]:
        return SLOPE, SHIFT

    def signals(self, motion: Motion) -> Array:
        slope, shift = np.asarray(self.slope), np.asarray(self.shift)
        return _logistic(slope * (motion.velocity + shift)) - _logistic(slope * shift)

    def derivative(self, motion: Motion, option: str) -> Array:
        slope, shift = np.asarray(self.slope), np.asarray(self.shift)
        x = motion.velocity + shift
        steep, at_rest = _bell(slope * x), _bell(slope * shift)
        if option == SLOPE.name:
            return np.asarray(x * steep - shift * at_rest)
        return np.asarray(slope * (steep - at_rest))


def _logistic(x: Array) -> Array:
    """``1 / (1 + exp(-x))`` without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


def _bell(x: Array) -> Array:
    """Its derivative."""
    return np.asarray(0.25 * (1.0 - np.tanh(0.5 * x) ** 2))
