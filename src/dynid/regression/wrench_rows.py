"""Rows of a body on a force/torque sensor: ``wrench = Y(motion) phi + offsets`` (Traversaro and others 2016, II)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.regressors import proper_body_regressor
from dynid.errors import InputError
from dynid.model.parameters import Column, Parameters, inertial_columns
from dynid.regression.channels import Channel, full_channel
from dynid.regression.row_source import CHUNK_ROWS, Chunk, RowSource
from dynid.signals.recording import WrenchRecording
from dynid.signals.samples import WrenchSamples

AXES = ("fx", "fy", "fz", "nx", "ny", "nz")
BODY = "sensor body"
GUESS = (1.0, 0.0, 0.0, 0.0, 2e-3, 0.0, 2e-3, 0.0, 0.0, 2e-3)
"""A kilogram of a few centimetres: the prior of what the data do not determine."""


@dataclass(frozen=True, eq=False)
class WrenchRows(RowSource):
    """Rows of a force/torque sensor: one channel per axis, over the ten parameters of the body and six offsets of the sensor.

    Args:
        recording: wrench and motion of the sensor frame, as recorded or processed, of one log or several; angular velocity,
            proper linear acceleration and angular acceleration are all needed.
        offsets: whether constant offsets of the sensor are estimated too.
        drift: whether the offsets also change linearly in time, counted from the middle of each log.
        static: whether the body is taken to stand still in every row, so that only its weight is used: mass and first moments.

    Examples:
        >>> import dynid, numpy as np
        >>> from dynid.regression.wrench_rows import WrenchRows
        >>> from dynid.signals.recording import WrenchRecording
        >>> t, (f, w, a, b) = np.arange(50) / 100.0, np.random.default_rng(0).normal(size=(4, 50, 3))
        >>> log = WrenchRecording(t, np.hstack([f, f]), angular_velocity=w, linear_acceleration=a, angular_acceleration=b)
        >>> dynid.factorise(WrenchRows(log)).n_samples
        50
    """

    kind = "wrench"
    robot = None
    timed = True
    recording: WrenchRecording | WrenchSamples | Sequence[WrenchRecording | WrenchSamples]
    offsets: bool = True
    drift: bool = False
    static: bool = False

    def __post_init__(self) -> None:
        if not self.samples:
            raise InputError("rows of a force/torque sensor were asked for without a log, expected at least one")
        for log in self.samples:
            log.need_motion()

    @cached_property
    def samples(self) -> tuple[WrenchSamples, ...]:
        """The logs."""
        logs = (self.recording,) if isinstance(self.recording, (WrenchRecording, WrenchSamples)) else self.recording
        return tuple(_as_samples(log) for log in logs)

    @cached_property
    def parameters(self) -> Parameters:
        return wrench_parameters(self.offsets, self.drift)

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(full_channel(axis, len(self.parameters)) for axis in AXES)

    def passes(self, chunk_rows: int | None = None) -> Iterator[Chunk]:
        step = chunk_rows or CHUNK_ROWS
        for log in self.samples:
            middle = 0.5 * float(log.time[0] + log.time[-1])
            for start in range(0, len(log), step):
                part = log[start : start + step]
                Y, elapsed = self.regressor(part), part.time - middle
                yield Chunk([self._block(Y[:, i], elapsed, part.wrench[:, i], i) for i in range(6)], part.time)

    def regressor(self, log: WrenchSamples) -> Array:
        """``(n, 6, 10)`` of the body alone."""
        proper = log.proper
        assert log.angular_velocity is not None
        if self.static:
            still = np.zeros_like(proper.linear)
            return proper_body_regressor(proper.linear, still, still)
        return proper_body_regressor(proper.linear, log.angular_velocity, proper.angular)

    def by_log(self) -> tuple[WrenchRows, ...]:
        return tuple(replace(self, recording=log) for log in self.samples)

    def with_samples(self, samples: Sequence[Any]) -> WrenchRows:
        return replace(self, recording=tuple(samples))

    def _block(self, Y: Array, elapsed: Array, wrench: Array, axis: int) -> Array:
        parts = [Y]
        if self.offsets:
            one = np.broadcast_to(np.eye(6)[axis], (len(Y), 6))
            parts += [one, elapsed[:, None] * one] if self.drift else [one]
        return np.asfortranarray(np.hstack([*parts, wrench[:, None]]))


def wrench_parameters(offsets: bool = True, drift: bool = False) -> Parameters:
    """Ten parameters of the body, six offsets of the sensor and their drift, as far as they are estimated."""
    columns = inertial_columns(1, BODY)
    values = list(GUESS)
    for words, unit in (("offset", ""), ("drift", "/s")) if drift else (("offset", ""),):
        if not offsets:
            break
        columns += tuple(
            Column(f"{axis}_{words}", 1, "actuator", f"{'N' if axis[0] == 'f' else 'N m'}{unit}", BODY) for axis in AXES
        )
        values += [0.0] * 6
    return Parameters(columns, np.array(values))


def _as_samples(log: WrenchRecording | WrenchSamples) -> WrenchSamples:
    if isinstance(log, WrenchSamples):
        return log
    return WrenchSamples(
        log.time,
        log.wrench,
        log.wrench,
        log.angular_velocity,
        log.linear_acceleration,
        log.angular_acceleration,
        log.position,
        log.velocity,
        log.acceleration,
        log.source,
    )
