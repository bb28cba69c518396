"""Actuators from commands and positions of a simulated arm whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.apps.actuators.comparison import error_over_horizon, roll_out, total_rms
from dynid.apps.actuators.linear import instrumental_actuators, linear_actuators
from dynid.apps.actuators.model import ActuatorModel, ActuatorProblem, unknowns_of
from dynid.apps.actuators.output_error import output_error
from dynid.apps.actuators.separability import separability
from position_logs import DELAY_S, TRUTH, position_log, small_arm, true_model


def problem(*logs, **asked) -> ActuatorProblem:  # type: ignore[no-untyped-def]
    return ActuatorProblem(small_arm(), tuple(logs), unknowns_of(3, **asked))


def worst(model: ActuatorModel, symbols: tuple[str, ...] = ("Ia", "fv", "fc")) -> float:
    """Largest relative error."""
    return max(float(np.abs(model.values[s] / np.array(TRUTH[s]) - 1.0).max()) for s in symbols)


def test_known_gains_give_friction_armature_and_delay() -> None:
    robot = small_arm()
    asked = problem(position_log(true_model(robot)))
    start = ActuatorModel.described(robot)
    linear = linear_actuators(asked, start)
    assert abs(linear.model.values["delay"][0] - DELAY_S) < 1e-3
    assert worst(linear.model) < 0.15
    found = output_error(asked, linear.model)
    assert found.converged
    assert worst(found.model) < 0.01
    assert abs(found.model.values["delay"][0] - DELAY_S) < 1e-4
    assert separability(asked, found.model, found.information, found.inflation).groups == ()
    # the description knows neither friction nor delay
    log = asked.logs[0]
    assert total_rms([roll_out(found.model, log)]) < 0.02 * total_rms([roll_out(start, log)])
    short, long = (dict(error_over_horizon(m, [log]))[0.1] for m in (found.model, start))
    assert short < long


def test_instruments_take_out_what_noise_biases() -> None:
    robot = small_arm()
    asked = problem(position_log(true_model(robot), noise=3e-4))
    linear = linear_actuators(asked, ActuatorModel.described(robot))
    better = instrumental_actuators(asked, linear)
    assert worst(better, ("Ia",)) < worst(linear.model, ("Ia",))


def test_unknown_gains_name_the_pair_that_no_log_separates() -> None:
    robot = small_arm()
    asked = problem(position_log(true_model(robot)), gains=("kp", "kd"))
    found = output_error(asked, linear_actuators(asked, ActuatorModel.described(robot)).model)
    apart = separability(asked, found.model, found.information, found.inflation)
    assert {frozenset(names) for names in apart.inseparable} == {frozenset({f"fv{j}", f"kd{j}"}) for j in (1, 2, 3)}
    # what is known of each pair is the sum of friction and gain
    for j, group in enumerate(sorted(apart.groups, key=lambda group: group.names)):
        assert group.determined.startswith(f"fv{j + 1} + ")
        assert "another kd" in group.experiment


def test_two_gain_settings_separate_gains_from_friction() -> None:
    robot = small_arm()
    truth = true_model(robot)
    logs = position_log(truth), position_log(truth, scale=2.0, seed=5)
    asked = problem(*logs, gains=("kp", "kd"))
    found = output_error(asked, linear_actuators(asked, ActuatorModel.described(robot)).model)
    assert separability(asked, found.model, found.information, found.inflation).groups == ()
    assert worst(found.model) < 0.05
    assert max(float(np.abs(found.model.values[s] - 1.0).max()) for s in ("kp", "kd")) < 0.05


def test_every_joint_may_have_a_delay_of_its_own() -> None:
    robot = small_arm()
    truth = true_model(robot)
    delays = np.array([0.004, 0.012, 0.021])
    moved = ActuatorModel(robot, {**truth.values, "delay": delays})
    asked = problem(position_log(moved), delay="joint")
    found = output_error(asked, linear_actuators(asked, ActuatorModel.described(robot)).model)
    assert np.abs(found.model.values["delay"] - delays).max() < 5e-4


def test_a_controller_that_holds_its_torque_must_be_said_to() -> None:
    """Held over 4 ms, feedback is 2 ms old: rotors look lighter by 2 ms of kd, unless the model holds too."""
    robot = small_arm()
    log = position_log(true_model(robot), tick_s=0.004)
    told, untold = (ActuatorProblem(robot, (log,), unknowns_of(3), tick_s=tick_s) for tick_s in (0.004, None))
    start = linear_actuators(untold, ActuatorModel.described(robot)).model
    right, wrong = (output_error(asked, start).model for asked in (told, untold))
    assert worst(right, ("Ia", "fv")) < 0.02
    expected = np.array(TRUTH["Ia"]) - 0.002 * log.control.kd
    assert np.abs(wrong.values["Ia"] - expected).max() < 0.02


@pytest.mark.slow
def test_intervals_hold_over_forty_logs() -> None:
    robot = small_arm()
    truth, inside = true_model(robot), []
    for seed in range(40):
        asked = problem(position_log(truth, noise=2e-4, seed=seed))
        found = output_error(asked, linear_actuators(asked, ActuatorModel.described(robot)).model)
        values = np.array([found.model.value(u) for u in asked.unknowns])
        true = np.array([truth.value(u) for u in asked.unknowns])
        chosen = [u.symbol != "width" for u in asked.unknowns]
        inside.append((np.abs(values - true) < 1.96 * found.sigma)[chosen])
    assert 0.90 <= float(np.mean(inside)) <= 0.98
