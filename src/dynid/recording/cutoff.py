"""Where to put the cut-off of a low-pass.

For a Fourier motion of ``L`` harmonics of ``w_f`` it is ``10 w_f L / (2 pi)`` (Sousa and Cortesao 2014, 5.2.2).
Otherwise it is chosen by the error of prediction on held-out rows against the torque *as recorded*: the error against
filtered torque always decreases as the cut-off is lowered and would choose the lowest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.recording.motion import Recording
from dynid.recording.steps.resample import interpolate, nominal_period_s, uniform_grid
from dynid.recording.stream import RecordingStream

_SPECTRUM_ROWS = 200_000
_ENERGY = 0.99


@dataclass(frozen=True)
class CutoffChoice:
    """The best cut-off and all that were tried, as (cut-off in hertz, error) by rising cut-off."""

    cutoff_hz: float
    error: float
    tried: tuple[tuple[float, float], ...]


def fourier_cutoff_hz(fundamental_hz: float, harmonics: int) -> float:
    """Cut-off for a Fourier motion, ``10 w_f L / (2 pi)``: ten times its highest frequency.

    Args:
        fundamental_hz: frequency of the first harmonic, Hz.
        harmonics: number ``L`` of harmonics.

    Examples:
        >>> import dynid
        >>> dynid.fourier_cutoff_hz(fundamental_hz=0.1, harmonics=5)
        5.0
    """
    if not (np.isfinite(fundamental_hz) and fundamental_hz > 0.0):
        raise InputError(f"fundamental frequency is {fundamental_hz} Hz, expected a positive number")
    if harmonics < 1:
        raise InputError(f"a Fourier motion has {harmonics} harmonics, expected at least 1")
    return 10.0 * fundamental_hz * harmonics


_bandwidths: WeakKeyDictionary[Recording, Array] = WeakKeyDictionary()
"""Of recordings that were looked into: several checks of a log ask for it."""


def motion_bandwidth_hz(recording: Recording | RecordingStream) -> Array:
    """Frequency below which 99 % of the power of each joint's velocity lies; zero for a joint that does not move."""
    if not isinstance(recording, Recording):
        return _bandwidth_of(first_rows(recording))
    if recording not in _bandwidths:
        _bandwidths[recording] = freeze(_bandwidth_of(first_rows(recording)))
    return _bandwidths[recording]


def _bandwidth_of(part: Recording) -> Array:
    dt = nominal_period_s(part.time)
    grid = uniform_grid(part.time, dt)
    n = len(grid)
    if n < 16:
        raise InputError(f"{part.place}: {part.n_samples} rows, expected at least 16 to see the bandwidth of its motion")
    q = interpolate(part.time, part.position, grid)
    # Velocity by its spectrum, w Q, of a motion that is tapered to rest at both ends.
    spectrum = np.fft.rfft((q - q.mean(axis=0)) * np.hanning(n)[:, None], axis=0)
    frequency = np.fft.rfftfreq(n, dt)
    power = (np.abs(spectrum) * frequency[:, None]) ** 2
    # Encoder noise grows as w^2 in velocity; its level is what the upper half of the band holds.
    floor = np.median(np.abs(spectrum[n // 4 :]) ** 2, axis=0)
    power = np.where(np.abs(spectrum) ** 2 > 50.0 * floor, power, 0.0)
    total = np.cumsum(power, axis=0)
    moves = (total[-1] > 0.0) & (np.ptp(q, axis=0) > 1e-9)
    reached = np.argmax(total >= _ENERGY * total[-1], axis=0)
    return np.where(moves, frequency[reached], 0.0)


def candidate_cutoffs(recording: Recording | RecordingStream, count: int = 10) -> tuple[float, ...]:
    """Cut-offs to try, in hertz: from twice to sixty times the bandwidth of the motion, below half the sampling rate.

    Args:
        recording: a log, or a stream of one.
        count: number of candidates.

    Examples:
        >>> import dynid
        >>> cutoffs = dynid.candidate_cutoffs(dynid.demo_recording(), count=5)
        >>> len(cutoffs), cutoffs[0] < cutoffs[-1] < 50.0
        (5, True)
    """
    if count < 2:
        raise InputError(f"{count} candidate cut-offs asked for, expected at least 2")
    band = float(motion_bandwidth_hz(recording).max())
    if band == 0.0:
        raise InputError("no joint moves in the log, so no cut-off can be chosen from it")
    highest = min(60.0 * band, 0.8 * 0.5 / nominal_period_s(first_rows(recording).time))
    lowest = min(2.0 * band, 0.25 * highest)
    return tuple(float(f"{cutoff:.3g}") for cutoff in np.geomspace(lowest, highest, count))


def choose_cutoff(candidates: Sequence[float], error_of: Callable[[float], float], refine: bool = True) -> CutoffChoice:
    """The candidate with the smallest error.

    Args:
        candidates: cut-offs in hertz.
        error_of: a function of the cut-off in hertz; meant to be the error on held-out rows against raw torque.
        refine: also try one cut-off between the best candidate and each of its neighbours.

    Examples:
        >>> import dynid
        >>> dynid.choose_cutoff([1.0, 4.0, 16.0], lambda cutoff_hz: abs(cutoff_hz - 5.0), refine=False).cutoff_hz
        4.0
    """
    if not candidates:
        raise InputError("no cut-off to choose from, expected at least one candidate")
    tried = {float(cutoff): float(error_of(float(cutoff))) for cutoff in sorted(set(candidates))}
    if refine and len(tried) > 1:
        known = sorted(tried)
        place = known.index(_best(tried))
        for other in (place - 1, place + 1):
            if 0 <= other < len(known):
                middle = float(f"{np.sqrt(known[place] * known[other]):.3g}")
                if middle not in tried:
                    tried[middle] = float(error_of(middle))
    best = _best(tried)
    return CutoffChoice(best, tried[best], tuple(sorted(tried.items())))


def _best(tried: dict[float, float]) -> float:
    finite = {cutoff: error for cutoff, error in tried.items() if np.isfinite(error)}
    if not finite:
        raise InputError(f"none of {len(tried)} cut-offs gave an error that is a number")
    return min(finite, key=lambda cutoff: (finite[cutoff], cutoff))


def first_rows(recording: Recording | RecordingStream, rows: int = _SPECTRUM_ROWS) -> Recording:
    """The head of a log, however long it is."""
    if isinstance(recording, Recording):
        return recording.rows(0, rows)
    parts: list[Recording] = []
    for part in recording:
        parts.append(part)
        if sum(piece.n_samples for piece in parts) >= rows:
            break
    return Recording.concatenate(parts).rows(0, rows)
