"""Friction that drives no joint: ``v tau_odd(v) >= 0`` over the speeds of the robot, see :mod:`dynid.robot.passivity`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dynid.estimation.constraints.rows import Rows, rows_of
from dynid.estimation.convex.layout import Layout
from dynid.robot.model import Robot
from dynid.robot.passivity import FrictionReach, PassivityRows, passivity_of


@dataclass(frozen=True, eq=False)
class PassiveFriction:
    """The friction of every joint, all its effects together, takes energy at every speed.

    Where signs of the single values say so already, nothing is added.
    """

    kind: ClassVar[str] = "passive"
    condition: PassivityRows

    @classmethod
    def of(cls, robot: Robot, samples: Iterable[Any] = ()) -> PassiveFriction:
        """Over the velocity limits of a robot and the speeds and loads of these samples."""
        return cls(passivity_of(robot, FrictionReach.of(robot, samples), implied=False))

    def rows(self, layout: Layout) -> tuple[Rows, ...]:
        if not len(self.condition):
            return ()
        known = np.array([layout.index(name) for name in self.condition.names])
        found = []
        for joint in dict.fromkeys(self.condition.joint):
            own = self.condition.G[[name == joint for name in self.condition.joint]]
            used = np.flatnonzero(np.abs(own).max(axis=0) > 0.0)
            found.append(rows_of("nonnegative", f"friction of {joint} drives it nowhere", known[used], own[:, used]))
        return tuple(found)
