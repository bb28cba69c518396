"""Cut-off and velocity source, chosen by how well held-out **raw** torque is predicted.

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
from dynid.regression.factor import build_regression
from dynid.robot.model import Robot
from dynid.run.prepare import Filter, hold_still, split_recording, to_samples
from dynid.run.settings import Settings
from dynid.validation.torque import validate

_TRIAL_ROWS = 4_000
_CANDIDATES_HZ = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.5, 8.0, 10.0, 13.0, 17.0, 22.0, 30.0, 40.0, 60.0)


@dataclass(frozen=True)
class Trial:
    """One filter that was tried and its held-out error against raw torque."""

    filter: Filter
    error: float


def choose_filter(
    robot: Robot, base: BaseReduction, recordings: Sequence[Recording], settings: Settings, tell: Tell = silent
) -> tuple[Filter, tuple[Trial, ...]]:
    """The filter of a run: what the settings fix, and for the rest what predicts held-out raw torque best."""
    sources = _velocity_sources(recordings, settings)
    cutoffs = _cutoffs(recordings, settings)

    def option(source: str, place: int) -> Filter:
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
            tell(f"choosing the filter: {chosen.cutoff_hz:g} Hz, velocity {source}")
            trials[source, place] = Trial(chosen, _held_out_error(robot, base, parts, chosen))
        return trials[source, place]

    # The error has one valley over the cut-off: look at every third, then at the neighbours of the best.
    coarse = range(1 if len(cutoffs) > 3 else 0, len(cutoffs), 3)
    source, place = min(((s, p) for s in sources for p in coarse), key=lambda choice: tried(*choice).error)
    near = range(max(place - 2, 0), min(place + 3, len(cutoffs)))
    source, place = min(((source, p) for p in near), key=lambda choice: tried(*choice).error)
    ordered = sorted(trials.values(), key=lambda trial: (trial.filter.velocity, trial.filter.cutoff_hz))
    return trials[source, place].filter, tuple(ordered)


def _velocity_sources(recordings: Sequence[Recording], settings: Settings) -> tuple[str, ...]:
    logged = all(recording.velocity is not None for recording in recordings)
    if settings.velocity == "logged" and not logged:
        missing = next(recording.source.path for recording in recordings if recording.velocity is None)
        raise InputError(f"{missing} has no velocity columns, but --velocity logged was asked for")
    if settings.velocity != "auto":
        return (settings.velocity,)
    return ("logged", "position") if logged else ("position",)


def _cutoffs(recordings: Sequence[Recording], settings: Settings) -> tuple[float, ...]:
    if settings.cutoff_hz != "auto":
        return (float(settings.cutoff_hz),)
    rate = min(recording.rate_hz for recording in recordings)
    duration = min(recording.duration_s for recording in recordings)
    usable = tuple(f for f in _CANDIDATES_HZ if f < 0.4 * rate and f * duration * (1.0 - HELD_OUT) > 10.0)
    if not usable:
        raise InputError(f"logs of {duration:.3g} s at {rate:.3g} Hz are too short to choose a cut-off; give --cutoff-hz")
    return usable


def _held_out_error(
    robot: Robot, base: BaseReduction, parts: Sequence[tuple[Recording, Recording]], option: Filter
) -> float:
    known = hold_still([to_samples(first, option, _TRIAL_ROWS) for first, _ in parts])
    unseen = [to_samples(rest, option, _TRIAL_ROWS) for _, rest in parts]
    problem = LinearProblem.of(build_regression(robot, known), base, robot.parameters)
    beta = problem.solve(np.ones(len(problem.channels)))
    error = validate(robot, robot.parameters.with_values(base.lift @ beta), unseen).relative_error_raw
    return float("inf") if error is None or not np.isfinite(error) else error
