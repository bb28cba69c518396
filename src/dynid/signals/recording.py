"""Recordings: logs in memory, in SI units at the joint side of the gearbox; rows are samples, columns are joints in the robot's order.

A motion log is a :class:`Recording`, a log of a force/torque sensor a :class:`WrenchRecording`, a table of poses, which has no clock, a
:class:`StaticRecording`. Beside them: names and largest values of their quantities, and where a recording came from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from dynid.arrays import Array, check_finite, check_shape, freeze, matrix, per_joint
from dynid.errors import InputError, UnknownNameError
from dynid.finding import Finding

#: Quantities of a motion log with one column per joint, and the column name each is written under.
COLUMN_OF_QUANTITY: Mapping[str, str] = {
    "position": "q",
    "velocity": "dq",
    "acceleration": "ddq",
    "torque": "tau",
    "current": "i",
    "reference_position": "q_ref",
    "reference_velocity": "dq_ref",
    "external_torque": "tau_ext",
}
#: Motion of the sensor body in a force/torque log, with the column name each is written under.
COLUMN_OF_BODY_MOTION: Mapping[str, str] = {
    "linear_velocity": "v",
    "angular_velocity": "w",
    "linear_acceleration": "a",
    "angular_acceleration": "alpha",
}
#: The largest magnitude that any machine shows, SI; what lies beyond is no measurement, and its square may overflow.
LARGEST: Mapping[str, float] = {
    "time": 1e12,
    "position": 1e6,
    "velocity": 1e6,
    "acceleration": 1e9,
    "torque": 1e9,
    "current": 1e9,
    "reference_position": 1e6,
    "reference_velocity": 1e6,
    "external_torque": 1e9,
    "linear_velocity": 1e6,
    "angular_velocity": 1e6,
    "linear_acceleration": 1e9,
    "angular_acceleration": 1e9,
    "wrench": 1e9,
    "inertia": 1e9,
    "gravity": 1e9,
}


def beyond(quantity: str, values: Array) -> tuple[int, int] | None:
    """Row and column of the first finite value that no machine can have, None where there is none."""
    if not values.size:
        return None
    bound = LARGEST[quantity]
    columns = values.reshape(len(values), -1)
    # Most logs are in order: two passes without memory of their own tell so. NaN hides what is beside it.
    if -bound <= columns.min() and columns.max() <= bound:
        return None
    places = np.argwhere((np.abs(columns) > bound) & np.isfinite(columns))
    return (int(places[0, 0]), int(places[0, 1])) if len(places) else None


def checked_joint_names(names: Sequence[str]) -> tuple[str, ...]:
    """Joint names as a tuple, refused where one appears twice."""
    if isinstance(names, str):
        raise InputError(f"joint_names is the text '{names}', expected a sequence of names")
    names = tuple(str(name) for name in names)
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"joint name '{twice[0]}' appears more than once, expected distinct names")
    return names


def checked_clock(time: Any) -> Array:
    """Stamps as a read-only array, refused unless they are finite and increase."""
    array = freeze(time)
    check_shape("time", array, (None,))
    check_finite("time", array)
    if array.size == 0:
        raise InputError("recording holds no rows, expected at least one")
    backwards = np.flatnonzero(np.diff(array) <= 0.0)
    if backwards.size:
        k = int(backwards[0])
        raise InputError(
            f"time does not increase from row {k} ({array[k]:.9g} s) to row {k + 1} ({array[k + 1]:.9g} s), "
            "expected strictly increasing stamps"
        )
    return array


@dataclass(frozen=True)
class Part:
    """Rows ``start`` to ``stop`` (half open) of a log of ``n_rows`` rows and ``duration_s`` seconds.

    A part of a long log, whose rows were not counted, is known by its times ``from_s`` to ``to_s`` instead.
    """

    start: int
    stop: int
    n_rows: int
    duration_s: float
    name: str = ""
    """What the part is for, such as validation part."""
    from_s: float | None = None
    to_s: float | None = None

    def __str__(self) -> str:
        n = self.stop - self.start
        if self.from_s is not None:
            rows = f"{self.from_s:.6g} s to {self.to_s:.6g} s"
        elif self.start == 0:
            rows = f"the first {n} of its {self.n_rows} rows"
        elif self.stop == self.n_rows:
            rows = f"the last {n} of its {self.n_rows} rows"
        else:
            rows = f"rows {self.start + 1} to {self.stop} of its {self.n_rows}"
        return f"{self.name}, {rows}" if self.name else rows

    def of(self, whole: Part | None) -> Part:
        """This part, which was cut from another one, as a part of the log; times are those of the log in any case."""
        if whole is None or self.from_s is not None:
            return self
        start = whole.start + self.start
        return Part(start, whole.start + self.stop, whole.n_rows, whole.duration_s, self.name or whole.name)


@dataclass(frozen=True)
class RecordingSource:
    """Where a recording came from and what was done to it while reading.

    ``n_rows_in_file`` counts the rows as they lie in the file, ``n_dropped`` those that were left out;
    ``notes`` are sentences for the user, ``findings`` what reading found wrong; ``part`` is the range of rows of the
    log, None for all.
    """

    path: str = ""
    sha256: str = ""
    format: str = "memory"
    notes: tuple[str, ...] = ()
    n_rows_in_file: int = 0
    n_dropped: int = 0
    preset: str | None = None
    findings: tuple[Finding, ...] = ()
    part: Part | None = None
    ignored: tuple[str, ...] = ()
    """Joints whose torque is not used."""
    torque_delay_s: float = 0.0
    """By how much torque was logged later than position, which processing undoes."""

    def noting(self, *notes: str) -> Self:
        """The same source with more notes."""
        return replace(self, notes=(*self.notes, *notes))


class _Rows(ABC):
    """What every table of rows has: named joints, quantities of fixed shape, or None where it has none, and its source."""

    joint_names: tuple[str, ...]
    source: RecordingSource

    @abstractmethod
    def shapes(self) -> Mapping[str, tuple[int | None, ...]]:
        """Shape of every quantity that it may hold; the first is always there."""

    def check_quantities(self) -> None:
        """Freeze all quantities, refused where their shapes differ from what they should be."""
        for index, (name, shape) in enumerate(self.shapes().items()):
            values = getattr(self, name)
            if values is not None or index == 0:
                object.__setattr__(self, name, matrix(name, values, shape))

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the quantities it holds."""
        return tuple(name for name in self.shapes() if getattr(self, name) is not None)

    @property
    @abstractmethod
    def n_samples(self) -> int:
        """Number of rows."""

    @property
    def n_joints(self) -> int:
        """Number of joints."""
        return len(self.joint_names)


