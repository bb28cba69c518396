"""Motions as files that controllers take: tables, ROS 2 ``JointTrajectory``, UR script, and coefficients as JSON; and read again.

The suffix of a file says its form: ``.csv``, ``.parquet``, ``.npz`` (columns ``t, q1.., dq1.., ddq1..``), ``.yaml`` or ``.yml``,
``.mcap``, ``.script``, ``.src``, ``.mod``, ``.ls``, ``.json``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.excitation.controller_programs import PROGRAMS, write_program, write_trajectory_bag
from dynid.excitation.trajectories import FourierTrajectory, PolynomialTrajectory, SequenceTrajectory, Trajectory
from dynid.files import read_json, write_json, write_text
from dynid.io.logs.read import read_recording, write_recording
from dynid.model.robot import Robot
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples

TABLES = (".csv", ".parquet", ".npz")
SUFFIXES = (*TABLES, ".yaml", ".yml", ".mcap", ".script", *PROGRAMS, ".json")


def write_motion(
    motion: Trajectory | Samples,
    path: str | os.PathLike[str],
    joints: Sequence[str] | None = None,
    rate_hz: float = 1000.0,
    prismatic: Sequence[bool] = (),
) -> Path:
    """Write a motion in the form that the suffix of the file names.

    Args:
        motion: the motion; samples of one are written as a table.
        path: ``.csv``, ``.parquet`` or ``.npz`` for a table, ``.yaml`` or ``.mcap`` for a ROS 2 JointTrajectory, ``.script`` for
            URScript, ``.src``, ``.mod`` or ``.ls`` for KUKA, ABB or FANUC programs, ``.json`` for coefficients.
        joints: names of the joints, for forms that hold them; None for joint1, joint2, ...
        rate_hz: rate of tables and trajectories, Hz; programs have at most 10 points a second.
        prismatic: which joints are slides, for programs, whose numbers are degrees or mm; none where it is empty.

    Returns:
        the file that was written.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.shapes import random_fourier
        >>> robot = dynid.demo_robot()
        >>> motion = random_fourier(robot, period_s=5.0)
        >>> dynid.write_motion(motion, "motion.csv", robot.joint_names, rate_hz=100.0).name
        'motion.csv'
    """
    file = Path(path)
    suffix = file.suffix.lower()
    n_joints = motion.position.shape[1] if isinstance(motion, Samples) else motion.n_joints
    numbers = tuple(f"joint{k + 1}" for k in range(n_joints))
    names = numbers if joints is None else tuple(joints)
    if len(names) != n_joints:
        raise InputError(f"{len(names)} joint names were given for a motion of {n_joints} joints")
    if suffix in TABLES:
        rows = motion if isinstance(motion, Samples) else motion.samples(rate_hz)
        table = Recording(
            time=rows.time,
            position=rows.position,
            joint_names=numbers,
            velocity=rows.velocity,
            acceleration=rows.acceleration,
        )
        return write_recording(table, file)
    if suffix not in SUFFIXES:
        raise UnknownNameError("form of a motion file", suffix or file.name, SUFFIXES)
    if isinstance(motion, Samples):
        raise InputError(
            f"'{file.name}' holds a motion as a function of time, expected a table for samples: {', '.join(TABLES)}"
        )
    if suffix == ".json":
        return write_json(file, motion_json(motion, names))
    if suffix in PROGRAMS:
        return write_program(motion, file, rate_hz, prismatic)
    if suffix == ".mcap":
        return write_trajectory_bag(motion, file, names, rate_hz)
    return write_text(file, ur_script(motion) if suffix == ".script" else joint_trajectory_yaml(motion, names, rate_hz))


def motion_json(trajectory: Trajectory, joints: Sequence[str]) -> dict[str, Any]:
    """A motion as its coefficients; ``knots`` are the times of the points of a design through points, null for others."""
    knots = trajectory.point_times_s
    return {
        "joints": list(joints),
        "duration_s": trajectory.duration_s,
        "knots": None if knots is None else knots.tolist(),
        "trajectory": trajectory.as_json(),
    }


def check_file(path: str | os.PathLike[str]) -> None:
    """Refuse a file that could not be written, before work is spent on what goes into it."""
    file = Path(path)
    if file.suffix.lower() not in SUFFIXES:
        raise UnknownNameError("form of a motion file", file.suffix or file.name, SUFFIXES)
    if not file.parent.is_dir():
        raise InputError(f"cannot write '{file}': there is no folder '{file.parent}'")


def read_coefficients(path: str | os.PathLike[str]) -> Trajectory:
    """The motion of a JSON file of coefficients, as :func:`write_motion` writes it.

    Args:
        path: the file.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.motion_files import read_coefficients
        >>> from dynid.excitation.shapes import random_fourier
        >>> robot = dynid.demo_robot()
        >>> motion = random_fourier(robot, period_s=5.0)
        >>> path = dynid.write_motion(motion, "motion.json", robot.joint_names)
        >>> read_coefficients(path).duration_s
        5.0
    """
    content = read_json(Path(path), "motion")
    if "trajectory" not in content:
        raise InputError(f"'{path}' has no 'trajectory', expected the coefficients of a motion")
    try:
        return trajectory_from_json(content["trajectory"])
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as error:
        raise InputError(f"'{path}' is damaged: its trajectory lacks or misstates {error}") from None


def trajectory_from_json(value: dict[str, Any]) -> Trajectory:
    """The inverse of ``Trajectory.as_json``."""
    kind = str(value.get("kind", ""))
    if kind == "fourier":
        return FourierTrajectory(value["period_s"], value["a"], value["b"], value["q0"], value.get("duration_s"))
    if kind == "polynomial":
        return PolynomialTrajectory(value["breaks_s"], value["coefficients"], value["points_s"])
    if kind == "sequence":
        return SequenceTrajectory(tuple(trajectory_from_json(piece) for piece in value["pieces"]))
    raise UnknownNameError("kind of motion", kind, ("fourier", "polynomial", "sequence"))


def read_trajectory(path: str | os.PathLike[str], robot: Robot, joints: Sequence[str] | None = None) -> Samples:
    """Motion from a file with the columns ``t, q1..`` and, optionally, ``dq1..`` and ``ddq1..``.

    Derivatives that the file lacks are those of the spline of degree 5 through the highest one it has; a note says so.

    Args:
        path: the file.
        robot: whose joints the columns are.
        joints: the joints that numbered columns belong to, in their order; the motion is that of these joints alone.

    Returns:
        the motion, ``(n, joints)`` of each quantity; derivatives that the file lacks are made from position.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot()
        >>> path = dynid.write_motion(dynid.demo_samples(seconds=2.0), "motion.csv")
        >>> dynid.read_trajectory(path, robot).velocity.shape
        (200, 7)
    """
    log = read_recording(path, robot, kind="motion", side="joint", joints=joints)  # a motion is that of the joints
    if not isinstance(log, Recording):
        raise InputError(f"trajectory file '{path}' holds {type(log).__name__}, expected joint motion t, q1, ..")
    velocity, acceleration = log.velocity, log.acceleration
    notes = list(log.source.notes)
    if velocity is None:
        velocity = _spline_derivative(log.time, log.position, str(path))
        notes.append("velocity is the derivative of a spline through the positions")
    if acceleration is None:
        acceleration = _spline_derivative(log.time, velocity, str(path))
        notes.append("acceleration is the derivative of a spline through the velocities")
    return Samples(log.time, log.position, velocity, acceleration, notes=tuple(notes))


def _spline_derivative(time: Array, values: Array, where: str) -> Array:
    from scipy.interpolate import make_interp_spline

    if len(time) < 6:
        raise InputError(f"trajectory file '{where}' has {len(time)} rows, expected at least 6 to differentiate it")
    derivative: Array = make_interp_spline(time, values, k=5).derivative()(time)
    return derivative


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


def ur_script(trajectory: Trajectory, *, speed_to_start: float = 0.25) -> str:
    """A UR program that plays the motion by ``servoj`` at the controller's own rate, computed there from its coefficients."""
    if trajectory.n_joints != 6:
        raise InputError(f"a UR program moves 6 joints, this motion has {trajectory.n_joints}")
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
        "  dt = get_steptime()",
        f"  movej({_row(start)}, a=0.5, v={speed_to_start:g})",
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
