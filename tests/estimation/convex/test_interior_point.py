"""The interior-point method: both linear systems, the compiled fits and cvxpy agree; null bodies are found."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest

from consistent_problems import linear_problem, noisy_tree, optimum_in_cvxpy, relative_difference
from dynid.estimation.constraints.constraints import CentreOfMassInSphere, FixedValues, MassBounds, TotalMass
from dynid.estimation.convex.block_forms import block_program
from dynid.estimation.convex.compiled_fit import compiled_fit
from dynid.estimation.convex.conic import _by_rows
from dynid.estimation.convex.faces import null_body
from dynid.estimation.convex.feasibility import closest_feasible
from dynid.estimation.convex.interior_point import interior_point, start_inside
from dynid.estimation.convex.newton_systems import ByParameters, ByRows
from dynid.estimation.methods.sdp import FeasibleSDP
from dynid.estimation.outcome import Outcome
from dynid.inertia import PSEUDO_BASIS, pseudo_inertia
from dynid.regression.base import reduce_to_base
from dynid.robot.builtin import demo_robot


def whitened(seed: int, **options):
    robot, base, data = noisy_tree(seed, 3, 4.0)
    return FeasibleSDP(**options).whiten(linear_problem(robot, base, data))


KNOWN = (
    TotalMass(upper=8.0),
    MassBounds(2, 0.5, 1.5),
    CentreOfMassInSphere(3, (0.0, 0.0, 0.0), 0.1),
    FixedValues({"fv1": 0.5}),
)


@pytest.mark.parametrize("constraints", [(), KNOWN])
@pytest.mark.parametrize("condition", ["full", "plain"])
def test_systems_by_parameters_and_by_rows_agree(condition, constraints):
    fit = whitened(1, condition=condition, constraints=constraints)
    P = fit.F.T @ fit.F + np.diag(fit.pull)
    program = block_program(fit.consistent)
    start = start_inside(program, np.zeros(program.n), 1.0)
    one = interior_point(program, ByParameters(program, P, -P @ fit.centre), start, tolerance=1e-12)
    found = _by_rows(fit.consistent, fit.F, fit.centre, fit.pull)
    assert found is not None
    assert fit.value(one.x) == pytest.approx(fit.value(fit.centre + found.x), rel=1e-5, abs=1e-9)
    assert fit.consistent.contains(one.x, 1e-7)


@pytest.mark.parametrize("options", [{}, {"condition": "plain"}, {"prior": "entropic"}, {"prior": "scaled"}])
def test_compiled_fits_reach_the_optimum_of_cvxpy(options):
    for seed in range(3):
        fit = whitened(seed, **options)
        P = fit.F.T @ fit.F + np.diag(fit.pull)
        found = compiled_fit(fit.consistent, P, fit.centre, fit.freedom, fit.entropic)
        assert found is not None
        x = fit.centre + found.x
        assert fit.consistent.slacks(x).min() > -1e-9
        reference = optimum_in_cvxpy(fit, options.get("condition", "full"))
        assert abs(relative_difference(fit.value(x), reference)) < 1e-7


def test_compiled_fits_leave_other_constraints_to_others():
    fit = whitened(0, constraints=(TotalMass(upper=8.0),))
    assert compiled_fit(fit.consistent, fit.F.T @ fit.F, fit.centre, fit.freedom, None) is None


def test_a_start_outside_is_no_obstacle():
    fit = whitened(2, constraints=KNOWN)
    program = block_program(fit.consistent)
    system = ByRows(program, np.vstack([fit.F, np.diag(np.sqrt(fit.pull))]), np.zeros(len(fit.F) + program.n))
    rng = np.random.default_rng(0)
    values = []
    for size in (1.0, 100.0):
        found = interior_point(program, system, start_inside(program, size * rng.normal(size=program.n), 1.0))
        assert found.end == "solved"
        values.append(system.value(found.x))
    assert values[0] == pytest.approx(values[1], rel=1e-6)


def test_null_bodies_of_an_arm_lie_where_its_axes_do():
    """First joint: masses on its axis; second, whose axis meets the first: at the intersection; the last: none."""
    robot = demo_robot([])
    K = reduce_to_base(robot).K
    found = [null_body(K[:, 10 * k : 10 * k + 10], "full", float(np.abs(K).max())) for k in range(robot.n_joints)]
    ranks = [0 if body is None else int(np.linalg.matrix_rank(pseudo_inertia(body), tol=1e-6)) for body in found]
    assert ranks[0] == 2
    assert ranks[1] == 1
    assert ranks[-1] == 0
    for k, body in enumerate(found):
        if body is not None:
            assert np.abs(K[:, 10 * k : 10 * k + 10] @ body).max() < 1e-9
            assert np.linalg.eigvalsh(np.einsum("a,aij->ij", body, PSEUDO_BASIS))[0] > -1e-12


def test_extra_constraints_of_all_kinds_bound_the_correction():
    robot, base, data = noisy_tree(2, 3, 5.0)
    from dynid.estimation.methods.least_squares import OrdinaryLeastSquares

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
