"""Feasible parameters of the Panda from the published coefficients: Gaz and others (2019), supplement, Tables III, VIII, IX.

Sum of squares over the 41 coefficients kept in the p-hat column against the printed values of reverse engineering; total mass
16 to 20 kg; full consistency with margin 1e-7. The lower bound of ``c5z`` is -0.35 in the authors' code, -0.05 in print.
"""

from __future__ import annotations

import warnings

import cvxpy
import numpy as np
import pytest

from dynid.dynamics.regressors import static_matrix, static_regressor
from dynid.estimation.consistency.correction import closest_feasible
from dynid.estimation.constraints.bodies import CentreOfMassInSphere
from dynid.estimation.constraints.bounds import Bounds, read_bounds
from dynid.estimation.constraints.conditions import Condition
from dynid.estimation.linear import parameter_scale
from dynid.estimation.methods.retrieval import PenaltyRetrieval
from dynid.estimation.result import Outcome
from dynid.model.inertia import PSEUDO_BASIS, is_consistent, mass_com_inertia
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import matrix_regression
from published import gaz_base, gaz_bounds, gaz_coefficients, published_robot, tables

PUBLISHED_COST = 2.75e-3
OPTIMUM = {"authors_code": 3.726e-4, "printed": 3.860e-4}
"""Convex optimum by the lower bound of ``c5z``."""
C5Z = {"authors_code": tables("gaz2019")["tables_8_9"]["c5z_lower_in_the_authors_code"], "printed": None}
PAIRS = ("xx", "xy", "xz", "yy", "yz", "zz")
COEFFICIENTS = gaz_coefficients()
KEPT = np.flatnonzero(np.isfinite(COEFFICIENTS["p_hat"]))


@pytest.fixture(scope="module")
def robot():
    return published_robot("panda")


@pytest.fixture(scope="module")
def base(robot):
    assert len(KEPT) == 41
    return gaz_base(robot, KEPT)


@pytest.fixture(scope="module")
def values():
    return COEFFICIENTS["reverse"][KEPT]


def _bounds(key) -> Bounds:
    return Bounds(gaz_bounds(C5Z[key]))


def _assert_inside(key, bodies) -> None:
    """Every bound in its own quantity, without tolerance."""
    mass, com, inertia = mass_com_inertia(bodies)
    limits = gaz_bounds(C5Z[key])
    low, high = limits["total_mass"]
    assert low <= mass.sum() <= high
    for i in range(7):
        low, high = limits[f"m{i + 1}"]
        assert low <= mass[i] <= high
        for j, axis in enumerate("xyz"):
            low, high = limits[f"c{i + 1}{axis}"]
            assert low <= com[i, j] <= high, f"c{i + 1}{axis}"
        for a, b in PAIRS:
            low, high = limits[f"I{i + 1}{a}{b}"]
            assert low <= inertia[i, "xyz".index(a), "xyz".index(b)] <= high, f"I{i + 1}{a}{b}"
    assert is_consistent(bodies, "full").all()


def test_cost_of_the_published_parameters(values):
    assert float(np.sum((COEFFICIENTS["p_hat"][KEPT] - values) ** 2)) == pytest.approx(PUBLISHED_COST, rel=1e-3)


@pytest.mark.parametrize("key", list(OPTIMUM))
def test_convex_optimum_is_reached_with_everything_met(base, values, key):
    options = PenaltyRetrieval(cost="coefficients", bounds=_bounds(key))
    found = options.retrieve(base, values)
    assert found.outcome is Outcome.SOLVED
    assert not found.violated
    assert found.lower_bound == pytest.approx(OPTIMUM[key], rel=5e-4)
    assert found.cost <= 1.01 * OPTIMUM[key]
    assert 0.0 <= found.gap <= 1e-4 * found.cost
    assert float(np.sum((found.base_values - values) ** 2)) == pytest.approx(found.cost, rel=1e-9)
    _assert_inside(key, found.bodies)


def test_a_total_mass_far_below_the_robots_own_is_met(base, values):
    """Links become next to massless; the cost is that of cvxpy."""
    bounds = Bounds({**gaz_bounds(C5Z["authors_code"]), "total_mass": (5.0, 8.0)})
    found = PenaltyRetrieval(cost="coefficients", bounds=bounds).retrieve(base, values)
    assert found.outcome is Outcome.SOLVED
    assert found.cost == pytest.approx(0.1764, rel=1e-3)
    assert 5.0 <= found.bodies[:, 0].sum() <= 8.0


def test_nearest_feasible_base_values_are_the_same_optimum(base, values):
    bounds = _bounds("printed")
    other = closest_feasible(base, values, constraints=bounds.convex(), margin=1e-7)
    found = PenaltyRetrieval(cost="coefficients", bounds=bounds).retrieve(base, values)
    assert other.distance**2 == pytest.approx(found.cost, rel=1e-5)


def test_bounds_from_files(base, values, tmp_path):
    limits = _bounds("printed").limits
    table = "name,lower,upper\n" + "".join(f"{name},{low},{high}\n" for name, (low, high) in limits.items())
    (tmp_path / "panda.csv").write_text(table)
    (tmp_path / "panda.toml").write_text("".join(f"{name} = [{low}, {high}]\n" for name, (low, high) in limits.items()))
    assert read_bounds(tmp_path / "panda.csv").limits == read_bounds(tmp_path / "panda.toml").limits == limits
    found = PenaltyRetrieval(cost="coefficients", bounds=str(tmp_path / "panda.csv")).retrieve(base, values)
    assert found.cost <= 1.01 * OPTIMUM["printed"]


