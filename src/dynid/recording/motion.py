"""A motion log in memory: SI units at the joint side of the gearbox, rows are samples, columns are joints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from dynid.arrays import Array, matrix
from dynid.errors import InputError, UnknownNameError
from dynid.recording.checked import checked_clock, checked_joint_names, per_joint
from dynid.recording.quantities import COLUMN_OF_QUANTITY
from dynid.recording.source import Part, RecordingSource


@dataclass(frozen=True, eq=False)
class Recording:
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

    def __post_init__(self) -> None:
        object.__setattr__(self, "joint_names", checked_joint_names(self.joint_names))
        object.__setattr__(self, "time", checked_clock(self.time))
        shape = (self.time.size, len(self.joint_names))
        for name in COLUMN_OF_QUANTITY:
            values = getattr(self, name)
            if values is not None or name == "position":
                object.__setattr__(self, name, matrix(name, values, shape))

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.time.size)

    @property
    def n_joints(self) -> int:
        """Number of joints."""
        return len(self.joint_names)

    @property
    def duration_s(self) -> float:
        """Time from the first to the last stamp."""
        return float(self.time[-1] - self.time[0])

    @property
    def rate_hz(self) -> float:
        """Mean sampling rate ``(n - 1) / (t_n - t_1)``; NaN for a single row."""
        return (self.n_samples - 1) / self.duration_s if self.n_samples > 1 else float("nan")

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the quantities this recording holds."""
        return tuple(name for name in COLUMN_OF_QUANTITY if getattr(self, name) is not None)

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

    def cut(self, start: int, stop: int | None = None) -> Self:
        """Rows of a piece of a stream, whose place in the log is not known."""
        rows = slice(start, stop)
        return replace(self, time=self.time[rows], **{name: getattr(self, name)[rows] for name in self.quantities})

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
