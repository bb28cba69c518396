"""Motions as programs of robot controllers: KUKA KRL (``.src``), ABB RAPID (``.mod``), FANUC LS (``.ls``), and a ROS 2 bag (``.mcap``).

A program is a slow move to the start pose and points of the motion at equal times, in degrees, or mm for slides. Controllers join them in
their own way: KRL by a spline, RAPID and LS by blended straight lines in the joints. :func:`program_deviation` reads a program
again and says how far the curve through its points is from the design.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, MissingPackageError
from dynid.excitation.trajectories import Trajectory
from dynid.files import read_limited, write_text

POINT_HZ = 10.0
"""Points per second of a program, at most: controllers plan instruction by instruction."""
START_SPEED_PERCENT = 5
"""Speed of the move to the start pose."""
MOST_AXES = 6
PROGRAMS = (".src", ".mod", ".ls")
STARTING = (*PROGRAMS, ".script")
"""Programs that begin with a slow move from where the robot stands."""
_ID = re.compile(r"[^A-Za-z0-9_]")
_ROS_TYPE = "trajectory_msgs/msg/JointTrajectory"
_ROS_DEFINITION = """std_msgs/Header header
string[] joint_names
trajectory_msgs/JointTrajectoryPoint[] points
================================================================================
MSG: std_msgs/Header
builtin_interfaces/Time stamp
string frame_id
================================================================================
MSG: builtin_interfaces/Time
int32 sec
uint32 nanosec
================================================================================
MSG: trajectory_msgs/JointTrajectoryPoint
float64[] positions
float64[] velocities
float64[] accelerations
float64[] effort
builtin_interfaces/Duration time_from_start
================================================================================
MSG: builtin_interfaces/Duration
int32 sec
uint32 nanosec
"""


def write_program(motion: Trajectory, path: Path, rate_hz: float, prismatic: Sequence[bool] = ()) -> Path:
    """Write the program that the suffix names.

    Args:
        motion: at most six joints.
        path: ``.src``, ``.mod`` or ``.ls``; the name of the file is that of the program.
        rate_hz: of the points; at most 10 Hz are written.
        prismatic: which joints are slides; none where it is empty.
    """
    if motion.n_joints > MOST_AXES:
        raise InputError(
            f"'{path.name}' is a program of {MOST_AXES} axes, this motion has {motion.n_joints} joints; use .csv, .yaml or .mcap"
        )
    time, points = program_points(motion, rate_hz, prismatic)
    name = _ID.sub("_", path.stem)
    name = (name if name[:1].isalpha() else f"M{name}")[:24]
    if path.suffix.lower() == ".ls":
        return write_text(path, ls_program(name, time, points, prismatic))
    return write_text(path, (krl_program if path.suffix.lower() == ".src" else rapid_program)(name, time, points))


def program_points(motion: Trajectory, rate_hz: float, prismatic: Sequence[bool] = ()) -> tuple[Array, Array]:
    """Times and points of a program, ``(points, joints)``, deg or mm; the last one is the end of the motion."""
    n = max(2, int(np.ceil(motion.duration_s * min(rate_hz, POINT_HZ) - 1e-9)))
    time = np.linspace(0.0, motion.duration_s, n + 1)
    return time, motion.derivative(time, 0) * _units(motion.n_joints, prismatic)


def program_deviation(path: Path, motion: Trajectory, prismatic: Sequence[bool] = ()) -> float:
    """Largest distance, rad or m, of the curve through a written program's points from the motion.

    The curve is a cubic spline for KRL, which joins points smoothly, and straight lines in the joints for RAPID and LS.
    """
    from scipy.interpolate import make_interp_spline

    time, points = read_program(path, motion.n_joints)
    q = points / _units(motion.n_joints, prismatic)
    fine = motion.grid(20 * len(time))
    if path.suffix.lower() == ".src":
        curve = make_interp_spline(time, q, k=3, bc_type="clamped" if motion.at_rest else None)(fine)
    else:
        curve = np.column_stack([np.interp(fine, time, column) for column in q.T])
    return float(np.abs(curve - motion.derivative(fine, 0)).max())


def read_program(path: Path, n_joints: int) -> tuple[Array, Array]:
    """Times and points of a program that this module wrote."""
    text = read_limited(path, f"program '{path}'", 100_000_000).decode("utf-8")
    number = r"(-?\d+\.\d+)"
    if path.suffix.lower() == ".src":
        rows = re.findall(r"^ {2}SPTP \{(.*)\}$", text, re.MULTILINE)
        points = [re.findall(rf"A\d {number}", row) for row in rows]
        end = re.search(rf"TIME_BLOCK END = {number}", text)
        time = np.linspace(0.0, float(end[1]) if end else 0.0, len(points))
    elif path.suffix.lower() == ".mod":
        rows = re.findall(rf"MoveAbsJ \[\[([^\]]*)\],.*\\T:={number}", text)
        first = re.search(r"MoveAbsJ \[\[([^\]]*)\],.*v50, fine", text)
        listed = [first[1] if first else "", *(row for row, _ in rows)]
        points = [re.findall(number, row)[:n_joints] for row in listed]
        time = np.concatenate([[0.0], np.cumsum([float(step) for _, step in rows])])
    else:
        points = [re.findall(rf"J\d= *{number} (?:deg|mm)", block) for block in re.split(r"P\[\d+\]\{", text)[1:]]
        steps = [float(step) for step in re.findall(rf"J P\[\d+\] {number}sec", text)]
        time = np.concatenate([[0.0], np.cumsum(steps)])
    return time, np.array(points, dtype=np.float64)[:, :n_joints]


def krl_program(name: str, time: Array, points: Array) -> str:
    """KUKA KRL: one PTP spline block, its points a time block of equal parts."""
    lines = [
        f"DEF {name}()",
        "; joint positions in degrees; slow move to the start pose, then one spline block",
        "BAS(#INITMOV, 0)",
        f"BAS(#VEL_PTP, {START_SPEED_PERCENT})",
        f"PTP {{{_krl(points[0])}}}",
        "PTP_SPLINE",
        "  TIME_BLOCK START",
        f"  SPTP {{{_krl(points[0])}}}",
    ]
    for row in points[1:]:
        lines += [f"  SPTP {{{_krl(row)}}}", "  TIME_BLOCK PART = 1"]
    lines += [f"  TIME_BLOCK END = {time[-1]:.6f}", "ENDSPLINE", "END", ""]
    return "\n".join(lines)


def rapid_program(name: str, time: Array, points: Array) -> str:
    """ABB RAPID: absolute joint moves, each with its time."""
    external = "[9E9,9E9,9E9,9E9,9E9,9E9]"
    lines = [f"MODULE {name}", "  PROC main()", "    ConfJ \\Off;"]
    lines.append(f"    MoveAbsJ [[{_six(points[0])}],{external}]\\NoEOffs, v50, fine, tool0;")
    for k, step in enumerate(np.diff(time), start=1):
        zone = "fine" if k == len(time) - 1 else "z1"
        lines.append(f"    MoveAbsJ [[{_six(points[k])}],{external}]\\NoEOffs, v1000\\T:={step:.9f}, {zone}, tool0;")
    return "\n".join([*lines, "  ENDPROC", "ENDMODULE", ""])


def ls_program(name: str, time: Array, points: Array, prismatic: Sequence[bool] = ()) -> str:
    """FANUC LS: joint moves, each with its time, and the positions in joint form."""
    moves = [f"   1:J P[1] {START_SPEED_PERCENT}% FINE    ;"]
    for k, step in enumerate(np.diff(time), start=2):
        moves.append(f"{k:4d}:J P[{k}] {step:.9f}sec {'FINE' if k == len(time) else 'CNT100'}    ;")
    words = ["mm" if slide else "deg" for slide in prismatic] or ["deg"] * points.shape[1]
    places = []
    for k, row in enumerate(points, start=1):
        joints = ",\n".join("\t" + f"J{j + 1}= {value:.9f} {words[j]}" for j, value in enumerate(row))
        places.append(f"P[{k}]{{\n   GP1:\n\tUF : 0, UT : 1,\n{joints}\n}};")
    head = [f"/PROG  {name.upper()}", "/ATTR", f"LINE_COUNT\t= {len(moves)};", "/MN"]
    return "\n".join([*head, *moves, "/POS", *places, "/END", ""])


def write_trajectory_bag(motion: Trajectory, path: Path, joints: Sequence[str], rate_hz: float) -> Path:
    """A ROS 2 bag with one ``trajectory_msgs/JointTrajectory`` on ``/joint_trajectory``."""
    try:
        from mcap_ros2.writer import Writer
    except ImportError as error:
        raise MissingPackageError("mcap-ros2-support", "writing MCAP files", "ros") from error
    samples = motion.samples(rate_hz)
    nanoseconds = np.round(samples.time * 1e9).astype(np.int64)
    points = [
        {
            "positions": samples.position[k].tolist(),
            "velocities": samples.velocity[k].tolist(),
            "accelerations": samples.acceleration[k].tolist(),
            "effort": [],
            "time_from_start": {"sec": int(at // 1_000_000_000), "nanosec": int(at % 1_000_000_000)},
        }
        for k, at in enumerate(nanoseconds)
    ]
    header = {"stamp": {"sec": 0, "nanosec": 0}, "frame_id": ""}
    with path.open("wb") as stream:
        writer = Writer(stream)
        schema = writer.register_msgdef(_ROS_TYPE, _ROS_DEFINITION)
        message = {"header": header, "joint_names": list(joints), "points": points}
        writer.write_message("/joint_trajectory", schema, message, log_time=0, publish_time=0)
        writer.finish()  # type: ignore[no-untyped-call]
    return path


def _units(n_joints: int, prismatic: Sequence[bool]) -> Array:
    """Degrees per radian, mm per metre."""
    slides = np.zeros(n_joints, dtype=bool) if not len(prismatic) else np.asarray(prismatic, dtype=bool)
    return np.where(slides, 1000.0, 180.0 / np.pi)


def _krl(row: Array) -> str:
    return ", ".join(f"A{j + 1} {value:.9f}" for j, value in enumerate(row))


def _six(row: Array) -> str:
    return ",".join(f"{value:.9f}" for value in [*row, *[0.0] * (MOST_AXES - len(row))])
