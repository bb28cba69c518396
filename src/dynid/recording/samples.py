"""Clean samples: joint motion and torque on one clock, ready for a regressor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, check_finite, check_shape, frozen_view
from dynid.errors import InputError


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
        travel: signed distance of each joint since it last reversed, for friction with a memory of it.
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
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        time = _float_array(self.time)
        check_shape("time", time, (None,))
        check_finite("time", time)
        if len(time) > 1 and not (np.diff(time) > 0.0).all():
            place = int(np.argmin(np.diff(time) > 0.0))
            raise InputError(
                f"time does not grow at row {place + 1}: {time[place]:g} s is followed by {time[place + 1]:g} s"
            )
        object.__setattr__(self, "time", frozen_view(time))
        width: int | None = None
        for name in ("velocity", "acceleration", "torque", "raw_torque", "load", "travel"):
            values = getattr(self, name)
            if values is None:
                continue
            array = _float_array(values)
            check_shape(name, array, (len(time), width))
            check_finite(name, array)
            width = array.shape[1]
            object.__setattr__(self, name, frozen_view(array))
        position = _float_array(self.position)
        check_shape("position", position, (len(time), None))
        check_finite("position", position)
        if width is not None and position.shape[1] not in (width, width + 1):  # a quaternion has one number more
            raise InputError(f"position has {position.shape[1]} columns, velocity has {width}")
        object.__setattr__(self, "position", frozen_view(position))

    def __len__(self) -> int:
        return len(self.time)

    def __iter__(self) -> Iterator[Samples]:
        """One piece: itself. Streams yield many."""
        yield self

    def __getitem__(self, rows: slice | IntArray) -> Samples:
        """Some of the rows."""
        cut: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[rows]
            for name in ("time", "position", "velocity", "acceleration", "torque", "raw_torque", "load", "travel")
        }
        if not isinstance(rows, slice) or (rows.step or 1) < 0:  # time may run backwards, which is refused
            return replace(self, **cut)
        part = object.__new__(type(self))  # rows of samples that were checked need no check of their own
        for name, values in cut.items():
            object.__setattr__(part, name, None if values is None else frozen_view(np.ascontiguousarray(values)))
        object.__setattr__(part, "notes", self.notes)
        return part

    @property
    def duration_s(self) -> float:
        return float(self.time[-1] - self.time[0]) if len(self.time) else 0.0

    def with_load(self, load: ArrayLike) -> Samples:
        return replace(self, load=np.asarray(load, dtype=np.float64))

    def with_torque(self, torque: ArrayLike) -> Samples:
        return replace(self, torque=np.asarray(torque, dtype=np.float64))


@runtime_checkable
class SampleStream(Protocol):
    """Samples too many to hold: iterating, any number of times, yields them in order as pieces."""

    def __iter__(self) -> Iterator[Samples]: ...


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


def joined_samples(one: Samples, other: Samples) -> Samples:
    """Rows of two sets one after the other; quantities that only one of them has are left out."""
    arrays: dict[str, Any] = {}
    for name in ("time", "position", "velocity", "acceleration", "torque", "raw_torque", "load", "travel"):
        mine, theirs = getattr(one, name), getattr(other, name)
        arrays[name] = None if mine is None or theirs is None else np.concatenate([mine, theirs])
    return Samples(notes=one.notes, **arrays)


def _float_array(values: ArrayLike) -> Array:
    return np.ascontiguousarray(values, dtype=np.float64)
