"""Savitzky-Golay: the least-squares polynomial over a running window, and its derivatives at the middle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.recording.signals import Signals
from dynid.recording.steps.differentiate import from_log
from dynid.recording.steps.step import Extent, RowwiseStep, apart, checked_signals, chosen_signals, side_by_side


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