class _TimedRows(_Rows):
    """What every log with a clock has: its length, its rate, and parts of it."""

    time: Array

    def __post_init__(self) -> None:
        object.__setattr__(self, "joint_names", checked_joint_names(self.joint_names))
        object.__setattr__(self, "time", checked_clock(self.time))
        self.check_quantities()

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.time.size)

    def cut(self, start: int, stop: int | None = None) -> Self:
        """Rows of a piece of a stream, whose place in the log is not known."""
        rows = {name: getattr(self, name)[start:stop] for name in ("time", *self.quantities)}
        return replace(self, **rows)  # type: ignore[type-var]

    @property
    def duration_s(self) -> float:
        """Time from the first to the last stamp."""
        return float(self.time[-1] - self.time[0])

    @property
    def rate_hz(self) -> float:
        """Mean sampling rate ``(n - 1) / (t_n - t_1)``; NaN for a single row."""
        return (self.n_samples - 1) / self.duration_s if self.n_samples > 1 else float("nan")

    @property
    @abstractmethod
    def place(self) -> str:
        """The log, as messages name it."""

    @abstractmethod
    def rows(self, start: int, stop: int | None = None) -> Self:
        """Rows ``start`` to ``stop`` (half open, like a slice)."""

    def between(self, from_s: float | None = None, to_s: float | None = None) -> Self:
        """The part with ``from_s <= time <= to_s`` on the log's own clock."""
        start = 0 if from_s is None else int(np.searchsorted(self.time, from_s, side="left"))
        stop = self.n_samples if to_s is None else int(np.searchsorted(self.time, to_s, side="right"))
        if stop <= start:
            low = "its start" if from_s is None else f"{from_s:g} s"
            high = "its end" if to_s is None else f"{to_s:g} s"
            raise InputError(
                f"{self.place}: no sample between {low} and {high}; the log runs from {self.time[0]:.6g} s "
                f"to {self.time[-1]:.6g} s"
            )
        return self.rows(start, stop)


