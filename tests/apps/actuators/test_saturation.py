"""A drive that was simulated with a limit shows it; one without has none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.apps.actuators.model import ActuatorLog, ActuatorProblem, unknowns_of
from dynid.apps.actuators.saturation import found_limits, with_limits
from dynid.dynamics.position_loop import simulate_commands
from dynid.signals.commands import Command, PositionControl
from position_logs import KD, KP, small_arm, true_model


def stepped(limit: float) -> ActuatorProblem:
    model, n = true_model(small_arm()), 3
    t = np.arange(0.0, 8.0, 0.005)
    u = np.zeros((len(t), n))
    u[:, 0] = 0.9 * np.sign(np.sin(2.0 * np.pi * t / 1.6))
    control = PositionControl(KP, KD, np.array([limit, np.inf, np.inf]))
    motion = simulate_commands(model.robot, model.drives(control), Command(t, u), t, (u[0], np.zeros(n)), step_s=5e-4)
    told = replace(control, limit=np.full(n, np.inf))
    log = ActuatorLog("simulated", t, motion.at_stamps, Command(t, u), told)
    return ActuatorProblem(model.robot, (log,), unknowns_of(n))


def test_the_limit_of_a_saturated_drive_is_found() -> None:
    problem, truth = stepped(40.0), true_model(small_arm())
    found = found_limits(problem, truth)
    assert set(found) == {0}
    assert found[0] == pytest.approx(40.0, rel=0.05)
    (log,) = with_limits(problem.logs, found)
    assert log.control.limit is not None
    assert log.control.limit[0] == found[0]


def test_none_is_found_where_there_is_none() -> None:
    assert found_limits(stepped(np.inf), true_model(small_arm())) == {}


def test_friction_that_is_taken_too_small_is_no_limit() -> None:
    truth = true_model(small_arm())
    slight = replace(truth, values={**truth.values, "fc": 0.2 * truth.values["fc"], "fv": 0.2 * truth.values["fv"]})
    assert found_limits(stepped(np.inf), slight) == {}
