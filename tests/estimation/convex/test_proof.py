"""Exact proofs: what they claim holds for bodies of any size, and arithmetic of fractions decides, not of eigenvalues."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from consistent_problems import noisy_tree
from dynid.estimation.convex.asked import Asked
from dynid.estimation.convex.feasibility import feasibility
from dynid.estimation.convex.nearest import Below, nearest
from dynid.estimation.convex.proof import Multipliers, _is_semidefinite, exactly_consistent, proof
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.inertia import phi_from_mass_com_inertia
from problems import random_phi


def exact(rows):
    return [[Fraction(value) for value in row] for row in rows]


def test_semidefinite_is_decided_to_the_last_digit():
    tiny = Fraction(1, 2**80)
    matrix = exact([[1, 1], [1, 1]])
    assert _is_semidefinite(matrix, Fraction(0))
    matrix[1][1] -= tiny
    assert not _is_semidefinite(matrix, Fraction(0))
    assert _is_semidefinite(matrix, tiny)
    assert _is_semidefinite(exact([[0, 0], [0, 3]]), Fraction(0))
    assert not _is_semidefinite(exact([[0, 1], [1, 3]]), Fraction(0))


def test_bodies_on_the_boundary_are_consistent_and_the_next_number_is_not():
    rod = phi_from_mass_com_inertia(2.0, np.zeros(3), np.diag([0.0, 0.5, 0.5]))
    assert exactly_consistent(rod, "full")
    beyond = rod.copy()
    beyond[4] = -np.finfo(float).tiny
    assert not exactly_consistent(beyond, "full")
    assert not exactly_consistent(beyond, "plain")
    flat = phi_from_mass_com_inertia(2.0, np.zeros(3), np.diag([0.1, 0.1, 0.3]))
    assert not exactly_consistent(flat, "full")
    assert exactly_consistent(flat, "plain")


def asked(seed: int, condition: str) -> Asked:
    robot, base, data = noisy_tree(seed, 4, 5.0)
    beta = OrdinaryLeastSquares(covariance="classical").estimate(data, base, robot.parameters).base_values
    return Asked.of(base, beta, robot.parameters, None, condition, (), 1e-6, False, True)


@pytest.mark.parametrize(("seed", "condition"), [(0, "full"), (1, "plain"), (2, "full")])
def test_a_proof_holds_for_small_and_for_huge_bodies(seed, condition):
    question_of = asked(seed, condition)
    consistent = question_of.consistent()
    question = question_of.question(consistent, np.eye(question_of.base.n_base))
    made, lower = Below.of(question).bound()
    assert lower > 0.0
    rng = np.random.default_rng(seed)
    n = len(consistent.layout.links)
    for size in (1e-3, 1.0, 1e3, 1e6):
        for _ in range(50):
            phi = np.zeros(consistent.n)
            # a margin's worth beyond the random body, in the link's own size
            phi[consistent.layout.slots] = size * np.array([random_phi(rng) for _ in range(n)])
            x = phi / consistent.scale
            x[10 * n :] = size * rng.uniform(0.0, 1.0, consistent.n - 10 * n)
            if not consistent.contains(x):
                continue
            value = made.direction @ (question.E @ x)
            assert value >= made.bound - made.defect * consistent.size(x) - 1e-12 * abs(value)


def test_wrong_multipliers_prove_little_but_nothing_wrong():
    """Any direction gives a true statement; one that separates nothing has a large defect."""
    question_of = asked(0, "full")
    consistent = question_of.consistent()
    question = question_of.question(consistent, np.eye(question_of.base.n_base))
    rng = np.random.default_rng(5)
    rows = rng.normal(size=consistent.first_matrix_row)
    blocks = np.zeros((4, 4, 4))
    made = proof(consistent, question.K, Multipliers(rng.normal(size=question.K.shape[0]), rows, blocks, (np.eye(4),) * 4))
    assert made.defect > 0.0
    assert not made.separates(question.beta)
    assert made.least(1e8) < made.direction @ question.beta


def test_both_sides_enclose_the_distance():
    for seed, condition in ((3, "full"), (4, "plain")):
        question_of = asked(seed, condition)
        consistent = question_of.consistent()
        question = question_of.question(consistent, np.eye(question_of.base.n_base))
        found = nearest(question)
        assert found.x is not None
        assert consistent.contains(found.x)
        assert 0.0 < found.lower_bound <= found.distance
        assert found.distance - found.lower_bound <= 1e-6 * question.length
        assert consistent.size(found.x) <= found.largest


def test_the_conflict_is_named():
    question_of = asked(0, "full")
    found = feasibility(question_of.base, question_of.values, prior=question_of.prior)
    assert found.decision == "infeasible"
    assert found.proven
    assert found.links_in_conflict
    assert set(found.links_in_conflict) <= {1, 2, 3, 4}
    total = sum(c * question_of.values[question_of.base.index(name)] for name, c in found.combination)
    assert total == pytest.approx(found.certificate @ question_of.values, abs=1e-4 * np.linalg.norm(question_of.values))
