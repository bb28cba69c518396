"""The whole torque of an exported file against that of the identified robot: what the format cannot hold of its joints.

The proof of a file compares what the format holds, rigid bodies first of all. Offsets, Stribeck or load-dependent friction have no
place in most formats, and a simulator that loads the file lacks their torque: that difference is measured here, joint by joint.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.estimation.friction.fit import with_transmitted_load
from dynid.export.simulator_joint import as_held
from dynid.recording.samples import Samples
from dynid.regression.random_states import random_states_within_limits
from dynid.regression.torque import inverse_dynamics
from dynid.robot.effects import Place
from dynid.robot.model import Robot

URDF_PLACES: tuple[Place, ...] = ("damping", "friction")
"""What the joints of URDF and SDF hold."""


@dataclass(frozen=True)
class JointDifference:
    """Root mean square of the torque that a file lacks at one joint, and of the whole torque there, N m or N."""

    joint: str
    difference: float
    torque: float

    @property
    def relative(self) -> float:
        return self.difference / self.torque if self.torque > 0.0 else 0.0

    def as_dict(self) -> dict[str, Any]:
        return {"joint": self.joint, "difference": self.difference, "torque": self.torque, "relative": self.relative}


def total_difference(
    robot: Robot, places: Collection[Place] | None, held: Robot | None = None, n_states: int = 400, seed: int = 0
) -> tuple[JointDifference, ...]:
    """Per joint, over random states within the limits; nothing for a format without joints of its own and for a floating base.

    ``held`` is the robot that was written, where that is another than what the joints hold of ``robot`` effect by effect.
    """
    if places is None or robot.floating or robot.loops:
        return ()
    q, v, a = random_states_within_limits(robot, n_states, seed)
    states = Samples(time=np.arange(float(n_states)), position=q, velocity=v, acceleration=a)
    load = with_transmitted_load(robot, states).load
    whole = inverse_dynamics(robot, q, v, a, load)
    lacking = whole - inverse_dynamics(as_held(held or robot, places), q, v, a)
    return tuple(
        JointDifference(name, float(np.sqrt((lacking[:, k] ** 2).mean())), float(np.sqrt((whole[:, k] ** 2).mean())))
        for k, name in enumerate(robot.joint_names)
    )
