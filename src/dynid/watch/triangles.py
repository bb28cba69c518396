"""What the rows so far say, as one triangle per joint: of all rows, with forgetting, or of a window of time.

Rows are folded one time at a time, so that the digits depend on the rows alone and not on how they arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import freeze
from dynid.parameters import Parameters
from dynid.regression.channels import Channel
from dynid.regression.factor import Factor, Regression
from dynid.watch.rows import TimedRow

WINDOW_PARTS = 10
"""Triangles that a window of time is kept as; it moves on by one of them at a time."""


@dataclass(frozen=True)
class Memory:
    """Which rows count: all, those of the last ``window_s``, or all with a weight that falls by e in ``forget_s``."""

    window_s: float | None = None
    forget_s: float | None = None


class JointTriangles:
    """``R^T R = [W tau]^T [W tau]`` of every joint over its own columns, and how many times went in."""

    def __init__(self, widths: Sequence[int]) -> None:
        self.R = [np.zeros((width + 1, width + 1)) for width in widths]
        self.n_times = 0.0
        self._scratch = [(np.empty((1, width + 1)), np.empty(width + 1)) for width in widths]

    def add(self, row: TimedRow) -> None:
        """Fold the rows of one time."""
        from dynid.estimation.methods.recursive_kernel import fold_rows

        for R, block, (rows, buffer) in zip(self.R, row.blocks, self._scratch, strict=True):
            rows[0] = block
            fold_rows(R, rows, buffer)
        self.n_times += 1.0

    def merge(self, other: JointTriangles) -> None:
        """Fold what other triangles hold."""
        from dynid.estimation.methods.recursive_kernel import fold_rows

        for R, theirs, (_, buffer) in zip(self.R, other.R, self._scratch, strict=True):
            fold_rows(R, theirs.copy(), buffer)
        self.n_times += other.n_times

    def copy(self) -> JointTriangles:
        """The same, which later rows do not change."""
        made = JointTriangles([len(R) - 1 for R in self.R])
        for R, own in zip(made.R, self.R, strict=True):
            R[:] = own
        made.n_times = self.n_times
        return made

    def fade(self, factor: float) -> None:
        """Give all rows so far this weight."""
        for R in self.R:
            R *= np.sqrt(factor)
        self.n_times *= factor

    @property
    def empty(self) -> bool:
        return self.n_times == 0.0

    def regression(self, parameters: Parameters, channels: Sequence[Channel]) -> Regression:
        """The same as a regression that every estimator takes; its rows cannot be made again."""
        rows = freeze([max(round(self.n_times), 1)], np.int64)
        factors = tuple(Factor(channel, freeze(R[None]), rows) for channel, R in zip(channels, self.R, strict=True))
        return Regression(parameters, factors)

    def state(self) -> dict[str, Any]:
        """Numbers to go on with."""
        return {"n": self.n_times, "R": np.concatenate([R.ravel() for R in self.R])}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from these numbers."""
        at = 0
        for R in self.R:
            R[:] = np.asarray(state["R"][at : at + R.size]).reshape(R.shape)
            at += R.size
        self.n_times = float(state["n"])


class Remembered:
    """Triangles of the rows that a memory keeps."""

    def __init__(self, memory: Memory, widths: Sequence[int], row_period_s: float) -> None:
        self._memory, self._widths = memory, tuple(widths)
        self._now = JointTriangles(widths)
        self._parts: list[JointTriangles] = []
        self._fade = 1.0 if memory.forget_s is None else float(np.exp(-row_period_s / memory.forget_s))
        span = np.inf if memory.window_s is None else memory.window_s / (WINDOW_PARTS * row_period_s)
        self._part_rows = np.inf if np.isinf(span) else max(1, round(span))

    def add(self, row: TimedRow) -> None:
        """Count the rows of one time in."""
        if self._now.n_times >= self._part_rows:
            self._parts = [*self._parts, self._now][-(WINDOW_PARTS - 1) :]
            self._now = JointTriangles(self._widths)
        if self._fade < 1.0:
            self._now.fade(self._fade)
        self._now.add(row)

    def triangles(self) -> JointTriangles:
        """Those of everything remembered; do not change them."""
        if not self._parts:
            return self._now
        merged = JointTriangles(self._widths)
        for part in (*self._parts, self._now):
            merged.merge(part)
        return merged

    def state(self) -> dict[str, Any]:
        """Numbers to go on with."""
        return {"parts": [part.state() for part in (*self._parts, self._now)]}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from these numbers."""
        found = []
        for part in state["parts"]:
            made = JointTriangles(self._widths)
            made.restore(part)
            found.append(made)
        *self._parts, self._now = found
