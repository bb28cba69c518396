"""Motions as files that controllers take, and read again; the suffix of a file says its form, and :data:`FORMS` lists them all."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.excitation import controller_programs as programs
from dynid.excitation.trajectories import FourierTrajectory, PolynomialTrajectory, SequenceTrajectory, Trajectory
from dynid.files import read_json, write_json, write_text
from dynid.io.logs.read import read_recording, write_recording
from dynid.model.robot import Robot
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples

TABLES = (".csv", ".parquet", ".npz")
Writer: TypeAlias = Callable[[Trajectory, Path, Sequence[str], float, Sequence[bool]], Path]
"""Motion, file, names of the joints, rate in Hz, and which joints are slides."""
Reader: TypeAlias = Callable[[Path, Sequence[bool]], programs.Points]

_TICKS = programs.TICKS_PER_TURN / (2.0 * np.pi)
_UR = (
    "RTDE with the recipe timestamp, actual_q, actual_qd, actual_current, target_q, and from PolyScope 5.23 or 10.11 on "
    "actual_current_as_torque: examples/record/ur_record.py"
)
_ROS = "`ros2 bag record -s mcap /joint_states`: examples/record/ros2_record.py plays the motion and records"
_FRANKA = "every robot state of libfranka: examples/record/franka_record.cpp plays this table and records q, dq, tau_J"
_KUKA = (
    "RSI, whose Ethernet object sends DEF_AIPos, DEF_ASPos and DEF_MACur (motor current), or the controller's Trace of "
    "$AXIS_ACT_MEAS, $VEL_AXIS_ACT (percent) and $TORQUE_AXIS_ACT"
)
_ABB = (
    "feedBack.joints of EGM's EgmRobot messages, in degrees; torque by `TestSignDefine 1, 4002, ROB_1, 1, 0.004` for each axis "
    "and TestSignRead"
)
_FANUC = (
    "status packets of Stream Motion (option J519, UDP port 60015): time_stamp, joint_angle (degrees, J3 counted from the "
    "horizontal) and current of every axis, a packet every 8 ms or less, read by FANUC's fanuc_driver (stream_motion)"
)
_LEROBOT = (
    "Present_Position, Present_Velocity and Present_Current (Present_Load on SCS servos), after every command one "
    "`bus.sync_read(name, normalize=False)` for each"
)
_DYNAMIXEL = (
    "Present Current (126, load on XL430), Present Velocity (128) and Present Position (132): one GroupSyncRead of 10 "
    "bytes from 126 after every GroupSyncWrite"
)


@dataclass(frozen=True)
class Form:
    """A form of motion files: one entry here is all that a new one needs.

    Args:
        words: what it is.
        write: writes it.
        joins: what the controller plays between the points that ``read`` finds; None where it is the motion itself.
        hz: slowest and fastest rate of its points.
        n_joints: fewest and most joints.
        slides: whether prismatic joints have a place in it.
        guards: whether it ends before anything moves unless the robot stands at the start pose.
        beside: suffix of a second file that belongs to it.
        record: how its motion is recorded.
        axes: what the controller's own axes are called, ``{}`` for the number; empty where the joints are those of the description.
    """

    words: str
    write: Writer
    read: Reader | None = None
    joins: programs.Joins | None = None
    hz: tuple[float, float] = (0.0, np.inf)
    n_joints: tuple[int, int] = (1, 1_000_000)
    slides: bool = True
    guards: bool = False
    beside: str | None = None
    record: str | None = None
    axes: str = ""

    def rate_hz(self, asked_hz: float) -> float:
        """The nearest rate that it can have."""
        return float(np.clip(asked_hz, *self.hz))

    @property
    def curve(self) -> str:
        """How the controller joins the points, in words."""
        between = {"lines": "by straight lines", "spline": "by a spline", "quintic": "by polynomials of degree 5"}
        return between.get(self.joins or "", "as designed")


def _program(words: str, joins: programs.Joins, record: str, axes: str, beside: str | None = None) -> Form:
    """A program of points, ten a second at most: controllers plan instruction by instruction."""
    return Form(
        words,
        lambda motion, file, names, hz, slides: programs.write_program(motion, file, hz, slides),
        programs.read_program,
        joins,
        (0.0, 10.0),
        (1, programs.MOST_AXES),
        guards=True,
        beside=beside,
        record=record,
        axes=axes,
    )


@dataclass(frozen=True, eq=False)
class AxisMotion(Trajectory):
    """A motion as the axes of a controller count it, rad or m: ``turn`` times the joints, beyond the zeros."""

    motion: Trajectory
    turn: Array
    zero: Array

    @property
    def n_joints(self) -> int:
        return self.motion.n_joints

    @property
    def duration_s(self) -> float:
        return self.motion.duration_s

    def derivative(self, time: ArrayLike, order: int) -> Array:
        return self.motion.derivative(time, order) @ self.turn.T + (self.zero if order == 0 else 0.0)

    def slowed(self, share: float) -> AxisMotion:
        return AxisMotion(self.motion.slowed(share), self.turn, self.zero)

    def as_json(self) -> dict[str, Any]:
        return self.motion.as_json()


def _write_table(motion: Trajectory | Samples, file: Path, names: Sequence[str], hz: float, slides: Sequence[bool]) -> Path:
    rows = motion if isinstance(motion, Samples) else motion.samples(hz)
    numbers = tuple(f"joint{k + 1}" for k in range(len(names)))
    table = Recording(
        time=rows.time, position=rows.position, joint_names=numbers, velocity=rows.velocity, acceleration=rows.acceleration
    )
    return write_recording(table, file)


_TABLE = Form("table with the columns t, q1.., dq1.., ddq1..", _write_table)
_YAML = Form(
    "ROS 2 JointTrajectory",
    lambda motion, file, names, hz, slides: write_text(file, programs.joint_trajectory_yaml(motion, names, hz)),
    lambda file, slides: programs.read_trajectory_yaml(file),
    "quintic",
    record=_ROS,
)
FORMS: Mapping[str, Form] = {
    ".csv": _TABLE,
    ".parquet": _TABLE,
    ".npz": _TABLE,
    ".yaml": _YAML,
    ".yml": _YAML,
    ".mcap": Form(
        "ROS 2 bag with a JointTrajectory",
        lambda motion, file, names, hz, slides: programs.write_trajectory_bag(motion, file, names, hz),
        lambda file, slides: programs.read_trajectory_bag(file),
        "quintic",
        record=_ROS,
    ),
    ".script": Form(
        "UR program",
        lambda motion, file, names, hz, slides: write_text(file, programs.ur_script(motion)),
        n_joints=(6, 6),
        slides=False,
        guards=True,
        record=_UR,
    ),
    ".src": _program("KUKA KRL program", "spline", _KUKA, "A{}", ".dat"),
    ".mod": _program("ABB RAPID program", "lines", _ABB, "axis {}"),
    ".ls": _program("FANUC program", "lines", _FANUC, "J{}"),
    ".egm.csv": Form(
        "set points of ABB EGM",
        lambda motion, file, names, hz, slides: programs.write_set_points(
            motion, file, ["t", *(f"j{k + 1}" for k in range(len(names)))], hz, programs.units(slides)
        ),
        lambda file, slides: programs.read_set_points(file, programs.units(slides)),
        "lines",
        (250.0, 250.0),
        (1, 7),
        record=_ABB,
        axes="axis {}",
    ),
    ".franka.csv": Form(
        "table for libfranka",
        _write_table,
        lambda file, slides: programs.read_set_points(file, np.ones(len(slides))),
        "lines",
        (1000.0, 1000.0),
        (7, 7),
        slides=False,
        record=_FRANKA,
    ),
    ".lerobot.csv": Form(
        "actions of LeRobot, degrees",
        lambda motion, file, names, hz, slides: programs.write_set_points(
            motion, file, ["timestamp", *(f"{name}.pos" for name in names)], hz, programs.units(slides)
        ),
        lambda file, slides: programs.read_set_points(file, programs.units(slides)),
        "lines",
        (0.0, 100.0),
        slides=False,
        record=_LEROBOT,
        axes="servo {}",
    ),
    ".dynamixel.csv": Form(
        "goal positions of Dynamixel servos, 4096 ticks a turn",
        lambda motion, file, names, hz, slides: programs.write_set_points(
            motion,
            file,
            ["t", *(f"goal_position_{k + 1}" for k in range(len(names)))],
            hz,
            np.full(len(names), _TICKS),
            programs.MIDDLE_TICK,
            decimals=0,
        ),
        lambda file, slides: programs.read_set_points(file, np.full(len(slides), _TICKS), programs.MIDDLE_TICK),
        "lines",
        (0.0, 100.0),
        slides=False,
        record=_DYNAMIXEL,
        axes="servo {}",
    ),
    ".json": Form("coefficients", lambda motion, file, names, hz, slides: write_json(file, motion_json(motion, names))),
}
"""Forms by suffix; the longest that a name ends with is that of a file."""


def form_suffix(path: str | os.PathLike[str]) -> str:
    """The suffix that says the form of a motion file."""
    file = Path(path)
    found = [suffix for suffix in FORMS if file.name.lower().endswith(suffix)]
    if not found:
        raise UnknownNameError("form of a motion file", file.suffix or file.name, FORMS)
    return max(found, key=len)


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
            URScript, ``.src``, ``.mod`` or ``.ls`` for KUKA, ABB or FANUC programs, ``.egm.csv``, ``.franka.csv``, ``.lerobot.csv`` or
            ``.dynamixel.csv`` for tables of set points, ``.json`` for coefficients.
        joints: names of the joints, for forms that hold them; None for joint1, joint2, ...
        rate_hz: rate of tables and trajectories, Hz; forms that cannot have it get the nearest one that they can.
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
    n_joints = motion.position.shape[1] if isinstance(motion, Samples) else motion.n_joints
    names = tuple(f"joint{k + 1}" for k in range(n_joints)) if joints is None else tuple(joints)
    if len(names) != n_joints:
        raise InputError(f"{len(names)} joint names were given for a motion of {n_joints} joints")
    suffix = form_suffix(file)
    slides = list(prismatic) or [False] * n_joints
    check_form(file, slides)
    if isinstance(motion, Samples):
        if suffix not in TABLES:
            raise InputError(
                f"'{file.name}' holds a motion as a function of time, expected a table for samples: {', '.join(TABLES)}"
            )
        return _write_table(motion, file, names, rate_hz, slides)
    form = FORMS[suffix]
    return form.write(motion, file, names, form.rate_hz(rate_hz), slides)


def played_deviation(path: Path, motion: Trajectory, prismatic: Sequence[bool]) -> float | None:
    """How far what a controller plays from a written file is from the motion, rad or m; None where it plays the motion itself."""
    form = FORMS[form_suffix(path)]
    if form.read is None or form.joins is None:
        return None
    time, *states = form.read(path, prismatic)
    return programs.deviation((time, *states), motion, form.joins)


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
    form_suffix(file)
    if not file.parent.is_dir():
        raise InputError(f"cannot write '{file}': there is no folder '{file.parent}'")


def check_form(path: str | os.PathLike[str], prismatic: Sequence[bool]) -> None:
    """Refuse a form that has no place for some joints of a motion, given which of them are slides."""
    form, name = FORMS[form_suffix(path)], Path(path).name
    least, most = form.n_joints
    if not least <= len(prismatic) <= most:
        allowed = f"{most}" if least == most else f"at most {most}"
        raise InputError(
            f"'{name}' is a {form.words} of {allowed} joints, this motion has {len(prismatic)}; use .csv, .yaml or .mcap"
        )
    if any(prismatic) and not form.slides:
        raise InputError(f"'{name}' is a {form.words}, which has no place for prismatic joints; use .csv, .yaml or .mcap")


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
