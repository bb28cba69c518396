"""A look at a log before anything is identified from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dynid.adapters.urls import log_path
from dynid.errors import InputError
from dynid.recording.finding import DataCheck, Finding
from dynid.recording.readers.joints import MissingJointsError
from dynid.recording.recording import Recording, WrenchRecording
from dynid.robot.frames import frame_named
from dynid.robot.model import Robot
from dynid.run.described import described_robot
from dynid.run.log_part import log_part
from dynid.run.logs import part_of, read_any_log, read_first
from dynid.run.options import Settings
from dynid.run.sensor_signals import SensorFilter
from dynid.validation.data_check import check_recording
from dynid.validation.sensor_check import check_sensor


def inspect_any(
    log: str | Path, robot: str | Path, frame: str | None = None, **reading: Any
) -> tuple[Recording | WrenchRecording, DataCheck]:
    """The recording of a motion or sensor log and all findings on it; ``frame`` is that of the sensor."""
    settings = Settings(**reading)
    model = described_robot(robot, settings)
    try:
        found = read_any_log(log_path(log), model, settings)
    except MissingJointsError:
        found = None  # a motion log of some joints; sensor logs need none
    if not isinstance(found, WrenchRecording):
        return inspect_log(log, robot, **reading)
    return found, check_wrench(found, model, frame)


def check_wrench(recording: WrenchRecording, robot: Robot, frame: str | None = None) -> DataCheck:
    """Findings on the log of a force/torque sensor: axes, units, gravity; what can be judged without a frame where none is known."""
    facts = {"rows": recording.n_samples, "duration_s": recording.duration_s, "rate_hz": recording.rate_hz}
    by_joints = recording.position is not None
    if not by_joints and (recording.angular_velocity is None or recording.linear_acceleration is None):
        missing = Finding(
            "no_motion",
            "error",
            f"{recording.source.path or 'the log'} holds a wrench and no motion of the sensor",
            "log joint positions, or angular velocity (wx..) and proper acceleration (ax..) of the sensor",
        )
        return DataCheck((missing,), facts)
    window = max(5, round(0.1 * recording.rate_hz) // 2 * 2 + 1)
    model = robot if not by_joints or recording.joint_names == robot.joint_names else robot.only(recording.joint_names)
    place = frame_named(model, frame) if by_joints else None
    samples, motion = SensorFilter("savgol", window, 2).samples(recording, model if by_joints else None, place)
    return DataCheck(check_sensor([samples], [motion], model.gravity if by_joints else None), facts)


def inspect_log(
    log: str | Path,
    robot: str | Path,
    **reading: Any,
) -> tuple[Recording, DataCheck]:
    """The recording of a motion log and all findings on it; ``reading`` are options of how it is read."""
    settings = Settings(**reading)
    notes: list[str] = []
    found, model = read_first(described_robot(robot, settings), log_path(log), settings, notes)
    if not isinstance(found, Recording):
        raise InputError(f"{log} is a table of poses, expected a motion log to look into")
    recording, _ = part_of(found, log_part(log), settings, trim=False)  # standstill is to be seen here
    noted = recording.with_(source=recording.source.noting(*notes)) if notes else recording
    return noted, check_recording(recording, model)
