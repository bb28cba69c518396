"""Runs of the body on a force/torque sensor as plain files, in the form of any run: ``run.json``, ``estimate.json`` and ``.npz``.

The estimates of the methods beside the answer are ``estimate_METHOD.json`` and ``.npz``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from dynid.arrays import freeze
from dynid.errors import InputError
from dynid.estimation.body import body_estimate, given_mass, known_mass
from dynid.export.sidecar import DAMAGED
from dynid.folders import changed_folder, complete
from dynid.recording.finding import Finding
from dynid.regression.wrench_rows import wrench_parameters
from dynid.robot.frames import frame_named
from dynid.robot.model import Robot
from dynid.run.estimate_files import read_estimate, write_estimate
from dynid.run.logs import unchanged
from dynid.run.options import Settings
from dynid.run.robot_files import copy_description, load_robot, robot_record
from dynid.run.runfile import write_run_file
from dynid.run.sealed import FORMAT, SENSOR, claim, is_run, name_changed_files, read_record, write_record
from dynid.run.sensor import SensorBody
from dynid.run.sensor_logs import first_parts, read_parts
from dynid.run.sensor_run import SensorRun
from dynid.run.sensor_settings import places, sensor_options
from dynid.run.sensor_signals import SensorFilter
from dynid.run.store import RUN_FILE, clear_run, logs_record, recorded_logs, versions
from dynid.run.wrench_error import WrenchError


def is_sensor_run(folder: str | Path) -> bool:
    """Whether a folder holds the run of a body on a sensor."""
    place = Path(folder)
    return is_run(place) and read_record(place).get("kind") == SENSOR


def save_sensor_run(run: SensorRun, folder: str | Path) -> Path:
    """Write a run into a folder, which is replaced as a whole.

    Args:
        run: the run.
        folder: made if missing; a folder that holds files and is no run is refused.
    """
    target = Path(folder)
    claim(target)
    with changed_folder(target) as change:
        clear_run(change.stage)
        write_sensor_run(run, change.stage, target)
    return target


def write_sensor_run(run: SensorRun, folder: Path, target: Path) -> None:
    """The files of a run into ``folder``, which will be named ``target``."""
    robot, found = run.robot, run.found
    description = None if robot is None else copy_description(robot, folder)
    record: dict[str, Any] = {
        "format": FORMAT,
        "kind": SENSOR,
        "settings": run.settings.as_dict(),
        "robot": None if robot is None else robot_record(robot, description),
        "logs": logs_record(run.logs),
        "validation_logs": logs_record(run.validation_logs),
        "filter": asdict(found.filter),
        "static": found.static,
        "gravity": None if found.gravity is None else found.gravity.tolist(),
        "findings": [finding.as_dict() for finding in found.findings],
        "answer": run.method,
        "methods": [{"method": body.method, "seconds": body.seconds} for body in found.bodies],
        "errors": {
            "identification": {name: one.as_dict() for name, one in run.identification.items()},
            "validation": {name: one.as_dict() for name, one in run.validation.items()},
        },
        "command": run.command(str(target / RUN_FILE)),
        "versions": versions(),
        "result": run.summary(),
    }
    own = [] if description is None else [description]
    for body in found.bodies:
        own += write_estimate(body.estimate, folder, _stem(body.method, run.method))
    if robot is not None and description is not None:
        write_run_file(folder / RUN_FILE, robot.source.path, [path for path, _ in run.logs], run.settings)
        own.append(RUN_FILE)
    write_record(folder, record, own)


def _stem(method: str, answer: str) -> str:
    return "estimate" if method == answer else f"estimate_{method}"


def load_sensor_run(folder: str | Path, *, with_samples: bool = False) -> SensorRun:
    """The run of a body on a sensor from its folder, complete but for its samples.

    Args:
        folder: as written by :func:`save_sensor_run`.
        with_samples: make the samples again from the logs; where a log is gone or has changed the run stays without them.
    """
    source = Path(folder)
    complete(source)
    record = read_record(source)
    if record.get("kind") != SENSOR:
        raise InputError(f"run '{source}' is that of a robot, expected one of a body on a force/torque sensor")
    try:
        run = _run_of(source, record)
    except DAMAGED as error:
        raise InputError(f"run '{source}' is damaged: run.json lacks or misstates {error}") from None
    name_changed_files(source, record)
    return with_sensor_logs(run) if with_samples else run


def _run_of(source: Path, record: Mapping[str, Any]) -> SensorRun:
    settings = Settings.from_dict(record["settings"])
    plain = replace(settings, effects=())
    robot = None if record["robot"] is None else load_robot(source, record["robot"], record, plain)
    found = _body(source, record, settings, robot)
    errors = {
        kind: {name: WrenchError.from_dict(one) for name, one in record["errors"][kind].items()}
        for kind in ("identification", "validation")
    }
    return SensorRun(
        settings,
        robot,
        found,
        errors["identification"],
        errors["validation"],
        recorded_logs(record["logs"], source),
        recorded_logs(record["validation_logs"], source),
        float(record["result"]["seconds"]),
    )


def _body(source: Path, record: Mapping[str, Any], settings: Settings, robot: Robot | None) -> SensorBody:
    parameters = wrench_parameters(True, settings.drift)
    answer = str(record["answer"])
    mass = known_mass(sensor_options(settings).constraints)
    bodies = []
    for item in record["methods"]:
        name = str(item["method"])
        body = body_estimate(name, read_estimate(source, record, parameters, _stem(name, answer)))
        if name == "sdp" and mass is not None:
            body = replace(body, covariance=given_mass(body.covariance))
        bodies.append(replace(body, seconds=float(item["seconds"])))
    place, _ = places(robot, settings)
    gravity = record["gravity"]
    return SensorBody(
        str(record["result"]["frame"]),
        tuple(bodies),
        SensorFilter(**record["filter"]),
        bool(record["static"]),
        None if gravity is None else freeze(gravity),
        tuple(Finding.from_dict(one) for one in record["findings"]),
        tuple(record["result"]["notes"]),
        (),
        None,
        None if robot is None else frame_named(robot, place),
        answer,
    )


def with_sensor_logs(run: SensorRun) -> SensorRun:
    """A loaded run with its samples made again from its logs; as it is where a log is gone or has changed."""
    if not all(unchanged(Path(path), digest) for path, digest in run.logs):
        return run
    recordings, robot = read_parts([Path(path) for path, _ in run.logs], run.robot, run.settings)
    if run.settings.split is not None:
        recordings = first_parts(recordings, run.settings.split)[0]
    _, imu = places(robot, run.settings)
    samples = tuple(run.found.samples_of(log, robot, imu) for log in recordings)
    return replace(run, found=replace(run.found, samples=samples))
