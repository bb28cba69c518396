"""Units, sides of the gearbox and the clock: what brings every column to SI at the joint, and stamps to seconds."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array, per_joint
from dynid.errors import InputError, UnknownNameError
from dynid.io.logs.table import Batch, Table, as_float, numeric
from dynid.model.coupling import Coupling
from dynid.signals.recording import COLUMN_OF_QUANTITY, Recording

_ANGLE = {"rad": 1.0, "deg": math.pi / 180.0, "rev": 2.0 * math.pi, "m": 1.0, "mm": 1e-3, "cm": 1e-2}
_SPEED = {f"{unit}/s": scale for unit, scale in _ANGLE.items()} | {"rpm": math.pi / 30.0}
UNITS: Mapping[str, Mapping[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "position": _ANGLE,
    "reference_position": _ANGLE,
    "velocity": _SPEED,
    "reference_velocity": _SPEED,
    "acceleration": {f"{unit}/s^2": scale for unit, scale in _ANGLE.items()},
    "torque": {"Nm": 1.0, "mNm": 1e-3, "Nmm": 1e-3, "Ncm": 1e-2, "kNm": 1e3, "N": 1.0, "A": 1.0, "mA": 1e-3},
    "external_torque": {"Nm": 1.0, "mNm": 1e-3, "Nmm": 1e-3, "Ncm": 1e-2, "N": 1.0},
    "current": {"A": 1.0, "mA": 1e-3},
    "force": {"N": 1.0, "kN": 1e3, "kgf": 9.80665, "lbf": 4.4482216152605},
    "moment": {
        "Nm": 1.0,
        "Nmm": 1e-3,
        "mNm": 1e-3,
        "Ncm": 1e-2,
        "kgfm": 9.80665,
        "kgfmm": 9.80665e-3,
        "lbfin": 0.1129848290276167,
    },
}
_WRENCH = ("force", "moment")
"""Quantities of a force/torque sensor, three columns each."""
#: Power of the gear ratio (motor turns per joint turn) that brings a motor-side quantity to the joint.
_GEAR_POWER = {
    "position": -1,
    "reference_position": -1,
    "reference_velocity": -1,
    "velocity": -1,
    "acceleration": -1,
    "torque": 1,
}
_AMPERES = ("A", "mA")


_COUPLED = ("position", "reference_position", "velocity", "reference_velocity", "acceleration", "torque")
"""Quantities that a coupling carries from motors to joints."""


@dataclass(frozen=True, eq=False)
class Scales:
    """What brings the numbers of a log to SI at the joint.

    Attributes:
        factors: factors per joint of the quantities that are not in SI at the joint already.
        torque_is_current: whether the torque columns hold amperes.
        held: factor of locked joints' positions, None where it differs from joint to joint.
        drive_gains: newton metre per ampere at the joint, where torque is made of motor current.
        coupling: of motors that move several joints. Gear ratios have brought every motor to its own joint already; what is left is
            ``q = B^-1 q_m`` and ``tau = B^T tau_m``, see :mod:`dynid.model.coupling`.
        coupled: quantities that were measured at the motors of the coupling.
        zero: what the log reads at each joint's zero, rad or m; None for zero throughout.
    """

    factors: Mapping[str, Array]
    torque_is_current: bool = False
    held: float | None = 1.0
    drive_gains: Array | None = None
    coupling: Coupling | None = None
    coupled: tuple[str, ...] = ()
    zero: Array | None = None

    def at_joints(self, recording: Recording) -> Recording:
        """The recording with torque made of current, with everything measured at coupled motors carried to the joints, and with
        positions from the zero of the description."""
        carried = recording if self.drive_gains is None else recording.with_drive_gains(self.drive_gains)
        changes = {
            name: self.carried(name, values) for name in self.coupled if (values := getattr(carried, name)) is not None
        }
        if self.coupling is not None and changes:
            note = f"carried from motors to joints ({', '.join(self.coupling.terms)}): {', '.join(changes)}"
            carried = carried.with_(**changes, source=carried.source.noting(note.replace("_", " ")))
        if self.zero is None:
            return carried
        moved = {
            name: values - self.zero
            for name in ("position", "reference_position")
            if (values := getattr(carried, name)) is not None
        }
        told = ", ".join(f"{name} {zero:.4g}" for name, zero in zip(carried.joint_names, self.zero, strict=True) if zero)
        return carried.with_(**moved, source=carried.source.noting(f"position zeros were subtracted: {told}"))

    def carried(self, quantity: str, values: Array) -> Array:
        """Rows of a quantity at the joints, if they were measured at coupled motors."""
        if self.coupling is None or quantity not in self.coupled:
            return values
        return (self.coupling.torque_at_joints if quantity == "torque" else self.coupling.position_at_joints)(values)


def _some_joints(what: str, given: Any, joint_names: Sequence[str], usual: float) -> Array:
    """One number per joint, from a table of some joints, the others having the usual one, or from a list of all."""
    if given is None or isinstance(given, Mapping):
        given = dict.fromkeys(joint_names, usual) | dict(given or {})
    return per_joint(what, given, joint_names)


def make_scales(
    where: str,
    quantities: Collection[str],
    joint_names: Sequence[str],
    *,
    units: Mapping[str, Any],
    side: Mapping[str, str],
    gear_ratios: Any,
    drive_gains: Any = None,
    sign: Any = None,
    zero: Any = None,
    coupling: Coupling | None = None,
    robot_joints: Sequence[str] = (),
) -> Scales:
    """Factors of the quantities in a log, from their units and the side of the gearbox they were measured at.

    Args:
        where: the file, for messages.
        quantities: those of the log.
        joint_names: joints of its columns, in order.
        units: unit by quantity, one for all joints or one per joint.
        side: ``joint`` or ``motor`` by quantity.
        gear_ratios: motor turns per joint turn.
        drive_gains: newton metre per ampere at the joint.
        sign: -1 for joints to turn round: motion, torque and current of a joint alike.
        zero: what the log reads at the zero of the description, rad or m at the joint, by joint or for all in order.
        coupling: how the robot's motors drive its joints.
        robot_joints: the joints of the coupling.
    """
    _check_names(units, side)
    signs = _some_joints("sign of the mapping", sign, joint_names, 1.0)
    if not np.isin(signs, (-1.0, 1.0)).all():
        raise InputError(f"sign of the mapping is {signs.tolist()}, expected 1 or -1 for each joint")
    factors, torque_is_current = _factors(where, quantities, joint_names, units, side, gear_ratios, signs)
    unit = units.get("position") or "rad"
    held = UNITS["position"].get(unit) if isinstance(unit, str) and side.get("position") != "motor" else None
    gains = None if drive_gains is None else per_joint("drive gains", drive_gains, joint_names)
    coupled = tuple(name for name in _COUPLED if side.get(name) == "motor")
    shift = _some_joints("--zero, or zero of the mapping", zero, joint_names, 0.0)
    zeros = shift if shift.any() else None
    if coupling is None or not coupling.coupled_motors or not coupled:
        return Scales(factors, torque_is_current, held, gains, zero=zeros)
    if tuple(joint_names) != tuple(robot_joints):
        coupling = coupling.kept([list(robot_joints).index(name) for name in joint_names])
    return Scales(factors, torque_is_current, held, gains, coupling, coupled if coupling.coupled_motors else (), zeros)


def _check_names(units: Mapping[str, Any], side: Mapping[str, str]) -> None:
    for name in units:
        if name not in UNITS:
            raise UnknownNameError("quantity in units", str(name), UNITS)
    for name, place in side.items():
        if name not in COLUMN_OF_QUANTITY:
            raise UnknownNameError("quantity in side", str(name), COLUMN_OF_QUANTITY)
        if place not in ("joint", "motor"):
            raise UnknownNameError("side of the gearbox", str(place), ("joint", "motor"))


def _factors(
    where: str,
    quantities: Collection[str],
    joint_names: Sequence[str],
    units: Mapping[str, Any],
    side: Mapping[str, str],
    gear_ratios: Any,
    signs: Array,
) -> tuple[dict[str, Array], bool]:
    """What numbers of each quantity are multiplied by where that is not 1, and whether the torque columns hold amperes."""
    gear = None if gear_ratios is None else per_joint("gear ratios", gear_ratios, joint_names)
    if gear is not None and np.any(gear == 0.0):
        raise InputError(f"gear ratios are {gear.tolist()}, expected none to be zero")
    scaled = [name for name in quantities if name in UNITS]
    per_joint_units = {name: _units_of(name, units.get(name), len(joint_names)) for name in scaled}
    # Whether the columns of torque are stated in amperes.
    torque_units = per_joint_units.get("torque", [])
    amperes = [unit in _AMPERES for unit in torque_units]
    if any(amperes) and not all(amperes):
        raise InputError(f"units of torque mix amperes and newton metres: {', '.join(torque_units)}")
    torque_is_current = any(amperes)
    if torque_is_current and "current" in quantities:
        raise InputError(
            f"{where}: has current columns, yet the unit of torque is {units['torque']!r}; leave one out of the mapping (--mapping FILE)"
        )
    found: dict[str, Array] = {}
    if "wrench" in quantities:
        found["wrench"] = np.array([UNITS[name][unit] for name in _WRENCH for unit in _units_of(name, units.get(name), 3)])
    for name in scaled:
        scale = np.array([UNITS[name][unit] for unit in per_joint_units[name]])
        # Current is that of the motor in any case: the gearbox is part of the drive gain.
        at_joint = side.get(name) != "motor" or (name == "torque" and torque_is_current)
        if not at_joint and name in _GEAR_POWER:
            if gear is None:
                raise InputError(f"{where}: {name} is measured at the motor, expected gear ratios")
            scale = scale * gear ** float(_GEAR_POWER[name])
        found[name] = signs * scale
    return {name: scale for name, scale in found.items() if np.any(scale != 1.0)}, torque_is_current


def _units_of(name: str, given: Any, n: int) -> list[str]:
    """One unit per joint, or per axis of a sensor; none given is SI."""
    given = next(iter(UNITS[name])) if given is None else given
    units = [given] * n if isinstance(given, str) else list(given)
    if len(units) != n:
        counted = f"a sensor has {n} axes" if name in _WRENCH else f"robot has {n} joints"
        raise InputError(f"{len(units)} units of {name} given, {counted}")
    for unit in units:
        if unit not in UNITS[name]:
            raise UnknownNameError(f"unit of {name}", str(unit), UNITS[name])
    return units


# The clock ------------------------------------------------------------------------------------
#: Stamps above this are dates, in each unit.
_DATES = (("ns", 1e17), ("us", 1e14), ("ms", 1e11), ("s", 1e8))
#: Largest median step of a clock in each unit.
_STEPS = (("s", 0.4), ("ms", 150.0), ("us", 1.5e5))

_HEAD_ROWS = 4096
_EPOCH_S = 1e8


@dataclass(frozen=True)
class Clock:
    """Turns the time columns of a batch into seconds; ``rate_hz`` replaces them by counting rows.

    There is no column, one, or one of seconds and one of nanoseconds.
    """

    columns: tuple[str, ...] = ()
    scale: float = 1.0
    origin: tuple[Any, ...] = (0, 0)
    rate_hz: float | None = None
    notes: tuple[str, ...] = ()
    guessed: str | None = None
    """The unit where it was found by the size of the steps alone; the first note says so."""
    named_unit: str | None = None
    """The unit in the name of the column."""

    def seconds(self, where: str, batch: Batch, n: int, first_row: int) -> Array:
        """Time of the ``n`` rows of a batch, the first of which is row ``first_row`` of the file."""
        if self.rate_hz is not None:
            return (first_row + np.arange(n)) / self.rate_hz
        if not self.columns:
            return np.zeros(n)
        raws = [numeric(where, name, batch[name]) for name in self.columns]
        with np.errstate(over="ignore"):  # what overflows is refused as infinite
            time = as_float(raws[0] - self.origin[0]) * self.scale
            if len(raws) == 2:
                time = time + as_float(raws[1] - self.origin[1]) * 1e-9
        return time

    def stamp_s(self, numbers: Sequence[float], row: int) -> float:
        """Time of one row, from its numbers, the time columns first."""
        if self.rate_hz is not None:
            return row / self.rate_hz
        time = float(numbers[0] - self.origin[0]) * self.scale
        return time + float(numbers[1] - self.origin[1]) * 1e-9 if len(self.columns) == 2 else time


def make_clock(where: str, table: Table, time: Clock, unit: Any, rate_hz: float | None) -> Clock:
    """The clock of a table with the time columns of ``time``; ``unit`` is what the user or the preset says.

    Stamps that are dates count from the first one, so that microseconds survive in floats.
    """
    if unit is not None and unit not in UNITS["time"]:
        raise UnknownNameError("unit of time", str(unit), UNITS["time"])
    if rate_hz is not None or not time.columns:
        return replace(time, rate_hz=rate_hz)
    # Of a pair of columns the first holds seconds, whatever unit of time was given.
    given = "s" if len(time.columns) == 2 else unit
    unit, note, by_steps = _unit(where, table, time) if unit is None else (given, None, False)
    notes = () if note is None else (note,)
    scale, names = UNITS["time"][unit], time.columns
    made = replace(time, scale=scale, notes=notes, guessed=unit if by_steps else None)
    for batch in table.read(list(names), _HEAD_ROWS, 0):
        first = numeric(where, names[0], batch[names[0]])
        known = np.flatnonzero(np.isfinite(as_float(first)))
        if known.size == 0:
            continue
        k = int(known[0])
        seconds = float(first[k]) * scale
        if abs(seconds) < _EPOCH_S:
            break
        # A Python integer keeps int64 stamps exact, and subtracts rightly from a column that turns to floats later.
        exact = [int(batch[name][k]) if batch[name].dtype.kind == "i" else float(batch[name][k]) for name in names]
        note = f"time counts from the first stamp, {seconds:.3f} s"
        return replace(made, origin=(*exact, 0)[:2], notes=(*notes, note))
    return made


def _unit(where: str, table: Table, time: Clock) -> tuple[str, str | None, bool]:
    """The unit of the clock with a note, from the file or the column's name, else by its stamps or, which is the third, its steps."""
    column = time.columns[0]
    if len(time.columns) == 2:
        return "s", None, False
    if column in table.units:
        return table.units[column], None, False
    if time.named_unit is not None:
        note = None if time.named_unit == "s" else f"time column '{column}' is read as {time.named_unit} by its name"
        return time.named_unit, note, False
    head = np.empty(0)
    for batch in table.read([column], _HEAD_ROWS, 0):
        head = as_float(numeric(where, column, batch[column])[:_HEAD_ROWS])
        if head.size:
            break
    head = head[np.isfinite(head)]
    if head.size < 2:
        return "s", None, False
    for unit, least in _DATES:
        if abs(float(head[0])) > least:
            return unit, None if unit == "s" else f"time column '{column}' is read as {unit}: its stamps are dates", False
    with np.errstate(over="ignore"):
        steps = np.diff(np.unique(head))
    if steps.size == 0:
        return "s", None, False
    step = float(np.median(steps))
    unit = next((name for name, most in _STEPS if step < most), "ns")
    note = None if unit == "s" else f"time column '{column}' is read as {unit}: its median step is {step:.6g}"
    return unit, note, unit != "s"
