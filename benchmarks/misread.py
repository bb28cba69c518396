"""Misread logs: real logs changed as they are misread, and whether the data check names it; and false errors on untouched logs.

Needs the recordings that ``DYNID_SHARED_DATA`` names. A rigid model with free bodies and friction is fitted to each changed log. The
floor is the root mean square torque that it leaves of the untouched log. For each kind: ``three_floors`` changed logs where it leaves
more than three floors, and how many of them the data check names (an error or a warning that the untouched log does not have);
``visible`` and ``visible_named`` the same for 1.5 to 3 floors; ``hidden`` and ``hidden_named`` below that, where free bodies make up for
the change. ``missed`` lists the logs of the first two groups that are not named, with their floors. ``--untouched`` checks every log of
the folder as it is, with torque or current: ``false_errors`` names those with an error.
"""

from __future__ import annotations

import measure

import os
import sys
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
VISIBLE, FLOORS = 1.5, 3.0
GROUPS = ("three_floors", "visible", "hidden")
UNTOUCHED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("ur10e_mamedov/robot.urdf", "ur10e_mamedov/traj/*.parquet", {"drive_gains": GAINS}),
    ("ur10e_mamedov/robot.urdf", "ur10e_mamedov/traj/*.parquet", {}),
    ("panda_gaz/robot.urdf", "panda_gaz/exciting_traj_1.parquet", {}),
    ("panda_gaz/robot.toml", "panda_gaz/exciting_traj_1.parquet", {}),
    ("lwr4/robot.urdf", "lwr4/*.parquet", {}),
    ("UR10", "ur10/exciting.db3", {}),
    ("pendulum/robot.urdf", "pendulum/*.parquet", {}),
    ("double_pendulum/A0/robot.urdf", "double_pendulum/A0/*.parquet", {}),
    ("double_pendulum/C0/robot.urdf", "double_pendulum/C0/*.parquet", {}),
)


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


def untouched(root: Path) -> dict[str, Any]:
    """Errors of the data check on every log of the folder."""
    count, errors = 0, []
    for description, pattern, reading in UNTOUCHED:
        robot = root / description if description != "UR10" else _ur10()
        for log in sorted(root.glob(pattern)) if robot is not None else ():
            count += 1
            found = [one for one in inspect_log(log, robot, **reading)[1] if one.level == "error"]
            errors += [f"{log.relative_to(root)}: {one.code}: {one.what}" for one in found]
    return {"untouched_logs": count, "false_errors": errors}


def _ur10() -> Path | None:
    """The UR10 of the package ``example-robot-data``; None where it is not installed."""
    return next(Path(sys.prefix).glob("lib/python*/site-packages/**/ur_description/urdf/ur10_robot.urdf"), None)


def main() -> None:
    """Measure and print."""
    parser = measure.parser(__doc__)
    parser.add_argument("--untouched", action="store_true", help="check every log of the folder as it is")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    root = Path(os.environ.get("DYNID_SHARED_DATA", str(Path(__file__).parents[2] / "shared" / "data")))
    if options.untouched:
        measure.print_result(untouched(root), options.json)
        return
    counts: dict[str, dict[str, int]] = {}
    missed = []
    for description, log, reading in LOGS:
        recording, check = inspect_log(root / log, root / description, **reading)
        robot = described_robot(root / description, Settings()).only(recording.joint_names)
        known = {finding.code for finding in check if finding.level in ("error", "warning")}
        floor = unexplained(recording, robot)
        for kind, other in changed(recording, robot, np.random.default_rng(options.seed), 1 if options.smoke else 8):
            floors = unexplained(other, robot) / floor
            found = {one.code for one in check_recording(other, robot) if one.level in ("error", "warning")}
            group = "three_floors" if floors > FLOORS else "visible" if floors > VISIBLE else "hidden"
            row = counts.setdefault(kind, {})
            row[group] = row.get(group, 0) + 1
            row[f"{group}_named"] = row.get(f"{group}_named", 0) + bool(found - known)
            if group != "hidden" and not found - known:
                missed.append(f"{log}: {kind}, {floors:.1f} floors")
    result: dict[str, Any] = {"logs": sum(row.get(group, 0) for row in counts.values() for group in GROUPS)}
    for kind, row in counts.items():
        result |= {f"{kind.replace(' ', '_')}_{key}": value for key, value in sorted(row.items())}
    measure.print_result({**result, "missed": missed}, options.json)


if __name__ == "__main__":
    main()
