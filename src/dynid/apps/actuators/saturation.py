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
EVEN = 0.1
"""Spread of the torque at the limit, relative to it, at most."""


def torques(problem: ActuatorProblem, model: ActuatorModel, log: ActuatorLog) -> tuple[Array, Array]:
    """What the controller asked for and what the measured motion needed, ``(rows, joints)`` each."""
    samples = command_samples(log, problem.robot.joint_names).motion
    drives, v = model.drives(log.control), samples.velocity
    sent = log.command.at(samples.time, drives.delay_s)
    asked = drives.kp * (sent - samples.position) - drives.kd * v
    needed = inverse_dynamics(model.robot, samples.position, v, samples.acceleration, effects=False)
    friction = drives.viscous * v + drives.coulomb * np.tanh(v / drives.width) + drives.offset
    return asked, needed + friction + drives.armature * samples.acceleration


def found_limits(problem: ActuatorProblem, model: ActuatorModel) -> dict[int, float]:
    """Limits of joints that have none, by number, where the logs show them."""
    asked, given = (
        np.concatenate(parts) for parts in zip(*(torques(problem, model, log) for log in problem.logs), strict=True)
    )
    limit = problem.logs[0].control.limit
    assert limit is not None
    found = {}
    for j in np.flatnonzero(~np.isfinite(limit)):
        top = float(np.quantile(np.abs(given[:, j]), 0.98))
        beyond = np.abs(asked[:, j]) > MORE * top
        if beyond.sum() < max(LEAST_ROWS, LEAST_SHARE * len(asked)):
            continue
        flat = given[beyond, j] * np.sign(asked[beyond, j])
        value, spread = float(np.median(flat)), float(np.quantile(flat, 0.75) - np.quantile(flat, 0.25))
        if value > 0.0 and spread < EVEN * value:
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
