"""Running median: takes out single wrong samples and leaves edges where they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.recording.signals import Signals
from dynid.recording.steps.step import Extent, RowwiseStep, apart, checked_signals, chosen_signals, side_by_side


@dataclass(frozen=True)
class Median(RowwiseStep):
    """Median of some rows around each row; the ends of the log repeat their last value.

    Args:
        window: number of rows, odd.
        signals: quantities to filter; None for all.

    Examples:
        >>> import dynid
        >>> len(
        ...     dynid.process(dynid.demo_recording(seconds=4.0), [dynid.Median(window=3), dynid.Differentiate()], edge_s=0.0)
        ... )
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
