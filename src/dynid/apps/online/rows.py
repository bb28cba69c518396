"""Rows ``[W tau]`` of every joint from samples as they come, by one of two statements.

* ``torque``: velocity and acceleration by a Savitzky-Golay window, torque rows of every sample, then the filter of the rows, which keeps
  a band and thins them out.
* ``polynomial``: rows by polynomial approximation, which differentiates no signal.

Filters run along a part of a stream row by row and can be stored; each gives the numbers of its counterpart for whole logs
(:class:`dynid.SavitzkyGolay`, :class:`dynid.BandLimit`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.compiled import njit
from dynid.dynamics.inverse_dynamics import needs_load, with_transmitted_load
from dynid.errors import InputError
from dynid.model.robot import Robot
from dynid.regression.channels import torque_channels
from dynid.regression.polynomial_rows import Composition, OnlinePolynomialRows
from dynid.regression.row_filter import BandLimit
from dynid.regression.row_source import Chunk
from dynid.regression.torque_rows import TorqueRowMaker
from dynid.signals.polynomial_kernels import PolynomialApproximation
from dynid.signals.reversal_history import Travel, remembers
from dynid.signals.samples import Samples

_compiled = njit(cache=True, nogil=True, error_model="numpy")

ROWS_PER_WINDOW = 10
"""Polynomial rows kept per window: neighbours share most of it, and more rows say nothing more."""
BLOCK_ROWS = 32
"""Samples of which rows are made together, unless a filtered row is complete before; counted from the start of a part."""


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


TimedRow: TypeAlias = tuple[float, Array]
"""A time, and ``[W tau]`` of all joints at it side by side, one row."""


class BandRows:
    """Torque rows within a band. Samples are position, then velocity where it is measured, then torque."""

    def __init__(self, robot: Robot, options: RowOptions, period_s: float) -> None:
        self._robot, n = robot, robot.n_dof
        self._logged = options.logged_velocity
        width = options.window_rows(period_s)
        self._motion = OnlineSavitzkyGolay(width, options.order, period_s, (2 + self._logged) * n, (0, 1, 2))
        self._maker = TorqueRowMaker(robot)
        width_of_rows = sum(channel.width + 1 for channel in torque_channels(robot))
        self._band = OnlineBand(BandLimit(options.band_hz), period_s, width_of_rows)
        self._half_s = (width // 2) * period_s
        self.row_period_s = self._band.every * period_s
        """Time from row to row."""
        self.inflation = self._band.inflation
        """Rows that count as one where torque noise is white."""
        self._loaded = needs_load(robot)
        self._travel = Travel(n) if remembers(robot) else None

    @property
    def block_rows(self) -> int:
        """Samples that the next block has; it follows from the number of samples of the part alone."""
        return self._motion.missing + min(BLOCK_ROWS, self._band.missing)

    def push(self, times: Array, values: Array) -> Iterator[TimedRow]:
        """Rows that a block of samples on the grid completes."""
        n = self._robot.n_dof
        smooth, middle = self._motion.push(values)
        if not len(smooth):
            return
        q = smooth[:, 0, :n]
        v, a = (smooth[:, 0, n : 2 * n], smooth[:, 1, n : 2 * n]) if self._logged else (smooth[:, 1, :n], smooth[:, 2, :n])
        samples = Samples(times[-len(smooth) :] - self._half_s, q, v, a, middle[:, -n:])
        if self._travel is not None:
            samples = replace(samples, travel=self._travel.push(samples.position))
        if self._loaded:
            samples = with_transmitted_load(self._robot, samples)
        (chunk,) = self._maker.rows(samples, len(samples))
        yield from self._band.push(np.column_stack([*chunk.blocks, samples.time]))

    def end(self) -> Iterator[TimedRow]:
        """Rows that the end of a part completes; the next sample begins another."""
        yield from self._band.end()
        self._motion.restart()
        if self._travel is not None:
            self._travel = Travel(self._robot.n_dof)

    def state(self) -> dict[str, Any]:
        """Numbers to go on with."""
        travel = None if self._travel is None else self._travel.state
        return {"motion": self._motion.state(), "band": self._band.state(), "travel": travel}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from these numbers."""
        self._motion.restore(state["motion"])
        self._band.restore(state["band"])
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
        self.inflation = correlated_rows(self._rows.torque_taps, self._every)
        # whole blocks of the last samples, from which every filter fills up again
        self._kept = (-(-self._rows.n_dropped // self._every) + 1) * self._every
        self._held, self._n = np.empty((0, 1 + 2 * robot.n_dof)), 0

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

    @property
    def block_rows(self) -> int:
        """Samples that the next block has."""
        return self._every

    def push(self, times: Array, values: Array) -> Iterator[TimedRow]:
        """Rows that a block of samples on the grid completes."""
        block = np.column_stack([times, values])
        self._held = np.concatenate([self._held, block])[-self._kept :]
        before, self._n = self._n, self._n + len(block)
        made = self._pushed(block)
        # times of the grid, not counted up from the start, so that a stored stream goes on with the same digits
        done = max(before - self._rows.n_dropped, 0)
        complete = times[len(block) - (max(self._n - self._rows.n_dropped, 0) - done) :]
        for k, time in enumerate(complete[-done % self._every :: self._every] - self._rows.delay_s):
            yield float(time), np.concatenate([one[k : k + 1] for one in made.blocks], axis=1)

    def _pushed(self, block: Array) -> Chunk:
        n = self._robot.n_dof
        return self._rows.push(block[:, 1 : 1 + n], block[:, 1 + n :])

    def end(self) -> Iterator[TimedRow]:
        """A part has ended, which completes no row; the next sample begins another."""
        self._rows, self._held, self._n = self._made(0.0), self._held[:0], 0
        return iter(())

    def state(self) -> dict[str, Any]:
        """Numbers to go on with."""
        return {"held": self._held.copy(), "n": self._n}

    def restore(self, state: dict[str, Any]) -> None:
        """The last samples fill every filter as they did; the rows that they make were counted before."""
        self._rows, self._n, self._held = self._made(0.0), state["n"], state["held"]
        for start in range(0, len(self._held), self._every):
            self._pushed(self._held[start : start + self._every])
        self._rows.count_from(self._n - self._rows.n_dropped)


OnlineRows: TypeAlias = BandRows | WindowRows
"""Rows of one stream, part by part."""


def online_rows(robot: Robot, options: RowOptions, period_s: float) -> OnlineRows:
    """Rows of a robot at a sample period."""
    if options.kind == "torque":
        return BandRows(robot, options, period_s)
    if options.kind == "polynomial":
        return WindowRows(robot, options, period_s)
    raise InputError(f"rows '{options.kind}' cannot be made while samples come in, expected torque or polynomial")


@_compiled
def filter_rows(buffer, first, level, taps, out) -> None:  # type: ignore[no-untyped-def]
    """``out[i, d, c] = sum_k taps[d, k] (buffer[first + i + k, c] - level[c])``, with digits that do not depend on where an array lies."""
    for i in range(out.shape[0]):
        for d in range(taps.shape[0]):
            for c in range(buffer.shape[1]):
                out[i, d, c] = 0.0
            for k in range(taps.shape[1]):
                tap = taps[d, k]
                for c in range(buffer.shape[1]):
                    out[i, d, c] += tap * (buffer[first + i + k, c] - level[c])


@_compiled
def reflect_rows(known, reach, out) -> None:  # type: ignore[no-untyped-def]
    """``2 x_0 - x_k`` for ``k`` from 1 to ``reach`` into ``out[k - 1]``, the last of them repeated where there are fewer rows."""
    n = known.shape[0]
    for k in range(1, reach + 1):
        at = min(k, n - 1)
        for c in range(known.shape[1]):
            out[k - 1, c] = 2.0 * known[0, c] - known[at, c]


class Sliding:
    """The newest rows in one piece of memory; the oldest are given up where ``keep`` allows."""

    def __init__(self, width: int, keep: int) -> None:
        self.keep = keep
        self.rows = np.zeros((max(2 * keep, 16), width))
        self.begin = self.end = 0

    def __len__(self) -> int:
        return self.end - self.begin

    def push(self, rows: Array) -> None:
        """Add rows."""
        if self.end + len(rows) > len(self.rows):
            kept = self.rows[max(self.begin, self.end - self.keep) : self.end].copy()
            if 4 * (len(kept) + len(rows)) > 3 * len(self.rows):
                self.rows = np.zeros((2 * (len(kept) + len(rows)), self.rows.shape[1]))
            self.begin, self.end = 0, len(kept)
            self.rows[: self.end] = kept
        self.rows[self.end : self.end + len(rows)] = rows
        self.end += len(rows)

    def held(self) -> Array:
        """All rows that are there, a copy."""
        return self.rows[self.begin : self.end].copy()

    @classmethod
    def of(cls, rows: Array, width: int, keep: int) -> Sliding:
        """With these rows in it."""
        made = cls(width, keep)
        made.push(np.asarray(rows, dtype=np.float64).reshape(-1, width))
        return made


class OnlineSavitzkyGolay:
    """Smoothed signal and its derivatives at the middle of a window, half a window late."""

    def __init__(self, window: int, order: int, period_s: float, width: int, derivatives: tuple[int, ...]) -> None:
        from scipy.signal import savgol_coeffs

        coefficients = [savgol_coeffs(window, order, deriv=d, delta=period_s, use="dot") for d in derivatives]
        self._taps = np.ascontiguousarray(coefficients)
        self.window, self._width, self._smooth = window, width, derivatives.index(0)
        self._held = Sliding(width, window)
        self._level: Array | None = None

    @property
    def missing(self) -> int:
        """Rows that must come before one completes a window."""
        return max(self.window - 1 - len(self._held), 0)

    def push(self, rows: Array) -> tuple[Array, Array]:
        """``(windows, derivatives, columns)`` at the middle of the windows that some rows complete, and the rows there as they came."""
        held = self._held
        if self._level is None:
            self._level = np.array(rows[0])  # derivatives live on differences; the first row, as for whole logs
        n = max(len(rows) - self.missing, 0)
        held.push(rows)
        out = np.empty((n, len(self._taps), self._width))
        first = held.end - self.window + 1 - n
        if not n:
            return out, np.empty((0, self._width))
        filter_rows(held.rows, first, self._level, self._taps, out)
        out[:, self._smooth] += self._level
        middle = first + self.window // 2
        held.begin = held.end - self.window
        return out, held.rows[middle : middle + n].copy()

    def restart(self) -> None:
        """A new part begins."""
        self._held, self._level = Sliding(self._width, self.window), None

    def state(self) -> dict[str, Any]:
        """Numbers to go on with."""
        return {"rows": self._held.held(), "level": self._level}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from these numbers."""
        self._held = Sliding.of(state["rows"], self._width, self.window)
        self._level = None if state["level"] is None else np.asarray(state["level"], float).reshape(self._width)


class OnlineBand:
    """:class:`BandLimit` of one part, row by row: the same rows, each as soon as its window is complete.

    The first row of a part is answered for when as many rows as the filter reaches have come, the last ones by :meth:`end`.
    """

    def __init__(self, band: BandLimit, period_s: float, width: int) -> None:
        self._taps = np.ascontiguousarray(band.taps(period_s)[None])
        self.reach = self._taps.shape[1] // 2
        self.every, self.edge = band.every(period_s), band.edge_rows(period_s)
        self._delay = max(self.reach, self.edge)
        self._width, self._zero = width, np.zeros(width + 1)
        self.restart()

    def restart(self) -> None:
        """A new part begins."""
        self._held = Sliding(self._width + 1, self.reach + self._delay + 2 + BLOCK_ROWS)
        self._n = 0
        self._begun = False
        self._target = self.edge + -self.edge % self.every

    @property
    def inflation(self) -> float:
        """Rows of white noise that count as one: ``sum_k rho(k every)`` of the taps' own correlation."""
        return correlated_rows(self._taps[0], self.every)

    @property
    def missing(self) -> int:
        """Rows that complete the next filtered row."""
        return int(max(self._target + self._delay, self.reach) + 1 - self._n)

    def push(self, rows: Array) -> Iterator[TimedRow]:
        """Filtered rows that these complete, whose last column is their time."""
        self._held.push(rows)
        self._n += len(rows)
        if not self._begun:
            if self._n <= self.reach:
                return
            self._begin()
        while self._target + self._delay < self._n:
            yield self._answer()

    def end(self) -> Iterator[TimedRow]:
        """The rows that the end of a part still gives; a part that is too short gives none."""
        if self._n > 2 * self.edge:
            if not self._begun:
                self._begin()
            last = self._held.rows[max(self._held.begin, self._held.end - self.reach - 1) : self._held.end][::-1].copy()
            beyond = np.empty((self.reach, self._width + 1))
            reflect_rows(last, self.reach, beyond)
            n = self._n
            self._held.keep += self.reach
            self._held.push(beyond)
            self._n += self.reach
            while self._target < n - self.edge:
                yield self._answer()
        self.restart()

    def _begin(self) -> None:
        """The first rows reflected before the start."""
        rows = self._held.held()
        before = np.empty((self.reach, self._width + 1))
        reflect_rows(rows[: self.reach + 1], self.reach, before)
        self._held = Sliding.of(np.concatenate([before[::-1], rows]), self._width + 1, self._held.keep)
        self._begun = True

    def _answer(self) -> TimedRow:
        held = self._held
        middle = held.end - self._n + self._target  # place of the row to answer for
        out = np.empty((1, 1, self._width + 1))
        filter_rows(held.rows, middle - self.reach, self._zero, self._taps, out)
        time = float(held.rows[middle, -1])
        self._target += self.every
        return time, out[0, :, :-1]

    def state(self) -> dict[str, Any]:
        """Numbers to go on with."""
        return {"rows": self._held.held()[-self._held.keep :], "n": self._n, "begun": self._begun, "target": self._target}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from these numbers."""
        self.restart()
        self._held = Sliding.of(state["rows"], self._width + 1, self._held.keep)
        self._n, self._begun, self._target = state["n"], state["begun"], state["target"]
        # rows that the next answer reaches back to must be there: compiled code does not look
        needed = self._n - self._target + self.reach if self._begun else self._n
        if not (0 <= needed <= len(self._held) and self._target >= self.edge):
            raise ValueError(f"{len(self._held)} rows wait for the band, expected {needed}")


def correlated_rows(taps: Array, every: int) -> float:
    """How many rows of filtered white noise count as one: the sum of their correlation over all lags that are kept."""
    correlation = np.correlate(taps, taps, mode="full")
    middle = len(taps) - 1
    lags = correlation[middle % every :: every] / correlation[middle]
    return max(float(lags.sum()), 1.0)
