"""Robots that walk, hang or ride on something, on the main path: logs of joints, base and feet as a result like any other.

read -> check -> split -> choose filter -> choose friction -> rows -> triangles -> estimate -> errors -> result.

A row filter acts behind the projection past the forces of the feet, see :mod:`dynid.regression.floating_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
from dynid.io.logs.base_columns import log_columns, moves_base
from dynid.io.logs.layout import ReadOptions
from dynid.io.logs.log_file import LogFile, log_path
from dynid.io.logs.paths import log_part, refuse_same
from dynid.model.effects.friction_models import friction_effects
from dynid.model.friction import with_friction, without_friction
from dynid.model.robot import Robot
from dynid.pipeline.data import finding_notes, read_options, unchanged
from dynid.pipeline.estimate_checks import check_feasibility, estimate_warnings
from dynid.pipeline.estimate_rows import method_of
from dynid.pipeline.filter_selection import ALIKE, MOST_ROWS, ROW_BANDS_HZ, Trial
from dynid.pipeline.floating_data import FloatingLog, FloatingSetup, read_floating_log
from dynid.pipeline.log import Data, Log, Logs
from dynid.pipeline.options import Reading, Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.robot_setup import described_robot
from dynid.pipeline.row_plan import RowPlan
from dynid.pipeline.signal_filter import Filter
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import factorise
from dynid.regression.floating_rows import FLOATING
from dynid.regression.squares import Squares
from dynid.signals.samples import Samples
from dynid.validation.data_check import check_recording
from dynid.validation.floating_check import check_base, check_feet, check_poses
from dynid.validation.prediction import PredictionError, Validation, row_error

JUDGED_HZ = 8.0
"""The band in which filters are compared: a few times the pace of walking."""
SIGNALS_HZ, MOST_SIGNAL = (20.0, 40.0, 80.0), 0.2
"""Bands of signals that are tried, and the widest as a part of the sampling rate."""
SIGNAL_OVER_ROWS = 2.5
"""A band of signals is at least so many times that of the rows: one that is narrower bends the motion by more than intervals tell."""
AS_LOGGED = 0.45
"""The same where accelerations are logged and hardly filtered."""
HELD_OUT = 0.3
BASE_MOVES, NO_SCALE = 1.0, 0.3
"""Rows of a base that nothing pushes are left out where they move values by more than so many times their uncertainty without them, or
where the torque of the joints, which alone has the scale of all masses, is explained no better than to this relative error."""
RADII = (0.0, 0.01, 0.02, 0.03, 0.045, 0.06)
"""Radii of feet between which the best is looked for, m."""
_PARTS = ("part that filters are tried on", "part held out to choose by")


def is_floating(robot: Robot | str | Path, paths: Sequence[Path], settings: Settings) -> bool:
    """Whether the base of the robot moves: where the settings say so, feet are named, or the first log holds its motion."""
    if settings.floating is not None:
        return settings.floating
    if settings.feet or settings.flat_feet or settings.force_frames:
        return True
    if isinstance(robot, Robot) and robot.floating:
        return True
    if not paths or settings.coefficients is not None or settings.fix_bodies is not None:
        return False
    part = log_part(paths[0])
    try:
        with LogFile(part.path) as file:
            return moves_base(
                log_columns(file, ReadOptions(topic=settings.topic, preset=settings.preset, mapping=settings.mapping))
            )
    except InputError:  # the reader of fixed robots says what is wrong with the log
        return False


def floating_robot(robot: Robot | str | Path, settings: Settings) -> Robot:
    """The robot on a floating base, with linear friction until a model is chosen."""
    model = described_robot(robot, settings)
    if not model.floating:
        raise InputError(
            f"robot '{model.name}' stands fixed, expected one on a floating base: read_robot(..., floating=True)"
        )
    name = settings.friction_model
    return model if name is None else with_friction(model, friction_effects("linear"))


@dataclass(frozen=True, eq=False)
class _Choice:
    """A filter of signals and rows, and whether logged accelerations are taken."""

    filter: Filter
    logged: bool


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


def _with_filter(setup: FloatingSetup, choice: _Choice) -> FloatingSetup:
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
    setup, base_notes = _without_poor_base(setup, known, choice, settings)
    setup, radius_notes = _with_radius(setup, known, choice, settings, tell)
    checks = tuple(check_floating_log(setup, log, choice) for log in logs)
    setup = _with_filter(setup, choice)
    setup, friction_notes = _with_friction_chosen(setup, known, choice, settings, tell)
    samples, others = (tuple(_samples(setup, log, choice) for log in part) for part in (known, unseen))
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
    for name in ("frame", "frame_pose", "shape", "static", "ignore_torque", "gear_ratios"):
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


def _samples(setup: FloatingSetup, log: FloatingLog, choice: _Choice) -> Samples:
    return setup.samples(log, choice.filter, logged=choice.logged)


def choose_floating_filter(
    setup: FloatingSetup, logs: Sequence[FloatingLog], settings: Settings, tell: Tell = silent
) -> tuple[_Choice, tuple[Trial, ...]]:
    """Bands of signals and rows, source of velocity and acceleration: what predicts held-out rows best in one fixed band."""
    rate = min(log.joints.rate_hz for log in logs)
    logged = all(log.joints.velocity is not None for log in logs) and settings.velocity != "position"
    source: Any = "logged" if logged else "position"
    if settings.velocity == "logged" and not logged:
        raise InputError(f"{logs[0].joints.place} has no velocity columns, but --velocity logged was asked for")
    asked = settings.signal_band_hz
    signals = sorted({min(hz, MOST_SIGNAL * rate) for hz in SIGNALS_HZ}) if asked == "auto" else [float(asked)]
    least_s = min(log.joints.duration_s for log in logs)
    bands = [hz for hz in ROW_BANDS_HZ if hz < MOST_ROWS * rate and hz * least_s > 15.0]
    bands = bands if settings.cutoff_hz == "auto" else [float(settings.cutoff_hz)]
    if not bands or bands[-1] >= MOST_ROWS * rate:
        raise InputError(
            f"{logs[0].joints.place}: {least_s:.3g} s at {rate:.4g} Hz hold no band to choose, expected a log of 5 s or more and "
            f"--cutoff-hz below {MOST_ROWS * rate:.4g} Hz"
        )
    middle = min(bands, key=lambda band: abs(np.log(band / JUDGED_HZ)))
    derived = [_Choice(_filter(hz, middle, settings, source), False) for hz in signals]
    options = derived
    if all(log.has_accelerations for log in logs):
        wide = [AS_LOGGED * rate] if asked == "auto" else []
        options = [*derived, *(_Choice(_filter(hz, middle, settings, source), True) for hz in [*signals, *wide])]
    trials: dict[_Choice, float] = {}
    parts = [log.split(1.0 - HELD_OUT, _PARTS) for log in logs]

    def tried(choice: _Choice) -> float:
        if choice not in trials:
            tell(f"choosing the bands: {choice.filter.describe()}{', logged acceleration' if choice.logged else ''}")
            trials[choice] = _held_out_error(setup, setup.robot, parts, choice, min(JUDGED_HZ, bands[-1]))
        return trials[choice]

    if len(options) * len(bands) == 1:
        return options[0], ()
    best = min(options, key=tried)
    narrow = [band for band in bands if SIGNAL_OVER_ROWS * band <= best.filter.cutoff_hz] or bands[:1]
    rows = [replace(best, filter=replace(best.filter, row_band_hz=band, torque_cutoff_hz=band)) for band in narrow]
    rows = [best if one.filter == best.filter else one for one in rows]
    least = min(map(tried, rows))
    chosen = max((one for one in rows if tried(one) <= (1.0 + ALIKE) * least), key=lambda one: one.filter.band_hz)
    return chosen, tuple(Trial(one.filter, error) for one, error in trials.items())


def _filter(signal_hz: float, band_hz: float, settings: Settings, source: Any) -> Filter:
    return Filter(signal_hz, band_hz, settings.filter_order, source, row_band_hz=band_hz)


def _held_out_error(
    setup: FloatingSetup, robot: Robot, parts: Sequence[tuple[FloatingLog, FloatingLog]], choice: _Choice, judged_hz: float
) -> float:
    """Error of the fit in its own band on the held-out parts in the fixed band."""
    base = reduce_to_base(robot)

    def squares(logs: Sequence[FloatingLog], band_hz: float | None) -> Squares:
        own = replace(setup, plan=replace(setup.plan, band_hz=band_hz))
        return Squares.of(own.plan.source(robot, [_samples(own, log, choice) for log in logs]))

    beta = squares([first for first, _ in parts], choice.filter.row_band_hz).solve(base)
    return squares([rest for _, rest in parts], judged_hz).error(base, beta)


def _without_poor_base(
    setup: FloatingSetup, logs: Sequence[FloatingLog], choice: _Choice, settings: Settings
) -> tuple[FloatingSetup, tuple[str, ...]]:
    """Without the rows of a base that nothing pushes, where they contradict those of the joints.

    Their right side is zero: noise of the motion, in their left side, shrinks masses, and a model without mass explains them best.
    Joints have torque to show it by. Rows that only add knowledge move no value further than its uncertainty without them.
    """
    if setup.plan.feet or setup.forces:
        return setup, ()
    base, method = reduce_to_base(setup.robot), method_of(replace(settings, method="wls"), setup.robot, silent)
    carried = replace(setup, plan=replace(setup.plan, feet=(f"{setup.robot.links[0]}:flat",)))

    def found(own: FloatingSetup) -> Estimate:
        samples = [_samples(own, log, choice) for log in logs]
        return estimate(factorise(_with_filter(own, choice).plan.source(own.robot, samples)), base, method)

    alone = found(carried)
    known = alone.seen & (alone.sigma > 0.0)
    moved = (found(setup).base_values - alone.base_values)[known] / alone.sigma[known]
    size = float(np.linalg.norm(moved) / np.sqrt(max(len(moved), 1)))
    if size <= BASE_MOVES and alone.relative_error <= NO_SCALE:
        return setup, ()
    note = (
        f"the rows of the base are left out: nothing pushes it, so that noise of its motion shrinks masses (what joints know by themselves "
        f"would move by {size:.3g} times its uncertainty); what only the base shows, such as the mass of the trunk, is not known then: "
        "--mass states that of the whole robot, and a smoother measurement of the motion would bring the rows back"
    )
    return carried, (note,)


def _with_radius(
    setup: FloatingSetup, logs: Sequence[FloatingLog], choice: _Choice, settings: Settings, tell: Tell
) -> tuple[FloatingSetup, tuple[str, ...]]:
    """The radius of round feet that explains known rows best, where held-out rows are predicted better with it."""
    if settings.foot_radius != "auto" or not settings.feet:
        return setup, ()
    tell("looking for the radius of the feet")
    parts, judged = [log.split(1.0 - HELD_OUT, _PARTS) for log in logs], choice.filter.band_hz
    base = reduce_to_base(setup.robot)
    made = {first: [_samples(setup, pair[first], choice) for pair in parts] for first in (0, 1)}

    def squares(radius: float, part: int) -> Squares:
        return Squares.of(replace(setup.plan, band_hz=judged, foot_radius=radius).source(setup.robot, made[part]))

    def left(radius: float) -> float:
        known = squares(radius, 0)
        return known.error(base, known.solve(base)) ** 2

    grid = np.array(RADII)
    errors = [left(radius) for radius in grid]
    k = int(np.clip(np.argmin(errors), 1, len(grid) - 2))
    curve = np.polyfit(grid[k - 1 : k + 2], errors[k - 1 : k + 2], 2)
    found = float(np.clip(-0.5 * curve[1] / curve[0], 0.0, grid[-1])) if curve[0] > 0.0 else float(grid[np.argmin(errors)])
    plain, round_ = (squares(radius, 1).error(base, squares(radius, 0).solve(base)) for radius in (0.0, found))
    if not round_ < plain:
        return setup, ()
    note = (
        f"feet are round: radius {1e3 * found:.3g} mm found (held-out rows {100.0 * plain:.3g} % without, {100.0 * round_:.3g} % with it); "
        "--foot-radius states another"
    )
    return replace(setup, plan=replace(setup.plan, foot_radius=found)), (note,)


def _with_friction_chosen(
    setup: FloatingSetup, logs: Sequence[FloatingLog], choice: _Choice, settings: Settings, tell: Tell
) -> tuple[FloatingSetup, tuple[str, ...]]:
    """Linear friction, viscous friction or none: the richest that predicts held-out rows as well as the best, so that nothing is left out
    that intervals would not know of."""
    if settings.friction_model != "auto":
        return setup, ()
    tell("choosing the friction model")
    viscous = [effect for effect in (robot := setup.robot).effects if not effect.is_friction or effect.name == "viscous"]
    models = {"none": without_friction(robot), "viscous": robot.with_effects(viscous), "linear": robot}
    parts, judged = [log.split(1.0 - HELD_OUT, _PARTS) for log in logs], choice.filter.band_hz
    errors = {name: _held_out_error(setup, model, parts, choice, judged) for name, model in models.items()}
    chosen = next(name for name, error in reversed(errors.items()) if error <= (1.0 + ALIKE) * min(errors.values()))
    told = ", ".join(f"{name} {100.0 * error:.3g} %" for name, error in errors.items())
    return replace(setup, robot=models[chosen]), (f"friction model: {chosen} (held-out error of the rows: {told})",)


def _how(setup: FloatingSetup, log: FloatingLog, choice: _Choice) -> tuple[str, ...]:
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


def check_floating_log(setup: FloatingSetup, log: FloatingLog, choice: _Choice) -> DataCheck:
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


def _setup_of(run: IdentificationResult) -> tuple[FloatingSetup, _Choice]:
    """How a run made its rows."""
    assert run.filter is not None
    setup = FloatingSetup.of(run.robot, run.settings)
    return replace(setup, plan=run.rows), _Choice(run.filter, run.rows.acceleration == "logged")


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
    samples, others = (tuple(_samples(setup, log, choice) for log in part) for part in (known, unseen))
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
    other = [name for name in changes if name not in Reading.__dataclass_fields__]
    if other:
        raise InputError(
            f"setting '{other[0]}' was given, but logs of a floating robot are filtered as their run was: leave it out"
        )
    settings = replace(run.settings, **({"from_s": None, "to_s": None} | dict(changes)))
    setup, choice = _setup_of(run)
    logs = [read_floating_log(path, setup, settings, read_options(settings)) for path in paths]
    refuse_same(paths, [log.joints.source.sha256 for log in logs], seen=run.logs)
    samples = [_samples(setup, log, choice) for log in logs]
    return (
        floating_validation(run.rows, run.robot, run.estimate, samples),
        row_error(run.rows.source(run.robot, samples), run.estimate),
    )
