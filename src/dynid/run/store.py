"""Runs as plain files: ``run.json``, ``estimate.json`` with ``estimate.npz``, and the robot's description as it was read."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dynid.adapters.urls import is_url
from dynid.errors import InputError
from dynid.estimation.advice import Advice
from dynid.estimation.convex.verdict import Verdict
from dynid.estimation.friction.choice import FrictionChoice
from dynid.export.sidecar import DAMAGED, robot_from_sidecar
from dynid.export.sidecar import FORMAT as PARAMETERS
from dynid.files import read_json
from dynid.folders import changed_folder, complete
from dynid.recording.finding import DataCheck
from dynid.robot.model import Robot
from dynid.robot.read import read_robot
from dynid.run.bands import BandTrial
from dynid.run.estimate_files import read_estimate, write_estimate
from dynid.run.log_part import log_part
from dynid.run.options import Settings
from dynid.run.reason import RunVerdict
from dynid.run.record import Run
from dynid.run.reload import with_logs
from dynid.run.robot_files import copy_description, load_robot, robot_record
from dynid.run.rows import RowPlan
from dynid.run.runfile import write_run_file
from dynid.run.sealed import (
    FORMAT,
    RECORD,
    SENSOR,
    ChangedFileError,
    claim,
    hash_of,
    is_run,
    name_changed_files,
    read_record,
    write_record,
)
from dynid.run.signals import Filter
from dynid.run.tune import Trial
from dynid.validation.rows import RowError
from dynid.validation.torque import TorqueError, Validation

RUN_FILE = "dynid.toml"
"""The run as a run file, in its own folder."""
_ERRORS = {
    "identification": TorqueError.from_dict,
    "validation": Validation.from_dict,
    "row_error": RowError.from_dict,
    "row_validation": RowError.from_dict,
}
"""Errors of a run that are stored with it, and how each is read."""


def save_run(run: Run, folder: str | Path) -> Path:
    """Write a run into a folder, which is replaced as a whole; files in it that are not the run's stay.

    Args:
        run: the run.
        folder: made if missing; a folder that holds files and is no run is refused.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear"))
        >>> dynid.save_run(run, "run").name
        'run'
    """
    target = Path(folder)
    claim(target)
    with changed_folder(target) as change:
        clear_run(change.stage)
        write_run(run, change.stage, target)
    return target


def clear_run(folder: Path) -> None:
    """Take away the files of an earlier run; those that were changed since are the user's own and stay."""
    if is_run(folder):
        try:
            hashes = read_record(folder)["files"]
        except InputError:  # of another version, or damaged: nothing is known of its files
            hashes = {}
        for name, digest in hashes.items():
            path = folder / name
            if path.is_file() and hash_of(path) == digest:
                path.unlink()
        (folder / RECORD).unlink()


def write_run(run: Run, folder: Path, target: Path) -> None:
    """The files of a run into ``folder``, which will be named ``target``."""
    description = copy_description(run.robot, folder)
    record = {
        "format": FORMAT,
        "settings": run.settings.as_dict(),
        "robot": robot_record(run.robot, description),
        "logs": logs_record(run.logs),
        "validation_logs": logs_record(run.validation_logs),
        "filter": None if run.filter is None else run.filter.as_dict(),
        "filter_trials": [trial.filter.as_dict() | {"error": trial.error} for trial in run.trials],
        "rows": run.rows.as_dict(),
        "errors": {name: None if (found := getattr(run, name)) is None else found.as_dict() for name in _ERRORS},
        "checks": [check.as_dict() for check in run.checks],
        "command": run.command(str(target / RUN_FILE)),
        "comparisons": [dict(item) for item in run.comparisons],
        "versions": versions(),
        "result": run.summary(),
    }
    if description is not None:
        write_run_file(folder / RUN_FILE, run.robot.source.path, [path for path, _ in run.logs], run.settings)
    files = write_estimate(run.estimate, folder)
    own = [name for name in (description, RUN_FILE if description else None, *files) if name is not None]
    write_record(folder, record, own)


