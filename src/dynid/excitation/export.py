"""Motions as files that controllers take: tables, ROS 2 ``JointTrajectory``, UR script, and coefficients as JSON.

The suffix of a file says its form: ``.csv``, ``.parquet``, ``.npz`` (columns ``t, q1.., dq1.., ddq1..``), ``.yaml`` or ``.yml``,
``.script``, ``.json``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import InputError, UnknownNameError
from dynid.excitation.bspline import DEGREE, BSplineTrajectory
from dynid.excitation.fourier import FourierTrajectory, write_trajectory
from dynid.excitation.points_trajectory import PointsTrajectory
from dynid.excitation.shape import QuinticTrajectory, SequenceTrajectory, SlowedTrajectory, Trajectory
from dynid.excitation.sinusoids import SinusoidTrajectory
from dynid.files import read_json, write_json, write_text

TABLES = (".csv", ".parquet", ".npz")
SUFFIXES = (*TABLES, ".yaml", ".yml", ".script", ".json")

ROS_RATE_HZ = 100.0
"""ROS 2 controllers interpolate between points with position, velocity and acceleration, so they need no more of them."""


def write_motion(
    trajectory: Trajectory, path: str | os.PathLike[str], joints: Sequence[str], rate_hz: float = 1000.0
) -> Path:
    """Write a motion in the form that the suffix of the file names.

    Args:
        trajectory: the motion.
        path: ``.csv``, ``.parquet`` or ``.npz`` for a table, ``.yaml`` for a ROS 2 JointTrajectory, ``.script`` for URScript,
            ``.json`` for coefficients.
        joints: names of the joints.
        rate_hz: rate of tables, Hz.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot()
        >>> motion = dynid.excitation.random_fourier(robot, period_s=5.0)
        >>> dynid.write_motion(motion, "motion.csv", robot.joint_names, rate_hz=100.0).name
        'motion.csv'
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if len(joints) != trajectory.n_joints:
        raise InputError(f"{len(joints)} joint names were given for a motion of {trajectory.n_joints} joints")
    if suffix in TABLES:
        return write_trajectory(trajectory.samples(rate_hz), file)
    if suffix in (".yaml", ".yml"):
        write_text(file, joint_trajectory_yaml(trajectory, joints, min(rate_hz, ROS_RATE_HZ)))
    elif suffix == ".script":
        write_text(file, ur_script(trajectory))
    elif suffix == ".json":
        write_json(file, motion_json(trajectory, joints))
    else:
        raise UnknownNameError("form of a motion file", suffix or file.name, SUFFIXES)
    return file


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
        >>> robot = dynid.demo_robot()
        >>> motion = dynid.excitation.random_fourier(robot, period_s=5.0)
        >>> path = dynid.write_motion(motion, "motion.json", robot.joint_names)
        >>> dynid.excitation.read_coefficients(path).duration_s
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
        return FourierTrajectory(value["period_s"], value["a"], value["b"], value["q0"])
    if kind == "quintic":
        return QuinticTrajectory(value["duration_s"], value["coefficients"])
    if kind == "bspline":
        return BSplineTrajectory(value["duration_s"], value["control"])
    if kind == "points":
        return PointsTrajectory(value["knots_s"], value["position"], value["velocity"])
    if kind == "sinusoids":
        return SinusoidTrajectory(value["A"], value["T"], value["centre"], value["duration_s"])
    if kind == "slowed":
        return SlowedTrajectory(trajectory_from_json(value["motion"]), value["speed"])
    if kind == "sequence":
        return SequenceTrajectory(tuple(trajectory_from_json(piece) for piece in value["pieces"]))
    raise UnknownNameError(
        "kind of motion", kind, ("fourier", "quintic", "bspline", "points", "sinusoids", "slowed", "sequence")
    )


def joint_trajectory_yaml(trajectory: Trajectory, joints: Sequence[str], rate_hz: float = ROS_RATE_HZ) -> str:
    """A ROS 2 ``trajectory_msgs/JointTrajectory`` message as YAML."""
    samples = trajectory.samples(rate_hz)
    lines = [
        "header: {stamp: {sec: 0, nanosec: 0}, frame_id: ''}",
        "joint_names: [" + ", ".join(_yaml_text(name) for name in joints) + "]",
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


def _script_pieces(trajectory: Trajectory, speed: float = 1.0) -> list[tuple[float, list[str]]]:
    """Pieces of a motion as their lengths and one expression in ``s`` per joint."""
    time = "s" if speed == 1.0 else f"{speed!r} * s"
    if isinstance(trajectory, SequenceTrajectory):
        return [piece for part in trajectory.pieces for piece in _script_pieces(part, speed)]
    if isinstance(trajectory, SlowedTrajectory):
        return _script_pieces(trajectory.motion, speed * trajectory.speed)
    if isinstance(trajectory, FourierTrajectory):
        n, w = trajectory.n_harmonics, trajectory.fundamental_rad_s
        rows = np.hstack([trajectory.a, trajectory.b, trajectory.offset[:, None]])
        return [(trajectory.duration_s / speed, [f"series({_row(row)}, {w!r}, {time}, {n})" for row in rows])]
    if isinstance(trajectory, SinusoidTrajectory):
        w_j = 2.0 * np.pi / trajectory.period
        rows = np.column_stack([np.zeros_like(w_j), trajectory.amplitude, trajectory.centre])
        calls = [f"series({_row(row)}, {float(w)!r}, {time}, 1)" for row, w in zip(rows, w_j, strict=True)]
        return [(trajectory.duration_s / speed, calls)]
    return [
        (piece.duration_s / speed, [f"polynomial({_row(row)}, {time})" for row in piece.coefficients])
        for piece in quintic_pieces(trajectory)
    ]


def quintic_pieces(trajectory: Trajectory) -> list[QuinticTrajectory]:
    """A motion that is piecewise of degree 5 as its polynomials."""
    if isinstance(trajectory, QuinticTrajectory):
        return [trajectory]
    if isinstance(trajectory, PointsTrajectory):
        knots = trajectory.knots_s
    elif isinstance(trajectory, BSplineTrajectory):
        knots = np.linspace(0.0, trajectory.duration_s, trajectory.control.shape[1] - DEGREE + 1)
    else:
        raise InputError(f"a motion of the kind {type(trajectory).__name__} is no sequence of polynomials")
    pieces = []
    for begin, end in pairwise(knots):
        if isinstance(trajectory, PointsTrajectory):  # acceleration is zero at points, from either side
            inner = np.array([begin, end])
            states = [trajectory.derivative(inner, order) for order in (0, 1)]
            states.append(np.zeros_like(states[0]))
        else:
            states = [trajectory.derivative(np.array([begin, end]), order) for order in (0, 1, 2)]
        first, last = tuple(state[0] for state in states), tuple(state[1] for state in states)
        pieces.append(QuinticTrajectory.between(float(end - begin), first, last))
    return pieces


def _row(values: Any) -> str:
    return "[" + ", ".join(repr(float(value)) for value in values) + "]"


def _yaml_text(name: str) -> str:
    if name.isprintable():
        return "'" + name.replace("'", "''") + "'"
    return json.dumps(name)  # a line end in single quotes would be read as a blank
