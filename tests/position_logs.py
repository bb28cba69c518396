"""Logs of position-controlled joints whose truth is known: simulated in fine steps, delayed, quantised."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.apps.actuators.linear import actuator_robot
from dynid.apps.actuators.model import ActuatorLog, ActuatorModel
from dynid.arrays import Array
from dynid.dynamics.position_loop import simulate_commands
from dynid.io.demo import demo_robot
from dynid.model.robot import Robot
from dynid.signals.commands import Command, PositionControl

DELAY_S = 0.012
TRUTH = {"Ia": [0.4, 0.3, 0.2], "fv": [4.0, 3.0, 2.5], "fc": [5.0, 4.0, 3.0], "fo": [0.4, -0.3, 0.0], "width": [0.02] * 3}
KP, KD = np.array([400.0, 400.0, 200.0]), np.array([30.0, 30.0, 15.0])


def small_arm() -> Robot:
    """The first three joints of the demonstration arm, the others locked."""
    arm = demo_robot()
    return actuator_robot(arm.only(arm.joint_names[:3]))


def true_model(robot: Robot, *, delay_s: float = DELAY_S) -> ActuatorModel:
    described = ActuatorModel.described(robot, delay_s=delay_s)
    return replace(described, values={**described.values, **{name: np.array(x) for name, x in TRUTH.items()}})


def commands(n_joints: int, seconds: float, rate_hz: float, seed: int) -> tuple[Array, Array]:
    """Sums of sines up to 3 Hz with a few steps."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * rate_hz)) / rate_hz
    u = np.zeros((len(t), n_joints))
    for j in range(n_joints):
        f, phase = rng.uniform(0.15, 3.0, 6), rng.uniform(0.0, 2.0 * np.pi, 6)
        size = 0.4 * rng.uniform(0.4, 1.0, 6) / (1.0 + f)
        u[:, j] = (size * (np.sin(2.0 * np.pi * np.outer(t, f) + phase) - np.sin(phase))).sum(axis=1)
        for row in rng.integers(0, len(t), 5):
            u[row:, j] += rng.choice([-0.08, 0.08])
    return t, u


def position_log(
    model: ActuatorModel,
    *,
    seconds: float = 6.0,
    rate_hz: float = 200.0,
    scale: float = 1.0,
    count: float | None = 2.0 * np.pi / 2**14,
    noise: float = 0.0,
    seed: int = 0,
    tick_s: float | None = None,
) -> ActuatorLog:
    """A log at ``scale`` times the usual gains, with encoders of so many counts, white noise and perhaps a digital controller."""
    n = model.robot.n_joints
    t, u = commands(n, seconds, rate_hz, seed)
    command, control = Command(t, u), PositionControl(scale * KP[:n], scale * KD[:n])
    first = (u[0], np.zeros(n))
    motion = simulate_commands(model.robot, model.drives(control), command, t, first, step_s=2.5e-4, tick_s=tick_s)
    q = motion.at_stamps + noise * np.random.default_rng(seed + 1000).normal(size=u.shape)
    if count is not None:
        q = np.round(q / count) * count
    return ActuatorLog("simulated", t, q, command, control)
