"""Feasibility test and correction on robots: verdict, certificate, metrics, maps; and the repair built on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from consistent_problems import noisy_tree
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.completion import parameter_scale
from dynid.estimation.constraints.constraints import FixedValues, MassBounds, TotalMass
from dynid.estimation.convex.conic import MARGIN
from dynid.estimation.convex.feasibility import (
    REACH,
    TOLERANCE,
    closest_feasible,
    extended_base,
    feasibility,
    mass_matrix_check,
    standard_from_extended,
    torque_metric,
)
from dynid.estimation.convex.repair import repair
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.outcome import Outcome
from dynid.inertia import PSEUDO_BASIS, consistency, is_consistent, phi_from_mass_com_inertia
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.random_states import random_states_within_limits
from dynid.regression.torque import inverse_dynamics
from dynid.robot.builtin import demo_robot
from dynid.robot.links import links_of
from dynid.robot.model import MergedLink, Robot
from dynid.robot.read import read_robot
from messages import facts
from problems import random_phi, random_tree
from published import robot_file


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


def least_over_consistent(base, direction, prior, margin=MARGIN):
    """``min d . K phi`` over consistent ``phi`` up to ``REACH`` sizes of a link, from below, by eigenvalues alone.

    Link by link ``d . K phi = <Z, P>``, and ``P >= margin 1`` gives ``<Z, P> >= margin tr(Z) - |Z_-| |P - margin 1|``.
    """
    functional = (base.K.T @ direction) * parameter_scale(prior)
    bodies, effects = functional[: prior.n_inertial].reshape(-1, 10), functional[prior.n_inertial :]
    gram = np.einsum("aij,bij->ab", PSEUDO_BASIS, PSEUDO_BASIS)
    Z = np.einsum("la,aij->lij", np.linalg.solve(gram, bodies.T).T, PSEUDO_BASIS)
    eigenvalues = np.linalg.eigvalsh(Z)
    largest = REACH * np.sqrt(np.linalg.eigvalsh(gram)[-1]) + 2.0 * margin
    least = margin * eigenvalues.sum() - largest * np.linalg.norm(eigenvalues.clip(max=0.0))
    signed = np.array([name[:2] in ("Ia", "fv", "fc") for name in prior.names[prior.n_inertial :]], dtype=bool)
    return least - REACH * np.linalg.norm(np.where(signed, effects.clip(max=0.0), effects))


def perturbed(base, prior, seed):
    """Base values that are off by a few percent: next to none of them are feasible."""
    rng = np.random.default_rng(seed)
    beta = base.base_values(prior)
    noise = 0.02 * rng.normal(size=len(beta)) * np.abs(beta) + 0.003 * rng.normal(size=len(beta))
    return beta + (1 + seed % 4) * noise


def assert_corrections_are_feasible(robot, seeds):
    base = reduce_to_base(robot)
    for seed in seeds:
        beta = perturbed(base, robot.parameters, seed)
        before = feasibility(base, beta, robot=robot)
        assert before.decision == "infeasible"
        # the proof holds by itself: a bound by eigenvalues, without a solver, is above what was asked for
        least = least_over_consistent(base, before.certificate, robot.parameters)
        assert before.certificate @ beta < min(before.bound, least)
        assert before.bound - before.certificate @ beta >= before.bound_error
        for metric in ("base", "torque"):
            corrected = closest_feasible(base, beta, metric=metric, robot=robot)
            assert before.certificate @ corrected.base >= before.bound
            after = feasibility(base, corrected.base, robot=robot)
            assert after.feasible, (seed, metric, after.decision, after.depth)
            size = np.linalg.norm(corrected.base)
            # large bodies whose parts cancel have base values that are rounded no better than this
            rounding = 1e-15 * np.linalg.norm(np.abs(base.K) @ np.abs(after.standard.values))
            assert after.base_error <= max((TOLERANCE if after.on_boundary else 1e-12) * size, rounding)
            assert np.linalg.norm(base.base_values(after.standard) - corrected.base) == pytest.approx(
                after.base_error, abs=max(1e-12 * size, rounding)
            )
            assert is_consistent(after.bodies, "full").all()
            effects = after.standard.values[after.standard.n_inertial :]
            signed = [name[:2] in ("Ia", "fv", "fc") for name in after.standard.names[after.standard.n_inertial :]]
            assert (effects[signed] >= 0.0).all()


def test_what_was_corrected_is_feasible_on_the_built_in_arm():
    assert_corrections_are_feasible(demo_robot(), range(2))


def test_what_was_corrected_is_feasible_on_the_wam():
    assert_corrections_are_feasible(read_robot(robot_file("wam7")), range(2))


@pytest.mark.slow
def test_what_was_corrected_is_feasible_on_the_built_in_arm_for_many():
    assert_corrections_are_feasible(demo_robot(), range(2, 8))


@pytest.mark.slow
def test_what_was_corrected_is_feasible_on_the_wam_for_many():
    assert_corrections_are_feasible(read_robot(robot_file("wam7")), range(2, 24))


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_verdict_near_the_boundary_is_never_a_false_proof(seed):
    """On the line through the correction: feasible on one side, proven infeasible on the other, the boundary in between."""
    robot, base, beta = infeasible_values(seed)
    nearest = closest_feasible(base, beta, prior=robot.parameters)
    outward = (beta - nearest.base) / np.linalg.norm(beta - nearest.base)
    inward = base.base_values(robot.parameters) - nearest.base
    size = np.linalg.norm(nearest.base)
    gap = nearest.distance - nearest.lower_bound
    for share in (1e-2, 1e-4, 1e-6):
        inside = feasibility(base, nearest.base + share * inward, prior=robot.parameters)
        assert inside.feasible
        outside = feasibility(base, nearest.base + share * size * outward, prior=robot.parameters)
        if outside.decision == "infeasible":
            assert outside.certificate @ nearest.base >= outside.bound
        else:
            assert outside.on_boundary
            assert share * size * 0.999 - gap <= outside.base_error <= TOLERANCE * size
            assert outside.lower_bound <= outside.base_error
    assert feasibility(base, nearest.base + 1e-2 * size * outward, prior=robot.parameters).decision == "infeasible"


def test_fixed_values_belong_to_the_verdict():
    robot, base, _ = noisy_tree(0, 4)
    beta = base.base_values(robot.parameters)
    fixed = FixedValues({"m2": robot.parameters["m2"]})
    found = feasibility(base, beta, constraints=[fixed], robot=robot)
    assert found.decision == "feasible"
    assert found.certificate["m2"] == pytest.approx(robot.parameters["m2"], rel=1e-8)
    contradiction = feasibility(base, beta, constraints=[FixedValues({base.names[-1]: 50.0})], robot=robot)
    assert contradiction.decision == "infeasible"


def test_nothing_is_claimed_where_nothing_is_proven():
    robot, base, beta = infeasible_values(0)
    found = feasibility(base, beta, prior=robot.parameters)
    open_question = replace(found, decision="boundary", direction=None, base_error=0.5)
    assert not open_question.feasible
    assert not open_question.proven
    with pytest.raises(InputError, match=r"nothing is proven .* are 0\.5 away"):
        _ = open_question.certificate


def test_signs_of_effects_belong_to_feasibility_unless_told_otherwise():
    robot, base, _ = noisy_tree(1, 3)
    name = next(name for name in base.names if name.startswith("fv"))
    beta = base.base_values(robot.parameters)
    beta[base.index(name)] = -0.1
    found = feasibility(base, beta, prior=robot.parameters)
    assert not found.feasible
    assert any(label.endswith("not negative") and "fv" in label for label in found.conflicts)
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
    published = BaseReduction.from_matrix(base.K, base.parameter_names)
    with pytest.raises(InputError, match=r"needs robot= .* or gram="):
        closest_feasible(published, beta, metric="torque")
    with pytest.raises(UnknownNameError, match="unknown metric 'power'"):
        closest_feasible(base, beta, metric="power")
    with pytest.raises(InputError, match=r"base values has shape \(3,\)"):
        feasibility(base, beta[:3])
    with pytest.raises(UnknownNameError, match="unknown link '9'"):
        feasibility(base, beta, constraints=[MassBounds(9, 1.0)])
    other = random_tree(0, 2)
    with pytest.raises(InputError, match=facts("20", "56", "prior")):
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


def test_torque_metric_without_a_robot_is_that_of_the_reduction():
    _, base, beta = infeasible_values(0)
    found = closest_feasible(base, beta, metric="torque")
    same = closest_feasible(base, beta, gram=base.gram)
    np.testing.assert_allclose(found.base, same.base, atol=1e-9)
    step = found.base - beta
    assert found.distance == pytest.approx(np.sqrt(step @ base.gram @ step), rel=1e-6)
