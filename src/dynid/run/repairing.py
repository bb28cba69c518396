"""Repair from file to file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dynid.errors import InputError
from dynid.estimation.constraints.constraints import Constraint
from dynid.estimation.convex.repair import Repair, repair
from dynid.export.mjcf import write_mjcf
from dynid.export.sdf import write_sdf
from dynid.export.sidecar import write_sidecar
from dynid.export.urdf import write_urdf
from dynid.export.written import WrittenModel
from dynid.robot.links import links_of
from dynid.robot.model import Robot
from dynid.run.store import read_model

_WRITERS: Mapping[str, Callable[[Robot, Path, bool], WrittenModel]] = {
    ".urdf": lambda robot, path, allow: write_urdf(robot, path, allow_inconsistent=allow),
    ".xml": lambda robot, path, allow: write_mjcf(robot, path, allow_inconsistent=allow),
    ".sdf": lambda robot, path, allow: write_sdf(robot, path, allow_inconsistent=allow),
    ".json": lambda robot, path, _allow: write_sidecar(robot, path),
}


def repair_model(
    model: str | Path, output: str | Path, constraints: Sequence[Constraint] = ()
) -> tuple[Repair, tuple[str, ...]]:
    """Write the nearest consistent model of a description, run or file of parameters, under further constraints on its bodies.

    The suffix of ``output`` chooses the format: URDF, MJCF (.xml), SDF, or a file of parameters (.json).
    """
    target = Path(output)
    write = _WRITERS.get(target.suffix.lower())
    if write is None:
        raise InputError(
            f"a repaired model cannot be written as '{target}': expected .urdf, .xml (MJCF), .sdf or .json (parameters)"
        )
    if target.name in ("run.json", "estimate.json"):
        raise InputError(f"a repaired model cannot be written as '{target}': runs have files of that name, choose another")
    robot = read_model(model)
    links = links_of(robot)
    if not any(link.phi.any() for link in links):
        raise InputError(
            f"'{model}' has nothing to repair: none of its {len(links)} links has mass or inertia; state them first, or "
            "identify them"
        )
    result = repair(robot, constraints=constraints)
    written = write(result.robot, target, not result.feasible_after)
    return result, (*result.notes, *written.notes)
