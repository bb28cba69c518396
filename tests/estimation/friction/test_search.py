"""Friction that stays passive in fits, in the choice of a model and in the semidefinite program."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest
import scipy.optimize

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.estimation.estimate import estimate
from dynid.estimation.friction.fit import fit_friction, fit_model
from dynid.estimation.friction.model import FrictionModel
from dynid.estimation.friction.passivity import FrictionReach, driving_joints
from dynid.estimation.friction.rows import FrictionData
from dynid.estimation.friction.search import nonnegative_solution, passive_solution, search
from dynid.estimation.friction.selection import choose_friction
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.methods.sdp import CorrectedLeastSquares, FeasibleSDP
from dynid.model.effects.dry_friction import Coulomb, SmoothCoulomb, Stribeck
from dynid.model.effects.effect import Motion
from dynid.model.effects.linear import Offset, Viscous, ViscousPolynomial
from dynid.model.robot import Robot
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from dynid.signals.samples import Samples
from problems import planar_2r
from shared_data import shared


@pytest.mark.parametrize("seed", range(6))
def test_passive_least_squares_against_cvxpy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, y, G = rng.normal(size=(40, 8)), rng.normal(size=40), rng.normal(size=(15, 8))
    free = np.linalg.lstsq(A, y, rcond=None)[0]
    found = passive_solution(free, np.linalg.qr(A, mode="r"), G)
    x = cvxpy.Variable(8)
    problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum_squares(A @ x - y)), [G @ x >= 0])
    problem.solve(solver="CLARABEL")
    assert found is not None
    passive, active = found
    np.testing.assert_allclose(passive, x.value, atol=1e-5)
    assert (G @ passive >= -1e-9).all()
    np.testing.assert_allclose(G[active] @ passive, 0.0, atol=1e-9)


def test_a_solution_that_is_passive_stays() -> None:
    assert passive_solution(np.array([1.0, 2.0]), np.eye(2), np.eye(2)) is None


def slow_samples(robot: Robot, noise: float, seed: int = 0) -> Samples:
    """A slow motion, at most 1.3 rad/s where joints may turn with 4."""
    time = np.arange(1500) / 150.0
    w = np.array([1.3, 1.9])
    q = 0.6 * np.sin(np.outer(time, w)) + 0.1 * np.cos(np.outer(time, 2.7 * w))
    v = 0.6 * w * np.cos(np.outer(time, w)) - 0.27 * w * np.sin(np.outer(time, 2.7 * w))
    a = -0.6 * w**2 * np.sin(np.outer(time, w)) - 0.729 * w**2 * np.cos(np.outer(time, 2.7 * w))
    torque = inverse_dynamics(robot, q, v, a) + noise * np.random.default_rng(seed).normal(size=q.shape)
    return Samples(time=time, position=q, velocity=v, acceleration=a, torque=torque)


def rubbing(effects, **values: float) -> Robot:
    robot = planar_2r(effects)
    return robot.with_parameters({f"{symbol}{j}": x for symbol, x in values.items() for j in (1, 2)})


@pytest.mark.parametrize(
    "method", [FeasibleSDP(), FeasibleSDP(weighted=True, prior="auto"), CorrectedLeastSquares()], ids=str
)
def test_convex_programs_keep_friction_passive_where_least_squares_does_not(method) -> None:
    truth = rubbing([Viscous(), ViscousPolynomial(powers=(2,)), Coulomb(), Offset()], fv=0.3, fvv=-0.06, fc=0.4, fo=-1.0)
    samples = slow_samples(truth, noise=0.8, seed=1)
    reach = FrictionReach.of(truth, [samples])
    assert not driving_joints(truth, truth.parameters, reach)
    data, base = build_regression(truth, samples), reduce_to_base(truth)
    free = estimate(data, base, OrdinaryLeastSquares())
    assert driving_joints(truth, free.standard, reach)
    found = estimate(data, base, method)
    assert found.outcome.usable
    assert not driving_joints(truth, found.standard, reach)
    assert found.standard["fo1"] < -0.5  # an offset is no friction


def test_a_fit_does_not_hold_a_peak_that_drives() -> None:
    """Truth: friction falls below Coulomb friction at low speed by more than there is, which only an engine can do."""
    effects = [Viscous(), SmoothCoulomb(smooth_width=0.02), Stribeck(smooth_width=0.02, stribeck_speed=0.3), Offset()]
    truth = rubbing(effects, fv=0.5, fc=0.2, fs=-0.3, fo=0.1)
    samples = slow_samples(truth, noise=0.02)
    reach = FrictionReach.of(truth, [samples])
    assert len(driving_joints(truth, truth.parameters, reach)) == 2
    found = fit_friction(rubbing(effects, fv=0.5, fc=0.2, fs=0.0, fo=0.1), samples).robot
    assert not driving_joints(found, found.parameters, reach)
    assert min(found.parameters[name] for name in ("fs1", "fs2", "fc1", "fc2")) >= -1e-9


def test_passive_friction_is_found_as_before() -> None:
    effects = [Viscous(), SmoothCoulomb(smooth_width=0.05), Offset()]
    truth = rubbing(effects, fv=0.5, fc=0.9, fo=-0.3)
    samples = slow_samples(truth, noise=0.0)
    model = FrictionModel(truth, FrictionData.of(truth, samples))
    found = fit_model(model, weighted=True)
    np.testing.assert_allclose(found.solution.own, [0.5, 0.5, 0.9, 0.9, -0.3, -0.3], rtol=1e-3)


def test_every_model_of_a_choice_is_judged_as_passive_friction() -> None:
    """With a torque that drives, models that could follow it predict no better than plain friction, which then stays."""
    effects = [Viscous(), SmoothCoulomb(smooth_width=0.02), Stribeck(smooth_width=0.02, stribeck_speed=0.3), Offset()]
    truth = rubbing(effects, fv=0.5, fc=0.2, fs=-0.3, fo=0.1)
    samples = slow_samples(truth, noise=0.02)
    choice = choose_friction(planar_2r([Viscous(), Coulomb(), Offset()]), [samples])
    trials = {trial.model: trial.error for trial in choice.trials}
    assert trials["stribeck"] > 0.95 * trials["smooth"]


def test_a_peak_narrower_than_the_turn_of_the_sign_counts_as_wide_as_that() -> None:
    narrow, wide = (Stribeck(smooth_width=0.1, stribeck_speed=speed) for speed in (0.005, 0.1))
    v = np.linspace(-1.0, 1.0, 81)[:, None]
    motion = Motion(v, v, v)
    np.testing.assert_allclose(narrow.signals(motion), wide.signals(motion))
    assert np.abs(narrow.signals(motion)).max() > 0.3  # so that fs is about the torque that it stands for


@pytest.mark.slow
def test_stribeck_friction_of_the_panda_is_passive_and_of_a_believable_size() -> None:
    robot, log = shared("panda_gaz/robot.urdf"), shared("panda_gaz/exciting_traj_1.parquet")
    run = identify(robot, log, Settings(friction="stribeck", cutoff_hz=5.0, split=0.65))
    values = run.estimate.standard
    assert max(values[f"fs{j}"] for j in range(1, 8)) < 1.0  # N m, where links transmit up to 50
    assert min(values[f"{symbol}{j}"] for symbol in ("fv", "fc", "fs") for j in range(1, 8)) >= -1e-9
    assert not driving_joints(run.robot, values, FrictionReach.of(run.robot, run.samples))
    assert {one.name for one, _ in run.inner_numbers} == {"smooth_width", "stribeck_speed"}
    assert len(run.inner_numbers) == 14
    assert run.validation is not None
    assert run.validation.relative_error < 0.0087  # as before friction was kept passive


@pytest.mark.parametrize("seed", range(20))
def test_nonnegative_least_squares_against_scipy(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = rng.integers(2, 30, 2)
    A = rng.normal(size=(m, n)) * 10.0 ** rng.uniform(-3.0, 3.0, n)
    if seed % 3 == 0:
        A[:, 0] = A[:, -1]
    b = np.append(np.zeros(m - 1), 1.0) if seed % 2 else rng.normal(size=m)
    found, expected = nonnegative_solution(A, b), scipy.optimize.nnls(A, b)[0]
    assert (found >= 0.0).all()
    assert np.linalg.norm(A @ found - b) == pytest.approx(np.linalg.norm(A @ expected - b), abs=1e-11)


def test_parts_that_have_ended_are_not_evaluated_again():
    """One part is a straight line's distance, which one step ends; the other one bends."""
    target, asked_for = np.array([1.0, 4.0]), list[np.ndarray]()

    def model(place, asked):
        asked_for.append(asked.copy())
        value = np.array([place[0], place[1] ** 3 / 4.0])
        slope = np.array([1.0, 0.75 * place[1] ** 2])
        left = value - target
        cost, gradient = left**2 + 0.1, 2.0 * slope * left
        cost[~asked], gradient[~asked] = np.nan, np.nan  # may be anything
        return cost, gradient, (2.0 * slope**2)[:, None, None]

    place, evaluations, converged = search(
        model, 2, np.array([0.5, 0.5]), np.full(2, -5.0), np.full(2, 5.0), tolerance=1e-12
    )
    np.testing.assert_allclose(place, [1.0, 16.0 ** (1 / 3)], atol=1e-4)
    assert converged
    counts = np.sum(asked_for, axis=0)
    assert counts[0] < counts[1] == evaluations


