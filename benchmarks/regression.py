"""The torque regressor and its triangular factor against Pinocchio and NumPy, in one process on one thread.

* end to end: ``build_regression`` and its triangle against a Python loop over ``computeJointTorqueRegressor`` that fills a
  preallocated joint-major W, followed by ``numpy.linalg.qr(mode="r")``. Both start from a robot and samples; ours includes
  finding which columns every joint has.
* regressor alone: ``torque_regressor`` into an array that is there already, against the same loop.
* filtered: the same end to end with a row filter and decimation in the same pass, against the loop, SciPy's ``upfirdn`` over
  the columns of W with the same taps, and one QR of the rows that are left (and, as ``filtered_over_plain_reference``, against
  loop and QR without a filter).
* extra memory: what our end-to-end runs need beside the samples.

The arm has seven joints and 57,656 samples (403,592 rows, 98 columns with friction and rotor inertia), the humanoid is TALOS
with 32 joints on a fixed base. Every run checks that both sides have the same ``R^T R``. ``--cpu`` takes CPU seconds instead of
the clock's, for a machine with other work.
"""

from __future__ import annotations

import measure

import argparse
import importlib.metadata
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import pinocchio as pin
import scipy.signal

from dynid.dynamics.inverse_dynamics import effect_signals, inverse_dynamics
from dynid.dynamics.pinocchio_model import pinocchio_model, to_pinocchio_position
from dynid.dynamics.regressors import torque_regressor
from dynid.dynamics.structure import forget_structures
from dynid.io.demo import demo_robot
from dynid.io.robots.read import read_robot
from dynid.model.robot import Robot
from dynid.regression.factor import build_regression
from dynid.regression.row_filter import BandLimit
from dynid.signals.samples import Samples

HUMANOID = "talos_data/robots/talos_reduced.urdf"
EFFECTS = ["viscous", "coulomb", "offset", "armature"]
BAND = BandLimit(12.0)
"""Keeps 30 of 1000 rows per second."""


