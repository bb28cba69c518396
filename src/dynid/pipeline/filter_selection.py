"""What is left open of a filter, chosen by the data: bands, cut-off, velocity source, window.

Where rows are filtered there are two bands. The *signal band* reaches to where the spectrum of position meets the floor of its
noise or quantisation: a wider one lets noise into the regressor, a narrower one bends the motion, at reversals most of all. The
*row band* is the one whose fit predicts held-out torque best, judged in one fixed band for all, so that no band is preferred for
judging itself.

Where signals are filtered, cut-off, velocity source and window are chosen by how well held-out **raw** torque is predicted: the
error against filtered torque falls with the cut-off by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from dynid.arrays import Array
from dynid.engine import Tell, silent
from dynid.errors import InputError
from dynid.estimation.friction.fit import fit_nonlinear_friction
from dynid.estimation.friction.selection import FILTER_MEMORY
from dynid.estimation.linear import LinearProblem
from dynid.model.effects.friction_models import modelled_effects
from dynid.model.friction import with_friction
from dynid.model.robot import Robot
from dynid.pipeline.log import hold_still
from dynid.pipeline.options import Settings
from dynid.pipeline.row_plan import RowPlan, approximation, plan_rows
from dynid.pipeline.signal_filter import (
    SAVITZKY_GOLAY,
    STILL,
    Filter,
    as_recorded,
    repairs,
    savgol_band_hz,
    savgol_numbers,
    to_samples,
    velocity_sources,
)
from dynid.regression.base import LONG_CHAIN, BaseReduction, Squares, reduce_to_base
from dynid.regression.factor import Regression, build_regression, factorise, factorise_whole
from dynid.regression.row_filter import ROWS_PER_BAND, BandLimit, FilteredRows
from dynid.regression.row_source import RowSource
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.butterworth import filter_window
from dynid.signals.checks import HELD_OUT as HELD_OUT_SHARE
from dynid.signals.checks import SHORTEST_S
from dynid.signals.process import process
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples
from dynid.signals.steps.filters import EDGE_S
from dynid.signals.steps.step import uninterrupted_parts
from dynid.validation.prediction import validate

ROW_BANDS_HZ = (3.0, 5.0, 8.0, 12.0, 20.0, 30.0)
"""Bands of the rows that are tried."""
JUDGED_HZ = 5.0
"""The band in which they are judged: that of the published figures, and of what controllers follow."""
ALIKE = 0.01
"""Bands whose held-out errors differ by less than this part of the best are alike; the widest of them is taken."""
BEHIND = 0.05
"""A band whose held-out error is larger than the best by this part lies behind the valley, and wider ones are not tried."""
ABOVE_FLOOR = 4.0
"""Power over that of the noise floor down to which the spectrum of position is motion."""
LEAST_SIGNAL_HZ, SIGNAL_OVER_ROWS = 10.0, 4.0
"""The signal band is never narrower than this, nor than so many times the row band: the row filter takes out the noise above its band
anyway, but a narrow filter of signals bends reversals, and friction and rotor inertia with them, by more than held-out errors tell."""
NARROWER_HZ = (15.0, 30.0)
"""Signal bands that are tried beside the one that the spectrum shows."""
MOST_ROWS = 0.4
"""Of the sampling rate: the widest band that can be asked for."""
MOST_SIGNAL = 0.2
"""Of the sampling rate: differences over fewer samples are mostly noise, whatever the spectrum says."""
SAMPLES_PER_BAND, SAMPLES_PER_SIGNAL = 40.0, 5.0
"""Samples kept per period of the row band, and of the signal band, while bands are compared."""
WIDTHS_HZ = 12.0
"""Band in which the width of friction's turn is found before bands are compared."""
TRIAL_S = 40.0
"""Seconds of a log, at most, that the bands are chosen on."""


@dataclass(frozen=True)
class Trial:
    """A filter that was tried, and its held-out error: in the fixed band where rows are filtered, else against raw torque."""

    filter: Filter
    error: float


