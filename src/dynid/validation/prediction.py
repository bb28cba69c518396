"""Prediction errors: ``||y - y_hat|| / ||y||`` of torque on samples, or of rows of any kind, all channels together and each for itself.

Errors follow from sums of squares that add up (:class:`ErrorSums`): over the pieces of a log, over its partitions, over logs. Samples in
memory are a log of one piece. In a band, measured and predicted torque pass the same zero-phase filter before they are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from dynid.arrays import Array, freeze
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.estimation.result import Estimate
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.factor import Regression
from dynid.regression.row_source import RowSource, as_logs
from dynid.signals.butterworth import filter_window, memory_rows
from dynid.signals.reversal_history import pieces_with_memory, with_memory
from dynid.signals.samples import OwnSamples, Samples, SampleStream
from dynid.signals.steps.filters import EDGE_S
from dynid.signals.steps.step import Extent, LocalStep, Signals, Tally, apart, side_by_side, uninterrupted_parts

_ORDER, _WIDEST, _LEAST_ROWS = 4, 0.95, 15
"""Order of the filter, the widest band that is filtered (a fraction of half the sampling rate), and rows that a part must have
beside its ends."""


@dataclass(frozen=True, eq=False)
class PredictionError:
    """Errors of one set of samples or rows, all channels together and each for itself.

    Args:
        relative_error: ``||y - y_hat|| / ||y||`` over all channels.
        relative_error_raw: the same against torque as recorded, before any filter; None where it is not known.
        rmse: root mean square error of each channel, in its own unit.
        relative_error_per_channel: that of each channel; channels of torque are joints.
        n_samples: number of samples; of rows, that of all channels together.
        kind: what the rows say, in one word; empty for torque on samples.
        channel_names: names of the channels of rows.
    """

    relative_error: float
    relative_error_raw: float | None
    rmse: Array
    relative_error_per_channel: Array
    n_samples: int
    kind: str = ""
    channel_names: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        if self.kind:
            return {
                "kind": self.kind,
                "channels": list(self.channel_names),
                "relative_error": self.relative_error,
                "relative_error_per_channel": self.relative_error_per_channel.tolist(),
                "rms": self.rmse.tolist(),
                "n_rows": self.n_samples,
            }
        return {
            "relative_error": self.relative_error,
            "relative_error_raw": self.relative_error_raw,
            "rmse": self.rmse.tolist(),
            "relative_error_per_joint": self.relative_error_per_channel.tolist(),
            "n_samples": self.n_samples,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> PredictionError:
        """The inverse of :meth:`as_dict`; JSON writes what is no number as null."""
        of_rows, raw = "kind" in record, record.get("relative_error_raw")
        each, rmse, n = ("channel", "rms", "n_rows") if of_rows else ("joint", "rmse", "n_samples")
        return cls(
            relative_error=float(np.array(record["relative_error"], dtype=np.float64)),
            relative_error_raw=None if raw is None else float(raw),
            rmse=freeze(np.array(record[rmse], dtype=np.float64)),
            relative_error_per_channel=freeze(np.array(record[f"relative_error_per_{each}"], dtype=np.float64)),
            n_samples=int(record[n]),
            kind=str(record.get("kind", "")),
            channel_names=tuple(record.get("channels", ())),
        )


@dataclass(frozen=True, eq=False)
class Validation:
    """Prediction error over all logs together, and log by log.

    Args:
        total: errors over all logs.
        logs: errors of each log.
        joint_names: names of the joints, in the order of ``rmse``.

    Examples:
        >>> import dynid
        >>> from dynid.validation.prediction import Validation
        >>> robot = dynid.demo_robot()
        >>> found = dynid.validate(robot, robot.parameters, [dynid.demo_samples(), dynid.demo_samples(seed=1)])
        >>> isinstance(found, Validation), len(found.logs)
        (True, 2)
    """

    total: PredictionError
    logs: tuple[PredictionError, ...]
    joint_names: tuple[str, ...]

    @property
    def relative_error(self) -> float:
        return self.total.relative_error

    @property
    def relative_error_raw(self) -> float | None:
        return self.total.relative_error_raw

    @property
    def rmse(self) -> Array:
        return self.total.rmse


def predict(model: Robot, samples: Samples) -> Array:
    """Torque that a robot with its parameters needs on the motion of the samples, ``(samples, joints)``."""
    return _predict(model, with_memory(model, samples))


def _predict(model: Robot, samples: Samples) -> Array:
    return inverse_dynamics(
        model, samples.position, samples.velocity, samples.acceleration, samples.load, travel=samples.travel
    )


def validate(
    robot: Robot,
    estimate: Estimate | Parameters,
    samples: Samples | SampleStream | Sequence[Samples | SampleStream],
    band_hz: float | None = None,
) -> Validation:
    """Prediction of one or several sets of samples, which should not be those identified on.

    Args:
        robot: the robot, with its effects.
        estimate: an estimate, or its parameters.
        samples: one set of samples or one stream of them, or several.
        band_hz: measured and predicted torque both pass a zero-phase Butterworth of order 4 at this frequency, and 0.3 s are
            dropped at both ends of every uninterrupted part: the error in a band. Without, torque is compared as it is.

    Returns:
        errors over all sets and of each: relative error (a fraction) and RMS error of each joint, N m or N.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot()
        >>> result = dynid.estimate(dynid.build_regression(robot, dynid.demo_samples()), dynid.reduce_to_base(robot))
        >>> dynid.validate(robot, result, dynid.demo_samples(seed=1)).relative_error < 1e-6
        True
    """
    logs = as_logs(samples)
    if not logs:
        raise InputError("validation needs at least one set of samples, got none")
    model = robot.with_parameters(estimate.standard if isinstance(estimate, Estimate) else estimate)
    return validation_of(robot, [log_sums(log, [sum_errors(model, band_hz, log)]) for log in logs])


def log_sums(log: Samples | SampleStream, parts: Iterable[ErrorSums | None]) -> ErrorSums:
    """The sums over the parts of a log; refused where no row of it is left to judge."""
    found = [sums for sums in parts if sums is not None]
    if not found:
        length = f" of {log.duration_s:.3g} s" if isinstance(log, Samples) else ""
        raise InputError(f"samples{length} are too short to judge torque in a band: {EDGE_S:g} s are dropped at both ends")
    return reduce(add, found)


def validation_of(robot: Robot, logs: Sequence[ErrorSums]) -> Validation:
    """The validation that the sums of several logs make."""
    return Validation(reduce(add, logs).error(), tuple(one.error() for one in logs), robot.dof_names)


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
class ErrorSums:
    """Sums of squares over rows, from which every error follows; those of pieces, partitions and logs add up.

    Args:
        residual: ``sum (y - y_hat)^2`` of each channel.
        measured: ``sum y^2`` of each channel.
        counts: rows of each channel.
        raw: the first two against torque as recorded, over all channels; None where it is not known.
        motion: how the joints moved, where the rows are samples of motion.
    """

    residual: Array
    measured: Array
    counts: Array
    raw: Array | None = None
    motion: MotionRange | None = None

    def __add__(self, other: ErrorSums) -> ErrorSums:
        return ErrorSums(
            self.residual + other.residual,
            self.measured + other.measured,
            self.counts + other.counts,
            None if self.raw is None or other.raw is None else self.raw + other.raw,
            self.motion if other.motion is None else other.motion if self.motion is None else self.motion | other.motion,
        )

    def error(self, kind: str = "", channel_names: tuple[str, ...] = ()) -> PredictionError:
        """The errors that follow: of torque on samples, or of rows where ``kind`` says of which."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return PredictionError(
                relative_error=float(np.sqrt(self.residual.sum() / self.measured.sum())),
                relative_error_raw=None if self.raw is None else float(np.sqrt(np.divide(*self.raw))),
                rmse=freeze(np.sqrt(self.residual / self.counts)),
                relative_error_per_channel=freeze(np.sqrt(self.residual / self.measured)),
                n_samples=int(self.counts.sum() if kind else self.counts.max()),
                kind=kind,
                channel_names=channel_names,
            )


