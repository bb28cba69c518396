"""A log of a force/torque sensor."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from dynid.arrays import Array, matrix
from dynid.errors import InputError
from dynid.recording.checked import checked_clock, checked_joint_names
from dynid.recording.quantities import COLUMN_OF_BODY_MOTION
from dynid.recording.source import RecordingSource


@dataclass(frozen=True, eq=False)
class WrenchRecording:
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
        >>> t = np.arange(10) / 100.0
        >>> log = dynid.WrenchRecording(t, np.zeros((10, 6)), linear_acceleration=np.tile([0.0, 0.0, 9.81], (10, 1)))
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

    def __post_init__(self) -> None:
        names = checked_joint_names(self.joint_names)
        object.__setattr__(self, "joint_names", names)
        object.__setattr__(self, "time", checked_clock(self.time))
        n = self.time.size
        object.__setattr__(self, "wrench", matrix("wrench", self.wrench, (n, 6)))
        shapes = dict.fromkeys(COLUMN_OF_BODY_MOTION, (n, 3))
        shapes |= dict.fromkeys(("position", "velocity", "acceleration"), (n, len(names)))
        for name, shape in shapes.items():
            if getattr(self, name) is not None:
                object.__setattr__(self, name, matrix(name, getattr(self, name), shape))

    def rows(self, start: int, stop: int) -> WrenchRecording:
        """The rows from ``start`` up to, but without, ``stop``."""
        cut = {name: getattr(self, name)[start:stop] for name in ("time", *self.quantities)}
        return replace(self, **cut)

    def between(self, from_s: float | None = None, to_s: float | None = None) -> WrenchRecording:
        """The part with ``from_s <= time <= to_s`` on the log's own clock."""
        start = 0 if from_s is None else int(np.searchsorted(self.time, from_s, side="left"))
        stop = self.n_samples if to_s is None else int(np.searchsorted(self.time, to_s, side="right"))
        if stop <= start:
            asked = (
                f"{'its start' if from_s is None else f'{from_s:g} s'} and {'its end' if to_s is None else f'{to_s:g} s'}"
            )
            raise InputError(
                f"{self.source.path or 'the force/torque recording'}: no sample between {asked}; the log runs from "
                f"{self.time[0]:.6g} s to {self.time[-1]:.6g} s"
            )
        return self.rows(start, stop)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.time.size)

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of what the log holds."""
        names = (*COLUMN_OF_BODY_MOTION, "position", "velocity", "acceleration")
        return ("wrench", *(name for name in names if getattr(self, name) is not None))

    @property
    def n_joints(self) -> int:
        """Number of joints whose motion is known."""
        return len(self.joint_names)

    @property
    def duration_s(self) -> float:
        """Time from the first to the last stamp."""
        return float(self.time[-1] - self.time[0])

    @property
    def rate_hz(self) -> float:
        """Mean sampling rate; NaN for a single row."""
        return (self.n_samples - 1) / self.duration_s if self.n_samples > 1 else float("nan")

    @property
    def force(self) -> Array:
        """Force (n, 3) in newton."""
        return self.wrench[:, :3]

    @property
    def moment(self) -> Array:
        """Moment (n, 3) in newton metre."""
        return self.wrench[:, 3:]