def test_an_elbow_outside_a_bent_region(base, values):
    """A condition that is not convex and bites: the centre of mass of link 4 not within 6 cm of a point of its box."""
    point = np.array([-0.05, 0.1, 0.0])

    def keep_out(p):
        x, y, z = p.com(4)
        return 0.06 - np.sqrt((x - point[0]) ** 2 + (y - point[1]) ** 2 + (z - point[2]) ** 2)

    bounds = _bounds("printed")
    # the convex optimum under a ball that the region to keep out of fills almost wholly
    ball = CentreOfMassInSphere(4, tuple(point), 0.07)
    relaxed = PenaltyRetrieval(cost="coefficients", bounds=bounds, constraints=(ball,)).retrieve(base, values)
    options = PenaltyRetrieval(
        cost="coefficients", bounds=bounds, constraints=(ball,), conditions=(Condition("keep out", keep_out),)
    )
    found = options.retrieve(base, values)
    assert not found.violated
    com = mass_com_inertia(found.bodies)[1][3]
    assert 0.06 <= np.linalg.norm(com - point) <= 0.07
    assert found.cost >= relaxed.cost * (1.0 - 1e-6)
    assert found.lower_bound == pytest.approx(relaxed.lower_bound, rel=1e-6)
    assert found.cost < PUBLISHED_COST
    _assert_inside("printed", found.bodies)


def test_one_step_cost_on_coefficients_is_the_same_problem(robot, base, values):
    """``||Y pi(p) - tau||^2`` with the coefficients themselves as rows."""
    matrix = np.column_stack([base.K, values])
    regression = matrix_regression(robot.parameters, ["coefficients"], [matrix])
    bounds = _bounds("printed")
    found = PenaltyRetrieval(bounds=bounds).estimate(regression, base, robot.parameters)
    assert found.outcome is Outcome.SOLVED
    assert found.details["violated"] == {}
    assert found.details["cost"] == pytest.approx(OPTIMUM["printed"], rel=1e-3)
    _assert_inside("printed", found.standard.inertials)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_the_papers_own_recipe_reaches_the_published_cost(base, values, seed):
    """Algorithm 1 with simulated annealing, from a random point of the box."""
    options = PenaltyRetrieval(
        cost="coefficients",
        bounds=_bounds("printed"),
        optimiser="annealing",
        starts=1,
        steps=3,
        iterations=50,
        seed=seed,
    )
    found = options.retrieve(base, values)
    assert not found.violated
    assert found.lower_bound <= found.cost <= PUBLISHED_COST
    _assert_inside("printed", found.bodies)
    again = options.retrieve(base, values)
    assert again.cost == found.cost


def test_one_step_from_the_poses_is_proven_to_be_nearly_the_best(robot):
    """Straight from inertia matrices and gravity at poses: the gap that is left is the solver's, not the bound's.

    The printed coefficients are not those of consistent bodies, so the optimum is not zero.
    """
    low, high = robot.position_limits.T
    q = np.random.default_rng(0).uniform(low, high, (1010, 7))
    values = gaz_base(robot).lift @ COEFFICIENTS["reverse"]
    matrix = static_matrix(robot, q, *(Y @ values for Y in static_regressor(robot, q)))
    regression = matrix_regression(robot.parameters, ["poses"], [matrix])
    base = reduce_to_base(robot)
    found = PenaltyRetrieval(bounds=_bounds("authors_code")).estimate(regression, base, robot.parameters)
    cost, bound = found.details["cost"], found.details["lower_bound"]
    assert found.details["violated"] == {}
    assert cost == pytest.approx(np.sum((matrix[:, :-1] @ found.standard.values - matrix[:, -1]) ** 2), rel=1e-9)
    assert 0.0 <= found.details["gap"] <= 2e-4 * cost
    # the optimum of the same convex program by cvxpy, on all rows: base values, consistency, bounds
    best = _optimum_in_cvxpy(robot, matrix)
    assert bound <= best * (1.0 + 1e-7)
    assert best <= cost * (1.0 + 1e-6)
    assert any("come without the robot" in note for note in found.notes)


def _optimum_in_cvxpy(robot, matrix) -> float:
    """Least squares under the bounds that are convex: masses, centres of mass, total mass, full consistency at 1e-7."""
    triangle = np.linalg.qr(matrix, mode="r")
    size = parameter_scale(robot.parameters)
    x = cvxpy.Variable(70)
    phi = cvxpy.multiply(size, x)
    limits = gaz_bounds(C5Z["authors_code"])
    masses = phi[np.arange(0, 70, 10)]
    listed = [cvxpy.sum(masses) >= 16.0, cvxpy.sum(masses) <= 20.0]
    for i in range(7):
        m, first = phi[10 * i], 10 * i + 1
        low, high = limits[f"m{i + 1}"]
        listed += [m >= low, m <= high]
        for j, axis in enumerate("xyz"):
            low, high = limits[f"c{i + 1}{axis}"]
            listed += [phi[first + j] >= low * m, phi[first + j] <= high * m]
        P = sum(x[10 * i + k] * PSEUDO_BASIS[k] for k in range(10))
        listed.append(P - 1e-7 * np.eye(4) >> 0)
    residual = triangle[:, :-1] @ phi - triangle[:, -1]
    program = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(10.0 * residual)), listed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # at this tolerance cvxpy may call its answer inaccurate
        program.solve(solver=cvxpy.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(program.value) / 100.0