def test_search_stays_within_its_bounds():
    def model(x, asked):
        r = np.array([x[0] - 3.0, 10.0 * (x[1] - x[0] ** 2)])
        J = np.array([[1.0, 0.0], [-20.0 * x[0], 10.0]])
        return np.array([0.5 * float(r @ r)]), J.T @ r, (J.T @ J)[None]

    free, *_ = search(model, 1, np.array([0.5, 0.5]), np.full(2, -20.0), np.full(2, 20.0), tolerance=1e-14, most=200)
    np.testing.assert_allclose(free, [3.0, 9.0], atol=1e-5)
    bound, _, converged = search(
        model, 1, np.array([0.5, 0.5]), np.full(2, -2.0), np.full(2, 2.0), tolerance=1e-14, most=200
    )
    assert converged
    assert (bound <= 2.0).all()
    np.testing.assert_allclose(bound[1], 2.0)


def test_a_guess_of_the_rows_that_hold_changes_nothing() -> None:
    rng = np.random.default_rng(5)
    A, G = rng.standard_normal((30, 6)), rng.standard_normal((12, 6))
    R, x = np.linalg.qr(A, mode="r"), rng.standard_normal(6)
    found = passive_solution(x, R, G)
    assert found is not None
    for guess in (found[1], ~found[1], np.ones(12, dtype=bool), np.ones(3, dtype=bool)):
        again = passive_solution(x, R, G, guess)
        assert again is not None
        np.testing.assert_allclose(again[0], found[0], atol=1e-12)


def test_a_number_that_only_rounding_shows_stays_where_it_is() -> None:
    def parts(place, asked):
        left = place[0] - 3.0
        return np.array([left**2]), np.array([2.0 * left, 1e-13]), np.array([[[2.0, 0.0], [0.0, 1e-25]]])

    place, _, converged = search(parts, 1, np.array([0.0, 0.5]), np.full(2, -9.0), np.full(2, 9.0))
    assert converged
    np.testing.assert_allclose(place, [3.0, 0.5], atol=1e-3)
