"""Logs of an arm whose encoders and torque sensors are wrong by known values; the torque is Pinocchio's."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pinocchio

import dynid
from dynid.arrays import Array
from dynid.dynamics.pinocchio_model import pinocchio_model
from dynid.io.demo import demo_robot, demo_samples
from dynid.model.robot import Robot
from dynid.signals.samples import Samples

JOINTS = 4
NOISE = 0.01
"""Of torque, part of its standard deviation."""


@dataclass(frozen=True, eq=False)
class WrongSensors:
    """An arm, what its sensors are wrong by, and samples that they made."""

    robot: Robot
    zero: Array
    gain: Array
    offset: Array
    samples: tuple[Samples, ...]

    def true(self, quantity: str, joint: int) -> float:
        return float(getattr(self, quantity)[joint])

    def recording(self, log: int = 0) -> dynid.Recording:
        one = self.samples[log]
        return dynid.Recording(
            time=one.time,
            position=one.position,
            velocity=one.velocity,
            torque=one.torque,
            joint_names=self.robot.joint_names,
        )


def arm() -> Robot:
    whole = demo_robot(effects=("viscous", "offset"))
    return whole.only(whole.joint_names[:JOINTS])


def wrong_sensors(
    seed: int, *, zero: bool = False, gain: bool = False, offset: bool = False, seconds: float = 10.0
) -> WrongSensors:
    """Two logs with errors of up to 5 degrees, 10 % and 1 N m; the gain of the second joint is right."""
    rng, robot = np.random.default_rng(seed), arm()
    z = np.deg2rad(rng.uniform(-5.0, 5.0, JOINTS)) * zero
    g = 1.0 + rng.uniform(-0.1, 0.1, JOINTS) * gain
    g[1] = 1.0
    f = rng.uniform(-1.0, 1.0, JOINTS) * offset
    model = pinocchio_model(robot)
    data, logs = model.createData(), []
    for k in range(2):
        one = demo_samples(robot, seconds=seconds, rate_hz=100.0, seed=2 * seed + k)
        motion = zip(one.position, one.velocity, one.acceleration, strict=True)
        torque = np.array([pinocchio.rnea(model, data, *row) for row in motion]) + 0.8 * one.velocity
        read = g * (torque + f)
        read += NOISE * read.std(axis=0) * rng.normal(size=read.shape)
        logs.append(replace(one, position=one.position + z).with_torque(read))
    return WrongSensors(robot, z, g, f, tuple(logs))
