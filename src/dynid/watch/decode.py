"""From lines or messages to rows in SI units at the joints: the columns are found as those of a log, once, by the first rows."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.recording.checked import per_joint
from dynid.recording.quantities import LARGEST
from dynid.recording.readers.clock import Clock, make_clock
from dynid.recording.readers.columns import Slot
from dynid.recording.readers.formats.table import ArrayTable
from dynid.recording.readers.joints import MissingJointsError, joints_of
from dynid.recording.readers.motor_side import MotorSide, motor_side
from dynid.recording.readers.options import Layout, ReadOptions
from dynid.recording.readers.plan import ColumnPlan, make_plan
from dynid.recording.readers.units import Scales, make_scales
from dynid.robot.model import Robot
from dynid.watch.text import LineForm, MalformedError, Pick, form_of

HEAD_ROWS = 64
"""Rows that decide the unit of the clock and the sampling period before any of them is used."""
_QUANTITIES = ("position", "velocity", "torque", "current")


@dataclass(frozen=True)
class Row:
    """One sample at the joints: stamp in s from the clock's origin, position, torque, and velocity where it is measured."""

    time: float
    position: Array
    velocity: Array | None
    torque: Array


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
        self.robot, self.where = robot, where
        self.layout = self._options.layout(robot.coupling)
        self.malformed: Counter[str] = Counter()
        self.notes: list[str] = []
        self._form: LineForm | None = None
        self._columns: _Columns | None = None
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

    def decode(self, line: str) -> list[Row]:
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
        return [self._row(numbers)]

    def settle(self) -> list[Row]:
        """Decide the clock by the rows so far and give them: at the end of a stream that is shorter than its head."""
        if self._clock is not None or not self._head or self._columns is None:
            return []
        self._clock = self._columns.clock(self.where, self._head, self._options.rate_hz)
        self.notes += self._clock.notes
        rows, self._head = [self._row(numbers) for numbers in self._head], []
        return rows

    def _numbers(self, line: str) -> list[float] | None:
        if self._form is None or self._pick is None:
            self._begin(line)
            if self._form is None or (self._form.name == "csv" and self.layout.open_options.header is None):
                return None  # that was the header
        assert self._form is not None
        assert self._pick is not None
        again = self._form.headed(line)
        if again is not None:  # a sender that connects again sends its header again
            self._plan(again)
            return None
        numbers = self._pick(line)
        assert self._columns is not None
        self._columns.check(numbers)
        return numbers

    def _begin(self, line: str) -> None:
        form = form_of(line, self.layout.open_options.header)
        self._plan(form)

    def _plan(self, form: LineForm) -> None:
        try:
            columns = _Columns.of(self.where, form, self.robot, self._options, self.layout)
        except MissingJointsError as missing:
            if self._columns is not None:
                raise MalformedError("missing joint") from None
            self.notes.append(missing.note("the stream"))
            self.robot = self.robot.only(missing.present)
            columns = _Columns.of(self.where, form, self.robot, self._options, self.layout)
        if self._columns is None:
            self.notes += columns.plan.notes
            if columns.plan.joint_names != self.robot.joint_names:
                self.robot = self.robot.only(columns.plan.joint_names)
        self._form, self._columns = form, columns
        self._pick = form.pick(columns.slots)

    def _row(self, numbers: Sequence[float]) -> Row:
        assert self._columns is not None
        assert self._clock is not None
        row = self._columns.row(numbers, self._clock, self._counted)
        self._counted += 1
        return row

    # what a checkpoint keeps: the clock and the number of rows; columns are found again by the first line
    def state(self) -> dict[str, Any]:
        """Numbers and names to go on with."""
        clock = self._clock
        return {
            "counted": self._counted,
            "malformed": dict(self.malformed),
            "clock": None
            if clock is None
            else {
                "columns": list(clock.columns),
                "scale": clock.scale,
                "origin": list(clock.origin),
                "rate_hz": clock.rate_hz,
            },
        }

    def restore(self, state: Mapping[str, Any], first_line: str | None) -> None:
        """Go on from a state; ``first_line`` is the header, for a source that is not read from its start again."""
        self._counted = int(state["counted"])
        if first_line is not None:
            try:
                self._begin(first_line)
            except MalformedError as reason:
                raise InputError(f"{self.where}: the first line cannot be read any more: {reason}") from None
        self.malformed = Counter({str(reason): int(n) for reason, n in state["malformed"].items()})
        clock = state["clock"]
        if clock is not None:
            self._clock = Clock(tuple(clock["columns"]), float(clock["scale"]), tuple(clock["origin"]), clock["rate_hz"])


