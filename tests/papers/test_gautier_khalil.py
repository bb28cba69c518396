"""Gautier and Khalil 1992: what a good motion is worth under noise (tables 2 to 12), relation (12) and the appendix.

The energy model of the three-joint arm with the published 15 base parameter values. Motions are sequences of points,
and noise is drawn as in section 6.3: ``k/4`` times the largest ``|Y|`` on ``Y``, ``k/4`` times the range of position
and the largest speed on the points that ``W`` is made of.

Joint limits are not printed, nor how random motions were drawn. A full turn and 2 rad/s allow optima as good as the
published ones. Random motions that use all of that speed are far better than the published random ones (mean
condition number 92 instead of 954 for r = 30); with speeds up to 0.6 rad/s they have the condition numbers of Table
2, so these stand for them. Against random motions at full speed the optimum still gains a factor of about five.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from scipy.optimize import minimize

from dynid.arrays import Array
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.result import Estimate
from dynid.parameters import Column, Parameters
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.energy import energy_regressor
from dynid.regression.factor import matrix_regression
from dynid.robot.model import Joint, Robot, make_robot

VALUES = {
    "Izz1": 5.0186, "Ixx2": -2.05, "Ixy2": 0.7, "Ixz2": -1.07, "Iyz2": 0.65, "Izz2": 6.55, "mx2": 4.3, "my2": 0.6,
    "Ixx3": 0.7634, "Ixy3": 0.6872, "Ixz3": 0.55, "Iyz3": -0.6, "Izz3": 0.9646, "mx3": 0.528, "my3": 1.14,
}  # fmt: skip
"""Tables 6, 7, 11 and 12, column X: ZZR1 XXR2 XY2 XZR2 YZ2 ZZR2 MXR2 MY2 XXR3 XY3 XZ3 YZ3 ZZ3 MX3 MY3."""
X = np.array(list(VALUES.values()))
NOISE_LEVELS = (0.001, 0.01, 0.1)
TURN, SPEED = np.pi, 2.0
RANDOM_SPEED = 0.6
CLASSICAL = OrdinaryLeastSquares(covariance="classical")


@lru_cache(maxsize=1)
def arm() -> tuple[Robot, BaseReduction]:
    """Table 1: modified DH, the second axis horizontal, the third parallel to it at 0.5 m and 0.2 m along it."""
    spin = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    second, third = np.eye(4), np.eye(4)
    second[:3, :3] = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]]  # alpha = -90 degrees
    third[:3, 3] = [0.5, 0.0, 0.2]
    joints = [
        Joint(f"joint{i + 1}", "revolute", i - 1, place, spin, q_min=-TURN, q_max=TURN, dq_max=SPEED)
        for i, place in enumerate((np.eye(4), second, third))
    ]
    robot = make_robot("gautier_khalil_3r", joints, np.zeros((3, 10)))
    return robot, reduce_to_base(robot)


def energy_rows(points: Array) -> Array:
    """``W`` over all parameters: differences of the energy regressor between consecutive points ``(q, v)``."""
    robot, _ = arm()
    return np.diff(energy_regressor(robot, points[:, :3], points[:, 3:]), axis=0)


def base_rows(points: Array) -> Array:
    return energy_rows(points) @ arm()[1].lift


def identify(points: Array, Y: Array) -> Estimate:
    robot, base = arm()
    matrix = np.column_stack([energy_rows(points), Y])
    return estimate(matrix_regression(robot.parameters, ["energy"], [matrix]), base, CLASSICAL)


def random_points(r: int, seed: int, speed: float = RANDOM_SPEED) -> Array:
    rng = np.random.default_rng(seed)
    return np.hstack([rng.uniform(-TURN, TURN, (r + 1, 3)), rng.uniform(-speed, speed, (r + 1, 3))])


@lru_cache(maxsize=4)
def optimum_points(r: int) -> Array:
    """Points that minimise the Frobenius condition number of ``W^T W`` (21), within limits by change of variables (4.2)."""
    robot, base = arm()
    lift = base.lift

    def points_of(x: Array) -> Array:
        x = x.reshape(r + 1, 6)
        return np.hstack([TURN * (2.0 * np.sin(x[:, :3]) ** 2 - 1.0), SPEED * np.sin(x[:, 3:])])

    def h_of(points: Array) -> Array:
        return energy_regressor(robot, points[:, :3], points[:, 3:]) @ lift

    def cost(x: Array) -> tuple[float, Array]:
        points, step = points_of(x), 1e-6
        W = np.diff(h_of(points), axis=0)
        A = W.T @ W
        inverse = np.linalg.inv(A)
        square, square_inverse = float(np.sum(A * A)), float(np.sum(inverse * inverse))
        dW = 2.0 * W @ (A / square - inverse @ inverse @ inverse / square_inverse)
        dh = np.vstack([-dW[:1], dW[:-1] - dW[1:], dW[-1:]])
        gradient = np.empty((r + 1, 6))
        for k in range(6):
            shift = np.zeros((r + 1, 6))
            shift[:, k] = step
            up, down = (points_of(x + s * shift.ravel()) for s in (1.0, -1.0))
            gradient[:, k] = np.sum(dh * (h_of(up) - h_of(down)), axis=1) / (2.0 * step)
        return 0.5 * np.log(square * square_inverse), gradient.ravel()

    best = min(
        (
            minimize(
                cost,
                np.random.default_rng(seed).normal(size=6 * (r + 1)),
                jac=True,
                method="L-BFGS-B",
                options={"maxiter": 400, "maxfun": 600},
            )
            for seed in range(3)
        ),
        key=lambda found: float(found.fun),
    )
    return points_of(best.x)


def disturbed(points: Array, k: float, rng: np.random.Generator) -> Array:
    noise = rng.normal(size=points.shape)
    noise[:, :3] *= k / 4.0 * (2.0 * TURN)
    noise[:, 3:] *= k / 4.0 * SPEED
    return points + noise


def relative_errors(points: Array, k: float, n_draws: int, on_torque: bool, on_motion: bool, seed: int = 0) -> Array:
    """``||dX|| / ||X||`` of repeated draws."""
    rng = np.random.default_rng(seed)
    Y = base_rows(points) @ X
    errors = np.empty(n_draws)
    for i in range(n_draws):
        dY = k / 4.0 * np.abs(Y).max() * rng.normal(size=len(Y)) if on_torque else 0.0
        found = identify(disturbed(points, k, rng) if on_motion else points, Y + dY)
        errors[i] = np.linalg.norm(found.base_values - X) / np.linalg.norm(X)
    return errors


def test_the_default_grouping_is_the_published_one() -> None:
    _, base = arm()
    assert base.names == tuple(VALUES)
    by_name = dict(zip(base.names, base.expressions(), strict=True))
    assert base.n_base == 15
    assert by_name["Izz2"] == "Izz2 + 0.25 m3"  # ZZR2 = ZZ2 + D3^2 M3
    assert by_name["Ixx2"].startswith("Ixx2 - Iyy2 ")
    assert by_name["Ixx3"] == "Ixx3 - Iyy3"


@pytest.mark.parametrize(("r", "published"), [(15, 53.0), (30, 11.0)])
def test_optimised_points_are_as_well_conditioned_as_published(r: int, published: float) -> None:
    """Table 2, last column: not the same points, but not worse."""
    assert np.linalg.cond(base_rows(optimum_points(r))) <= published


@pytest.mark.parametrize(("r", "mean"), [(15, 27994.0), (20, 1945.0), (30, 953.98), (50, 586.09), (200, 438.67)])
def test_random_points_are_as_badly_conditioned_as_published(r: int, mean: float) -> None:
    """Table 2, mean of ten random sequences; a few rows more than parameters scatter widely."""
    random = np.mean([np.linalg.cond(base_rows(random_points(r, seed))) for seed in range(40)])
    assert mean / 2.5 < random < 2.5 * mean


@pytest.mark.parametrize("r", [15, 30])
@pytest.mark.parametrize("k", NOISE_LEVELS)
def test_relation_12_holds_on_every_draw(r: int, k: float) -> None:
    """``||dX|| / ||X|| <= cond(W) ||dY|| / ||Y||`` with W exact (tables 3 and 8), for good points and for random ones."""
    rng = np.random.default_rng(0)
    for points in (optimum_points(r), random_points(r, 0), random_points(r, 1)):
        Y = base_rows(points) @ X
        for _ in range(25):
            dY = k / 4.0 * np.abs(Y).max() * rng.normal(size=len(Y))
            found = identify(points, Y + dY)
            error = np.linalg.norm(found.base_values - X) / np.linalg.norm(X)
            assert error <= found.condition_number * np.linalg.norm(dY) / np.linalg.norm(Y) * (1.0 + 1e-9)


@pytest.mark.parametrize("k", NOISE_LEVELS)
def test_noise_on_the_torque_hurts_a_random_motion_ten_times_more(k: float) -> None:
    """Table 3, r = 30: 4.7e-4, 0.007, 0.059 for the optimum against 0.018, 0.161, 1.796."""
    good = np.median(relative_errors(optimum_points(30), k, 30, True, False))
    random = np.median([relative_errors(random_points(30, seed), k, 3, True, False, seed) for seed in range(10)])
    assert 10.0 * good <= random
    fast = np.median([relative_errors(random_points(30, seed, SPEED), k, 3, True, False, seed) for seed in range(10)])
    assert 4.0 * good <= fast


@pytest.mark.parametrize("on_torque", [False, True])
@pytest.mark.parametrize("k", NOISE_LEVELS)
def test_noise_on_the_motion_hurts_a_random_motion_twice_as_much(k: float, on_torque: bool) -> None:
    """Tables 4 and 5, r = 30: 0.0041, 0.0384, 0.4691 for the optimum against 0.013, 0.1853, 2.0129."""
    good = np.median(relative_errors(optimum_points(30), k, 30, on_torque, True))
    for speed in (RANDOM_SPEED, SPEED):
        random = np.median(
            [relative_errors(random_points(30, seed, speed), k, 3, on_torque, True, seed) for seed in range(10)]
        )
        assert 2.0 * good <= random


@pytest.mark.parametrize("k", NOISE_LEVELS)
def test_fifteen_rows_are_still_enough_for_good_points(k: float) -> None:
    """Table 8, r = 15: 0.0047, 0.05, 0.53 against 0.39, 5.35, 53.55."""
    good = np.median(relative_errors(optimum_points(15), k, 30, True, False))
    random = np.median([relative_errors(random_points(15, seed), k, 3, True, False, seed) for seed in range(10)])
    assert 10.0 * good <= random


def test_claimed_standard_deviations_are_those_of_the_draws() -> None:
    """Tables 6 and 7: ``C = sigma^2 (W^T W)^-1``; the deviation is within two of them for nearly all parameters."""
    points, rng = optimum_points(30), np.random.default_rng(1)
    Y = base_rows(points) @ X
    sigma = 0.01 / 4.0 * np.abs(Y).max()
    W = base_rows(points)
    wanted = sigma * np.sqrt(np.diag(np.linalg.inv(W.T @ W)))
    found = [identify(points, Y + sigma * rng.normal(size=len(Y))) for _ in range(100)]
    claimed = np.sqrt(np.mean([one.sigma**2 for one in found], axis=0))
    assert np.allclose(claimed, wanted, rtol=0.1)
    assert np.allclose(np.std([one.base_values for one in found], axis=0), wanted, rtol=0.3)
    assert np.mean(np.abs([one.base_values - X for one in found]) < 2.0 * wanted) == pytest.approx(0.95, abs=0.02)


# Appendix -----------------------------------------------------------------------------------------


def two_by_two(A: Array, Y: Array) -> Estimate:
    parameters = Parameters(tuple(Column(s, 1, "friction", "", "") for s in "ab"), np.zeros(2))
    regression = matrix_regression(parameters, ["rows"], [np.column_stack([A, Y])])
    return estimate(regression, BaseReduction.from_matrix(np.eye(2), parameters.names), CLASSICAL)


def test_appendix_example_1() -> None:
    """A perturbation of 7e-4 changes the solution by 163 %: (A1) to (A7), 1-norm."""
    A, Y, dY = np.array([[4.1, 2.8], [9.7, 6.6]]), np.array([4.1, 9.7]), np.array([0.01, 0.0])
    before, after = two_by_two(A, Y).base_values, two_by_two(A, Y + dY).base_values
    assert np.allclose(before, [1.0, 0.0], atol=1e-10)
    assert np.allclose(after, [0.34, 0.97], atol=1e-10)
    condition = np.linalg.cond(A, 1)
    assert condition == pytest.approx(2249.4, abs=0.05)
    change = np.abs(after - before).sum() / np.abs(before).sum()
    assert change == pytest.approx(1.63, abs=1e-9)
    assert np.abs(dY).sum() / np.abs(Y).sum() == pytest.approx(7.246e-4, abs=5e-8)
    assert change == pytest.approx(condition * np.abs(dY).sum() / np.abs(Y).sum(), rel=1e-9)  # chosen for equality


def test_appendix_example_2() -> None:
    """An unequilibrated matrix: its condition number of 1e6 means nothing for one perturbation and all for another."""
    A, Y = np.diag([1.0, 1e-6]), np.array([1.0, 1e-6])
    found = two_by_two(A, Y)
    assert np.allclose(found.base_values, [1.0, 1.0])
    assert found.condition_number == pytest.approx(1e6, rel=1e-9)
    assert found.condition_number_scaled == pytest.approx(1.0, rel=1e-12)
    for dY, change in ((np.array([1e-6, 0.0]), 1e-6 / np.sqrt(2.0)), (np.array([0.0, 1e-6]), 1.0 / np.sqrt(2.0))):
        moved = two_by_two(A, Y + dY).base_values - found.base_values
        relative = np.linalg.norm(moved) / np.sqrt(2.0)
        assert relative == pytest.approx(change, rel=1e-6)
        assert relative <= found.condition_number * np.linalg.norm(dY) / np.linalg.norm(Y)
