"""Exact proofs: what they claim holds for bodies of any size, and arithmetic of fractions decides, not of eigenvalues."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from consistent_problems import infeasible_problem
from dynid.estimation.consistency.certificate import Multipliers, _is_semidefinite, certify, exactly_consistent
from dynid.estimation.consistency.feasibility import CONSISTENCY, feasibility
from dynid.estimation.consistency.nearest_feasible import DualBound
from dynid.model.inertia import phi_from_mass_com_inertia
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


@pytest.mark.parametrize(("seed", "condition"), [(0, "full"), (1, "plain"), (2, "full")])
def test_a_proof_holds_for_small_and_for_huge_bodies(seed, condition):
    problem = infeasible_problem(seed, condition)
    consistent = problem.consistent
    made, lower = DualBound.of(problem).bound()
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
            value = made.direction @ (problem.E @ x)
            assert value >= made.bound - made.defect * consistent.size(x) - 1e-12 * abs(value)


def test_wrong_multipliers_prove_little_but_nothing_wrong():
    """Any direction gives a true statement; one that separates nothing has a large defect."""
    problem = infeasible_problem(0, "full")
    consistent = problem.consistent
    rng = np.random.default_rng(5)
    rows = rng.normal(size=consistent.first_matrix_row)
    blocks = np.zeros((4, 4, 4))
    direction = rng.normal(size=problem.base.n_base)
    made = certify(consistent, problem.base.K, Multipliers(direction, rows, blocks, direction, (np.eye(4),) * 4))
    assert made.defect > 0.0
    assert not made.separates(problem.beta)
    assert made.least(1e8) < made.direction @ problem.beta


def test_the_conflict_is_named():
    problem = infeasible_problem(0, "full")
    found = feasibility(problem.base, problem.beta, prior=problem.prior)
    assert found.decision == "infeasible"
    assert found.proven
    links = {label.removeprefix(CONSISTENCY) for label in found.conflicts if label.startswith(CONSISTENCY)}
    assert links
    assert links <= {"1", "2", "3", "4"}
    total = sum(c * problem.beta[problem.base.index(name)] for name, c in found.combination)
    assert total == pytest.approx(found.certificate @ problem.beta, abs=1e-4 * np.linalg.norm(problem.beta))