def load_run(folder: str | Path, *, with_samples: bool = False) -> Run:
    """A run from its folder, complete but for its samples.

    Args:
        folder: as written by :func:`save_run`.
        with_samples: make the samples again from the logs; where a log is gone or has changed the run stays without them.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear"))
        >>> _ = dynid.save_run(run, "run")
        >>> dynid.load_run("run").estimate.n_rows == run.estimate.n_rows
        True
    """
    source = Path(folder)
    complete(source)
    record = read_record(source)
    if record.get("kind") == SENSOR:
        raise InputError(
            f"run '{source}' is that of a body on a force/torque sensor, expected one of a robot; it is read by dynid report, "
            "validate and export"
        )
    try:
        run = _run_of(source, record)
    except ChangedFileError:
        if read_record(source)["seal"] == record["seal"]:
            raise
        return load_run(source, with_samples=with_samples)  # somebody replaced the run while it was read
    name_changed_files(source, record)
    return with_logs(run) if with_samples else run


def logs_record(logs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """What a run keeps of its logs: where each was, and its hash."""
    return [{"path": path, "sha256": digest} for path, digest in logs]


def recorded_logs(record: Iterable[Mapping[str, Any]], source: Path) -> tuple[tuple[str, str], ...]:
    """The logs of a record, where they are now."""
    return tuple((_found_log(item["path"], source), item["sha256"]) for item in record)


def _found_log(log: str, source: Path) -> str:
    """Where a log of the run is now: as it was named, or beside the run folder where the run is loaded from elsewhere."""
    if is_url(log):
        return log
    beside = source.resolve().parent / log
    return str(beside) if not _is_there(log) and _is_there(beside) else log


def _is_there(log: str | Path) -> bool:
    try:
        return log_part(log).path.exists()
    except OSError:  # a name that no file can have
        return False


def _run_of(source: Path, record: Mapping[str, Any]) -> Run:
    try:
        settings = Settings.from_dict(record["settings"])
        robot = load_robot(source, record["robot"], record, settings)
        result = read_estimate(source, record, robot.parameters)
        errors: dict[str, Any] = {
            name: None if (item := record["errors"][name]) is None else read(item) for name, read in _ERRORS.items()
        }
        model, verdict = record["result"].get("friction_model"), record["result"].get("feasibility")
        told = record["result"].get("verdict")
        return Run(
            settings=settings,
            robot=robot,
            estimate=result,
            filter=None if record["filter"] is None else Filter(**record["filter"]),
            rows=RowPlan.from_dict(record["rows"]),
            logs=recorded_logs(record["logs"], source),
            validation_logs=recorded_logs(record["validation_logs"], source),
            friction=None if model is None else FrictionChoice.from_dict(robot, model),
            feasibility=None if verdict is None else Verdict.from_dict(verdict),
            verdict=None if told is None else RunVerdict.from_dict(told),
            advice=tuple(Advice.from_dict(item) for item in record["result"].get("advice", ())),
            checks=tuple(DataCheck.from_dict(item) for item in record["checks"]),
            comparisons=tuple(record["comparisons"]),
            trials=tuple(_trial(item) for item in record["filter_trials"]),
            notes=tuple(record["result"]["notes"]),
            seconds=float(record["result"]["seconds"]),
            **errors,
        )
    except DAMAGED as error:
        raise InputError(f"run '{source}' is damaged: run.json lacks or misstates {error}") from None


def _trial(record: Mapping[str, Any]) -> Trial | BandTrial:
    options = {name: value for name, value in record.items() if name != "error"}
    made, error = Filter(**options), math.inf if record["error"] is None else float(record["error"])
    return Trial(made, error) if made.row_band_hz is None else BandTrial(made, error)


def read_model(path: str | Path) -> Robot:
    """A robot from its description, or with its parameters from a run folder, a file in it or a file of parameters."""
    place = Path(path)
    if place.is_dir():
        return load_run(place).identified
    if place.suffix.lower() not in (".json", ".npz"):
        return read_robot(place, "none")
    if place.name in ("run.json", "estimate.json", "estimate.npz") and (place.parent / "run.json").is_file():
        return load_run(place.parent).identified
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
