"""Rows ``[W tau]`` of every joint from samples as they come, by one of two statements.

* ``torque``: velocity and acceleration by a Savitzky-Golay window, torque rows of every sample, then the filter of the rows, which keeps
  a band and thins them out.
* ``polynomial``: rows by polynomial approximation, which differentiates no signal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.friction.fit import needs_load, with_transmitted_load
from dynid.recording.polynomial import PolynomialApproximation
from dynid.recording.samples import Samples
from dynid.recording.travel import Travel
from dynid.regression.channels import torque_channels
from dynid.regression.memory import remembers
from dynid.regression.polynomial_rows import ApproximatedRows, Composition, OnlinePolynomialRows
from dynid.regression.row_filter import BandLimit
from dynid.regression.torque_rows import TorqueRowMaker
from dynid.robot.model import Robot
from dynid.watch.filters import OnlineBand, OnlineSavitzkyGolay, correlated_rows

ROWS_PER_WINDOW = 10
"""Polynomial rows kept per window: neighbours share most of it, and more rows say nothing more."""
BLOCK_ROWS = 16
"""Samples whose torque rows are made together, unless a filtered row is complete before; counted from the start of a part."""


@dataclass(frozen=True)
class RowOptions:
    """How rows are made.

    Args:
        kind: ``torque`` or ``polynomial``.
        band_hz: band of torque rows.
        window: rows of the Savitzky-Golay window; None for one that keeps ``signal_band_hz``.
        order: its degree.
        signal_band_hz: band of position and velocity before rows are made of them.
        logged_velocity: whether velocity is measured, and only smoothed.
        polynomial: kernels of polynomial rows.
        composition: how these form products.
    """

    kind: str = "torque"
    band_hz: float = 8.0
    window: int | None = None
    order: int = 4
    signal_band_hz: float = 40.0
    logged_velocity: bool = False
    polynomial: PolynomialApproximation = field(default_factory=PolynomialApproximation)
    composition: Composition = "product"

    def window_rows(self, period_s: float) -> int:
        """Odd number of rows of the Savitzky-Golay window, by its half-amplitude band (Schafer 2011)."""
        if self.window is not None:
            return self.window
        rows = (0.5 / period_s * (self.order + 1.0) / self.signal_band_hz + 4.6) / 3.2
        return max(2 * int(rows / 2.0) + 1, self.order + 3 - self.order % 2)

    def every(self, period_s: float) -> int:
        """One polynomial row of so many is kept."""
        return max(1, int(self.polynomial.window_s / (ROWS_PER_WINDOW * period_s) + 1e-9))


@dataclass(frozen=True, eq=False)
class TimedRow:
    """``[W tau]`` of every joint at one time."""

    time: float
    blocks: tuple[Array, ...]


class OnlineRows(Protocol):
    """Rows of one stream, part by part."""

    @property
    def row_period_s(self) -> float:
        """Time from row to row."""

    @property
    def inflation(self) -> float:
        """Rows that count as one where torque noise is white."""

    @property
    def delay_s(self) -> float:
        """Age of a row when it is complete."""

    def push(self, time: float, values: Array) -> Iterator[TimedRow]:
        """Rows that a sample on the grid completes."""

    def end(self) -> Iterator[TimedRow]:
        """Rows that the end of a part completes; the next sample begins another."""

    def state(self) -> dict[str, Any]:
        """Numbers to go on with."""

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from these numbers."""


def online_rows(robot: Robot, options: RowOptions, period_s: float) -> OnlineRows:
    """Rows of a robot at a sample period."""
    if options.kind == "torque":
        return BandRows(robot, options, period_s)
    if options.kind == "polynomial":
        return WindowRows(robot, options, period_s)
    raise InputError(f"rows '{options.kind}' cannot be made while samples come in, expected torque or polynomial")


