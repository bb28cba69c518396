"""How well parameters explain rows of any kind: ``||y - W phi|| / ||y||``, all channels together and each for itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.estimation.result import Estimate
from dynid.parameters import Parameters
from dynid.regression.factor import Regression
from dynid.regression.source import RowSource


@dataclass(frozen=True, eq=False)
class RowError:
    """Residual of some rows."""

    kind: str
    channel_names: tuple[str, ...]
    relative_error: float
    relative_error_per_channel: Array
    rms: Array
    """Root mean square residual of each channel, in its own unit."""
    n_rows: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "channels": list(self.channel_names),
            "relative_error": self.relative_error,
            "relative_error_per_channel": self.relative_error_per_channel.tolist(),
            "rms": self.rms.tolist(),
            "n_rows": self.n_rows,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> RowError:
        return cls(
            str(record["kind"]),
            tuple(record["channels"]),
            _number(record["relative_error"]),
            freeze([_number(value) for value in record["relative_error_per_channel"]]),
            freeze([_number(value) for value in record["rms"]]),
            int(record["n_rows"]),
        )


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def row_error_of(regression: Regression, parameters: Estimate | Parameters, kind: str = "") -> RowError:
    """Residual of the rows of a regression, from its triangles alone."""
    values = _values(regression.parameters, parameters)
    left, size, counts = [], [], []
    for index, factor in enumerate(regression.factors):
        matrix = regression.channel_matrix(index)
        left.append(float(np.linalg.norm(matrix[:, -1] - matrix[:, :-1] @ values)))
        size.append(factor.torque_norm)
        counts.append(factor.n_rows)
    return _error(kind or next((s.kind for s in regression.sources), "matrix"), regression.channel_names, left, size, counts)


def row_error(source: RowSource, parameters: Estimate | Parameters) -> RowError:
    """Residual of the rows of a source that was not identified on."""
    values = _values(source.parameters, parameters)
    coefficients = [channel.values(values) for channel in source.channels]
    left, size, counts = (np.zeros(len(coefficients)) for _ in range(3))
    for chunk in source.passes():
        for j, (block, c) in enumerate(zip(chunk.blocks, coefficients, strict=True)):
            left[j] += float(((block[:, -1] - block[:, :-1] @ c) ** 2).sum())
            size[j] += float((block[:, -1] ** 2).sum())
            counts[j] += len(block)
    names = tuple(channel.name for channel in source.channels)
    return _error(source.kind, names, np.sqrt(left), np.sqrt(size), counts)


def _values(expected: Parameters, parameters: Estimate | Parameters) -> Array:
    given = parameters.standard if isinstance(parameters, Estimate) else parameters
    if given.names != expected.names:
        raise InputError(f"the rows have {len(expected)} parameters, the estimate has {len(given)}, or others by name")
    return given.values


def _error(kind: str, names: tuple[str, ...], left: Any, size: Any, counts: Any) -> RowError:
    left, size, counts = (np.asarray(values, dtype=np.float64) for values in (left, size, counts))
    with np.errstate(divide="ignore", invalid="ignore"):
        each = left / size
        whole = float(np.linalg.norm(left) / np.linalg.norm(size))
        rms = left / np.sqrt(counts)
    return RowError(kind, names, whole, freeze(each), freeze(rms), int(counts.sum()))
