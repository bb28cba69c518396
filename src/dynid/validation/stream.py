"""Prediction of torque while samples go by: the errors of :mod:`dynid.validation.torque` in memory that does not grow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.estimation.result import Estimate
from dynid.parameters import Parameters
from dynid.recording.parts import uninterrupted_parts
from dynid.recording.samples import OwnSamples, Samples, SampleStream
from dynid.recording.signals import Signals, Tally
from dynid.recording.steps.lowpass import EDGE_S
from dynid.recording.steps.step import Extent, LocalStep, RowwiseStep
from dynid.recording.steps.zero_phase import filter_window, memory_rows
from dynid.regression.memory import pieces_with_memory
from dynid.regression.torque import inverse_dynamics
from dynid.robot.model import Robot
from dynid.validation.torque import TorqueError, Validation

_ORDER, _WIDEST, _LEAST_ROWS = 4, 0.95, 15  # as for samples in memory


@dataclass(frozen=True, eq=False)
class MotionRange:
    """How far and how fast joints moved in all samples together."""

    lowest: Array
    highest: Array
    slowest: Array
    fastest: Array
    """Velocities, with their sign."""

    @classmethod
    def of(cls, samples: Samples) -> MotionRange:
        """Of one set of samples."""
        q, v = samples.position, samples.velocity
        return cls(q.min(axis=0), q.max(axis=0), v.min(axis=0), v.max(axis=0))

    def __or__(self, other: MotionRange) -> MotionRange:
        return MotionRange(
            np.minimum(self.lowest, other.lowest),
            np.maximum(self.highest, other.highest),
            np.minimum(self.slowest, other.slowest),
            np.maximum(self.fastest, other.fastest),
        )


@dataclass(frozen=True, eq=False)
class Squares:
    """Sums over rows, from which every error follows; those of several logs add up."""

    residual: Array
    torque: Array
    raw_residual: float
    raw_torque: float
    n: int
    motion: MotionRange

    def __add__(self, other: Squares) -> Squares:
        return Squares(
            self.residual + other.residual,
            self.torque + other.torque,
            self.raw_residual + other.raw_residual,
            self.raw_torque + other.raw_torque,
            self.n + other.n,
            self.motion | other.motion,
        )

    @property
    def error(self) -> TorqueError:
        with np.errstate(divide="ignore", invalid="ignore"):
            per_joint = np.sqrt(self.residual / self.torque)
            return TorqueError(
                relative_error=float(np.sqrt(self.residual.sum() / self.torque.sum())),
                relative_error_raw=float(np.sqrt(np.divide(self.raw_residual, self.raw_torque))),
                rmse=freeze(np.sqrt(self.residual / self.n)),
                relative_error_per_joint=freeze(per_joint),
                n_samples=self.n,
            )


def beyond_rows(band_hz: float | None, period_s: float) -> int:
    """Rows beyond its own that a partition needs so that the errors of its own rows are those of the whole log."""
    if band_hz is None:
        return 0
    fraction = 2.0 * band_hz * period_s
    edge = int(np.ceil(EDGE_S / period_s - 1e-6))
    return edge + _LEAST_ROWS + 1 + (0 if fraction >= _WIDEST else memory_rows(_ORDER, fraction))


def validate_streams(robot: Robot, found: Sequence[Squares]) -> tuple[Validation, MotionRange]:
    """The validation that the sums of several logs make, and how the joints moved in them."""
    if not found:
        raise InputError("validation needs at least one stream of samples, got none")
    total = found[0]
    for one in found[1:]:
        total = total + one
    return Validation(total.error, tuple(one.error for one in found), robot.dof_names), total.motion


@dataclass(frozen=True, eq=False)
class StreamErrors:
    """Sums of one log under an estimate: a function of its samples that can run anywhere."""

    robot: Robot
    parameters: Parameters
    band_hz: float | None = None

    @classmethod
    def of(cls, robot: Robot, estimate: Estimate | Parameters, band_hz: float | None) -> StreamErrors:
        return cls(robot, estimate.standard if isinstance(estimate, Estimate) else estimate, band_hz)

    def __call__(self, samples: Samples | SampleStream) -> Squares | None:
        """One pass over the samples of a log, or of a partition of one; None of a partition without a row of its own."""
        sums = _Sums(samples if isinstance(samples, OwnSamples) else None)
        for period_s, part in uninterrupted_parts(
            self._judged(samples, sums), lambda one, rows: one.rows(rows), _Judged.joined, even=False
        ):
            for piece in part if self.band_hz is None else self._in_band(period_s, part):
                sums.add(piece)
        if not sums.n and isinstance(samples, OwnSamples):
            return None
        return sums.found()

    def _judged(self, samples: Samples | SampleStream, sums: _Sums) -> Iterator[_Judged]:
        model = self.robot.with_parameters(self.parameters)
        for one in pieces_with_memory(model, samples):
            if one.torque is None:
                raise InputError("samples hold motion but no torque, so there is nothing to compare a prediction with")
            sums.moved(one)
            predicted = inverse_dynamics(model, one.position, one.velocity, one.acceleration, one.load, travel=one.travel)
            yield _Judged(one.time, one.torque, predicted, one.torque if one.raw_torque is None else one.raw_torque)

    def _in_band(self, period_s: float, part: Iterable[_Judged]) -> Iterator[_Judged]:
        """Measured and predicted torque behind the same zero-phase filter, without the ends of the part."""
        assert self.band_hz is not None
        edge = int(np.ceil(EDGE_S / period_s - 1e-6))
        tally, flow = Tally(), _Part(part, period_s)
        fraction = 2.0 * self.band_hz * period_s
        upstream: Any = flow if fraction >= _WIDEST else _Filtered(flow, _Both(fraction))
        for piece in _Inner(edge).over(upstream, tally):
            v = piece.values
            yield _Judged(piece.time, v["torque"], v["predicted"], v["raw"])


@dataclass(frozen=True, eq=False)
class _Judged:
    """Torque as measured, as predicted and as recorded."""

    time: Array
    torque: Array
    predicted: Array
    raw: Array

    def __len__(self) -> int:
        return len(self.time)

    def rows(self, part: slice) -> _Judged:
        return _Judged(self.time[part], self.torque[part], self.predicted[part], self.raw[part])

    def joined(self, other: _Judged) -> _Judged:
        names = ("time", "torque", "predicted", "raw")
        return _Judged(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names))


@dataclass(eq=False)
class _Sums:
    """What adds up while pieces go by."""

    part: OwnSamples | None = None
    n: int = 0
    columns: list[Array] = field(default_factory=list)
    raw: list[float] = field(default_factory=lambda: [0.0, 0.0])
    motion: MotionRange | None = None

    def moved(self, samples: Samples) -> None:
        if self.part is not None:
            samples = samples[self.part.own(samples.time)]
        if not len(samples):
            return
        own = MotionRange.of(samples)
        self.motion = own if self.motion is None else self.motion | own

    def add(self, piece: _Judged) -> None:
        if self.part is not None:
            piece = piece.rows(self.part.own(piece.time))
        if not len(piece):
            return
        squares = [((piece.torque - piece.predicted) ** 2).sum(axis=0), (piece.torque**2).sum(axis=0)]
        self.columns = squares if not self.columns else [a + b for a, b in zip(self.columns, squares, strict=True)]
        self.raw[0] += float(((piece.raw - piece.predicted) ** 2).sum())
        self.raw[1] += float((piece.raw**2).sum())
        self.n += len(piece)

    def found(self) -> Squares:
        if not self.n or self.motion is None:
            raise InputError(f"samples are too short to judge torque in a band: {EDGE_S:g} s are dropped at both ends")
        return Squares(self.columns[0], self.columns[1], self.raw[0], self.raw[1], self.n, self.motion)


@dataclass(frozen=True, eq=False)
class _Part:
    """One uninterrupted part as signals."""

    part: Iterable[_Judged]
    period_s: float

    def pieces(self, tally: Tally) -> Iterator[Signals]:
        row = 0
        for one in self.part:
            values = {"torque": one.torque, "predicted": one.predicted, "raw": one.raw}
            yield Signals(one.time, values, float(one.time[0]), row, period_s=self.period_s)
            row += len(one)


@dataclass(frozen=True, eq=False)
class _Filtered:
    """What leaves a step."""

    upstream: _Part
    step: LocalStep

    def pieces(self, tally: Tally) -> Iterator[Signals]:
        return self.step.over(self.upstream, tally)


@dataclass(frozen=True)
class _Both(RowwiseStep):
    """Zero-phase Butterworth on measured and predicted torque."""

    fraction: float

    def reach(self, head: Signals) -> Extent:
        return Extent(rows=memory_rows(_ORDER, self.fraction))

    def compute(self, window: Signals, starts: bool, ends: bool) -> dict[str, Array]:
        torque = window.values["torque"]
        if len(torque) <= _LEAST_ROWS and starts and ends:  # dropped behind
            return {}
        both = filter_window(np.hstack([torque, window.values["predicted"]]), _ORDER, self.fraction, starts, ends)
        return {"torque": both[:, : torque.shape[1]], "predicted": both[:, torque.shape[1] :]}


@dataclass(frozen=True)
class _Inner(LocalStep):
    """Rows far enough from both ends of a part; nothing of a short one."""

    edge: int

    def reach(self, head: Signals) -> Extent:
        return Extent(rows=self.edge + _LEAST_ROWS + 1)

    def apply(self, window: Signals, own: slice, starts: bool, ends: bool, tally: Tally) -> Signals:
        n = len(window)
        if starts and ends and n <= 2 * self.edge + _LEAST_ROWS:
            return window.cut(slice(0, 0))
        first = max(own.start, self.edge) if starts else own.start
        last = min(own.stop, n - self.edge) if ends else own.stop
        return window.cut(slice(first, max(first, last)))
