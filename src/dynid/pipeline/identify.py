"""Identification: read -> check -> choose filter -> choose friction -> rows -> triangles -> estimate -> judge -> result."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dynid.engine import Tell, engine_from, give_back, one_blas_thread, silent
from dynid.errors import InputError
from dynid.estimation.advice import Advice, advise
from dynid.estimation.friction.fit import widen_covariance
from dynid.estimation.friction.selection import FrictionChoice, choose_friction_model
from dynid.estimation.lag_and_gravity import find_lag_and_gravity
from dynid.finding import DataCheck
from dynid.io.logs.paths import LogInputs, log_paths
from dynid.model.robot import Robot
from dynid.pipeline.calibrate import calibration_notes, frictions_before_choice, with_calibration
from dynid.pipeline.data import (
    FloatingLogError,
    SensorLogError,
    check_data,
    check_settings,
    delayed,
    finding_notes,
    left_out,
    read_data,
    with_rows,
)
from dynid.pipeline.dwells import below_dead_zone, counted, poisoning_dwells, without_dwells
from dynid.pipeline.estimate_checks import check_feasibility
from dynid.pipeline.estimate_rows import estimate_rows, method_of
from dynid.pipeline.filter_selection import chosen_filter, filter_memory_s, planned
from dynid.pipeline.fix_bodies import refit_from_settings
from dynid.pipeline.identify_wrench import identify_wrench
from dynid.pipeline.log import Data
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.robot_setup import described_robot
from dynid.pipeline.signal_filter import Filter, with_dead_zone
from dynid.pipeline.validate import with_errors
from dynid.pipeline.verdict import with_verdict
from dynid.regression.factor import Regression


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
        except SensorLogError:  # the joints of the robot move a sensor
            result = identify_wrench(robot, paths, settings, unseen, progress)
        except FloatingLogError:  # its base moves
            result = _identify_floating(robot, paths, settings, unseen, progress)
        tell("judging the model")
        result = with_verdict(result)
    give_back()
    return result.changed(seconds=time.perf_counter() - started)


def _identify_robot(
    robot: Robot | str | Path | None, paths: list[Path], settings: Settings, unseen: list[Path], progress: Tell
) -> IdentificationResult:
    """The path of a robot's inputs: logs or poses, given coefficients, or friction alone beside fixed bodies."""
    if robot is None:
        raise SensorLogError("no robot was given, expected logs of a force/torque sensor")
    feet = settings.feet or settings.flat_feet or settings.force_frames
    if settings.floating or (settings.floating is None and (feet or (isinstance(robot, Robot) and robot.floating))):
        return _identify_floating(robot, paths, settings, unseen, progress)
    given = without_search(settings)
    model = described_robot(robot, given)
    check_settings(settings, model, unseen)
    if settings.coefficients is not None:
        from dynid.pipeline.coefficients import retrieve_run  # it loads much that other runs do not need

        return retrieve_run(model, [*paths, *unseen], settings, progress)
    if settings.fix_bodies is not None:
        return refit_from_settings(model, paths, settings, unseen, progress)
    progress("reading the logs")
    return identify_logs(read_data(model, paths, given, unseen), settings, progress)


def _identify_floating(
    robot: Robot | str | Path | None, paths: list[Path], settings: Settings, unseen: list[Path], progress: Tell
) -> IdentificationResult:
    from dynid.pipeline.identify_floating import identify_floating  # it loads what other runs do not need

    assert robot is not None  # without one, logs are those of a sensor
    return identify_floating(robot, paths, settings, unseen, progress)


