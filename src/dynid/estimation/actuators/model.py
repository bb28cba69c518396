"""What is asked of position-controlled joints, and the values that answer it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.arrays import Array, freeze
from dynid.errors import InputError
from dynid.parameters import INERTIAL_SYMBOLS
from dynid.recording.commands import Command, PositionControl
from dynid.robot.model import Robot
from dynid.simulation.position_loop import Drives, Unknown

FRICTION_SYMBOLS = ("Ia", "fv", "fc", "fo")
GAIN_SYMBOLS = ("kp", "kd")
WIDTH = 0.02
"""Speed over which Coulomb friction turns before it is fitted, rad/s."""


@dataclass(frozen=True, eq=False)
class ActuatorLog:
    """One log: positions as measured, commands as sent, and what is known of the controller.

    Args:
        place: file, for messages.
        time: stamps of the positions, s.
        position: ``(n, joints)``, as logged.
        command: commands on their clock.
        control: gains and limits in this log.
    """

    place: str
    time: Array
    position: Array
    command: Command
    control: PositionControl

    def part(self, start: int, stop: int) -> ActuatorLog:
        """Some rows; commands stay whole, because those before the first row still act."""
        return replace(self, time=self.time[start:stop], position=self.position[start:stop])

    @property
    def period_s(self) -> float:
        return float(np.median(np.diff(self.time)))


@dataclass(frozen=True, eq=False)
class ActuatorModel:
    """Values of everything that a rollout needs.

    Args:
        robot: rigid bodies.
        values: ``Ia fv fc fo width delay`` and ``kp kd`` of every joint; gains as multiples of each log's own numbers.
    """

    robot: Robot
    values: Mapping[str, Array]

    @classmethod
    def described(cls, robot: Robot, *, delay_s: float = 0.0) -> ActuatorModel:
        """The values that the description states."""
        n, stated = robot.n_joints, robot.parameters.as_dict()
        values = {
            symbol: freeze(
                [stated.get(f"{symbol}{j + 1}", joint.nominal.get(symbol, 0.0)) for j, joint in enumerate(robot.joints)]
            )
            for symbol in FRICTION_SYMBOLS
        }
        gains = {symbol: freeze(np.ones(n)) for symbol in GAIN_SYMBOLS}
        return cls(robot, {**values, **gains, "width": freeze(np.full(n, WIDTH)), "delay": freeze(np.full(n, delay_s))})

    def drives(self, control: PositionControl) -> Drives:
        """The drives in a log with this controller."""
        v = self.values
        return Drives.of(
            self.robot.n_joints,
            kp=v["kp"] * control.kp,
            kd=v["kd"] * control.kd,
            armature=v["Ia"],
            viscous=v["fv"],
            coulomb=v["fc"],
            offset=v["fo"],
            width=v["width"],
            delay_s=v["delay"],
            limit=control.limit,
            dead_band=control.dead_band,
            stall=control.stall,
            no_load_speed=control.no_load_speed,
            lag_s=control.lag_s,
        )

    def value(self, unknown: Unknown) -> float:
        if unknown.symbol in INERTIAL_SYMBOLS:
            return self.robot.parameters[f"{unknown.symbol}{unknown.joint + 1}"]
        return float(self.values[unknown.symbol][max(unknown.joint, 0)])

    def with_values(self, unknowns: Sequence[Unknown], new: Array) -> ActuatorModel:
        """The model with these unknowns at these values."""
        values = {name: array.copy() for name, array in self.values.items()}
        bodies: dict[str, float] = {}
        for unknown, value in zip(unknowns, new, strict=True):
            if unknown.symbol in INERTIAL_SYMBOLS:
                bodies[f"{unknown.symbol}{unknown.joint + 1}"] = float(value)
            else:
                values[unknown.symbol][slice(None) if unknown.joint < 0 else unknown.joint] = value
        robot = self.robot.with_parameters(bodies) if bodies else self.robot
        return ActuatorModel(robot, {name: freeze(array) for name, array in values.items()})


@dataclass(frozen=True, eq=False)
class ActuatorProblem:
    """Logs, the robot, and which values are asked for.

    Args:
        robot: bodies as described, on a fixed base.
        logs: one or more; gains may differ between them.
        unknowns: what is estimated, with ``delay`` and ``width`` among them where they are.
        tick_s: period of a digital controller that holds its torque; None for one that acts at every instant.
    """

    robot: Robot
    logs: tuple[ActuatorLog, ...]
    unknowns: tuple[Unknown, ...]
    tick_s: float | None = None

    def __post_init__(self) -> None:
        if not self.logs:
            raise InputError("no log was given, expected at least one with positions and commands")
        if self.robot.floating:
            raise InputError(
                f"robot '{self.robot.name}' has a floating base; hold the base and describe it without its free joint"
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(name_of(unknown) for unknown in self.unknowns)

    @property
    def free(self) -> tuple[str, ...]:
        """Names of the unknowns that are linear in the rows."""
        return tuple(n for n, u in zip(self.names, self.unknowns, strict=True) if u.symbol not in ("delay", "width"))

    def asks(self, symbol: str) -> bool:
        return any(unknown.symbol == symbol for unknown in self.unknowns)


def first_state(log: ActuatorLog, row: int = 0, start: int = 0, stop: int | None = None) -> tuple[Array, Array]:
    """Position and velocity at a row, of a parabola through about 50 ms of rows around it, between ``start`` and ``stop``."""
    reach = max(2, round(0.025 / log.period_s))
    rows = slice(max(start, row - reach), min(len(log.time) if stop is None else stop, row + reach + 1))
    t = log.time[rows] - log.time[row]
    A = np.column_stack([np.ones_like(t), t, t**2])
    fit = np.linalg.lstsq(A, log.position[rows], rcond=None)[0]
    return fit[0], fit[1]


def name_of(unknown: Unknown) -> str:
    """``fv3``, or ``delay`` for a value that all joints share."""
    return unknown.symbol if unknown.joint < 0 else f"{unknown.symbol}{unknown.joint + 1}"


def unknowns_of(
    n_joints: int,
    symbols: Sequence[str] = FRICTION_SYMBOLS,
    *,
    gains: Sequence[str] = (),
    delay: str = "shared",
    width: bool = True,
    bodies: Sequence[int] = (),
    still: Sequence[int] = (),
) -> tuple[Unknown, ...]:
    """What is asked for, joint by joint.

    Args:
        n_joints: of the robot.
        symbols: of friction and rotor.
        gains: ``kp``, ``kd`` where they are not known.
        delay: ``shared``, ``joint`` (one per joint) or ``known``.
        width: whether the turning of Coulomb friction is fitted.
        bodies: numbers (from 0) of bodies whose ten parameters are asked for.
        still: joints that do not move, of which nothing can be asked.
    """
    moving = [j for j in range(n_joints) if j not in set(still)]
    found = [Unknown(symbol, j) for j in moving for symbol in (*symbols, *gains)]
    if width and "fc" in symbols:
        found += [Unknown("width", j) for j in moving]
    if delay == "shared":
        found.append(Unknown("delay", -1))
    elif delay == "joint":
        found += [Unknown("delay", j) for j in moving]
    found += [Unknown(symbol, body) for body in bodies for symbol in INERTIAL_SYMBOLS]
    return tuple(found)
