"""Joints of two sides share their values, and what is not determined goes back to the description."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.apps.actuators.estimate import estimated_actuators
from dynid.apps.actuators.linear import actuator_robot
from dynid.apps.actuators.model import ActuatorProblem, actuator_problem
from dynid.apps.actuators.options import ActuatorSettings
from dynid.dynamics.position_loop import Unknown, position_sensitivities
from position_logs import DELAY_S, KD, KP, TRUTH, position_log, small_arm, true_model

ROBOT = small_arm()
PAIR = f"{ROBOT.joint_names[0]}* {ROBOT.joint_names[1]}*"
SETTINGS = ActuatorSettings(kp=tuple(KP[:3]), kd=tuple(KD[:3]), delay=DELAY_S, symmetric=(PAIR,))


def asked(seconds: float) -> ActuatorProblem:
    log = position_log(true_model(ROBOT), seconds=seconds)
    log = replace(log, control=replace(log.control, limit=np.full(3, np.inf)))
    return actuator_problem(actuator_robot(ROBOT.with_effects(())), [log], SETTINGS, set())


def test_paired_joints_have_one_value_each_but_offsets_of_their_own() -> None:
    problem = asked(2.0)
    assert "fv1" in problem.names
    assert "fv2" not in problem.names
    assert {"fo1", "fo2"} <= set(problem.names)
    assert problem.name_for(1, "fv") == "fv1"
    assert set(problem.untied().names) >= {"fv1", "fv2", "fv3"}
    found = estimated_actuators(problem, (), SETTINGS, lambda text: None)
    assert found.model.values["fv"][0] == found.model.values["fv"][1]
    assert found.model.values["fv"][2] == pytest.approx(TRUTH["fv"][2], rel=0.2)


def test_a_shared_value_moves_as_both_together() -> None:
    model, log = true_model(ROBOT), position_log(true_model(ROBOT), seconds=1.0)
    motion = model.simulate(log, (log.position[0], np.zeros(3)))
    both, first, second = Unknown("fv", 0, tied=((1, 1.0),)), Unknown("fv", 0), Unknown("fv", 1)
    found = position_sensitivities(model.robot, model.drives(log.control), log.command, motion, (both, first, second))
    assert found[:, :, 0] == pytest.approx(found[:, :, 1] + found[:, :, 2], abs=1e-12)
