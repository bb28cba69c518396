"""Steps that smooth and differentiate: Butterworth, median, Savitzky-Golay, smoothing spline, central differences.

The spline is ``min_f  sum_i h_i (y_i - f(t_i))^2 + lambda integral f''(t)^2 dt`` on the clock as logged. In the frequency domain
``F / Y = 1 / (1 + lambda w^4)``, so ``lambda = 1 / (2 pi f_c)^4`` halves the signal at ``f_c``, as the zero-phase low-pass does.

Central differences on a uniform clock are ``v_k = (q_{k+1} - q_{k-1}) / 2h`` and ``a_k = (q_{k+1} - 2 q_k + q_{k-1}) / h^2``; on a
jittery clock the parabola through three neighbours, which is the same where the steps are equal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dynid.arrays import Array, check_positive
from dynid.errors import InputError
from dynid.signals.butterworth import FORGOTTEN, filter_window, memory_rows
from dynid.signals.steps.step import Extent, RowwiseStep, Signals, apart, checked_signals, chosen_signals, side_by_side

EVEN = 1e-3
"""Part of itself by which a step of an even clock may differ from its neighbours."""
EDGE_S = 0.3
"""Least time dropped at either end of a filtered log."""


@dataclass(frozen=True)
class LowPass(RowwiseStep):
    """Zero-phase Butterworth low-pass: ``|H(f)|^2 = 1 / (1 + (f / f_c)^(2 n))``, forwards and backwards.

    Args:
        cutoff_hz: cut-off, Hz; needs a uniform clock.
        cutoff_nyquist: cut-off as a fraction of half the sampling rate, instead; also acts on a logged clock as if it were uniform.
        order: order ``n`` of the filter.
        signals: quantities to filter, such as ``("torque",)``; None for all.

    Examples:
        >>> import dynid
        >>> log = dynid.demo_recording(seconds=4.0, torque_noise=0.05)
        >>> samples = dynid.process(log, [dynid.LowPass(cutoff_hz=8.0), dynid.Differentiate()])
        >>> bool(abs(samples.torque - samples.raw_torque).max() > 0.0)
        True
    """

    cutoff_hz: float | None = None
    cutoff_nyquist: float | None = None
    order: int = 4
    signals: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if (self.cutoff_hz is None) == (self.cutoff_nyquist is None):
            raise InputError(
                "LowPass takes one cut-off: cutoff_hz, or cutoff_nyquist as a fraction of half the sampling rate"
            )
        check_positive("LowPass cutoff_hz", self.cutoff_hz, "hertz")
        if self.cutoff_nyquist is not None and not 0.0 < self.cutoff_nyquist < 1.0:
            raise InputError(f"LowPass cutoff_nyquist is {self.cutoff_nyquist}, expected a fraction between 0 and 1")
        if self.order not in range(1, 13):
            raise InputError(f"LowPass order is {self.order}, expected a whole number from 1 to 12")
        checked_signals(self.signals, "LowPass")

    @property
    def needs_uniform_clock(self) -> bool:
        """A cut-off in hertz only means something on a uniform clock."""
        return self.cutoff_hz is not None

    def transient(self) -> Extent:
        """Three time constants ``1 / (2 pi f_c)``, at least 0.3 s."""
        if self.cutoff_hz is not None:
            return Extent(seconds=max(EDGE_S, 3.0 / (2.0 * np.pi * self.cutoff_hz)))
        assert self.cutoff_nyquist is not None
        return Extent(rows=int(np.ceil(3.0 / (np.pi * self.cutoff_nyquist))), seconds=EDGE_S)

    def reach(self, head: Signals) -> Extent:
        """As far as the filter remembers."""
        return Extent(rows=memory_rows(self.order, self.fraction(head.period_s)))

    def fraction(self, period_s: float | None) -> float:
        """The cut-off as a fraction of half the sampling rate."""
        if self.cutoff_nyquist is not None:
            return self.cutoff_nyquist
        assert self.cutoff_hz is not None
        assert period_s is not None
        nyquist_hz = 0.5 / period_s
        if self.cutoff_hz >= nyquist_hz:
            raise InputError(
                f"LowPass cut-off {self.cutoff_hz:g} Hz is not below half the sampling rate, {nyquist_hz:.6g} Hz"
            )
        return self.cutoff_hz / nyquist_hz

    def compute(self, window: Signals, starts: bool, ends: bool) -> dict[str, Array]:
        """The chosen quantities, filtered."""
        names = chosen_signals(window, self.signals, self)
        filtered = filter_window(side_by_side(window, names), self.order, self.fraction(window.period_s), starts, ends)
        return apart(filtered, window, names)


@dataclass(frozen=True)
class Median(RowwiseStep):
    """Median of some rows around each row; the ends of the log repeat their last value.

    Args:
        window: number of rows, odd.
        signals: quantities to filter; None for all.

    Examples:
        >>> import dynid
        >>> from dynid.signals.steps.filters import Median
        >>> len(dynid.process(dynid.demo_recording(seconds=4.0), [Median(window=3), dynid.Differentiate()], edge_s=0.0))
        400
    """

    window: int = 5
    signals: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.window < 3 or self.window % 2 != 1:
            raise InputError(f"Median window is {self.window} rows, expected an odd number of 3 or more")
        checked_signals(self.signals, "Median")

    def reach(self, head: Signals) -> Extent:
        """Half a window."""
        return Extent(rows=self.window // 2)

    def compute(self, window: Signals, starts: bool, ends: bool) -> dict[str, Array]:
        """The chosen quantities, each joint on its own."""
        from scipy.ndimage import median_filter

        names = chosen_signals(window, self.signals, self)
        values = median_filter(side_by_side(window, names), size=(self.window, 1), mode="nearest")
        return apart(np.asarray(values), window, names)


@dataclass(frozen=True)
class SavitzkyGolay(RowwiseStep):
    """Savitzky-Golay filter: polynomials over a sliding window smooth all quantities alike and give the derivatives.

    Args:
        window: rows of the window, odd.
        order: degree of the polynomials.
        velocity: ``logged`` smooths the logged velocity and takes acceleration as its derivative; ``position`` takes both from
            position; ``auto`` is ``logged`` where the log has velocity; None only smooths.
        signals: quantities to filter; None for all.

    Examples:
        >>> import dynid
        >>> dynid.process(dynid.demo_recording(seconds=4.0), [dynid.SavitzkyGolay(window=15, order=3)]).acceleration.shape[1]
        7
    """

    window: int = 11
    order: int = 2
    velocity: Literal["auto", "logged", "position"] | None = "auto"
    signals: tuple[str, ...] | None = None

    needs_uniform_clock: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.window < 3 or self.window % 2 != 1:
            raise InputError(f"SavitzkyGolay window is {self.window} rows, expected an odd number of 3 or more")
        if not 0 <= self.order < self.window:
            raise InputError(f"SavitzkyGolay order is {self.order}, expected 0 to {self.window - 1} for {self.window} rows")
        if self.velocity not in ("auto", "logged", "position", None):
            raise InputError(f"unknown velocity source '{self.velocity}'; available: auto, logged, position")
        checked_signals(self.signals, "SavitzkyGolay")

    def transient(self) -> Extent:
        """Half a window, where the polynomial is evaluated off its middle."""
        return Extent(rows=self.window // 2)

    def reach(self, head: Signals) -> Extent:
        """A whole window, so that the polynomial of a window's end is never used."""
        return Extent(rows=self.window)

    def compute(self, window: Signals, starts: bool, ends: bool) -> dict[str, Array]:
        """Smoothed quantities, and velocity and acceleration as asked."""
        names = chosen_signals(window, self.signals, self)
        smooth = apart(self._filtered(window, side_by_side(window, names), 0), window, names)
        if self.velocity is None:
            return smooth
        if from_log(window, self.velocity, self):
            self._refuse_order(1)
            return smooth | {"acceleration": self._filtered(window, window.values["velocity"], 1)}
        self._refuse_order(2)
        window.need(["position"], self)
        q = window.values["position"]
        return smooth | {"velocity": self._filtered(window, q, 1), "acceleration": self._filtered(window, q, 2)}

    def _filtered(self, window: Signals, values: Array, derivative: int) -> Array:
        from scipy.signal import savgol_filter

        assert window.period_s is not None
        if len(values) < self.window:
            raise InputError(f"signal has {len(values)} rows, SavitzkyGolay needs at least its window of {self.window}")
        level = values[:1]  # derivatives live on differences
        result = savgol_filter(values - level, self.window, self.order, derivative, window.period_s, axis=0)
        return np.asarray(result if derivative else result + level)

    def _refuse_order(self, derivative: int) -> None:
        if self.order < derivative:
            raise InputError(f"SavitzkyGolay of order {self.order} has no derivative {derivative}, expected a higher order")


