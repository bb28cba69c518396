"""Uncertainty of the numbers inside friction, against the Jacobian of everything together by finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.estimation.estimate import estimate
from dynid.estimation.friction.choice import FrictionChoice, choose_friction
from dynid.estimation.friction.data import FrictionData
from dynid.estimation.friction.fit import fit_model
from dynid.estimation.friction.inner import inner_uncertainty
from dynid.estimation.friction.model import FrictionModel
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.recording.samples import Samples
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from dynid.regression.torque import inverse_dynamics
from dynid.robot.effects import Armature, Coulomb, Coupled, Offset, OnJoints, SmoothCoulomb, Viscous
from dynid.robot.friction import searched_numbers
from dynid.robot.model import Robot
from problems import planar_2r

WIDTH, NOISE = 0.05, 0.05


def arm(width: float | tuple[float, float] = WIDTH) -> Robot:
    robot = planar_2r([Viscous(), SmoothCoulomb(smooth_width=width), Offset(), Armature()])
    return robot.with_parameters(
        {f"{s}{j}": x for j in (1, 2) for s, x in (("fv", 0.4), ("fc", 1.0), ("fo", 0.1), ("Ia", 0.02))}
    )


@pytest.fixture(scope="module")
def samples() -> Samples:
    time = np.arange(1200) / 200.0
    angle = np.outer(time, [2.1, 3.3])
    q, v, a = (
        0.4 * np.sin(angle),
        0.4 * np.array([2.1, 3.3]) * np.cos(angle),
        -0.4 * np.array([2.1, 3.3]) ** 2 * np.sin(angle),
    )
    q, v, a = (
        q + 0.1 * np.cos(7.0 * angle),
        v - 0.7 * np.array([2.1, 3.3]) * np.sin(7.0 * angle),
        a - 4.9 * np.array([2.1, 3.3]) ** 2 * np.cos(7.0 * angle),
    )
    torque = inverse_dynamics(arm(), q, v, a)
    torque += NOISE * np.random.default_rng(0).normal(size=torque.shape)
    return Samples(time=time, position=q, velocity=v, acceleration=a, torque=torque)


def test_sigmas_are_those_of_all_numbers_together(samples):
    robot = arm(0.04)
    fitted = fit_model(FrictionModel(robot, FrictionData.of(robot, samples, most_rows=10_000)), weighted=False)
    inner = inner_uncertainty(fitted)
    found = fitted.robot
    base = reduce_to_base(found)
    plain = estimate(build_regression(found, samples), base, OrdinaryLeastSquares(covariance="classical"))
    wide = inner.widen(plain)

    widths = np.array([number.value for number in inner.numbers])

    def predicted(beta: np.ndarray, log_widths: np.ndarray) -> np.ndarray:
        moved = arm(tuple(np.exp(log_widths)))
        moved = moved.with_parameters(moved.parameters.with_values(base.lift @ beta))
        return inverse_dynamics(moved, samples.position, samples.velocity, samples.acceleration).ravel()

    beta, n, h = plain.base_values, base.n_base, 1e-6
    unit = np.eye(n + 2)
    J = np.column_stack(
        [
            (
                predicted(beta + h * u[:n], np.log(widths) + h * u[n:])
                - predicted(beta - h * u[:n], np.log(widths) - h * u[n:])
            )
            / (2.0 * h)
            for u in unit
        ]
    )
    left = samples.torque.ravel() - predicted(beta, np.log(widths))
    covariance = left @ left / (len(left) - n - 2) * np.linalg.inv(J.T @ J)
    assert wide.sigma == pytest.approx(np.sqrt(np.diag(covariance))[:n], rel=0.02)
    names = list(base.names)
    assert wide.sigma[names.index("fc1")] > 1.05 * plain.sigma[names.index("fc1")]  # else nothing is tested
    half = np.array([np.log(number.upper / number.lower) / 2.0 for number in inner.numbers])
    assert half == pytest.approx(1.96 * np.sqrt(np.diag(covariance))[n:], rel=0.02)
    assert all(number.lower < WIDTH < number.upper for number in inner.numbers)


def test_a_number_at_the_end_of_its_range_is_held(samples):
    robot = arm(0.04)
    model = FrictionModel(robot, FrictionData.of(robot, samples, most_rows=10_000))
    fitted = fit_model(model, weighted=False)
    low, _ = model.bounds()
    held = inner_uncertainty(replace(fitted, theta=low))
    assert all(number.lower == number.value == number.upper for number in held.numbers)
    assert not held.moves


def test_numbers_of_joints_and_motors_have_the_names_of_their_effects(samples):
    """Motors have widths of their own, and joints that an effect is not on have none."""
    coupling = ((1.0, 0.0), (1.0, 1.0))
    motor = Coupled(SmoothCoulomb(smooth_width=0.2), coupling, motors=(2,))
    for effects, expected in (
        ([SmoothCoulomb(smooth_width=0.04), motor], {("smooth_width", 0), ("smooth_width", 1), ("smooth_widthm", 1)}),
        ([OnJoints(SmoothCoulomb(smooth_width=0.04), (2,))], {("smooth_width", 1)}),
    ):
        robot = planar_2r([Viscous(), *effects, Offset(), Armature()])
        fitted = fit_model(FrictionModel(robot, FrictionData.of(robot, samples, most_rows=10_000)), weighted=False)
        numbers = inner_uncertainty(fitted).numbers
        assert {(one.name, robot.joint_names.index(one.joint)) for one in numbers} == expected
        assert len(numbers) == len(expected)
        listed = {(one.joint, one.name): one.value for one in searched_numbers(fitted.robot)}
        assert listed == pytest.approx({(one.joint, one.name): one.value for one in numbers})


def test_a_number_that_no_row_shows_may_lie_anywhere(samples):
    robot = arm(0.04)
    model = FrictionModel(robot, FrictionData.of(robot, samples, most_rows=10_000))
    fitted = fit_model(model, weighted=False)
    silent = fitted.solution.own.copy()
    silent[[name in ("fc1", "fc2") for name in model.names]] = 0.0  # without friction its width does not matter
    numbers = inner_uncertainty(replace(fitted, solution=replace(fitted.solution, own=silent))).numbers
    low, high = (np.exp(limit) for limit in model.bounds())
    for number, first, last in zip(numbers, low, high, strict=True):
        assert (number.lower, number.upper) == pytest.approx((first, last))


def test_a_choice_keeps_its_numbers_when_stored(samples):
    choice = choose_friction(planar_2r([Viscous(), Coulomb(), Offset(), Armature()]), [samples], "smooth")
    again = FrictionChoice.from_dict(choice.robot, choice.as_dict())
    assert again.numbers == choice.numbers
    assert {number.joint for number in choice.numbers} == set(choice.robot.joint_names)
