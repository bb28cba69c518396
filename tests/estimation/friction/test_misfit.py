"""Torque that the model lacks: intervals hold the truth where friction has another form, and stay as they are where it has not."""

from dataclasses import replace

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.estimation.estimate import estimate
from dynid.estimation.friction.fit import FrictionFit, fit_model, nonlinear_parameters, widen_covariance
from dynid.estimation.friction.misfit import misfit_moves
from dynid.estimation.friction.model import FrictionModel
from dynid.estimation.friction.rows import FrictionData
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.result import Estimate
from dynid.model.effects.dry_friction import SmoothCoulomb, Stribeck
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from dynid.signals.samples import Samples
from problems import planar_2r

NOISE, WIDTH = 0.02, 0.05
PLAIN = (Viscous(), SmoothCoulomb(smooth_width=WIDTH), Offset(), Armature())
PEAK = Stribeck(smooth_width=WIDTH, stribeck_speed=0.4, form="exponential")
VALUES = {f"{symbol}{k}": value for k in (1, 2) for symbol, value in (("fv", 0.3), ("fc", 0.5), ("Ia", 0.2))}


def moved(robot: Robot, seed: int) -> Samples:
    rng, time = np.random.default_rng(seed), np.linspace(0.0, 20.0, 2001)
    rates = 2.0 * np.pi * np.array([0.13, 0.29, 0.47, 0.71])
    phase = rng.uniform(0.0, 2.0 * np.pi, (4, 2))
    size = rng.uniform(0.2, 0.5, (4, 2))
    angle = time[:, None, None] * rates[:, None] + phase
    q = (size * np.sin(angle)).sum(axis=1)
    v = (size * rates[:, None] * np.cos(angle)).sum(axis=1)
    a = -(size * rates[:, None] ** 2 * np.sin(angle)).sum(axis=1)
    torque = inverse_dynamics(robot, q, v, a) + NOISE * rng.normal(size=q.shape)
    return Samples(time=time, position=q, velocity=v, acceleration=a, torque=torque)


def fitted(samples: Samples) -> tuple[FrictionFit, Estimate]:
    """A fit of viscous and Coulomb friction, and the estimate around it, sure of the model."""
    robot = planar_2r(list(PLAIN))
    fit = fit_model(FrictionModel(robot, FrictionData.of(robot, samples, most_rows=10_000)), weighted=True)
    found = estimate(build_regression(fit.tuned, samples), reduce_to_base(fit.tuned), OrdinaryLeastSquares())
    return fit, widen_covariance(found, nonlinear_parameters(fit)[1], {})


def curve_z(fit: FrictionFit, found: Estimate, truth: Robot, speeds: Array) -> Array:
    """Errors of the friction curve of each joint in units of its standard deviation."""
    still = np.zeros((len(speeds), 2))
    v = np.tile(speeds[:, None], 2)
    names = found.standard.names
    rubs = [name for name in names if name.startswith("f")]
    unit = np.array(
        [
            inverse_dynamics(fit.tuned.with_parameters({other: float(other == name) for other in rubs}), still, v, still)
            for name in rubs
        ]
    )
    rest = inverse_dynamics(fit.tuned.with_parameters(dict.fromkeys(rubs, 0.0)), still, v, still)
    columns = np.array([list(found.base.names).index(name) for name in rubs])
    Y = np.moveaxis(unit - rest, 0, -1)
    value = Y @ found.base_values[columns]
    own = [name for name in truth.parameters.names if name.startswith("f")]
    true = inverse_dynamics(truth, still, v, still) - inverse_dynamics(
        truth.with_parameters(dict.fromkeys(own, 0.0)), still, v, still
    )
    sigma = np.sqrt(np.einsum("sjb,bc,sjc->sj", Y, found.covariance[np.ix_(columns, columns)], Y))
    return (value - true) / sigma


SPEEDS = np.array([-2.0, -1.2, -0.7, -0.3, 0.3, 0.7, 1.2, 2.0])


def test_intervals_hold_the_curve_of_friction_of_another_form():
    truth = planar_2r([*PLAIN, PEAK]).with_parameters({**VALUES, "fs1": 0.15, "fs2": 0.15})
    before, after = [], []
    for seed in range(6):
        fit, sure = fitted(moved(truth, seed))
        before.append(curve_z(fit, sure, truth, SPEEDS))
        after.append(curve_z(fit, widen_covariance(sure, {}, misfit_moves(fit)), truth, SPEEDS))
    assert np.mean(np.abs(before) <= 1.96) < 0.6  # else nothing is tested
    assert np.mean(np.abs(after) <= 1.96) >= 0.85


def test_intervals_stay_where_the_model_has_all_there_is():
    truth = planar_2r(list(PLAIN)).with_parameters(VALUES)
    grown = []
    for seed in range(6):
        fit, sure = fitted(moved(truth, seed))
        grown.append(widen_covariance(sure, {}, misfit_moves(fit)).sigma / sure.sigma)
    assert np.median(grown) < 1.1


def test_a_log_without_noise_moves_nothing():
    """What is left is rounding, which says nothing of the model."""
    truth = planar_2r(list(PLAIN)).with_parameters(VALUES)
    samples = moved(truth, 0)
    exact = inverse_dynamics(truth, samples.position, samples.velocity, samples.acceleration)
    fit, _ = fitted(replace(samples, torque=exact))
    assert max(float(np.abs(one).max()) for one in misfit_moves(fit).values()) < 1e-4


@pytest.mark.parametrize("joint", [1, 2])
def test_a_joint_that_stands_has_no_misfit(joint):
    truth = planar_2r(list(PLAIN)).with_parameters(VALUES)
    samples = moved(truth, 1)
    still = {name: np.array(getattr(samples, name)) for name in ("position", "velocity", "acceleration")}
    for one in still.values():
        one[:, joint - 1] = 0.0
    torque = inverse_dynamics(truth, *still.values()) + NOISE * np.random.default_rng(0).normal(size=(len(samples), 2))
    fit, _ = fitted(replace(samples, **still, torque=torque))
    assert all(np.isfinite(one).all() for one in misfit_moves(fit).values())