def sum_errors(model: Robot, band_hz: float | None, samples: Samples | SampleStream) -> ErrorSums | None:
    """One pass over the samples of a log, or of a partition of one; None where no row is left to judge."""
    motion = list[MotionRange]()

    def own(time: Array) -> slice:
        return samples.own(time) if isinstance(samples, OwnSamples) else slice(0, len(time))

    def compare() -> Iterator[Signals]:
        for piece in pieces_with_memory(model, samples):
            if piece.torque is None:
                raise InputError("samples hold motion but no torque, so there is nothing to compare a prediction with")
            inside = piece[own(piece.time)]
            if len(inside):
                motion[:] = [reduce(MotionRange.__or__, [*motion, MotionRange.of(inside)])]
            yield _compared(piece, _predict(model, piece), band_hz)

    total: ErrorSums | None = None
    for piece in _limit_band(compare(), band_hz):
        part = piece.cut(own(piece.time))
        if not len(part):
            continue
        torque, predicted, raw = part.values["torque"], part.values["predicted"], part.values.get("raw")
        used = part.values.get("used", np.ones_like(torque))  # joints whose torque is not used are not counted
        found = ErrorSums(
            (used * (torque - predicted) ** 2).sum(axis=0),
            (used * torque**2).sum(axis=0),
            used.sum(axis=0),
            None if raw is None else np.array([(used * (raw - predicted) ** 2).sum(), (used * raw**2).sum()]),
        )
        total = found if total is None else total + found
    return None if total is None else replace(total, motion=motion[0])


