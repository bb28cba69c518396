"""Cut-off, velocity source and window, chosen by how well held-out **raw** torque is predicted.

The error against filtered torque falls with the cut-off by itself, so it cannot choose; raw torque can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.errors import InputError
from dynid.estimation.linear import LinearProblem
from dynid.progress import Tell, silent
from dynid.recording.check import HELD_OUT
from dynid.recording.recording import Recording
from dynid.regression.base import BaseReduction
from dynid.regression.factor import build_regression, factorise
from dynid.robot.model import Robot
from dynid.run.options import Rows
from dynid.run.rows import approximation
from dynid.run.signals import (
    SAVITZKY_GOLAY,
    Filter,
    hold_still,
    raw_samples,
    savgol_band_hz,
    savgol_numbers,
    split_recording,
    to_samples,
    velocity_sources,
)
from dynid.validation.torque import validate

_TRIAL_ROWS = 4_000
_CANDIDATES_HZ = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.5, 8.0, 10.0, 13.0, 17.0, 22.0, 30.0, 40.0, 60.0)


@dataclass(frozen=True)
class Trial:
    """One filter that was tried and its held-out error against raw torque."""

    filter: Filter
    error: float


def choose_filter(
    robot: Robot, base: BaseReduction, recordings: Sequence[Recording], settings: Rows, tell: Tell = silent
) -> tuple[Filter, tuple[Trial, ...]]:
    """The filter of a run: what the settings fix, and for the rest what predicts held-out raw torque best."""
    sources = velocity_sources(recordings, settings)
    smoothing = savgol_numbers(settings.filter)
    cutoffs = (0.0,) if smoothing is not None else _cutoffs(recordings, settings)

    def option(source: str, place: int) -> Filter:
        if smoothing is not None:
            window, order = smoothing
            band = savgol_band_hz(window, order, min(recording.rate_hz for recording in recordings))
            return Filter(band, band, order, source, SAVITZKY_GOLAY, window)  # type: ignore[arg-type]
        cutoff = cutoffs[place]
        return Filter(cutoff, settings.torque_cutoff_hz or cutoff, settings.filter_order, source)  # type: ignore[arg-type]

    if len(sources) * len(cutoffs) == 1:
        return option(sources[0], 0), ()
    names = ("part that a filter is tried on", "part held out to choose the filter by")
    parts = [split_recording(recording, 1.0 - HELD_OUT, names) for recording in recordings]
    trials: dict[tuple[str, int], Trial] = {}

    def tried(source: str, place: int) -> Trial:
        if (source, place) not in trials:
            chosen = option(source, place)
            tell(f"choosing the filter: {chosen.describe()}")
            trials[source, place] = Trial(chosen, _held_out_error(robot, base, parts, chosen))
        return trials[source, place]

    # The error has one valley over the cut-off: look at every third, then at the neighbours of the best.
    coarse = range(1 if len(cutoffs) > 3 else 0, len(cutoffs), 3)
    source, place = min(((s, p) for s in sources for p in coarse), key=lambda choice: tried(*choice).error)
    near = range(max(place - 2, 0), min(place + 3, len(cutoffs)))
    source, place = min(((source, p) for p in near), key=lambda choice: tried(*choice).error)
    ordered = sorted(trials.values(), key=lambda trial: (trial.filter.velocity, trial.filter.cutoff_hz))
    return trials[source, place].filter, tuple(ordered)


def _cutoffs(recordings: Sequence[Recording], settings: Rows) -> tuple[float, ...]:
    if settings.cutoff_hz != "auto":
        return (float(settings.cutoff_hz),)
    rate = min(recording.rate_hz for recording in recordings)
    duration = min(recording.duration_s for recording in recordings)
    usable = tuple(f for f in _CANDIDATES_HZ if f < 0.4 * rate and f * duration * (1.0 - HELD_OUT) > 10.0)
    if not usable:
        raise InputError(f"logs of {duration:.3g} s at {rate:.3g} Hz are too short to choose a cut-off; give --cutoff-hz")
    return usable


WINDOWS_S = (0.02, 0.03, 0.044, 0.06, 0.084, 0.12, 0.17, 0.24, 0.34, 0.48)
"""Windows of the polynomial approximation that are tried."""
LEAST_WINDOW_ROWS = 6


def choose_window(
    robot: Robot,
    base: BaseReduction,
    recordings: Sequence[Recording],
    filtered: Filter,
    settings: Rows,
    tell: Tell = silent,
) -> float | None:
    """Window of the polynomial approximation: None where the settings fix it, else what predicts held-out raw torque best."""
    if settings.window != "auto":
        return None
    from dynid.regression.polynomial_rows import PolynomialRows

    rate = min(recording.rate_hz for recording in recordings)
    longest = 0.1 * min(recording.duration_s for recording in recordings)
    usable = [length for length in WINDOWS_S if length * rate >= LEAST_WINDOW_ROWS and length < longest]
    if not usable:
        raise InputError(f"logs at {rate:.3g} Hz are too short or too slow to choose a window; give --window")
    parts = [split_recording(recording, 1.0 - HELD_OUT) for recording in recordings]
    known = tuple(raw_samples(first) for first, _ in parts)
    unseen = [to_samples(rest, filtered, _TRIAL_ROWS) for _, rest in parts]

    def error(length: float) -> float:
        tell(f"choosing the window: {1e3 * length:.0f} ms")
        every = max(1, sum(len(one) for one in known) // _TRIAL_ROWS)
        rows = PolynomialRows(robot, known, approximation(settings, length), settings.composition, every=every)
        problem = LinearProblem.of(factorise(rows), base, robot.parameters)
        beta = problem.solve(np.ones(len(problem.channels)))
        found = validate(robot, robot.parameters.with_values(base.lift @ beta), unseen).relative_error_raw
        return float("inf") if found is None or not np.isfinite(found) else found

    return min(usable, key=error)


def _held_out_error(
    robot: Robot, base: BaseReduction, parts: Sequence[tuple[Recording, Recording]], option: Filter
) -> float:
    known = hold_still([to_samples(first, option, _TRIAL_ROWS) for first, _ in parts])
    unseen = [to_samples(rest, option, _TRIAL_ROWS) for _, rest in parts]
    problem = LinearProblem.of(build_regression(robot, known), base, robot.parameters)
    beta = problem.solve(np.ones(len(problem.channels)))
    error = validate(robot, robot.parameters.with_values(base.lift @ beta), unseen).relative_error_raw
    return float("inf") if error is None or not np.isfinite(error) else error
