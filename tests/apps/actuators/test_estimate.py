"""Joints of two sides share their values, and what is not determined goes back to the description."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.apps.actuators.estimate import estimated_actuators
from dynid.apps.actuators.linear import actuator_robot
from dynid.apps.actuators.model import ActuatorProblem, actuator_problem
from dynid.apps.actuators.options import ActuatorSettings
from dynid.apps.actuators.output_error import output_error
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


def test_joints_with_values_in_common_are_weighed_alike() -> None:
    """Friction of one side is three times that of the other: the one value lies between, and neither side is left to its error."""
    truth = true_model(ROBOT)
    fc = np.array([0.5, 1.5, 0.5])
    truth = replace(truth, values={**truth.values, "fc": fc})
    log = position_log(truth, seconds=4.0)
    log = replace(log, control=replace(log.control, limit=np.full(3, np.inf)))
    problem = actuator_problem(actuator_robot(ROBOT.with_effects(())), [log], SETTINGS, set())
    known = tuple(u for u in problem.unknowns if u.symbol == "fc")
    found = output_error(replace(problem, unknowns=known), truth.with_values(known, np.array([0.5, 0.5])))
    shared, own = found.model.values["fc"][0], found.model.values["fc"][2]
    assert own == pytest.approx(0.5, rel=0.05)
    errors = []
    for value in (0.9 * shared, shared, 1.1 * shared):
        simulated = truth.with_values(known, np.array([value, own])).simulate(log, (log.position[0], np.zeros(3)))
        errors.append(np.sum((simulated.at_stamps - log.position)[:, :2] ** 2))
    assert 0.5 < shared < 1.5
    assert errors[1] == min(errors)  # of both together, each counted the same