def _compared(samples: Samples, predicted: Array, band_hz: float | None) -> Signals:
    """Torque as measured, as predicted and, where it is known or the filter takes it away, as recorded."""
    assert samples.torque is not None
    values = {"torque": samples.torque, "predicted": predicted}
    if samples.raw_torque is not None or band_hz is not None:
        values["raw"] = samples.torque if samples.raw_torque is None else samples.raw_torque
    if samples.weight is not None:
        values["used"] = np.broadcast_to(samples.weight.any(axis=0).astype(np.float64), samples.torque.shape)
    return Signals(samples.time, values, start_s=0.0)


def _limit_band(pieces: Iterable[Signals], band_hz: float | None) -> Iterator[Signals]:
    """Measured and predicted torque behind the same zero-phase filter, without the ends of every uninterrupted part."""
    if band_hz is None:
        yield from pieces
        return
    for period_s, part in uninterrupted_parts(pieces, even=False):
        step = _TorqueBand(2.0 * band_hz * period_s, int(np.ceil(EDGE_S / period_s - 1e-6)))
        yield from step.along(part, Tally())


@dataclass(frozen=True)
class _TorqueBand(LocalStep):
    """Zero-phase Butterworth on all but torque as recorded; ``edge`` rows are dropped at both ends, and short parts as a whole.

    ``fraction`` is the cut-off as a fraction of half the sampling rate.
    """

    fraction: float
    edge: int

    def reach(self, head: Signals) -> Extent:
        remembered = 0 if self.fraction >= _WIDEST else memory_rows(_ORDER, self.fraction)
        return Extent(rows=max(remembered, self.edge + _LEAST_ROWS + 1))

    def apply(self, window: Signals, own: slice, starts: bool, ends: bool, tally: Tally) -> Signals:
        n = len(window)
        if starts and ends and n <= 2 * self.edge + _LEAST_ROWS:
            return window.cut(slice(0, 0))
        if self.fraction < _WIDEST:
            names = ["torque", "predicted"]
            filtered = filter_window(side_by_side(window, names), _ORDER, self.fraction, starts, ends)
            window = window.updated(apart(filtered, window, names))
        first = max(own.start, self.edge) if starts else own.start
        last = min(own.stop, n - self.edge) if ends else own.stop
        return window.cut(slice(first, max(first, last)))


def band_limited(samples: Samples, prediction: Array, band_hz: float | None) -> tuple[Samples, Array]:
    """Samples and prediction as they are judged in a band; as they are without one."""
    if band_hz is None or samples.torque is None:
        return samples, prediction
    pieces = list(_limit_band([_compared(samples, prediction, band_hz)], band_hz))
    if not pieces:
        raise InputError(
            f"samples of {samples.duration_s:.3g} s are too short to judge torque in a band: {EDGE_S:g} s are dropped at both ends"
        )
    kept = reduce(Signals.joined, pieces)
    rows = np.searchsorted(samples.time, kept.time)
    return replace(samples[rows], torque=kept.values["torque"], raw_torque=kept.values["raw"]), kept.values["predicted"]


def beyond_rows(band_hz: float | None, period_s: float) -> int:
    """Rows beyond its own that a partition needs so that the errors of its own rows are those of the whole log."""
    if band_hz is None:
        return 0
    fraction = 2.0 * band_hz * period_s
    edge = int(np.ceil(EDGE_S / period_s - 1e-6))
    return edge + _LEAST_ROWS + 1 + (0 if fraction >= _WIDEST else memory_rows(_ORDER, fraction))


def row_error_of(regression: Regression, parameters: Estimate | Parameters, kind: str = "") -> PredictionError:
    """Residual of the rows of a regression, from its triangles alone."""
    values = _values(regression.parameters, parameters)
    matrices = [regression.channel_matrix(index) for index in range(len(regression.factors))]
    sums = ErrorSums(
        np.array([((matrix[:, -1] - matrix[:, :-1] @ values) ** 2).sum() for matrix in matrices]),
        regression.torque_norms**2,
        np.array([factor.n_rows for factor in regression.factors]),
    )
    return sums.error(kind or next((s.kind for s in regression.sources), "matrix"), regression.channel_names)


def row_error(source: RowSource, parameters: Estimate | Parameters) -> PredictionError:
    """Residual of the rows of a source that was not identified on."""
    values = _values(source.parameters, parameters)
    coefficients = [channel.values(values) for channel in source.channels]
    residual, measured, counts = (np.zeros(len(coefficients)) for _ in range(3))
    for chunk in source.passes():
        for j, (block, c) in enumerate(zip(chunk.blocks, coefficients, strict=True)):
            residual[j] += float(((block[:, -1] - block[:, :-1] @ c) ** 2).sum())
            measured[j] += float((block[:, -1] ** 2).sum())
            counts[j] += len(block)
    return ErrorSums(residual, measured, counts).error(source.kind, tuple(channel.name for channel in source.channels))


def _values(expected: Parameters, parameters: Estimate | Parameters) -> Array:
    given = parameters.standard if isinstance(parameters, Estimate) else parameters
    if given.names != expected.names:
        raise InputError(f"the rows have {len(expected)} parameters, the estimate has {len(given)}, or others by name")
    return given.values
