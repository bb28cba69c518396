"""Logs of a force/torque sensor on the path of an identification: what the options mean for them, and the errors of the body found.

The result is that of the body, with every method beside the one that was asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.codec import read_fields
from dynid.errors import InputError
from dynid.estimation.body import METHODS, body_estimate, given_mass
from dynid.model.frames import Frame, frame_named, last_body, sensor_frame
from dynid.model.joint import Joint
from dynid.model.poses import pose_from_numbers
from dynid.model.robot import Robot, make_robot
from dynid.option_types import flag_of, misplaced_options
from dynid.pipeline.log import Data, Logs
from dynid.pipeline.option_groups import WRENCH
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.row_plan import RowPlan
from dynid.pipeline.wrench import SensorBody, at_rest, identify_sensor_body
from dynid.pipeline.wrench_filter import SensorFilter, sensor_filter
from dynid.regression.wrench_rows import AXES, GUESS, wrench_parameters
from dynid.signals.recording import WrenchRecording
from dynid.signals.samples import WrenchSamples
from dynid.validation.prediction import PredictionError, Validation, row_error


def refuse_other_options(settings: Settings) -> None:
    """Refuse what means nothing for a sensor log, rather than leave it without effect."""
    for one in misplaced_options(settings, WRENCH):
        raise InputError(
            f"{flag_of(one)} belongs to logs of joint torque; the logs given are of a force/torque sensor: leave it out"
        )
    if settings.method not in METHODS:
        raise InputError(
            f"--method is '{settings.method}', expected one of {', '.join(METHODS)} for the body on a force/torque sensor"
        )


def filter_of(settings: Settings) -> SensorFilter | str:
    """The filter that the options of a run ask for; ``auto`` where they leave it open."""
    if settings.filter != "butterworth":
        return sensor_filter(settings.filter)
    if settings.rows == "polynomial":
        if settings.window == "auto":
            raise InputError("--rows polynomial of a force/torque-sensor log needs its window: give --window SECONDS")
        return SensorFilter("polynomial", window_s=float(settings.window))
    if settings.rows != "torque":
        raise InputError(
            f"--rows {settings.rows} is a statement on joint torque, expected polynomial or nothing for a force/torque-sensor log"
        )
    if settings.cutoff_hz == "auto":
        return "auto"
    return SensorFilter(
        "butterworth" if settings.filter_on == "signals" else "rows",
        order=settings.filter_order,
        band_hz=float(settings.cutoff_hz),
    )


def places(robot: Robot | None, settings: Settings) -> tuple[str | Frame | None, Array | None]:
    """Frame of the sensor on the robot, and pose of the IMU in it."""
    place: str | Frame | None = settings.frame or sensor_frame(robot)
    if settings.frame_pose is not None:
        if robot is None:
            raise InputError("--frame-pose is a pose in a frame of the robot, expected a robot before the log")
        place = frame_named(robot, place).moved(pose_from_numbers(settings.frame_pose), "sensor")
    return place, None if settings.imu_pose is None else pose_from_numbers(settings.imu_pose)


def identify_body(recordings: Sequence[WrenchRecording], robot: Robot | None, settings: Settings) -> SensorBody:
    """The body on a sensor as the settings ask for it."""
    from dynid.pipeline.known_load import known_load

    place, imu = places(robot, settings)
    found = identify_sensor_body(
        recordings,
        robot,
        place,
        filtered=filter_of(settings),
        imu=imu,
        drift=settings.drift,
        tilt=settings.gravity == "auto",
        static=settings.static,
        constraints=known_load(settings.mass, settings.shape),
        answer=settings.method,
        weighted=settings.weighted,
    )
    fixed = [] if robot is None or place is not None else [one.name for one in robot.merged if one.body == last_body(robot)]
    if not fixed:
        return found
    note = (
        f"the sensor is taken to sit in the frame of '{found.frame}'; the description also has {', '.join(fixed)} (--frame)"
    )
    doubted = tuple(replace(one, level="warning") if one.code == "other_origin" else one for one in found.findings)
    return replace(found, notes=(note, *found.notes), findings=doubted)


def sensor_place(robot: Robot, settings: Settings) -> Frame:
    """The sensor's frame on the robot."""
    return frame_named(robot, places(robot, settings)[0])


