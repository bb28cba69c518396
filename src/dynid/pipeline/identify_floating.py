"""Robots that walk, hang or ride on something, on the main path: logs of joints, base and feet as a result like any other.

read -> check -> split -> choose filter -> choose friction -> rows -> triangles -> estimate -> errors -> result.

A row filter acts behind the projection past the forces of the feet, see :mod:`dynid.regression.floating_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import freeze
from dynid.engine import Tell, silent
from dynid.errors import InputError
from dynid.estimation.block_scatter import widen_by_blocks
from dynid.estimation.estimate import estimate
from dynid.estimation.result import Estimate
from dynid.finding import DataCheck
from dynid.io.logs.log_file import log_path
from dynid.io.logs.paths import refuse_same
from dynid.model.effects.friction_models import friction_effects
from dynid.model.friction import with_friction
from dynid.model.robot import Robot
from dynid.pipeline.data import finding_notes, read_options, unchanged
from dynid.pipeline.estimate_checks import check_feasibility, estimate_warnings
from dynid.pipeline.estimate_rows import method_of
from dynid.pipeline.floating_choices import (
    FloatingChoice,
    choose_floating_filter,
    with_friction_chosen,
    with_radius,
    without_poor_base,
)
from dynid.pipeline.floating_data import FloatingLog, FloatingSetup, read_floating_log
from dynid.pipeline.log import Data, Log, Logs
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.robot_setup import described_robot
from dynid.pipeline.row_plan import RowPlan
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import factorise
from dynid.regression.floating_rows import FLOATING
from dynid.signals.samples import Samples
from dynid.validation.data_check import check_recording
from dynid.validation.floating_check import check_base, check_feet, check_poses
from dynid.validation.prediction import PredictionError, Validation, row_error


def floating_robot(robot: Robot | str | Path, settings: Settings) -> Robot:
    """The robot on a floating base, with linear friction until a model is chosen."""
    model = described_robot(robot, settings)
    if not model.floating:
        raise InputError(
            f"robot '{model.name}' stands fixed, expected one on a floating base: read_robot(..., floating=True)"
        )
    name = settings.friction_model
    return model if name is None else with_friction(model, friction_effects("linear"))


def _read_logs(
    setup: FloatingSetup, paths: Sequence[Path], validate_on: Sequence[Path], settings: Settings
) -> tuple[list[FloatingLog], list[FloatingLog], list[FloatingLog]]:
    """All logs, the parts of them to identify on, and those to validate on."""
    options = read_options(settings)
    logs = [read_floating_log(path, setup, settings, options) for path in paths]
    hashes = [log.joints.source.sha256 for log in logs]
    refuse_same(paths, hashes)
    known, unseen = logs, list[FloatingLog]()
    if settings.split is not None:
        pairs = [log.split(settings.split, ("identification part", "validation part")) for log in logs]
        known, unseen = [first for first, _ in pairs], [rest for _, rest in pairs]
    elif validate_on:
        whole = replace(settings, from_s=None, to_s=None)
        unseen = [read_floating_log(path, setup, whole, options) for path in validate_on]
        refuse_same(
            validate_on, [log.joints.source.sha256 for log in unseen], seen=zip(map(str, paths), hashes, strict=True)
        )
    return logs, known, unseen


def _with_filter(setup: FloatingSetup, choice: FloatingChoice) -> FloatingSetup:
    """The plan of the rows as the filter that was chosen makes them."""
    acceleration = "logged" if choice.logged else "derived"
    return replace(setup, plan=replace(setup.plan, band_hz=choice.filter.row_band_hz, acceleration=acceleration))


def identify_floating(
    robot: Robot | str | Path,
    paths: Sequence[Path],
    settings: Settings,
    validate_on: Sequence[Path] = (),
    tell: Tell = silent,
) -> IdentificationResult:
    """Identify a robot on a floating base from logs of its joints, its base and its feet.

    Args:
        robot: the robot, or the path of its description.
        paths: logs; a log of another kind is refused.
        settings: the options; ``feet``, ``flat_feet`` and ``force_frames`` say where it touches the ground.
        validate_on: unseen logs.
        tell: called with a short text before each step.
    """
    _refuse(settings, validate_on)
    settings = replace(settings, floating=True)
    setup = FloatingSetup.of(floating_robot(robot, settings), settings)
    tell("reading the logs")
    logs, known, unseen = _read_logs(setup, paths, validate_on, settings)
    choice, trials = choose_floating_filter(setup, known, settings, tell)
    setup, base_notes = without_poor_base(setup, known, choice, settings)
    setup, radius_notes = with_radius(setup, known, choice, settings, tell)
    checks = tuple(check_floating_log(setup, log, choice) for log in logs)
    setup = _with_filter(setup, choice)
    setup, friction_notes = with_friction_chosen(setup, known, choice, settings, tell)
    samples, others = (tuple(choice.samples(setup, log) for log in part) for part in (known, unseen))
    check_poses(setup.robot, samples)
    tell(f"estimating by {settings.method}")
    model = setup.robot
    rows = setup.plan.source(model, samples)
    regression = factorise(rows)
    method = method_of(_with_mass(settings), model, tell)
    found = replace(estimate(regression, reduce_to_base(model), method), n_samples=sum(map(len, samples)))
    found, spread_notes = widen_by_blocks(found, rows, samples)
    found, feasibility = check_feasibility(found, model, settings)
    tell("predicting the rows")
    files = tuple((str(path), log.joints.source.sha256) for path, log in zip(paths, logs, strict=True))
    data = _data(setup, logs, known, unseen, samples, others, files)
    notes = (
        *model.source.notes,
        *(note for log in logs for note in log.joints.source.notes),
        *_how(setup, logs[0], choice),
        *spread_notes,
        *base_notes,
        *radius_notes,
        *friction_notes,
        *finding_notes(data.logs, checks),
    )
    return IdentificationResult(
        settings=settings,
        robot=model,
        estimate=found,
        identification=floating_error(setup.plan, model, found, samples),
        validation=floating_validation(setup.plan, model, found, others) if others else None,
        filter=choice.filter,
        rows=setup.plan,
        row_error=row_error(rows, found),
        row_validation=row_error(setup.plan.source(model, others), found) if others else None,
        trials=trials,
        logs=files,
        validation_logs=tuple((str(path), log.joints.source.sha256) for path, log in zip(validate_on, unseen, strict=False)),
        feasibility=feasibility,
        checks=checks,
        notes=(*notes, *estimate_warnings(found, model, None, feasibility)),
        regression=regression,
        data=data,
    )


def _refuse(settings: Settings, validate_on: Sequence[Path]) -> None:
    """Options that robots on a floating base have no use for."""
    if settings.split is not None and validate_on:
        raise InputError("a split and validation logs were both given, expected one of the two")
    if settings.rows not in ("torque", FLOATING):
        raise InputError(
            f"--rows {settings.rows} is for robots that stand fixed; a floating base has rows of its own: leave it out"
        )
    if settings.filter_on != "rows" or settings.filter != "butterworth":
        raise InputError(
            "a robot on a floating base has its rows filtered, expected --filter-on rows and --filter butterworth"
        )
    if settings.friction not in (None, "auto", "linear"):
        raise InputError(
            f"--friction {settings.friction} is for robots that stand fixed, expected linear or auto on a floating base"
        )
    for name in ("frame", "frame_pose", "shape", "static", "ignore_torque", "gear_ratios", "calibrate"):
        if getattr(settings, name):
            raise InputError(f"--{name.replace('_', '-')} is not for robots on a floating base: leave it out")
    if settings.torque_delay != 0.0 or settings.gravity == "auto":
        raise InputError(
            "--torque-delay and --gravity auto are for robots that stand fixed: leave them out on a floating base"
        )


def _with_mass(settings: Settings) -> Settings:
    """The mass of the whole robot, where it is known, as a constraint."""
    if settings.mass is None:
        return settings
    known = {"total_mass": {"lower": settings.mass, "upper": settings.mass}}
    return replace(settings, constraints={**settings.constraints, **known})


def _how(setup: FloatingSetup, log: FloatingLog, choice: FloatingChoice) -> tuple[str, ...]:
    """How the rows were made, in words."""
    made = log.filtered_base(choice.filter)
    motion = setup.motion(log, made, logged=choice.logged)
    notes = [f"the root link floats; its motion is that of {motion.source}"]
    if log.has_accelerations:
        what = "taken as logged" if choice.logged else "not used: rates of velocities predict held-out rows better"
        notes.append(f"logged accelerations are {what}")
    if setup.plan.feet:
        count = sum(foot.size for foot in setup.plan.contact_frames(setup.robot))
        named = ", ".join(name.partition(":")[0] for name in setup.plan.feet)
        most = f"up to {count} of {setup.robot.n_dof} rows of a sample"
        notes.append(f"unknown forces at {named} are taken out of the rows: {most}")
    return tuple(notes)


def floating_error(plan: RowPlan, robot: Robot, found: Estimate, samples: Sequence[Samples]) -> PredictionError:
    """How well the rows are explained, filtered and as they are."""
    error = row_error(plan.source(robot, samples), found)
    raw = row_error(replace(plan, band_hz=None).source(robot, samples), found)
    return PredictionError(
        error.relative_error,
        raw.relative_error,
        freeze(error.rmse),
        freeze(error.relative_error_per_channel),
        sum(map(len, samples)),
    )


def floating_validation(plan: RowPlan, robot: Robot, found: Estimate, samples: Sequence[Samples]) -> Validation:
    """The same on unseen samples, of all together and of each log."""
    each = tuple(floating_error(plan, robot, found, [one]) for one in samples)
    return Validation(floating_error(plan, robot, found, samples), each, robot.dof_names)


def check_floating_log(setup: FloatingSetup, log: FloatingLog, choice: FloatingChoice) -> DataCheck:
    """What is wrong with a log: of its joints alone, of its base and of its feet."""
    found = check_recording(log.joints)
    made = log.filtered_base(choice.filter)
    motion = setup.motion(log, made, logged=choice.logged)
    extra = [*check_base(made, log.columns, motion, setup.gravity, setup.imu_pose)]
    if setup.plan.feet and not setup.carried and motion.velocity is not None:
        samples = setup.samples(log, choice.filter, logged=choice.logged, margin_s=0.0)
        moved = np.column_stack([np.interp(samples.time, made.time, column) for column in motion.velocity.T])
        extra += check_feet(setup.robot, setup.plan.contact_frames(setup.robot), samples, moved)
    return found.merged(DataCheck(tuple(extra), {}))


def _data(
    setup: FloatingSetup,
    logs: Sequence[FloatingLog],
    known: Sequence[FloatingLog],
    unseen: Sequence[FloatingLog],
    samples: Sequence[Samples],
    others: Sequence[Samples],
    files: Sequence[tuple[str, str]],
) -> Data:
    """Logs and samples as a result holds them."""
    paths, hashes = tuple(path for path, _ in files), tuple(digest for _, digest in files)

    def made(own: Sequence[FloatingLog], rows: Sequence[Samples]) -> Logs:
        recordings = tuple(log.joints for log in own)
        parts = tuple(Log.of(one) for one in recordings)
        return Logs(setup.robot, parts, paths, hashes, (), recordings, tuple(rows), tuple(rows))

    return Data(made(logs, ()), made(known, samples), made(unseen, others) if unseen else None)


def _setup_of(run: IdentificationResult) -> tuple[FloatingSetup, FloatingChoice]:
    """How a run made its rows."""
    assert run.filter is not None
    setup = FloatingSetup.of(run.robot, run.settings)
    return replace(setup, plan=run.rows), FloatingChoice(run.filter, run.rows.acceleration == "logged")


def with_floating_logs(run: IdentificationResult) -> IdentificationResult:
    """A loaded run with its samples and regression made again from its logs; as it is where a log is gone or has changed."""
    if not all(unchanged(log_path(path), digest) for path, digest in (*run.logs, *run.validation_logs)):
        return run
    (setup, choice), settings, options = _setup_of(run), run.settings, read_options(run.settings)
    logs = [read_floating_log(log_path(path), setup, settings, options) for path, _ in run.logs]
    whole = replace(settings, from_s=None, to_s=None)
    known, unseen = logs, [read_floating_log(log_path(path), setup, whole, options) for path, _ in run.validation_logs]
    if settings.split is not None:
        pairs = [log.split(settings.split, ("identification part", "validation part")) for log in logs]
        known, unseen = [first for first, _ in pairs], [rest for _, rest in pairs]
    samples, others = (tuple(choice.samples(setup, log) for log in part) for part in (known, unseen))
    regression = factorise(run.rows.source(run.robot, samples))
    return replace(run, data=_data(setup, logs, known, unseen, samples, others, run.logs), regression=regression)


def validate_floating(
    run: IdentificationResult, paths: Sequence[Path], changes: Mapping[str, Any]
) -> tuple[Validation, PredictionError]:
    """How well a run explains the rows of logs that it has not seen, filtered as its own: of all and of each, and of every channel.

    Args:
        run: the result.
        paths: logs of the same robot.
        changes: settings by name that differ from the run's: how the logs are read, such as ``mapping`` or ``from_s``.
    """
    settings = run.settings.for_other_logs(changes, "logs of a floating robot")
    setup, choice = _setup_of(run)
    logs = [read_floating_log(path, setup, settings, read_options(settings)) for path in paths]
    refuse_same(paths, [log.joints.source.sha256 for log in logs], seen=run.logs)
    samples = [choice.samples(setup, log) for log in logs]
    return (
        floating_validation(run.rows, run.robot, run.estimate, samples),
        row_error(run.rows.source(run.robot, samples), run.estimate),
    )
