"""Repair from file to file."""

from __future__ import annotations

from pathlib import Path

from dynid.errors import InputError
from dynid.estimation.repair import Repair, repair
from dynid.export.mjcf import write_mjcf
from dynid.export.urdf import write_urdf
from dynid.run.store import read_model


def repair_model(model: str | Path, output: str | Path) -> tuple[Repair, tuple[str, ...]]:
    """Write the nearest consistent model of a description or run as URDF or MJCF, by the suffix of ``output``."""
    target = Path(output)
    writers = {".urdf": write_urdf, ".xml": write_mjcf}
    if target.suffix.lower() not in writers:
        raise InputError(f"'{target}' ends in '{target.suffix}', expected .urdf or .xml for the repaired model")
    result = repair(read_model(model))
    written = writers[target.suffix.lower()](result.robot, target, allow_inconsistent=not result.feasible_after)
    return result, (*result.notes, *written.notes)
