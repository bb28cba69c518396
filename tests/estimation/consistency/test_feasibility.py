"""Feasibility test on robots: decision, certificate, proof; what it says in words and as plain numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from consistent_problems import infeasible_values, noisy_tree
from dynid.dynamics.inverse_dynamics import random_states_within_limits
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.consistency.certificate import REACH
from dynid.estimation.consistency.consistent_set import MARGIN
from dynid.estimation.consistency.correction import closest_feasible
from dynid.estimation.consistency.feasibility import TOLERANCE, Feasibility, check_mass_matrix, combination_text, feasibility
from dynid.estimation.constraints.base import FixedValues
from dynid.estimation.constraints.bodies import MassBounds, TotalMass
from dynid.estimation.linear import parameter_scale
from dynid.files import read_json, write_json
from dynid.io.demo import demo_robot
from dynid.io.robots.read import read_robot
from dynid.model.inertia import PSEUDO_BASIS, is_consistent
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction, reduce_to_base
from messages import facts
from problems import random_phi, random_tree
from published import robot_file


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


def test_extended_base_parameters_map_both_ways():
    """Sousa (46) and (49)."""
    robot, base, _ = noisy_tree(0, 4)
    phi = np.random.default_rng(0).normal(size=len(robot.parameters))
    beta, dependent = base.base_values(phi), phi[base.dependent]
    assert len(beta) + len(dependent) == len(phi)
    again = np.empty(len(phi))
    again[base.dependent] = dependent
    again[base.independent] = beta - base.K[:, base.dependent] @ dependent
    assert again == pytest.approx(phi, abs=1e-12)


def test_mass_matrix_is_that_of_pinocchio():
    import pinocchio

    from dynid.dynamics.pinocchio_model import pinocchio_model, to_pinocchio_position

    robot = demo_robot([])
    base = reduce_to_base(robot)
    found = check_mass_matrix(robot, base.lift @ base.base_values(robot.parameters), n_positions=5)
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


@pytest.fixture(scope="module")
def arm() -> tuple[Robot, BaseReduction]:
    robot = random_tree(3, 4)
    return robot, reduce_to_base(robot)


def verdict_on(arm: tuple[Robot, BaseReduction], values: np.ndarray) -> Feasibility:
    robot, base = arm
    return feasibility(base, values, robot=robot).with_link_names(robot.links)


def test_an_infeasible_verdict_names_the_links_and_separates(arm: tuple[Robot, BaseReduction]) -> None:
    robot, base = arm
    values = base.base_values(robot.parameters.values)
    wrong = -values
    found = verdict_on(arm, wrong)
    assert (found.decision, found.proof, found.proven) == ("infeasible", "direction", True)
    factors = dict(found.combination)
    here, there = (
        sum(factors.get(name, 0.0) * value for name, value in zip(base.names, b, strict=True)) for b in (wrong, values)
    )
    assert here == pytest.approx(found.value, abs=1e-5 * np.linalg.norm(values))
    assert found.value < found.bound <= there + 1e-5 * np.linalg.norm(values)
    assert any(link in found.in_conflict for link in robot.links)
    assert combination_text(found.combination) in found.sentence
    assert found.inertia_matrix.endswith("of 200 test poses")
    assert found.mass_matrix is not None
    assert found.mass_matrix.positive_share < 1.0


def test_a_feasible_verdict_needs_no_sentence(arm: tuple[Robot, BaseReduction]) -> None:
    robot, base = arm
    found = verdict_on(arm, base.base_values(robot.parameters.values))
    assert (found.decision, found.proof, found.sentence) == ("feasible", "certificate", "")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_verdict_comes_back_from_a_file(arm: tuple[Robot, BaseReduction], sign: float, tmp_path) -> None:
    robot, base = arm
    found = verdict_on(arm, sign * base.base_values(robot.parameters.values))
    write_json(tmp_path / "verdict.json", found.as_dict())
    again = Feasibility.from_dict(read_json(tmp_path / "verdict.json", "verdict"))
    assert again.as_dict() == found.as_dict()
    assert again.sentence == found.sentence


def test_nothing_is_called_proven_that_is_not() -> None:
    found = Feasibility("boundary", base_error=2e-7, lower_bound=1e-9)
    assert not found.proven
    assert "not decided" in found.sentence
    assert "2e-07" in found.sentence
    assert found.as_dict()["proof"] is None


def test_small_terms_are_marked_by_dots() -> None:
    assert combination_text((("Izz3", 0.8), ("m4", -0.5), ("mx5", 0.001))) == "0.8 Izz3 - 0.5 m4 + .."
    assert combination_text((("fv1", 1.0),)) == "1 fv1"
