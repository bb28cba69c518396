"""Feasibility test and correction on robots: verdict, certificate, metrics, maps; and the repair built on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from consistent_problems import noisy_tree
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints import MassBounds, TotalMass
from dynid.estimation.feasibility import (
    closest_feasible,
    extended_base,
    feasibility,
    mass_matrix_check,
    standard_from_extended,
    torque_metric,
)
from dynid.estimation.least_squares import OrdinaryLeastSquares
from dynid.estimation.outcome import Outcome
from dynid.estimation.repair import repair
from dynid.inertia import consistency, is_consistent, phi_from_mass_com_inertia
from dynid.regression.base import reduce_to_base
from dynid.regression.random_states import random_states_within_limits
from dynid.regression.torque import inverse_dynamics
from dynid.robot.links import links_of
from dynid.robot.model import MergedLink, Robot
from problems import random_phi, random_tree


def infeasible_values(seed: int = 0):
    """Least squares on noisy data, which no consistent robot has."""
    robot, base, data = noisy_tree(seed, 4, 3.0)
    return robot, base, OrdinaryLeastSquares(covariance="classical").estimate(data, base, robot.parameters).base_values


@pytest.mark.parametrize("seed", range(4))
def test_base_values_of_a_consistent_robot_are_feasible(seed):
    robot, base, _ = noisy_tree(seed, 4)
    beta = base.base_values(robot.parameters)
    for options in ({}, {"robot": robot}, {"prior": robot.parameters}):
        found = feasibility(base, beta, **options)
        assert found.feasible
        assert is_consistent(found.bodies, "full").all()
        assert base.base_values(found.certificate) == pytest.approx(beta, rel=1e-9, abs=1e-9)
    assert found.mass_matrix is None
    corroborated = feasibility(base, beta, robot=robot).mass_matrix
    assert corroborated is not None
    assert corroborated.positive_share == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_infeasible_values_come_with_a_proof(seed):
    robot, base, beta = infeasible_values(seed)
    found = feasibility(base, beta, prior=robot.parameters)
    assert not found.feasible
    assert found.depth < 0.0
    assert found.direction_error < 1e-6
    assert found.certificate @ beta < found.bound
    rng = np.random.default_rng(seed)
    effects = len(robot.parameters) - robot.parameters.n_inertial
    for _ in range(100):
        phi = np.concatenate([*(random_phi(rng) for _ in range(4)), rng.uniform(0.0, 2.0, effects)])
        assert found.certificate @ base.base_values(phi) >= found.bound
    assert found.conflicts


def test_signs_of_effects_belong_to_feasibility_unless_told_otherwise():
    robot, base, _ = noisy_tree(1, 3)
    name = next(name for name in base.names if name.startswith("fv"))
    beta = base.base_values(robot.parameters)
    beta[base.index(name)] = -0.1
    found = feasibility(base, beta, prior=robot.parameters)
    assert not found.feasible
    assert "Ia, fv, fc not negative" in found.conflicts
    assert feasibility(base, beta, prior=robot.parameters, effects_positive=False).feasible


def test_extra_constraints_narrow_the_verdict():
    robot, base, _ = noisy_tree(0, 4)
    beta = base.base_values(robot.parameters)
    total = robot.parameters.inertials[:, 0].sum()
    assert feasibility(base, beta, constraints=[TotalMass(upper=1.01 * total)], robot=robot).feasible
    narrow = feasibility(base, beta, constraints=[TotalMass(upper=0.1)], robot=robot)
    assert not narrow.feasible
    assert "total mass <= 0.1" in narrow.conflicts


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


def test_extended_base_parameters_map_both_ways():
    """Sousa (46) and (49)."""
    robot, base, _ = noisy_tree(0, 4)
    phi = np.random.default_rng(0).normal(size=len(robot.parameters))
    beta, dependent = extended_base(base, phi)
    assert len(beta) + len(dependent) == len(phi)
    assert standard_from_extended(base, beta, dependent) == pytest.approx(phi, abs=1e-12)


def test_mass_matrix_is_that_of_pinocchio():
    import pinocchio

    from dynid.adapters.pinocchio import pinocchio_model, to_pinocchio_position
    from dynid.robot.builtin import demo_robot

    robot = demo_robot([])
    base = reduce_to_base(robot)
    found = mass_matrix_check(robot, base, base.base_values(robot.parameters), n_positions=5)
    q, _, _ = random_states_within_limits(robot, 5, 0)
    model = pinocchio_model(robot)
    data = model.createData()
    smallest = []
    for position in np.atleast_2d(to_pinocchio_position(robot, q)):
        upper = np.triu(pinocchio.crba(model, data, position))
        smallest.append(np.linalg.eigvalsh(upper + np.triu(upper, 1).T)[0])
    assert found.smallest_eigenvalue == pytest.approx(min(smallest), rel=1e-6)


def test_refusals():
    _, base, beta = infeasible_values(0)
    with pytest.raises(InputError, match=r"needs robot= .* or gram="):
        closest_feasible(base, beta, metric="torque")
    with pytest.raises(UnknownNameError, match="unknown metric 'power'"):
        closest_feasible(base, beta, metric="power")
    with pytest.raises(InputError, match=r"base values has shape \(3,\)"):
        feasibility(base, beta[:3])
    with pytest.raises(UnknownNameError, match="unknown link '9'"):
        feasibility(base, beta, constraints=[MassBounds(9, 1.0)])
    other = random_tree(0, 2)
    with pytest.raises(InputError, match="the prior has 20 parameters, the base reduction 56"):
        feasibility(base, beta, prior=other.parameters)


# Repair -------------------------------------------------------------------------------------------


def broken(seed: int, link: int, factor: float, n_joints: int = 5) -> Robot:
    robot = random_tree(seed, n_joints)
    name = f"Ixx{link}"
    return robot.with_parameters({name: factor * robot.parameters[name]})


def test_a_consistent_robot_is_left_alone():
    robot = random_tree(0, 4)
    found = repair(robot)
    assert found.robot is robot
    assert (found.feasible_before, found.feasible_after, found.base_kept, found.torque_change) == (True, True, True, 0.0)


def test_repair_keeps_the_base_parameters_where_it_can():
    robot = broken(0, 1, 0.1)
    found = repair(robot)
    assert not found.feasible_before
    assert found.feasible_after
    assert found.base_kept
    assert found.torque_change < 1e-12
    assert found.changed == found.inconsistent == ("link1",)
    base = reduce_to_base(robot)
    assert base.base_values(found.robot.parameters) == pytest.approx(base.base_values(robot.parameters), rel=1e-9, abs=1e-10)


def test_repair_changes_other_links_rather_than_the_motion():
    found = repair(broken(3, 4, 3.0))
    assert found.base_kept
    assert found.inconsistent == ("link4",)
    assert len(found.changed) > 1


def test_repair_is_nearest_in_torque_where_no_consistent_robot_moves_alike():
    robot = broken(2, 3, 0.1)
    base = reduce_to_base(robot)
    assert not feasibility(base, base.base_values(robot.parameters), prior=robot.parameters).feasible
    found = repair(robot)
    assert found.feasible_after
    assert not found.base_kept
    assert 0.0 < found.torque_change < 0.05
    # no other way to mend it moves the torque less: clipping the one link does not
    clipped = robot.parameters.values.copy()
    eigenvalues, vectors = np.linalg.eigh(_pseudo(clipped[20:30]))
    from dynid.inertia import phi_from_pseudo_inertia

    clipped[20:30] = phi_from_pseudo_inertia((vectors * np.maximum(eigenvalues, 1e-8)) @ vectors.T)
    q, v, a = random_states_within_limits(robot, 500, 0)
    tau = inverse_dynamics(robot, q, v, a)
    other = inverse_dynamics(robot.with_parameters(robot.parameters.with_values(clipped)), q, v, a)
    assert found.torque_change < np.linalg.norm(other - tau) / np.linalg.norm(tau)


def _pseudo(phi):
    from dynid.inertia import pseudo_inertia

    return pseudo_inertia(phi)


def test_links_merged_into_bodies_and_ground_links_are_repaired_too():
    robot = random_tree(1, 3)
    good = phi_from_mass_com_inertia(0.3, np.zeros(3), np.diag([1e-3, 1e-3, 1e-3]))
    bad = phi_from_mass_com_inertia(0.3, np.zeros(3), np.diag([1e-3, 1e-3, 9e-3]))
    place = np.eye(4)
    place[:3, 3] = [0.1, 0.0, 0.2]
    merged = (
        MergedLink("camera", 1, place, bad),
        MergedLink("frame", 1, place, np.zeros(10)),
        MergedLink("stand", -1, np.eye(4), bad),
        MergedLink("bracket", 2, place, good),
    )
    values = robot.parameters.values.copy()
    from dynid.inertia import change_of_frame

    X = change_of_frame(np.eye(3), place[:3, 3])
    values[10:20] += X @ bad
    values[20:30] += X @ good
    robot = replace(robot, merged=merged, parameters=robot.parameters.with_values(values))
    found = repair(robot)
    assert found.inconsistent == ("camera", "stand")
    assert found.feasible_after
    after = {link.name: link.phi for link in links_of(found.robot)}
    assert consistency(after["frame"]).empty
    assert is_consistent(after["stand"])
    assert is_consistent(after["camera"])
    assert found.base_kept
    assert found.torque_change < 1e-10


def test_massless_link_with_inertia_gets_a_mass():
    robot = random_tree(4, 4)
    robot = robot.with_parameters({"m4": 0.0, "mx4": 0.0, "my4": 0.0, "mz4": 0.0})
    found = repair(robot)
    assert not found.feasible_before
    assert found.feasible_after
    assert found.robot.parameters["m4"] > 0.0
