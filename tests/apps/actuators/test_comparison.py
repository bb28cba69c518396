"""Which model is best, and what the verdict says of it."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.apps.actuators.comparison import (
    DESCRIPTION,
    MECHANISM,
    Compared,
    Rollout,
    actuator_verdict,
    best_of,
    better_estimate,
)
from dynid.apps.actuators.model import ActuatorModel, ActuatorProblem, unknowns_of
from dynid.dynamics.position_loop import RunawayError
from position_logs import position_log, small_arm, true_model


def compared(name: str, error: float, unseen: bool = True) -> Compared:
    t = np.linspace(0.0, 1.0, 11)
    one = Rollout(t, np.zeros((11, 1)), np.zeros((11, 1)), np.full((11, 1), error))
    return Compared(name, ((one,), (one,) if unseen else ()))


def test_a_lag_that_is_better_is_named() -> None:
    models = (compared(MECHANISM, 0.024), compared(DESCRIPTION, 1.7), compared("first-order lag", 0.020))
    verdict = actuator_verdict(models, ())
    assert best_of(models).name == "first-order lag"
    assert verdict.grade == "usable"
    assert "the mechanism adds nothing" in verdict.sentence
    assert "20 mrad" in verdict.sentence


def test_what_is_alike_is_the_mechanism_and_worse_than_described_is_not_to_be_used() -> None:
    models = (compared(MECHANISM, 0.0200), compared(DESCRIPTION, 0.05), compared("first-order lag", 0.0199))
    assert best_of(models).name == MECHANISM
    assert actuator_verdict(models, ()).grade == "good"
    worse = (compared(MECHANISM, 0.05), compared(DESCRIPTION, 0.02))
    assert actuator_verdict(worse, ()).grade == "do not use"
    assert "--split" in actuator_verdict((compared(MECHANISM, 0.1, False),), ()).reasons[0].remedy


def test_the_fit_that_holds_on_the_rest_is_chosen() -> None:
    truth = true_model(small_arm())
    log = position_log(truth, seconds=4.0)
    problem = ActuatorProblem(truth.robot, (log,), unknowns_of(3))
    wrong = ActuatorModel.described(truth.robot.with_effects(()))
    assert better_estimate(problem, (lambda _: wrong, lambda _: truth))[0] == 1
    assert better_estimate(problem, (lambda _: truth, lambda _: wrong))[0] == 0
    picked, errors = better_estimate(problem, (lambda _: truth, lambda _: truth))
    assert picked == 0
    assert errors[0] == pytest.approx(errors[1])


def test_a_fit_that_runs_away_is_never_chosen() -> None:
    truth = true_model(small_arm())
    problem = ActuatorProblem(truth.robot, (position_log(truth, seconds=4.0),), unknowns_of(3))

    def runs_away(_: ActuatorProblem) -> ActuatorModel:
        raise RunawayError(truth.robot.name)

    picked, errors = better_estimate(problem, (runs_away, lambda _: truth))
    assert picked == 1
    assert np.isinf(errors[0])
