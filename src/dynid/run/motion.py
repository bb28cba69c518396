"""Identification from motion logs and from poses: filter, friction, rows, estimate, errors, each found once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from dynid.engine import engine_from
from dynid.errors import InputError
from dynid.estimation.advice import advise
from dynid.estimation.estimate import estimate
from dynid.estimation.friction.choice import (
    FILTER_MEMORY,
    choose_friction,
    estimate_under_load,
    with_own_numbers,
)
from dynid.estimation.friction.fit import with_transmitted_load
from dynid.estimation.friction.springs import with_spring_geometry
from dynid.estimation.methods.registry import method_from_options
from dynid.estimation.result import Method
from dynid.progress import Tell, silent
from dynid.recording.finding import DataCheck
from dynid.recording.recording import Recording, StaticRecording
from dynid.recording.samples import Samples
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import Regression, factorise
from dynid.regression.source import RowSource
from dynid.regression.static_rows import StaticRows
from dynid.robot.effects import friction_effects
from dynid.robot.friction import with_friction
from dynid.robot.model import Robot
from dynid.run.bands import BandTrial, choose_bands
from dynid.run.errors import Errors, torque_errors
from dynid.run.gate import gate, sharp_friction_notes
from dynid.run.judged import judged
from dynid.run.log_part import refuse_same, refuse_zero_torque
from dynid.run.logs import Logs, open_unseen, read_unseen
from dynid.run.long_logs import (
    SHOWN,
    Changed,
    LongLog,
    UnderLoad,
    checked,
    chosen_windows,
    held_stream,
    standing_joints,
    window_name,
    window_note,
    with_interval,
)
from dynid.run.misread import UNLIKE, misread_logs
from dynid.run.options import Settings
from dynid.run.record import Run
from dynid.run.rows import RowPlan, plan_rows
from dynid.run.signals import Filter, hold_still, raw_samples, split_recording, to_samples, with_dead_zone
from dynid.run.stream_estimate import estimate_streams, factor_with
from dynid.run.tune import Trial, choose_filter, choose_window
from dynid.validation.data_check import check_recording
from dynid.validation.rows import RowError, row_error, row_error_of


def method_of(settings: Settings, robot: Robot, tell: Tell = silent) -> Method:
    """The method that the settings name, with the options it takes from them."""
    return method_from_options(settings.method, settings.as_dict(), robot, tell)


@dataclass(frozen=True, eq=False)
class Parts:
    """Recordings to identify on and to validate on."""

    known: tuple[Recording, ...]
    unseen: tuple[Recording, ...] = ()
    validation_logs: tuple[tuple[str, str], ...] = ()
    long: tuple[LongLog, ...] = ()
    """All that is identified on, where that is read piece by piece; ``known`` and ``unseen`` are then windows."""
    long_unseen: tuple[LongLog, ...] = ()
    windows: tuple[tuple[LongLog, Recording], ...] = ()


def parts_of(logs: Logs, robot: Robot, settings: Settings, validate_on: Sequence[Path]) -> Parts:
    """What is identified on and what validates: a split of each log in time, or other logs."""
    if logs.long:
        return _long_parts(logs, robot, settings, validate_on)
    if settings.split is not None:
        pairs = [split_recording(recording, settings.split) for recording in logs.recordings]
        for path, parts in zip(logs.paths, pairs, strict=True):
            for name, part in zip(("first", "second"), parts, strict=True):
                refuse_zero_torque(f"the {name} part of {path}", bool(np.any(part.torque)), part.n_samples)
        return Parts(tuple(first for first, _ in pairs), tuple(rest for _, rest in pairs))
    if not validate_on:
        return Parts(logs.recordings)
    others = read_unseen(robot, validate_on, settings)
    refuse_same(validate_on, others.hashes, seen=zip(logs.paths, logs.hashes, strict=True))
    return Parts(logs.recordings, others.recordings, tuple(zip(others.paths, others.hashes, strict=True)))


def _long_parts(logs: Logs, robot: Robot, settings: Settings, validate_on: Sequence[Path]) -> Parts:
    known, unseen = logs.long, tuple[LongLog, ...]()
    named: tuple[tuple[str, str], ...] = ()
    if settings.split is not None:
        pairs = [log.split(settings.split) for log in logs.long]
        known, unseen = tuple(first for first, _ in pairs), tuple(rest for _, rest in pairs)
    elif validate_on:
        others = open_unseen(robot, validate_on, replace(settings, stream="on"))
        refuse_same(validate_on, others.hashes, seen=zip(logs.paths, logs.hashes, strict=True))
        unseen, named = others.long, tuple(zip(others.paths, others.hashes, strict=True))
    windows = tuple(chosen_windows(known))
    shown = tuple(recording for _, recording in chosen_windows(unseen, SHOWN)) if unseen else ()
    return Parts(tuple(recording for _, recording in windows), shown, named, known, unseen, windows)


def checks_of(logs: Logs, parts: Parts, robot: Robot) -> tuple[DataCheck, ...]:
    """What was found wrong with every log."""
    if not logs.long:
        return tuple(check_recording(recording, robot) for recording in logs.recordings)
    windows: dict[str, list[Recording]] = {log.path: [] for log in logs.long}
    for log, recording in parts.windows:
        windows[log.path].append(recording)
    return tuple(checked(log, windows[log.path], robot) for log in logs.long)


def identify_motion(logs: Logs, settings: Settings, validate_on: list[Path], tell: Tell) -> Run:
    """Identify from motion logs: filter, friction and rows chosen once, then estimated and judged."""
    robot, engine = logs.robot, engine_from(settings.engine)
    parts = parts_of(logs, robot, settings, validate_on)
    tell("looking into the logs")
    checks = checks_of(logs, parts, robot)
    model = settings.friction_model
    if model is not None:
        robot = with_friction(robot, friction_effects("linear"))
    filtered, trials = chosen_filter(robot, parts.known, settings, tell)
    robot = with_dead_zone(robot, parts.known, filtered, settings)
    samples = tuple(to_samples(recording, filtered, settings.max_rows) for recording in parts.known)
    streams = tuple(log.samples(filtered, settings.max_rows) for log in parts.long)
    standing = standing_joints(parts.long, streams) if parts.long else None
    samples = hold_still(samples, standing)
    unseen = tuple(to_samples(recording, filtered, settings.max_rows) for recording in parts.unseen)
    robot = with_spring_geometry(robot, samples, filtered.row_filter)
    choice = None
    if model is not None:
        choice = choose_friction(
            robot, samples, model, row_filter=filtered.row_filter, time_s=filter_memory_s(filtered), tell=tell
        )
        robot = choice.robot
    else:
        robot = with_own_numbers(robot, samples, filtered.row_filter)
    plan = planned(settings, robot, parts.known, filtered, tell)
    tell(f"estimating by {settings.method}")
    method = method_of(settings, robot, tell)
    if parts.long:
        assert standing is not None
        plan = with_interval(plan, robot, parts.long)
        result, regression, loaded = estimate_streams(
            plan, robot, parts.long, streams, filtered, standing, samples, method, engine
        )
    else:
        result, regression, loaded = estimate_under_load(
            rows_of(plan, robot, samples, parts.known), samples, method, factor=partial(factor_with, engine)
        )
    if choice is not None and choice.inner is not None:
        result = choice.inner.widen(result)
    result, verdict = judged(result, robot, settings)
    tell("looking for what the residual follows")
    # what the residual of a misread log follows is the misreading, which the check has named
    misread = any(
        finding.severity == "error" or finding.code == "tilted_base" for check in checks for finding in check.findings
    )
    advice = (
        ()
        if misread
        else advise(
            robot,
            loaded,
            filtered.row_filter,
            motor_side=(settings.side or (robot.coupling.side if robot.coupling else None)) == "motor",
            drive_gains=settings.drive_gains,
            known=regression.sources,
        )
    )
    return assembled(
        Run(
            settings=settings,
            robot=robot,
            estimate=result,
            identification=None,
            validation=None,
            filter=filtered,
            rows=plan,
            trials=trials,
            logs=tuple(zip(logs.paths, logs.hashes, strict=True)),
            validation_logs=parts.validation_logs,
            feasibility=verdict,
            advice=advice,
            friction=choice,
            checks=checks,
            notes=(
                *robot.source.notes,
                *logs.notes,
                *(window_note(parts.windows, parts.long) if parts.long else ()),
                *_findings(logs, checks),
                *(() if choice is None else choice.notes()),
            ),
            regression=regression,
            recordings=logs.recordings or parts.known,
            samples=loaded,
            streams=tuple(held_stream(stream, standing) for stream in streams) if standing is not None else (),
            unseen_streams=tuple(log.samples(filtered, settings.max_rows) for log in parts.long_unseen),
            unseen_row_streams=tuple(log.raw_samples() for log in parts.long_unseen) if plan.of_recorded else (),
            windows=tuple(window_name(recording) for recording in parts.known) if parts.long else (),
            unseen_windows=tuple(window_name(recording) for recording in parts.unseen) if parts.long else (),
        ),
        unseen,
        parts.unseen,
        tell,
    )


def planned(
    settings: Settings, robot: Robot, recordings: Sequence[Recording], filtered: Filter, tell: Tell = silent
) -> RowPlan:
    """The plan of the rows, its window chosen by the data where the settings leave it open."""
    window_s = None
    if settings.rows == "polynomial":
        # the load of a joint is found with the estimate, and a window does not wait for it
        plain = robot.with_effects([effect for effect in robot.effects if not effect.loaded])
        window_s = choose_window(plain, reduce_to_base(plain), recordings, filtered, settings, tell)
    return plan_rows(settings, window_s, filtered.row_band_hz)


def chosen_filter(
    robot: Robot, recordings: Sequence[Recording], settings: Settings, tell: Tell = silent
) -> tuple[Filter, tuple[Trial | BandTrial, ...]]:
    """The filter of a run: bands of signals and rows, or one cut-off for all signals where those are filtered."""
    if settings.signals or settings.filter != "butterworth":
        return choose_filter(robot, reduce_to_base(robot), recordings, settings, tell)
    if settings.torque_cutoff_hz is not None:
        raise InputError(
            "--torque-cutoff-hz is a cut-off of signals, but rows are filtered: add --signals to filter signals instead"
        )
    return choose_bands(robot, recordings, settings, tell)


def filter_memory_s(filtered: Filter) -> float:
    """Where the search for the memory of filtered signals starts; rows have none."""
    return 0.0 if filtered.row_band_hz is not None else FILTER_MEMORY / filtered.torque_cutoff_hz


def rows_of(plan: RowPlan, robot: Robot, samples: Sequence[Samples], recordings: Sequence[Recording]) -> RowSource:
    """The row source of a run: of its filtered samples, or of its recordings where the rows filter by themselves."""
    if not plan.of_recorded:
        return plan.source(robot, samples)
    return plan.source(robot, hold_still([raw_samples(log, one) for log, one in zip(recordings, samples, strict=True)]))


def assembled(run: Run, unseen: Sequence[Samples], recordings: Sequence[Recording], tell: Tell = silent) -> Run:
    """The run with its errors on known and unseen data, and the notes on its estimate."""
    tell("predicting torque")
    others = under_load(run, unseen)
    row_validation = None
    if run.unseen_streams:
        row_validation = stream_row_error(run)
    elif others:
        row_validation = row_error(rows_of(run.rows, run.robot, others, recordings), run.estimate)
    run = replace(run, unseen=others)
    errors = torque_errors(run, run.estimate, engine_from(run.settings.engine))
    filtered_before = run.rows.kind == "polynomial" or (run.filter is not None and run.filter.row_band_hz is None)
    return replace(
        run,
        identification=None if errors.known is None else errors.known.total,
        validation=errors.unseen,
        row_error=None if run.regression is None else row_error_of(run.regression, run.estimate, run.rows.kind),
        row_validation=row_validation,
        notes=(
            *run.notes,
            *gate(run.estimate, run.robot, errors.motion, run.feasibility),
            *sharp_friction_notes(run.robot, filtered_before),
            *_misread(run, errors, recordings),
        ),
    )


def _misread(run: Run, errors: Errors, recordings: Sequence[Recording]) -> tuple[str, ...]:
    """What was likely read wrongly in unseen logs that the model does not predict at all."""
    if errors.unseen is None or not errors.unseen.relative_error > UNLIKE:
        return ()
    return misread_logs(run, recordings)


def stream_row_error(run: Run) -> RowError:
    """Residual of the rows of unseen streams."""
    carried = UnderLoad(run.identified)
    streams = run.unseen_row_streams or run.unseen_streams
    rows = run.rows.source(run.robot, [Changed(stream, carried) for stream in streams])
    return row_error(rows, run.estimate)


def identify_poses(
    robot: Robot, poses: StaticRecording, path: Path, settings: Settings, validate_on: Sequence[Path], tell: Tell
) -> Run:
    """Reverse engineering from a table of poses: rigid bodies only, no filter."""
    if validate_on or settings.split is not None:
        raise InputError(
            f"{path} is a table of poses, which no motion log validates while it is identified; "
            "validate the run on a log afterwards: dynid validate RUN LOG --cutoff-hz F"
        )
    source = StaticRows.of(robot, poses)
    rigid = source.robot
    tell(f"estimating by {settings.method}")
    regression: Regression = factorise(source)
    result = estimate(regression, reduce_to_base(rigid), method_of(settings, rigid, tell))
    result, verdict = judged(replace(result, n_samples=source.n_poses), rigid, settings)
    return Run(
        settings=settings,
        robot=rigid,
        estimate=result,
        identification=None,
        validation=None,
        filter=None,
        rows=RowPlan("static"),
        row_error=row_error_of(regression, result, "static"),
        logs=((str(path), poses.source.sha256),),
        notes=(*rigid.source.notes, *poses.source.notes, *gate(result, rigid, None, verdict)),
        feasibility=verdict,
        regression=regression,
    )


def under_load(run: Run, samples: Sequence[Samples]) -> tuple[Samples, ...]:
    """Samples with the load that the estimate gives, where the robot's friction depends on it."""
    identified = run.identified
    return tuple(with_transmitted_load(identified, one) for one in samples)


def _findings(logs: Logs, checks: Sequence[DataCheck]) -> list[str]:
    """What is wrong with the logs, with the file that it is about; what spoils the result is called an error."""
    words = {"error": "error in ", "warning": ""}
    return [
        f"{words[finding.severity]}{Path(path).name}: {finding.sentence}. {finding.fix}"
        for path, check in zip(logs.paths, checks, strict=True)
        for finding in check.findings
        if finding.severity != "note"
    ]