def identify_logs(data: Data, settings: Settings, progress: Tell) -> IdentificationResult:
    """The path of motion logs and tables of poses: filter, friction and rows are chosen once, then estimated and judged."""
    progress("looking into the logs")
    checks = check_data(data)
    data, settings = left_out(data, settings, checks)
    robot, recordings = data.known.robot, data.known.recordings
    filtered, trials = (None, ()) if data.poses else chosen_filter(robot, recordings, settings, progress)
    data, settings, found = with_lag_and_gravity(data, filtered, settings, progress)
    data, settings, calibration = with_calibration(data, filtered, settings, progress)
    robot, recordings = data.known.robot, data.known.recordings
    data = data.filtered(filtered, settings.max_rows)
    data = below_dead_zone(data, robot, settings)
    robot, choice = choose_model(data.known.robot, data, filtered, settings, progress)
    dwells = None if filtered is None else poisoning_dwells(data, robot, settings, filtered.row_filter)
    if dwells is not None:
        data, checks = without_dwells(data, dwells, checks)
        robot, choice = choose_model(data.known.robot, data, filtered, settings, progress)
    plan = planned(settings, robot, recordings, filtered, progress)
    progress(f"estimating by {settings.method}")
    method, engine = method_of(settings, robot, progress), engine_from(settings.engine)
    estimate, regression, known = estimate_rows(plan, robot, data.known, method, engine)
    if choice is not None:
        estimate = widen_covariance(estimate, choice.moves, choice.misfit)
    estimate = counted(estimate, data)
    estimate, feasibility = check_feasibility(estimate, robot, settings)
    data = Data(data.logs, known, data.unseen)
    progress("looking for what the residual follows")
    result = IdentificationResult(
        settings=settings,
        robot=robot,
        estimate=estimate,
        identification=None,
        validation=None,
        filter=filtered,
        rows=plan,
        trials=trials,
        logs=data.logs.files,
        validation_logs=() if data.unseen is None or settings.split is not None else data.unseen.files,
        feasibility=feasibility,
        advice=find_advice(robot, data, filtered, settings, checks, regression),
        friction_choice=choice,
        checks=checks,
        calibration=calibration,
        notes=(
            *robot.source.notes,
            *data.notes,
            *found,
            *calibration_notes(calibration),
            *finding_notes(data.logs, checks),
            *(choice.notes() if choice else ()),
        ),
        regression=regression,
        data=data,
    )
    return with_errors(result, progress)


def without_search(settings: Settings) -> Settings:
    """The settings as they are before the data were asked for what is to be found."""
    gravity = None if settings.gravity == "auto" else settings.gravity
    return replace(settings, gravity=gravity, torque_delay=0.0 if settings.torque_delay == "auto" else settings.torque_delay)


def with_lag_and_gravity(
    data: Data, filtered: Filter | None, settings: Settings, progress: Tell
) -> tuple[Data, Settings, tuple[str, ...]]:
    """Data and settings with the delay of torque and the direction of gravity that were asked for, and what was found."""
    lag, lean = settings.torque_delay == "auto", settings.gravity == "auto"
    if not (lag or lean):
        return data, settings, ()
    if filtered is None:
        raise InputError("--torque-delay auto and --gravity auto need logs of motion, expected numbers for a table of poses")
    progress("looking for the delay of torque and the direction of gravity")
    windows, frictions = (
        data.filtered(filtered, settings.max_rows).known.windows,
        frictions_before_choice(filtered, settings),
    )
    band = filtered.row_filter
    found = find_lag_and_gravity(data.known.robot, windows, band, lag=lag, gravity=lean, with_friction=frictions)
    notes: list[str] = []
    if lag:
        delay_s = found.delay_s
        data, settings = with_rows(data, lambda rows: delayed(rows, delay_s)), replace(settings, torque_delay=delay_s)
        notes.append(found.delay_note())
    if lean:
        x, y, z = (float(value) for value in found.gravity)
        settings = replace(settings, gravity=(x, y, z))
        known, logs = (replace(own, robot=own.robot.with_gravity((x, y, z))) for own in (data.known, data.logs))
        unseen = None if data.unseen is None else replace(data.unseen, robot=data.unseen.robot.with_gravity((x, y, z)))
        data = Data(logs, known, unseen)
        notes.append(found.gravity_note())
    return data, settings, tuple(notes)


def choose_model(
    robot: Robot, data: Data, filtered: Filter | None, settings: Settings, progress: Tell
) -> tuple[Robot, FrictionChoice | None]:
    """The robot with what the data decide before any estimate: dead zone, springs, the friction model, its nonlinear parameters."""
    if filtered is None:
        return robot, None
    robot = with_dead_zone(robot, data.known.recordings, filtered, settings)
    memory_s, model = filter_memory_s(filtered), settings.friction_model
    return choose_friction_model(robot, data.known.windows, model, filtered.row_filter, memory_s, progress)


def find_advice(
    robot: Robot,
    data: Data,
    filtered: Filter | None,
    settings: Settings,
    checks: Sequence[DataCheck],
    regression: Regression,
) -> tuple[Advice, ...]:
    """What the residual follows; nothing where a log was misread: there it follows the misreading, which the check has named."""
    findings = [finding for check in checks for finding in check]
    if filtered is None or any(one.level == "error" or one.code == "tilted_base" for one in findings):
        return ()
    motor_side = (settings.side or (robot.coupling.side if robot.coupling else None)) == "motor"
    gains, rows = settings.drive_gains, regression.sources
    return advise(robot, data.known.windows, filtered.row_filter, motor_side=motor_side, drive_gains=gains, known=rows)
