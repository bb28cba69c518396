"""The unit of a clock that was found by its steps alone, compared with the motion in the log.

A step of 1 is a kilohertz in milliseconds, and one row a second in seconds. Positions tell which: they must change as fast as the
velocity columns say, and without these no faster than joints turn.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.recording.readers.clock import Clock
from dynid.recording.readers.rows import Decoder
from dynid.recording.readers.units import UNITS

_HEAD_ROWS = 4096
_COARSER = {"ms": "s", "us": "ms", "ns": "us"}
FASTEST = 10.0
"""rad/s or m/s: where a log without velocity would move faster for one row in a hundred, its unit of time is asked for."""
_LEAST_FACTOR, _MOST_FACTOR = 100.0, 3000.0
"""Positions that change so many times faster than the velocity says are in a clock of the next unit; motion that is sampled
too slowly to follow shows less than the full 1000."""
_LONGEST_STEP_S = 10.0
"""Nobody logs motion more slowly."""
_ALIKE = 5.0
"""Change of position and velocity count as one motion up to this factor."""


def clock_by_motion(decoder: Decoder) -> Clock:
    """The decoder's clock, or that of the next unit where only it fits the motion; refuses where the motion does not tell."""
    clock = decoder.clock
    coarser = _COARSER.get(clock.guessed or "")
    if coarser is None or decoder.plan.kind != "motion":
        return clock
    rows = next(iter(decoder.rows(_HEAD_ROWS)))
    if not 1e3 * np.median(np.diff(np.unique(rows.time))) < _LONGEST_STEP_S:
        return clock
    speed, joint = _speed(rows.time, rows.values["position"])
    ratio, alike = _against_velocity(rows.time, rows.values["position"], rows.values.get("velocity"))
    if _LEAST_FACTOR < ratio < _MOST_FACTOR and (alike or speed > FASTEST):
        note = (
            f"time column '{decoder.time_column}' is read as {coarser}: in {clock.guessed} its positions would change "
            f"{ratio:.3g} times as fast as its velocity says"
        )
        scale = UNITS["time"][coarser]
        return replace(clock, scale=scale, guessed=None, notes=(note, *clock.notes[1:]))
    if speed > FASTEST and not 1.0 / _ALIKE < ratio < _ALIKE:
        name = decoder.plan.joint_names[joint]
        raise InputError(
            f"{decoder.where}: time column '{decoder.time_column}' may be in {clock.guessed} or in {coarser}: its steps fit "
            f"{clock.guessed}, but joint {name} would then move at {speed:.3g} rad/s or m/s; state the unit in a mapping file "
            f'(--mapping FILE): units = {{time = "{coarser}"}} or units = {{time = "{clock.guessed}"}}'
        )
    return clock


def _speed(time: Array, position: Array) -> tuple[float, int]:
    """The speed that the fastest joint exceeds in one row of a hundred, and the joint."""
    change, step = np.diff(position, axis=0), np.diff(time)[:, None]
    whole = np.isfinite(change).all(axis=1) & (step[:, 0] > 0.0)
    if not whole.any():
        return 0.0, 0
    speeds = np.quantile(np.abs(change[whole]) / step[whole], 0.99, axis=0)
    return float(speeds.max()), int(np.argmax(speeds))


def _against_velocity(time: Array, position: Array, velocity: Array | None) -> tuple[float, bool]:
    """How many times more the positions change than the velocity says, and whether both show one motion; NaN without velocity."""
    if velocity is None:
        return np.nan, False
    change, step = np.diff(position, axis=0), np.diff(time)[:, None]
    expected = 0.5 * (velocity[1:] + velocity[:-1]) * step
    whole = np.isfinite(change + expected).all(axis=1) & (step[:, 0] > 0.0)
    change, expected = change[whole], expected[whole]
    size = float(np.abs(expected).sum())
    if not size > 0.0:
        return np.nan, False
    norms = float(np.linalg.norm(expected) * np.linalg.norm(change))
    return float(np.abs(change).sum()) / size, float((expected * change).sum()) > 0.5 * norms > 0.0
