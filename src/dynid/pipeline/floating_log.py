"""Logs of a robot on a floating base: joints, base and feet of each, on one clock, as samples of rows.

Feet: where flags say contact, and some time before and after, the force of a foot is taken out of the rows. That is exact for a foot in
the air too, so flags that switch late, or flicker, cost rows and do not poison the fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from scipy.interpolate import CubicSpline

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.io.logs.base_columns import (
    base_columns,
    contact_columns,
    feet_of,
    force_columns,
    log_columns,
    open_columns,
    read_columns,
    touching,
)
from dynid.io.logs.layout import ReadOptions
from dynid.io.logs.log_file import LogFile
from dynid.io.logs.paths import log_part
from dynid.io.logs.read import open_recording, read_recording
from dynid.model.frames import frame_named, frame_poses, frames_of
from dynid.model.poses import pose_from_numbers
from dynid.model.robot import Robot
from dynid.pipeline.log import Log, Logs
from dynid.pipeline.option_groups import Reading
from dynid.pipeline.options import Settings
from dynid.pipeline.row_plan import RowPlan
from dynid.pipeline.signal_filter import Filter, repairs
from dynid.regression.floating_rows import FLOATING, Contacts, Foot, base_states, contact_torque
from dynid.signals.base_motion import BaseMotion, base_motion, continuous_quaternions
from dynid.signals.process import process
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples
from dynid.signals.steps.cuts import Unwrap
from dynid.signals.steps.filters import Differentiate
from dynid.signals.steps.step import Step
from dynid.signals.stream import RecordingStream, survey

SWITCH_S = 0.03
"""Time before and after a contact for which its force is taken out as well, at least."""
JOINTS = "joint_acceleration"
IMU = ("imu_acceleration", "imu_angular_velocity")


@dataclass(frozen=True, eq=False, kw_only=True)
class FloatingLog(Log):
    """One log: the joints, and what it says of the base and the feet, row by row."""

    setup: FloatingSetup
    """The robot, and where it touches the ground."""
    base: Recording
    """What is logged of the base, and accelerations of the joints where they are logged, as positions of a recording."""
    columns: Mapping[str, slice]
    contact: Array
    """``(rows, feet)``, zeros and ones."""
    forces: tuple[Array, ...] = ()
    """Measured forces, ``(rows, 3 or 6)`` each, in the axes of their frames."""

    @property
    def joints(self) -> Recording:
        """What is logged of the joints."""
        assert isinstance(self.rows, Recording)
        return self.rows

    def split(self, share: float) -> tuple[FloatingLog, FloatingLog]:
        """The first ``share`` in time and the rest."""
        first, rest = self.joints.split(share)
        cut = int(np.searchsorted(self.base.time, rest.time[0]))
        return self._over(first, slice(0, cut)), self._over(rest, slice(cut, None))

    def between(self, from_s: float | None, to_s: float | None) -> FloatingLog:
        """The part between two times."""
        joints = self.joints.between(from_s, to_s)
        first, last = np.searchsorted(self.base.time, [joints.time[0], np.nextafter(joints.time[-1], np.inf)])
        return self._over(joints, slice(int(first), int(last)))

    def _over(self, joints: Recording, rows: slice) -> FloatingLog:
        base, forces = self.base.cut(*rows.indices(self.base.n_samples)[:2]), tuple(force[rows] for force in self.forces)
        return replace(self, **vars(Log.of(joints)), base=base, contact=self.contact[rows], forces=forces)

    def samples(self, filtered: Filter, max_rows: int = 0) -> Samples:
        """Joints, base and feet behind the filter, with logged accelerations where the plan of the rows says so."""
        return self.setup.samples(self, filtered)

    @property
    def has_accelerations(self) -> bool:
        """Whether accelerations of joints or base are logged."""
        return any(name in self.columns for name in (JOINTS, "acceleration", "angular_acceleration"))

    def filtered_base(self, filtered: Filter) -> Samples:
        """What is logged of the base behind the filter of the joints: values, rates and second rates."""
        steps = replace(filtered, velocity="position").chain(
            [step for step in repairs(self.joints) if not isinstance(step, Unwrap)],
            False,
            self.base.n_samples,
            self.base.n_samples,
        )
        return process(self.base.with_(position=self._without_imu_errors()), _through_five(steps))

    def _without_imu_errors(self) -> Array:
        """What is logged of the base without bias and delay of the IMU."""
        *bias, delay_s = self.setup.plan.imu or (0.0,)
        values = np.array(self.base.position)
        for k, name in enumerate(IMU if bias else ()):
            if name in self.columns:
                own, time = values[:, self.columns[name]] - bias[3 * k : 3 * k + 3], self.base.time
                later = np.clip(time + delay_s, time[0], time[-1])
                values[:, self.columns[name]] = own if delay_s == 0.0 else CubicSpline(time, own)(later)
        return values

    def touches(self, time: Array, margin_s: float) -> Array:
        """Where a foot touches the ground, or does within a margin before or after."""
        first = np.searchsorted(self.base.time, time - margin_s - 1e-9)
        last = np.searchsorted(self.base.time, time + margin_s + 1e-9)
        sums = np.vstack([np.zeros((1, self.contact.shape[1])), np.cumsum(self.contact, axis=0)])
        return np.asarray((sums[last] - sums[first] > 0.0).astype(np.float64))


WINDOW_S, PIECE_S, SETTLE_S = 40.0, 20.0, 2.0
"""Longest of the windows that choices are made on, pieces that samples are made in, and what filters see beyond a piece on either side."""
WINDOW_ROWS = 24_000
"""Rows of all windows of a log."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FloatingFile(Log):
    """One log in its file, and windows of it in memory, which choices are made on."""

    setup: FloatingSetup
    others: RecordingStream
    """What it says of base and feet."""
    make: Callable[..., FloatingLog]
    """The log in memory, of a setup, joints and what is said of base and feet."""
    held: tuple[FloatingLog, ...] = ()

    def part(self, start_s: float, end_s: float) -> FloatingLog:
        """Some seconds in memory."""
        joints, others = (
            rows.between(start_s, end_s).read() for rows in (self.rows, self.others) if isinstance(rows, RecordingStream)
        )
        return self.make(self.setup, joints, others)

    def with_windows(self) -> FloatingFile:
        """With windows that are spread evenly."""
        count = int(np.clip(WINDOW_ROWS / (WINDOW_S * self.survey.rate_hz), 1, 8))
        return replace(
            self, held=tuple(self.part(*window) for window in self.windows(count, min(WINDOW_S, self.duration_s)))
        )

    def split(self, share: float) -> tuple[FloatingFile, FloatingFile]:
        """The first ``share`` in time and the rest."""
        first, rest = super().split(share)
        assert isinstance(first, FloatingFile)
        assert isinstance(rest, FloatingFile)
        return first.with_windows(), rest.with_windows()

    def window_samples(self, filtered: Filter) -> tuple[Samples, ...]:
        """Samples of the windows."""
        return tuple(replace(one, setup=self.setup).samples(filtered) for one in self.held)

    def samples(self, filtered: Filter, max_rows: int = 0) -> FloatingStream:  # type: ignore[override]
        """Joints, base and feet behind the filter, while they are read."""
        return FloatingStream(self, filtered)


