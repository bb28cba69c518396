"""Every estimator takes every kind of rows: an estimate near the truth comes out, or a refusal in one sentence says why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pytest

from dynid.dynamics.regressors import proper_body_regressor, static_regressor
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.registry import METHODS, entry_named, method_named
from dynid.model.inertia import phi_from_mass_com_inertia
from dynid.model.parameters import Parameters
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.command_rows import CommandRows, CommandSamples
from dynid.regression.energy_rows import EnergyRows
from dynid.regression.factor import factorise
from dynid.regression.polynomial_rows import PolynomialRows
from dynid.regression.row_filter import FilterAndDecimate, FilteredRows
from dynid.regression.row_source import RowSource
from dynid.regression.static_rows import StaticRows
from dynid.regression.torque_rows import TorqueRows
from dynid.regression.wrench_rows import WrenchRows
from dynid.signals.commands import Command, PositionControl
from dynid.signals.polynomial_kernels import PolynomialApproximation
from dynid.signals.recording import WrenchRecording
from noisy_logs import exact_log, noisy_log, short_arm

NOISE = 0.02
"""Standard deviation of the noise, N m, N or kg m^2."""


@dataclass(frozen=True, eq=False)
class Known:
    """Rows with noise, base parameters and the values that made them."""

    source: RowSource
    base: BaseReduction
    truth: Parameters
    far: float
    """Distance from the truth that an estimate keeps, relative to its size."""


def _motion(make: Callable[[tuple[object, ...]], RowSource], far: float) -> Known:
    arm = short_arm()
    logs = tuple(noisy_log(exact_log(seconds=8.0, rate_hz=200.0, seed=seed), NOISE, seed) for seed in (2, 3))
    return Known(make(logs), reduce_to_base(arm), arm.parameters, far)


def filtered_torque() -> Known:
    every = FilterAndDecimate(cutoff_hz=15.0, every=4)
    return _motion(lambda logs: FilteredRows(TorqueRows(short_arm(), logs), every), 0.002)


def energy() -> Known:
    return _motion(lambda logs: EnergyRows(short_arm(), logs, interval_s=0.1), 0.005)


def polynomial() -> Known:
    return _motion(lambda logs: PolynomialRows(short_arm(), logs, PolynomialApproximation(window_s=0.08)), 0.03)


def static() -> Known:
    rigid = short_arm().with_effects(())
    rng = np.random.default_rng(5)
    q = rng.uniform(-2.0, 2.0, (60, rigid.n_joints))
    inertia, gravity = (part @ rigid.parameters.values for part in static_regressor(rigid, q))
    noise = NOISE * rng.normal(size=inertia.shape)
    rows = StaticRows(
        rigid, q, inertia + 0.5 * (noise + noise.swapaxes(1, 2)), gravity + NOISE * rng.normal(size=gravity.shape)
    )
    return Known(rows, reduce_to_base(rigid), rigid.parameters, 0.01)


def wrench() -> Known:
    """A tool of 1.3 kg that is swung on a sensor with offsets."""
    rng = np.random.default_rng(6)
    time = np.arange(0.0, 8.0, 0.005)
    phases = rng.uniform(0.0, 2.0 * np.pi, (3, 3, 3))
    swings = [sum(np.sin(np.outer(time, np.ones(3)) * (1.5 + k) + phases[i, k]) for k in range(3)) for i in range(2)]
    proper = 6.0 * swings[0] + np.array([0.0, 0.0, 9.81])
    angular = 2.0 * swings[1]
    turning = np.gradient(angular, time, axis=0)
    tool = phi_from_mass_com_inertia(1.3, np.array([0.02, -0.01, 0.06]), np.diag([6e-3, 5e-3, 4e-3]))
    offsets = np.array([1.0, -2.0, 0.5, 0.1, 0.05, -0.2])
    Y = proper_body_regressor(proper, angular, turning)
    measured = Y @ tool + offsets + np.array([NOISE] * 3 + [0.1 * NOISE] * 3) * rng.normal(size=(len(time), 6))
    recording = WrenchRecording(
        time=time, wrench=measured, angular_velocity=angular, linear_acceleration=proper, angular_acceleration=turning
    )
    rows = WrenchRows(recording)
    names = rows.parameters.names
    truth = rows.parameters.with_values(np.concatenate([tool, offsets]))
    return Known(rows, BaseReduction.from_matrix(np.eye(len(names)), names), truth, 0.005)


def command() -> Known:
    """Bodies, friction and rotors of position-controlled joints, all freed: the commands that make the noisy torque."""
    arm = short_arm()
    kp, logs = np.full(arm.n_joints, 200.0), []
    for seed in (2, 3):
        log = noisy_log(exact_log(seconds=8.0, rate_hz=400.0, seed=seed), NOISE, seed)
        assert log.torque is not None
        sent = Command(log.time, log.position + log.torque / kp, "linear")
        logs.append(CommandSamples(log, sent, PositionControl(kp, 0.0 * kp)))
    rows = CommandRows(arm, tuple(logs), np.zeros(arm.n_joints), arm.parameters.names)
    filtered = FilteredRows(rows, FilterAndDecimate(cutoff_hz=15.0, every=8))
    return Known(filtered, reduce_to_base(arm), arm.parameters, 0.01)


SOURCES = {make.__name__: make for make in (filtered_torque, energy, polynomial, static, wrench, command)}
REFUSED = {(method, rows): f"{rows} rows" for method in ("iv", "output-error") for rows in ("static", "wrench", "command")}
"""What cannot work, and words that the refusal has: instruments need a robot and the motion that its rows are made of."""


@lru_cache(maxsize=8)
def known(name: str) -> Known:
    return SOURCES[name]()


LONG = {(rows, method) for rows in ("energy", "polynomial") for method in ("iv", "output-error")}
"""Each of these simulates the arm for some seconds, as filtered torque rows do as well."""


@pytest.mark.parametrize(
    ("rows", "method"),
    [
        pytest.param(rows, method, marks=[pytest.mark.slow] if (rows, method) in LONG else [])
        for rows in SOURCES
        for method in METHODS
    ],
)
def test_an_estimate_or_one_sentence(rows: str, method: str) -> None:
    case = known(rows)
    regression = factorise(case.source)
    if (method, rows) in REFUSED:
        with pytest.raises(InputError, match=REFUSED[method, rows]) as refused:
            estimate(regression, case.base, method_named(method))
        assert "\n" not in str(refused.value)
        return
    found = estimate(regression, case.base, method_named(method))
    assert found.outcome.usable, found.outcome
    right = case.base.base_values(case.truth)
    off = np.linalg.norm(found.base_values - right) / np.linalg.norm(right)
    assert off < case.far
    assert np.isfinite(found.covariance).all()
    assert found.channel_names == tuple(channel.name for channel in case.source.channels)
    if entry_named(method).consistent:
        assert found.feasible
