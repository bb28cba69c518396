"""Logs of a force/torque sensor on the main path: the body on the sensor as a result like any other.

read -> split -> choose filter -> rows -> body by every method -> errors of each -> judge -> result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.codec import read_fields
from dynid.engine import Tell, silent
from dynid.errors import InputError
from dynid.estimation.body import body_estimate, given_mass
from dynid.io.logs.paths import refuse_same
from dynid.model.robot import Robot
from dynid.pipeline.data import first_parts, read_parts, unchanged
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.row_plan import RowPlan
from dynid.pipeline.wrench import SensorBody, judge_body
from dynid.pipeline.wrench_options import identify_body, refuse_other_options, samples_of, sensor_place, sensor_robot
from dynid.regression.wrench_rows import AXES, wrench_parameters
from dynid.signals.samples import WrenchSamples
from dynid.validation.prediction import PredictionError, Validation, row_error


def identify_wrench(
    robot: Robot | str | Path | None,
    paths: Sequence[Path],
    settings: Settings,
    validate_on: Sequence[Path] = (),
    tell: Tell = silent,
) -> IdentificationResult:
    """The body on a force/torque sensor, validated on unseen logs or on a held-out part.

    Args:
        robot: the robot that moves the sensor, or the path of its description; None where the logs hold the sensor's motion.
        paths: logs of the sensor, all with the same body and offsets.
        settings: the options.
        validate_on: unseen logs of the same body.
        tell: called with a short text before each step.
    """
    if settings.split is not None and validate_on:
        raise InputError("a split and validation logs were both given, expected one of the two")
    refuse_other_options(settings)
    whole, model = read_parts(paths, robot, settings)
    refuse_same(paths, [log.source.sha256 for log in whole])
    logs = tuple((str(path), log.source.sha256) for path, log in zip(paths, whole, strict=True))
    known, unseen = (whole, whole[:0]) if settings.split is None else first_parts(whole, settings.split)
    if validate_on:
        unseen = read_parts(validate_on, model, replace(settings, from_s=None, to_s=None))[0]
        refuse_same(validate_on, [log.source.sha256 for log in unseen], seen=logs)
    tell("estimating the body on the sensor by every method")
    body = identify_body(known, model, settings)
    tell("predicting the wrench")
    others = [samples_of(body, log, model, settings) for log in unseen]
    names = [str(path) for path in paths], [str(path) for path in (validate_on or paths)]
    comparisons = tuple(_compared(one.method, body, others, names) for one in body.bodies)
    result = IdentificationResult(
        settings=settings,
        robot=sensor_robot() if model is None else model,
        estimate=body.best.estimate,
        identification=wrench_error(body.best.method, body, body.samples),
        validation=_validation(body, others) if others else None,
        filter=None,
        rows=RowPlan("wrench"),
        logs=logs,
        validation_logs=tuple(
            (str(path), log.source.sha256)
            for path, log in zip(validate_on, unseen, strict=False)  # none after a split
        ),
        comparisons=comparisons,
        notes=body.notes,
        regression=body.regression,
        body=body,
    )
    return replace(result, verdict=judge_body(body, result.judged_error, "unseen" if others else "known"))


def validate_wrench(run: IdentificationResult, paths: Sequence[Path], changes: Mapping[str, Any]) -> Validation:
    """Prediction of sensor logs that a result has not seen: of all together, and of each.

    Args:
        run: the result.
        paths: logs of the same body on the same sensor, with the same offsets.
        changes: settings by name that differ from the run's: how the logs are read, such as ``mapping`` or ``from_s``.
    """
    body = run.body
    if body is None:
        raise InputError("this run is that of a robot, expected one of a body on a force/torque sensor")
    settings = run.settings.for_other_logs(changes, "sensor logs")
    recordings, model = read_parts(paths, run.mover, settings)
    refuse_same(paths, [log.source.sha256 for log in recordings], seen=run.logs)
    return _validation(body, [samples_of(body, log, model, settings) for log in recordings])


def with_wrench_logs(run: IdentificationResult) -> IdentificationResult:
    """A loaded result with its samples made again from its logs; as it is where a log is gone or has changed."""
    body = run.body
    if body is None or not all(unchanged(Path(path), digest) for path, digest in run.logs):
        return run
    recordings, robot = read_parts([Path(path) for path, _ in run.logs], run.mover, run.settings)
    if run.settings.split is not None:
        recordings = first_parts(recordings, run.settings.split)[0]
    samples = tuple(samples_of(body, log, robot, run.settings) for log in recordings)
    return replace(run, body=replace(body, samples=samples))


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


def _validation(body: SensorBody, samples: Sequence[WrenchSamples]) -> Validation:
    each = tuple(wrench_error(body.best.method, body, [one]) for one in samples)
    return Validation(wrench_error(body.best.method, body, samples), each, AXES)


def _compared(
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