def samples_of(body: SensorBody, log: WrenchRecording, robot: Robot | None, settings: Settings) -> WrenchSamples:
    """Samples of a log under the filter and the gravity that were found."""
    log = at_rest(log) if settings.static and robot is None else log
    samples, _ = body.filter.samples(log, robot, body.place, places(robot, settings)[1])
    if robot is None or log.position is None or body.gravity is None:
        return samples
    return samples.moved_by(robot, body.place, body.gravity)[0]


@cache
def sensor_robot() -> Robot:
    """What moves a sensor that measures its own motion: one free body, the prior of the one to be identified."""
    joint = Joint("sensor", "floating", -1, np.eye(4), np.zeros(6))
    return make_robot("sensor", [joint], [GUESS], links=["body"])


def mover_of(logs: Logs) -> Robot | None:
    """The robot that moves a sensor; None where the sensor measured its own motion."""
    return None if logs.robot is sensor_robot() else logs.robot


def identify_sensor(data: Data, settings: Settings) -> IdentificationResult:
    """The body on a sensor by every method; errors and verdict come after."""
    body = identify_body(data.known.wrenches, mover_of(data.known), settings)
    return IdentificationResult(
        settings=settings,
        robot=data.known.robot,
        estimate=body.best.estimate,
        identification=None,
        validation=None,
        filter=None,
        rows=RowPlan(WRENCH),
        logs=data.logs.files,
        validation_logs=() if data.unseen is None or settings.split is not None else data.unseen.files,
        notes=body.notes,
        regression=body.regression,
        data=data,
        body=body,
    )


def sensor_samples(run: IdentificationResult, logs: Logs | None) -> tuple[WrenchSamples, ...]:
    """Samples of logs under the filter and the gravity that were found."""
    if run.body is None or logs is None:
        return ()
    return tuple(samples_of(run.body, one, mover_of(logs), run.settings) for one in logs.wrenches)


def with_sensor_errors(run: IdentificationResult) -> IdentificationResult:
    """The run with its errors on known and unseen wrench, and those of the other methods beside them."""
    body, data = run.body, run.data
    assert body is not None
    assert data is not None
    others = sensor_samples(run, data.unseen)
    names = data.known.paths, () if data.unseen is None else data.unseen.paths
    return run.changed(
        identification=wrench_error(body.best.method, body, body.samples),
        validation=sensor_errors(body, others) if others else None,
        comparisons=tuple(compared_method(one.method, body, others, names) for one in body.bodies),
    )


def wrench_error(method: str, body: SensorBody, samples: Sequence[WrenchSamples]) -> PredictionError:
    """How well the body of one method, with the offsets found, predicts the wrench, every axis in units of its noise."""
    found, rows = body.by(method).estimate, body.rows(samples)
    sigma = np.maximum(found.residual_rms, 1e-12 * max(float(found.residual_rms.max()), 1e-300))

    def relative(error: PredictionError) -> float:
        size = error.rmse / np.maximum(error.relative_error_per_channel, 1e-300)
        return float(np.linalg.norm(error.rmse / sigma) / max(float(np.linalg.norm(size / sigma)), 1e-300))

    recorded = [replace(log, wrench=log.raw_wrench) for log in samples if log.raw_wrench is not None]
    raw = relative(row_error(rows.with_samples(recorded), found)) if len(recorded) == len(samples) else None
    error = row_error(body.filter.rows(rows), found)
    return PredictionError(relative(error), raw, error.rmse, error.relative_error_per_channel, sum(map(len, samples)))


def sensor_errors(body: SensorBody, samples: Sequence[WrenchSamples]) -> Validation:
    """Prediction of the wrench by the answer: of all logs together, and of each."""
    each = tuple(wrench_error(body.best.method, body, [one]) for one in samples)
    return Validation(wrench_error(body.best.method, body, samples), each, AXES)


