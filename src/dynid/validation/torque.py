"""Prediction of torque on unseen samples: ``||tau - tau_hat|| / ||tau||``, against filtered and against raw torque."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.estimation.result import Estimate
from dynid.parameters import Parameters
from dynid.recording.parts import GAP
from dynid.recording.samples import Samples
from dynid.recording.steps.lowpass import EDGE_S
from dynid.recording.steps.zero_phase import filter_window
from dynid.regression.memory import with_memory
from dynid.regression.torque import inverse_dynamics
from dynid.robot.model import Robot


@dataclass(frozen=True, eq=False)
class TorqueError:
    """Errors of one set of samples, all joints together and each for itself."""

    relative_error: float
    relative_error_raw: float | None
    rmse: Array
    relative_error_per_joint: Array
    n_samples: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "relative_error": self.relative_error,
            "relative_error_raw": self.relative_error_raw,
            "rmse": self.rmse.tolist(),
            "relative_error_per_joint": self.relative_error_per_joint.tolist(),
            "n_samples": self.n_samples,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> TorqueError:
        """The inverse of :meth:`as_dict`; JSON writes what is no number as null."""
        raw = record["relative_error_raw"]
        return cls(
            relative_error=_number(record["relative_error"]),
            relative_error_raw=None if raw is None else float(raw),
            rmse=freeze([_number(value) for value in record["rmse"]]),
            relative_error_per_joint=freeze([_number(value) for value in record["relative_error_per_joint"]]),
            n_samples=int(record["n_samples"]),
        )


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


@dataclass(frozen=True, eq=False)
class Validation:
    """Prediction error over all logs together, and log by log.

    Args:
        total: errors over all logs.
        logs: errors of each log.
        joint_names: names of the joints, in the order of ``rmse``.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot()
        >>> found = dynid.validate(robot, robot.parameters, [dynid.demo_samples(), dynid.demo_samples(seed=1)])
        >>> isinstance(found, dynid.Validation), len(found.logs)
        (True, 2)
    """

    total: TorqueError
    logs: tuple[TorqueError, ...]
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

    def as_dict(self) -> dict[str, Any]:
        return {
            "total": self.total.as_dict(),
            "logs": [log.as_dict() for log in self.logs],
            "joint_names": list(self.joint_names),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Validation:
        logs = tuple(TorqueError.from_dict(log) for log in record["logs"])
        return cls(TorqueError.from_dict(record["total"]), logs, tuple(record["joint_names"]))


def predict(robot: Robot, parameters: Parameters, samples: Samples) -> Array:
    """Torque that the parameters give on the motion of the samples, ``(samples, joints)``."""
    model = robot.with_parameters(parameters)
    samples = with_memory(model, samples)
    return inverse_dynamics(
        model, samples.position, samples.velocity, samples.acceleration, samples.load, travel=samples.travel
    )


def validate(
    robot: Robot, estimate: Estimate | Parameters, samples: Samples | Sequence[Samples], band_hz: float | None = None
) -> Validation:
    """Prediction of one or several sets of samples, which should not be those identified on.

    Args:
        robot: the robot, with its effects.
        estimate: an estimate, or its parameters.
        samples: one set of samples, or several.
        band_hz: measured and predicted torque both pass a zero-phase Butterworth of order 4 at this frequency, and 0.3 s are
            dropped at both ends of every uninterrupted part: the error in a band. Without, torque is compared as it is.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot()
        >>> result = dynid.estimate(dynid.build_regression(robot, dynid.demo_samples()), dynid.reduce_to_base(robot))
        >>> dynid.validate(robot, result, dynid.demo_samples(seed=1)).relative_error < 1e-6
        True
    """
    sets = [samples] if isinstance(samples, Samples) else list(samples)
    if not sets:
        raise InputError("validation needs at least one set of samples, got none")
    parameters = estimate.standard if isinstance(estimate, Estimate) else estimate
    pairs = [band_limited(one, predict(robot, parameters, one), band_hz) for one in sets]
    logs = tuple(_error(one, prediction) for one, prediction in pairs)
    total = logs[0]
    if len(logs) > 1:
        total = _error(_joined([one for one, _ in pairs]), np.vstack([prediction for _, prediction in pairs]))
    return Validation(total, logs, robot.dof_names)


def band_limited(samples: Samples, prediction: Array, band_hz: float | None) -> tuple[Samples, Array]:
    """Samples and prediction as they are judged in a band; as they are without one."""
    if band_hz is None or samples.torque is None:
        return samples, prediction
    kept_rows, measured, predicted = [], [], []
    for part in _uninterrupted(samples.time):
        time = samples.time[part]
        period_s = float(time[-1] - time[0]) / max(len(time) - 1, 1)
        edge = int(np.ceil(EDGE_S / period_s - 1e-6)) if len(time) > 1 else 0
        both = np.hstack([samples.torque[part], prediction[part]])
        if len(time) <= 2 * edge + 15:
            continue  # nothing of so short a part is left
        if 2.0 * band_hz * period_s < 0.95:
            both = filter_window(both, 4, 2.0 * band_hz * period_s, True, True)
        n = samples.torque.shape[1]
        inner = slice(edge, len(time) - edge)
        kept_rows.append(np.arange(part.start, part.stop)[inner])
        measured.append(both[inner, :n])
        predicted.append(both[inner, n:])
    if not kept_rows:
        raise InputError(
            f"samples of {samples.duration_s:.3g} s are too short to judge torque in a band: {EDGE_S:g} s are dropped at both ends"
        )
    rows = np.concatenate(kept_rows)
    cut = {name: None if getattr(samples, name) is None else getattr(samples, name)[rows] for name in _ARRAYS}
    raw = samples.torque if samples.raw_torque is None else samples.raw_torque
    judged = Samples(**{**cut, "torque": np.concatenate(measured), "raw_torque": raw[rows]}, notes=samples.notes)
    return judged, np.concatenate(predicted)


_ARRAYS = ("time", "position", "velocity", "acceleration", "torque", "raw_torque", "load", "travel")


def _uninterrupted(time: Array) -> list[slice]:
    """Parts of a clock without a gap."""
    steps = np.diff(time)
    late = np.flatnonzero(steps > GAP * np.median(steps)) + 1 if len(steps) else np.zeros(0, dtype=int)
    bounds = [0, *late.tolist(), len(time)]
    return [slice(a, b) for a, b in pairwise(bounds)]


def _joined(sets: list[Samples]) -> Samples:
    """All rows together; times are only numbered, as they no longer matter."""

    def stack(name: str) -> Array | None:
        parts = [getattr(one, name) for one in sets]
        return None if any(part is None for part in parts) else np.vstack(parts)

    n = sum(len(one) for one in sets)
    position, velocity, acceleration = stack("position"), stack("velocity"), stack("acceleration")
    assert position is not None
    assert velocity is not None
    assert acceleration is not None
    return Samples(np.arange(n, dtype=np.float64), position, velocity, acceleration, stack("torque"), stack("raw_torque"))


def _error(samples: Samples, prediction: Array) -> TorqueError:
    if samples.torque is None:
        raise InputError("samples hold motion but no torque, so there is nothing to compare a prediction with")
    residual = samples.torque - prediction
    raw = None
    if samples.raw_torque is not None:
        raw = float(np.linalg.norm(samples.raw_torque - prediction) / np.linalg.norm(samples.raw_torque))
    norms = np.linalg.norm(samples.torque, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        per_joint = np.linalg.norm(residual, axis=0) / norms
    return TorqueError(
        relative_error=float(np.linalg.norm(residual) / np.linalg.norm(samples.torque)),
        relative_error_raw=raw,
        rmse=freeze(np.sqrt((residual**2).mean(axis=0))),
        relative_error_per_joint=freeze(per_joint),
        n_samples=len(samples),
    )
