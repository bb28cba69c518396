"""``dynid export``: files that simulators and controllers load."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.console import show, show_failure, show_json, show_note
from dynid.cli.options import AsJson

if TYPE_CHECKING:
    from dynid.run.export import Exported


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of an earlier identification.", show_default=False)],
    to: Annotated[str, typer.Option("--to", help="Formats, separated by commas: urdf, mjcf, sdf, c, json.")] = "urdf",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder to write into; default: the run's own.", show_default=False),
    ] = None,
    allow_inconsistent: Annotated[
        bool, typer.Option("--allow-inconsistent", help="Write links that are not physically consistent.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Write the identified model, reload it and compare its torque with what was identified.

    Proven is the torque of what the format holds; beside it stands, joint by joint, how far the whole torque differs, because urdf
    and sdf have no place for rotor inertia, and no simulator's joint one for offsets and friction other than damping and dry friction.

    urdf and mjcf edit the robot's own file where it came from one; sdf is written anew; c is inverse dynamics, inertia
    matrix, gravity, Coriolis and friction as C99 without dependencies; json holds all parameters, friction, base parameters
    and (in an npz beside it) their covariance. The body on a force/torque sensor is written as urdf, mjcf, json or in a vendor's form
    (franka, ur, kuka, abb, fanuc, yaskawa). Ends with 1 where a file, read again, does not have the identified torque; with 2 where a
    format cannot hold the model, the others being written.

    Example: [bold]dynid export run --to urdf,mjcf,c[/bold]
    """
    from dynid.cli.sensor import export_sensor_folder
    from dynid.errors import InconsistentModelError, InputError
    from dynid.run.export import export_run, known_formats
    from dynid.run.sensor_store import is_sensor_run
    from dynid.run.store import load_run

    if is_sensor_run(run):
        export_sensor_folder(run, output or run, to.split(","), allow_inconsistent, json)
        return
    known = load_run(run, with_samples=True)
    written: list[Exported] = []
    refusals: list[str] = []
    for format in known_formats(to.split(",")):
        try:
            written += export_run(known, output or run, [format], allow_inconsistent=allow_inconsistent)
        except (InputError, InconsistentModelError) as error:  # what one format cannot hold, another may
            refusals.append(f"{format} was not written: {error}")
    if not written:
        raise InputError("; ".join(refusals))
    if json:
        show_json(_as_dict(written) | {"refusals": refusals})
    else:
        for item in written:
            _show_written(item)
    for refusal in refusals:
        show_failure(refusal)
    if refusals:
        raise typer.Exit(2)
    if any(item.failed for item in written):
        raise typer.Exit(1)


def _as_dict(written: Sequence[Exported]) -> dict[str, Any]:
    """What ``dynid export --json`` prints."""
    return {
        "files": [str(file) for item in written for file in item.files],
        "parity": max((item.parity for item in written if not math.isnan(item.parity)), default=None),
        "parities": {item.format: item.parity for item in written},
        "total_torque": {item.format: [one.as_dict() for one in item.lacking] for item in written},
        "proven": all(item.proven for item in written),
        "notes": [note for item in written for note in item.notes],
    }


def _show_written(item: Exported) -> None:
    """The files of one format, how well they were proven and what the format has no place for."""
    for note in item.notes:
        if note == item.warning:
            show(f"warning: {note}")
        else:
            show_note(note)
    held = "rigid bodies" if item.format == "urdf" else "what the format holds"
    proof = "" if math.isnan(item.parity) else f": torque of {held} differs by {item.parity:.1e} (relative) after reloading"
    show(f"{', '.join(map(str, item.files))}{proof}")
    if item.lacks():
        show(f"{item.path.name}: {item.lacks()}")
