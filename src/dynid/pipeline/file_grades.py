"""How well each written file predicts: what a user carries away is judged, not the estimate in memory.

URDF, MJCF and SDF are written to a temporary folder, read again by Pinocchio, MuJoCo and our own reader, and driven over the unseen log:
torque of each joint with all that the format holds, and a free run from measured states. A file is *ready to use* where no joint loses
more than ``LOST`` of its torque against the estimate, in the band that it is judged in.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.finding import FileGrade, FileJoint
from dynid.io.robots.proof import free_mjcf, load_file
from dynid.io.robots.simulator_joint import WrittenModel, as_held
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.robot import Robot
from dynid.pipeline.joint_grades import LEAST_TORQUE
from dynid.pipeline.model_files import SIMULATED, write_file
from dynid.pipeline.result import IdentificationResult
from dynid.signals.measures import sensor_noise
from dynid.signals.samples import Samples
from dynid.validation.free_run import FreeRobot, check_free_run, even_windows, windows_for
from dynid.validation.prediction import band_limited, predict

LOST = 0.05
"""Share of a joint's torque that a file may lack and be called ready to use."""
MOST_ROWS, MOST_LOGS = 6000, 3
"""Rows of all logs together that files are judged on, and logs; longer ones are cut to their middle."""
WINDOW_S = 0.1
"""Length of the free runs, as of the replay."""
_LACKS = (" has no place for ", " holds ")
"""What notes on a format say of torque that it does not hold."""


def grade_files(run: IdentificationResult) -> tuple[FileGrade, ...]:
    """The grade of each simulator file; none for runs without motion, of a floating base, or with links that no file can hold."""
    if run.robot.floating or not (run.estimate.outcome.usable and run.consistency.feasible):
        return ()
    logs = _judged(run)
    if not logs:
        return ()
    found, drifts = [], dict[tuple[str, ...], Array | None]()
    with tempfile.TemporaryDirectory() as folder:
        for name, places in SIMULATED.items():
            try:
                held, written = write_file(run, Path(folder), name)
            except InputError:  # what the format cannot hold is told where its file is asked for
                continue
            if places not in drifts:  # files that MuJoCo cannot load run as the robot that they hold
                drifts[places] = _drift(name, written.path, as_held(held, places), logs[0][0])
            found.append(_grade(run, name, held, written, logs, drifts[places]))
    return tuple(found)


_Judged: TypeAlias = tuple[Samples, Array, Array]
"""A log that files are judged on: its samples, and in the band of the run what was measured and what the estimate predicts."""


def _grade(
    run: IdentificationResult,
    name: str,
    held: Robot,
    written: WrittenModel,
    logs: Sequence[_Judged],
    drift: Array | None,
) -> FileGrade:
    n = len(run.robot.driven_joints)
    missed, lost, size, counts = np.zeros((4, n))
    zone = next((one.option_values("dead_zone", n) for one in run.robot.effects if isinstance(one, Coulomb)), np.zeros(n))
    for one, measured, ours in logs:
        # of a speed that is noise no sign is known
        sign = np.where(np.abs(one.velocity) < zone, 0.0, np.sign(one.velocity))
        _, theirs = band_limited(one, _file_torque(name, written.path, held, one, sign), run.judged_hz)
        used = np.ones(n) if one.weight is None else one.weight.any(axis=0).astype(float)
        missed += used * ((measured - theirs) ** 2).sum(axis=0)
        lost += ((ours - theirs) ** 2).sum(axis=0)
        size += used * (measured**2).sum(axis=0)
        counts += len(measured)
    noise = sensor_noise([one.torque for one, *_ in logs if one.torque is not None])
    rms = np.maximum(np.sqrt(size / counts), np.maximum(LEAST_TORQUE * noise, 1e-300))
    loss = np.sqrt(lost / counts) / rms
    with np.errstate(divide="ignore", invalid="ignore"):
        each, whole = np.sqrt(missed / size), float(np.sqrt(missed.sum() / size.sum()))
    unseen = bool(run.unseen)
    joints = tuple(
        FileJoint(
            joint.name,
            float(each[j]) if unseen and np.isfinite(each[j]) else None,
            float(loss[j]),
            None if drift is None else float(drift[j]),
        )
        for j, joint in enumerate(run.robot.driven_joints)
    )
    lacks = tuple(note for note in written.notes if any(word in note for word in _LACKS))
    return FileGrade(written.path.name, name, whole if unseen else None, joints, lacks, bool((loss <= LOST).all()))


def _judged(run: IdentificationResult) -> list[_Judged]:
    """The middle of some logs, unseen ones where there are any, that are long enough to judge torque in a band."""
    logs = [one for one in run.unseen or run.samples if one.torque is not None]
    logs = [logs[k] for k in np.unique(np.linspace(0, len(logs) - 1, MOST_LOGS).astype(int))] if logs else []
    found = []
    for one in logs:
        most = MOST_ROWS // len(logs)
        first = max((len(one) - most) // 2, 0)
        part = one[first : first + most]
        try:
            judged, ours = band_limited(part, predict(run.model, part), run.judged_hz)
        except InputError:  # too short
            continue
        assert judged.torque is not None
        found.append((part, judged.torque, ours))
    return found


def _file_torque(name: str, path: Path, held: Robot, samples: Samples, sign: Array) -> Array:
    """Torque of the file on the motion of samples, by the library that loaded it."""
    q, v, a = samples.position, samples.velocity, samples.acceleration
    if held.loops:  # the file of a closed robot is proven by its tree; its closures are projected here
        return inverse_dynamics(as_held(held, SIMULATED[name]), q, v, a)
    return load_file(name, held, path).torque(q, v, a, sign)


def _drift(name: str, path: Path, held: Robot, samples: Samples) -> Array | None:
    """Root mean square by which each joint strays at the end of a free run, rad or m; None where the file cannot run."""
    try:
        check_free_run(held, samples, WINDOW_S)
        windows = even_windows(samples, WINDOW_S, windows_for(held))
        model = free_mjcf(path, held) if name == "mjcf" else None
        free = FreeRobot.of(held) if model is None else FreeRobot(held, model, ())
        assert samples.torque is not None
        rows = windows.rows
        position, _ = free.run(
            samples.position[rows[:, 0]], samples.velocity[rows[:, 0]], samples.torque[rows], windows.step_s
        )
    except InputError:  # too short a log, or a motion that runs away: the replay of the run says so
        return None
    return np.asarray(np.sqrt(((position[:, -1] - samples.position[rows[:, -1]]) ** 2).mean(axis=0)))
