"""Coulomb friction that turns over smoothly: ``tau = fc tanh(v / W)`` with ``W^2 = width^2 + (time a)^2``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from dynid.robot.effects.effect import FormulaMotion
from dynid.robot.effects.jointwise import Coefficient
from dynid.robot.effects.mathematics import Mathematics, Value
from dynid.robot.effects.sign import SignEffect


@dataclass(frozen=True)
class SmoothCoulomb(SignEffect):
    """Coulomb friction with the smooth sign of :mod:`dynid.robot.effects.sign`, whose width and time a friction fit finds.

    Args:
        dead_zone: speed, rad/s or m/s, below which the column is zero; one value, or a tuple with one per joint.
        smooth_width: speed over which the sign changes, rad/s or m/s.
        smooth_time_s: time constant of the signal path, which delays the change of sign, s.
        slide_distance: travel over which the sign changes after a reversal, rad or m; a joint at rest keeps its friction.

    Examples:
        >>> import dynid, numpy as np
        >>> robot = dynid.demo_robot(effects=[dynid.SmoothCoulomb(smooth_width=0.1)]).with_parameters({"fc1": 2.0})
        >>> still, slow = np.zeros(7), np.array([0.1, 0, 0, 0, 0, 0, 0])
        >>> float(round(np.diff(dynid.inverse_dynamics(robot, [still] * 2, [still, slow], [still] * 2)[:, 0])[0], 3))
        1.523
    """

    name: ClassVar[str] = "smooth_coulomb"
    linear: ClassVar[tuple[Coefficient, ...]] = (Coefficient("fc", "N m", nonnegative=True, place="friction"),)

    def formula(self, m: Mathematics, motion: FormulaMotion, inner: Any) -> tuple[Value, ...]:
        return (self.sign(m, motion, inner),)
