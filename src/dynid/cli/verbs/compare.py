"""``dynid compare``: every estimator on the same data.

``dynid compare-runs``: two runs side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.console import Stages, percent, show, show_json, show_table
from dynid.cli.program import asked_run
from dynid.cli.schema import (
    AsJson,
    ConfigFile,
    ConstraintsFile,
    OptionalLogFiles,
    OptionalRobotFile,
    UnseenLogs,
    Verbose,
    takes_options,
)
from dynid.cli.screen import Row, Screen
from dynid.option_types import options_of
from dynid.pipeline.option_groups import ESTIMATION, MODEL, READING, ROWS, SENSOR, WORK
from dynid.pipeline.options import Settings

if TYPE_CHECKING:
    from dynid.pipeline.compare import MethodResult

MOST_LOGS, MOST_METHODS = 12, 5
"""Logs, and the best methods on each, that the screen lists; JSON has all."""


@takes_options(
    options_of(Settings, MODEL, ROWS, ESTIMATION, READING, SENSOR, WORK), without=("method", "fix_bodies", "coefficients")
)
def compare(
    robot: OptionalRobotFile = None,
    logs: OptionalLogFiles = None,
    config: ConfigFile = None,
    methods: Annotated[
        str | None, typer.Option("--methods", help="Some methods, separated by commas; default: all.", show_default=False)
    ] = None,
    validate: UnseenLogs = None,
    constraints: ConstraintsFile = None,
    verbose: Verbose = False,
    json: AsJson = False,
    given: dict[str, Any] | None = None,
) -> None:
    """Every estimator on the same rows: error on identification and validation data and on each log, physical consistency, time.

    Without unseen logs each log is split: the first 65 % identify, the rest validates.

    Example: [bold]dynid compare arm.urdf run.parquet --methods ols,wls,sdp[/bold]
    """
    from dynid.estimation.methods.registry import METHODS
    from dynid.pipeline.compare import compare as compare_methods
    from dynid.pipeline.compare import compared_without

    asked, settings = asked_run(robot, logs, validate, config=config, constraints=constraints, given=given)
    named = METHODS if methods is None else tuple(name.strip() for name in methods.split(","))
    with Stages(quiet=json) as stages:
        run, found = compare_methods(
            asked.robot, asked.logs, settings, validate_on=asked.validate, methods=named, tell=stages.tell
        )
    if json:
        rows = {"kind": run.rows.kind} if run.body is not None else run.rows.as_dict()
        filtered = run.filter_text or None
        show_json({"methods": [one.as_dict() for one in found], "filter": filtered, "rows": rows})
        return
    screen = Screen()
    errors = {one.method: one.validation for one in found if one.validation is not None and one.validation == one.validation}
    best = min(errors, key=errors.__getitem__, default=None)
    sure = [one.method for one in found if one.method in errors and one.estimate is not None and one.estimate.feasible]
    consistent = min(sure, key=errors.__getitem__, default=None)
    if best is not None:
        beside = (
            f"; with every link physically consistent: {consistent}, {percent(errors[consistent])}" if consistent else ""
        )
        screen.line(f"smallest unseen error: {best}, {percent(errors[best])}{beside if consistent != best else ''}", "title")
    shown: list[Row] = [
        (one.method, percent(one.identification), percent(one.validation), errors.get(one.method, 0.0), *one.row)
        for one in sorted(found, key=lambda one: errors.get(one.method, float("inf")))
    ]
    header = ("method", "known", "unseen", "", "links consistent", "base values", "seconds", "outcome")
    screen.table(header, shown, text=(0, 4, 5, 7), most=len(shown))
    _log_table(screen, sorted(found, key=lambda one: errors.get(one.method, float("inf"))))
    sentences = [f"{one.method}: {one.sentence}" for one in found if one.sentence]
    for one in found:
        if one.refusal and not verbose:
            screen.remark(f"{one.method}: {one.refusal}")
    less = "" if run.body is not None else compared_without(named, settings)
    if less:
        screen.line(f"note: {less}")
    if run.filter_text:
        screen.last(f"errors against filtered {run.measured}; {run.filter_text}")
    screen.show()
    for text in sentences if verbose else ():
        show(text)


def _log_table(screen: Screen, found: Sequence[MethodResult]) -> None:
    """Errors log by log, one column for each method, where there is more than one log."""
    known = [one for one in found if one.logs][:MOST_METHODS]
    names = list(dict.fromkeys((log["data"], log["log"]) for one in known for log in one.logs))
    if len({log for _, log in names}) < 2:
        return
    errors = {(one.method, log["data"], log["log"]): log["relative_error"] for one in known for log in one.logs}
    rows: list[Row] = [
        (Path(log).name, data, *(percent(errors.get((one.method, data, log))) for one in known)) for data, log in names
    ]
    screen.table(("log", "data", *(one.method for one in known)), rows, text=(0, 1), most=MOST_LOGS)


def compare_runs(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.", show_default=False)],
    second: Annotated[Path, typer.Argument(metavar="OTHER", help="Folder of another run.", show_default=False)],
    on: Annotated[
        list[Path] | None,
        typer.Option(
            "--on", metavar="LOG", help="Log that neither run was identified on, to predict; repeat it.", show_default=False
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show every value, not only those that differ.")] = False,
    json: AsJson = False,
) -> None:
    """Two runs side by side: what was done differently, which values differ beyond their uncertainty, and which run predicts
    the same log better.

    Example: [bold]dynid compare-runs monday tuesday --on unseen.parquet[/bold]
    """
    from dynid.pipeline.compare import compare_results as compared
    from dynid.pipeline.folder import load_robot_result

    found = compared(load_robot_result(first), load_robot_result(second), on or ())
    if json:
        show_json(found.as_dict())
        return
    if found.changes:
        show_table(("what", str(first), str(second)), list(found.changes), text=(0, 1, 2))
    else:
        show("both runs have the same robot, logs and settings")
    shown = found.values if every else found.differing
    if shown:
        rows = [
            (
                pair.name,
                _value(pair.first, pair.first_sigma),
                _value(pair.second, pair.second_sigma),
                "" if pair.distance is None else f"{pair.distance:+.1f}",
            )
            for pair in shown
        ]
        show_table(("base parameter", str(first), str(second), "difference / its sigma"), rows)
    show(found.sentence())
    if found.errors:
        errors = [(Path(log).name, percent(one), percent(other)) for log, one, other in found.errors]
        title = "error of predicted torque" + ("" if found.band_hz is None else f" in a band of {found.band_hz:g} Hz")
        show_table(("log", str(first), str(second)), errors, title)


def _value(value: float | None, sigma: float | None) -> str:
    if value is None:
        return "not a parameter"
    return f"{value:.4g} (not from the data)" if sigma is None else f"{value:.4g} +- {1.96 * sigma:.2g}"