def _refuse_without_torque(where: str, quantities: Sequence[str], scales: Scales, gains: Any) -> None:
    """Refuse a stream without torque, or with current and no gains that make torque of it."""
    driven = [name for name in ("torque", "current") if name in quantities]
    if not driven or (gains is None and (driven == ["current"] or scales.torque_is_current)):
        hint = " It has motor current: give --drive-gains." if driven else ""
        raise InputError(f"{where} has no joint torque, expected columns tau1.. or one per joint name.{hint}")


@dataclass(frozen=True, eq=False)
class _Columns:
    """Where the numbers of a row are, and what brings them to SI at the joints."""

    plan: ColumnPlan
    table: ArrayTable
    scales: Scales
    units: Mapping[str, Any]
    drive_gains: Array | None
    coupled: MotorSide | None
    slots: tuple[Slot, ...]
    """Time columns first, then the quantities, joint by joint."""
    quantities: tuple[str, ...]
    signs: Array
    factors: Array
    bounds: Array

    @classmethod
    def of(cls, where: str, form: LineForm, robot: Robot, options: ReadOptions, layout: Layout) -> _Columns:
        arrays = {name: np.zeros((1, *shape)) for name, shape in form.shapes.items()}
        table = ArrayTable(form.name, arrays, dict(form.element_names))
        joints = joints_of(robot, options.joints)
        plan = make_plan(where, table, joints, layout)
        units = {name: joints.in_order(unit) for name, unit in layout.units.items()}
        scales = make_scales(
            where, tuple(plan.slots), plan.joint_names, units, layout.side, joints.in_order(layout.gear_ratios)
        )
        gains = joints.in_order(layout.drive_gains)
        quantities = tuple(name for name in _QUANTITIES if name in plan.slots)
        _refuse_without_torque(where, quantities, scales, gains)
        slots = (*(Slot(name) for name in plan.time.names), *(slot for name in quantities for slot in plan.slots[name]))
        n, ones = len(plan.joint_names), np.ones(len(plan.joint_names))
        return cls(
            plan=plan,
            table=table,
            scales=scales,
            units=units,
            drive_gains=None if gains is None else per_joint("drive gains", gains, plan.joint_names),
            coupled=motor_side(robot.coupling, robot.joint_names, plan.joint_names, layout.side),
            slots=slots,
            quantities=quantities,
            signs=np.array([-1.0 if slot.negated else 1.0 for slot in slots]),
            factors=np.concatenate([scales.factors.get(name, ones) for name in quantities]),
            bounds=np.repeat([LARGEST[name] for name in quantities], n),
        )

    def check(self, numbers: Sequence[float]) -> None:
        """Refuse what is no number or none that a machine can show."""
        try:
            finite = all(math.isfinite(number) for number in numbers)
        except OverflowError:  # a whole number of hundreds of digits
            finite = False
        if not finite:
            raise MalformedError("not a finite number")
        values = np.abs(np.array(numbers[len(self.plan.time.names) :])) * np.abs(self.factors)
        if (values > self.bounds).any() or any(abs(stamp) > 1e19 for stamp in numbers[: len(self.plan.time.names)]):
            raise MalformedError("beyond what any robot shows")

    def clock(self, where: str, head: Sequence[Sequence[float]], rate_hz: float | None) -> Clock:
        stamps = {}
        for k, name in enumerate(self.plan.time.names):
            column = [numbers[k] for numbers in head]
            whole = all(float(stamp).is_integer() for stamp in column)
            stamps[name] = np.array([int(stamp) for stamp in column], dtype=np.int64) if whole else np.array(column)
        table = ArrayTable("lines", stamps, units=dict(self.table.units))
        return make_clock(where, table, self.plan.time, self.units.get("time"), rate_hz)

    def row(self, numbers: Sequence[float], clock: Clock, counted: int) -> Row:
        n_times, n = len(self.plan.time.names), len(self.plan.joint_names)
        if clock.rate_hz is not None:
            time = counted / clock.rate_hz
        else:
            time = float(numbers[0] - clock.origin[0]) * clock.scale
            if n_times == 2:
                time += float(numbers[1] - clock.origin[1]) * 1e-9
        values = np.array(numbers[n_times:], dtype=np.float64) * self.signs[n_times:] * self.factors
        found = {name: values[k * n : (k + 1) * n] for k, name in enumerate(self.quantities)}
        torque = found.get("torque")
        if self.drive_gains is not None:
            torque = (found["current"] if "current" in found else found["torque"]) * self.drive_gains
        position, velocity = found["position"], found.get("velocity")
        if self.coupled is not None:
            coupling = self.coupled.coupling
            if "position" in self.coupled.motion:
                position = coupling.position_at_joints(position[None])[0]
            if velocity is not None and "velocity" in self.coupled.motion:
                velocity = coupling.position_at_joints(velocity[None])[0]
            if self.coupled.torque and torque is not None:
                torque = coupling.torque_at_joints(torque[None])[0]
        assert torque is not None
        return Row(time, position, velocity, torque)
