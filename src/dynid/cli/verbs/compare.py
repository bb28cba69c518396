"""``dynid compare``: every estimator on the same data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dynid.cli.console import Stages, percent, show, show_json, show_note, show_table
from dynid.cli.options import (
    AsJson,
    ConstraintsFile,
    OptionalLogFiles,
    OptionalRobotFile,
    UnseenLogs,
    constraints_table,
)
from dynid.cli.schema import takes_options
from dynid.errors import InputError
from dynid.run.options import Fit, Model, Reading, Rows, Sensor, Work


@takes_options(Model, Rows, Fit, Reading, Sensor, Work, without=("method", "keep_bodies", "coefficients"))
def compare(
    robot: OptionalRobotFile = None,
    logs: OptionalLogFiles = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", help="Run file with these options (see dynid init); flags take precedence.", show_default=False
        ),
    ] = None,
    methods: Annotated[
        str | None, typer.Option("--methods", help="Some methods, separated by commas; default: all.", show_default=False)
    ] = None,
    validate: UnseenLogs = None,
    constraints: ConstraintsFile = None,
    json: AsJson = False,
    given: dict[str, Any] | None = None,
) -> None:
    """Every estimator on the same rows: error on identification and validation data, physical consistency, time.

    Without unseen logs each log is split: the first 65 % identify, the rest validates.

    Example: [bold]dynid compare arm.urdf run.parquet --methods ols,wls,sdp[/bold]
    """
    from dynid.cli.sensor import compare_sensor_logs, robot_and_logs
    from dynid.estimation.methods.registry import METHODS
    from dynid.run.compare import compare as compare_methods
    from dynid.run.compare import compared_without
    from dynid.run.log_paths import log_paths
    from dynid.run.logs import SensorLogError
    from dynid.run.runfile import RunFile, read_run_file

    file = RunFile() if config is None else read_run_file(config)
    known = constraints_table(constraints)
    settings = file.settings({**(given or {}), **({"constraints": known} if known else {})})
    description, recordings = robot_and_logs(robot, logs, file)
    unseen = log_paths(validate or file.validate)
    named = None if methods is None else tuple(name.strip() for name in methods.split(","))
    if description is None and recordings:
        compare_sensor_logs(None, recordings, settings, unseen, named, json)
        return
    if description is None or not recordings:
        raise InputError("expected a robot and at least one log, as arguments or in the file of --config")
    chosen = METHODS if named is None else named
    try:
        with Stages(quiet=json) as stages:
            run, found = compare_methods(
                description, recordings, settings, validate_on=unseen, methods=chosen, tell=stages.tell
            )
    except SensorLogError:
        compare_sensor_logs(description, recordings, settings, unseen, named, json)
        return
    if json:
        filtered = None if run.filter is None else run.filter.describe()
        show_json({"methods": [one.as_dict() for one in found], "filter": filtered, "rows": run.rows.as_dict()})
        return
    rows = [(one.method, percent(one.identification), percent(one.validation), *one.row) for one in found]
    header = ("method", "error, known", "error, unseen", "links consistent", "base values", "seconds", "outcome")
    show_table(header, rows, text=(0, 3, 4, 6))
    for one in found:
        if one.sentence:
            show(f"{one.method}: {one.sentence}")
    less = compared_without(chosen, settings)
    if less:
        show_note(less)
    if run.filter is not None:
        show(f"errors against filtered torque; {run.filter.describe()}")
