"""Polynomial approximation against Savitzky-Golay: parameter error on a simulated seven-joint arm.

Claims of Lomakin and Deutscher (2020), section VII, with their settings: Savitzky-Golay over 11 samples with order 2
against T = 44 ms, N = 1, N* = 2, t_d = 14.7 ms, at a sample time of 4 ms; ordinary least squares. Logs of 10 s come
from the demonstration arm under computed torque, with quantised encoders and torque noise of 1 %; motions are random
Fourier series with a fundamental of 0.1 Hz up to the bandwidth named. Errors are medians over the seeds, in percent:
of torque on a motion that was not used, ``||Y (beta_hat - beta)|| / ||Y beta||``, and of the base parameters,
``||beta_hat - beta|| / ||beta||``.
"""

from __future__ import annotations

import measure

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.regressors import torque_regressor
from dynid.dynamics.simulate import simulate
from dynid.excitation.shapes import random_fourier
from dynid.io.demo import demo_robot
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.factor import Regression, build_regression
from dynid.regression.polynomial_rows import Composition, polynomial_regression
from dynid.signals.kernel_filter import approximate_derivatives
from dynid.signals.polynomial_kernels import PolynomialApproximation
from dynid.signals.process import process
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples
from dynid.signals.steps.filters import Differentiate, LowPass, SavitzkyGolay

SAMPLE_S = 0.004
PERIOD_S = 10.0
HARMONICS = {"0.5 Hz": 5, "1.5 Hz": 15, "4.5 Hz": 45}
ENCODERS = {"2^20": 2**20, "2^17": 2**17, "2^14": 2**14}
PAPER = PolynomialApproximation(order=1, product_order=2, window_s=0.044, alpha=3.0, beta=3.0)

TITLES = {
    "torque": "Torque error on an unseen motion, %",
    "parameters": "Error of the base parameters, %",
    "better": "Share of logs with less torque error than Savitzky-Golay 11, order 2, %",
    "changed": "Change of torque from the paper's settings, %",
    "error": "Torque error on an unseen motion with those settings, %",
}

Rows: TypeAlias = Callable[[Robot, Recording], Regression]


def savitzky_golay(window: int = 11, order: int = 2) -> Rows:
    """``Y(q, v, a)`` and torque, all smoothed alike."""

    def rows(robot: Robot, log: Recording) -> Regression:
        return build_regression(robot, process(log, [SavitzkyGolay(window, order, velocity="position")]))

    return rows


def approximation(composition: Composition, settings: PolynomialApproximation = PAPER) -> Rows:
    """Rows by parts, from position and torque."""

    def rows(robot: Robot, log: Recording) -> Regression:
        return polynomial_regression(robot, log, settings, composition=composition)

    return rows


def differentiated(settings: PolynomialApproximation = PAPER) -> Rows:
    """``Y(q_hat, v_hat, a_hat)`` and ``tau_hat`` with the kernels (29)-(32): no integration by parts."""

    def rows(robot: Robot, log: Recording) -> Regression:
        assert log.torque is not None
        q, v, a = approximate_derivatives(log.position, settings, SAMPLE_S, (0, 1, 2))
        (tau,) = approximate_derivatives(log.torque, settings, SAMPLE_S, (0,))
        return build_regression(robot, Samples(q.time, q.values, v.values, a.values, tau.values))

    return rows


def butterworth(cutoff_hz: float) -> Rows:
    """Zero-phase low-pass on position and torque alike, then central differences."""

    def rows(robot: Robot, log: Recording) -> Regression:
        return build_regression(robot, process(log, [LowPass(cutoff_hz), Differentiate(velocity="position")]))

    return rows


def methods() -> dict[str, Rows]:
    """The paper's settings, and beside them what is usual elsewhere."""
    return {
        "Savitzky-Golay 11, order 2": savitzky_golay(),
        "product rule, N* = 2": approximation("product"),
        "pointwise": approximation("pointwise"),
        "Y(q_hat, v_hat, a_hat)": differentiated(),
        "zero-phase Butterworth, 10 Hz": butterworth(10.0),
        "zero-phase Butterworth, 40 Hz": butterworth(40.0),
    }


def variations() -> dict[str, dict[str, Rows]]:
    """The same methods under other settings, by method."""
    shapes = {
        "N = 0": replace(PAPER, order=0),
        "N = 2": replace(PAPER, order=2),
        "N = 3": replace(PAPER, order=3),
        "later t_d": replace(PAPER, delay_zero=1),
        "alpha = beta = 2.5": replace(PAPER, alpha=2.5, beta=2.5),
        "alpha = beta = 5": replace(PAPER, alpha=5.0, beta=5.0),
        "alpha = 3, beta = 5": replace(PAPER, beta=5.0),
        "T = 28 ms": replace(PAPER, window_s=0.028),
        "T = 60 ms": replace(PAPER, window_s=0.060),
        "T = 84 ms": replace(PAPER, window_s=0.084),
        "T = 124 ms": replace(PAPER, window_s=0.124),
    }
    fits = {"11, order 3": (11, 3), "11, order 4": (11, 4), "11, order 6": (11, 6)} | {
        f"{window}, order 2": (window, 2) for window in (7, 15, 21, 31)
    }
    return {
        "Savitzky-Golay": {name: savitzky_golay(*fit) for name, fit in fits.items()},
        "product rule": {name: approximation("product", shape) for name, shape in shapes.items()},
        "pointwise": {name: approximation("pointwise", shape) for name, shape in shapes.items()},
    }


