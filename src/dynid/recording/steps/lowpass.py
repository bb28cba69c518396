"""Zero-phase Butterworth low-pass on position, velocity and torque alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.recording.signals import Signals
from dynid.recording.steps.step import (
    Extent,
    RowwiseStep,
    apart,
    checked_signals,
    chosen_signals,
    side_by_side,
)
from dynid.recording.steps.zero_phase import filter_window, memory_rows

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
        if self.cutoff_hz is not None and not (np.isfinite(self.cutoff_hz) and self.cutoff_hz > 0.0):
            raise InputError(f"LowPass cutoff_hz is {self.cutoff_hz}, expected a positive number of hertz")
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
