"""The relaxation bounds the cost from below; a refinement that is interrupted has something to show."""

from __future__ import annotations

import itertools
import warnings

import cvxpy
import numpy as np
import pytest

from consistent_problems import noisy_tree, small_retrieval
from dynid.estimation.consistency.conic_solver import cone_rows, triangle_entries
from dynid.estimation.consistency.consistent_set import ConsistentSet
from dynid.estimation.constraints.base import Layout
from dynid.estimation.constraints.bodies import MassBounds, TotalMass
from dynid.estimation.constraints.bounds import phi_from_box
from dynid.estimation.constraints.conditions import Condition
from dynid.estimation.linear import LinearProblem
from dynid.estimation.methods import retrieval_search
from dynid.estimation.methods.annealing import box_jacobian
from dynid.estimation.methods.retrieval import PenaltyRetrieval
from dynid.estimation.methods.retrieval_search import PULL_OF_DATA
from dynid.model.inertia import phi_from_mass_com_inertia
from noisy_logs import short_arm

ARM = short_arm()


LAYOUT = Layout.of_parameters(ARM.parameters)


FARTHEST = 1e3
"""Scaled distance from the centre up to which cvxpy looks for the optimum."""


def test_box_coordinates_and_their_derivative():
    rng = np.random.default_rng(3)
    p = rng.uniform(0.1, 1.0, len(LAYOUT))
    rows = p[LAYOUT.slots]
    tensor = np.empty((3, 3, 3))
    for place, (i, j) in enumerate([(0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)]):
        tensor[:, i, j] = tensor[:, j, i] = rows[:, 4 + place]
    wanted = phi_from_mass_com_inertia(rows[:, 0], rows[:, 1:4], tensor)
    np.testing.assert_allclose(phi_from_box(LAYOUT, p)[LAYOUT.slots], wanted, atol=1e-14)
    J = box_jacobian(LAYOUT, p)
    for k in range(10):
        up, down = p.copy(), p.copy()
        up[LAYOUT.slots[:, k]] += 1e-6
        down[LAYOUT.slots[:, k]] -= 1e-6
        slope = (phi_from_box(LAYOUT, up) - phi_from_box(LAYOUT, down))[LAYOUT.slots] / 2e-6
        np.testing.assert_allclose(J[:, :, k], slope, atol=1e-8)


def test_an_interrupt_of_a_refinement_leaves_the_point_where_the_conditions_hold(monkeypatch):
    method, base, values, rigid = small_retrieval()

    def bent(p):
        return 1.0 - p["c2x"] ** 2 / 0.09

    method = PenaltyRetrieval(**{**vars(method), "conditions": (Condition("bent", bent),)})
    whole = method.retrieve(base, values, robot=rigid)
    descend, count = retrieval_search._descend, itertools.count(1)

    def interrupted(*arguments):
        if next(count) == 2:
            raise KeyboardInterrupt
        return descend(*arguments)

    monkeypatch.setattr(retrieval_search, "_descend", interrupted)
    found = method.retrieve(base, values, robot=rigid)
    assert found.details["interrupted"]
    assert not found.violated
    assert whole.cost <= found.cost


def optimum_in_cvxpy(consistent: ConsistentSet, G, centre, farthest):
    """``min ||G (x - centre)||^2`` over the set, no further than ``farthest`` from the centre, by cvxpy."""
    d = cvxpy.Variable(consistent.n)
    rows = consistent.M @ d + (consistent.M @ centre + consistent.k)
    listed = [cvxpy.norm(d) <= farthest]
    for (kind, size), first in zip(consistent.cones, consistent.starts, strict=False):
        part = rows[first : first + cone_rows((kind, size))]
        if kind == "zero":
            listed.append(part == 0.0)
        elif kind == "nonnegative":
            listed.append(part >= 0.0)
        elif kind == "second_order":
            listed.append(cvxpy.norm(part[1:]) <= part[0])
        else:
            row, column, weight = triangle_entries(size)
            matrix = cvxpy.Variable((size, size), symmetric=True)
            listed += [matrix >> 0, cvxpy.multiply(weight, matrix[row, column]) == part]
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(G @ d)), listed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # at this tolerance cvxpy may call its answer inaccurate
        program.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return float(program.value)


def _random_problem(seed):
    """Noisy least squares of a random tree, some of it with bounds that bite."""
    robot, base, data = noisy_tree(seed, 2 + seed % 3, 3.0)
    linear = LinearProblem.of(data, base, robot.parameters)
    beta = linear.solve(np.ones(len(linear.channels)))
    known = (MassBounds(1, 0.1, 0.7 * robot.parameters["m1"]), TotalMass(upper=5.0 + seed)) if seed % 2 else ()
    root = np.vstack(linear.channels)[:, :-1]
    method = PenaltyRetrieval(constraints=known)
    return method.problem(base, beta, root, prior=robot.parameters, robot=None, floor=1.5, pull=PULL_OF_DATA)


@pytest.mark.parametrize("seed", range(8))
def test_the_lower_bound_is_one_and_close(seed):
    problem = _random_problem(seed)
    x, bound, verdict = problem.relaxed()
    assert verdict == "solved"
    best = problem.floor + optimum_in_cvxpy(problem.consistent, problem.G, problem.centre, FARTHEST)
    assert bound <= best * (1.0 + 1e-9)
    assert bound >= best * (1.0 - 1e-3)
    assert best <= problem.cost(x) * (1.0 + 1e-6)