def choose_bands(
    robot: Robot, recordings: Sequence[Recording], settings: Settings, tell: Tell = silent
) -> tuple[Filter, tuple[Trial, ...]]:
    """The bands and the velocity source of a run: what the settings fix, and the rest by the data."""
    rate_hz = min(recording.rate_hz for recording in recordings)
    bands = _row_bands(robot, recordings, settings, rate_hz)
    sources = velocity_sources(recordings, settings)
    tell("choosing the bands: noise of the positions")
    signals = _signal_bands(recordings, settings, rate_hz)

    def option(source: str, signal: float, band: float) -> Filter:
        if settings.signal_band_hz == "auto":
            signal = min(max(signal, SIGNAL_OVER_ROWS * band, LEAST_SIGNAL_HZ), MOST_SIGNAL * rate_hz)
        return Filter(signal, band, settings.filter_order, source, row_band_hz=band)  # type: ignore[arg-type]

    middle = _nearest(bands, JUDGED_HZ)
    first = list(dict.fromkeys(option(source, signal, middle) for source in sources for signal in signals))
    if len(first) * len(bands) == 1:
        return first[0], ()
    names = ("part that bands are tried on", "part held out to choose the bands by")
    parts = [_shortened(recording).split(1.0 - HELD_OUT_SHARE, names) for recording in recordings]
    model = _trial_model(robot, parts, option(sources[-1], signals[-1], _nearest(bands, WIDTHS_HZ)))
    base, judged_hz = reduce_to_base(model), min(JUDGED_HZ, bands[-1])
    trials: dict[Filter, float] = {}

    # samples to fit to, and rows that are held out in the fixed band: row bands share their signals
    made: dict[tuple[float, str], tuple[tuple[Samples, ...], Regression | Squares]] = {}

    def tried(chosen: Filter) -> float:
        if chosen not in trials:
            tell(f"choosing the bands: {chosen.describe()}")
            signals_of = chosen.cutoff_hz, chosen.velocity
            if signals_of not in made:
                known = hold_still([to_samples(first, chosen, 0) for first, _ in parts])
                rows = _rows(model, [to_samples(rest, chosen, 0) for _, rest in parts], chosen, judged_hz)
                made[signals_of] = known, Squares.of(rows) if base.n_base > LONG_CHAIN else factorise_whole(rows)
            trials[chosen] = _held_out_error(model, base, *made[signals_of], chosen)
            if trials[chosen] > min(trials.values()):
                del made[signals_of]  # hardly needed again, and large for a long chain
        return trials[chosen]

    # signal band and velocity source at one row band, then the row band
    best = min(
        _alike([_valley([one for one in first if one.velocity == source], tried) for source in sources], tried),
        key=lambda chosen: chosen.cutoff_hz,
    )
    narrow, wide = (
        [option(best.velocity, best.cutoff_hz, band) for band in bands if (band >= middle) is up] for up in (False, True)
    )
    chosen = max(_alike([narrow, _valley(wide, tried)], tried), key=lambda one: one.band_hz)
    return chosen, tuple(Trial(f, e) for f, e in trials.items())


def _valley(options: Sequence[Filter], tried: Callable[[Filter], float]) -> list[Filter]:
    """Options from narrow to wide up to the first behind the valley: distortion falls with the band and noise grows, so there is one."""
    found: list[Filter] = []
    for one in options:
        found.append(one)
        if tried(one) > (1.0 + BEHIND) * min(map(tried, found)):
            break
    return found


def _alike(valleys: Sequence[Sequence[Filter]], tried: Callable[[Filter], float]) -> list[Filter]:
    """Those whose error is as good as the best of all."""
    known = [one for valley in valleys for one in valley]
    least = min(map(tried, known))
    return [one for one in known if tried(one) <= (1.0 + ALIKE) * least]


