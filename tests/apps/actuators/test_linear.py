"""The linear estimate: friction, rotor and delay from rows, exact without noise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynid.apps.actuators.linear import linear_actuators
from dynid.apps.actuators.model import ActuatorLog, ActuatorModel, ActuatorProblem, command_samples, unknowns_of
from dynid.apps.actuators.output_error import output_error
from dynid.dynamics.position_loop import simulate_commands
from dynid.regression.command_rows import CommandRows
from dynid.signals.commands import Command, PositionControl
from position_logs import DELAY_S, KD, KP, TRUTH, commands, small_arm, true_model


def simulated(seconds: float = 2.0, **drive: Any) -> ActuatorLog:
    """A log of the small arm whose drives have these properties."""
    model = true_model(small_arm())
    t, u = commands(3, seconds, 200.0, 0)
    if drive.get("velocity"):
        u = np.gradient(u, t, axis=0)
    command, control = Command(t, u), PositionControl(KP, KD, **drive)
    start = (np.zeros(3), np.zeros(3))
    motion = simulate_commands(
        model.robot, model.drives(control), command, t, start, step_s=2.5e-4, velocity=control.velocity
    )
    count = 2.0 * np.pi / 2**14
    return ActuatorLog("simulated", t, np.round(motion.at_stamps / count) * count, command, control)


def worst(model: ActuatorModel) -> float:
    return max(float(np.abs(model.values[s] / np.array(TRUTH[s]) - 1.0).max()) for s in ("Ia", "fv", "fc"))


@pytest.mark.parametrize(
    "drive",
    [
        {"velocity": True},
        {"lag_s": 0.004},
        {"stall": np.array([60.0, 90.0, 40.0]), "no_load_speed": np.array([2.0, 2.0, 2.0])},
    ],
    ids=["speeds", "lag", "torque-speed"],
)
def test_friction_rotor_and_delay_are_found(drive: dict[str, Any]) -> None:
    log = simulated(**drive)
    asked = ActuatorProblem(small_arm(), (log,), unknowns_of(3))
    start = linear_actuators(asked, ActuatorModel.described(asked.robot)).model
    found = output_error(asked, start, iterations=5)
    assert worst(found.model) < 0.03
    assert abs(found.model.values["delay"][0] - DELAY_S) < 5e-4


def test_rows_know_the_current_loop() -> None:
    """Rows with the lag left out take it for a rotor and friction that are not there."""
    log = simulated(lag_s=0.01)
    robot = small_arm()
    told, untold = (
        ActuatorProblem(robot, (ActuatorLog("x", log.time, log.position, log.command, control),), unknowns_of(3))
        for control in (log.control, PositionControl(KP, KD))
    )
    right, wrong = (linear_actuators(asked, ActuatorModel.described(robot)).model for asked in (told, untold))
    assert worst(right) < 0.5 * worst(wrong)


def test_rows_of_speeds_have_no_position_gain() -> None:
    log = simulated(velocity=True)
    rows = CommandRows(
        small_arm(), (command_samples(log, small_arm().joint_names),), np.full(3, DELAY_S), ("kp1", "kd1", "fv1")
    )
    (block, *_) = next(iter(rows.passes())).blocks
    assert np.abs(block[:, rows.parameters.index("kp1")]).max() == 0.0
    assert np.abs(block[:, rows.parameters.index("kd1")]).max() > 0.0
