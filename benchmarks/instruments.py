"""Instrumental variables beside weighted least squares: bias and coverage against the truth, over many simulated logs.

The first three joints of the demonstration arm, with Coulomb friction that turns over 0.02 rad/s. Every log has a random motion of
its own, 5 s at 200 Hz, white torque noise of 1 % and quantised encoders: 2^17 counts per turn, where noise of torque is nearly all
there is, and 2^14, where noise of the motion enters the regressor and draws least squares away from the truth. Signals are
low-passed at 40 Hz, velocity and acceleration are differences of position, rows are those below 20 Hz.

``bias`` is the mean error over all logs, ``rms`` the root mean square error, both of the median base value in percent of the truth;
``bias_z`` is the mean error in units of sigma, root mean square over the base values (by chance ``1 / sqrt(logs)``); ``covers`` is
the share of the 95 % intervals, as ``Estimate.interval`` gives them, that hold the truth. The reference is 0.95.
"""

from __future__ import annotations

import measure

from collections.abc import Sequence
from functools import partial

import numpy as np

from dynid.dynamics.simulate import exact_motion
from dynid.engine import engine_from
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.instrumental import InstrumentalVariables
from dynid.estimation.methods.least_squares import WeightedLeastSquares
from dynid.estimation.result import Method
from dynid.excitation.shapes import random_fourier
from dynid.io.demo import demo_robot
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression
from dynid.regression.row_filter import BandLimit
from dynid.signals.process import process
from dynid.signals.recording import Recording
from dynid.signals.steps.filters import Differentiate, LowPass

COUNTS = (14, 17)
SECONDS, RATE_HZ, HARMONICS = 5.0, 200.0, 5
SIGNAL_BAND_HZ, ROW_BAND_HZ = 40.0, 20.0
NOISE = 0.01
METHODS: dict[str, Method] = {"wls": WeightedLeastSquares(), "iv": InstrumentalVariables()}


def arm() -> Robot:
    """The first three joints of the demonstration arm, with friction that turns smoothly."""
    whole = demo_robot()
    truth = whole.only(whole.joint_names[:3])
    return truth.with_effects([Viscous(), Coulomb(smooth_width=0.02), Offset(), Armature()])


def one_log(bits: int, seed: int) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Errors, sigmas and whether the interval holds, of every base value by each method."""
    robot = arm()
    exact = exact_motion(robot, random_fourier(robot, SECONDS, HARMONICS, seed).samples(RATE_HZ))
    rng = np.random.default_rng(seed)
    count = 2.0 * np.pi / 2**bits
    position = np.round(exact.position / count + rng.uniform(-0.5, 0.5, 3)) * count  # the zero of an encoder is anywhere
    assert exact.torque is not None
    size = NOISE * np.sqrt(np.mean(exact.torque**2, axis=0))
    torque = exact.torque + size * rng.normal(size=exact.torque.shape)
    log = Recording(time=exact.time, position=position, torque=torque, joint_names=robot.joint_names)
    steps = [LowPass(cutoff_hz=SIGNAL_BAND_HZ, signals=("position",)), Differentiate("position")]
    rows = build_regression(robot, process(log, steps), row_filter=BandLimit(ROW_BAND_HZ))
    base = reduce_to_base(robot)
    true = base.base_values(robot.parameters)
    found = {}
    for name, method in METHODS.items():
        result = estimate(rows, base, method)
        low, high = result.interval().T
        found[name] = (result.base_values - true, np.asarray(result.sigma), (low <= true) & (true <= high))
    return found


def measured(logs: Sequence[dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]], bits: int) -> dict[str, object]:
    """Bias, error and coverage of each method."""
    robot = arm()
    size = np.abs(reduce_to_base(robot).base_values(robot.parameters))
    result: dict[str, object] = {}
    for name in METHODS:
        errors, sigmas, holds = (np.array([log[name][k] for log in logs]) for k in range(3))
        result[f"{name}_bias_percent_{bits}"] = float(100.0 * np.median(np.abs(errors.mean(axis=0)) / size))
        result[f"{name}_rms_percent_{bits}"] = float(100.0 * np.median(np.sqrt(np.mean(errors**2, axis=0)) / size))
        result[f"{name}_bias_z_{bits}"] = float(np.sqrt(np.mean((errors / sigmas).mean(axis=0) ** 2)))
        result[f"{name}_covers_{bits}"] = float(holds.mean())
        result[f"{name}_covers_least_{bits}"] = float(holds.mean(axis=0).min())
    return result


def main() -> None:
    """Measure and print."""
    parser = measure.parser(__doc__)
    parser.add_argument("--logs", type=int, default=200, help="simulated logs per encoder")
    parser.add_argument("--engine", default="serial", help="such as processes:2")
    arguments = parser.parse_args()
    n_logs = 2 if arguments.smoke else arguments.logs
    engine = engine_from(arguments.engine)
    result: dict[str, object] = {"logs": n_logs}
    for bits in COUNTS:
        result |= measured(list(engine.map(partial(one_log, bits), range(n_logs))), bits)
    measure.print_result(result, arguments.json)


if __name__ == "__main__":
    main()
