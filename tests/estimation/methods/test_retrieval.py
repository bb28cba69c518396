"""Retrieval of feasible parameters: convex optimum, conditions met and named, options, what the joints carry."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import random_states_within_limits
from dynid.dynamics.joint_wrench import joint_wrenches, largest_joint_wrench
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.base import FixedValues
from dynid.estimation.constraints.bodies import MassBounds, TotalMass
from dynid.estimation.constraints.bounds import Bounds
from dynid.estimation.constraints.conditions import Condition
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.registry import METHODS, method_named
from dynid.estimation.methods.retrieval import PenaltyRetrieval
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.result import Outcome
from dynid.model.inertia import is_consistent, mass_com_inertia
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression, matrix_regression
from noisy_logs import exact_log, noisy_log, short_arm

ARM = short_arm()
BASE = reduce_to_base(ARM)
TRUTH = BASE.base_values(ARM.parameters)


@pytest.fixture(scope="module")
def regression():
    return build_regression(ARM, noisy_log(exact_log(), 0.5, seed=1))


def test_bounds_of_links_that_are_not_there(regression):
    for bounds in (Bounds({"I9xx": (0.0, 1.0)}), Bounds({"c9x": (0.0, 1.0)}), Bounds({"weight": (0.0, 1.0)})):
        with pytest.raises(UnknownNameError):
            estimate(regression, BASE, PenaltyRetrieval(bounds=bounds))


def test_it_is_the_sdp_where_everything_is_convex(regression):
    known = (MassBounds(2, 0.1, 0.8 * ARM.parameters["m2"]), FixedValues({"Izz3": 0.01}))
    program = estimate(regression, BASE, FeasibleSDP(constraints=known, margin=1e-7))
    found = estimate(regression, BASE, PenaltyRetrieval(constraints=known))
    assert found.outcome is Outcome.SOLVED
    assert found.feasible
    assert found.details["violated"] == {}
    scale = np.linalg.norm(found.residual_rms)
    assert np.linalg.norm(found.residual_rms) <= (1.0 + 1e-5) * np.linalg.norm(program.residual_rms)
    np.testing.assert_allclose(found.residual_rms, program.residual_rms, atol=1e-4 * scale)
    cost = float(np.sum(found.residual_rms**2) * found.n_rows / len(found.residual_rms))
    assert found.details["cost"] == pytest.approx(cost, rel=1e-9)
    assert 0.0 <= found.details["gap"] <= 1e-4 * found.details["cost"]


def test_weighted_coefficients_are_the_one_step_cost(regression):
    """With the classical covariance ``sigma^2 (W^T W)^-1`` both costs differ by a constant and a factor."""
    known = (MassBounds(3, 0.01, 0.5 * ARM.parameters["m3"]), MassBounds(2, 0.01, 1.0))
    options = {"constraints": known, "covariance": "classical"}
    one = estimate(regression, BASE, PenaltyRetrieval(cost="torque", **options))
    two = estimate(regression, BASE, PenaltyRetrieval(cost="coefficients", weighted=True, **options))
    np.testing.assert_allclose(two.base_values, one.base_values, atol=1e-4 * np.abs(one.base_values).max())


def test_a_condition_without_convexity_is_met_and_named(regression):
    def far_from_axis(p):
        return 0.04 - np.sqrt(p["c2x"] ** 2 + p["c2y"] ** 2)

    condition = Condition("far from axis", far_from_axis)
    found = estimate(regression, BASE, PenaltyRetrieval(conditions=(condition,)))
    assert found.details["violated"] == {}
    assert found.feasible
    com = mass_com_inertia(found.standard.inertials)[1][1]
    assert np.hypot(com[0], com[1]) >= 0.04
    impossible = Condition("impossible", lambda p: 1.0 + p["c2x"] ** 2)
    broken = estimate(regression, BASE, PenaltyRetrieval(conditions=(impossible,), starts=2))
    assert broken.outcome is Outcome.STALLED
    assert broken.details["violated"]["impossible"] >= 1.0
    assert any("impossible" in note for note in broken.notes)


def test_constraints_that_contradict_one_another_are_named(regression):
    found = estimate(regression, BASE, PenaltyRetrieval(constraints=(MassBounds(1, 5.0, 6.0), TotalMass(0.1, 2.0))))
    assert found.outcome is Outcome.INFEASIBLE
    assert any("mass" in note for note in found.notes)


def test_coefficients_of_a_true_robot_come_back_exactly():
    found = PenaltyRetrieval().retrieve(BASE, TRUTH, robot=ARM)
    assert found.gap == pytest.approx(0.0, abs=1e-14)
    np.testing.assert_allclose(found.base_values, TRUTH, atol=1e-9)
    assert is_consistent(found.bodies, "full").all()


def test_options_are_checked():
    with pytest.raises(UnknownNameError, match="genetic"):
        PenaltyRetrieval(optimiser="genetic")
    with pytest.raises(UnknownNameError, match="parameters"):
        PenaltyRetrieval(cost="parameters")
    with pytest.raises(InputError, match="starts is 0"):
        PenaltyRetrieval(starts=0)
    with pytest.raises(InputError, match="growth"):
        PenaltyRetrieval(growth=-1.0)
    with pytest.raises(InputError, match="needs the covariance"):
        PenaltyRetrieval(weighted=True).retrieve(BASE, TRUTH, robot=ARM)
    with pytest.raises(InputError, match="takes no bounds"):
        method_named("sdp", bounds="bounds.csv")
    assert "retrieve" in METHODS


def test_the_result_states_the_largest_wrench(regression):
    found = estimate(regression, BASE, PenaltyRetrieval())
    stated = found.details["largest_joint_wrench"]
    assert [entry["joint"] for entry in stated] == list(ARM.joint_names)
    log = exact_log()
    true = joint_wrenches(ARM, log.position, log.velocity, log.acceleration)
    force = np.linalg.norm(true[..., :3], axis=-1).max(axis=0)
    ratio = np.array([entry["force"] for entry in stated]) / force
    assert (ratio > 0.1).all()
    assert (ratio < 10.0).all()


def test_rows_without_a_motion_say_that_no_wrench_is_stated():
    q, v, a = random_states_within_limits(ARM, 60, seed=4)
    Y = torque_regressor(ARM, q, v, a).reshape(-1, len(ARM.parameters))
    rows = matrix_regression(ARM.parameters, ["rows"], [np.column_stack([Y, Y @ ARM.parameters.values])])
    found = estimate(rows, BASE, PenaltyRetrieval())
    assert found.details["largest_joint_wrench"] == []
    assert any("come without the robot and its motion" in note for note in found.notes)
    # whoever knows them asks for it: in poses at rest the joints carry the weight
    still = np.zeros_like(q)
    stated = largest_joint_wrench(ARM, [(q, still, still)])
    weight = 9.81 * ARM.parameters.inertials[:, 0].sum()
    assert stated[0]["force"] == pytest.approx(weight, rel=1e-2)
    assert [entry["joint"] for entry in stated] == list(ARM.joint_names)
