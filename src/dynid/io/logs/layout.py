"""What is known of a log's columns before it is opened: what a user says, what a mapping file says, how a controller logs.

A mapping is a table, or a TOML or JSON file:

```toml
time = "clock_ms"                        # or ["sec", "nanosec"]
position = "axis{number}.angle"          # pattern with {joint}, {index} (from 0) or {number} (from 1)
torque = ["load_a", "-load_b"]           # or the columns in the robot's joint order; a minus turns a column round
velocity = {shoulder = "w1", elbow = "w2"}   # or by joint
wrench = ["fx", "-fz", "fy", "mx", "-mz", "my"]   # force and moment of a sensor; a minus turns a column round
drive_gains = [10.0, 8.5]                # N m per A at the joint side
gear_ratios = [100, 100]                 # motor turns per joint turn
zero = {elbow = 1.5708}                  # what the log reads where the description has its zero, rad or m; or [0, 1.5708]
sign = {elbow = -1}                      # joints that count the other way, motion and torque alike; or [1, -1]
[units]
time = "ms"
position = "deg"
force = "kgf"                            # of a sensor: N, kN, kgf, lbf
moment = "Nmm"                           # Nm, Nmm, Ncm, kgfm, kgfmm, lbfin
[side]
torque = "motor"
[rename]                                 # column of the log = the name it should have
"Axis 1 pos" = "q1"
```
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dynid.arrays import Array, check_positive
from dynid.codec import read_value
from dynid.errors import InputError, UnknownNameError
from dynid.files import json_value, plain, read_limited, toml_table
from dynid.model.coupling import SIDES, Coupling
from dynid.signals.recording import COLUMN_OF_BODY_MOTION, COLUMN_OF_QUANTITY, checked_joint_names

KINDS = ("motion", "static", "wrench")
_SIDED = ("position", "reference_position", "reference_velocity", "velocity", "acceleration", "torque", "current")
"""Quantities that are measured at the motors where a log is."""
_NAMED = (*COLUMN_OF_QUANTITY, *COLUMN_OF_BODY_MOTION, "gravity", "wrench")
_KINDS: Mapping[str, Any] = {
    "time": str | tuple[str] | tuple[str, str],
    **dict.fromkeys(_NAMED, str | tuple[str, ...] | Mapping[str, str]),
    "units": Mapping[str, str],
    "side": Mapping[str, str],
    **dict.fromkeys(("gear_ratios", "drive_gains", "sign", "zero"), tuple[float, ...] | Mapping[str, float]),
    "rename": Mapping[str, str],
    "header": str | tuple[str, ...],
    "preset": str,
    "topic": str,
}
KEYS = tuple(_KINDS)
"""Every key of a mapping; docs/mapping.md has an example of each."""

Columns = str | Sequence[str] | Mapping[str, str]
PerJoint = Sequence[float] | Mapping[str, float] | Array


@dataclass(frozen=True)
class Layout:
    """What is known of a log, from a user, a mapping, a robot or a preset; None and empty tables say nothing.

    Attributes:
        preset: name of the controller that logs so.
        about: how it does, for a note.
        time: time columns that the log must have: one, or one of seconds and one of nanoseconds.
        clocks: time columns to look for where ``time`` says nothing; the first that are all there are taken.
        columns: columns by quantity that the log must have: a pattern, a list in joint order or a table by joint.
        patterns: patterns by quantity to look for in place of the usual names, with ``{joint}``, ``{index}`` (from 0) or ``{number}``
            (from 1); the first complete one is taken.
        units: units by quantity.
        side: where a quantity is measured, ``joint`` or ``motor``.
        gear_ratios: motor turns per joint turn.
        drive_gains: newton metre per ampere at the joint.
        sign: -1 for joints that count the other way.
        zero: what the log reads at the zero of the description, rad or m.
        rename: columns of the log, and the names they should have.
        header: column names of a text table without any.
        topic: topic of a ROS bag.
        kind: ``motion``, ``static`` or ``wrench``.
        rate_hz: sampling rate that replaces the clock.
        ignore: quantities to leave out.
    """

    preset: str | None = None
    about: str | None = None
    time: tuple[str, ...] | None = None
    clocks: tuple[tuple[str, ...], ...] | None = None
    columns: Mapping[str, Columns] = field(default_factory=dict)
    patterns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    units: Mapping[str, Any] = field(default_factory=dict)
    side: Mapping[str, str] = field(default_factory=dict)
    gear_ratios: Any = None
    drive_gains: Any = None
    sign: Any = None
    zero: Any = None
    rename: Mapping[str, str] = field(default_factory=dict)
    header: tuple[str, ...] | None = None
    topic: str | None = None
    kind: str | None = None
    rate_hz: float | None = None
    ignore: Collection[str] = ()

    def over(self, other: Layout) -> Layout:
        """This layout completed by another: tables are joined, of anything else what is said here wins."""
        joined: dict[str, Any] = {}
        for one in fields(self):
            here, there = getattr(self, one.name), getattr(other, one.name)
            if one.name in ("columns", "patterns", "units", "side", "rename"):
                joined[one.name] = {**there, **here}
            else:
                joined[one.name] = there if here is None else here
        return Layout(**joined)


@dataclass(frozen=True)
class ReadOptions:
    """How to read a log; the defaults find everything by the names of the columns.

    Attributes:
        mapping: columns of the log by quantity, as a table or a TOML or JSON file (see ``io/logs/layout.py``).
        preset: a controller whose column names, units and sides of the gearbox are known, such as ``libfranka``.
        drive_gains: newton metre per ampere at the joint, which make torque of motor current.
        gear_ratios: motor turns per joint turn, for quantities measured at the motor.
        units: units by quantity, such as ``{"position": "deg"}``, one for all joints or one per joint.
        topic: topic of a ROS bag.
        episode: value of ``episode_index`` in a data set of several episodes.
        rate_hz: sampling rate of a log without a clock; replaces the clock where there is one.
        kind: ``motion``, ``static`` (poses) or ``wrench`` (force/torque sensor); found by the columns otherwise.
        ignore: quantities to leave out, such as ``("velocity",)``.
        joints: the joints that numbered columns stand for, in order; joints of the robot that are not named are not read.
        side: ``motor`` where positions, velocities and torques are those of the motors, before gears and coupling; ``joint``
            where they are those of the joints; None for what the robot's coupling says. A mapping may say it by quantity.
        zero: what the log reads at the zero of the description, rad or m; it is subtracted.

    Values per joint are in the order of ``joints`` where that is given, else in the robot's order, or by joint name.

    >>> ReadOptions(units={"position": "deg"}, joints=("torso", "arm_1")).joints
    ('torso', 'arm_1')
    """

    mapping: Mapping[str, Any] | str | os.PathLike[str] | None = None
    preset: str | Layout | None = None
    drive_gains: PerJoint | None = None
    gear_ratios: PerJoint | None = None
    units: Mapping[str, Any] | None = None
    topic: str | None = None
    episode: int | None = None
    rate_hz: float | None = None
    kind: str | None = None
    ignore: Collection[str] = ()
    joints: Sequence[str] | None = None
    side: str | None = None
    zero: PerJoint | None = None

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in KINDS:
            raise UnknownNameError("kind of recording", self.kind, KINDS)
        for name in self.ignore:
            if name not in COLUMN_OF_QUANTITY or name == "position":
                raise UnknownNameError("quantity to ignore", name, [q for q in COLUMN_OF_QUANTITY if q != "position"])
        check_positive("rate_hz", self.rate_hz)
        if self.side is not None and self.side not in SIDES:
            raise UnknownNameError("side of the gearbox", self.side, SIDES)
        if self.joints is not None:
            names = checked_joint_names(self.joints)
            if not names:
                raise InputError("joints names no joint, expected those of the log's columns in order")
            object.__setattr__(self, "joints", names)

    def layout(self, coupling: Coupling | None = None) -> Layout:
        """All that is known before the log is opened: options win over the mapping, it over the robot's coupling, that over a preset."""
        mapping = read_mapping(self.mapping)
        preset = self.preset if self.preset is not None else mapping.preset
        if isinstance(preset, str):
            if preset not in PRESETS:
                raise UnknownNameError("preset", preset, PRESETS)
            preset = PRESETS[preset]
        own = Layout(
            preset=None if preset is None else preset.preset,
            units=self.units or {},
            gear_ratios=self.gear_ratios,
            drive_gains=self.drive_gains,
            zero=self.zero or None,
            topic=self.topic,
            kind=self.kind,
            rate_hz=self.rate_hz,
            ignore=self.ignore,
        )
        side = self.side or (None if coupling is None else coupling.side)
        robot = Layout(
            side=dict.fromkeys(_SIDED, "motor") if side == "motor" else {},
            gear_ratios=None if coupling is None else coupling.gear_ratios,
        )
        return own.over(mapping).over(robot).over(preset or Layout())


