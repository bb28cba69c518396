"""Measures of signals on which findings and filters are based: noise, speed, bandwidth, and by how much one signal lags another.

Two signals are compared on one uniform grid of the logged clock, both behind the same zero-phase filter, so neither jitter
nor quantisation looks like a lag. The cut-off for a Fourier motion of ``L`` harmonics of ``w_f`` is ``10 w_f L / (2 pi)`` (Sousa and
Cortesao 2014, 5.2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from dynid.arrays import Array, BoolArray, freeze
from dynid.errors import InputError
from dynid.finding import DataCheck
from dynid.model.robot import Robot
from dynid.signals.butterworth import filter_window
from dynid.signals.recording import Recording
from dynid.signals.steps.clock import interpolate, nominal_period_s, uniform_grid
from dynid.signals.stream import RecordingStream

FEWEST_ROWS = 64
"""Rows of a log, or of its longest uninterrupted part, below which its signals are not judged."""
NOTHING = DataCheck((), {})
"""No finding and no fact."""


def named(recording: Recording, mask: BoolArray) -> tuple[str, ...]:
    """Names of the joints that a mask chooses."""
    return tuple(name for name, chosen in zip(recording.joint_names, mask, strict=True) if chosen)


def fits(recording: Recording, robot: Robot | None) -> bool:
    """Whether limits and kinds of the robot's joints can be put beside the columns of the log."""
    return robot is not None and robot.n_dof == recording.n_joints


def turning_joints(recording: Recording, robot: Robot | None) -> BoolArray:
    """Joints that turn; all of them where the robot is not known."""
    if robot is None or not fits(recording, robot):
        return np.ones(recording.n_joints, dtype=np.bool_)
    return np.array([joint.kind != "prismatic" for joint in robot.driven_joints])


LONGEST_ROWS = 200_000
"""Most rows on which a log is judged."""
_SAME = 0.1
"""Part of the distance to the central difference within which a velocity is the difference of the last two positions."""
_SMOOTH = 20.0  # times the bandwidth of the motion: a cut-off far above it
_RESOLVED_S = 0.05  # motion slower than this is seen by :func:`speed`


@dataclass(frozen=True, eq=False)
class Lag:
    """``x(t) = scale y(t - lag)`` fitted per joint: the lag, the scale, and the share of ``x`` left unexplained."""

    seconds: Array
    scale: Array
    unexplained: Array


def noise_level(values: Array) -> Array:
    """Standard deviation of white noise on smooth columns, from their third differences: robust against the motion."""
    # Var(x_{k+3} - 3 x_{k+2} + 3 x_{k+1} - x_k) = 20 sigma^2
    third = np.diff(values, n=3, axis=0)
    return np.asarray(1.4826 * np.median(np.abs(third), axis=0) / np.sqrt(20.0))


def sensor_noise(signals: Sequence[Array]) -> Array:
    """Standard deviation of the noise of each column: white noise, or the steps that it is recorded in."""
    found = []
    for values in signals:
        changes = np.abs(np.diff(values, axis=0))
        step = np.array([column[column > 0.0].min(initial=np.inf) for column in changes.T])
        stays = (changes == 0.0).mean(axis=0) > 0.2
        found.append(np.maximum(noise_level(values), np.where(stays & np.isfinite(step), step, 0.0) / np.sqrt(12.0)))
    return np.asarray(np.sqrt(np.mean(np.square(found), axis=0)))


def speed(recording: Recording, from_position: bool = False) -> Array:
    """Velocity for judging motion: as logged, or from position with its noise filtered out."""
    if recording.velocity is not None and not from_position:
        return recording.velocity
    dt = nominal_period_s(recording.time)
    grid = uniform_grid(recording.time, dt)
    q = interpolate(recording.time, recording.position, grid)
    q = filter_window(q, 4, min(0.5, 0.25 * dt / _RESOLVED_S * 2.0), True, True)
    v = np.gradient(q, dt, axis=0)
    return interpolate(grid, v, np.clip(recording.time, grid[0], grid[-1]))


def velocity_lag(recording: Recording, bands: float = _SMOOTH) -> Lag:
    """How logged velocity relates to the derivative of logged position, on the logged clock, below so many bandwidths of the motion."""
    if recording.velocity is None:
        raise InputError(
            f"{recording.source.path or 'the recording'} has no velocity to compare with the derivative of position"
        )
    part = longest_part(recording)
    if part.n_samples < 32:
        raise InputError(f"the longest part of the log without a gap has {part.n_samples} rows, expected at least 32")
    dt = nominal_period_s(part.time)
    grid = uniform_grid(part.time, dt)
    q = interpolate(part.time, part.position, grid)
    assert part.velocity is not None
    v = interpolate(part.time, part.velocity, grid)
    fraction = smoothing_fraction(part, dt, bands)
    derived = np.gradient(filter_window(q, 4, fraction, True, True), dt, axis=0)
    v = filter_window(v, 4, fraction, True, True)
    v[1:-1] = (v[:-2] + 4.0 * v[1:-1] + v[2:]) / 6.0  # a difference is the mean velocity of two steps, not that between them
    return lag_between(v, derived, dt)


