"""Open-loop rollout: the motion that a model makes of the logged commands, against the motion that was measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.estimation.actuators.model import ActuatorLog, ActuatorModel, first_state
from dynid.simulation.position_loop import simulate_commands

HORIZONS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
STARTS = 40
"""Starts per log from which short horizons are rolled out, at most."""


@dataclass(frozen=True, eq=False)
class Rollout:
    """A rollout of one log: measured and simulated position at the stamps."""

    time: Array
    command: Array
    measured: Array
    simulated: Array

    @property
    def rms(self) -> Array:
        """Per joint, rad or m."""
        return np.asarray(np.sqrt(np.mean((self.simulated - self.measured) ** 2, axis=0)))


def roll_out(model: ActuatorModel, log: ActuatorLog, tick_s: float | None = None) -> Rollout:
    """Follow the commands of a whole log from its first state."""
    motion = simulate_commands(
        model.robot,
        model.drives(log.control),
        log.command,
        log.time,
        first_state(log),
        tick_s=tick_s,
        rate=log.control.rate,
        velocity=log.control.velocity,
    )
    sent = log.command.at(log.time, np.zeros(model.robot.n_joints))
    return Rollout(log.time, sent, log.position, freeze(motion.at_stamps))


def total_rms(rollouts: Sequence[Rollout]) -> float:
    """Root mean square over joints, time and logs."""
    if not rollouts:
        raise InputError("no rollout to judge")
    errors = np.concatenate([(one.simulated - one.measured).ravel() for one in rollouts])
    return float(np.sqrt(np.mean(errors**2)))


def error_over_horizon(
    model: ActuatorModel, logs: Sequence[ActuatorLog], horizons_s: Sequence[float] = HORIZONS_S, tick_s: float | None = None
) -> list[tuple[float, float]]:
    """Root mean square error at the end of rollouts of some lengths, started all over the logs."""
    found = []
    for horizon in horizons_s:
        ends: list[Array] = []
        for log in logs:
            rows = round(horizon / log.period_s)
            if rows < 1 or rows + 1 >= len(log.time):
                continue
            for start in np.unique(np.linspace(0, len(log.time) - rows - 2, STARTS).astype(int)):
                part = log.part(start, start + rows + 1)
                motion = simulate_commands(
                    model.robot,
                    model.drives(log.control),
                    log.command,
                    part.time,
                    first_state(log, start),
                    tick_s=tick_s,
                    rate=log.control.rate,
                    velocity=log.control.velocity,
                )
                ends.append(motion.at_stamps[-1] - part.position[-1])
        if ends:
            found.append((horizon, float(np.sqrt(np.mean(np.array(ends) ** 2)))))
    return found