class Reference:
    """What a user of Pinocchio and NumPy would write: joint-major W of all samples, one QR."""

    def __init__(self, robot: Robot, samples: Samples) -> None:
        self.robot, self.samples = robot, samples
        self.model = pinocchio_model(robot)
        self.working = self.model.createData()
        self.q = to_pinocchio_position(robot, samples.position)
        self.W = np.zeros((robot.n_dof, len(samples), len(robot.parameters)))

    def fill(self) -> None:
        """W, inertial columns in a loop over samples and friction columns by whole signals."""
        model, working, W, q = self.model, self.working, self.W, self.q
        v, a = self.samples.velocity, self.samples.acceleration
        n_inertial = self.robot.parameters.n_inertial
        regressor = pin.computeJointTorqueRegressor
        for k in range(len(q)):
            W[:, k, :n_inertial] = regressor(model, working, q[k], v[k], a[k])
        signals = effect_signals(self.robot, self.samples.position, v, a)
        for joint, column in zip(*np.nonzero(self.robot.effect_incidence), strict=True):
            W[joint, :, n_inertial + column] = self.robot.effect_incidence[joint, column] * signals[:, column]

    def factor(self) -> np.ndarray:
        """W and its triangle."""
        self.fill()
        return np.linalg.qr(self.W.reshape(-1, self.W.shape[2]), mode="r")

    def filtered_factor(self) -> np.ndarray:
        """W filtered along time and thinned out, and its triangle."""
        self.fill()
        period_s = float(self.samples.time[1] - self.samples.time[0])
        taps, every, edge = BAND.taps(period_s), BAND.every(period_s), BAND.edge_rows(period_s)
        reach, n = len(taps) // 2, len(self.samples)
        first = edge + -edge % every
        count = -(-(n - edge - first) // every)
        kept = np.empty((self.W.shape[0], count, self.W.shape[2]))
        ahead = -2 * reach % every  # rows before, so that the rows wanted are among those that are kept
        for joint, W in enumerate(self.W):
            before, after = 2.0 * W[0] - W[reach:0:-1], 2.0 * W[-1] - W[-2 : -reach - 2 : -1]
            whole = np.concatenate([np.zeros((ahead, W.shape[1])), np.concatenate([before, W, after])[first:]])
            kept[joint] = scipy.signal.upfirdn(taps, whole, down=every, axis=0)[(2 * reach + ahead) // every :][:count]
        return np.linalg.qr(kept.reshape(-1, kept.shape[2]), mode="r")


def humanoid() -> Robot:
    """TALOS as the wheel ``example-robot-data`` ships it; the wheel has no module that would tell where."""
    for entry in importlib.metadata.files("example-robot-data") or ():
        if entry.as_posix().endswith(HUMANOID):
            return read_robot(Path(str(entry.locate())), effects=EFFECTS)
    raise SystemExit(f"the package example-robot-data has no {HUMANOID}")


def random_samples(robot: Robot, n: int) -> Samples:
    """Samples of a robot in any state, with the torque of its own parameters."""
    rng = np.random.default_rng(7)
    q, v, a = rng.uniform(-1.5, 1.5, (n, robot.n_dof)), *rng.normal(size=(2, n, robot.n_dof))
    return Samples(np.arange(n) * 1e-3, q, v, a, inverse_dynamics(robot, q, v, a))


def fresh(robot: Robot) -> Robot:
    """The same robot before anything was found out about it."""
    forget_structures()
    return replace(robot)


def extra_memory_mb(call: Callable[[], object]) -> float:
    """Most memory that ``call`` held at a time: what NumPy allocated, or the growth of the process where Linux tells it."""
    call()  # compiled code and the like stay, and belong to no log
    tracemalloc.start()
    call()
    traced = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    before = _reset_peak_kb()
    if before is None:
        return traced / 1e6
    call()
    return max(traced, 1024 * (_status_kb("VmHWM") - before)) / 1e6


def _reset_peak_kb() -> int | None:
    """Let the process's peak begin at what it holds now, and say that; None where this cannot be done."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    return _status_kb("VmRSS")


def _status_kb(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise SystemExit(f"/proc/self/status has no {field}")


def compare(robot: Robot, samples: Samples, repeats: int, clock: Callable[[], float]) -> dict[str, float]:
    """The numbers of one robot, and the seconds behind them."""

    def ours() -> np.ndarray:
        return build_regression(fresh(robot), samples).triangle()

    def ours_filtered() -> np.ndarray:
        return build_regression(fresh(robot), samples, row_filter=BAND).triangle()

    def our_regressor() -> object:
        return torque_regressor(robot, samples.position, samples.velocity, samples.acceleration, reuse=Y)

    memory = extra_memory_mb(ours)  # before anything large was allocated and freed, whose pages would be reused
    filtered_memory = extra_memory_mb(ours_filtered)
    reference = Reference(robot, samples)
    Y = torque_regressor(robot, samples.position, samples.velocity, samples.acceleration)
    _close_triangles(ours(), reference.factor())
    _close_triangles(ours_filtered(), reference.filtered_factor())
    ours_s, reference_s = alternating(ours, reference.factor, repeats, clock)
    filtered_s, reference_filtered_s = alternating(ours_filtered, reference.filtered_factor, repeats, clock)
    regressor_s, loop_s = alternating(our_regressor, reference.fill, repeats, clock)
    _close(Y.transpose(1, 0, 2), reference.W, "regressors")
    return {
        "end_to_end_speedup": reference_s / ours_s,
        "regressor_speedup": loop_s / regressor_s,
        "filtered_speedup": reference_filtered_s / filtered_s,
        "filtered_over_plain_reference": reference_s / filtered_s,
        "extra_memory_mb": memory,
        "filtered_memory_mb": filtered_memory,
        "ours_seconds": ours_s,
        "reference_seconds": reference_s,
        "filtered_seconds": filtered_s,
        "reference_filtered_seconds": reference_filtered_s,
        "our_regressor_seconds": regressor_s,
        "loop_seconds": loop_s,
    }


def alternating(
    ours: Callable[[], object], reference: Callable[[], object], repeats: int, clock: Callable[[], float]
) -> tuple[float, float]:
    """Median seconds of both after a warm-up, taken in turn, so that a busy spell of the machine meets both."""
    ours()
    reference()
    calls = (ours, reference)
    pairs = [tuple(measure.median_time(call, 1, warmup=0, clock=clock) for call in calls) for _ in range(repeats)]
    mine, theirs = zip(*pairs, strict=True)
    return median(mine), median(theirs)


def _close_triangles(ours: np.ndarray, reference: np.ndarray) -> None:
    mine = ours[:, :-1]  # the last column is torque
    _close(mine.T @ mine, reference.T @ reference, "R^T R")


def _close(mine: np.ndarray, theirs: np.ndarray, what: str) -> None:
    worst = float(np.abs(mine - theirs).max() / np.abs(theirs).max())
    if not worst < 1e-10:
        raise SystemExit(f"{what} differ by {worst:.3g} of the largest entry, expected rounding errors")


def main() -> None:
    """Measure both robots and print."""
    options = measure.parser(__doc__)
    options.add_argument("--samples", type=int, default=57_656, help="samples of the arm")
    options.add_argument("--humanoid-samples", type=int, default=4_000, help="samples of the humanoid")
    options.add_argument("--cpu", action="store_true", help="CPU seconds instead of the clock's")
    arguments: argparse.Namespace = options.parse_args()
    clock = time.process_time if arguments.cpu else time.perf_counter
    repeats = 1 if arguments.smoke else 5
    shorter = 40 if arguments.smoke else 1
    result: dict[str, float] = {}
    for suffix, robot, n in (
        ("", demo_robot(EFFECTS), arguments.samples // shorter),
        ("_humanoid", humanoid(), arguments.humanoid_samples // shorter),
    ):
        found = compare(robot, random_samples(robot, max(n, 600)), repeats, clock)  # a filter needs some rows
        result |= {key + suffix: value for key, value in found.items()}
    measure.print_result(result, arguments.json)


if __name__ == "__main__":
    main()