@dataclass(frozen=True, eq=False)
class Recording(_TimedRows):
    """A motion log; arrays are ``(n, joints)``, or None where the log has none.

    Args:
        time: ``(n,)``, seconds, increasing.
        position: rad or m.
        joint_names: name of every column.
        velocity: rad/s or m/s.
        acceleration: rad/s^2 or m/s^2.
        torque: N m or N.
        current: A; :meth:`with_drive_gains` makes torque of it.
        reference_position: commanded position.
        reference_velocity: commanded velocity.
        external_torque: contact torque as estimated by the controller, never the joint torque itself.
        source: where the log came from and what was done while reading it.

    Examples:
        >>> import dynid, numpy as np
        >>> t = np.arange(100) / 100.0
        >>> log = dynid.Recording(t, np.sin(t)[:, None], ("elbow",), torque=np.cos(t)[:, None])
        >>> log.n_samples, log.quantities
        (100, ('position', 'torque'))
    """

    time: Array
    position: Array
    joint_names: tuple[str, ...]
    velocity: Array | None = None
    acceleration: Array | None = None
    torque: Array | None = None
    current: Array | None = None
    reference_position: Array | None = None
    reference_velocity: Array | None = None
    external_torque: Array | None = None
    source: RecordingSource = field(default_factory=RecordingSource)

    def shapes(self) -> Mapping[str, tuple[int | None, ...]]:
        """One column per joint."""
        return dict.fromkeys(COLUMN_OF_QUANTITY, (self.n_samples, self.n_joints))

    def with_(self, **changes: Any) -> Self:
        """The same recording with some fields replaced."""
        known = {"time", "joint_names", "source", *COLUMN_OF_QUANTITY}
        for name in changes:
            if name not in known:
                raise UnknownNameError("field of a recording", name, sorted(known))
        return replace(self, **changes)

    @property
    def place(self) -> str:
        """The log for a message: its file, and which part of it this is where it is not the whole."""
        file, part = self.source.path or "the recording", self.source.part
        if part is None:
            return file
        return f"{file} ({part.n_rows} rows, {part.duration_s:.4g} s), {part}"

    def rows(self, start: int, stop: int | None = None, *, part: str = "") -> Self:
        """Rows ``start`` to ``stop`` (half open, like a slice); ``part`` says what they are for, in messages."""
        first, end, _ = slice(start, stop).indices(self.n_samples)
        if end <= first:
            last = "its end" if stop is None else f"row {stop}"
            raise InputError(f"{self.place}: no sample from row {start} to {last}; it has {self.n_samples} rows")
        cut = self.cut(first, end)
        if end - first == self.n_samples and not part:
            return cut
        piece = Part(first, end, self.n_samples, self.duration_s, part).of(self.source.part)
        return replace(cut, source=replace(self.source, part=piece))

    def pieces(self, start_s: float = -np.inf, stop_s: float = np.inf) -> Iterator[tuple[Self, int]]:
        """The rows with ``start_s <= time < stop_s`` as one piece, and rows dropped, as a log yields them that is read piece by piece."""
        first, last = np.searchsorted(self.time, [start_s, stop_s])
        if last > first:
            yield (self if last - first == self.n_samples else self.cut(int(first), int(last))), 0

    def split(self, share: float, names: tuple[str, str] = ("identification part", "validation part")) -> tuple[Self, Self]:
        """The first ``share`` of the log and the rest, cut in time before any filter; ``names`` call them in messages."""
        cut = int(np.searchsorted(self.time, self.time[0] + share * self.duration_s))
        return self.rows(0, cut, part=names[0]), self.rows(cut, part=names[1])

    def select(self, joints: Sequence[str]) -> Self:
        """The columns of ``joints`` in that order."""
        for name in joints:
            if name not in self.joint_names:
                raise UnknownNameError("joint", name, self.joint_names, self.source.path or "the recording")
        columns = [self.joint_names.index(name) for name in joints]
        values = {name: getattr(self, name)[:, columns] for name in self.quantities}
        return replace(self, joint_names=tuple(joints), **values)

    def with_drive_gains(self, gains: Sequence[float] | Mapping[str, float] | Array) -> Self:
        """``tau_j = k_j i_j``, gains in newton metre per ampere at the joint side."""
        signal, note = self.current, "torque is drive gain times motor current"
        if signal is None:
            signal, note = self.torque, "the torque columns are taken as motor current, torque is drive gain times these"
        if signal is None:
            raise InputError(
                f"drive gains need motor current, but {self.source.path or 'the recording'} has neither current nor torque "
                "columns (expected i1.., tau1.. or names such as actual_current_0..)"
            )
        k = per_joint("drive gains", gains, self.joint_names)
        return replace(self, torque=signal * k, source=self.source.noting(note))

    @classmethod
    def concatenate(cls, parts: Sequence[Recording]) -> Recording:
        """Parts of one log, in order of time, as one recording."""
        if not parts:
            raise InputError("no parts to join, expected at least one recording")
        first = parts[0]
        for part in parts[1:]:
            if part.joint_names != first.joint_names or part.quantities != first.quantities:
                raise InputError(
                    f"parts differ: one has {', '.join(first.quantities)} of {first.n_joints} joints, "
                    f"another {', '.join(part.quantities)} of {part.n_joints} joints"
                )
        values: dict[str, Any] = {}
        for name in first.quantities:
            values[name] = np.concatenate([getattr(part, name) for part in parts])
            values[name].flags.writeable = False
        source = replace(first.source, part=None)
        return replace(first, time=np.concatenate([part.time for part in parts]), source=source, **values)


