"""From lines or messages to rows in SI units at the joints, on a uniform clock.

The columns are found as those of a log, once, by the first rows. Jitter of the stamps is interpolated as :class:`dynid.Resample` does, a
gap or a jump of the clock starts a new part.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import le
from typing import Any, TypeAlias

import numpy as np

from dynid.apps.online.checkpoint import check_like
from dynid.apps.online.text_lines import LineForm, MalformedError, Pick, form_of
from dynid.arrays import Array
from dynid.errors import InputError
from dynid.io.logs.columns import MissingJointsError, Slot
from dynid.io.logs.decode import Decoder, make_decoder
from dynid.io.logs.layout import ReadOptions
from dynid.io.logs.table import array_table
from dynid.io.logs.units import Clock, make_clock
from dynid.model.robot import Robot
from dynid.signals.recording import LARGEST
from dynid.signals.steps.clock import nominal_period_s

HEAD_ROWS = 64
"""Rows that decide the unit of the clock and the sampling period before any of them is used."""
_QUANTITIES = ("position", "velocity", "torque", "current")


RawRow: TypeAlias = tuple[float, list[float]]
"""Stamp in s from the clock's origin, and the numbers of one row as they came; :meth:`LineDecoder.values` brings these to the joints."""


class LineDecoder:
    """Lines of one stream as rows. The first readable line decides form and columns, the first rows the clock.

    Args:
        robot: the robot; joints that the stream lacks are locked at neutral and merged.
        options: how logs are read.
        velocity: whether to read measured velocity.
        where: the source, for messages.
    """

    def __init__(self, robot: Robot, options: ReadOptions, *, velocity: bool, where: str) -> None:
        ignored = {"reference_position", "external_torque", "acceleration", *(() if velocity else ("velocity",))}
        self._options = replace(options, kind="motion", ignore=tuple(sorted({*options.ignore, *ignored})))
        self.robot, self.where, self._velocity = robot, where, velocity
        self.layout = self._options.layout(robot.coupling)
        self.malformed: Counter[str] = Counter()
        self.notes: list[str] = []
        self._form: LineForm | None = None
        self._decoder: Decoder | None = None
        self._pick: Pick | None = None
        self._clock: Clock | None = None
        self._head: list[list[float]] = []
        self._counted = 0

    @property
    def n_malformed(self) -> int:
        """Lines that held no row."""
        return sum(self.malformed.values())

    @property
    def origin_s(self) -> float:
        """The clock of the rows counts from here, on the sender's clock."""
        if self._clock is None or self._clock.rate_hz is not None:
            return 0.0
        seconds = float(self._clock.origin[0]) * self._clock.scale
        return seconds + float(self._clock.origin[1]) * 1e-9 if len(self._clock.columns) == 2 else seconds

    def decode(self, line: str) -> list[RawRow]:
        """Rows that a line completes: none of the first ones, all of them with the last of these, then one by one."""
        try:
            numbers = self._numbers(line)
        except MalformedError as reason:
            self.malformed[str(reason)] += 1
            return []
        if numbers is None:
            return []
        if self._clock is None:
            self._head.append(numbers)
            return self.settle() if len(self._head) == HEAD_ROWS else []
        return [self._row(self._clock, numbers)]

    def settle(self) -> list[RawRow]:
        """Decide the clock by the rows so far and give them: at the end of a stream that is shorter than its head."""
        if self._clock is not None or not self._head or self._decoder is None:
            return []
        time, stamps = self._decoder.plan.time, {}
        for k, name in enumerate(time.columns):
            column = [numbers[k] for numbers in self._head]
            whole = all(float(stamp).is_integer() for stamp in column)
            stamps[name] = np.array([int(stamp) for stamp in column], dtype=np.int64) if whole else np.array(column)
        table = array_table("lines", stamps)
        clock = make_clock(self.where, table, time, self._decoder.time_unit, self._options.rate_hz)
        self.notes += clock.notes
        rows = [self._row(clock, numbers) for numbers in self._head]
        self._clock, self._head = clock, []
        return rows

    def _row(self, clock: Clock, numbers: list[float]) -> RawRow:
        time = clock.stamp_s(numbers, self._counted)
        self._counted += 1
        return time, numbers[self._n_times :]

    def _numbers(self, line: str) -> list[float] | None:
        """The numbers of a line, its stamp first; None for a header."""
        pick = self._pick
        if pick is None:
            pick = self._plan(form_of(line, self.layout.header))
            if self._form is not None and self._form.name == "csv" and self.layout.header is None:
                return None
        try:
            numbers = pick(line)
        except MalformedError:
            assert self._form is not None
            again = self._form.headed(line)
            if again is None:
                raise
            self._plan(again)  # a sender that connects again sends its header again
            return None
        if not all(map(le, map(abs, numbers), self._largest)):
            finite = all(abs(number) < math.inf for number in numbers)
            raise MalformedError("beyond what any robot shows" if finite else "not a finite number")
        return numbers

    def _plan(self, form: LineForm) -> Pick:
        """Find the columns in lines of a form, as in a log; then where their numbers are, and what brings these to the joints."""
        arrays = {name: np.zeros((1, *shape)) for name, shape in form.shapes.items()}
        table = array_table(form.name, arrays, element_names=dict(form.element_names))
        try:
            found = make_decoder(self.where, table, self.robot, self._options, self.layout)
        except MissingJointsError as missing:
            if self._decoder is not None:
                raise MalformedError("missing joint") from None
            self.notes.append(missing.note("the stream"))
            self.robot = self.robot.only(missing.present)
            found = make_decoder(self.where, table, self.robot, self._options, self.layout)
        plan, scales = found.plan, found.scales
        driven = [name for name in ("torque", "current") if name in plan.slots]
        if not driven or (scales.drive_gains is None and (driven == ["current"] or scales.torque_is_current)):
            hint = " It has motor current: give --drive-gains." if driven else ""
            raise InputError(f"{self.where} has no joint torque, expected columns tau1.. or one per joint name.{hint}")
        if self._velocity and "velocity" not in plan.slots:
            raise InputError("the stream holds no velocity, expected one per joint; or give --velocity position")
        if self._decoder is None:
            self.notes += plan.notes
            if plan.joint_names != self.robot.joint_names:
                self.robot = self.robot.only(plan.joint_names)
        self._form, self._decoder, self._n_times = form, found, len(plan.time.columns)
        self._quantities = [name for name in _QUANTITIES if name in plan.slots]
        self._factors = np.concatenate([found.factors(name) for name in self._quantities])
        largest = np.repeat([LARGEST[name] for name in self._quantities], len(plan.joint_names)) / np.abs(self._factors)
        self._largest = (*[1e19] * self._n_times, *largest.tolist())
        slots = [slot for name in self._quantities for slot in plan.slots[name]]
        self._pick = form.pick([*map(Slot, plan.time.columns), *slots])
        return self._pick

    def values(self, numbers: Array) -> Array:
        """Numbers of some rows as position, velocity where it is read, and torque of every joint, SI."""
        assert self._decoder is not None
        scales, n = self._decoder.scales, len(self._decoder.plan.joint_names)
        values = numbers * self._factors
        found = {name: values[:, k * n : (k + 1) * n] for k, name in enumerate(self._quantities)}
        if scales.drive_gains is not None:
            found["torque"] = found["current" if "current" in found else "torque"] * scales.drive_gains
        carried = [(name, found[name]) for name in ("position", "velocity", "torque") if name in found]
        if scales.coupling is None:
            return np.concatenate([one for _, one in carried], axis=1)
        # row by row: products of matrices have other digits in other company
        rows = [[scales.carried(name, row[None]) for row in one] for name, one in carried]
        return np.concatenate([np.concatenate(one) for one in rows], axis=1)

    # what a checkpoint keeps: the clock and the number of rows; columns are found again by the first line
    def state(self) -> dict[str, Any]:
        """Numbers and names to go on with."""
        clock = self._clock
        kept = ("columns", "scale", "origin", "rate_hz")
        return {
            "counted": self._counted,
            "malformed": dict(self.malformed),
            "clock": None if clock is None else {name: getattr(clock, name) for name in kept},
        }

    def restore(self, state: Mapping[str, Any], first_line: str | None) -> None:
        """Go on from a state; ``first_line`` is the header, for a source that is not read from its start again."""
        self._counted = state["counted"]
        if first_line is not None:
            try:
                self._plan(form_of(first_line, self.layout.header))
            except MalformedError as reason:
                raise InputError(f"{self.where}: the first line cannot be read any more: {reason}") from None
        self.malformed = Counter(state["malformed"])
        clock = state["clock"]
        if clock is not None:
            like = {"columns": [""], "scale": 0.0, "origin": [0.0], "rate_hz": None}
            check_like(clock, like, "the checkpoint, clock")
            if clock["rate_hz"] is not None:
                check_like(clock["rate_hz"], 0.0, "the checkpoint, clock, rate_hz")
            if len(clock["origin"]) < max(len(clock["columns"]), 1):
                raise ValueError(f"its clock has {len(clock['columns'])} columns and {len(clock['origin'])} origins")
            self._clock = Clock(tuple(clock["columns"]), clock["scale"], tuple(clock["origin"]), clock["rate_hz"])


