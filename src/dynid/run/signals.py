"""From recordings to samples: repair, filter, differentiate; and the choices that the data themselves decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.errors import InputError
from dynid.recording.lag import is_difference
from dynid.recording.process import process
from dynid.recording.recording import Recording
from dynid.recording.samples import Samples
from dynid.recording.steps.decimate import Decimate
from dynid.recording.steps.differentiate import Differentiate
from dynid.recording.steps.gaps import SplitAtGaps
from dynid.recording.steps.lowpass import LowPass
from dynid.recording.steps.resample import Resample
from dynid.recording.steps.savitzky_golay import SavitzkyGolay
from dynid.recording.steps.step import Step
from dynid.recording.steps.unwrap import Unwrap
from dynid.regression.row_filter import BandLimit
from dynid.robot.effects import Coulomb, Coupled, Effect
from dynid.robot.model import Robot
from dynid.run.options import Rows

STILL = 1e-3
"""rad or m: a joint that moves less stands still."""
FILTERING = ("velocity", "filter", "signals", "cutoff_hz", "signal_band_hz", "torque_cutoff_hz", "filter_order")
"""Options that the filter of the signals follows from."""
BUTTERWORTH = "zero-phase Butterworth"
SAVITZKY_GOLAY = "Savitzky-Golay"


@dataclass(frozen=True)
class Filter:
    """How the signals of a run were filtered; stored with every error it gave.

    For Savitzky-Golay the cut-offs are those that its window stands for, and ``window`` and ``order`` are its own.
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
            return f"rows below {self.row_band_hz:g} Hz, made of signals below {self.cutoff_hz:.4g} Hz, {source}"
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
    """What must be set right before any filter: nothing is invented in long gaps, and angles do not jump by a turn."""
    gap_s = _gap_s(recording)
    return repairing(gap_s if (np.diff(recording.time) > gap_s).any() else None, _wrapped(recording))


def repairing(gap_s: float | None, wrapped: tuple[int, ...]) -> list[Step]:
    """The steps for a log with gaps longer than ``gap_s``, or without gaps, in which these joints jump by a turn."""
    steps: list[Step] = [] if gap_s is None else [SplitAtGaps(gap_s)]
    return [*steps, Unwrap(wrapped)] if wrapped else steps


def as_recorded(repaired: Sequence[Step], velocity: Literal["logged", "position"] = "position") -> list[Step]:
    """The steps to a uniform clock after what repairs a log; everything else stays as recorded."""
    return [*repaired, Resample(), Differentiate(velocity=velocity)]


def repair_notes(recording: Recording) -> list[str]:
    """What :func:`repairs` does to a log, in words."""
    notes = []
    gaps = int(np.count_nonzero(np.diff(recording.time) > _gap_s(recording)))
    if gaps:
        notes.append(f"taken as {gaps + 1} parts: rows are missing for more than {_gap_s(recording):.2g} s in {gaps} places")
    wrapped = _wrapped(recording)
    if wrapped:
        names = ", ".join(recording.joint_names[number - 1] for number in wrapped)
        notes.append(f"jumps of whole turns in the angle of {names} are undone")
    return notes


def _gap_s(recording: Recording) -> float:
    return max(0.1, 10.0 * float(np.median(np.diff(recording.time)))) if recording.n_samples > 1 else np.inf


def _wrapped(recording: Recording) -> tuple[int, ...]:
    """Joints, counted from 1, whose position jumps by about a turn between two rows; no slide moves 6 m in one."""
    steps = np.abs(np.diff(recording.position, axis=0))
    return tuple((1 + np.flatnonzero((np.abs(steps - 2.0 * np.pi) < 0.5).any(axis=0))).tolist())


@dataclass(frozen=True, eq=False)
class Standing:
    """Joints that never move, and where they stand."""

    joints: BoolArray
    position: Array

    @classmethod
    def of(cls, lowest: Array, highest: Array, position: Array) -> Standing:
        """From the range of all positions; a joint that moves less than ``STILL`` stands."""
        return cls(np.asarray(highest - lowest < STILL), position)

    def held(self, samples: Samples) -> Samples:
        """Samples in which joints that never move have no velocity: what sensors show of them is noise, and friction or
        inertia must not be read from it."""
        if not self.joints.any():
            return samples
        return replace(
            samples,
            position=np.where(self.joints, self.position, samples.position),
            velocity=np.where(self.joints, 0.0, samples.velocity),
            acceleration=np.where(self.joints, 0.0, samples.acceleration),
        )


def hold_still(samples: Sequence[Samples], standing: Standing | None = None) -> tuple[Samples, ...]:
    """Samples with joints that never move held; which these are is told from the samples where it is not known."""
    if standing is None:
        highest = np.max([one.position.max(axis=0) for one in samples], axis=0)
        lowest = np.min([one.position.min(axis=0) for one in samples], axis=0)
        standing = Standing.of(lowest, highest, np.mean([one.position.mean(axis=0) for one in samples], axis=0))
    return tuple(standing.held(one) for one in samples)


def split_recording(
    recording: Recording, share: float, names: tuple[str, str] = ("identification part", "validation part")
) -> tuple[Recording, Recording]:
    """The first ``share`` of a log and the rest, cut in time before any filter; ``names`` call them in messages."""
    end = recording.time[0] + share * recording.duration_s
    cut = int(np.searchsorted(recording.time, end))
    return recording.rows(0, cut, part=names[0]), recording.rows(cut, part=names[1])


def to_samples(recording: Recording, filtered: Filter, max_rows: int) -> Samples:
    """One recording, filtered and differentiated."""
    try:
        return process(recording, filtered.steps(recording, max_rows))
    except InputError as error:
        name = Path(recording.source.path).name
        raise InputError(str(error) if not name or name in str(error) else f"{name}: {error}") from None


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


def with_dead_zone(robot: Robot, recordings: Sequence[Recording], filtered: Filter, settings: Rows) -> Robot:
    """The robot with the dead zone of its Coulomb friction set as the settings say."""
    if not any(isinstance(_plain(effect), Coulomb) for effect in robot.effects):
        return robot
    zone: tuple[float, ...]
    if settings.dead_zone == "auto":
        noise = np.max([velocity_noise(recording, filtered) for recording in recordings], axis=0)
        zone = tuple(float(3.0 * sigma) for sigma in noise)
    else:
        zone = (float(settings.dead_zone),) * len(robot.driven)
    return robot.with_effects([_blind_below(effect, zone) for effect in robot.effects])


def _plain(effect: Effect) -> Effect:
    return effect.effect if isinstance(effect, Coupled) else effect


def _blind_below(effect: Effect, zone: tuple[float, ...]) -> Effect:
    """The effect with this dead zone per joint, of motors with what their joints' add up to."""
    if isinstance(effect, Coulomb):
        return replace(effect, dead_zone=zone)
    if isinstance(effect, Coupled) and isinstance(effect.effect, Coulomb):
        return replace(effect, effect=replace(effect.effect, dead_zone=tuple((np.abs(effect.B) @ zone).tolist())))
    return effect


def raw_samples(recording: Recording, like: Samples | None = None) -> Samples:
    """A recording on a uniform clock and otherwise as it is, for rows that differentiate no signal.

    Its velocity and acceleration are plain differences, which such rows do not use. With ``like`` it carries that set's load.
    """
    samples = process(recording, as_recorded(repairs(recording)))
    if like is None or like.load is None:
        return samples
    return samples.with_load(np.column_stack([np.interp(samples.time, like.time, column) for column in like.load.T]))


def velocity_sources(recordings: Sequence[Recording], settings: Rows) -> tuple[str, ...]:
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