@dataclass(frozen=True, eq=False)
class Problem:
    """A log, the robot that made it and a motion to judge parameters by."""

    robot: Robot
    log: Recording
    base: BaseReduction
    Y: Array
    """Base regressor of the other motion."""

    @property
    def truth(self) -> Array:
        return self.base.base_values(self.robot.parameters)

    def solve(self, rows: Rows) -> Array:
        """Ordinary least squares."""
        stacked = rows(self.robot, self.log).stacked(self.base)
        return np.asarray(np.linalg.lstsq(stacked[:, :-1], stacked[:, -1])[0])

    def torque_error(self, beta: Array, reference: Array | None = None) -> float:
        """Percent of torque by which ``beta`` and the truth, or a reference, differ on the other motion."""
        other = self.truth if reference is None else reference
        return 100.0 * float(np.linalg.norm(self.Y @ (beta - other)) / np.linalg.norm(self.Y @ self.truth))

    def parameter_error(self, beta: Array) -> float:
        """Percent of the norm of the base parameters."""
        return 100.0 * float(np.linalg.norm(beta - self.truth) / np.linalg.norm(self.truth))


def record(harmonics: int, counts: int, seed: int) -> tuple[Robot, Recording]:
    """A simulated log and the robot that moved, whose Coulomb friction is as smooth as the integration had it."""
    robot = demo_robot()
    reference = random_fourier(robot, PERIOD_S, harmonics, seed=seed).samples(1.0 / SAMPLE_S)
    made = simulate(robot, reference, rate_hz=1.0 / SAMPLE_S, encoder_counts=counts, seed=seed)
    return made.robot, made.recording


def problem(harmonics: int, counts: int, seed: int) -> Problem:
    """The log of a seed; every log is judged by the same unseen motion of middling bandwidth."""
    robot, log = record(harmonics, counts, seed)
    base = reduce_to_base(robot)
    unseen = random_fourier(robot, PERIOD_S, 15, seed=1000).samples(100.0)
    Y = torque_regressor(robot, unseen.position, unseen.velocity, unseen.acceleration)
    return Problem(robot, log, base, Y.reshape(-1, len(robot.parameters)) @ base.lift)


def run(seeds: int, bands: Mapping[str, int], encoders: Mapping[str, int]) -> dict[str, Any]:
    """Medians of everything, and shares of logs, ``[encoder][table][method][band]``."""
    result: dict[str, Any] = {}
    for encoder, counts in encoders.items():
        found: dict[str, dict[str, dict[str, list[float]]]] = {table: {} for table in TITLES}

        def note(table: str, name: str, band: str, value: float, found: Any = found) -> None:
            found[table].setdefault(name, {}).setdefault(band, []).append(value)

        for band, harmonics in bands.items():
            for seed in range(seeds):
                one = problem(harmonics, counts, seed)
                own = {name: one.solve(rows) for name, rows in methods().items()}
                usual = next(iter(own.values()))
                for name, beta in own.items():
                    note("torque", name, band, one.torque_error(beta))
                    note("parameters", name, band, one.parameter_error(beta))
                    note("better", name, band, 100.0 * (one.torque_error(beta) < one.torque_error(usual)))
                reference = dict(zip(variations(), own.values(), strict=False))
                for family, settings in variations().items():
                    for name, rows in settings.items():
                        beta = one.solve(rows)
                        note("changed", f"{family}: {name}", band, one.torque_error(beta, reference[family]))
                        note("error", f"{family}: {name}", band, one.torque_error(beta))
                print(f"\r{encoder} {band} seed {seed + 1} of {seeds} ", end="", file=sys.stderr, flush=True)
        result[encoder] = {
            table: {
                name: {band: float((np.mean if table == "better" else np.median)(v)) for band, v in values.items()}
                for name, values in rows.items()
            }
            for table, rows in found.items()
        }
    print(file=sys.stderr)
    return result


def main() -> None:
    """Print all tables, or one JSON object."""
    options = measure.parser(__doc__)
    options.add_argument("--seeds", type=int, default=20)
    arguments = options.parse_args()
    size = (1, {"1.5 Hz": 15}, {"2^20": 2**20}) if arguments.smoke else (arguments.seeds, HARMONICS, ENCODERS)
    result = run(*size)
    if arguments.json:
        measure.print_result(result, as_json=True)
        return
    for encoder, tables in result.items():
        for table, rows in tables.items():
            bands = list(next(iter(rows.values())))
            print(f"\n{TITLES[table]}; encoders of {encoder} counts per turn\n")
            print(f"| | {' | '.join(bands)} |\n|---|{'---|' * len(bands)}")
            for name, values in rows.items():
                print(f"| {name} | {' | '.join(f'{value:.3g}' for value in values.values())} |")


if __name__ == "__main__":
    main()
