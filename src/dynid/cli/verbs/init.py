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
    from dynid.run.inspect import inspect_log
    from dynid.run.log_paths import log_paths
    from dynid.run.runfile import write_run_file

    if output.exists() and not force:
        raise InputError(f"'{output}' exists already; --force replaces it")
    paths = log_paths(logs)
    amperes = [log.name for log in paths if inspect_log(log, robot)[0].torque is None]
    path = write_run_file(output, robot, paths)
    if json:
        show_json({"files": [str(path)]})
    else:
        if amperes:
            show(f"{amperes[0]} holds motor current: fill in drive_gains (N m per A, one per joint) in {path} first")
        show(f"written to {path}; run it with: dynid identify --config {path}")
