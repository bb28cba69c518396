"""The robot and the estimates of a run on disk.

The description lies beside the run as it was read, and the record says what became of it. An estimate is two files: ``estimate.json`` with
everything that has a name, ``estimate.npz`` with the matrices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.codec import from_record, to_record
from dynid.errors import InputError
from dynid.estimation.result import Estimate, Outcome
from dynid.files import json_object, read_arrays, write_atomically, write_bytes, write_json
from dynid.io.demo import demo_robot
from dynid.model.coupling import Coupling
from dynid.model.effects import effect_from_dict, effect_to_dict
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.pipeline.manifest import hash_of, read_file
from dynid.pipeline.options import Settings
from dynid.pipeline.robot_setup import described_robot
from dynid.regression.base import BaseReduction


def robot_record(robot: Robot, description: str | None) -> dict[str, Any]:
    """What a run keeps of its robot; ``description`` is the copy of its file in the run's folder, if it has one."""
    return {
        "name": robot.name,
        "file": description,
        "source": robot.source.path,
        "sha256": robot.source.sha256,
        "joints": robot.joint_names,
        "effects": [effect_to_dict(effect) for effect in robot.effects],
        "coupling": to_record(robot.coupling),
    }


def copy_description(robot: Robot, folder: Path) -> str | None:
    """The description's own bytes into the run folder, so that the run stands on its own; None for a built-in robot."""
    if not robot.source.path:
        return None
    source = Path(robot.source.path)
    try:
        content = source.read_bytes()
    except OSError as error:
        raise InputError(f"robot description '{source}' can no longer be read: {error.strerror or error}") from None
    name = f"robot{source.suffix}"
    write_bytes(folder / name, content)
    return name


def _description(folder: Path, record: Mapping[str, Any]) -> Path:
    """The robot's own file where it is still what it was, beside its meshes and included files; else the run's copy."""
    original = Path(record["source"])
    if original.is_file() and hash_of(original) == record["sha256"]:
        return original
    return folder / str(record["file"])


def load_robot(folder: Path, record: Mapping[str, Any], files: Mapping[str, Any], settings: Settings) -> Robot:
    """The robot of a run, from its own file or the run's copy; ``record`` is what the run keeps of it, ``files`` the whole record."""
    if record["file"] is not None:
        read_file(folder, files, str(record["file"]))  # a copy that was changed describes another robot
    built_in = record["file"] is None
    robot = described_robot(demo_robot(settings.effects or "none") if built_in else _description(folder, record), settings)
    if tuple(record["joints"]) != robot.joint_names:
        robot = robot.only(record["joints"])
    coupling = record.get("coupling")
    robot = replace(robot, coupling=None if coupling is None else from_record(Coupling, coupling))
    return robot.with_effects([effect_from_dict(effect) for effect in record["effects"]])


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
