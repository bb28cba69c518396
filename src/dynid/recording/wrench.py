"""A log of a force/torque sensor."""

from __future__ import annotations

from dataclasses import dataclass, field

from dynid.arrays import Array, matrix
from dynid.recording.checked import checked_clock, checked_joint_names
from dynid.recording.quantities import COLUMN_OF_BODY_MOTION
from dynid.recording.source import RecordingSource


@dataclass(frozen=True, eq=False)
class WrenchRecording:
    """A force/torque-sensor log: ``wrench`` (n, 6) = (force, moment) in the sensor frame, and how the sensor
    moved.

    The motion is that of the sensor body, (n, 3) each in its own frame, or that of the joints, (n, J). The
    linear acceleration is the proper one, ``a - g``, which an accelerometer at the sensor's origin shows.
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

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.time.size)

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
