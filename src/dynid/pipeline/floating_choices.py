"""What the logs of a robot on a floating base decide before the estimate: bands, source of velocity and acceleration, whether rows of the
base serve, the radius of its feet and its friction; by what predicts held-out rows best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.engine import Tell, silent
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.result import Estimate
from dynid.model.friction import without_friction
from dynid.model.robot import Robot
from dynid.pipeline.estimate_rows import method_of
from dynid.pipeline.filter_selection import ALIKE, MOST_ROWS, ROW_BANDS_HZ, Trial
from dynid.pipeline.floating_data import FloatingLog, FloatingSetup
from dynid.pipeline.options import Settings
from dynid.pipeline.signal_filter import Filter
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import factorise
from dynid.regression.squares import Squares
from dynid.signals.samples import Samples

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


@dataclass(frozen=True, eq=False)
class FloatingChoice:
    """A filter of signals and rows, and whether logged accelerations are taken."""

    filter: Filter
    logged: bool

    def samples(self, setup: FloatingSetup, log: FloatingLog) -> Samples:
        """Samples of a log behind this filter."""
        return setup.samples(log, self.filter, logged=self.logged)


def choose_floating_filter(
    setup: FloatingSetup, logs: Sequence[FloatingLog], settings: Settings, tell: Tell = silent
) -> tuple[FloatingChoice, tuple[Trial, ...]]:
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
    derived = [FloatingChoice(_filter(hz, middle, settings, source), False) for hz in signals]
    options = derived
    if all(log.has_accelerations for log in logs):
        wide = [AS_LOGGED * rate] if asked == "auto" else []
        options = [*derived, *(FloatingChoice(_filter(hz, middle, settings, source), True) for hz in [*signals, *wide])]
    trials: dict[FloatingChoice, float] = {}
    parts = [log.split(1.0 - HELD_OUT, _PARTS) for log in logs]

    def tried(choice: FloatingChoice) -> float:
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
    setup: FloatingSetup,
    robot: Robot,
    parts: Sequence[tuple[FloatingLog, FloatingLog]],
    choice: FloatingChoice,
    judged_hz: float,
) -> float:
    """Error of the fit in its own band on the held-out parts in the fixed band."""
    base = reduce_to_base(robot)

    def squares(logs: Sequence[FloatingLog], band_hz: float | None) -> Squares:
        own = replace(setup, plan=replace(setup.plan, band_hz=band_hz))
        return Squares.of(own.plan.source(robot, [choice.samples(own, log) for log in logs]))

    beta = squares([first for first, _ in parts], choice.filter.row_band_hz).solve(base)
    return squares([rest for _, rest in parts], judged_hz).error(base, beta)


def without_poor_base(
    setup: FloatingSetup, logs: Sequence[FloatingLog], choice: FloatingChoice, settings: Settings
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
        samples = [choice.samples(own, log) for log in logs]
        plan = replace(own.plan, band_hz=choice.filter.row_band_hz)
        return estimate(factorise(plan.source(own.robot, samples)), base, method)

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
    setup: FloatingSetup, logs: Sequence[FloatingLog], choice: FloatingChoice, settings: Settings, tell: Tell
) -> tuple[FloatingSetup, tuple[str, ...]]:
    """The radius of round feet that explains known rows best, where held-out rows are predicted better with it."""
    if settings.foot_radius != "auto" or not settings.feet:
        return setup, ()
    tell("looking for the radius of the feet")
    parts, judged = [log.split(1.0 - HELD_OUT, _PARTS) for log in logs], choice.filter.band_hz
    base = reduce_to_base(setup.robot)
    made = {first: [choice.samples(setup, pair[first]) for pair in parts] for first in (0, 1)}

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


def with_friction_chosen(
    setup: FloatingSetup, logs: Sequence[FloatingLog], choice: FloatingChoice, settings: Settings, tell: Tell
) -> tuple[FloatingSetup, tuple[str, ...]]:
    """Linear friction, viscous friction or none: the richest that predicts held-out rows as well as the best, so that nothing is left out
    that intervals would not know of."""
    if settings.friction_model != "auto":
        return setup, ()
    tell("choosing the friction model")
    robot = setup.robot
    viscous = [effect for effect in robot.effects if not effect.is_friction or effect.name == "viscous"]
    models = {"none": without_friction(robot), "viscous": robot.with_effects(viscous), "linear": robot}
    parts = [log.split(1.0 - HELD_OUT, _PARTS) for log in logs]
    judged = choice.filter.band_hz
    errors = {name: _held_out_error(setup, model, parts, choice, judged) for name, model in models.items()}
    chosen = next(name for name, error in reversed(errors.items()) if error <= (1.0 + ALIKE) * min(errors.values()))
    told = ", ".join(f"{name} {100.0 * error:.3g} %" for name, error in errors.items())
    return replace(setup, robot=models[chosen]), (f"friction model: {chosen} (held-out error of the rows: {told})",)
