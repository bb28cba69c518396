"""Numbers behind the plots of torque and residual, against closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.io.demo import demo_robot
from dynid.model.effects.dry_friction import Coulomb, LoadCoulomb
from dynid.model.effects.linear import Viscous
from dynid.model.robot import Robot
from dynid.pipeline.sections.context import predicted
from dynid.pipeline.sections.torque import (
    amplitude_density,
    autocorrelation,
    binned,
    friction_curve,
    friction_figure,
    independent_samples,
    spectrum_figure,
    torque_figure,
    typical_state,
    uniform_period,
)
from dynid.signals.samples import Samples


def _samples(robot: Robot, n: int = 400, seed: int = 0) -> Samples:
    rng = np.random.default_rng(seed)
    t = 0.01 * np.arange(n)
    rate = rng.uniform(1.0, 3.0, robot.n_joints)
    q, v, a = np.sin(np.outer(t, rate)), rate * np.cos(np.outer(t, rate)), -(rate**2) * np.sin(np.outer(t, rate))
    load = inverse_dynamics(robot, q, v, a, effects=False)
    torque = inverse_dynamics(robot, q, v, a, load) + 0.1 * rng.normal(size=q.shape)
    return Samples(t, q, v, a, torque, torque, load)


def test_friction_curve_is_the_law_of_its_parameters() -> None:
    robot = demo_robot()
    samples = _samples(robot)
    for j in range(robot.n_joints):
        speed, torque = friction_curve(robot, j, samples.velocity[:, j], typical_state(robot, samples))
        value = robot.parameters
        expected = value[f"fv{j + 1}"] * speed + value[f"fc{j + 1}"] * np.sign(speed) + value[f"fo{j + 1}"]
        np.testing.assert_allclose(torque, expected, rtol=1e-12, atol=1e-12)
        assert speed[0] == pytest.approx(samples.velocity[:, j].min())
        assert speed[-1] == pytest.approx(samples.velocity[:, j].max())


def test_friction_that_grows_with_load_is_drawn_at_the_typical_load() -> None:
    robot = demo_robot([Viscous(), LoadCoulomb()])
    robot = robot.with_parameters({f"flc{j + 1}": 0.1 for j in range(robot.n_joints)})
    samples = _samples(robot)
    speed, torque = friction_curve(robot, 1, samples.velocity[:, 1], typical_state(robot, samples))
    typical = float(np.median(np.abs(samples.load[:, 1])))
    fast = np.abs(speed) > 0.5
    expected = robot.parameters["fv2"] * speed + 0.1 * typical * np.sign(speed)
    np.testing.assert_allclose(torque[fast], expected[fast], rtol=1e-6)


def test_prediction_splits_into_bodies_and_friction() -> None:
    robot = demo_robot()
    samples = _samples(robot)
    log = predicted("log", robot, samples)
    rotors = np.array([robot.parameters[f"Ia{j + 1}"] for j in range(robot.n_joints)]) * samples.acceleration
    bodies = inverse_dynamics(robot, samples.position, samples.velocity, samples.acceleration, effects=False)
    np.testing.assert_allclose(log.prediction - log.friction, bodies + rotors, rtol=1e-9, atol=1e-9)
    assert log.residual.std() == pytest.approx(0.1, rel=0.1)


def test_torque_strips_keep_the_largest_torque() -> None:
    robot = demo_robot()
    log = predicted("log", robot, _samples(robot, 3_000))
    figure = torque_figure(robot, log, "torque", 300)
    for j, panel in enumerate(figure.panels):
        measured, prediction, difference = panel.curves
        assert np.abs(measured.y).max() == np.abs(log.torque[:, j]).max()
        assert np.abs(difference.y).max() == np.abs(log.residual[:, j]).max()
        np.testing.assert_allclose(measured.y - prediction.y, difference.y, atol=1e-12)
    drawn = max(len(panel.curves[0].x) for panel in figure.panels)
    assert drawn <= 300
    assert f"up to {drawn} of 3000 samples" in figure.caption


def test_robots_without_friction_have_no_friction_plot() -> None:
    robot = demo_robot("none")
    assert friction_figure(robot, predicted("log", robot, _samples(robot))) is None
    still = demo_robot([Coulomb()]).with_parameters({f"fc{j + 1}": 0.0 for j in range(7)})
    assert friction_figure(still, predicted("log", still, _samples(still))) is None


def test_autocorrelation_is_the_plain_sum() -> None:
    x = np.random.default_rng(1).normal(size=300).cumsum()
    found = autocorrelation(x, 40)
    centred = x - x.mean()
    expected = [centred[: len(x) - k] @ centred[k:] / (centred @ centred) for k in range(41)]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_array_equal(autocorrelation(np.ones(100), 5), 0.0)


def test_correlated_samples_count_for_less() -> None:
    from scipy.signal import lfilter

    rng = np.random.default_rng(2)
    n, phi = 200_000, 0.9
    noise = rng.normal(size=n)
    x = lfilter([1.0], [1.0, -phi], noise)
    assert independent_samples(x) == pytest.approx(n * (1.0 - phi) / (1.0 + phi), rel=0.15)
    assert independent_samples(noise) > 0.9 * n


def test_amplitude_density_holds_the_variance() -> None:
    from scipy.signal import welch

    x = np.random.default_rng(3).normal(size=20_000)
    frequency, density = amplitude_density(x, 0.01)
    # white noise of variance 1 up to 50 Hz
    assert np.median(density) == pytest.approx(np.sqrt(1.0 / 50.0), rel=0.1)
    all_frequencies, power = welch(x, 100.0, nperseg=2_500)
    np.testing.assert_allclose(np.interp(frequency, all_frequencies, np.sqrt(power)), density, rtol=1e-12)


def test_uneven_clocks_have_no_spectrum() -> None:
    robot = demo_robot()
    samples = _samples(robot)
    uneven = Samples(samples.time**1.1, samples.position, samples.velocity, samples.acceleration, samples.torque)
    assert uniform_period(uneven.time) is None
    assert spectrum_figure(robot, predicted("log", robot, uneven), []) is None
    assert uniform_period(samples.time) == pytest.approx(0.01)


def test_binned_means_follow_the_curve() -> None:
    x = (np.arange(1_000) - 499.5) / 500.0
    centre, mean, deviation = binned(x, x**2, 10)
    np.testing.assert_allclose(centre, np.linspace(-0.9, 0.9, 10), atol=1e-12)
    np.testing.assert_allclose(mean, centre**2 + 0.2**2 / 12.0, atol=1e-4)  # the mean of a square is more than its square
    assert deviation[0] == pytest.approx((x[:100] ** 2).std(), rel=1e-12)
