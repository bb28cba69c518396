"""The nearest feasible base values: feasible, nearest in their own metric, under every kind of constraint."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest

from consistent_problems import KNOWN, infeasible_values, linear_problem, noisy_tree
from dynid.dynamics.inverse_dynamics import inverse_dynamics, random_states_within_limits
from dynid.estimation.consistency.correction import closest_feasible, torque_metric
from dynid.estimation.consistency.feasibility import feasibility
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.result import Outcome
from dynid.model.inertia import PSEUDO_BASIS, is_consistent
from dynid.regression.base import reduce_to_base


@pytest.mark.parametrize("metric", ["base", "torque"])
def test_correction_is_feasible_and_stays_where_it_is(metric):
    robot, base, beta = infeasible_values(2)
    found = closest_feasible(base, beta, metric=metric, robot=robot)
    assert found.outcome is Outcome.SOLVED
    assert not found.feasible_before
    assert is_consistent(found.bodies, "full").all()
    assert base.base_values(found.standard) == pytest.approx(found.base, rel=1e-9, abs=1e-9)
    again = closest_feasible(base, found.base, metric=metric, robot=robot)
    assert again.distance < 1e-3 * found.distance


def test_each_metric_is_nearest_in_its_own():
    robot, base, beta = infeasible_values(2)
    in_base, in_torque = (closest_feasible(base, beta, metric=metric, robot=robot) for metric in ("base", "torque"))
    R = torque_metric(robot, base)
    assert in_torque.distance == pytest.approx(np.linalg.norm(R @ (in_torque.base - beta)), rel=1e-9)
    assert in_torque.distance < np.linalg.norm(R @ (in_base.base - beta))
    assert in_base.distance < np.linalg.norm(in_torque.base - beta)
    given = closest_feasible(base, beta, gram=R.T @ R, prior=robot.parameters)
    assert given.distance == pytest.approx(in_torque.distance, rel=1e-3)


def test_torque_metric_does_not_depend_on_the_grouping_and_the_base_metric_does():
    robot, base, beta = infeasible_values(2)
    other = reduce_to_base(robot, order=[name for name in robot.parameters.names if name.startswith("m")])
    # the same dynamics in the other grouping
    phi = np.zeros(len(robot.parameters))
    phi[base.independent] = beta
    there = other.base_values(phi)
    distances = {}
    for metric in ("base", "torque"):
        distances[metric] = [
            closest_feasible(b, v, metric=metric, robot=robot).distance for b, v in ((base, beta), (other, there))
        ]
    assert distances["torque"][0] == pytest.approx(distances["torque"][1], rel=1e-4)
    assert abs(distances["base"][0] / distances["base"][1] - 1.0) > 0.01
    assert feasibility(other, there, robot=robot).feasible == feasibility(base, beta, robot=robot).feasible


def test_torque_distance_is_root_mean_square_torque():
    robot, base, _ = noisy_tree(0, 3, effects=False)
    q, v, a = random_states_within_limits(robot, 3 * base.n_base // robot.n_dof + 200, 0)
    tau = inverse_dynamics(robot, q, v, a)
    beta = base.base_values(robot.parameters)
    assert np.linalg.norm(torque_metric(robot, base) @ beta) == pytest.approx(np.sqrt((tau**2).mean()), rel=1e-9)


def test_torque_metric_without_a_robot_is_that_of_the_reduction():
    _, base, beta = infeasible_values(0)
    found = closest_feasible(base, beta, metric="torque")
    same = closest_feasible(base, beta, gram=base.gram)
    np.testing.assert_allclose(found.base, same.base, atol=1e-9)
    step = found.base - beta
    assert found.distance == pytest.approx(np.sqrt(step @ base.gram @ step), rel=1e-6)


def test_extra_constraints_of_all_kinds_bound_the_correction():
    robot, base, data = noisy_tree(2, 3, 5.0)

    beta = OrdinaryLeastSquares(covariance="classical").estimate(data, base, robot.parameters).base_values
    free = closest_feasible(base, beta, prior=robot.parameters)
    held = closest_feasible(base, beta, constraints=KNOWN, prior=robot.parameters)
    assert held.outcome is Outcome.SOLVED
    assert held.gap <= 1e-6
    assert held.distance > free.distance
    assert held.standard["fv1"] == pytest.approx(0.5, abs=1e-7)
    assert 0.5 - 1e-7 <= held.standard["m2"] <= 1.5 + 1e-7
    m, h = held.standard.inertials[2, 0], held.standard.inertials[2, 1:4]
    assert np.linalg.norm(h) <= 0.1 * m + 1e-7
    phi = cvxpy.Variable(len(robot.parameters))
    scale = FeasibleSDP().whiten(linear_problem(robot, base, data)).consistent.scale
    x = cvxpy.multiply(1.0 / scale, phi)
    listed = [sum(x[10 * k + a] * PSEUDO_BASIS[a] for a in range(10)) - 1e-6 * np.eye(4) >> 0 for k in range(robot.n_joints)]
    at = robot.parameters.index
    listed += [phi[at(f"{s}{k}")] >= 0.0 for s in ("Ia", "fv", "fc") for k in (1, 2, 3)]
    listed += [
        phi[at("m1")] + phi[at("m2")] + phi[at("m3")] <= 8.0,
        phi[at("m2")] >= 0.5,
        phi[at("m2")] <= 1.5,
        cvxpy.norm(phi[21:24]) <= 0.1 * phi[20],
        phi[at("fv1")] == 0.5,
    ]
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.norm(base.K @ phi - beta)), listed)
    program.solve(solver=cvxpy.CLARABEL)
    assert program.value == pytest.approx(held.distance, rel=1e-5)
