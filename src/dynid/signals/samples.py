"""Clean samples on one clock, ready for a regressor: motion and torque of joints, or wrench and motion of a force/torque sensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, check_finite, check_shape, frozen_view, matrix
from dynid.errors import InputError
from dynid.model.frames import Frame, LinkMotion, ProperAcceleration, link_motion
from dynid.model.robot import Robot
from dynid.signals.recording import RecordingSource, WrenchRecording
from dynid.signals.steps.step import Signals

_PER_JOINT = ("velocity", "acceleration", "torque", "raw_torque", "load", "weight")
_QUANTITIES = ("time", "position", *_PER_JOINT, "travel", "contact")


@dataclass(frozen=True)
class Samples:
    """Position, velocity, acceleration and (unless it is motion only) torque of every joint, one row per sample.

    Args:
        time: seconds, increasing.
        position: ``(samples, joints)``, rad or m.
        velocity: rad/s or m/s.
        acceleration: rad/s^2 or m/s^2.
        torque: N m or N; None for motion without torque.
        raw_torque: torque as recorded on the same rows, before any filter.
        load: torque transmitted by each joint, for friction that depends on it.
        travel: ``(samples, joints, reversals)``, signed distance of each joint since it last reversed and ways since the reversals
            before, for friction with a memory of them.
        weight: factor of each row of each joint in fits, 0 for torque that is not used; None for 1 throughout.
        contact: positive where a foot may touch the ground, ``(samples, feet)``, of a robot on feet; None without feet.
        notes: sentences on how the samples were made.

    Examples:
        >>> import dynid, numpy as np
        >>> t = np.linspace(0.0, 1.0, 5)
        >>> q = np.outer(t, [1.0, 2.0])
        >>> samples = dynid.Samples(time=t, position=q, velocity=0 * q + [1.0, 2.0], acceleration=0 * q)
        >>> len(samples), samples.duration_s
        (5, 1.0)
    """

    time: Array
    position: Array
    velocity: Array
    acceleration: Array
    torque: Array | None = None
    raw_torque: Array | None = None
    load: Array | None = None
    travel: Array | None = None
    weight: Array | None = None
    contact: Array | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n, width = np.shape(self.velocity)[:2] if np.ndim(self.velocity) == 2 else (None, None)
        shapes: dict[str, tuple[int | None, ...]] = {"time": (None,), **dict.fromkeys(_PER_JOINT, (len(self.time), width))}
        shapes |= {"travel": (n, width, None), "position": (n, None), "contact": (n, None)}
        for name, shape in shapes.items():
            if (values := getattr(self, name)) is not None:
                array = np.ascontiguousarray(values, dtype=np.float64)
                check_shape(name, array, shape)
                check_finite(name, array)
                object.__setattr__(self, name, frozen_view(array))
        if len(self.time) > 1 and not (rising := np.diff(self.time) > 0.0).all():
            row = int(np.argmin(rising))
            raise InputError(
                f"time does not grow at row {row + 1}: {self.time[row]:g} s is followed by {self.time[row + 1]:g} s"
            )
        columns = self.position.shape[1]
        if columns not in (width, self.velocity.shape[1] + 1):  # a quaternion has one number more
            raise InputError(f"position has {columns} columns, velocity has {width}")

    def __len__(self) -> int:
        return len(self.time)

    def __iter__(self) -> Iterator[Samples]:
        """One piece: itself. Streams yield many."""
        yield self

    def __getitem__(self, rows: slice | IntArray) -> Samples:
        """Some of the rows."""
        cut: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[rows] for name in _QUANTITIES
        }
        if not isinstance(rows, slice) or (rows.step or 1) < 0:  # time may run backwards, which is refused
            return replace(self, **cut)
        part = object.__new__(type(self))  # rows of samples that were checked need no check of their own
        for name, values in cut.items():
            object.__setattr__(part, name, None if values is None else frozen_view(np.ascontiguousarray(values)))
        object.__setattr__(part, "notes", self.notes)
        return part

    def cut(self, rows: slice) -> Samples:
        """Some consecutive rows."""
        return self[rows]

    def joined(self, other: Samples) -> Samples:
        """These rows and those of another set; quantities that only one of them has are left out."""
        arrays: dict[str, Any] = {}
        for name in _QUANTITIES:
            mine, theirs = getattr(self, name), getattr(other, name)
            arrays[name] = None if mine is None or theirs is None else np.concatenate([mine, theirs])
        return Samples(notes=self.notes, **arrays)

    @property
    def duration_s(self) -> float:
        return float(self.time[-1] - self.time[0]) if len(self.time) else 0.0

    def with_load(self, load: ArrayLike) -> Samples:
        return replace(self, load=np.asarray(load, dtype=np.float64))

    def with_weight(self, weight: Array) -> Samples:
        """With a factor of every row, times what they have of it."""
        return replace(self, weight=weight if self.weight is None else self.weight * weight)

    def with_torque(self, torque: ArrayLike) -> Samples:
        return replace(self, torque=np.asarray(torque, dtype=np.float64))


@runtime_checkable
class SampleStream(Protocol):
    """Samples too many to hold: iterating, any number of times, yields them in order as pieces."""

    def __iter__(self) -> Iterator[Samples]: ...


@dataclass(frozen=True, eq=False)
class MappedSamples:
    """Samples of a stream, each piece changed by a function."""

    stream: SampleStream
    change: Callable[[Samples], Samples]

    def __iter__(self) -> Iterator[Samples]:
        for piece in self.stream:
            yield self.change(piece)


def map_samples(change: Callable[[Samples], Samples], samples: Samples | SampleStream) -> Samples | SampleStream:
    """Samples changed by a function of each piece: at once in memory, else while they go by."""
    return change(samples) if isinstance(samples, Samples) else MappedSamples(samples, change)


@dataclass(frozen=True, eq=False)
class OwnSamples:
    """Samples of a partition: those with ``start_s <= time < stop_s`` are its own, the others are there for filters."""

    stream: SampleStream
    start_s: float
    stop_s: float

    def __iter__(self) -> Iterator[Samples]:
        return iter(self.stream)

    def own(self, time: Array) -> slice:
        """Which of some rows are its own."""
        first, last = np.searchsorted(time, [self.start_s, self.stop_s])
        return slice(int(first), int(last))


_BODY = ("angular_velocity", "linear_acceleration", "angular_acceleration")
_JOINTS = ("position", "velocity", "acceleration")


@dataclass(frozen=True, eq=False)
class WrenchSamples:
    """Wrench of a sensor and its motion, one row per sample; the motion is that of the sensor body, of the joints, or both.

    Args:
        time: ``(n,)``, seconds, increasing.
        wrench: ``(n, 6)``: force, N, and moment, N m, in the sensor frame.
        raw_wrench: the same as recorded, before any filter.
        angular_velocity: of the sensor, rad/s, in its own frame.
        linear_acceleration: proper acceleration of the sensor's origin, as an accelerometer there reads it, m/s^2.
        angular_acceleration: rad/s^2.
        position: of the joints ``(n, joints)``.
        velocity: of the joints.
        acceleration: of the joints.
        source: where the log came from.
        notes: sentences on how the samples were made.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.signals.samples import WrenchSamples
        >>> still = np.zeros((5, 3))
        >>> up = still + [0.0, 0.0, 9.81]
        >>> samples = WrenchSamples(np.arange(5.0), np.zeros((5, 6)), None, still, up, still)
        >>> len(samples), samples.proper.linear[0].tolist()
        (5, [0.0, 0.0, 9.81])
    """

    time: Array
    wrench: Array
    raw_wrench: Array | None = None
    angular_velocity: Array | None = None
    linear_acceleration: Array | None = None
    angular_acceleration: Array | None = None
    position: Array | None = None
    velocity: Array | None = None
    acceleration: Array | None = None
    source: RecordingSource = field(default_factory=RecordingSource)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "time", matrix("time", self.time, (None,)))
        n = len(self.time)
        object.__setattr__(self, "wrench", matrix("wrench", self.wrench, (n, 6)))
        shapes: dict[str, tuple[int | None, ...]] = {"raw_wrench": (n, 6)}
        shapes |= dict.fromkeys(_BODY, (n, 3)) | dict.fromkeys(_JOINTS, (n, None))
        for name, shape in shapes.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, matrix(name, getattr(self, name), shape))

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, rows: slice) -> WrenchSamples:
        """Some of the rows."""
        names = ("time", "wrench", "raw_wrench", *_BODY, *_JOINTS)
        cut: dict[str, Any] = {name: None if (x := getattr(self, name)) is None else x[rows] for name in names}
        return replace(self, **cut)

    @property
    def place(self) -> str:
        """The log, as messages name it."""
        return self.source.path or "the force/torque recording"

    @property
    def rate_hz(self) -> float:
        """Mean sampling rate."""
        return (len(self) - 1) / float(self.time[-1] - self.time[0]) if len(self) > 1 else float("nan")

    @property
    def proper(self) -> ProperAcceleration:
        """Proper and angular acceleration of the sensor."""
        self.need_motion()
        assert self.linear_acceleration is not None
        assert self.angular_acceleration is not None
        return ProperAcceleration(self.linear_acceleration, self.angular_acceleration)

    def need_motion(self) -> None:
        """Refuse where the motion of the sensor itself is not complete."""
        missing = [name.replace("_", " ") for name in _BODY if getattr(self, name) is None]
        if missing:
            remedy = "" if self.position is None else "; its joints are known: give --robot and --frame"
            raise InputError(
                f"{self.place} lacks the {', '.join(missing)} of the sensor, expected all of its motion{remedy}"
            )

    def moved_by(
        self, robot: Robot, frame: str | Frame | None = None, gravity: ArrayLike | None = None
    ) -> tuple[WrenchSamples, LinkMotion]:
        """The samples with the motion of the sensor taken from the joints of a robot, and that motion."""
        if self.position is None or self.velocity is None or self.acceleration is None:
            raise InputError(
                f"{self.place} has no joint positions, expected q1.. or one column per joint name beside the wrench"
            )
        motion = link_motion(robot, self.position, self.velocity, self.acceleration, frame, gravity=gravity)
        moved = replace(
            self,
            angular_velocity=motion.angular_velocity,
            linear_acceleration=motion.proper.linear,
            angular_acceleration=motion.proper.angular,
        )
        return moved, motion

    def seen_from(self, pose: ArrayLike) -> WrenchSamples:
        """Motion that was measured elsewhere on the body (an IMU), carried to the sensor; ``pose`` is that of the IMU in the sensor.

        ``b_s = R b_i - alpha x p - w x (w x p)`` with ``w = R w_i``, ``alpha = R alpha_i``.
        """
        T = np.asarray(pose, dtype=np.float64)
        R, p = T[:3, :3], T[:3, 3]
        proper = self.proper
        assert self.angular_velocity is not None
        w, alpha = self.angular_velocity @ R.T, proper.angular @ R.T
        linear = proper.linear @ R.T - np.cross(alpha, p) - np.cross(w, np.cross(w, p))
        return replace(self, angular_velocity=w, linear_acceleration=linear, angular_acceleration=alpha)


def wrench_signals(recording: WrenchRecording) -> Signals:
    """The signals of a sensor log as processing steps take them.

    Steps know positions, velocities, accelerations and torque. Of joints these are theirs; of a sensor body the angular velocity is
    the velocity, so that its derivative is the angular acceleration. The wrench, and what else is only to be smoothed, is the torque.
    """
    smoothed = [recording.wrench]
    values: dict[str, Array] = {}
    if recording.position is not None:
        values = {name: x for name in _JOINTS if (x := getattr(recording, name)) is not None}
    elif recording.angular_velocity is not None and recording.linear_acceleration is not None:
        values = {"velocity": recording.angular_velocity}
        smoothed += [x for x in (recording.linear_acceleration, recording.angular_acceleration) if x is not None]
    else:
        where = recording.source.path or "the recording"
        raise InputError(
            f"{where} is a force/torque-sensor log without motion, expected joint positions (q1..) or the sensor's angular velocity "
            "(wx, wy, wz) and proper acceleration (ax, ay, az) beside the wrench"
        )
    values["torque"] = np.hstack(smoothed)
    values["raw_torque"] = recording.wrench
    return Signals(recording.time, values, float(recording.time[0]), 0)


def wrench_samples(recording: WrenchRecording, signals: Signals, notes: tuple[str, ...]) -> WrenchSamples:
    """Samples of processed signals."""
    values: Mapping[str, Array] = signals.values
    smoothed = values["torque"]
    of_body: dict[str, Array] = {}
    if recording.position is None:
        of_body["angular_velocity"] = values["velocity"]
        of_body["linear_acceleration"] = smoothed[:, 6:9]
        if recording.angular_acceleration is not None:
            of_body["angular_acceleration"] = smoothed[:, 9:12]
        elif "acceleration" in values:
            of_body["angular_acceleration"] = values["acceleration"]
    else:
        of_body = {name: values[name] for name in _JOINTS if name in values}
    missing = "angular_acceleration" if recording.position is None else "acceleration"
    if missing not in of_body:
        raise InputError(
            f"after the processing steps there is no {missing.replace('_', ' ')}; add a step that makes it, such as Differentiate()"
        )
    return WrenchSamples(
        signals.time, smoothed[:, :6], values["raw_torque"], source=recording.source, notes=notes, **of_body
    )