ROUNDING = 1e-6
"""Of a period: stamps that were meant to be on the grid."""
LEAST_GAP_S, GAP_PERIODS = 0.1, 10.0
"""A step longer than both interrupts the stream, as it does a log."""


@dataclass
class Counts:
    """What became of the rows; each that did not count is counted here."""

    rows: int = 0
    """Rows read."""
    repeated: int = 0
    """Rows with the stamp of the row before, left out."""
    late: int = 0
    """Rows older than the row before by less than a gap, left out."""
    gaps: int = 0
    """Steps forward that interrupt the stream."""
    jumps_back: int = 0
    """Steps of the clock back that interrupt the stream."""


class Grid:
    """Samples on ``start + k dt``, part by part, between the rows that come."""

    def __init__(self, period_s: float, counts: Counts) -> None:
        self.period_s, self.counts = period_s, counts
        self.gap_s = max(LEAST_GAP_S, GAP_PERIODS * period_s)
        self._start = self._last = float("nan")
        self._next = 0

    @classmethod
    def of(cls, times: Sequence[float], counts: Counts) -> Grid:
        """The grid of a stream by its first stamps, of which those that go back are passed over."""
        stamps: list[float] = []
        for time in times:
            if not stamps or time > stamps[-1]:
                stamps.append(time)
        return cls(nominal_period_s(np.array(stamps)), counts)

    @property
    def last_s(self) -> float:
        """Stamp of the newest row that counted."""
        return self._last

    def push(self, time: float) -> tuple[bool, list[tuple[float, float]] | None]:
        """Whether a new part begins with a row, and the samples that it completes: their time, and the share that this row has in each
        beside the row before it. None for a row that is left out."""
        self.counts.rows += 1
        step = time - self._last
        if abs(step) <= ROUNDING * self.period_s:
            self.counts.repeated += 1
            return False, None
        if -self.gap_s <= step < 0.0:
            self.counts.late += 1
            return False, None
        if not step <= self.gap_s or step < 0.0:  # also the first row, whose step is no number
            if step > 0.0:
                self.counts.gaps += 1
            elif step < 0.0:
                self.counts.jumps_back += 1
            self._start = self._last = time
            self._next = 1
            return True, [(time, 1.0)]
        made = []
        while (at := self._start + self._next * self.period_s) <= time + ROUNDING * self.period_s:
            made.append((at, min((at - self._last) / step, 1.0)))
            self._next += 1
        self._last = time
        return False, made

    def state(self) -> dict[str, Any]:
        """Numbers to go on with."""
        return {"period_s": self.period_s, "start": self._start, "last": self._last, "next": self._next}

    @classmethod
    def restored(cls, state: Any, counts: Counts) -> Grid:
        """The grid as it was; its next sample lies behind the newest row by a period at most."""
        check_like(state, cls(1.0, counts).state(), "the checkpoint, grid")
        grid = cls(state["period_s"], counts)
        grid._start, grid._last, grid._next = state["start"], state["last"], state["next"]
        ahead = grid._start + grid._next * grid.period_s - grid._last
        if not (0.0 < grid.period_s < math.inf and 0.0 <= ahead <= 1.001 * grid.period_s):
            raise ValueError(f"the next sample is {ahead:g} s after the newest row, at a period of {grid.period_s:g} s")
        return grid