def compared_method(
    method: str, body: SensorBody, unseen: Sequence[WrenchSamples], names: tuple[Sequence[str], Sequence[str]]
) -> dict[str, Any]:
    """One method on the rows of all: its errors on known and unseen wrench, whether its body can exist, its time."""
    one = body.by(method)
    logs = [
        {"log": name, "data": data, "relative_error": error.relative_error, "rmse": tuple(error.rmse.tolist())}
        for data, paths, samples in (("known", names[0], body.samples), ("unseen", names[1], unseen))
        for name, part in (zip(paths, samples, strict=True) if samples else ())
        for error in (wrench_error(method, body, [part]),)
    ]
    errors = {
        "identification": wrench_error(method, body, body.samples).as_dict(),
        "validation": wrench_error(method, body, unseen).as_dict() if unseen else None,
    }
    return {
        "method": one.method,
        "relative_error": {data: None if error is None else error["relative_error"] for data, error in errors.items()},
        "feasible": one.feasible,
        "feasibility": {"decision": "feasible" if one.feasible else "infeasible", "proven": True},
        "outcome": one.estimate.outcome.name.lower(),
        "seconds": one.seconds,
        "errors": errors,
        "logs": logs,
    }


def read_body(
    record: Mapping[str, Any], settings: Settings, robot: Robot | None, read: Callable[..., Any]
) -> tuple[Robot, SensorBody]:
    """What moves a sensor and the body on it, from the record of a run.

    Args:
        record: of the run.
        settings: of the run.
        robot: of the run; None where the sensor measured its own motion.
        read: gives the estimate of a method from its parameters and the stem of its files.
    """
    parameters, answer, bodies = wrench_parameters(True, settings.drift), str(record["answer"]), []
    for item in record["methods"]:
        body = body_estimate(str(item["method"]), read(parameters, stem_of(str(item["method"]), answer)))
        if body.method == "sdp" and settings.mass is not None:
            body = replace(body, covariance=given_mass(body.covariance))
        bodies.append(replace(body, seconds=float(item["seconds"])))
    found = SensorBody(
        frame=str(record["result"]["frame"]),
        bodies=tuple(bodies),
        notes=tuple(record["result"]["notes"]),
        samples=(),
        place=None if robot is None else sensor_place(robot, settings),
        answer=answer,
        **read_fields(SensorBody, {name: record[name] for name in ("filter", "static", "gravity", "findings")}),
    )
    return sensor_robot() if robot is None else robot, found


def stem_of(method: str, answer: str) -> str:
    """What the files of a method's estimate are called: those of the answer as those of any run."""
    return "estimate" if method == answer else f"estimate_{method}"


def current_record(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """The record of a body as it is written now: it had its errors by method alone, and no rows, before 0.3."""
    if "rows" in record:
        return record
    each = {
        data: {method: {"relative_error_per_joint": [None] * 6} | one for method, one in record["errors"][data].items()}
        for data in ("identification", "validation")
    }
    own, unseen = (each[data].get(record["answer"]) for data in each)
    whole = None if unseen is None else {"total": unseen, "logs": [], "joint_names": list(AXES)}
    found = {one["method"]: one for one in record["result"]["payload"]["methods"]}
    comparisons = [
        {
            "method": one["method"],
            "relative_error": {data: each[data].get(one["method"], {}).get("relative_error") for data in each},
            "feasible": found[one["method"]]["feasible"],
            "seconds": one["seconds"],
            "errors": {data: each[data].get(one["method"]) for data in each},
        }
        for one in record["methods"]
    ]
    none: dict[str, Any] = {"filter_trials": [], "checks": [], "rows": {"kind": "wrench"}, "comparisons": comparisons}
    errors = {"identification": own, "validation": whole, "row_error": None, "row_validation": None}
    return {**record, **none, "errors": errors}
