"""A sensor log through the main path: the body on a force/torque sensor identified, validated, compared and kept like any run.

``dynid payload --sensor`` answers at once; a run of the same log is a folder with settings, estimate and report.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dynid.adapters.blas import one_blas_thread
from dynid.errors import InputError
from dynid.estimation.body import METHODS
from dynid.progress import Tell, silent
from dynid.recording.recording import WrenchRecording
from dynid.regression.wrench_rows import AXES
from dynid.robot.model import Robot
from dynid.run.log_part import refuse_same
from dynid.run.options import Settings, command_line
from dynid.run.reason import Reason, RunVerdict
from dynid.run.sensor import SensorBody, identify_sensor_body
from dynid.run.sensor_logs import first_parts, read_parts
from dynid.run.sensor_settings import filter_of, places, refuse_other_options, sensor_options
from dynid.run.wrench_error import WrenchError, wrench_errors

UNEXPLAINED = 0.05
"""Share of the wrench, in units of its noise, above which a body that leaves it unexplained is doubted."""


@dataclass(frozen=True, eq=False)
class SensorRun:
    """What one identification of the body on a force/torque sensor did and found.

    Args:
        settings: the options.
        robot: that moves the sensor; None where the logs hold the sensor's own motion.
        found: the body by every method, offsets, filter, notes.
        identification: error on the samples identified on, by method.
        validation: error on unseen samples, by method; empty where there are none.
        logs: path and hash of every log identified on.
        validation_logs: path and hash of every log validated on.
        seconds: time spent, s.

    Examples:
        >>> import dynid, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> t, (w, b, turn) = np.arange(300) / 100.0, rng.normal(size=(3, 300, 3))
        >>> Y = dynid.body_regressor(dynid.ProperAcceleration(b, turn), np.hstack([0 * w, w]))
        >>> ball = [2.0, 0, 0, 0.2, 0.03, 0, 0.03, 0, 0, 0.01]
        >>> log = dynid.WrenchRecording(t, Y @ ball, angular_velocity=w, linear_acceleration=b, angular_acceleration=turn)
        >>> _ = dynid.write_recording(log, "sensor.csv")
        >>> run = dynid.identify_sensor(None, ["sensor.csv"], dynid.Settings(cutoff_hz=20.0, signals=True))
        >>> isinstance(run, dynid.SensorRun), run.summary()["rows"]["kind"]
        (True, 'wrench')
    """

    settings: Settings
    robot: Robot | None
    found: SensorBody
    identification: dict[str, WrenchError]
    validation: dict[str, WrenchError]
    logs: tuple[tuple[str, str], ...]
    validation_logs: tuple[tuple[str, str], ...] = ()
    seconds: float = 0.0

    @property
    def method(self) -> str:
        """The method whose body is the answer."""
        return self.found.best.method

    @property
    def judged_error(self) -> float:
        """Relative error of the filtered wrench on unseen data, else on what was identified on."""
        return (self.validation or self.identification)[self.method].relative_error

    @property
    def verdict(self) -> RunVerdict:
        """Whether the body can be used, and why not."""
        body, error = self.found.best, self.judged_error
        unseen = "unseen" if self.validation else "known"
        reasons = [Reason("warning", one.sentence, one.fix) for one in self.found.findings]
        if not body.feasible:
            reasons.append(Reason("error", f"{body.method} found a body that cannot exist", "use --method sdp"))
        if error > UNEXPLAINED:
            text = f"{100.0 * error:.3g} % of the wrench is left unexplained, expected below {100.0 * UNEXPLAINED:g} %"
            reasons.append(Reason("warning", text, "look for contact, another body or a loose sensor in the report"))
        if body.unknown:
            reasons.append(
                Reason("warning", f"not determined by these data: {', '.join(body.unknown)}", "move faster, turn further")
            )
        return RunVerdict(f"predicts {unseen} wrench to {100.0 * error:.3g} %", tuple(reasons))

    def command(self, config: str = "dynid.toml") -> str:
        """The command that repeats this run."""
        robot = "" if self.robot is None else self.robot.source.path or self.robot.name
        logs = [path for path, _ in self.logs]
        first, rest = (robot, logs) if robot else (logs[0], logs[1:])
        return command_line(self.settings, first, rest, [path for path, _ in self.validation_logs], config)

    def summary(self) -> dict[str, Any]:
        """What scripts rely on, under the names of any run, and the body under ``payload``."""
        found, body = self.found.best.estimate, self.found.best
        own, unseen = self.identification[self.method], self.validation.get(self.method)
        return {
            "method": self.method,
            "outcome": found.outcome.name.lower(),
            "robot": None if self.robot is None else self.robot.name,
            "frame": self.found.frame,
            "n_samples": found.n_samples,
            "n_parameters": found.base.n_parameters,
            "n_base": found.base.n_base,
            "rank": found.rank,
            "condition_number": found.condition_number,
            "condition_number_scaled": found.condition_number_scaled,
            "relative_error": {
                "identification": own.relative_error,
                "validation": None if unseen is None else unseen.relative_error,
            },
            "relative_error_raw": {
                "identification": own.relative_error_raw,
                "validation": None if unseen is None else unseen.relative_error_raw,
            },
            "rmse": own.rmse.tolist(),
            "feasible": body.feasible,
            "feasibility": {"decision": "feasible" if body.feasible else "infeasible", "proven": True},
            "verdict": self.verdict.as_dict(),
            "filter": {"text": self.found.filter.describe()},
            "rows": {"kind": "wrench", "channels": list(AXES)},
            "friction": "none",
            "friction_model": None,
            "seconds": self.seconds,
            "intervals": [
                {"name": name, "value": value, "lower": low, "upper": high}
                for name, value, (low, high) in zip(
                    found.base.names, found.base_values.tolist(), found.interval().tolist(), strict=True
                )
            ],
            "advice": [],
            "notes": list(self.found.notes),
            "payload": self.found.as_dict(),
        }

    def compared(self) -> list[dict[str, Any]]:
        """Every method on the same rows, as ``dynid compare --json`` prints it."""
        return [
            {
                "method": body.method,
                "relative_error": {
                    "identification": self.identification[body.method].relative_error,
                    "validation": self.validation[body.method].relative_error if self.validation else None,
                },
                "feasible": body.feasible,
                "feasibility": {"decision": "feasible" if body.feasible else "infeasible", "proven": True},
                "outcome": body.estimate.outcome.name.lower(),
                "seconds": body.seconds,
            }
            for body in self.found.bodies
        ]


def identify_sensor(
    robot: Robot | str | Path | None,
    logs: Sequence[str | Path],
    settings: Settings | None = None,
    *,
    validate_on: Sequence[str | Path] = (),
    tell: Tell = silent,
) -> SensorRun:
    """Identify the body on a force/torque sensor from its logs, and validate on unseen logs or a held-out part.

    Args:
        robot: the robot that moves the sensor, or the path of its description; None where the logs hold the sensor's motion.
        logs: logs of the sensor, all with the same body and offsets.
        settings: the options; by default those of the command line.
        validate_on: unseen logs of the same body.
        tell: called with a short text before each step.

    Examples:
        >>> import dynid, numpy as np
        >>> rng = np.random.default_rng(0)
        >>> t, (w, b, turn) = np.arange(300) / 100.0, rng.normal(size=(3, 300, 3))
        >>> Y = dynid.body_regressor(dynid.ProperAcceleration(b, turn), np.hstack([0 * w, w]))
        >>> ball = [2.0, 0, 0, 0.2, 0.03, 0, 0.03, 0, 0, 0.01]
        >>> log = dynid.WrenchRecording(
        ...     t, Y @ ball + [3, -2, 1, 0, 0, 0], angular_velocity=w, linear_acceleration=b, angular_acceleration=turn
        ... )
        >>> _ = dynid.write_recording(log, "sensor.csv")
        >>> run = dynid.identify_sensor(None, ["sensor.csv"], dynid.Settings(cutoff_hz=20.0, signals=True, split=0.6))
        >>> round(run.found.best.mass, 2), run.judged_error < 0.01
        (2.0, True)
    """
    started = time.perf_counter()
    chosen = settings or Settings()
    refuse_other_options(chosen)
    if chosen.split is not None and validate_on:
        raise InputError("a split and validation logs were both given, expected one of the two")
    paths, others = [Path(path) for path in logs], [Path(path) for path in validate_on]
    with one_blas_thread():
        tell("reading the logs")
        whole, model = read_parts(paths, robot, chosen)
        refuse_same(paths, [log.source.sha256 for log in whole])
        read = tuple((str(path), log.source.sha256) for path, log in zip(paths, whole, strict=True))
        known, unseen = whole, tuple[WrenchRecording, ...]()
        if chosen.split is not None:
            known, unseen = first_parts(whole, chosen.split)
        elif others:
            unseen = read_parts(others, model, replace(chosen, from_s=None, to_s=None))[0]
            refuse_same(others, [log.source.sha256 for log in unseen], seen=read)
        tell(f"estimating by {', '.join(METHODS)}")
        place, imu = places(model, chosen)
        options = sensor_options(chosen)
        found = identify_sensor_body(known, model, place, filtered=filter_of(chosen), imu=imu, options=options)
        tell("predicting the wrench")
        samples = [found.samples_of(log, model, imu) for log in unseen]
        return SensorRun(
            chosen,
            model,
            found,
            wrench_errors(found, found.samples),
            wrench_errors(found, samples) if samples else {},
            read,
            tuple((str(path), log.source.sha256) for path, log in zip(others, unseen, strict=False)),  # none after a split
            time.perf_counter() - started,
        )


def validate_sensor(
    run: SensorRun, paths: Sequence[str | Path], **reading: Any
) -> tuple[WrenchError, tuple[WrenchError, ...]]:
    """Prediction of sensor logs that a run has not seen: of all together, and of each.

    Args:
        run: the run.
        paths: logs of the same body on the same sensor, with the same offsets.
        reading: settings by name that differ from the run's, such as ``mapping`` or ``from_s``.
    """
    files = [Path(path) for path in paths]
    settings = replace(run.settings, **({"from_s": None, "to_s": None} | reading))
    recordings, model = read_parts(files, run.robot, settings)
    refuse_same(files, [log.source.sha256 for log in recordings], seen=run.logs)
    _, imu = places(model, settings)
    samples = [run.found.samples_of(log, model, imu) for log in recordings]
    method = run.method
    return wrench_errors(run.found, samples)[method], tuple(wrench_errors(run.found, [one])[method] for one in samples)