def _signal_bands(recordings: Sequence[Recording], settings: Settings, rate_hz: float) -> tuple[float, ...]:
    """Signal bands to try, the widest last: where the spectrum meets its noise, and narrower ones.

    A clock that jitters and rows that repeat put power where neither motion nor white noise is, and the spectrum alone
    would take it for motion.
    """
    if settings.signal_band_hz != "auto":
        return (float(settings.signal_band_hz),)
    floor_hz = max(signal_band_hz(recording) for recording in recordings)
    widest = min(max(floor_hz, LEAST_SIGNAL_HZ), MOST_SIGNAL * rate_hz)
    return (*(f for f in NARROWER_HZ if f < 0.8 * widest), widest)


def signal_band_hz(recording: Recording) -> float:
    """Frequency up to which the position of some joint is more than noise."""
    samples = process(recording, as_recorded(repairs(recording)))
    period_s = samples.duration_s / max(len(samples) - 1, 1)
    q = samples.position
    moving = np.ptp(q, axis=0) > STILL
    if not moving.any() or len(q) < 64:
        return LEAST_SIGNAL_HZ
    return float(max(_motion_band(column, period_s) for column in q[:, moving].T))


def _motion_band(position: Array, period_s: float) -> float:
    """Highest frequency at which the second difference of a position exceeds what white noise on it would show.

    Differences turn the steep spectrum of a motion into one that windows do not smear over the noise.
    """
    second = np.diff(position, 2)
    n = len(second)
    power = np.abs(np.fft.rfft(second * np.hanning(n))) ** 2
    frequency = np.fft.rfftfreq(n, period_s)
    # white noise of position has this shape after two differences
    shape = np.maximum((2.0 * np.sin(np.pi * frequency * period_s)) ** 4, 1e-300)
    edges = np.geomspace(max(1.0 / (n * period_s), 0.2), 0.5 / period_s, 60)
    band = np.digitize(frequency, edges)
    middle, level = [], []
    for k in range(1, len(edges)):
        inside = band == k
        if inside.any():
            middle.append(float(np.sqrt(edges[k - 1] * edges[k])))
            level.append(float(np.mean(power[inside] / shape[inside])))
    floor = float(np.median(level[-max(4, len(level) // 8) :]))
    above = [f for f, p in zip(middle, level, strict=True) if p > ABOVE_FLOOR * floor]
    return max(above, default=LEAST_SIGNAL_HZ)


def _row_bands(robot: Robot, recordings: Sequence[Recording], settings: Settings, rate_hz: float) -> tuple[float, ...]:
    """Row bands to try, the widest last: periods enough to hold some out, and rows enough for the parameters."""
    if settings.cutoff_hz != "auto":
        if settings.cutoff_hz >= MOST_ROWS * rate_hz:
            slowest = min(recordings, key=lambda recording: recording.rate_hz).place
            raise InputError(
                f"{slowest}: a band of {settings.cutoff_hz:g} Hz is asked for, expected less than {MOST_ROWS * rate_hz:.4g} Hz, "
                f"{MOST_ROWS:g} of its sampling rate"
            )
        return (float(settings.cutoff_hz),)
    shortest = min(recordings, key=lambda recording: recording.duration_s)
    used_s = [(1.0 - HELD_OUT_SHARE) * min(recording.duration_s, TRIAL_S) for recording in recordings]
    asked = len(robot.parameters) / (ROWS_PER_BAND * robot.n_dof)

    def is_usable(band_hz: float) -> bool:
        left_s = sum(max(one - 2.0 * EDGE_S - 1.0 / band_hz, 0.0) for one in used_s)
        return band_hz < 0.2 * rate_hz and band_hz * min(used_s) > 10.0 and band_hz * left_s > asked

    usable = tuple(band_hz for band_hz in ROW_BANDS_HZ if is_usable(band_hz))
    if not usable:
        raise InputError(
            f"{shortest.place}: {shortest.duration_s:.3g} s at {rate_hz:.4g} Hz are too short to choose a band for "
            f"{len(robot.parameters)} parameters; record a longer motion, 10 s and more"
            + (", or give --cutoff-hz" if shortest.duration_s >= SHORTEST_S else "")
        )
    return usable


def _trial_model(robot: Robot, parts: Sequence[tuple[Recording, Recording]], option: Filter) -> Robot:
    """The robot with smooth friction whose widths fit in one band: what reversals leave must not decide about bands."""
    if modelled_effects().isdisjoint(effect.name for effect in robot.effects):
        return robot
    smooth = with_friction(robot, "smooth")
    known = hold_still([to_samples(first, option, 0) for first, _ in parts])
    # settled, where that is cheap: what a search that ended early leaves by chance would decide between bands that are nearly alike
    return fit_nonlinear_friction(smooth, known, option.row_filter, finish=reduce_to_base(smooth).n_base <= LONG_CHAIN)


def _nearest(bands: Sequence[float], wanted: float) -> float:
    return min(bands, key=lambda band: abs(np.log(band / wanted)))


def _shortened(recording: Recording) -> Recording:
    """The middle of a long log."""
    spare = recording.duration_s - TRIAL_S
    if spare <= 0.0:
        return recording
    start = float(recording.time[0]) + 0.5 * spare
    first, last = np.searchsorted(recording.time, [start, start + TRIAL_S])
    return recording.rows(int(first), int(last))


def _held_out_error(
    robot: Robot, base: BaseReduction, known: Sequence[Samples], held_out: Regression | Squares, option: Filter
) -> float:
    """Error of the fit in its own band on the held-out parts in the fixed band."""
    rows = _rows(robot, known, option, option.band_hz)
    if isinstance(held_out, Squares):
        return held_out.error(base, Squares.of(rows).solve(base))
    found = LinearProblem.of(factorise_whole(rows), base, robot.parameters).solve()
    values = np.concatenate([base.lift @ found, [-1.0]])
    left = [held_out.channel_matrix(j) @ values for j in range(len(held_out.factors))]
    error = float(np.sqrt(sum(float(r @ r) for r in left)) / np.linalg.norm(held_out.torque_norms))
    return error if np.isfinite(error) else float("inf")


def _rows(robot: Robot, samples: Sequence[Samples], option: Filter, band_hz: float) -> RowSource:
    """Filtered rows of as many samples as hold both bands: comparing bands needs no more."""
    rate_hz = max(SAMPLES_PER_BAND * band_hz, SAMPLES_PER_SIGNAL * option.cutoff_hz)
    thinned = tuple(part for one in samples for part in _thinned(one, rate_hz))
    return FilteredRows(TorqueRows(robot, thinned), BandLimit(band_hz))


def _thinned(samples: Samples, rate_hz: float) -> list[Samples]:
    """Parts without a gap with one sample of several, so that at least ``rate_hz`` is left.

    Motion is within the signal band already; torque is as recorded, so it is filtered for the lower rate first.
    """
    found = []
    for period_s, pieces in uninterrupted_parts([samples]):
        part = reduce(Samples.joined, pieces)
        every = int(1.0 / (rate_hz * period_s) + 1e-9)
        if every > 1 and part.torque is not None:
            torque = filter_window(part.torque, 4, 0.6 / every, True, True, "a part of the samples without a gap")
            part = replace(part, torque=torque)[::every]
        found.append(part)
    return found


_TRIAL_ROWS = 4_000
_CANDIDATES_HZ = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.5, 8.0, 10.0, 13.0, 17.0, 22.0, 30.0, 40.0, 60.0)


def choose_filter(
    robot: Robot, base: BaseReduction, recordings: Sequence[Recording], settings: Settings, tell: Tell = silent
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
    parts = [recording.split(1.0 - HELD_OUT_SHARE, names) for recording in recordings]
    trials: dict[tuple[str, int], Trial] = {}

    def tried(source: str, place: int) -> Trial:
        if (source, place) not in trials:
            chosen = option(source, place)
            tell(f"choosing the filter: {chosen.describe()}")
            known = build_regression(robot, hold_still([to_samples(first, chosen, _TRIAL_ROWS) for first, _ in parts]))
            unseen = [to_samples(rest, chosen, _TRIAL_ROWS) for _, rest in parts]
            trials[source, place] = Trial(chosen, _raw_error(known, base, robot, unseen))
        return trials[source, place]

    # The error has one valley over the cut-off: look at every third, then at the neighbours of the best.
    coarse = range(1 if len(cutoffs) > 3 else 0, len(cutoffs), 3)
    source, place = min(((s, p) for s in sources for p in coarse), key=lambda choice: tried(*choice).error)
    near = range(max(place - 2, 0), min(place + 3, len(cutoffs)))
    source, place = min(((source, p) for p in near), key=lambda choice: tried(*choice).error)
    ordered = sorted(trials.values(), key=lambda trial: (trial.filter.velocity, trial.filter.cutoff_hz))
    return trials[source, place].filter, tuple(ordered)


def _cutoffs(recordings: Sequence[Recording], settings: Settings) -> tuple[float, ...]:
    if settings.cutoff_hz != "auto":
        return (float(settings.cutoff_hz),)
    rate = min(recording.rate_hz for recording in recordings)
    duration = min(recording.duration_s for recording in recordings)
    usable = tuple(f for f in _CANDIDATES_HZ if f < 0.4 * rate and f * duration * (1.0 - HELD_OUT_SHARE) > 10.0)
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
    settings: Settings,
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
    parts = [recording.split(1.0 - HELD_OUT_SHARE) for recording in recordings]
    known = tuple(process(first, as_recorded(repairs(first))) for first, _ in parts)
    unseen = [to_samples(rest, filtered, _TRIAL_ROWS) for _, rest in parts]

    def error(length: float) -> float:
        tell(f"choosing the window: {1e3 * length:.0f} ms")
        every = max(1, sum(len(one) for one in known) // _TRIAL_ROWS)
        rows = PolynomialRows(robot, known, approximation(settings, length), settings.composition, every=every)
        return _raw_error(factorise(rows), base, robot, unseen)

    return min(usable, key=error)


def _raw_error(known: Regression, base: BaseReduction, robot: Robot, unseen: Sequence[Samples]) -> float:
    """Error of the fit to some rows on raw torque that they do not hold."""
    beta = LinearProblem.of(known, base, robot.parameters).solve()
    error = validate(robot, robot.parameters.with_values(base.lift @ beta), unseen).relative_error_raw
    return float("inf") if error is None or not np.isfinite(error) else error


def chosen_filter(
    robot: Robot, recordings: Sequence[Recording], settings: Settings, tell: Tell = silent
) -> tuple[Filter, tuple[Trial, ...]]:
    """The filter of a run: bands of signals and rows, or one cut-off for all signals where those are filtered."""
    if settings.filter_on == "signals" or settings.filter != "butterworth":
        return choose_filter(robot, reduce_to_base(robot), recordings, settings, tell)
    if settings.torque_cutoff_hz is not None:
        raise InputError(
            "--torque-cutoff-hz is a cut-off of signals, but rows are filtered: add --filter-on signals to filter signals instead"
        )
    return choose_bands(robot, recordings, settings, tell)


def planned(
    settings: Settings, robot: Robot, recordings: Sequence[Recording], filtered: Filter | None, tell: Tell = silent
) -> RowPlan:
    """The plan of the rows, its window chosen by the data where the settings leave it open; poses have no filter."""
    if filtered is None:
        return RowPlan("static")
    window_s = None
    if settings.rows == "polynomial":
        # the load of a joint is found with the estimate, and a window does not wait for it
        plain = robot.with_effects([effect for effect in robot.effects if not effect.loaded])
        window_s = choose_window(plain, reduce_to_base(plain), recordings, filtered, settings, tell)
    return plan_rows(settings, window_s, filtered.row_band_hz)


def filter_memory_s(filtered: Filter) -> float:
    """Where the search for the memory of filtered signals starts; rows have none."""
    return 0.0 if filtered.row_band_hz is not None else FILTER_MEMORY / filtered.torque_cutoff_hz
