"""Logs of a robot on a floating base on the path of an identification: what is otherwise than for one that stands fixed.

Before the estimate they decide about bands, the source of velocity and acceleration, whether rows of the base serve, the radius of its
feet and its friction; by what predicts held-out rows best. Errors are those of the rows. A row filter acts behind the projection past the
forces of the feet, see :mod:`dynid.regression.floating_rows`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.arrays import Array, freeze
from dynid.engine import Tell, silent
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.result import Estimate
from dynid.finding import DataCheck
from dynid.model.friction import without_friction
from dynid.model.robot import Robot
from dynid.pipeline.filter_selection import ALIKE, MOST_ROWS, ROW_BANDS_HZ, Trial
from dynid.pipeline.floating_log import FloatingFile, FloatingLog, FloatingSetup, floating_parts
from dynid.pipeline.log import Data, Logs
from dynid.pipeline.options import Settings
from dynid.pipeline.robot_setup import method_of
from dynid.pipeline.row_plan import RowPlan
from dynid.pipeline.signal_filter import Filter
from dynid.regression.base import Squares, reduce_to_base
from dynid.regression.factor import factorise
from dynid.signals.measures import sensor_noise
from dynid.signals.samples import Samples, SampleStream
from dynid.validation.floating_check import check_base, check_feet, check_poses
from dynid.validation.prediction import PredictionError, Validation, predict, row_error

JUDGED_HZ = 8.0
"""The band in which filters are compared: a few times the pace of walking."""
SIGNALS_HZ, MOST_SIGNAL = (20.0, 40.0, 80.0), 0.2
"""Bands of signals that are tried, and the widest as a part of the sampling rate."""
SIGNAL_OVER_ROWS = 2.5
"""A band of signals is at least so many times that of the rows: one that is narrower bends the motion by more than intervals tell."""
HELD_OUT = 0.3
BASE_MOVES, NO_SCALE = 1.0, 0.3
"""Rows of a base that nothing pushes are left out where they move values by more than so many times their uncertainty without them, or
where the torque of the joints, which alone has the scale of all masses, is explained no better than to this relative error."""
RADII = (0.0, 0.01, 0.02, 0.03, 0.045, 0.06)
"""Radii of feet between which the best is looked for, m."""


def choose_floating_filter(
    logs: Sequence[FloatingLog], settings: Settings, tell: Tell = silent
) -> tuple[FloatingSetup, Filter, tuple[Trial, ...]]:
    """Bands of signals and rows, source of velocity and acceleration: what predicts held-out rows best in one fixed band.

    The setup is that of the logs, with the band of the rows and the source of accelerations in its plan.
    """
    setup, rate = logs[0].setup, min(log.joints.rate_hz for log in logs)
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
    behind = [Filter(hz, middle, settings.filter_order, source, row_band_hz=middle) for hz in signals]
    if asked == "auto":
        behind.append(replace(behind[0], cutoff_hz=0.5 * rate, order=0))  # signals as logged
    own_too = all(log.has_accelerations for log in logs)
    options = [(one, own) for own in ((False, True) if own_too else (False,)) for one in behind]
    trials: dict[tuple[Filter, bool], float] = {}
    parts = [log.split(1.0 - HELD_OUT) for log in logs]

    def tried(option: tuple[Filter, bool]) -> float:
        if option not in trials:
            filtered, own = option
            tell(f"choosing the bands: {filtered.describe()}{', logged acceleration' if own else ''}")
            trials[option] = _held_out_error(setup.filtered(*option), parts, filtered, min(JUDGED_HZ, bands[-1]))
        return trials[option]

    if len(options) * len(bands) == 1:
        return setup.filtered(*options[0]), options[0][0], ()
    few = (1.0 + ALIKE) * min(map(tried, options))
    best, own = min((one for one in options if tried(one) <= few), key=lambda one: (one[0].cutoff_hz, tried(one)))
    narrow = [band for band in bands if SIGNAL_OVER_ROWS * band <= best.cutoff_hz] or bands[:1]
    rows = [(replace(best, row_band_hz=band, torque_cutoff_hz=band), own) for band in narrow]
    least = min(map(tried, rows))
    chosen = max((one for one in rows if tried(one) <= (1.0 + ALIKE) * least), key=lambda one: one[0].band_hz)
    return setup.filtered(*chosen), chosen[0], tuple(Trial(one, error) for (one, _), error in trials.items())


def _squares(setup: FloatingSetup, logs: Sequence[FloatingLog], filtered: Filter, band_hz: float | None) -> Squares:
    """Normal equations of the rows of logs in a band."""
    samples = [replace(log, setup=setup).samples(filtered) for log in logs]
    return Squares.of(replace(setup.plan, band_hz=band_hz).source(setup.robot, samples))


def _held_out_error(
    setup: FloatingSetup, parts: Sequence[tuple[FloatingLog, FloatingLog]], filtered: Filter, judged_hz: float
) -> float:
    """Error of the fit in its own band on the held-out parts in the fixed band."""
    base = reduce_to_base(setup.robot)
    beta = _squares(setup, [first for first, _ in parts], filtered, filtered.row_band_hz).solve(base)
    return _squares(setup, [rest for _, rest in parts], filtered, judged_hz).error(base, beta)


def without_poor_base(
    setup: FloatingSetup, logs: Sequence[FloatingLog], filtered: Filter, settings: Settings, _tell: Tell = silent
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
        samples = [replace(log, setup=own).samples(filtered) for log in logs]
        return estimate(factorise(own.plan.source(own.robot, samples)), base, method)

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


def with_radius(
    setup: FloatingSetup, logs: Sequence[FloatingLog], filtered: Filter, settings: Settings, tell: Tell = silent
) -> tuple[FloatingSetup, tuple[str, ...]]:
    """The radius of round feet that explains known rows best, where held-out rows are predicted better with it."""
    if settings.foot_radius != "auto" or not settings.feet:
        return setup, ()
    tell("looking for the radius of the feet")
    base, parts = reduce_to_base(setup.robot), zip(*(log.split(1.0 - HELD_OUT) for log in logs), strict=True)
    made = [[replace(log, setup=setup).samples(filtered) for log in part] for part in parts]

    def squares(radius: float, part: int) -> Squares:
        return Squares.of(replace(setup.plan, foot_radius=radius).source(setup.robot, made[part]))

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


def with_friction_chosen(
    setup: FloatingSetup, logs: Sequence[FloatingLog], filtered: Filter, settings: Settings, tell: Tell = silent
) -> tuple[FloatingSetup, tuple[str, ...]]:
    """Linear friction, viscous friction or none: the richest that predicts held-out rows as well as the best, so that nothing is left out
    that intervals would not know of."""
    if settings.friction_model != "auto":
        return setup, ()
    tell("choosing the friction model")
    robot = setup.robot
    viscous = [effect for effect in robot.effects if not effect.is_friction or effect.name == "viscous"]
    models = {"none": without_friction(robot), "viscous": robot.with_effects(viscous), "linear": robot}
    parts, judged = [log.split(1.0 - HELD_OUT) for log in logs], filtered.band_hz
    errors = {name: _held_out_error(replace(setup, robot=model), parts, filtered, judged) for name, model in models.items()}
    chosen = next(name for name, error in reversed(errors.items()) if error <= (1.0 + ALIKE) * min(errors.values()))
    told = ", ".join(f"{name} {100.0 * error:.3g} %" for name, error in errors.items())
    return replace(setup, robot=models[chosen]), (f"friction model: {chosen} (held-out error of the rows: {told})",)


def choose_floating_model(
    data: Data, filtered: Filter, settings: Settings, checks: Sequence[DataCheck], tell: Tell = silent
) -> tuple[Data, tuple[DataCheck, ...], tuple[str, ...]]:
    """The logs with the robot that they decide on and its samples, what is wrong with base and feet besides, and what is to be told."""
    known = floating_parts(data.known)
    setup, notes = known[0].setup, _how(known[0], filtered)
    for choose in (without_poor_base, with_radius, with_friction_chosen):
        setup, more = choose(setup, known, filtered, settings, tell)
        notes += more
    data = with_setup(data, setup).filtered(filtered, settings.max_rows)
    check_poses(setup.robot, data.known.windows)
    firsts = [floating_parts(replace(data.logs, parts=(log,)))[0] for log in data.logs.parts]
    found = [check.merged(_check_base(log, filtered)) for check, log in zip(checks, firsts, strict=True)]
    return data, tuple(found), notes


def with_setup(data: Data, setup: FloatingSetup) -> Data:
    """All logs with another setup."""

    def changed(logs: Logs) -> Logs:
        parts = tuple(replace(log, setup=setup) for log in logs.parts if isinstance(log, FloatingLog | FloatingFile))
        return replace(logs, robot=setup.robot, parts=parts)

    return Data(changed(data.logs), changed(data.known), None if data.unseen is None else changed(data.unseen))


def _how(log: FloatingLog, filtered: Filter) -> tuple[str, ...]:
    """How the rows were made, in words."""
    setup = log.setup
    motion = setup.motion(log, log.filtered_base(filtered))
    notes = [f"the root link floats; its motion is that of {motion.source}"]
    if log.has_accelerations:
        what = "taken as logged" if setup.logged else "not used: rates of velocities predict held-out rows better"
        notes.append(f"logged accelerations are {what}")
    if setup.plan.feet:
        count = sum(foot.size for foot in setup.plan.contact_frames(setup.robot))
        named = ", ".join(name.partition(":")[0] for name in setup.plan.feet)
        most = f"up to {count} of {setup.robot.n_dof} rows of a sample"
        notes.append(f"unknown forces at {named} are taken out of the rows: {most}")
    return tuple(notes)


def _check_base(log: FloatingLog, filtered: Filter) -> DataCheck:
    """What is wrong with the base and the feet of a log."""
    setup = replace(log.setup, plan=replace(log.setup.plan, imu=()))  # as it is logged
    made = replace(log, setup=setup).filtered_base(filtered)
    motion = setup.motion(log, made)
    found = [*check_base(made, log.columns, motion, setup.gravity, setup.imu_pose)]
    if setup.plan.feet and not setup.carried and motion.velocity is not None:
        samples = setup.samples(log, filtered, margin_s=0.0)
        moved = np.column_stack([np.interp(samples.time, made.time, column) for column in motion.velocity.T])
        found += check_feet(setup.robot, setup.plan.contact_frames(setup.robot), samples, moved)
    return DataCheck(tuple(found), {})


def floating_errors(plan: RowPlan, robot: Robot, found: Estimate, logs: Logs) -> Validation:
    """How well rows are explained, filtered and as they are: of all samples together, and of each log."""
    samples = logs.samples

    def error(own: Sequence[Samples | SampleStream]) -> PredictionError:
        total = row_error(plan.source(robot, own), found)
        raw = row_error(replace(plan, band_hz=None).source(robot, own), found).relative_error
        rows = sum(len(one) if isinstance(one, Samples) else sum(map(len, one)) for one in own)
        counts = freeze(total.rmse), freeze(total.relative_error_per_channel), rows
        return PredictionError(total.relative_error, raw, *counts)

    return Validation(error(samples), tuple(error([one]) for one in samples), robot.dof_names)


def row_noise(plan: RowPlan, model: Robot, logs: Logs, filtered: Filter, torque: Array) -> tuple[Array, Array]:
    """Root mean square that noise leaves in the rows of a log, channel by channel: that of torque alone in rows without a filter, and that
    of all sensors in rows as they are judged.

    Noise as large as that of the log is added to it once more, and what it changes is counted. ``torque`` is that of its torque.
    """
    log, rng = floating_parts(logs)[0], np.random.default_rng(0)
    plain = log.samples(filtered)

    def noisier(values: Array) -> Array:
        return np.asarray(values + sensor_noise([values]) * rng.standard_normal(values.shape))

    def residual(own: RowPlan, samples: Samples) -> list[Array]:
        rows = own.source(model, [samples])
        values = [np.append(-channel.values(model.parameters.values), 1.0) for channel in rows.channels]
        chunks = [[block @ one for block, one in zip(chunk.blocks, values, strict=True)] for chunk in rows.passes()]
        return [np.concatenate(parts) for parts in zip(*chunks, strict=True)]

    def changed(own: RowPlan, samples: Samples) -> Array:
        assert samples.torque is not None
        shaken = samples.with_torque(samples.torque + torque * rng.standard_normal(samples.torque.shape))
        pairs = zip(residual(own, plain), residual(own, shaken), strict=True)
        return np.array([np.sqrt(np.square(after - before).mean()) for before, after in pairs])

    joints = log.joints
    speed = None if joints.velocity is None else noisier(joints.velocity)
    moved = joints.with_(position=noisier(joints.position), velocity=speed)
    base = log.base.with_(position=noisier(log.base.position))
    return changed(replace(plan, band_hz=None), plain), changed(plan, replace(log, rows=moved, base=base).samples(filtered))


def trunk_wrench(model: Robot, samples: Samples) -> Array:
    """Root mean square of the wrench that the trunk by itself needs, N and N m."""
    values = model.parameters.values.copy()
    values[10:] = 0.0
    alone = predict(model.with_parameters(model.parameters.with_values(values)), samples)
    return np.asarray(np.sqrt(np.square(alone[:, :6]).mean(axis=0)))
