"""Misread logs: real logs changed as they are misread, and whether the data check names it; and false alarms on logs as they are.

Needs the recordings that ``DYNID_SHARED_DATA`` names. ``raised``: of the changed logs, how many a rigid model with free bodies explains
clearly worse than before (half as much again of the root mean square torque left). ``named``: how many of these have an error or a
warning of the data check that the log as it is has not. ``hidden``: the others, which free bodies make up for, and how many of them are
named all the same. ``false_errors``: errors on logs as they are.
"""

from __future__ import annotations

import measure

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.model.robot import Robot
from dynid.pipeline.inspect import inspect_log
from dynid.pipeline.options import Settings
from dynid.pipeline.robot_setup import described_robot
from dynid.signals.measures import longest_part
from dynid.signals.recording import Recording
from dynid.validation.data_check import check_recording
from dynid.validation.model_fit import RigidFit, few_rows, fitted_model, smooth_samples

GAINS = (14.87, 13.26, 11.13, 10.62, 11.03, 11.47)
LOGS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("ur10e_mamedov/robot.urdf", "ur10e_mamedov/traj/20_02_10_30sec_12harm.parquet", {"drive_gains": GAINS}),
    ("panda_gaz/robot.urdf", "panda_gaz/exciting_traj_1.parquet", {}),
    ("lwr4/robot.urdf", "lwr4/measurements_2.parquet", {}),
)
CLEARLY = 1.5


def changed(recording: Recording, robot: Robot, rng: np.random.Generator, n: int) -> Iterator[tuple[str, Recording]]:
    """The log misread in ``n`` ways of each kind."""
    q, v, tau = recording.position, np.asarray(recording.velocity), np.asarray(recording.torque)
    joints = range(recording.n_joints)
    for _ in range(n):
        i, j = rng.choice(recording.n_joints, 2, replace=False)
        order = [j if k == i else i if k == j else k for k in joints]
        yield "torque columns exchanged", recording.with_(torque=tau[:, order])
        yield "joints exchanged", recording.with_(position=q[:, order], velocity=v[:, order])
        yield "torque of another joint", recording.with_(torque=np.where(np.arange(len(joints)) == i, tau[:, [j]], tau))
        one = np.where(np.arange(len(joints)) == i, 1.0, 0.0)
        yield (
            "zero shifted",
            recording.with_(position=q + one * np.deg2rad(rng.uniform(5.0, 90.0)) * rng.choice([-1.0, 1.0])),
        )
        yield "sign of torque", recording.with_(torque=tau * (1.0 - 2.0 * one))
        yield "sign of motion", recording.with_(position=q * (1.0 - 2.0 * one), velocity=v * (1.0 - 2.0 * one))
        yield "channel dead", recording.with_(torque=tau * (1.0 - one))
        yield "unit of one torque", recording.with_(torque=tau * (1.0 + one * (rng.choice([1e-3, 0.1, 10.0]) - 1.0)))
    still = np.zeros_like(q)
    yield "positions in degrees", recording.with_(position=np.rad2deg(q), velocity=np.rad2deg(v))
    yield "gravity subtracted", recording.with_(torque=tau - inverse_dynamics(robot, q, still, still, effects=False))


def unexplained(recording: Recording, robot: Robot) -> float:
    """Root of the share of squared torque that no rigid model explains."""
    model = fitted_model(robot)
    return float(np.sqrt(RigidFit.of(model, *few_rows(smooth_samples(longest_part(recording)), model)).unexplained()))


def main() -> None:
    """Measure and print."""
    options = measure.parser(__doc__).parse_args()
    root = Path(os.environ.get("DYNID_SHARED_DATA", str(Path(__file__).parents[2] / "shared" / "data")))
    counts: dict[str, list[int]] = {}
    false_errors = 0
    for description, log, reading in LOGS:
        recording, check = inspect_log(root / log, root / description, **reading)
        robot = described_robot(root / description, Settings()).only(recording.joint_names)
        false_errors += sum(finding.level == "error" for finding in check)
        known = {finding.code for finding in check if finding.level in ("error", "warning")}
        before = unexplained(recording, robot)
        for kind, other in changed(recording, robot, np.random.default_rng(0), 1 if options.smoke else 8):
            raised = unexplained(other, robot) > CLEARLY * before
            found = {one.code for one in check_recording(other, robot) if one.level in ("error", "warning")}
            row = counts.setdefault(kind, [0, 0, 0, 0])
            row[0 if raised else 2] += 1
            row[1 if raised else 3] += bool(found - known)
    result: dict[str, Any] = {"logs": sum(row[0] + row[2] for row in counts.values()), "false_errors": false_errors}
    for kind, (raised, named, hidden, hidden_named) in counts.items():
        word = kind.replace(" ", "_")
        result |= {
            f"{word}_raised": raised,
            f"{word}_named": named,
            f"{word}_hidden": hidden,
            f"{word}_hidden_named": hidden_named,
        }
    measure.print_result(result, options.json)


if __name__ == "__main__":
    main()