def is_difference(recording: Recording) -> bool:
    """Whether logged velocity is no more than the difference of the last two logged positions, as many controllers have it.

    It then says nothing that positions do not, and says it half a step late, which a fit takes for inertia. A velocity of its own
    is nearer to the central difference, and one that was filtered or rounded to neither.
    """
    if recording.velocity is None:
        return False
    part = longest_part(recording)
    moves = np.ptp(part.position, axis=0) > 1e-3
    if part.n_samples < 32 or not moves.any():
        return False
    assert part.velocity is not None
    q, v, t = part.position[:, moves], part.velocity[1:-1, moves], part.time[:, None]
    last, central = (q[1:-1] - q[:-2]) / (t[1:-1] - t[:-2]), (q[2:] - q[:-2]) / (t[2:] - t[:-2])
    left, other = (np.linalg.norm(v - difference, axis=0) for difference in (last, central))
    return bool((left < _SAME * other).all())


def lag_between(x: Array, y: Array, dt: float, longest_s: float = 0.25) -> Lag:
    """``x(t) = scale y(t - lag)`` by column: the peak of the cross-correlation, then Gauss-Newton below one step."""
    n = len(x)
    reach = max(2, min(int(longest_s / dt), n // 8))
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    size = 1 << int(np.ceil(np.log2(n + 2 * reach)))
    correlation = np.fft.irfft(np.fft.rfft(x, size, axis=0) * np.conj(np.fft.rfft(y, size, axis=0)), size, axis=0)
    correlation = np.concatenate([correlation[-reach:], correlation[: reach + 1]])
    inner = slice(reach + 2, n - reach - 2)
    slope = np.gradient(y, dt, axis=0)
    count = x.shape[1]
    seconds, scale, unexplained = np.zeros(count), np.zeros(count), np.ones(count)
    for j in range(count):
        if not (x[:, j].any() and y[:, j].any()):
            continue
        own, reference, derivative = np.ascontiguousarray(x[inner, j]), y[:, j].copy(), slope[:, j].copy()
        lag = (int(np.argmax(np.abs(correlation[:, j]))) - reach) * dt
        for _ in range(6):
            shifted, turned = (_delayed(values, lag / dt, inner) for values in (reference, derivative))
            # x = s y(t - lag - d) = s y(t - lag) - s d y'(t - lag)
            s, sd = _two_coefficients(shifted, turned, own)
            step = float(np.clip(-sd / s if s else 0.0, -dt, dt))
            lag = float(np.clip(lag + step, -reach * dt, reach * dt))
            if abs(step) < 1e-4 * dt:
                break
        fitted = _delayed(reference, lag / dt, inner)
        s = float(fitted @ own) / float(fitted @ fitted)
        left = float(np.linalg.norm(own - s * fitted) / np.linalg.norm(own))
        seconds[j], scale[j], unexplained[j] = lag, s, left
    return Lag(seconds, scale, unexplained)


def _delayed(values: Array, rows: float, inner: slice) -> Array:
    """Values later by some rows, linear between them, inside ``inner``, which is further from the ends than that."""
    whole = int(np.floor(-rows))
    part = -rows - whole
    before = values[inner.start + whole : inner.stop + whole]
    return np.asarray((1.0 - part) * before + part * values[inner.start + whole + 1 : inner.stop + whole + 1])


def _two_coefficients(a: Array, b: Array, x: Array) -> tuple[float, float]:
    """``x = s a + t b`` by least squares; of columns that are alike the first is taken."""
    aa, ab, bb = float(a @ a), float(a @ b), float(b @ b)
    determinant = aa * bb - ab * ab
    if determinant <= 1e-12 * aa * bb:
        return (float(a @ x) / aa if aa else 0.0), 0.0
    ax, bx = float(a @ x), float(b @ x)
    return (bb * ax - ab * bx) / determinant, (aa * bx - ab * ax) / determinant


def longest_part(recording: Recording) -> Recording:
    """The longest part without a gap of half a second, and of it at most so many rows from the middle."""
    steps = np.diff(recording.time)
    cuts = 1 + np.flatnonzero(steps > max(0.5, 20.0 * float(np.median(steps)))) if steps.size else steps[:0]
    bounds = np.concatenate([[0], cuts, [recording.n_samples]]).astype(np.int64)
    k = int(np.argmax(np.diff(bounds)))
    start, stop = int(bounds[k]), int(bounds[k + 1])
    spare = max(0, stop - start - LONGEST_ROWS)
    if not spare and stop - start == recording.n_samples:
        return recording
    return recording.rows(start + spare // 2, stop - (spare - spare // 2))


def smoothing_fraction(recording: Recording, dt: float, bands: float = _SMOOTH) -> float:
    """A cut-off far above the motion and below the noise, as a fraction of half the rate: so many times the band of the motion."""
    band = float(motion_bandwidth_hz(recording).max())
    return float(np.clip(bands * band * 2.0 * dt, 1e-3, 0.5))


_SPECTRUM_ROWS = 200_000
_ENERGY = 0.99


_bandwidths: WeakKeyDictionary[Recording, Array] = WeakKeyDictionary()
"""Of recordings that were looked into: several checks of a log ask for it."""


def motion_bandwidth_hz(recording: Recording) -> Array:
    """Frequency below which 99 % of the power of each joint's velocity lies; zero for a joint that does not move."""
    if recording in _bandwidths:
        return _bandwidths[recording]
    part = recording.rows(0, _SPECTRUM_ROWS)
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
    _bandwidths[recording] = freeze(np.where(moves, frequency[reached], 0.0))
    return _bandwidths[recording]


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
