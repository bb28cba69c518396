"""Lomakin and Deutscher 2020: polynomial approximation against Savitzky-Golay filters, on a simulated seven-joint arm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from scipy.signal import savgol_coeffs

import dynid
from dynid.arrays import Array
from dynid.excitation.shapes import random_fourier
from dynid.regression.polynomial_rows import polynomial_regression
from dynid.regression.row_filter import FilterAndDecimate
from dynid.signals.kernel_filter import SampledKernel, approximate_derivatives, sample_kernel
from dynid.signals.polynomial_kernels import PolynomialApproximation
from tables_of import markdown

_SAMPLE_S = 0.004
_PAPER = PolynomialApproximation(order=1, product_order=2, window_s=0.044, alpha=3.0, beta=3.0)
_LONG = replace(_PAPER, window_s=0.084)
_PERIOD_S, _HARMONICS = 10.0, 15
_ENCODERS = {"2^20": 2**20, "2^14": 2**14}
_SEEDS = 3
_REPLAY_S = 3.0

_Rows: TypeAlias = Callable[[dynid.Robot, dynid.Recording], dynid.Regression]


def kernels() -> str:
    """How far velocity and acceleration are from derivatives of the smoothed position, and what noise they pass."""
    filters = {
        "Savitzky-Golay 11, order 2": [_savitzky_golay_kernel(11, 2, k) for k in range(3)],
        "Savitzky-Golay 11, order 4": [_savitzky_golay_kernel(11, 4, k) for k in range(3)],
        "polynomial approximation, paper": [sample_kernel(_PAPER.kernel(k), _SAMPLE_S) for k in range(3)],
        "the same, `T = 84 ms`": [sample_kernel(_LONG.kernel(k), _SAMPLE_S) for k in range(3)],
    }
    rows = []
    for name, (smooth, velocity, acceleration) in filters.items():
        bias = [_bias(velocity, smooth, frequency) for frequency in (1.5, 4.5, 10.0)]
        bias.append(_bias(acceleration, smooth, 4.5))
        gains = (velocity.noise_gain, acceleration.noise_gain)
        rows.append((name, *(f"{value:.1e}" for value in bias), *(f"{gain:.1e}" for gain in gains)))
    header = ("", "velocity, 1.5 Hz", "4.5 Hz", "10 Hz", "acceleration, 4.5 Hz")
    return markdown((*header, "noise gain of velocity", "of acceleration"), rows)


def section_7() -> str:
    """Torque error of the estimated parameters on an unseen motion, medians over a few logs."""
    methods: dict[str, _Rows] = {
        "Savitzky-Golay 11, order 2": _savitzky_golay,
        "product rule, `N* = 2`": lambda robot, log: polynomial_regression(robot, log, _PAPER, composition="product"),
        "pointwise rows": lambda robot, log: polynomial_regression(robot, log, _PAPER, composition="pointwise"),
        "`Y(q_hat, v_hat, a_hat)`": _differentiated,
        "product rule, `T = 84 ms`": lambda robot, log: polynomial_regression(robot, log, _LONG, composition="product"),
    }
    columns = [
        np.median([_torque_errors(counts, seed, list(methods.values())) for seed in range(_SEEDS)], axis=0)
        for counts in _ENCODERS.values()
    ]
    rows = [(name, *(f"{value:#.3g}" for value in row)) for name, row in zip(methods, np.transpose(columns), strict=True)]
    return markdown(("error of torque, %", *(f"{name} counts" for name in _ENCODERS)), rows)


def delta() -> str:
    """Table I again, with its second column as the truth of a simulated delta: percent from the truth, and the replay."""
    robot, motion, log = _delta_log()
    base = dynid.reduce_to_base(robot)
    truth = base.base_values(robot.parameters)
    plain = dynid.OrdinaryLeastSquares(covariance="classical")
    approximated = polynomial_regression(robot, log, _PAPER, composition="product")
    rough = dynid.process(log, [dynid.LowPass(cutoff_hz=24.0), dynid.Differentiate(velocity="position")])
    rows = dynid.build_regression(robot, rough, row_filter=FilterAndDecimate(every=8, cutoff_hz=12.0))
    found = {
        "OLS filtered": dynid.estimate(_savitzky_golay(robot, log), base, plain),
        "OLS with PA": dynid.estimate(approximated, base, plain),
        "MRLS with PA": dynid.estimate(approximated, base, dynid.RecursiveLeastSquares()),
        "filtered rows": dynid.estimate(rows, base, plain),
    }
    shown = [
        (name, f"{value:.4f}", *(f"{100.0 * (one.base_values[k] / value - 1.0):+.2f}" for one in found.values()))
        for k, (name, value) in enumerate(zip(base.names, truth, strict=True))
    ]
    part = motion[: int(_REPLAY_S / _SAMPLE_S) + 1]
    far = []
    for one in found.values():
        played = dynid.replay(robot.with_parameters(one.standard), part, window_s=_REPLAY_S)
        far.append(f"{1e3 * float(np.linalg.norm(played.position - played.measured, axis=2).mean()):.2f}")
    replayed = (f"mean distance of replayed and measured `q` over {_REPLAY_S:g} s, mrad", "", *far)
    return markdown(("", "truth", *(f"{name}, %" for name in found)), [*shown, replayed])


def _delta_log() -> tuple[dynid.Robot, dynid.Samples, dynid.Recording]:
    """The lumped delta, its true motion with the measured torque, and its log: 2^20 counts per turn, 0.05 N m of torque noise."""
    path = Path(__file__).parents[2] / "examples" / "robots" / "delta_rl5_lumped.toml"
    robot = dynid.read_robot(path, effects="viscous,coulomb")
    t = _SAMPLE_S * np.arange(20_000)
    q, v, a = random_fourier(robot, 3.1377, 5, seed=0).evaluate(t)
    tau = dynid.inverse_dynamics(robot, q, v, a)
    noisy = tau + 0.05 * np.random.default_rng(0).normal(size=tau.shape)
    count = 2.0 * np.pi / 2**20
    log = dynid.Recording(time=t, position=np.round(q / count) * count, joint_names=robot.joint_names, torque=noisy)
    return robot, dynid.Samples(t, q, v, a, noisy), log


def _savitzky_golay_kernel(window: int, order: int, derivative: int) -> SampledKernel:
    taps = savgol_coeffs(window, order, deriv=derivative, delta=_SAMPLE_S)
    return SampledKernel(taps, _SAMPLE_S, 0.5 * (window - 1) * _SAMPLE_S, derivative, f"savitzky_golay_{derivative}")


def _bias(kernel: SampledKernel, smooth: SampledKernel, frequency_hz: float) -> float:
    """``|H_k / ((i 2 pi f)^k H_0) - 1|``."""
    ratio = kernel.frequency_response([frequency_hz]) / smooth.frequency_response([frequency_hz])
    return float(np.abs(ratio / (2j * np.pi * frequency_hz) ** kernel.derivative - 1.0)[0])


def _savitzky_golay(robot: dynid.Robot, log: dynid.Recording) -> dynid.Regression:
    return dynid.build_regression(robot, dynid.process(log, [dynid.SavitzkyGolay(11, 2, velocity="position")]))


def _differentiated(robot: dynid.Robot, log: dynid.Recording) -> dynid.Regression:
    """The kernels (29)-(32) on position and torque, without integration by parts."""
    assert log.torque is not None
    q, v, a = approximate_derivatives(log.position, _PAPER, _SAMPLE_S, (0, 1, 2))
    (tau,) = approximate_derivatives(log.torque, _PAPER, _SAMPLE_S, (0,))
    return dynid.build_regression(robot, dynid.Samples(q.time, q.values, v.values, a.values, tau.values))


def _torque_errors(counts: int, seed: int, methods: list[_Rows]) -> list[float]:
    """``||Y (beta_hat - beta)|| / ||Y beta||``, percent, on one motion that no estimate has seen."""
    arm = dynid.demo_robot()
    reference = random_fourier(arm, _PERIOD_S, _HARMONICS, seed=seed).samples(1.0 / _SAMPLE_S)
    made = dynid.simulate(arm, reference, rate_hz=1.0 / _SAMPLE_S, encoder_counts=counts, seed=seed)
    base = dynid.reduce_to_base(made.robot)
    unseen = random_fourier(made.robot, _PERIOD_S, _HARMONICS, seed=1000).samples(100.0)
    Y = dynid.torque_regressor(made.robot, unseen.position, unseen.velocity, unseen.acceleration)
    W: Array = Y.reshape(-1, base.n_parameters) @ base.lift
    truth = base.base_values(made.robot.parameters)
    errors = []
    for rows in methods:
        beta = dynid.estimate(
            rows(made.robot, made.recording), base, dynid.OrdinaryLeastSquares(covariance="classical")
        ).base_values
        errors.append(100.0 * float(np.linalg.norm(W @ (beta - truth)) / np.linalg.norm(W @ truth)))
    return errors
