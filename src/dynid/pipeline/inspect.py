"""A look at a log before anything is identified from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from dynid.errors import InputError
from dynid.finding import DataCheck, Finding
from dynid.io.logs.columns import MissingJointsError
from dynid.io.logs.log_file import LogFile, log_path
from dynid.io.logs.paths import log_part
from dynid.io.logs.read import read_recording
from dynid.model.frames import frame_named, frames_beside, sensor_frame
from dynid.model.robot import Robot
from dynid.pipeline.data import open_first, read_options
from dynid.pipeline.options import Settings
from dynid.pipeline.robot_setup import FloatingLogError, described_robot
from dynid.pipeline.wrench_filter import SensorFilter
from dynid.signals.recording import Recording, WrenchRecording
from dynid.validation.data_check import check_recording
from dynid.validation.sensor_check import check_sensor


def inspect_any(
    log: str | Path, robot: str | Path, frame: str | None = None, **reading: Any
) -> tuple[Recording | WrenchRecording, DataCheck]:
    """The recording of a motion or sensor log and all findings on it; ``frame`` is that of the sensor."""
    settings = Settings(**reading)
    model = described_robot(robot, settings)
    try:
        with LogFile(log_part(log_path(log)).path) as file:
            found = read_recording(file, model, read_options(settings))
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
            "error",
            f"{recording.source.path or 'the log'} holds a wrench and no motion of the sensor",
            "log joint positions, or angular velocity (wx..) and proper acceleration (ax..) of the sensor",
            code="no_motion",
        )
        return DataCheck((missing,), facts)
    window = max(5, round(0.1 * recording.rate_hz) // 2 * 2 + 1)
    model = robot if not by_joints or recording.joint_names == robot.joint_names else robot.only(recording.joint_names)
    place = frame_named(model, frame or sensor_frame(model)) if by_joints else None
    samples, motion = SensorFilter("savgol", window, 2).samples(recording, model if by_joints else None, place)
    beside = {} if place is None else frames_beside(model, place)
    return DataCheck(check_sensor([samples], [motion], model.gravity if by_joints else None, beside), facts)


def inspect_log(
    log: str | Path,
    robot: str | Path,
    **reading: Any,
) -> tuple[Recording, DataCheck]:
    """The recording of a motion log and all findings on it; ``reading`` are options of how it is read.

    Where the base moves, joints are checked by themselves: a robot that stands fixed would explain their torque wrongly.
    """
    settings = Settings(**reading)
    notes: list[str] = []
    feet: tuple[str, ...] = ()
    part = log_part(log_path(log))
    described = described_robot(robot, settings)
    against: Robot | None
    try:
        found, against = open_first(described, part.path, settings, notes)
    except FloatingLogError as moving:
        feet = moving.feet
        found, _ = open_first(described, part.path, replace(settings, floating=False), notes)
        against = None
        notes.append("the log holds the motion of the robot's base; 'dynid identify' checks base and feet")
    if not isinstance(found, Recording):
        raise InputError(f"{log} is a table of poses, expected a motion log to look into")
    times = part if part.named else settings
    recording = found.between(times.from_s, times.to_s)  # standstill is to be seen here
    noted = recording.with_(source=recording.source.noting(*notes)) if notes else recording
    check = check_recording(recording, against)
    return noted, replace(check, facts={**check.facts, "feet": feet}) if feet else check