@dataclass(frozen=True, eq=False)
class FloatingStream:
    """Samples of a log in its file, piece by piece; each is made with some seconds more on either side, so that filters have settled."""

    log: FloatingFile
    filtered: Filter

    def __iter__(self) -> Iterator[Samples]:
        log, period_s = self.log, self.log.survey.period_s
        for begin, stop in log.stretches():
            count = max(1, round((stop - begin) / PIECE_S))
            edges = begin + np.round(np.linspace(0.0, stop - begin, count + 1) / period_s) * period_s - 0.5 * period_s
            edges[0], edges[-1] = -np.inf, np.inf
            for first, last in pairwise(edges):
                made = log.part(max(begin, first - SETTLE_S), min(stop, last + SETTLE_S)).samples(self.filtered)
                own = made[slice(*np.searchsorted(made.time, [first, last]))]
                if len(own):
                    yield own


@dataclass(frozen=True, eq=False)
class FloatingSetup:
    """A robot on a floating base, and where it touches the ground or is pushed."""

    robot: Robot
    plan: RowPlan
    forces: tuple[Foot, ...] = ()
    """Where forces are measured."""
    imu_pose: Array | None = None
    gravity: Array = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    moves: Array | None = None
    """Directions in which base values move with errors of the IMU that were undone, each by one standard deviation."""

    @classmethod
    def of(cls, robot: Robot, settings: Settings) -> FloatingSetup:
        """As the settings say; frames that the robot does not have are refused."""
        points, flat, pushed = (
            [foot_frame(robot, name) for name in own] for own in (settings.feet, settings.flat_feet, settings.force_frames)
        )
        named = [*points, *flat, *pushed]
        twice = [name for name in named if named.count(name) > 1]
        if twice:
            raise InputError(
                f"frame '{twice[0]}' is named twice among --feet, --flat-feet and --force-frames, expected each once: its force is either "
                "unknown or measured"
            )
        radius = 0.0 if settings.foot_radius == "auto" else settings.foot_radius
        plan = RowPlan(FLOATING, foot_radius=radius, feet=(*points, *(f"{name}:flat" for name in flat)))
        imu = None if settings.imu_pose is None else pose_from_numbers(settings.imu_pose)
        forces = tuple(Foot(frame_named(robot, name)) for name in pushed)
        return cls(robot, plan, forces, imu, np.asarray(robot.gravity))

    @property
    def carried(self) -> bool:
        """Whether something carries the base, so that the rows of the joints alone are used."""
        return self.plan.feet == (f"{self.robot.links[0]}:flat",)

    @property
    def logged(self) -> bool:
        """Whether accelerations are taken as logged, where there are some."""
        return self.plan.acceleration == "logged"

    def filtered(self, filtered: Filter, logged: bool) -> FloatingSetup:
        """With a filter of the rows, and whether accelerations are taken as logged."""
        acceleration = "logged" if logged else "derived"
        return replace(self, plan=replace(self.plan, band_hz=filtered.row_band_hz, acceleration=acceleration))

    def motion(self, log: FloatingLog, made: Samples) -> BaseMotion:
        """The motion of the base."""
        try:
            return base_motion(made, log.columns, self.gravity, self.imu_pose, logged=self.logged)
        except InputError as error:
            raise InputError(f"{log.joints.place}: {error}") from error

    def samples(self, log: FloatingLog, filtered: Filter, margin_s: float | None = None) -> Samples:
        """Samples of a log; feet count as in contact for a margin before and after, by default as long as filters reach."""
        joints = process(log.joints, _through_five(filtered.steps(log.joints, log.joints.n_samples)))
        made = log.filtered_base(filtered)
        if len(made) != len(joints) or np.abs(made.time - joints.time).max() > 1e-9:
            inside = (joints.time >= made.time[0]) & (joints.time <= made.time[-1])
            joints = joints[np.flatnonzero(inside)]
            made = _at(made, joints.time)
        motion = self.motion(log, made)
        a = made.position[:, log.columns[JOINTS]] if self.logged and JOINTS in log.columns else joints.acceleration
        q, v, a = base_states(self.robot, motion, joints.position, joints.velocity, a)
        assert joints.torque is not None
        torque = np.hstack([np.zeros((len(q), 6)), joints.torque])
        if self.forces:
            torque = torque + self._pushed(log, q, joints.time)
        margin = max(SWITCH_S, 0.5 / filtered.cutoff_hz) if margin_s is None else margin_s
        contact = log.touches(joints.time, margin) if self.plan.feet else None
        if self.carried:
            contact = np.ones((len(q), 1))
        return Samples(joints.time, q, v, a, torque=torque, contact=contact, notes=joints.notes)

    def _pushed(self, log: FloatingLog, q: Array, time: Array) -> Array:
        """Torque of the measured forces."""
        feet, found, level = [], list[Array](), np.array(q)
        level[:, :7] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
        for foot, force in zip(self.forces, log.forces, strict=True):
            turn, _ = frame_poses(self.robot, level, foot.frame.body, foot.frame.placement)
            here = np.column_stack([np.interp(time, log.base.time, column) for column in force.T])
            parts = [np.einsum("nij,nj->ni", turn, here[:, k : k + 3]) for k in range(0, here.shape[1], 3)]
            feet.append(replace(foot, flat=here.shape[1] == 6))
            found.append(np.hstack(parts))
        return contact_torque(Contacts(self.robot, tuple(feet)), q, found)


