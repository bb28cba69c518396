"""What a user says about a log, as one value, and what it means together with a mapping and a preset."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.recording.checked import checked_joint_names
from dynid.recording.quantities import COLUMN_OF_QUANTITY
from dynid.recording.readers.formats.format import OpenOptions
from dynid.recording.readers.mapping import Columns, read_mapping
from dynid.recording.readers.presets import Preset, find_preset
from dynid.robot.coupling import SIDES, Coupling

KINDS = ("motion", "static", "wrench")
SIDED = ("position", "reference_position", "reference_velocity", "velocity", "acceleration", "torque", "current")
"""Quantities that are measured at the motors where a log is."""

PerJoint = Sequence[float] | Mapping[str, float] | Array


@dataclass(frozen=True)
class ReadOptions:
    """How to read a log; the defaults find everything by the names of the columns.

    Attributes:
        mapping: columns of the log by quantity, as a table or a TOML or JSON file (see ``readers/mapping.py``).
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

    Values per joint are in the order of ``joints`` where that is given, else in the robot's order, or by joint name.

    >>> ReadOptions(units={"position": "deg"}, joints=("torso", "arm_1")).joints
    ('torso', 'arm_1')
    """

    mapping: Mapping[str, Any] | str | os.PathLike[str] | None = None
    preset: str | Preset | None = None
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

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in KINDS:
            raise UnknownNameError("kind of recording", self.kind, KINDS)
        for name in self.ignore:
            if name not in COLUMN_OF_QUANTITY or name == "position":
                raise UnknownNameError("quantity to ignore", name, [q for q in COLUMN_OF_QUANTITY if q != "position"])
        if self.rate_hz is not None and not (self.rate_hz > 0.0 and math.isfinite(self.rate_hz)):
            raise InputError(f"rate_hz is {self.rate_hz}, expected a positive number")
        if self.side is not None and self.side not in SIDES:
            raise UnknownNameError("side of the gearbox", self.side, SIDES)
        if self.joints is not None:
            names = checked_joint_names(self.joints)
            if not names:
                raise InputError("joints names no joint, expected those of the log's columns in order")
            object.__setattr__(self, "joints", names)

    def layout(self, coupling: Coupling | None = None) -> Layout:
        """The options together with their mapping and preset, which are read here, and the coupling of the robot."""
        said = read_mapping(self.mapping)
        chosen = self.preset if self.preset is not None else said.preset
        preset = find_preset(chosen) if isinstance(chosen, str) else chosen
        side = self.side or (None if coupling is None else coupling.side)
        ratios = self.gear_ratios if self.gear_ratios is not None else said.gear_ratios
        if ratios is None and coupling is not None:
            ratios = coupling.gear_ratios
        return Layout(
            options=self,
            preset=preset,
            time=said.time,
            columns=said.columns,
            rename=said.rename,
            units={**(preset.units if preset else {}), **said.units, **(self.units or {})},
            side={
                **(preset.side if preset else {}),
                **(dict.fromkeys(SIDED, "motor") if side == "motor" else {}),
                **said.side,
            },
            gear_ratios=ratios,
            drive_gains=self.drive_gains if self.drive_gains is not None else said.drive_gains,
            sign=said.sign,
            open_options=OpenOptions(self.topic if self.topic is not None else said.topic, said.header),
        )


@dataclass(frozen=True)
class Layout:
    """All that is known about a log before it is opened: options win over the mapping, the mapping over the preset."""

    options: ReadOptions
    preset: Preset | None
    time: tuple[str, ...]
    columns: Mapping[str, Columns]
    rename: Mapping[str, str]
    units: Mapping[str, Any]
    side: Mapping[str, str]
    gear_ratios: Any
    drive_gains: Any
    sign: Any
    open_options: OpenOptions
