"""An estimate as two files: ``estimate.json`` with everything that has a name, ``estimate.npz`` with the matrices."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynid.estimation.outcome import Outcome
from dynid.estimation.result import Estimate
from dynid.files import json_object, read_arrays, write_atomically, write_json
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.run.sealed import read_file

_ARRAYS = ("K", "lift", "covariance", "independent")


def write_estimate(result: Estimate, folder: Path, stem: str = "estimate") -> tuple[str, str]:
    """Write an estimate as ``STEM.json`` and ``STEM.npz``, and name the two files."""
    arrays: dict[str, Any] = {"K": result.base.K, "lift": result.base.lift, "covariance": result.covariance}
    if result.base.independent is not None:
        arrays["independent"] = result.base.independent
    write_atomically(folder / f"{stem}.npz", lambda temporary: np.savez_compressed(temporary, **arrays))
    write_json(
        folder / f"{stem}.json",
        {
            "method": result.method,
            "outcome": result.outcome.name,
            "parameters": result.standard.as_dict(),
            "units": dict(zip(result.standard.names, result.standard.units, strict=True)),
            "base_values": dict(zip(result.base.names, result.base_values.tolist(), strict=True)),
            "origin": list(result.origin),
            "rank": result.rank,
            "condition_number": result.condition_number,
            "condition_number_scaled": result.condition_number_scaled,
            "channel_names": list(result.channel_names),
            "residual_rms": result.residual_rms,
            "relative_error": result.relative_error,
            "n_samples": result.n_samples,
            "n_rows": result.n_rows,
            "notes": list(result.notes),
            "details": dict(result.details),
        },
    )
    return f"{stem}.json", f"{stem}.npz"


def read_estimate(folder: Path, run: Mapping[str, Any], parameters: Parameters, stem: str = "estimate") -> Estimate:
    """The estimate that :func:`write_estimate` wrote; ``run`` is the record that vouches for its files."""
    text, numbers = f"{stem}.json", f"{stem}.npz"
    record = json_object(read_file(folder, run, text), folder / text)
    arrays = read_arrays(read_file(folder, run, numbers), folder / numbers, _ARRAYS)
    base = BaseReduction(parameters.names, arrays["K"], arrays["lift"], arrays.get("independent"))
    condition = record["condition_number"], record["condition_number_scaled"]
    unknown = math.inf if record["n_samples"] else math.nan  # JSON has neither
    return Estimate(
        method=record["method"],
        base=base,
        base_values=np.array([record["base_values"][name] for name in base.names]),
        covariance=arrays["covariance"],
        standard=parameters.updated(record["parameters"]),
        origin=tuple(record["origin"]),
        rank=int(record["rank"]),
        condition_number=unknown if condition[0] is None else condition[0],
        condition_number_scaled=unknown if condition[1] is None else condition[1],
        channel_names=tuple(record["channel_names"]),
        residual_rms=np.array(record["residual_rms"], dtype=float),
        relative_error=math.nan if record["relative_error"] is None else float(record["relative_error"]),
        n_samples=int(record["n_samples"]),
        n_rows=int(record["n_rows"]),
        outcome=Outcome[record["outcome"]],
        notes=tuple(record["notes"]),
        details=record["details"],
    )
