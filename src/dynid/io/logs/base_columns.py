"""Columns of the base of a floating robot and of its feet, by their usual names.

Beside the joints a log may hold, each with one column per axis:

    base_x ..        position in the world, m                       base_qx .. base_qw   orientation in the world
    base_vx ..       linear velocity in the base's axes, m/s        base_wx ..           angular velocity there, rad/s
    base_ax ..       rate of base_v., without gravity, m/s^2        base_alx ..          rate of base_w., rad/s^2
    imu_ax ..        what an accelerometer reads, m/s^2             imu_wx ..            what a gyroscope reads, rad/s
    contact_FOOT     1 where a foot touches the ground, or its force in N
    FOOT_fx ..       measured force on a foot, in its own axes, N; FOOT_mx .. its moment, N m
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, listed
from dynid.io.logs.formats import open_table
from dynid.io.logs.layout import ReadOptions, read_mapping
from dynid.io.logs.log_file import LogFile, MemoryLog
from dynid.io.logs.names import fold
from dynid.io.logs.read import open_recording, read_recording
from dynid.io.logs.table import OpenOptions
from dynid.signals.recording import COLUMN_OF_QUANTITY, Recording
from dynid.signals.stream import RecordingStream

BASE_STEMS: Mapping[str, tuple[str, ...]] = {
    "position": (
        "base_", "base_p", "base_pos_", "base_position_", "odom_pose_position_", "pose_pose_position_", "pose_position_",
    ),
    "orientation": (
        "base_q", "base_quat_", "base_orientation_", "base_rotation_", "odom_pose_orientation_", "pose_pose_orientation_",
        "pose_orientation_", "imu_q", "imu_quat_", "imu_quaternion_", "imu_orientation_", "imu_state_quaternion_",
    ),
    "velocity": ("base_v", "base_vel_", "base_lin_vel_", "base_linear_velocity_", "base_velocity_", "twist_twist_linear_", "twist_linear_"),
    "angular_velocity": (
        "base_w", "base_ang_vel_", "base_angular_velocity_", "base_omega_", "base_omega", "twist_twist_angular_", "twist_angular_",
    ),
    "acceleration": ("base_a", "base_acc_", "base_lin_acc_", "base_linear_acceleration_"),
    "angular_acceleration": ("base_al", "base_al_", "base_alpha_", "base_alpha", "base_ang_acc_", "base_angular_acceleration_"),
    "imu_acceleration": (
        "imu_a", "imu_acc_", "imu_accel_", "imu_accelerometer_", "imu_linear_acceleration_", "imu_state_accelerometer_",
    ),
    "imu_angular_velocity": (
        "imu_w", "imu_gyro_", "imu_gyroscope_", "imu_angular_velocity_", "imu_omega_", "imu_state_gyroscope_",
    ),
}  # fmt: skip
"""Names of each quantity, folded, up to the axis; those of the base before those of an IMU."""
MOTION = ("velocity", "angular_velocity", "imu_acceleration", "imu_angular_velocity")
"""Any of them says that the base of the robot moves; position and orientation do together."""


def log_columns(file: LogFile, options: ReadOptions) -> tuple[str, ...]:
    """Names of the columns of plain numbers of a log."""
    if isinstance(file.path, MemoryLog) and isinstance(file.path.held, Recording):
        return ()
    layout = options.layout(None)
    table = open_table(file.path, OpenOptions(layout.topic, layout.header, file))
    return tuple(name for name, shape in table.shapes.items() if shape == ())


def base_columns(columns: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Columns of each quantity of the base that a log has completely; quaternions as x, y, z, w."""
    folded = {fold(name): name for name in reversed(columns)}
    found: dict[str, tuple[str, ...]] = {}
    for quantity, stems in BASE_STEMS.items():
        axes = {"x": 1, "y": 2, "z": 3, "w": 0} if quantity == "orientation" else {"x": 0, "y": 1, "z": 2}
        for stem in stems:
            ways = [axes, list(axes.values())] if stem.startswith("imu_") else [axes]  # Unitree numbers them, w first
            names = max(([folded.get(f"{stem}{axis}") for axis in way] for way in ways), key=all)
            if all(names):
                found[quantity] = tuple(str(name) for name in names)
                break
    return found


def moves_base(columns: Sequence[str]) -> bool:
    """Whether a log holds the motion of a base beside torque of joints."""
    found = base_columns(columns)
    driven = any(re.search("tau|torque|effort|current|^i_?[0-9]", fold(name)) for name in columns)
    return driven and (any(name in found for name in MOTION) or {"position", "orientation"} <= set(found))


