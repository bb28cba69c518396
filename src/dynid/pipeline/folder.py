"""Runs as plain files: ``run.json``, ``estimate.json`` with ``estimate.npz``, and the robot's description as it was read.

An estimate is two files: ``estimate.json`` with everything that has a name, ``estimate.npz`` with the matrices. The estimates
of a body on a force/torque sensor by methods beside the answer are ``estimate_METHOD.json`` and ``.npz``.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dynid.codec import read_fields, to_record
from dynid.errors import InputError
from dynid.estimation.friction.selection import FrictionChoice
from dynid.files import read_json
from dynid.folders import changed_folder, complete
from dynid.io.logs.paths import found_log
from dynid.io.robots.read import read_robot
from dynid.model.robot import Robot
from dynid.pipeline.manifest import (
    FORMAT,
    ChangedFileError,
    claim,
    clear_run,
    name_changed_files,
    read_record,
    write_record,
)
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.robot_json import DAMAGED, robot_from_sidecar
from dynid.pipeline.robot_json import FORMAT as PARAMETERS
from dynid.pipeline.run_file import write_run_file
from dynid.pipeline.sensor import current_record, read_body, stem_of
from dynid.pipeline.stored_model import (
    copy_description,
    load_robot,
    read_estimate,
    robot_record,
    write_estimate,
)
from dynid.pipeline.validate import with_logs

SENSOR = "sensor"
"""``kind`` in the record of a run of the body on a force/torque sensor; runs of robots have none."""
RUN_FILE = "dynid.toml"
"""The run as a run file, in its own folder."""
_ERRORS = ("identification", "validation", "row_error", "row_validation")
"""Errors of a run that are stored with it."""


def save_result(run: IdentificationResult, folder: str | Path) -> Path:
    """Write a run into a folder, which is replaced as a whole; files in it that are not the run's stay.

    Args:
        run: the run.
        folder: made if missing; a folder that holds files and is no run is refused.

    Examples:
        >>> import dynid
        >>> from dynid.pipeline.folder import save_result
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear"))
        >>> save_result(run, "run").name
        'run'
    """
    target = Path(folder)
    claim(target)
    with changed_folder(target) as change:
        clear_run(change.stage)
        write_record(change.stage, *write_numbers(run, change.stage, target))
    return target


def write_numbers(run: IdentificationResult, folder: Path, target: Path) -> tuple[dict[str, Any], list[str]]:
    """The estimate, the description and the run file into ``folder``, which will be named ``target``.

    Returns:
        the record of the run and the names of these files, for the manifest, which is written last.
    """
    description = copy_description(run.robot, folder)
    record: dict[str, Any] = {
        "format": FORMAT,
        "settings": run.settings.as_dict(),
        "robot": None if run.mover is None else robot_record(run.robot, description),
        "logs": logs_record(run.logs),
        "validation_logs": logs_record(run.validation_logs),
        "filter": to_record(run.filter),
        "filter_trials": [to_record(trial.filter) | {"error": trial.error} for trial in run.trials],
        "rows": run.rows.as_dict(),
        "errors": {name: to_record(getattr(run, name)) for name in _ERRORS},
        "checks": to_record(run.checks),
        "command": run.command(str(target / RUN_FILE)),
        "comparisons": [dict(item) for item in run.comparisons],
        "versions": versions(),
        "result": run.summary(),
    }
    own: list[str] = []
    if description is not None:
        write_run_file(folder / RUN_FILE, run.robot.source.path, [path for path, _ in run.logs], run.settings)
        own = [description, RUN_FILE]
    if run.body is not None:
        record |= {"kind": SENSOR} | run.body.record()
        for one in run.body.bodies:
            own += write_estimate(one.estimate, folder, stem_of(one.method, run.body.best.method))
    else:
        own += write_estimate(run.estimate, folder)
    return record, own


def load_result(folder: str | Path, *, with_samples: bool = False) -> IdentificationResult:
    """A run from its folder, complete but for its samples.

    Args:
        folder: as written by :func:`save_result`.
        with_samples: make the samples again from the logs; where a log is gone or has changed the run stays without them.

    Returns:
        the run; without samples it predicts, exports and reports as before.

    Examples:
        >>> import dynid
        >>> from dynid.pipeline.folder import save_result
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear"))
        >>> _ = save_result(run, "run")
        >>> dynid.load_result("run").estimate.n_rows == run.estimate.n_rows
        True
    """
    source = Path(folder)
    complete(source)
    record = read_record(source)
    try:
        run = _run_of(source, record)
    except ChangedFileError:
        if read_record(source)["seal"] == record["seal"]:
            raise
        return load_result(source, with_samples=with_samples)  # somebody replaced the run while it was read
    name_changed_files(source, record)
    return with_logs(run) if with_samples else run


def load_robot_result(folder: str | Path) -> IdentificationResult:
    """The run of a robot from its folder, without its samples; that of a body on a force/torque sensor is refused."""
    run = load_result(folder)
    if run.body is not None:
        raise InputError(
            f"run '{folder}' is that of a body on a force/torque sensor, expected one of a robot; it is read by dynid report, "
            "validate and export"
        )
    return run


def logs_record(logs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """What a run keeps of its logs: where each was, and its hash."""
    return [{"path": path, "sha256": digest} for path, digest in logs]


def _logs(record: Iterable[Mapping[str, Any]], source: Path) -> tuple[tuple[str, str], ...]:
    """The logs of a record, where they are now: as they were named, or beside the run folder."""
    return tuple((found_log(item["path"], source.resolve().parent), item["sha256"]) for item in record)


def _run_of(source: Path, stored: Mapping[str, Any]) -> IdentificationResult:
    try:
        of_body = stored.get("kind") == SENSOR
        record, body = (current_record(stored) if of_body else stored), None
        settings = Settings.from_dict(record["settings"])
        if of_body:
            plain = replace(settings, effects=())
            moved_by = None if record["robot"] is None else load_robot(source, record["robot"], record, plain)
            robot, body = read_body(record, settings, moved_by, partial(read_estimate, source, record))
        else:
            robot = load_robot(source, record["robot"], record, settings)
        result = read_estimate(source, record, robot.parameters) if body is None else body.best.estimate
        told = record["result"]
        model = told.get("friction_model")
        plain_fields = {
            **{name: record["errors"][name] for name in _ERRORS},
            "filter": None if of_body else record["filter"],
            "rows": record["rows"],
            "feasibility": None if of_body else told.get("feasibility"),
            "verdict": told.get("verdict"),
            "advice": told.get("advice", ()),
            "calibration": told.get("calibration"),
            "checks": record["checks"],
            "comparisons": record["comparisons"],
            "trials": [_trial(item) for item in record["filter_trials"]],
            "notes": told["notes"],
            "seconds": told["seconds"],
        }
        return IdentificationResult(
            settings=settings,
            robot=robot,
            estimate=result,
            logs=_logs(record["logs"], source),
            validation_logs=_logs(record["validation_logs"], source),
            friction_choice=None if model is None else FrictionChoice.from_dict(robot, model),
            body=body,
            **read_fields(IdentificationResult, plain_fields),
        )
    except DAMAGED as error:
        raise InputError(f"run '{source}' is damaged: run.json lacks or misstates {error}") from None


def _trial(record: Mapping[str, Any]) -> dict[str, Any]:
    """A filter that was tried, its error beside its own values."""
    options = {name: value for name, value in record.items() if name != "error"}
    return {"filter": options, "error": math.inf if record["error"] is None else record["error"]}


def read_model(path: str | Path) -> Robot:
    """A robot from its description, or with its parameters from a run folder, a file in it or a file of parameters."""
    place = Path(path)
    if place.is_dir():
        return load_robot_result(place).model
    if place.suffix.lower() not in (".json", ".npz"):
        return read_robot(place, "none")
    if place.name in ("run.json", "estimate.json", "estimate.npz") and (place.parent / "run.json").is_file():
        return load_robot_result(place.parent).model
    if not place.is_file():
        raise InputError(f"parameter file '{place}' does not exist")
    text = place.with_suffix(".json")  # the arrays alone name no joints
    if not text.is_file():
        raise InputError(f"'{place}' has no '{text.name}' beside it, which would name its joints and parameters")
    if read_json(text, "parameter file").get("format") != PARAMETERS:
        raise InputError(
            f"'{text}' is no file of parameters: expected one that 'dynid export RUN --to json' or 'dynid repair' "
            "wrote, or the estimate.json of a run with run.json beside it"
        )
    return robot_from_sidecar(text)


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    return dict(_versions())


@cache
def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("dynid", "numpy", "scipy", "numba", "pin"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "unknown"
    return found