def _through_five(steps: Sequence[Step]) -> list[Step]:
    """Steps that differentiate over five rows: at 100 Hz those over three lose 4 % of an acceleration at 8 Hz."""
    return [replace(step, points=5) if isinstance(step, Differentiate) else step for step in steps]


def _at(made: Samples, time: Array) -> Samples:
    """Samples at other times in between."""
    q, v, a = (
        np.column_stack([np.interp(time, made.time, column) for column in own.T])
        for own in (made.position, made.velocity, made.acceleration)
    )
    return Samples(time, q, v, a)


def floating_parts(logs: Logs) -> tuple[FloatingLog, ...]:
    """Logs of a robot on a floating base in memory: themselves, or windows of those in files."""
    found = list[FloatingLog]()
    for log in logs.parts:
        if isinstance(log, FloatingFile):
            found += [replace(one, setup=log.setup) for one in log.held]
        elif isinstance(log, FloatingLog):
            found.append(log)
    return tuple(found)


def foot_frame(robot: Robot, name: str) -> str:
    """The frame of a foot: by its name, or by a beginning of it that no other frame has, or no other that is called a foot or sole."""
    known = frames_of(robot)
    if name in known:
        return name
    near = [one for one in known if one.lower() == name.lower()] or [
        one for one in known if one.lower().startswith(name.lower())
    ]
    called = [one for one in known if "foot" in one.lower() or "sole" in one.lower()]
    for choice in (near, [one for one in near if one in called]):
        if len(choice) == 1:
            return choice[0]
    shown = near or called or known
    raise InputError(f"robot '{robot.name}' has no frame '{name}' for a foot, expected one of {', '.join(shown[:12])}")


