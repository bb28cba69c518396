"""``dynid report``: one self-contained page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.console import say, show, show_json
from dynid.cli.options import AsJson
from dynid.errors import InputError


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
    from dynid.cli.sensor import report_sensor_folder
    from dynid.report.run_report import report_run
    from dynid.run.export import read_exports
    from dynid.run.sensor_store import is_sensor_run
    from dynid.run.store import load_run

    if is_sensor_run(run):
        if png:
            raise InputError(
                f"--png writes the figures of a robot's run; '{run}' is that of a body on a force/torque sensor"
            )
        report_sensor_folder(run, output, json)
        return
    known = load_run(run, with_samples=True)
    if known.filter is not None and not (known.samples or known.unseen):
        say("the logs of this run are missing or have changed: torque, excitation and residuals are left out")
    path = report_run(known, output or run / "report.html", exported=read_exports(run), png=png)
    if json:
        show_json({"files": [str(path)]})
    else:
        show(f"written to {path}")
