"""The filter of a run: from recordings to samples by repairing, filtering and differentiating, and what noise it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.model.friction import blind_below, has_dead_zone
from dynid.model.robot import Robot
from dynid.pipeline.options import Settings
from dynid.regression.row_filter import BandLimit
from dynid.signals.measures import is_difference
from dynid.signals.process import process
from dynid.signals.recording import Recording
from dynid.signals.samples import Samples
from dynid.signals.steps.clock import Decimate, Resample
from dynid.signals.steps.filters import Differentiate, LowPass, SavitzkyGolay
from dynid.signals.steps.step import Step
from dynid.signals.stream import survey

STILL = 1e-3
"""rad or m: a joint that moves less stands still."""
FILTERING = ("velocity", "filter", "filter_on", "cutoff_hz", "signal_band_hz", "torque_cutoff_hz", "filter_order")
"""Options that the filter of the signals follows from."""
BUTTERWORTH = "zero-phase Butterworth"
SAVITZKY_GOLAY = "Savitzky-Golay"


@dataclass(frozen=True)
class Filter:
    """How the signals of a run were filtered; stored with every error it gave.

    For Savitzky-Golay the cut-offs are those that its window stands for, and ``window`` and ``order`` are its own. A Butterworth of
    order zero leaves signals as they are logged.
    """

    cutoff_hz: float
    torque_cutoff_hz: float
    order: int
    velocity: Literal["logged", "position"]
    kind: str = BUTTERWORTH
    window: int | None = None
    row_band_hz: float | None = None
    """Band of the rows, where rows are filtered and not signals; torque is then left as recorded."""

    def steps(self, recording: Recording, max_rows: int) -> list[Step]:
        """The processing steps of one recording."""
        return self.chain(repairs(recording), recording.velocity is not None, recording.n_samples, max_rows)

    def chain(self, repaired: Sequence[Step], has_velocity: bool, n_samples: int, max_rows: int) -> list[Step]:
        """The processing steps of a log of so many samples, after what repairs it."""
        steps: list[Step] = [*repaired, Resample()]
        if self.window is not None:
            steps.append(SavitzkyGolay(window=self.window, order=self.order, velocity=self.velocity))
        else:
            # a logged velocity that is not used need not be filtered
            logged = ("position", "velocity") if has_velocity and self.velocity == "logged" else ("position",)
            if self.order:
                steps.append(LowPass(cutoff_hz=self.cutoff_hz, order=self.order, signals=logged))
            if self.row_band_hz is None:
                steps.append(LowPass(cutoff_hz=self.torque_cutoff_hz, order=self.order, signals=("torque",)))
            steps.append(Differentiate(velocity=self.velocity))
        every = 1 if self.row_band_hz is not None else max(1, int(np.ceil(n_samples / max_rows)))
        return steps if every == 1 else [*steps, Decimate(every=every)]

    @property
    def row_filter(self) -> BandLimit | None:
        """The filter of the rows, None where signals were filtered instead."""
        return None if self.row_band_hz is None else BandLimit(self.row_band_hz)

    @property
    def band_hz(self) -> float:
        """The band in which torque is judged."""
        return self.torque_cutoff_hz if self.row_band_hz is None else self.row_band_hz

    def describe(self) -> str:
        source = "logged velocity" if self.velocity == "logged" else "velocity from position"
        if self.row_band_hz is not None:
            signals = f"signals below {self.cutoff_hz:.4g} Hz" if self.order else "signals as logged"
            return f"rows below {self.row_band_hz:g} Hz, made of {signals}, {source}"
        if self.window is not None:
            return f"{self.kind}, window {self.window} rows, order {self.order}, {source}"
        torque = "" if self.torque_cutoff_hz == self.cutoff_hz else f", torque at {self.torque_cutoff_hz:g} Hz"
        return f"{self.kind}, order {self.order}, {self.cutoff_hz:g} Hz{torque}, {source}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def savgol_numbers(text: str) -> tuple[int, int] | None:
    """Window and order of ``savgol:WINDOW,ORDER``; None for the Butterworth."""
    if text == "butterworth":
        return None
    name, _, rest = text.partition(":")
    try:
        window, order = (int(part) for part in rest.split(","))
    except ValueError:
        window = order = -1
    if name != "savgol" or window < 3 or window % 2 == 0 or not 2 <= order < window:
        raise InputError(
            f"--filter is '{text}', expected butterworth, or savgol:WINDOW,ORDER with an odd window of rows and an order of 2 "
            "or more below it, such as savgol:11,2"
        )
    return window, order


def savgol_band_hz(window: int, order: int, rate_hz: float) -> float:
    """Frequency at which Savitzky-Golay smoothing has lost half of the amplitude (Schafer 2011)."""
    return 0.5 * rate_hz * (order + 1.0) / (3.2 * window - 4.6)


def repairs(recording: Recording) -> list[Step]:
    """What must be set right in a recording before any filter."""
    return survey(recording).repairs()


def as_recorded(repaired: Sequence[Step], velocity: Literal["logged", "position"] = "position") -> list[Step]:
    """The steps to a uniform clock after what repairs a log; everything else stays as recorded."""
    return [*repaired, Resample(), Differentiate(velocity=velocity)]


def to_samples(recording: Recording, filtered: Filter, max_rows: int) -> Samples:
    """One recording, filtered and differentiated."""
    return process(recording, filtered.steps(recording, max_rows))


def velocity_noise(recording: Recording, filtered: Filter) -> Array:
    """Standard deviation of the noise that is left in the filtered velocity, per joint.

    What the filter removed is taken as white; the share of its band that passes is what stays.
    """
    samples = process(recording, as_recorded(repairs(recording), filtered.velocity))
    smooth = process(recording, filtered.steps(recording, recording.n_samples))
    raw = np.column_stack([np.interp(smooth.time, samples.time, column) for column in samples.velocity.T])
    removed = np.std(raw - smooth.velocity, axis=0)
    passed = min(2.0 * filtered.cutoff_hz / recording.rate_hz, 1.0)
    return np.asarray(removed * np.sqrt(passed))


def with_dead_zone(robot: Robot, recordings: Sequence[Recording], filtered: Filter, settings: Settings) -> Robot:
    """The robot with the dead zone of its Coulomb friction set as the settings say."""
    if not has_dead_zone(robot):
        return robot
    zone = (0.0 if settings.dead_zone == "auto" else float(settings.dead_zone),) * len(robot.driven)
    if settings.dead_zone == "auto":
        noise = np.max([velocity_noise(recording, filtered) for recording in recordings], axis=0)
        zone = tuple(float(3.0 * sigma) for sigma in noise)
    return blind_below(robot, zone)


def velocity_sources(recordings: Sequence[Recording], settings: Settings) -> tuple[str, ...]:
    """Where velocity may come from: what the settings fix, else position, and logged where every log has it and some log has more
    than the difference of its positions."""
    logged = all(recording.velocity is not None for recording in recordings)
    if settings.velocity == "logged" and not logged:
        missing = next(recording.source.path for recording in recordings if recording.velocity is None)
        raise InputError(f"{missing} has no velocity columns, but --velocity logged was asked for")
    if settings.velocity != "auto":
        return (settings.velocity,)
    worth = logged and not all(is_difference(recording) for recording in recordings)
    return ("logged", "position") if worth else ("position",)
