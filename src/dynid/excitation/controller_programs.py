"""Motions as programs of robot controllers: KUKA KRL (``.src``), ABB RAPID (``.mod``), FANUC LS (``.ls``), URScript (``.script``), ROS 2
trajectories (``.yaml``, ``.mcap``), and tables of set points.

A program holds points of the motion at equal times, in degrees, or mm for slides. It does not know where the robot stands: it ends
before anything moves unless every axis is at the start pose to :data:`NEAR_DEG` or :data:`NEAR_MM`. Controllers join points in their own
way: KRL by a spline, RAPID and LS by blended straight lines in the joints. :func:`deviation` says how far the curve through the points
of a file that was read again is from the design.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, MissingPackageError
from dynid.excitation.trajectories import FourierTrajectory, PolynomialTrajectory, SequenceTrajectory, Trajectory
from dynid.files import read_limited, write_text

Points: TypeAlias = tuple[Array, ...]
"""Times of the points of a file, their positions in rad or m, and where the file has them their velocities and accelerations."""

Joins: TypeAlias = Literal["lines", "spline", "quintic"]
"""What a controller plays between points: straight lines in the joints, a cubic spline, polynomials of degree 5."""

NEAR_DEG, NEAR_MM = 0.5, 2.0
"""How far from the start pose an axis may stand when a program begins; over what is left it moves slowly."""
START_SPEED_PERCENT = 5
"""Speed of that move."""
MOST_AXES = 6
MOST_TIMES = 200_000
"""Times at which a curve is compared with the design, at most."""
TICKS_PER_TURN, MIDDLE_TICK = 4096, 2048
"""Positions of a Dynamixel servo: ticks in a turn, and the one of the angle zero."""
_NUMBER = r"(-?\d+\.\d+)"
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


def deviation(points: Points, motion: Trajectory, joins: Joins) -> float:
    """Largest distance, rad or m, of the curve through points from the motion."""
    from scipy.interpolate import make_interp_spline

    time, q, *rates = points
    fine = motion.grid(min(20 * len(time), MOST_TIMES))
    if joins == "quintic":
        curve = PolynomialTrajectory.through(time, q, *rates).derivative(fine, 0)
    elif joins == "spline":
        curve = make_interp_spline(time, q, k=3, bc_type="clamped" if motion.at_rest else None)(fine)
    else:
        curve = np.column_stack([np.interp(fine, time, column) for column in q.T])
    return float(np.abs(curve - motion.derivative(fine, 0)).max())


def write_program(motion: Trajectory, path: Path, rate_hz: float, prismatic: Sequence[bool]) -> Path:
    """Write the program of at most six joints that the suffix names: ``.src`` with its ``.dat``, ``.mod`` or ``.ls``.

    The name of the file is that of the program.
    """
    time = motion.grid(max(2, int(np.ceil(motion.duration_s * rate_hz - 1e-9))))
    points = motion.derivative(time, 0) * units(prismatic)
    name = _ID.sub("_", path.stem)
    name = (name if name[:1].isalpha() else f"M{name}")[:24]
    suffix = path.suffix.lower()
    if suffix == ".src":
        program, places = krl_program(name, time, points, prismatic)
        write_text(path.with_suffix(".dat"), places)
        return write_text(path, program)
    write = ls_program if suffix == ".ls" else rapid_program
    return write_text(path, write(name, time, points, prismatic))


def read_program(path: Path, prismatic: Sequence[bool]) -> Points:
    """Times and points of a program that this module wrote, rad or m."""
    text, suffix, n_joints = _text(path), path.suffix.lower(), len(prismatic)
    if suffix == ".src":
        places = dict(re.findall(r"^DECL E6AXIS (\w+)=\{(.*)\}$", _text(path.with_suffix(".dat")), re.MULTILINE))
        points = [
            re.findall(rf"A\d {_NUMBER}", places[name]) for name in re.findall(r"^ {2}SPTP (\w+)$", text, re.MULTILINE)
        ]
        end = re.search(rf"TIME_BLOCK END = {_NUMBER}", text)
        time = np.linspace(0.0, float(end[1]) if end else 0.0, len(points))
    elif suffix == ".mod":
        rows = re.findall(rf"MoveAbsJ \[\[([^\]]*)\],.*\\T:={_NUMBER}", text)
        first = re.search(r"MoveAbsJ \[\[([^\]]*)\],.*v50, fine", text)
        listed = [first[1] if first else "", *(row for row, _ in rows)]
        points = [re.findall(_NUMBER, row) for row in listed]
        time = np.concatenate([[0.0], np.cumsum([float(step) for _, step in rows])])
    else:
        points = [re.findall(rf"J\d= *{_NUMBER} (?:deg|mm)", block) for block in re.split(r"P\[\d+\]\{", text)[1:]]
        steps = [float(step) for step in re.findall(rf"J P\[\d+\] {_NUMBER}sec", text)]
        time = np.concatenate([[0.0], np.cumsum(steps)])
    return time, np.array(points, dtype=np.float64)[:, :n_joints] / units(prismatic)


def write_set_points(
    motion: Trajectory,
    path: Path,
    columns: Sequence[str],
    rate_hz: float,
    scale: Array,
    zero: float = 0.0,
    decimals: int = 9,
) -> Path:
    """A table of set points, positions times a scale beyond a zero: a line for every cycle of whoever sends them to the controller."""
    samples = motion.samples(rate_hz)
    lines = [",".join(columns)]
    for at, row in zip(samples.time, samples.position * scale + zero, strict=True):
        lines.append(",".join([f"{at:.9f}", *(f"{value:.{decimals}f}" for value in row)]))
    return write_text(path, "\n".join(lines) + "\n")


def read_set_points(path: Path, scale: Array, zero: float = 0.0) -> Points:
    """Times and positions of a table of set points; columns beyond those that have a scale are left out."""
    rows = np.array([line.split(",") for line in _text(path).splitlines()[1:]], dtype=np.float64)
    return rows[:, 0], (rows[:, 1 : 1 + len(scale)] - zero) / scale


def units(prismatic: Sequence[bool]) -> Array:
    """Degrees per radian, mm per metre, for every joint."""
    return np.where(np.asarray(prismatic, dtype=bool), 1000.0, 180.0 / np.pi)


def nearness(prismatic: Sequence[bool]) -> Array:
    """How far from the start each axis may stand, degrees or mm."""
    return np.where(np.asarray(prismatic, dtype=bool), NEAR_MM, NEAR_DEG)


def krl_program(name: str, time: Array, points: Array, prismatic: Sequence[bool]) -> tuple[str, str]:
    """KUKA KRL: one PTP spline block, its points a time block of equal parts, and the list of its points (``.dat``)."""
    places = [f"XP{k}" for k in range(1, len(points) + 1)]
    lines = [
        f"DEF {name}()",
        "DECL BOOL AWAY",
        "; axes in degrees or mm; one spline block, played only where the robot stands at its first point",
        "AWAY = FALSE",
        *(
            f"AWAY = AWAY OR (ABS($AXIS_ACT.A{j} - XP1.A{j}) > {near:g})"
            for j, near in enumerate(nearness(prismatic), start=1)
        ),
        "IF AWAY THEN",
        "  ; NOT AT THE START: jog every axis to XP1 of the data list, then start again",
        "  HALT",
        "  RETURN",
        "ENDIF",
        "BAS(#INITMOV, 0)",
        f"BAS(#VEL_PTP, {START_SPEED_PERCENT})",
        f"PTP {places[0]}",
        "PTP_SPLINE",
        "  TIME_BLOCK START",
        f"  SPTP {places[0]}",
    ]
    for place in places[1:]:
        lines += [f"  SPTP {place}", "  TIME_BLOCK PART = 1"]
    lines += [f"  TIME_BLOCK END = {time[-1]:.6f}", "ENDSPLINE", "END", ""]
    axes = [", ".join(f"A{j + 1} {value:.9f}" for j, value in enumerate(row)) for row in points]
    listed = [f"DECL E6AXIS {place}={{{row}}}" for place, row in zip(places, axes, strict=True)]
    return "\n".join(lines), "\n".join([f"DEFDAT {name}", *listed, "ENDDAT", ""])


def rapid_program(name: str, time: Array, points: Array, prismatic: Sequence[bool]) -> str:
    """ABB RAPID: absolute joint moves, each with its time."""
    external = "[9E9,9E9,9E9,9E9,9E9,9E9]"
    away = [
        f"Abs(here.robax.rax_{j} - ({start:.6f})) > {near:g}"
        for j, (start, near) in enumerate(zip(points[0], nearness(prismatic), strict=True), start=1)
    ]
    lines = [
        f"MODULE {name}",
        "  PROC main()",
        "    VAR jointtarget here;",
        "    here := CJointT();",
        f"    IF {' OR '.join(away)} THEN",
        '      TPWrite "Not at the start: jog to the first MoveAbsJ, then start again";',
        "      EXIT;",
        "    ENDIF",
        "    ConfJ \\Off;",
        f"    MoveAbsJ [[{_six(points[0])}],{external}]\\NoEOffs, v50, fine, tool0;",
    ]
    for k, step in enumerate(np.diff(time), start=1):
        zone = "fine" if k == len(time) - 1 else "z1"
        lines.append(f"    MoveAbsJ [[{_six(points[k])}],{external}]\\NoEOffs, v1000\\T:={step:.9f}, {zone}, tool0;")
    return "\n".join([*lines, "  ENDPROC", "ENDMODULE", ""])


def ls_program(name: str, time: Array, points: Array, prismatic: Sequence[bool]) -> str:
    """FANUC LS: joint moves, each with its time, and the positions in joint form."""
    moves = ["  PR[99]=JPOS    "]
    for j, (start, near) in enumerate(zip(points[0], nearness(prismatic), strict=True), start=1):
        moves += [f"  R[199]=PR[99,{j}]-({start:.4f})    "]
        moves += [f"  IF R[199]{side}({value:g}),JMP LBL[1] " for side, value in ((">", near), ("<", -near))]
    moves += [
        "  JMP LBL[2] ",
        "  LBL[1:NOT AT START] ",
        "  MESSAGE[NOT AT START: JOG TO P1] ",
        "  ABORT ",
        "  LBL[2:AT START] ",
    ]
    moves.append(f"J P[1] {START_SPEED_PERCENT}% FINE    ")
    for k, step in enumerate(np.diff(time), start=2):
        moves.append(f"J P[{k}] {step:.9f}sec {'FINE' if k == len(time) else 'CNT100'}    ")
    moves = [f"{k:4d}:{move};" for k, move in enumerate(moves, start=1)]
    words = ["mm" if slide else "deg" for slide in prismatic]
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


def read_trajectory_bag(path: Path) -> Points:
    """Times, positions, velocities and accelerations of a bag that this module wrote."""
    from mcap.reader import make_reader
    from mcap_ros2.decoder import DecoderFactory

    with path.open("rb") as stream:
        reader = make_reader(stream, decoder_factories=[DecoderFactory()])
        (message,) = [decoded for *_, decoded in reader.iter_decoded_messages()]
    time = [point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in message.points]
    parts = [[getattr(point, name) for point in message.points] for name in ("positions", "velocities", "accelerations")]
    return np.array(time), *(np.array(part, dtype=np.float64) for part in parts)


def joint_trajectory_yaml(trajectory: Trajectory, joints: Sequence[str], rate_hz: float = 100.0) -> str:
    """A ROS 2 ``trajectory_msgs/JointTrajectory`` message as YAML."""
    samples = trajectory.samples(rate_hz)
    # a line end in single quotes would be read as a blank
    quoted = ["'" + name.replace("'", "''") + "'" if name.isprintable() else json.dumps(name) for name in joints]
    lines = [
        "header: {stamp: {sec: 0, nanosec: 0}, frame_id: ''}",
        "joint_names: [" + ", ".join(quoted) + "]",
        "points:",
    ]
    nanoseconds = np.round(samples.time * 1e9).astype(np.int64)
    for k in range(len(samples)):
        seconds, rest = divmod(int(nanoseconds[k]), 1_000_000_000)
        lines.append(f"- positions: {_row(samples.position[k])}")
        lines.append(f"  velocities: {_row(samples.velocity[k])}")
        lines.append(f"  accelerations: {_row(samples.acceleration[k])}")
        lines.append("  effort: []")
        lines.append(f"  time_from_start: {{sec: {seconds}, nanosec: {rest}}}")
    return "\n".join(lines) + "\n"


def read_trajectory_yaml(path: Path) -> Points:
    """Times, positions, velocities and accelerations of a ``JointTrajectory`` as :func:`write_motion` writes it."""
    text = _text(path)
    stamps = np.array(re.findall(r"\{sec: (\d+), nanosec: (\d+)\}$", text, re.MULTILINE), dtype=np.float64)
    rows = [re.findall(rf"{name}: \[(.*)\]", text) for name in ("positions", "velocities", "accelerations")]
    return stamps @ [1.0, 1e-9], *(np.array([row.split(",") for row in part], dtype=np.float64) for part in rows)


def _text(path: Path) -> str:
    return read_limited(path, f"program '{path}'", 2_000_000_000).decode("utf-8")


def _six(row: Array) -> str:
    return ",".join(f"{value:.9f}" for value in [*row, *[0.0] * (MOST_AXES - len(row))])


def ur_script(trajectory: Trajectory) -> str:
    """A UR program that plays the motion by ``servoj`` at the controller's own rate, computed there from its coefficients.

    It ends before anything moves unless every joint is at the start pose to ``NEAR_DEG``.
    """
    start = trajectory.derivative(0.0, 0)[0]
    lines = [
        "def dynid_excitation():",
        "  def polynomial(c, t):",
        "    return c[0] + t * (c[1] + t * (c[2] + t * (c[3] + t * (c[4] + t * c[5]))))",
        "  end",
        "  def series(c, w, t, n):",
        "    value = c[2 * n]",
        "    l = 0",
        "    while l < n:",
        "      value = value + (c[l] * sin(w * (l + 1) * t) - c[n + l] * cos(w * (l + 1) * t)) / (w * (l + 1))",
        "      l = l + 1",
        "    end",
        "    return value",
        "  end",
        f"  start = {_row(start)}",
        "  here = get_actual_joint_positions()",
        "  j = 0",
        f"  while j < {len(start)}:",
        f"    if norm(here[j] - start[j]) > {np.radians(NEAR_DEG):.6f}:",
        '      popup("The robot is not at the start of the motion: move it there by hand, then start again.", "dynid", False, True, True)',
        "      halt",
        "    end",
        "    j = j + 1",
        "  end",
        "  dt = get_steptime()",
        f"  movej({_row(start)}, a=0.5, v=0.05)",
        "  sleep(1.0)",
        "  t = 0.0",
    ]
    begin = 0.0
    for length, calls in _script_pieces(trajectory):
        end = begin + length
        lines.append(f"  while t < {end!r}:")
        lines.append(f"    s = t - {begin!r}")
        lines.append("    q = [" + ", ".join(calls) + "]")
        lines.append("    servoj(q, t=dt, lookahead_time=0.03, gain=300)")
        lines.append("    t = t + dt")
        lines.append("  end")
        begin = end
    lines += ["  stopj(1.0)", "end", ""]
    return "\n".join(lines)


def _script_pieces(trajectory: Trajectory) -> list[tuple[float, list[str]]]:
    """Pieces of a motion as their lengths and one expression in ``s`` per joint."""
    if isinstance(trajectory, SequenceTrajectory):
        return [piece for part in trajectory.pieces for piece in _script_pieces(part)]
    if isinstance(trajectory, FourierTrajectory):
        n = trajectory.n_harmonics
        rows = np.hstack([trajectory.a, trajectory.b, trajectory.offset[:, None]])
        calls = [
            f"series({_row(row)}, {float(w)!r}, s, {n})" for row, w in zip(rows, trajectory.fundamental_rad_s, strict=True)
        ]
        return [(trajectory.duration_s, calls)]
    if isinstance(trajectory, PolynomialTrajectory):
        return [
            (float(length), [f"polynomial({_row(row)}, s)" for row in piece])
            for length, piece in zip(np.diff(trajectory.breaks_s), trajectory.coefficients, strict=True)
        ]
    raise InputError(
        f"a motion of the kind {type(trajectory).__name__} is neither a Fourier series nor a sequence of polynomials"
    )


def _row(values: Any) -> str:
    return "[" + ", ".join(repr(float(value)) for value in values) + "]"
