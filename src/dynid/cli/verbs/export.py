"""``dynid export``: files that simulators and controllers load.

``dynid report``: one self-contained page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.console import percent, say, show, show_failure, show_json
from dynid.cli.schema import AsJson, Verbose
from dynid.cli.screen import NO_END, Screen

if TYPE_CHECKING:
    from dynid.finding import FileGrade
    from dynid.io.robots.proof import Change
    from dynid.pipeline.model_files import Exported

MOST_CHANGES = 2
"""Changed attributes that the screen lists."""


def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of an earlier identification.", show_default=False)],
    to: Annotated[
        str, typer.Option("--to", help="Formats, separated by commas: urdf, mjcf, sdf, json, c, cpp, python, matlab, latex.")
    ] = "urdf",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder to write into; default: the run's own.", show_default=False),
    ] = None,
    allow_inconsistent: Annotated[
        bool, typer.Option("--allow-inconsistent", help="Write links that are not physically consistent.")
    ] = False,
    prefix: Annotated[
        str | None,
        typer.Option("--prefix", metavar="NAME_", help="Before names of functions; default: in C the robot's name."),
    ] = None,
    samples: Annotated[
        int, typer.Option("--samples", metavar="N", help="Write N consistent models besides, drawn from the uncertainty.")
    ] = 0,
    rotors_apart: Annotated[
        bool,
        typer.Option(
            "--rotors-apart", help="Keep rotor inertia out of the links of urdf and sdf: the simulator is given it apart."
        ),
    ] = False,
    verbose: Verbose = False,
    json: AsJson = False,
) -> None:
    """Write the identified model, reload it and compare its torque with what was identified.

    URDF and SDF cannot store rotor inertia: their links carry as much of it as they can, unless --rotors-apart. No simulator format
    stores offsets, or friction other than damping and dry friction. The error this causes is printed for each joint; the torque of what a
    format can store is compared after reloading.

    urdf, mjcf and sdf edit the robot's own file where it came from one, and list the attributes that changed; c, cpp, python and matlab are
    functions without dependencies (Python: NumPy alone): inverse and forward dynamics, inertia matrix, gravity, Coriolis vector and matrix
    (Christoffel) and friction; latex is a table of the base parameters; json holds all parameters, friction, base parameters and (in an npz
    beside it) their covariance. The body on a force/torque sensor is written as urdf, mjcf, json or in a vendor's form (franka, ur, kuka,
    abb, fanuc, yaskawa). Ends with 1 where a file, read again, does not have the identified torque; with 2 where a format cannot hold the
    model, the others being written.

    Example: [bold]dynid export run --to urdf,mjcf,c[/bold]
    """
    from dataclasses import asdict

    from dynid.io.robots.proof import changes_of
    from dynid.pipeline.export import export_models
    from dynid.pipeline.folder import load_result

    known = load_result(run, with_samples=True)
    refusals: list[str] = []
    options: dict[str, Any] = {"allow_inconsistent": allow_inconsistent, "prefix": prefix, "samples": samples}
    options["rotors_apart"] = rotors_apart
    written = export_models(known, output or run, to.split(","), **options, refusals=refusals)
    own = ("urdf", "mjcf", known.robot.source.format)
    changes = {item.path.name: changes_of(known.robot, item.path) for item in written if item.format in own}
    if json:
        listed = {name: [asdict(one) for one in found] for name, found in changes.items()}
        show_json(_as_dict(written) | {"changes": listed, "refusals": refusals})
    else:
        graded = () if known.verdict is None or rotors_apart else known.verdict.files
        _show_written(written, changes, known.robot.source.path, verbose, {one.format: one for one in graded})
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


def _show_written(
    written: Sequence[Exported],
    changes: Mapping[str, Sequence[Change]],
    source: str,
    verbose: bool,
    graded: Mapping[str, FileGrade],
) -> None:
    """A line for each format: how well its files were proven and what it leaves out of the torque; then changes and notes.

    ``graded``: the figures of the run's verdict on simulator files, which are those that are shown wherever there are any.
    """
    screen = Screen(verbose)
    head = (
        ("unseen error", "worst joint loses, of its torque", "ready")
        if graded
        else ("left out, random states", "worst joint")
    )
    rows = [(*_proof(item), *(_graded(item, graded) if graded else _left_out(item))) for item in written]
    screen.table(("file", "reload error", *head), rows, text=(0, 3, 4), most=len(written))
    for item in written if verbose else ():
        if item.lacks():
            screen.line(f"{item.path.name}: {item.lacks()}")
    for name, found in changes.items():
        for line in _changed(name, source, found, NO_END if verbose else MOST_CHANGES):
            screen.line(line)
    screen.findings(("warning", item.warning, "") for item in written if item.warning)
    for note in dict.fromkeys(note for item in written for note in item.notes if note != item.warning):
        screen.remark(note)
    screen.last(f"written to {', '.join(dict.fromkeys(str(item.path.parent) for item in written))}")
    screen.show()


def _proof(item: Exported) -> tuple[str, str]:
    """Files of one format, and their error after reloading."""
    proof = "-" if math.isnan(item.parity) else f"{item.parity:.0e}"
    return " and ".join([item.path.name, *(file.suffix for file in item.companions)]), proof


def _graded(item: Exported, graded: Mapping[str, FileGrade]) -> tuple[str, str, str]:
    """What the run's verdict says of a format; one that it does not judge holds everything."""
    one = graded.get(item.format)
    if one is None:
        return "as the run", "-", "-"
    return percent(one.unseen), f"{one.worst.name} {percent(one.worst.loss)}", "yes" if one.ready else "NO"


def _left_out(item: Exported) -> tuple[str, str]:
    """The part of the torque left out over random states, and the joint that lacks most."""
    worst = max(item.lacking, key=lambda one: one.relative, default=None)
    return percent(item.left_out), "-" if worst is None or not item.left_out else f"{worst.joint} {percent(worst.relative)}"


def _changed(name: str, source: str, changes: Sequence[Change], most: int) -> Iterator[str]:
    """What a file changed of the robot's own: how much, and the largest."""
    if not changes:
        return
    elements = len({one.element for one in changes})
    yield (
        f"{name}: {len(changes)} attribute{'s' * (len(changes) > 1)} of {elements} element{'s' * (elements > 1)} differ from "
        f"'{Path(source).name}'{', the largest' if len(changes) > most else ''}:"
    )
    for one in sorted(changes, key=lambda one: -one.size)[:most]:
        yield f"  {one}"


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of an earlier identification.", show_default=False)],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="File to write; default: report.html in the run.", show_default=False),
    ] = None,
    png: Annotated[bool, typer.Option("--png", help="Write the figures as PNG files beside the SVG files.")] = False,
    json: AsJson = False,
) -> None:
    """Write the report of a run again, from its files and, if they still exist, its logs.

    Example: [bold]dynid report run[/bold]
    """
    from dynid.pipeline.folder import load_result
    from dynid.pipeline.model_files import read_exports
    from dynid.pipeline.report import report_result

    known = load_result(run, with_samples=True)
    if known.body is not None and not known.body.samples:
        say("the logs of this run are missing or have changed: the wrench is left out")
    if known.filter is not None and not (known.samples or known.unseen):
        say("the logs of this run are missing or have changed: torque, excitation and residuals are left out")
    path = report_result(known, output or run / "report.html", exported=read_exports(run), png=png)
    if json:
        show_json({"files": [str(path)]})
    else:
        show(f"written to {path}")
