"""Uncertainty of the numbers inside friction, against the Jacobian of everything together by finite differences."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.estimation.estimate import estimate
from dynid.estimation.friction.fit import fit_friction, fit_model, nonlinear_parameters, widen_covariance
from dynid.estimation.friction.model import FrictionModel
from dynid.estimation.friction.rows import FrictionData
from dynid.estimation.friction.selection import FrictionChoice, choose_friction
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.model.effects.dry_friction import Coulomb, SmoothCoulomb
from dynid.model.effects.friction_models import friction_effects
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.effects.wrapped import Coupled, OnJoints
from dynid.model.friction import searched_values
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from dynid.signals.samples import Samples
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
    numbers, moves = nonlinear_parameters(fitted)
    found = fitted.tuned
    base = reduce_to_base(found)
    plain = estimate(build_regression(found, samples), base, OrdinaryLeastSquares(covariance="classical"))
    wide = widen_covariance(plain, moves, {})

    widths = np.array([number.value for number in numbers])

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
    half = np.array([np.log(number.upper / number.lower) / 2.0 for number in numbers])
    assert half == pytest.approx(1.96 * np.sqrt(np.diag(covariance))[n:], rel=0.02)
    assert all(number.lower < WIDTH < number.upper for number in numbers)


def test_a_number_at_the_end_of_its_range_has_an_interval_with_one_end(samples):
    robot = arm(0.04)
    model = FrictionModel(robot, FrictionData.of(robot, samples, most_rows=10_000))
    fitted = fit_model(model, weighted=False)
    low, high = model.bounds()
    held, moves = nonlinear_parameters(replace(fitted, theta=low))
    assert all(number.lower is None and number.value < number.upper for number in held)
    assert not moves
    held, _ = nonlinear_parameters(replace(fitted, theta=high))
    assert all(number.upper is None and number.lower < number.value for number in held)
    silent = replace(fitted.solution, own=np.zeros_like(fitted.solution.own))  # without friction no row shows it
    held, _ = nonlinear_parameters(replace(fitted, theta=high, solution=silent))
    assert all(number.lower is None and number.upper is None for number in held)


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
        numbers, _ = nonlinear_parameters(fitted)
        assert {(one.name, robot.joint_names.index(one.joint)) for one in numbers} == expected
        assert len(numbers) == len(expected)
        listed = {(one.joint, one.name): one.value for one in searched_values(fitted.tuned)}
        assert listed == pytest.approx({(one.joint, one.name): one.value for one in numbers})


def test_a_number_that_no_row_shows_may_lie_anywhere(samples):
    robot = arm(0.04)
    model = FrictionModel(robot, FrictionData.of(robot, samples, most_rows=10_000))
    fitted = fit_model(model, weighted=False)
    silent = fitted.solution.own.copy()
    silent[[name in ("fc1", "fc2") for name in model.names]] = 0.0  # without friction its width does not matter
    numbers, _ = nonlinear_parameters(replace(fitted, solution=replace(fitted.solution, own=silent)))
    low, high = (np.exp(limit) for limit in model.bounds())
    for number, first, last in zip(numbers, low, high, strict=True):
        assert (number.lower, number.upper) == pytest.approx((first, last))


def test_a_choice_keeps_its_numbers_when_stored(samples):
    choice = choose_friction(planar_2r([Viscous(), Coulomb(), Offset(), Armature()]), [samples], "smooth")
    again = FrictionChoice.from_dict(choice.robot, choice.as_dict())
    assert again.numbers == choice.numbers
    assert {number.joint for number in choice.numbers} == set(choice.robot.joint_names)


def test_friction_grows_with_what_the_joints_transmit_and_not_with_rotors():
    """The torque is written out here: that of the links, rotors before the gears, and friction of a share of the former.

    The first joint has none: its rotor cannot be told from the link.
    """
    links = planar_2r([])
    rng, time = np.random.default_rng(3), np.linspace(0.0, 20.0, 2001)
    rates, phase = 2.0 * np.pi * np.array([[0.23, 0.31], [0.61, 0.83]]), rng.uniform(0.0, 6.0, (2, 2))
    angle = time[:, None, None] * rates + phase
    q, v, a = np.sin(angle).sum(axis=1), (rates * np.cos(angle)).sum(axis=1), -(rates**2 * np.sin(angle)).sum(axis=1)
    carried, rotors, shares = inverse_dynamics(links, q, v, a), np.array([0.0, 1.5]), np.array([0.065, 0.04])
    torque = carried + rotors * a + 0.3 * v + (0.4 + shares * np.abs(carried)) * np.tanh(v / WIDTH)
    torque += 0.01 * rng.normal(size=torque.shape)
    robot = planar_2r([*friction_effects("load"), Armature()])
    found = fit_friction(robot, Samples(time, q, v, a, torque)).robot.parameters
    assert [found["flc1"], found["flc2"]] == pytest.approx(shares, rel=0.03)
    assert [found["Ia2"]] == pytest.approx(rotors[1:], rel=0.01)
