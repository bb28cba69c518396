"""How well the body on a sensor predicts the wrench of logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array, freeze
from dynid.estimation.body import BodyEstimate
from dynid.recording.wrench_samples import WrenchSamples
from dynid.regression.wrench_rows import WrenchRows
from dynid.run.sensor import SensorBody


@dataclass(frozen=True, eq=False)
class WrenchError:
    """How well a body predicts the wrench of some logs.

    Args:
        relative_error: ``||w - w_hat|| / ||w||`` of the filtered wrench, every axis in units of its noise.
        relative_error_raw: the same against the wrench as recorded; None where the samples do not have it.
        rmse: of the six axes, N and N m, filtered.
        n_samples: number of samples.
    """

    relative_error: float
    relative_error_raw: float | None
    rmse: Array
    n_samples: int

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        return {
            "relative_error": self.relative_error,
            "relative_error_raw": self.relative_error_raw,
            "rmse": self.rmse.tolist(),
            "n_samples": self.n_samples,
        }

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> WrenchError:
        """What :meth:`as_dict` gave."""
        raw = record["relative_error_raw"]
        return cls(
            float(record["relative_error"]),
            None if raw is None else float(raw),
            freeze([float(value) for value in record["rmse"]]),
            int(record["n_samples"]),
        )


def wrench_errors(found: SensorBody, samples: Sequence[WrenchSamples]) -> dict[str, WrenchError]:
    """How well the body of every method, with the offsets found, predicts the wrench."""
    values = found.best.estimate.standard.values
    source = WrenchRows(tuple(samples), len(values) > 10, len(values) > 16, found.static)
    blocks = _stacked(found.filter.rows(source))
    raw = None if any(one.raw_wrench is None for one in samples) else _raw(source)
    return {body.method: _error(body, blocks, raw, sum(map(len, samples))) for body in found.bodies}


def _stacked(rows: Any) -> list[Array]:
    return [np.concatenate(parts) for parts in zip(*(chunk.blocks for chunk in rows.passes()), strict=True)]


def _raw(source: WrenchRows) -> list[Array]:
    """The rows with the wrench as it was recorded."""
    parts = []
    for log in source.samples:
        assert log.raw_wrench is not None
        parts.append(replace(log, wrench=log.raw_wrench))
    return _stacked(source.with_samples(parts))


def _error(body: BodyEstimate, blocks: Sequence[Array], raw: Sequence[Array] | None, n: int) -> WrenchError:
    values = body.estimate.standard.values
    sigma = np.maximum(body.estimate.residual_rms, 1e-12 * max(float(body.estimate.residual_rms.max()), 1e-300))

    def relative(rows: Sequence[Array]) -> tuple[float, Array]:
        left = np.array([np.linalg.norm(block[:, -1] - block[:, :-1] @ values) for block in rows])
        size = np.array([np.linalg.norm(block[:, -1]) for block in rows])
        counts = np.array([max(len(block), 1) for block in rows])
        return float(np.linalg.norm(left / sigma) / max(float(np.linalg.norm(size / sigma)), 1e-300)), left / np.sqrt(counts)

    filtered, rmse = relative(blocks)
    return WrenchError(filtered, None if raw is None else relative(raw)[0], freeze(rmse), n)
