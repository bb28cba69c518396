"""Identification: read -> check -> choose filter -> choose friction -> rows -> triangles -> estimate -> judge -> result."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from dynid.engine import Tell, give_back, one_blas_thread, silent
from dynid.io.logs.paths import LogInputs, log_paths
from dynid.model.robot import Robot
from dynid.pipeline.choices import Choices, choose_filter, choose_model, correct_sensors, find_advice
from dynid.pipeline.data import check_data, finding_notes, read_data, read_sensor_data
from dynid.pipeline.estimate_checks import check_feasibility
from dynid.pipeline.estimate_rows import estimate_logs
from dynid.pipeline.log import Data
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.robot_setup import FloatingLogError, SensorLogError, described_model
from dynid.pipeline.sensor import identify_sensor
from dynid.pipeline.validate import with_errors
from dynid.pipeline.verdict import with_verdict
from dynid.regression.base import check_base_memory


def identify(
    robot: Robot | str | Path | None,
    logs: LogInputs = (),
    settings: Settings | None = None,
    *,
    validate_on: LogInputs = (),
    tell: Tell = silent,
) -> IdentificationResult:
    """Identify a robot from logs of its motion (or a table of poses), and validate on unseen logs or a held-out part.

    From logs of a force/torque sensor it is the body on the sensor.

    Args:
        robot: the robot, or the path of its description; None for logs of a sensor that hold its own motion.
        logs: one log or several: files, folders, patterns and URLs, or in memory: recordings, dictionaries of arrays under the
            names that columns have (``t``, ``q``, ``dq``, ``tau``), data frames; several are stacked. Where the settings name
            coefficients, logs are not needed and validate.
        settings: the options; by default those of the command line.
        validate_on: unseen logs.
        tell: called with a short text before each step.

    Returns:
        the run: the robot with the identified parameters, the estimate with its covariance (SI units), errors on what was
            identified on and on what was not, and the verdict.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> run = dynid.identify("arm.urdf", "log.csv", dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear"))
        >>> run.estimate.method, run.identification.relative_error < 0.05
        ('wls', True)
        >>> held = dynid.identify("arm.urdf", dynid.demo_recording(), run.settings)
        >>> held.identification.relative_error < 0.05
        True
    """
    started, settings, paths, unseen = time.perf_counter(), settings or Settings(), log_paths(logs), log_paths(validate_on)

    def progress(text: str) -> None:
        give_back()  # what a step has freed is given back before the next one
        tell(text)

    with one_blas_thread():  # its matrices are small: threads would wait for one another, longer still beside other work
        try:
            result = _identify_robot(robot, paths, settings, unseen, progress)
        except FloatingLogError:  # the log says that the base of the robot moves
            result = _identify_robot(robot, paths, replace(settings, floating=True), unseen, progress)
        except SensorLogError:  # the joints of the robot move a sensor
            result = identify_data(read_sensor_data(robot, paths, settings, unseen), settings, progress)
        tell("judging the model")
        result = with_verdict(result)
    give_back()
    return result.changed(seconds=time.perf_counter() - started)


def _identify_robot(
    robot: Robot | str | Path | None, paths: list[Path], settings: Settings, unseen: list[Path], progress: Tell
) -> IdentificationResult:
    """What is known of a robot beside its description: given coefficients, the bodies of an earlier run, or its logs alone."""
    model, settings = described_model(robot, settings, unseen)
    if settings.coefficients is not None:
        from dynid.pipeline.coefficients import retrieve_run  # it loads much that other runs do not need

        return retrieve_run(model, [*paths, *unseen], settings, progress)
    if settings.fix_bodies is not None:
        from dynid.pipeline.fix_bodies import refit_from_settings

        return refit_from_settings(model, paths, settings, unseen, progress)
    progress("reading the logs")
    return identify_data(read_data(model, paths, settings, unseen), settings, progress)


def identify_data(data: Data, settings: Settings, progress: Tell) -> IdentificationResult:
    """The one path: of logs of joint torque, of a floating base and of a force/torque sensor, and of tables of poses."""
    check_base_memory(data.logs.robot)
    progress("looking into the logs")
    found = Choices(*check_data(data, settings))
    found = choose_filter(found, progress)
    found = correct_sensors(found, progress)
    found = choose_model(found, progress)
    progress(f"estimating by {settings.method}")
    result = identify_sensor(data, settings) if data.known.wrenches else estimate_model(found, progress)
    return with_errors(result, progress)


def estimate_model(found: Choices, progress: Tell) -> IdentificationResult:
    """Rows, triangles and the estimate from them, with what was chosen before; errors and verdict come after."""
    settings = found.settings
    estimate, regression, known, told = estimate_logs(found.plan, found.data.known, found.friction, settings, progress)
    data = replace(found.data, known=known)  # with the load of the estimate
    estimate, feasibility = check_feasibility(estimate, found.robot, settings)
    progress("looking for what the residual follows")
    return IdentificationResult(
        settings=settings,
        robot=found.robot,
        estimate=estimate,
        identification=None,
        validation=None,
        filter=found.filter,
        rows=found.plan,
        trials=found.trials,
        logs=data.logs.files,
        validation_logs=() if data.unseen is None or settings.split is not None else data.unseen.files,
        feasibility=feasibility,
        advice=find_advice(replace(found, data=data), regression),
        friction_choice=found.friction,
        checks=found.checks,
        calibration=found.calibration,
        notes=(
            *found.robot.source.notes,
            *data.notes,
            *told,
            *found.notes,
            *finding_notes(data.logs, found.checks),
            *(found.friction.notes() if found.friction else ()),
        ),
        regression=regression,
        data=data,
    )
