"""Commands beside the positions they lead to: units, clocks, joints that do not follow."""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array
from dynid.recording.motion import Recording

DEGREES = 180.0 / np.pi
STILL = 2e-3
"""Range of position below which a joint does not move, rad or m."""
LATEST_S, EARLIEST_S = 0.5, 0.05
"""Furthest that positions may lag their commands, and lead them by an error of stamps."""
ALIKE = 1.5
"""How many times more alike commands and positions must be at another lag before their clocks are called apart: a slow command that a
joint with dry friction follows late and in jerks is nearly as alike over a second."""


def command_problem(recording: Recording, *, velocity: bool = False) -> str:
    """One sentence on what is wrong with the commands of a log, empty where they fit the positions.

    Args:
        recording: the log.
        velocity: whether the drives were sent speeds; the way that those make is then compared with the positions.
    """
    q, u = recording.position, recording.reference_velocity if velocity else recording.reference_position
    if u is None:
        what, names = (
            ("velocities", "dq_cmd1.. (or dq_ref, target_velocity)")
            if velocity
            else ("positions", "q_cmd1.. (or q_ref, target_position, action)")
        )
        return (
            f"{recording.place} has no commanded {what}, expected columns {names}, one per joint; name them with --mapping"
        )
    if velocity:
        steps = np.diff(recording.time)[:, None] * u[:-1]
        u = np.concatenate([np.zeros((1, u.shape[1])), np.cumsum(steps, axis=0)])
    moving = np.ptp(q, axis=0) > STILL
    if not moving.any():
        return f"{recording.place}: no joint moves by more than {STILL:g} rad, so there is nothing to identify"
    commanded = moving & (np.ptp(u, axis=0) > STILL)
    if not commanded.any():
        return f"{recording.place}: joints move but no command changes, expected the positions that were sent to the drives"
    ratio = np.median(np.ptp(u[:, commanded], axis=0) / np.ptp(q[:, commanded], axis=0))
    if ratio > 0.5 * DEGREES or ratio < 2.0 / DEGREES:
        large, small = ("commands", "positions") if ratio > 1.0 else ("positions", "commands")
        return (
            f"{recording.place}: {large} move {max(ratio, 1.0 / ratio):.3g} times as far as {small}, expected about as far: "
            f"{large} look like degrees and {small} like radians; convert one of them, or give units in --mapping"
        )
    lag = _lag_s(recording.time, u[:, commanded], q[:, commanded])
    if lag is not None:
        words = f"{lag:.3g} s after" if lag > 0.0 else f"{-lag:.3g} s before"
        return (
            f"{recording.place}: positions come {words} their commands, expected a delay of 0 to {LATEST_S:g} s: the clocks of "
            "commands and states are apart; put both on one clock before they are joined"
        )
    return ""


def still_joints(recording: Recording) -> tuple[int, ...]:
    """Joints that do not move."""
    return tuple(int(j) for j in np.flatnonzero(np.ptp(recording.position, axis=0) <= STILL))


def _lag_s(time: Array, u: Array, q: Array) -> float | None:
    """Time by which positions follow commands, where that is plainly none that a drive has; None where it may be.

    Speeds of both are compared at every lag, all joints together.
    """
    period = max(float(np.median(np.diff(time))), (time[-1] - time[0]) / 20_000)
    grid = np.arange(time[0], time[-1], period)
    n = len(grid)
    if n < 16:
        return None
    reach = min(n // 3, round(5.0 / period))
    total = np.zeros(2 * reach + 1)
    smooth = max(1, round(0.05 / period))
    kernel = np.ones(smooth) / smooth
    for j in range(u.shape[1]):
        # whole means only: half a mean at an end is a jump, which both signals have at the same time whatever their clocks
        a, b = (np.gradient(np.convolve(np.interp(grid, time, x[:, j]), kernel, "valid")) for x in (u, q))
        a, b = a - a.mean(), b - b.mean()
        size = 2 ** int(np.ceil(np.log2(2 * n)))
        cross = np.fft.irfft(np.fft.rfft(b, size) * np.conj(np.fft.rfft(a, size)), size)
        norm = np.linalg.norm(a) * np.linalg.norm(b)
        if norm > 0.0:
            total += np.concatenate([cross[-reach:], cross[: reach + 1]]) / norm
    lags = period * np.arange(-reach, reach + 1)
    possible = (lags >= -EARLIEST_S) & (lags <= LATEST_S)
    best = int(np.argmax(total))
    if possible[best] or total[best] < ALIKE * total[possible].max():
        return None
    return float(lags[best])
