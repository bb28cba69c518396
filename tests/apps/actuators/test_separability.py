"""What cannot be told apart is decided by the data, wherever along the open direction the estimate stopped."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.apps.actuators.model import ActuatorModel, ActuatorProblem, unknowns_of
from dynid.apps.actuators.output_error import output_error
from dynid.apps.actuators.separability import separability
from dynid.model.robot import Robot
from position_logs import KD, position_log, small_arm, true_model


@pytest.fixture(scope="module")
def robot() -> Robot:
    return small_arm()


@pytest.mark.parametrize("share", [0.0, 1e-4, 0.1, 0.5, 0.9, 1.0])
def test_the_pair_is_named_wherever_the_estimate_stopped(robot: Robot, share: float) -> None:
    """``fv + kd`` is known, their shares are not: none of it, half or all of it may have ended in the friction."""
    truth = true_model(robot)
    log = position_log(truth, seconds=4.0)
    total = truth.values["fv"] + KD
    values = {**truth.values, "fv": share * total, "kd": (1.0 - share) * total / KD}
    asked = ActuatorProblem(robot, (log,), unknowns_of(3, gains=("kp", "kd")))
    here = output_error(asked, replace(truth, values=values), iterations=1)
    apart = separability(asked, here.model, here.information, here.inflation)
    assert set(apart.inseparable) == {(f"fv{j}", f"kd{j}") for j in (1, 2, 3)}
    for group, sum_ in zip(apart.groups, total, strict=True):
        first, _, found = group.determined.partition(" = ")
        assert "--kd 1/2 --gains scale" in group.experiment
        assert first == f"{group.names[0]} + {group.names[1]}"
        assert float(found.split()[0]) == pytest.approx(sum_, rel=1e-3)


def test_a_value_that_no_log_shows_is_alone(robot: Robot) -> None:
    truth = true_model(robot)
    asked = ActuatorProblem(robot, (position_log(truth, seconds=4.0),), unknowns_of(3))
    n = len(asked.unknowns)
    information = np.diag(np.full(n, 1e12))
    unseen = asked.names.index("Ia2")
    information[unseen, unseen] = 0.0
    apart = separability(asked, ActuatorModel(robot, truth.values), information)
    assert [group.names for group in apart.groups] == [("Ia2",)]
    assert apart.inseparable == ()
    assert apart.deviation[unseen] == 1.0
