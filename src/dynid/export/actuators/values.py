"""The numbers of one actuator, as every simulator's file is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.robot.effects import Armature, Coulomb, Viscous
from dynid.robot.model import Robot


@dataclass(frozen=True)
class JointActuator:
    """Drive, friction and rotor of one joint, SI units.

    Args:
        joint: its name.
        kp: position gain. kd: velocity gain. limit: largest torque, infinite where unknown.
        armature: rotor inertia. viscous, coulomb: friction. offset: constant torque against the drive.
        delay_s: from a command to its effect.
        turns: whether the joint turns; otherwise it slides.
        velocity: whether the drive is sent speeds: ``force = kd (ctrl - v)``.
    """

    joint: str
    kp: float
    kd: float
    limit: float
    armature: float
    viscous: float
    coulomb: float
    offset: float
    delay_s: float
    turns: bool = True
    velocity: bool = False

    @property
    def name(self) -> str:
        """Of the actuator in a file."""
        return f"{self.joint}_velocity" if self.velocity else f"{self.joint}_position"

    def ticks(self, step_s: float) -> int:
        """Delay in steps of a simulator."""
        return round(self.delay_s / step_s)


def simulated_robot(robot: Robot, actuators: tuple[JointActuator, ...]) -> Robot:
    """The robot with the friction and rotor inertia of its actuators, as a simulator's joints hold them."""
    values: dict[str, float] = {}
    for j, one in enumerate(actuators):
        values |= {f"Ia{j + 1}": one.armature, f"fv{j + 1}": one.viscous, f"fc{j + 1}": one.coulomb}
    return robot.with_effects((Viscous(), Coulomb(), Armature())).with_parameters(values)


def finite_limit(one: JointActuator) -> float | None:
    """The torque limit, None where there is none."""
    return one.limit if np.isfinite(one.limit) else None
