"""Rows of a body on a force/torque sensor: ``wrench = Y(motion) phi + offsets`` (Traversaro and others 2016, II)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.parameters import Column, Parameters, inertial_columns
from dynid.recording.recording import WrenchRecording
from dynid.regression.body import proper_body_regressor
from dynid.regression.channels import Channel, full_channel
from dynid.regression.source import CHUNK_ROWS, Chunk, Rows

AXES = ("fx", "fy", "fz", "nx", "ny", "nz")
BODY = "sensor body"
_GUESS = (1.0, 0.0, 0.0, 0.0, 2e-3, 0.0, 2e-3, 0.0, 0.0, 2e-3)
"""A kilogram of a few centimetres: the prior of what the data do not determine."""


@dataclass(frozen=True, eq=False)
class WrenchRows(Rows):
    """Rows of a force/torque sensor: one channel per axis, over the ten parameters of the body and six offsets of the sensor.

    Args:
        recording: wrench and motion of the sensor frame; angular velocity, proper linear acceleration and angular acceleration
            are all needed.
        offsets: whether constant offsets of the sensor are estimated too.

    Examples:
        >>> import dynid, numpy as np
        >>> t, (f, w, a, b) = np.arange(50) / 100.0, np.random.default_rng(0).normal(size=(4, 50, 3))
        >>> log = dynid.WrenchRecording(
        ...     t, np.hstack([f, f]), angular_velocity=w, linear_acceleration=a, angular_acceleration=b
        ... )
        >>> dynid.rows.factorise(dynid.rows.WrenchRows(log)).n_samples
        50
    """

    kind = "wrench"
    robot = None
    samples = ()
    timed = True
    recording: WrenchRecording
    offsets: bool = True

    def __post_init__(self) -> None:
        needed = ("angular_velocity", "linear_acceleration", "angular_acceleration")
        missing = [name.replace("_", " ") for name in needed if getattr(self.recording, name) is None]
        if missing:
            place = self.recording.source.path or "the force/torque recording"
            raise InputError(f"{place} lacks the {', '.join(missing)} of the sensor, expected all of its motion")

    @cached_property
    def parameters(self) -> Parameters:
        columns = inertial_columns(1, BODY)
        values = list(_GUESS)
        if self.offsets:
            columns += tuple(
                Column(f"{axis}_offset", 1, "actuator", "N" if axis[0] == "f" else "N m", BODY) for axis in AXES
            )
            values += [0.0] * 6
        return Parameters(columns, np.array(values))

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(full_channel(axis, len(self.parameters)) for axis in AXES)

    def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
        log = self.recording
        assert log.linear_acceleration is not None
        assert log.angular_velocity is not None
        assert log.angular_acceleration is not None
        step = chunk_rows or CHUNK_ROWS
        for start in range(0, log.n_samples, step):
            part = slice(start, start + step)
            Y = proper_body_regressor(
                log.linear_acceleration[part], log.angular_velocity[part], log.angular_acceleration[part]
            )
            yield Chunk([self._block(Y[:, axis], log.wrench[part, axis], axis) for axis in range(6)], log.time[part])

    def _block(self, Y: Array, wrench: Array, axis: int) -> Array:
        parts = [Y]
        if self.offsets:
            parts.append(np.broadcast_to(np.eye(6)[axis], (len(Y), 6)))
        return np.asfortranarray(np.hstack([*parts, wrench[:, None]]))