def read_mapping(mapping: Mapping[str, Any] | str | os.PathLike[str] | None) -> Layout:
    """What a mapping says, from a table or a TOML or JSON file; checked for its form, not yet against a log."""
    if mapping is None:
        return Layout()
    where = "mapping"
    if not isinstance(mapping, Mapping):
        path = Path(mapping)
        where = str(path)
        if path.suffix.lower() not in (".toml", ".json"):
            raise InputError(f"{where}: a mapping file ends in .toml or .json")
        content = read_limited(path, f"mapping '{where}'")
        mapping = (toml_table if path.suffix.lower() == ".toml" else json_value)(content, f"mapping '{where}'")
        if not isinstance(mapping, Mapping):
            raise InputError(f"{where}: holds {type(mapping).__name__}, expected a table")
        if not mapping:
            raise InputError(f"{where}: is empty, expected one key or more, such as position")
    found: dict[str, Any] = {}
    for key, value in mapping.items():
        if key not in _KINDS:
            raise UnknownNameError("key", str(key), KEYS, where)
        try:
            found[key] = read_value(_KINDS[key], plain(value), key)
        except ValueError as error:
            raise InputError(f"{where}: {error}") from None
    for key in ("time", "header"):
        if isinstance(found.get(key), str):
            found[key] = (found[key],)
    columns = {name: found.pop(name) for name in _NAMED if name in found}
    return Layout(columns=columns, **found)


