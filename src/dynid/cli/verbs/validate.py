"""``dynid validate``: prediction on unseen logs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.console import percent, show, show_json, show_table
from dynid.cli.options import AsJson, LogFiles


def validate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of an earlier identification.", show_default=False)],
    logs: LogFiles,
    at_most: Annotated[
        float | None,
        typer.Option("--at-most", help="Exit with 1 if the relative error (filtered) exceeds this fraction."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Predict the torque of logs that the run has not seen, filtered as the run was.

    Example: [bold]dynid validate run unseen.csv --at-most 0.05[/bold]
    """
    from dynid.run import load_run, validate_run

    verdict = validate_run(load_run(run), logs)
    if json:
        show_json(
            {
                "relative_error": verdict.relative_error,
                "relative_error_raw": verdict.relative_error_raw,
                "rmse": verdict.rmse,
                "logs": [
                    {
                        "file": str(path),
                        "relative_error": log.relative_error,
                        "relative_error_raw": log.relative_error_raw,
                        "rmse": log.rmse,
                        "n_samples": log.n_samples,
                    }
                    for path, log in zip(logs, verdict.logs, strict=True)
                ],
            }
        )
    else:
        per_log = [
            (path.name, str(log.n_samples), percent(log.relative_error), percent(log.relative_error_raw))
            for path, log in zip(logs, verdict.logs, strict=True)
        ]
        show_table(("log", "samples", "error, filtered", "error, raw"), per_log)
        joints = [
            (name, f"{rmse:.4g}", percent(error))
            for name, rmse, error in zip(
                verdict.joint_names, verdict.rmse, verdict.total.relative_error_per_joint, strict=True
            )
        ]
        show_table(("joint", "rmse N m or N", "error, filtered"), joints)
        show(f"all: {percent(verdict.relative_error)} filtered, {percent(verdict.relative_error_raw)} raw")
    if at_most is not None and verdict.relative_error > at_most:
        raise typer.Exit(1)
