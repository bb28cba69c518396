"""A servo that is driven by voltage (Dynamixel XL330 with a pendulum): ours against friction models of the BAM kind, same splits.

Two of three trajectories identify, at all four firmware gains; the third is rolled out, whole logs from their first state. Errors are the
mean absolute error of position over time and gains, mrad, for each choice of the third (``sin_sin``, ``lift_and_drop``, ``up_and_down``)
and the largest of them. The reference is a model as rich as the richest of BAM (Rhoban): dry friction with Stribeck effect, each part
growing with the torques of motor and load, and a part with the square of the load; written here with SciPy, fitted to whole logs by
bounded least squares (soft L1) from several starts; it is not BAM's own code or its CMA-ES. ``seconds`` are CPU seconds of our three fits.
Ours has the defaults of the command line with the name of the servo; its effects were designed with these three splits in view.
``--smoke`` uses one gain and 2 s of each log.
"""

from __future__ import annotations

import measure

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas
from numba import njit
from scipy.optimize import least_squares

from dynid.apps.actuators.identify import ActuatorRun, identify_actuators
from dynid.apps.actuators.options import SERVOS, ActuatorSettings

TRAJECTORIES = ("sin_sin", "lift_and_drop", "up_and_down")
SERVO = "xl330-m288"
KP_UNIT = SERVOS[SERVO].kp_unit
MASS, LENGTH, GRAVITY = 0.49, 0.1, 9.81
STARTS = 4
LOW = np.array([0.0049, 0.01, 0.0, 0.0, 0.0, 0.0, 0.005, 0.0, 0.0, 0.0, 0.0, 0.0, -0.1])
START = np.array([0.0059, 0.09, 0.03, 0.01, 0.02, 0.01, 0.1, 0.1, 0.1, 0.01, 0.01, 0.1, 0.001])
HIGH = np.array([0.02, 2.0, 0.5, 0.3, 0.3, 0.3, 2.0, 1.0, 1.0, 1.0, 1.0, 5.0, 0.1])


def data_folder() -> Path:
    """``DYNID_SHARED_DATA`` or ``../shared/data`` beside the repository."""
    given = os.environ.get("DYNID_SHARED_DATA")
    return Path(given) if given else Path(__file__).resolve().parents[2] / "shared" / "data"


@njit
def pendulum(p, kp, t, q, v, command, volts, enabled, out):  # type: ignore[no-untyped-def]
    """Positions of the reference at the stamps, semi-implicit steps of 1 ms; friction stops the joint within a step."""
    (
        inertia,
        torque_per_volt,
        brake,
        viscous,
        dry,
        stribeck,
        turning,
        by_motor,
        by_load,
        slow_motor,
        slow_load,
        square,
        bias,
    ) = p
    q += bias
    for k in range(len(t)):
        out[k] = q - bias
        if k + 1 == len(t):
            break
        steps = max(1, int(np.ceil((t[k + 1] - t[k]) / 1e-3)))
        h = (t[k + 1] - t[k]) / steps
        for _ in range(steps):
            duty = min(max(kp * (command[k] - q + bias), -1.0), 1.0)
            motor = torque_per_volt * duty * volts[k] - brake * v if enabled[k] > 0.0 else 0.0
            load = -MASS * GRAVITY * LENGTH * np.sin(q)
            slow = np.exp(-abs(v / turning))
            friction = dry + abs(by_motor * motor - by_load * load) + square * load * load
            friction += slow * (stribeck + abs(slow_motor * motor - slow_load * load))
            free = v + h / inertia * (motor + load - viscous * v)
            stopped = h / inertia * friction
            v = free - stopped if free > stopped else free + stopped if free < -stopped else 0.0
            q += h * v


def reference_errors(p: np.ndarray, logs: list[Any]) -> np.ndarray:
    """What the reference misses of logs."""
    parts = []
    for log in logs:
        out = np.empty(len(log))
        columns = (log[name].to_numpy() for name in ("q_cmd1", "volts", "enabled"))
        t, q = log["t"].to_numpy(), log["q1"].to_numpy()
        pendulum(p, KP_UNIT * float(log["kp"].iloc[0]), t, float(q[:5].mean()), float(log["dq1"].iloc[0]), *columns, out)
        parts.append(out - q)
    return np.concatenate(parts)


def reference(train: list[Any], starts: int) -> np.ndarray:
    """The reference fitted to logs from several starts."""
    rng, found = np.random.default_rng(0), []
    for number in range(starts):
        x = START * np.exp(rng.normal(0.0, 0.7 if number else 0.0, len(START)))
        x = np.clip(x, LOW + 1e-6, HIGH - 1e-6)
        options: dict[str, Any] = {"loss": "soft_l1", "f_scale": 0.05, "diff_step": 1e-3, "max_nfev": 60}
        found.append(least_squares(reference_errors, x, bounds=(LOW, HIGH), args=(train,), x_scale=0.1 * HIGH, **options))
    return np.asarray(min(found, key=lambda one: one.cost).x)


def ours(robot: Path, train: list[Path], unseen: list[Path]) -> ActuatorRun:
    """The identification as the command line has it."""
    return identify_actuators(robot, train, ActuatorSettings(motor=SERVO, delay=0.0), validate_on=unseen)


def main() -> None:
    """Measure both on the three splits and print."""
    arguments = measure.parser(__doc__).parse_args()
    folder = data_folder() / "xl330"
    if not (folder / "index.csv").is_file():
        sys.exit(f"{folder / 'index.csv'} is not there; set DYNID_SHARED_DATA to the folder of recordings")
    result: dict[str, Any] = {"xl330_mae_mrad": 0.0, "bam_like_mae_mrad": 0.0, "seconds": 0.0, "bam_like_seconds": 0.0}
    with tempfile.TemporaryDirectory() as made:
        logs: dict[str, list[tuple[Path, Any]]] = {name: [] for name in TRAJECTORIES}
        for row in pandas.read_csv(folder / "index.csv").itertuples():
            if arguments.smoke and row.kp != 400:
                continue
            log = pandas.read_parquet(folder / f"{row.file}.parquet").assign(kp=float(row.kp))
            log = log[log["t"] < 2.0] if arguments.smoke else log
            path = Path(made) / f"{row.trajectory}_{row.kp}.parquet"
            log.to_parquet(path)
            logs[row.trajectory].append((path, log))
        for third in TRAJECTORIES:
            train = [pair for name in TRAJECTORIES if name != third for pair in logs[name]]
            begun = time.process_time()
            run = ours(folder / "robot.urdf", [path for path, _ in train], [path for path, _ in logs[third]])
            result["seconds"] += time.process_time() - begun
            missed = np.concatenate([(one.simulated - one.measured).ravel() for one in run.rollouts[1]])
            begun = time.process_time()
            p = reference([log for _, log in train], 1 if arguments.smoke else STARTS)
            result["bam_like_seconds"] += time.process_time() - begun
            theirs = reference_errors(p, [log for _, log in logs[third]])
            joint = run.as_json()["joints"][0]
            for key, errors in (("xl330_mae_mrad", missed), ("bam_like_mae_mrad", theirs)):
                value = 1e3 * float(np.mean(np.abs(errors)))
                result[f"{key}_{third}"] = value
                result[key] = max(result[key], value)
            for word in ("kt", "resistance"):
                found = joint.get(word) or {"value": None, "sigma": None}
                result |= {f"{word}_{third}": found["value"], f"{word}_sigma_{third}": found["sigma"]}
    measure.print_result(result, arguments.json)


if __name__ == "__main__":
    main()