def read_floating_log(
    path: Path, setup: FloatingSetup, settings: Reading, options: ReadOptions, *, streamed: bool = False
) -> FloatingLog | FloatingFile:
    """A log of joints, base and feet: the part of it that is used, in memory or left in its file."""
    part = log_part(path)
    with LogFile(part.path) as file:
        columns, where = log_columns(file, options), str(path)
        names = tuple(joint.name for joint in setup.robot.driven_joints)
        joints = open_recording(file.path, names, options) if streamed else read_recording(file, names, options)
        if not isinstance(joints, Recording | RecordingStream) or "torque" not in joints.quantities:
            raise InputError(f"{where} has no joint torque, expected columns tau1.. or one per joint name")
        found = base_columns(columns)
        if not found:
            raise InputError(
                f"{where} does not say how the base of robot '{setup.robot.name}' moves, expected base_vx.., base_wx.. and base_qx.. "
                "base_qw, or imu_ax.. and imu_wx..; a robot that stands fixed is identified with --no-floating"
            )
        feet = [name.partition(":")[0] for name in setup.plan.feet]
        read = open_columns if streamed else read_columns
        touched = {} if setup.plan.feet or setup.carried or setup.forces else feet_of(columns, frames_of(setup.robot))
        if touched and survey(read(file, list(touched), options)).highest.any():
            _refuse_contacts(where, touched)
        flags = [] if setup.carried else contact_columns(where, columns, feet)
        forces = [force_columns(where, columns, foot.frame.name) for foot in setup.forces]
        wanted = [name for own in (*found.values(), flags, *forces) for name in own]
        others = read(file, wanted, options)
    of_others = survey(others)
    first = sum(map(len, found.values()))
    for name, low, high in zip(flags, of_others.lowest[first:], of_others.highest[first:], strict=False):
        if -1.0 <= low < 0.0 and high <= 1.0:
            raise InputError(f"{where}: column {name} holds {low:g}, expected 1 for contact and 0 for none, or a force in N")
    most = np.maximum(np.abs(of_others.lowest), np.abs(of_others.highest))[first : first + len(flags)]
    make = partial(_made, where=where, found=found, most=most, forces=[len(own) for own in forces])
    times = part if part.named else settings
    cut = times.from_s is not None or times.to_s is not None
    if isinstance(joints, RecordingStream):
        rows = joints.between(times.from_s, times.to_s) if cut else joints
        assert isinstance(others, RecordingStream)
        log = FloatingFile(**vars(Log.of(rows)), setup=setup, others=replace(others, index=of_others.index), make=make)
        return log.with_windows()
    assert isinstance(others, Recording)
    whole = make(setup, joints, others)
    return whole.between(times.from_s, times.to_s) if cut else whole


def _refuse_contacts(where: str, feet: Mapping[str, str]) -> None:
    """A log in which feet touch the ground, where none were given: their forces would be taken for none."""
    frames = ",".join(feet.values())
    raise InputError(
        f"{where} has contacts with the ground ({', '.join(feet)}), whose forces would be taken for none; give the frames of the "
        f"feet: --feet {frames} (points) or --flat-feet {frames}"
    )


def _made(
    setup: FloatingSetup,
    joints: Recording,
    made: Recording,
    *,
    where: str,
    found: Mapping[str, Sequence[str]],
    most: Array,
    forces: Sequence[int],
) -> FloatingLog:
    """A log of joints and what is said of base and feet; ``most`` is the largest value of each flag in the whole log."""
    n_flags = len(most)
    values, columns, start = made.position, dict[str, slice](), 0
    blocks = []
    for quantity, names in found.items():
        own = values[:, start : start + len(names)]
        blocks.append(continuous_quaternions(where, own) if quantity == "orientation" else own)
        columns[quantity] = slice(start, start + len(names))
        start += len(names)
    flags, start_forces = values[:, start : start + n_flags], start + n_flags
    ends = start_forces + np.cumsum([0, *forces])
    if joints.acceleration is not None:
        moved = joints.acceleration
        if joints.n_samples != made.n_samples or not np.array_equal(joints.time, made.time):
            moved = np.column_stack([np.interp(made.time, joints.time, column) for column in moved.T])
        columns[JOINTS] = slice(start, start + moved.shape[1])
        blocks.append(moved)
    position = np.hstack(blocks)
    base = Recording(made.time, position, tuple(f"base {k}" for k in range(position.shape[1])), source=made.source)
    contact = (
        np.column_stack([touching(*pair) for pair in zip(flags.T, most, strict=True)])
        if n_flags
        else np.zeros((len(values), 0))
    )
    pushed = tuple(values[:, a:b] for a, b in pairwise(ends))
    return FloatingLog(**vars(Log.of(joints)), setup=setup, base=base, columns=columns, contact=contact, forces=pushed)