@dataclass(frozen=True, eq=False)
class WrenchRecording(_TimedRows):
    """A force/torque-sensor log and the motion of the sensor.

    The motion is that of the sensor body, ``(n, 3)`` each in its own frame, or that of the joints, ``(n, joints)``.

    Args:
        time: ``(n,)``, seconds, increasing.
        wrench: ``(n, 6)``: force, N, and moment, N m, in the sensor frame.
        linear_velocity: of the sensor's origin, m/s.
        angular_velocity: rad/s.
        linear_acceleration: proper acceleration ``a - g`` of the sensor's origin, as an accelerometer there measures it, m/s^2.
        angular_acceleration: rad/s^2.
        joint_names: names of the joints, where the motion is theirs.
        position: of the joints, rad or m.
        velocity: of the joints.
        acceleration: of the joints.
        source: where the log came from.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.signals.recording import WrenchRecording
        >>> t = np.arange(10) / 100.0
        >>> log = WrenchRecording(t, np.zeros((10, 6)), linear_acceleration=np.tile([0.0, 0.0, 9.81], (10, 1)))
        >>> log.wrench.shape
        (10, 6)
    """

    time: Array
    wrench: Array
    linear_velocity: Array | None = None
    angular_velocity: Array | None = None
    linear_acceleration: Array | None = None
    angular_acceleration: Array | None = None
    joint_names: tuple[str, ...] = ()
    position: Array | None = None
    velocity: Array | None = None
    acceleration: Array | None = None
    source: RecordingSource = field(default_factory=RecordingSource)

    def shapes(self) -> Mapping[str, tuple[int | None, ...]]:
        """Six numbers of the wrench, three of each motion of the body, one column per joint."""
        n = self.n_samples
        joints = dict.fromkeys(("position", "velocity", "acceleration"), (n, self.n_joints))
        return {"wrench": (n, 6), **dict.fromkeys(COLUMN_OF_BODY_MOTION, (n, 3)), **joints}

    @property
    def place(self) -> str:
        """The log, as messages name it."""
        return self.source.path or "the force/torque recording"

    def rows(self, start: int, stop: int | None = None) -> Self:
        """The rows from ``start`` up to, but without, ``stop``."""
        return self.cut(start, stop)

    @property
    def force(self) -> Array:
        """Force (n, 3) in newton."""
        return self.wrench[:, :3]

    @property
    def moment(self) -> Array:
        """Moment (n, 3) in newton metre."""
        return self.wrench[:, 3:]


@dataclass(frozen=True, eq=False)
class StaticRecording(_Rows):
    """A table of poses with the inertia matrix and the gravity torque of each.

    Args:
        position: ``(n, joints)``, rad or m.
        joint_names: name of every column.
        inertia: ``M(q)``, ``(n, joints, joints)``; None where the table has none.
        gravity: ``g(q)``, ``(n, joints)``, N m or N; None where the table has none.
        source: where the table came from.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.signals.recording import StaticRecording
        >>> StaticRecording(np.zeros((4, 1)), ("elbow",), gravity=np.ones((4, 1))).gravity.shape
        (4, 1)
    """

    position: Array
    joint_names: tuple[str, ...]
    inertia: Array | None = None
    gravity: Array | None = None
    source: RecordingSource = field(default_factory=RecordingSource)

    def __post_init__(self) -> None:
        object.__setattr__(self, "joint_names", checked_joint_names(self.joint_names))
        object.__setattr__(self, "position", matrix("position", self.position, (None, self.n_joints)))
        if self.n_samples == 0:
            raise InputError("pose table holds no rows, expected at least one")
        if self.inertia is None and self.gravity is None:
            raise InputError("pose table holds neither inertia nor gravity, expected at least one of them")
        self.check_quantities()
        if self.inertia is not None:
            gap = float(np.abs(self.inertia - self.inertia.transpose(0, 2, 1)).max())
            scale = float(np.abs(self.inertia).max())
            if gap > 1e-6 * scale:
                raise InputError(f"inertia is not symmetric: entries differ by up to {gap:.3g} of {scale:.3g}")

    def shapes(self) -> Mapping[str, tuple[int | None, ...]]:
        """One column per joint, and a matrix of them."""
        n, joints = self.n_samples, self.n_joints
        return {"position": (n, joints), "inertia": (n, joints, joints), "gravity": (n, joints)}

    @property
    def n_samples(self) -> int:
        """Number of poses."""
        return len(self.position)