def _patterns(*names: str) -> tuple[str, ...]:
    forms = ("[{index}]", "_{index}", "{index}", "_{number}", "{number}", "")
    return tuple(name + form for name in names for form in forms)


_JOINT_SIDE = {"position": "joint", "velocity": "joint", "torque": "joint"}

#: Column names, units and side of the gearbox of common controllers.
PRESETS: Mapping[str, Layout] = {
    str(preset.preset): preset
    for preset in (
        Layout(
            preset="libfranka",
            about="CSV of franka::logToCSV; time in ms, torque sensors at the link side",
            clocks=(("time",), ("duration",)),
            patterns={
                "position": _patterns("state.q", "q"),
                "velocity": _patterns("state.dq", "dq"),
                "torque": _patterns("state.tau_J", "tau_J"),
                "external_torque": _patterns("state.tau_ext_hat_filtered", "tau_ext_hat_filtered"),
                "reference_position": _patterns("state.q_d", "q_d"),
            },
            units={"time": "ms", "position": "rad", "velocity": "rad/s", "torque": "Nm"},
            side=_JOINT_SIDE,
        ),
        Layout(
            preset="rtde",
            about="Universal Robots RTDE; joint-side encoders, motor current in A (torque needs drive gains)",
            clocks=(("timestamp",),),
            patterns={
                "position": _patterns("actual_q"),
                "velocity": _patterns("actual_qd"),
                "current": _patterns("actual_current"),
                "reference_position": _patterns("target_q"),
            },
            units={"time": "s", "position": "rad", "velocity": "rad/s", "current": "A"},
            side={"position": "joint", "velocity": "joint", "current": "motor"},
        ),
        Layout(
            preset="fri",
            about="KUKA FRI; link-side torque sensors, no velocity, stamps in s and ns",
            clocks=(
                ("time_stamp_sec", "time_stamp_nano_sec"), ("timestampSec", "timestampNanoSec"),
                ("timestamp_sec", "timestamp_nano_sec"), ("timestamp",), ("time",), ("t",),
            ),
            patterns={
                "position": _patterns("measured_joint_position", "measuredJointPosition"),
                "torque": _patterns("measured_torque", "measuredTorque"),
                "external_torque": _patterns("external_torque", "externalTorque"),
                "reference_position": _patterns("commanded_joint_position", "commandedJointPosition"),
            },
            units={"time": "s", "position": "rad", "torque": "Nm"},
            side={"position": "joint", "torque": "joint"},
        ),
        Layout(
            preset="joint_states",
            about="sensor_msgs/JointState, from a bag or exported; all at the joint",
            clocks=(("header.stamp.sec", "header.stamp.nanosec"), ("header.stamp.secs", "header.stamp.nsecs"),
                    ("header.stamp",), ("stamp_ns",), ("__time",), ("time",), ("timestamp",), ("t",)),
            patterns={
                "position": ("position.{joint}", "{joint}.position", *_patterns("position")),
                "velocity": ("velocity.{joint}", "{joint}.velocity", *_patterns("velocity")),
                "torque": ("effort.{joint}", "{joint}.effort", *_patterns("effort")),
            },
            units={"position": "rad", "velocity": "rad/s", "torque": "Nm"},
            side=_JOINT_SIDE,
        ),
    )
}  # fmt: skip