@dataclass(frozen=True)
class SmoothingSpline(RowwiseStep):
    """Cubic smoothing spline of all quantities alike, with its derivatives; it needs no uniform clock.

    Args:
        cutoff_hz: frequency at which the spline damps by half, Hz.
        velocity: ``logged``, ``position``, ``auto``, or None to smooth only, as for :class:`SavitzkyGolay`.
        signals: quantities to smooth; None for all.

    Examples:
        >>> import dynid
        >>> from dynid.signals.steps.filters import SmoothingSpline
        >>> dynid.process(dynid.demo_recording(seconds=4.0), [SmoothingSpline(cutoff_hz=8.0)]).velocity.shape[1]
        7
    """

    cutoff_hz: float
    velocity: Literal["auto", "logged", "position"] | None = "auto"
    signals: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_positive("SmoothingSpline cutoff_hz", self.cutoff_hz, "hertz")
        if self.velocity not in ("auto", "logged", "position", None):
            raise InputError(f"unknown velocity source '{self.velocity}'; available: auto, logged, position")
        checked_signals(self.signals, "SmoothingSpline")

    def transient(self) -> Extent:
        """Three time constants, at least 0.3 s."""
        return Extent(seconds=max(EDGE_S, 3.0 / (2.0 * np.pi * self.cutoff_hz)))

    def reach(self, head: Signals) -> Extent:
        """The influence of a sample dies as ``exp(-w_c |t| / sqrt(2))``."""
        seconds = -1.1 * np.log(FORGOTTEN) * np.sqrt(2.0) / (2.0 * np.pi * self.cutoff_hz)
        return Extent(rows=8, seconds=float(seconds))

    def compute(self, window: Signals, starts: bool, ends: bool) -> dict[str, Array]:
        """Smoothed quantities, and velocity and acceleration as asked."""
        from scipy.interpolate import make_smoothing_spline

        t = window.time
        if len(t) < 5:
            raise InputError(f"signal has {len(t)} rows, a smoothing spline needs at least 5")
        names = chosen_signals(window, self.signals, self)
        logged = self.velocity is not None and from_log(window, self.velocity, self)
        needed = list(names)
        if self.velocity is not None:
            needed += [name for name in ("velocity" if logged else "position",) if name not in names]
        # Unit knots keep the banded system well scaled whatever the clock.
        scale = float((t[-1] - t[0]) / (len(t) - 1))
        u = (t - t[0]) / scale
        step = np.gradient(u)
        penalty = (2.0 * np.pi * self.cutoff_hz * scale) ** -4
        values = side_by_side(window, needed)
        level = values[:1]
        spline = make_smoothing_spline(u, values - level, w=step, lam=penalty, axis=0)
        smooth = apart(np.asarray(spline(u)) + level, window, needed)
        result = {name: smooth[name] for name in names}
        if self.velocity is None:
            return result
        first = apart(np.asarray(spline.derivative(1)(u)) / scale, window, needed)
        if logged:
            return result | {"acceleration": first["velocity"]}
        second = apart(np.asarray(spline.derivative(2)(u)) / scale**2, window, needed)
        return result | {"velocity": first["position"], "acceleration": second["position"]}


