"""Torque limits of drives from the rows in which they give less than they are asked for.

A drive at its limit gives the same torque whatever the error of position is. Where the motion needs an almost constant torque while the
controller asks for much more, that torque is the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dynid.apps.actuators.model import ActuatorLog, ActuatorModel, ActuatorProblem, command_samples
from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics

MORE = 1.3
"""Times the largest torque that was given that a drive must have been asked for."""
LEAST_SHARE, LEAST_ROWS = 0.01, 30
MOVING = 0.2
"""Speed below which a joint may be held by friction, rad/s or m/s."""
TRUE = 0.3
"""How far the torque given may be from that asked for below the limit: further off, the model is wrong, and says nothing of limits."""
FAR = 2.0
"""Times the limit that a drive must have been asked for in a tenth of these rows: a little more than was given may be friction."""
EVEN = 0.1
"""Spread of the torque at the limit, relative to it, at most."""


def torques(problem: ActuatorProblem, model: ActuatorModel, log: ActuatorLog) -> tuple[Array, Array, Array]:
    """What the controller asked for, what the measured motion needed, and the velocity, ``(rows, joints)`` each."""
    samples = command_samples(log, problem.robot.joint_names).motion
    drives, v = model.drives(log.control), samples.velocity
    sent = log.command.at(samples.time, drives.delay_s)
    asked = drives.kp * (sent - samples.position) - drives.kd * v
    needed = inverse_dynamics(model.robot, samples.position, v, samples.acceleration, effects=False)
    friction = drives.viscous * v + drives.coulomb * np.tanh(v / drives.width) + drives.offset
    return asked, needed + friction + drives.armature * samples.acceleration, v


def found_limits(problem: ActuatorProblem, model: ActuatorModel) -> dict[int, float]:
    """Limits of joints that have none, by number, where the logs show them."""
    asked, given, speed = (
        np.concatenate(parts) for parts in zip(*(torques(problem, model, log) for log in problem.logs), strict=True)
    )
    limit = problem.logs[0].control.limit
    assert limit is not None
    found = {}
    for j in np.flatnonzero(~np.isfinite(limit)):
        top = float(np.quantile(np.abs(given[:, j]), 0.98))
        turning = np.abs(speed[:, j]) > MOVING  # friction holds a joint at rest against any torque below it
        beyond, below = turning & (np.abs(asked[:, j]) > MORE * top), turning & (np.abs(asked[:, j]) < 0.8 * top)
        if min(beyond.sum(), below.sum()) < max(LEAST_ROWS, LEAST_SHARE * len(asked)):
            continue
        followed = float(asked[below, j] @ given[below, j] / max(float(asked[below, j] @ asked[below, j]), 1e-300))
        if abs(followed - 1.0) > TRUE:
            continue
        flat = given[beyond, j] * np.sign(asked[beyond, j])
        value, spread = float(np.median(flat)), float(np.quantile(flat, 0.75) - np.quantile(flat, 0.25))
        far = float(np.quantile(np.abs(asked[beyond, j]), 0.9))
        if value > 0.0 and spread < EVEN * value and far > FAR * value:
            found[int(j)] = value
    return found


def with_limits(logs: Sequence[ActuatorLog], limits: dict[int, float]) -> tuple[ActuatorLog, ...]:
    """Logs whose controllers have these limits."""
    made = []
    for log in logs:
        assert log.control.limit is not None
        limit = log.control.limit.copy()
        limit[list(limits)] = list(limits.values())
        made.append(replace(log, control=replace(log.control, limit=limit)))
    return tuple(made)
