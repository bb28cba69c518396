"""``dynid compare``: every estimator on the same data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.console import Stages, percent, show, show_json, show_note, show_table
from dynid.cli.job import Job, job_of
from dynid.cli.options import (
    AsJson,
    ConfigFile,
    ConstraintsFile,
    OptionalLogFiles,
    OptionalRobotFile,
    UnseenLogs,
)
from dynid.cli.schema import takes_options
from dynid.run.options import Fit, Model, Reading, Rows, Sensor, Work

if TYPE_CHECKING:
    pass


@takes_options(Model, Rows, Fit, Reading, Sensor, Work, without=("method", "keep_bodies", "coefficients"))
def compare(
    robot: OptionalRobotFile = None,
    logs: OptionalLogFiles = None,
    config: ConfigFile = None,
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
    from dynid.cli.sensor import compare_sensor_logs
    from dynid.run.logs import SensorLogError

    job = job_of(robot, logs, validate, config=config, constraints=constraints, given=given)
    named = None if methods is None else tuple(name.strip() for name in methods.split(","))
    if job.of_sensor_alone:
        compare_sensor_logs(job, named, json)
        return
    try:
        _compare_on_robot(job, named, json)
    except SensorLogError:  # the joints of the robot move a sensor
        compare_sensor_logs(job, named, json)


def _compare_on_robot(job: Job, methods: Sequence[str] | None, json: bool) -> None:
    """The methods on logs of joint torque."""
    from dynid.estimation.methods.registry import METHODS
    from dynid.run.compare import compare as compare_methods
    from dynid.run.compare import compared_without

    chosen, description = METHODS if methods is None else methods, job.described()
    with Stages(quiet=json) as stages:
        run, found = compare_methods(
            description, job.logs, job.settings, validate_on=job.unseen, methods=chosen, tell=stages.tell
        )
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
    less = compared_without(chosen, job.settings)
    if less:
        show_note(less)
    if run.filter is not None:
        show(f"errors against filtered torque; {run.filter.describe()}")