@dataclass(frozen=True)
class Differentiate(RowwiseStep):
    """Velocity and acceleration by central differences.

    Args:
        velocity: ``logged`` keeps the logged velocity and differentiates it once; ``position`` differentiates position twice;
            ``auto`` is ``logged`` where the log has velocity.
        acceleration: ``derived``, or ``logged`` to keep the acceleration of the log.
        points: 3, or 5 for differences that follow fast motion on an even clock: off by ``(w h)^4 / 30`` instead of ``(w h)^2 / 6``.

    Examples:
        >>> import dynid
        >>> dynid.process(dynid.demo_recording(seconds=4.0), [dynid.Differentiate()]).acceleration.shape
        (398, 7)
    """

    velocity: Literal["auto", "logged", "position"] = "auto"
    acceleration: Literal["derived", "logged"] = "derived"
    points: Literal[3, 5] = 3

    def __post_init__(self) -> None:
        if self.points not in (3, 5):
            raise InputError(f"differences over {self.points} points were asked for, expected 3 or 5")
        if self.velocity not in ("auto", "logged", "position"):
            raise InputError(f"unknown velocity source '{self.velocity}'; available: auto, logged, position")
        if self.acceleration not in ("derived", "logged"):
            raise InputError(f"unknown acceleration source '{self.acceleration}'; available: derived, logged")

    def transient(self) -> Extent:
        """One row, whose difference is one-sided."""
        return Extent(rows=1)

    def reach(self, head: Signals) -> Extent:
        """Its neighbours and one more, so that the formula of a window's end is never used."""
        return Extent(rows=self.points // 2 + 1)

    def compute(self, window: Signals, starts: bool, ends: bool) -> dict[str, Array]:
        """Velocity and acceleration."""
        logged = from_log(window, self.velocity, self)
        if self.acceleration == "logged":
            window.need(["acceleration"], self)
            return {} if logged else {"velocity": first_derivative(window.time, window.values["position"], self.points)}
        if logged:
            return {"acceleration": first_derivative(window.time, window.values["velocity"], self.points)}
        window.need(["position"], self)
        q = window.values["position"]
        return {
            "velocity": first_derivative(window.time, q, self.points),
            "acceleration": second_derivative(window.time, q, self.points),
        }


def from_log(window: Signals, velocity: str, step: object) -> bool:
    """Whether velocity is taken from the log; refuses if it should be and is not there."""
    if velocity == "logged":
        window.need(["velocity"], step)
    return velocity != "position" and "velocity" in window.values


def first_derivative(time: Array, values: Array, points: int = 3) -> Array:
    """Slope at the middle of the parabola through three neighbours; at the ends, of that through the last three.

    With five points it is that of the polynomial through them, where their clock is even.
    """
    _refuse_short(time)
    slope = np.asarray(np.gradient(values, time, axis=0, edge_order=2))
    return slope if points == 3 else _through_five(time, values, slope, (1.0, -8.0, 0.0, 8.0, -1.0), 1)


def second_derivative(time: Array, values: Array, points: int = 3) -> Array:
    """Curvature of the parabola through three neighbours, or of the polynomial through five; the ends repeat their neighbour's."""
    _refuse_short(time)
    h = np.diff(time)[:, None]
    slope = np.diff(values, axis=0) / h
    inner = 2.0 * np.diff(slope, axis=0) / (h[1:] + h[:-1])
    bent = np.concatenate([inner[:1], inner, inner[-1:]])
    return bent if points == 3 else _through_five(time, values, bent, (-1.0, 16.0, -30.0, 16.0, -1.0), 2)


def _through_five(time: Array, values: Array, found: Array, weights: tuple[float, ...], power: int) -> Array:
    """``found`` with the derivative of the polynomial through five neighbours wherever their clock is even."""
    if len(time) < 5:
        return found
    step = np.diff(time)
    steps = np.stack([step[k : len(step) - 3 + k] for k in range(4)])
    even = np.ptp(steps, axis=0) < EVEN * steps.mean(axis=0)
    sums = sum(weight * values[k : len(values) - 4 + k] for k, weight in enumerate(weights))
    own = sums / (12.0 * steps.mean(axis=0)[:, None] ** power)
    return np.concatenate([found[:2], np.where(even[:, None], own, found[2:-2]), found[-2:]])


def _refuse_short(time: Array) -> None:
    if len(time) < 3:
        raise InputError(f"signal has {len(time)} rows, central differences need at least 3")