class BandRows:
    """Torque rows within a band. Samples are position, then velocity where it is measured, then torque."""

    def __init__(self, robot: Robot, options: RowOptions, period_s: float) -> None:
        self._robot, n = robot, robot.n_dof
        self._logged = options.logged_velocity
        width = options.window_rows(period_s)
        self._motion = OnlineSavitzkyGolay(width, options.order, period_s, (2 + self._logged) * n, (0, 1, 2))
        self._maker = TorqueRowMaker(robot)
        self._ends = np.cumsum([0, *(channel.width + 1 for channel in torque_channels(robot))])
        self._band = OnlineBand(BandLimit(options.band_hz), period_s, int(self._ends[-1]))
        self._half_s = (width // 2) * period_s
        self.row_period_s = self._band.every * period_s
        self.delay_s = self._half_s + max(self._band.reach, self._band.edge) * period_s
        self.inflation = self._band.inflation
        self._loaded = needs_load(robot)
        self._travel = Travel(n) if remembers(robot) else None
        self._pending: list[Array] = []

    def push(self, time: float, values: Array) -> Iterator[TimedRow]:
        smooth = self._motion.push(values)
        if smooth is None:
            return
        n = self._robot.n_dof
        q = smooth[0, :n]
        v, a = (smooth[0, n : 2 * n], smooth[1, n : 2 * n]) if self._logged else (smooth[1, :n], smooth[2, :n])
        self._pending.append(np.concatenate([[time - self._half_s], q, v, a, self._motion.middle(slice(-n, None))]))
        if len(self._pending) == BLOCK_ROWS or self._band.due(len(self._pending)):
            yield from self._flush()

    def _flush(self) -> Iterator[TimedRow]:
        """Torque rows of the samples that wait: made together, since a call costs more than a row."""
        if not self._pending:
            return
        n = self._robot.n_dof
        block, self._pending = np.array(self._pending), []
        q, v, a, tau = (block[:, 1 + k * n : 1 + (k + 1) * n] for k in range(4))
        samples = Samples(block[:, 0], q, v, a, tau)
        if self._travel is not None:
            samples = replace(samples, travel=self._travel.push(samples.position))
        if self._loaded:
            samples = with_transmitted_load(self._robot, samples)
        (chunk,) = self._maker.rows(samples, len(block))
        for time, row in zip(block[:, 0], np.concatenate(chunk.blocks, axis=1), strict=True):
            for when, filtered in self._band.push(float(time), row):
                yield self._timed(when, filtered)

    def end(self) -> Iterator[TimedRow]:
        yield from self._flush()
        for when, filtered in self._band.end():
            yield self._timed(when, filtered)
        self._motion.restart()
        if self._travel is not None:
            self._travel = Travel(self._robot.n_dof)

    def _timed(self, time: float, row: Array) -> TimedRow:
        return TimedRow(time, tuple(row[a:b] for a, b in pairwise(self._ends)))

    def state(self) -> dict[str, Any]:
        travel = None if self._travel is None else self._travel.state
        pending = np.array(self._pending).reshape(-1, 1 + 4 * self._robot.n_dof)
        return {"motion": self._motion.state(), "band": self._band.state(), "travel": travel, "pending": pending}

    def restore(self, state: dict[str, Any]) -> None:
        self._motion.restore(state["motion"])
        self._band.restore(state["band"])
        self._pending = list(np.array(state["pending"]))
        if self._travel is not None:
            self._travel.restore(state["travel"])


class WindowRows:
    """Rows by polynomial approximation. Samples are position, then torque."""

    def __init__(self, robot: Robot, options: RowOptions, period_s: float) -> None:
        if needs_load(robot) or remembers(robot):
            raise InputError(
                "friction that depends on load or on the last reversal needs velocity, which polynomial rows do not make; "
                "watch with --rows torque"
            )
        self._robot, self._options, self._period_s = robot, options, period_s
        self._every = options.every(period_s)
        self._rows = self._made(0.0)
        self.row_period_s = self._every * period_s
        self.delay_s = self._rows.delay_s
        self.inflation = correlated_rows(self._rows.torque_taps, self._every)
        # whole blocks of the last samples, from which every filter fills up again
        self._kept = (-(-self._rows.n_dropped // self._every) + 1) * self._every
        self._held: list[Array] = []
        self._pending: list[Array] = []
        self._n = 0

    def _made(self, start_s: float) -> OnlinePolynomialRows:
        options = self._options
        return OnlinePolynomialRows(
            self._robot,
            options.polynomial,
            self._period_s,
            composition=options.composition,
            every=self._every,
            start_s=start_s,
        )

    def push(self, time: float, values: Array) -> Iterator[TimedRow]:
        self._pending.append(np.append(time, values))
        if len(self._pending) == self._every:
            yield from self._flush()

    def _flush(self) -> Iterator[TimedRow]:
        if not self._pending:
            return
        block, self._pending = np.array(self._pending), []
        self._held = [*self._held, *block][-self._kept :]
        before, self._n = self._n, self._n + len(block)
        made = self._pushed(block)
        # times of the grid, not counted up from the start, so that a stored stream goes on with the same digits
        done = max(before - self._rows.n_dropped, 0)
        complete = block[len(block) - (max(self._n - self._rows.n_dropped, 0) - done) :, 0]
        for k, time in enumerate(complete[-done % self._every :: self._every] - self.delay_s):
            yield TimedRow(float(time), tuple(one[k] for one in made.blocks))

    def _pushed(self, block: Array) -> ApproximatedRows:
        n = self._robot.n_dof
        return self._rows.push(block[:, 1 : 1 + n], block[:, 1 + n :])

    def end(self) -> Iterator[TimedRow]:
        yield from self._flush()
        self._rows, self._held, self._pending, self._n = self._made(0.0), [], [], 0

    def state(self) -> dict[str, Any]:
        width = 1 + 2 * self._robot.n_dof
        return {
            "held": np.array(self._held).reshape(-1, width),
            "pending": np.array(self._pending).reshape(-1, width),
            "n": self._n,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """The last samples fill every filter as they did; the rows that they make were counted before."""
        self._rows, self._n = self._made(0.0), int(state["n"])
        self._held, self._pending = list(np.array(state["held"])), list(np.array(state["pending"]))
        for start in range(0, len(self._held), self._every):
            self._pushed(np.array(self._held[start : start + self._every]))
        self._rows.count_from(self._n - self._rows.n_dropped)