CONTACT = "contact_"
"""Beginning of a column that tells whether a foot touches the ground."""


def feet_of(columns: Sequence[str], frames: Sequence[str]) -> dict[str, str]:
    """Columns of contact of a log and the frame of each foot: that of its name, else of the frames that begin with it the one that is
    called a foot, or the last, which is the furthest from the base."""
    found = {}
    for column in columns:
        if column.startswith(CONTACT):
            name = column.removeprefix(CONTACT)
            own = [frame for frame in frames if fold(frame).startswith(fold(name))]
            feet = [frame for frame in own if fold(frame) == fold(name)] or [
                frame for frame in own if _FOOT.search(fold(frame))
            ]
            found[column] = (feet or own or [name])[-1]
    return found


_FOOT = re.compile("foot|feet|sole|toe|ankle")


def contact_columns(where: str, columns: Sequence[str], feet: Sequence[str]) -> list[str]:
    """The column that says when each foot touches the ground: by the name of its frame, or by a beginning of it that no other has."""
    named: dict[str, str] = {}
    for name in columns:
        for pattern in (
            r"(?:foot_|feet_)?contacts?_(?:state_|flag_|force_)?(.+)",
            r"(.+?)_(?:in_)?contact(?:_state|_flag)?",
            r"foot_force_(.+)",
        ):
            if (match := re.fullmatch(pattern, fold(name))) is not None:
                named.setdefault(match[1], name)
                break
    found = []
    for place, foot in enumerate(feet):
        own = fold(foot)
        matches = [key for key in named if key == own] or [
            key for key in named if own.startswith(key) and sum(fold(other).startswith(key) for other in feet) == 1
        ]
        numbers = {str(k) for k in range(len(feet))}
        if not matches and numbers <= set(named):
            matches = [str(place)]
        if not matches:
            have = f"it has {listed(sorted(named.values()))}" if named else "it has none"
            raise InputError(
                f"{where}: no column says when foot '{foot}' touches the ground, expected contact_{foot} or contact_ with a beginning "
                f"of that name that no other foot has; {have}"
            )
        found.append(named[max(matches, key=len)])
    return found


def force_columns(where: str, columns: Sequence[str], frame: str) -> list[str]:
    """Columns of the measured force on a frame, three, or six with its moment."""
    folded, own = {fold(name): name for name in columns}, fold(frame)
    for force, moment in (
        (f"{own}_f", f"{own}_m"),
        (f"{own}_force_", f"{own}_torque_"),
        (f"force_{own}_", f"torque_{own}_"),
        (f"{own}_f_", f"{own}_t_"),
    ):
        three = [folded.get(force + axis) for axis in "xyz"]
        if all(three):
            more = [folded.get(moment + axis) for axis in "xyz"]
            return [str(name) for name in (three + more if all(more) else three)]
    raise InputError(
        f"{where}: no force is measured at frame '{frame}', expected columns {frame}_fx, {frame}_fy, {frame}_fz"
    )


def read_columns(file: LogFile, columns: Sequence[str], options: ReadOptions) -> Recording:
    """Chosen columns of a log as the positions of a recording, on its clock and by its rules for stamps and NaN."""
    names, reading = _as_positions(columns, options)
    found = read_recording(file, names, **reading)
    assert isinstance(found, Recording)
    return found


def open_columns(file: LogFile, columns: Sequence[str], options: ReadOptions) -> RecordingStream:
    """The same while they are read."""
    names, reading = _as_positions(columns, options)
    return open_recording(file.path, names, **reading)


def _as_positions(columns: Sequence[str], options: ReadOptions) -> tuple[list[str], dict[str, Any]]:
    """Names of columns as joints, and how they are read."""
    names = [f"column {k}" for k in range(len(columns))]
    given: dict[str, Any] = {"position": dict(zip(names, columns, strict=True))}
    time = read_mapping(options.mapping).time
    if time is not None:
        given["time"] = list(time)
    return names, {
        "mapping": given,
        "kind": "motion",
        "topic": options.topic,
        "episode": options.episode,
        "rate_hz": options.rate_hz,
        "ignore": tuple(name for name in COLUMN_OF_QUANTITY if name != "position"),
    }


def touching(values: Array, most: float) -> Array:
    """Flags of contact, or forces above a tenth of ``most``, their largest, as zeros and ones."""
    return (np.abs(values) > (0.5 if most <= 1.0 else 0.1 * most)).astype(np.float64)
