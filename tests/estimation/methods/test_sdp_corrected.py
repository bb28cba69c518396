"""Least squares with correction and weighted FBPE: the methods of Sousa's Table 8 beside the semidefinite estimate."""

from __future__ import annotations

import numpy as np
import pytest

from consistent_problems import noisy_tree
from dynid.errors import UnknownNameError
from dynid.estimation.consistency.correction import closest_feasible
from dynid.estimation.consistency.feasibility import check_mass_matrix, feasibility
from dynid.estimation.constraints.bodies import MassBounds, TotalMass
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.methods.registry import method_named
from dynid.estimation.methods.sdp import CorrectedLeastSquares, FeasibleSDP, WeightedFeasibleSDP
from dynid.estimation.result import Outcome


def test_correction_is_least_squares_moved_to_the_nearest_feasible_values():
    robot, base, data = noisy_tree(2, 4, 3.0)
    free = OrdinaryLeastSquares(covariance="classical").estimate(data, base, robot.parameters)
    found = CorrectedLeastSquares(covariance="classical").estimate(data, base, robot.parameters)
    assert found.method == "bpfc"
    assert found.outcome is Outcome.SOLVED
    assert found.feasible
    assert feasibility(base, found.base_values, prior=robot.parameters).feasible
    near = closest_feasible(base, free.base_values, prior=robot.parameters)
    assert found.base_values == pytest.approx(near.base, rel=1e-9)
    assert found.details["distance"] == pytest.approx(np.linalg.norm(found.base_values - free.base_values), rel=1e-9)
    assert found.details["lower_bound"] <= found.details["distance"]
    assert found.covariance == pytest.approx(free.covariance)
    best = FeasibleSDP(covariance="classical").estimate(data, base, robot.parameters)
    assert free.relative_error < best.relative_error <= found.relative_error


def test_feasible_least_squares_is_left_alone():
    robot, base, data = noisy_tree(0, 3, 1e-4)
    free = OrdinaryLeastSquares(covariance="classical").estimate(data, base, robot.parameters)
    found = CorrectedLeastSquares(covariance="classical").estimate(data, base, robot.parameters)
    assert np.array_equal(found.base_values, free.base_values)
    assert not found.details["constraints_active"]


def test_correction_in_torque_and_by_name():
    robot, base, data = noisy_tree(2, 3, 3.0)
    plain = method_named("bpfc", metric="torque", covariance="classical").estimate(data, base, robot.parameters)
    assert plain.feasible
    known = (TotalMass(upper=1.0), MassBounds(1, lower=2.0))
    refused = method_named("bpfc", known, covariance="classical").estimate(data, base, robot.parameters)
    assert refused.outcome is Outcome.INFEASIBLE
    assert "mass of link 1 >= 2" in " ".join(refused.notes)
    with pytest.raises(UnknownNameError, match="metric"):
        CorrectedLeastSquares(metric="power")


def test_weighted_fbpe_is_the_weighted_semidefinite_estimate():
    robot, base, data = noisy_tree(2, 3, 3.0)
    found = method_named("fbpe-wls", covariance="classical").estimate(data, base, robot.parameters)
    same = FeasibleSDP(weighted=True, covariance="classical").estimate(data, base, robot.parameters)
    assert isinstance(method_named("fbpe-wls"), WeightedFeasibleSDP)
    assert found.method == "fbpe-wls"
    assert np.array_equal(found.base_values, same.base_values)


def test_share_of_positions_with_a_positive_definite_inertia_matrix():
    robot, base, data = noisy_tree(2, 4, 5.0, effects=False)
    assert check_mass_matrix(robot, robot.parameters).positive_share == 1.0
    negative = robot.parameters.with_values(-robot.parameters.values)
    assert check_mass_matrix(robot, negative).positive_share == 0.0
    free = OrdinaryLeastSquares(covariance="classical").estimate(data, base, robot.parameters)
    by_base = feasibility(base, free.base_values, robot=robot).mass_matrix
    assert check_mass_matrix(robot, free.standard).positive_share == by_base.positive_share
