"""Smoothing spline: ``min_f  sum_i h_i (y_i - f(t_i))^2 + lambda integral f''(t)^2 dt``, on the clock as logged.

In the frequency domain ``F / Y = 1 / (1 + lambda w^4)``, so ``lambda = 1 / (2 pi f_c)^4`` halves the signal at ``f_c``,
as the zero-phase low-pass does. Derivatives are those of the spline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.recording.signals import Signals
from dynid.recording.steps.differentiate import from_log
from dynid.recording.steps.lowpass import EDGE_S
from dynid.recording.steps.step import Extent, RowwiseStep, apart, checked_signals, chosen_signals, side_by_side
from dynid.recording.steps.zero_phase import FORGOTTEN


@dataclass(frozen=True)
class SmoothingSpline(RowwiseStep):
    """Cubic smoothing spline of all quantities alike, with its derivatives; it needs no uniform clock.

    Args:
        cutoff_hz: frequency at which the spline damps by half, Hz.
        velocity: ``logged``, ``position``, ``auto``, or None to smooth only, as for :class:`SavitzkyGolay`.
        signals: quantities to smooth; None for all.

    Examples:
        >>> import dynid
        >>> dynid.process(dynid.demo_recording(seconds=4.0), [dynid.SmoothingSpline(cutoff_hz=8.0)]).velocity.shape[1]
        7
    """

    cutoff_hz: float
    velocity: Literal["auto", "logged", "position"] | None = "auto"
    signals: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.cutoff_hz) and self.cutoff_hz > 0.0):
            raise InputError(f"SmoothingSpline cutoff_hz is {self.cutoff_hz}, expected a positive number of hertz")
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
