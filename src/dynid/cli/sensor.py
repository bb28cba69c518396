"""The verbs of the main path on logs of a force/torque sensor: identify, validate, compare, report, export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from dynid.cli.console import Stages, percent, say, show, show_failure, show_json, show_table
from dynid.cli.verbs.payload import show_sensor
from dynid.errors import InputError
from dynid.run.options import Settings
from dynid.run.runfile import RunFile

DESCRIPTIONS = (".urdf", ".xml", ".mjcf", ".xacro", ".sdf", ".toml")


def robot_and_logs(robot: Path | None, logs: Sequence[str] | None, file: RunFile) -> tuple[Path | None, list[Path]]:
    """Robot and logs where the first word may be a log.

    The robot is then that of the run file; without one it is a log of a sensor whose own motion is logged, which needs no robot.
    """
    from dynid.run.log_paths import log_paths

    if robot is None or robot.suffix.lower() in DESCRIPTIONS or robot.suffix == "" or not robot.is_file():
        return robot or file.robot, log_paths(logs or file.logs)
    behind = [Path(word) for word in logs or () if Path(word).suffix.lower() in DESCRIPTIONS]
    if behind:
        raise InputError(
            f"'{robot}' is no robot description, and '{behind[0]}' is no log: the robot comes first, then the logs"
        )
    return file.robot, [robot, *log_paths(logs or ())]


def identify_sensor_logs(
    robot: Path | None,
    logs: Sequence[Path],
    settings: Settings,
    unseen: Sequence[Path],
    target: Path,
    formats: Sequence[str],
    at_most: float | None,
    json: bool,
) -> None:
    """``dynid identify`` of sensor logs."""
    from dynid.publish.publish import reserved
    from dynid.publish.sensor import body_formats, publish_sensor_run
    from dynid.run.sensor_run import identify_sensor

    wanted = body_formats(formats)
    with reserved(target), Stages(quiet=json) as stages:
        run = identify_sensor(robot, logs, settings, validate_on=unseen, tell=stages.tell)
        files, refusals = publish_sensor_run(run, target, formats=wanted, tell=stages.tell)
    if json:
        show_json(run.summary() | {"files": [str(path) for path in files], "refusals": list(refusals), "at_most": at_most})
    else:
        show_sensor(run.found)
        own, unseen_error = run.identification[run.method], run.validation.get(run.method)
        show(
            f"wrench error on the identification set: {percent(own.relative_error)} filtered, {percent(own.relative_error_raw)} raw"
        )
        if unseen_error is not None:
            filtered, raw = percent(unseen_error.relative_error), percent(unseen_error.relative_error_raw)
            show(f"wrench error on unseen data: {filtered} filtered, {raw} raw")
        for refusal in refusals:
            show(f"note: {refusal}")
        for path in files:
            show(f"written: {path}")
        show(f"verdict: {run.verdict.sentence}")
    _refuse_above(run.judged_error, at_most)


def validate_sensor_logs(
    folder: Path, logs: Sequence[Path], at_most: float | None, given: dict[str, Any], json: bool
) -> None:
    """``dynid validate`` of a run of the body on a sensor."""
    from dynid.regression.wrench_rows import AXES
    from dynid.run.options import Reading
    from dynid.run.sensor_run import validate_sensor
    from dynid.run.sensor_store import load_sensor_run

    other = [name for name in given if name not in Reading.__dataclass_fields__]
    if other:
        raise InputError(
            f"setting '{other[0]}' was given, but sensor logs are filtered as their run was: leave it out, or identify again"
        )
    run = load_sensor_run(folder)
    whole, each = validate_sensor(run, logs, **given)
    if json:
        files = [{"file": str(path)} | one.as_dict() for path, one in zip(logs, each, strict=True)]
        show_json(whole.as_dict() | {"rows": {"kind": "wrench"}, "at_most": at_most, "logs": files})
    else:
        rows = [
            (path.name, str(one.n_samples), percent(one.relative_error), percent(one.relative_error_raw))
            for path, one in zip(logs, each, strict=True)
        ]
        show_table(("log", "samples", "error, filtered", "error, raw"), rows)
        axes = [
            (axis, f"{value:.4g}", "N" if axis[0] == "f" else "N m") for axis, value in zip(AXES, whole.rmse, strict=True)
        ]
        show_table(("axis", "rmse", "unit"), axes, text=(0, 2))
        show(f"all: {percent(whole.relative_error)} filtered, {percent(whole.relative_error_raw)} raw")
    _refuse_above(whole.relative_error, at_most)


def compare_sensor_logs(
    robot: Path | None,
    logs: Sequence[Path],
    settings: Settings,
    unseen: Sequence[Path],
    methods: Sequence[str] | None,
    json: bool,
) -> None:
    """``dynid compare`` of sensor logs."""
    from dataclasses import replace

    from dynid.errors import UnknownNameError
    from dynid.estimation.body import METHODS
    from dynid.run.sensor_run import identify_sensor

    for name in methods or ():
        if name not in METHODS:
            raise UnknownNameError("method", name, METHODS, "the body on a force/torque sensor")
    chosen = settings if settings.split is not None or unseen else replace(settings, split=0.65)
    with Stages(quiet=json) as stages:
        run = identify_sensor(robot, logs, chosen, validate_on=unseen, tell=stages.tell)
    found = [one for one in run.compared() if methods is None or one["method"] in methods]
    if json:
        show_json({"methods": found, "filter": run.found.filter.describe(), "rows": {"kind": "wrench"}})
        return
    rows = [
        (
            one["method"],
            percent(one["relative_error"]["identification"]),
            percent(one["relative_error"]["validation"]),
            "yes" if one["feasible"] else "no",
            f"{one['seconds']:.3f}",
            one["outcome"],
        )
        for one in found
    ]
    show_table(("method", "error, known", "error, unseen", "body consistent", "seconds", "outcome"), rows, text=(0, 3, 5))
    show(f"errors of the filtered wrench, every axis in units of its noise; {run.found.filter.describe()}")


def report_sensor_folder(folder: Path, output: Path | None, json: bool) -> None:
    """``dynid report`` of a run of the body on a sensor."""
    from dynid.report.sensor_report import report_sensor_run
    from dynid.run.sensor_store import load_sensor_run

    run = load_sensor_run(folder, with_samples=True)
    if not run.found.samples:
        say("the logs of this run are missing or have changed: the wrench is left out")
    path = report_sensor_run(run, output or folder / "report.html", folder)
    if json:
        show_json({"files": [str(path)]})
    else:
        show(f"written to {path}")


def export_sensor_folder(folder: Path, output: Path, formats: Sequence[str], allow_inconsistent: bool, json: bool) -> None:
    """``dynid export`` of a run of the body on a sensor."""
    from dynid.publish.sensor import export_sensor_run
    from dynid.run.sensor_store import load_sensor_run

    files = export_sensor_run(load_sensor_run(folder), output, formats, allow_inconsistent=allow_inconsistent)
    if json:
        show_json({"files": [str(path) for path in files], "parity": None})
    else:
        for path in files:
            show(f"written: {path}")


def _refuse_above(error: float, at_most: float | None) -> None:
    if at_most is not None and not error <= at_most:
        show_failure(f"the error is {percent(error)}, more than the {percent(at_most)} allowed")
        raise typer.Exit(1)
