"""``dynid init``: a commented run file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.console import show, show_json
from dynid.cli.options import AsJson, LogFiles, RobotFile
from dynid.errors import InputError


def init(
    robot: RobotFile,
    logs: LogFiles,
    output: Annotated[Path, typer.Option("-o", "--output", help="Run file to write.")] = Path("dynid.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    json: AsJson = False,
) -> None:
    """Write a commented run file for this robot and log, every default in it; `dynid identify --config` reads it.

    Example: [bold]dynid init arm.urdf run.parquet[/bold]
    """
    from dynid.run import inspect_log, write_run_file

    if output.exists() and not force:
        raise InputError(f"'{output}' is there already; --force replaces it")
    for log in logs:
        inspect_log(log, robot)
    path = write_run_file(output, robot, list(logs))
    if json:
        show_json({"files": [str(path)]})
    else:
        show(f"written to {path}; run it with: dynid identify --config {path}")
