"""Motion of position-controlled joints under logged commands, and how it changes with every parameter.

Integrated by Verwer's ROS2 (second order, stiff friction and damping are stable) at about a millisecond; the sensitivities follow
the same motion by the trapezoidal rule. No simulator is needed for it, and one pass gives all derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array, IntArray, freeze
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.model.robot import Robot
from dynid.signals.commands import Command

STEP_S, SLOWEST_STEP_S = 1e-3, 2.5e-3
"""Integration step of fast logs and the longest one of slow logs; by default an eighth of the sampling period within these."""
SLOW_S = 5e-3
"""Inertia and slopes of the rigid bodies change with the pose; for derivatives they are made anew this often."""
NARROWEST = 2e-3
"""Least speed over which friction turns, rad/s or m/s: an integration step could not follow a sharper one."""

_GAINS = ("kp", "kd", "limit", "dead_band", "stall", "no_load_speed", "lag_s", "reach", "saturation")
_FRICTION = ("viscous", "coulomb", "width", "offset", "load", "outer", "rise", "fading")


class RunawayError(InputError):
    """A simulated motion that leaves all numbers."""

    def __init__(self, robot: str) -> None:
        super().__init__(
            f"the simulated motion of robot '{robot}' grows without bound: check gains, delay and units of the commands"
        )


@dataclass(frozen=True, eq=False)
class Drives:
    """Drive, friction and rotor of every joint, one number each.

    Args:
        kp: position gain. kd: velocity gain. limit: largest torque. dead_band: error of position below which nothing is done.
        armature: rotor inertia. viscous, coulomb, offset: friction. width: speed over which Coulomb friction turns.
        delay_s: from the stamp of a command to its effect.
        stall: torque at rest, which falls to zero at no_load_speed. lag_s: time constant of the current loop.
        reach: error of position beyond which the drive gives no more. saturation: what a motor that should give ``tau`` lacks of it,
            ``tau / (1 + saturation |tau|)``. load, outer: growth of dry friction with the drive's torque, and with the torque of weight
            and motion of the bodies. rise: share by which dry friction is larger at rest. fading: speed over which that falls.
    """

    kp: Array
    kd: Array
    armature: Array
    viscous: Array
    coulomb: Array
    offset: Array
    width: Array
    delay_s: Array
    limit: Array
    dead_band: Array
    stall: Array
    no_load_speed: Array
    lag_s: Array
    reach: Array
    saturation: Array
    load: Array
    outer: Array
    rise: Array
    fading: Array

    @classmethod
    def of(cls, n_joints: int, **values: Any) -> Drives:
        """One value for every joint or one per joint; what is not given is zero, limits are infinite, the width 0.02 rad/s, fading 1."""
        defaults: dict[str, Any] = {
            "limit": np.inf,
            "stall": np.inf,
            "no_load_speed": np.inf,
            "reach": np.inf,
            "width": 0.02,
            "fading": 1.0,
        }
        made = {
            name: freeze(np.broadcast_to(np.asarray(values.get(name, defaults.get(name, 0.0)), dtype=float), (n_joints,)))
            for name in cls.__dataclass_fields__
        }
        return cls(**made)

    def with_(self, **values: Any) -> Drives:
        """Some values replaced."""
        n = len(self.kp)
        return replace(self, **{k: freeze(np.broadcast_to(np.asarray(v, dtype=float), (n,))) for k, v in values.items()})


@dataclass(frozen=True, eq=False)
class LoopMotion:
    """A simulated motion on an even grid, and its positions at the stamps asked for."""

    time: Array
    position: Array
    velocity: Array
    command: Array
    """Mean command of every step, one row less than positions."""
    kept: IntArray
    """Grid row nearest to each stamp."""
    at_stamps: Array
    asked: Any = None
    """Options that it was made with, to make it again with other values: stamps, step, tick, rate and velocity."""

    @property
    def step_s(self) -> float:
        return float(self.time[1] - self.time[0])


def simulate_commands(
    robot: Robot,
    drives: Drives,
    command: Command,
    stamps: Array,
    first: tuple[Array, Array],
    *,
    step_s: float | None = None,
    tick_s: float | None = None,
    rate: bool = False,
    velocity: bool = False,
    supply: Command | None = None,
    refuse: bool = True,
) -> LoopMotion:
    """Positions at ``stamps`` of a robot that starts in the state ``first`` and follows commands.

    Args:
        robot: rigid bodies; its effects are not used, see ``drives``.
        drives: controller, friction and rotor of every joint.
        command: commands as logged.
        stamps: times of the positions wanted, increasing; the motion starts at the first.
        first: position and velocity at the first stamp.
        step_s: longest integration step, s; None for an eighth of the sampling period, from 1 to 2.5 ms.
        tick_s: period of a digital controller that holds its torque; None for one that acts at every instant.
        rate: whether the drive damps the speed relative to that of the command.
        velocity: whether commands are speeds that the drive follows.
        supply: voltage that the position gain is multiplied by, zero where a drive is switched off; None for one throughout.
        refuse: refuse a motion that grows without bound, instead of returning it.
    """
    from dynid.compiled import announced
    from dynid.dynamics import position_loop_kernel as kernel

    duration = float(stamps[-1] - stamps[0])
    period = float(np.median(np.diff(stamps))) if len(stamps) > 1 else STEP_S
    longest = float(np.clip(period / 8.0, STEP_S, SLOWEST_STEP_S)) if step_s is None else step_s
    per_stamp = max(1, int(np.ceil(period / longest - 1e-9)))
    h = period / per_stamp
    n_steps = max(1, int(np.ceil(duration / h - 1e-6)))
    time = stamps[0] + h * np.arange(n_steps + 1)
    held = command.mean(time[:-1] + 0.5 * h, h, drives.delay_s)
    slope = _rate(command, time, period, drives.delay_s) if rate else np.zeros_like(held)
    if velocity:
        held, slope = np.zeros_like(held), held
    n, tree = robot.n_dof, robot.tree
    position, speed, acceleration = np.empty((3, n_steps + 1, n))
    announced(kernel.position_loop)(
        np.array(first[0], dtype=float),
        np.array(first[1], dtype=float),
        held,
        slope,
        np.ones_like(held) if supply is None else supply.at(time[:-1] + 0.5 * h, np.zeros(n)),
        h,
        0 if tick_s is None else max(1, round(tick_s / h)),
        tuple(np.array(part) for part in (tree.parent, tree.rotation, tree.translation, tree.screw)),
        np.array(robot.parameters.inertials),
        np.array(robot.gravity),
        np.array(drives.armature),
        np.column_stack([0.0 * drives.kp if velocity and name == "kp" else getattr(drives, name) for name in _GAINS]),
        np.column_stack(
            [np.maximum(drives.width, NARROWEST) if name == "width" else getattr(drives, name) for name in _FRICTION]
        ),
        position,
        speed,
        acceleration,
    )
    if refuse and not np.isfinite(position[-1]).all():
        raise RunawayError(robot.name)
    kept = np.clip(np.round((stamps - stamps[0]) / h), 0, n_steps).astype(np.int64)
    between = (stamps - time[kept])[:, None]
    asked = {"stamps": stamps, "step_s": step_s, "tick_s": tick_s, "rate": rate, "velocity": velocity, "supply": supply}
    at_stamps = position[kept] + between * speed[kept]
    return LoopMotion(time, position, speed, held, freeze(kept, np.int64), at_stamps, asked)


def _rate(command: Command, time: Array, period: float, delay_s: Array) -> Array:
    """Speed of the command over each step: of its mean over a period, because a staircase has none."""
    return np.asarray(np.diff(command.mean(time, period, delay_s), axis=0) / (time[1] - time[0]))


def _jump(command: Command, time: Array, delay_s: Array) -> Array:
    """Change of the command per second from step to step: what a delay moves."""
    h = time[1] - time[0]
    stated = command.at(time, delay_s) if command.between == "held" else command.mean(time, h, delay_s)
    return np.asarray(np.diff(stated, axis=0) / h)


def _acting_error(drives: Drives, error: Array) -> Array:
    """Error of position behind the dead band and within the reach of the drive."""
    behind = error - np.copysign(np.minimum(np.abs(error), drives.dead_band), error)
    return np.asarray(np.clip(behind, -drives.reach, drives.reach))


@dataclass(frozen=True, eq=False)
class Unknown:
    """One parameter that a motion is differentiated by: ``symbol`` of joint ``joint``; -1 for one that all joints share."""

    symbol: str
    joint: int
    scale: float = 1.0
    """Change of the joint's value for a change of one: the log's gain where a gain is estimated as a multiple of it."""
    tied: tuple[tuple[int, float], ...] = ()
    """Other joints that have the same value, each with the sign that it has there (mirrored bodies)."""

    @property
    def shared(self) -> tuple[tuple[int, float], ...]:
        """Every joint that has the value, with its sign."""
        return ((self.joint, 1.0), *self.tied)


def position_sensitivities(
    robot: Robot, drives: Drives, command: Command, motion: LoopMotion, unknowns: Sequence[Unknown], *, rate: bool = False
) -> Array:
    """How the positions at the stamps change, ``(stamps, joints, unknowns + 2 joints)``; last the first state.

    Symbols are those of the model: ``Ia fv fc fo kp kd width delay``, ``sat fl fe rise fading`` of motors and friction under load, and the
    ten of a body. A drive with a current loop or a motor that its speed limits is differentiated by differences of motions.
    """
    asked = motion.asked or {}
    if (drives.lag_s > 0.0).any() or np.isfinite(drives.no_load_speed).any() or asked.get("velocity"):
        return _differences(robot, drives, command, motion, unknowns)
    from dynid.compiled import announced
    from dynid.dynamics import position_loop_kernel as kernel

    h, n = motion.step_s, robot.n_dof
    q, v, u = motion.position, motion.velocity, motion.command
    a = np.gradient(v, h, axis=0)
    every = max(1, round(SLOW_S / h))
    M, C, G = _rigid_slopes(robot, q[::every], v[::every], a[::every])
    M += np.diag(drives.armature)
    middle = 0.5 * (v[1:] + v[:-1])
    width = np.maximum(drives.width, NARROWEST)
    error = u - 0.5 * (q[1:] + q[:-1])
    slope = _rate(command, motion.time, h * every, drives.delay_s) if rate else np.zeros_like(error)
    supply = asked.get("supply")
    volts = np.ones_like(error) if supply is None else supply.at(motion.time[:-1] + 0.5 * h, np.zeros(n))
    on, within = volts > 0.0, np.abs(error) <= drives.reach
    pushing = volts * _acting_error(drives, error)
    damping = on * (slope - middle)
    given = drives.kp * pushing + drives.kd * damping
    less = 1.0 / (1.0 + drives.saturation * np.abs(given))
    torque = given * less
    acting = less**2 * ((np.abs(torque) <= drives.limit) & (np.abs(error) >= drives.dead_band))
    turn, sign = np.tanh(v / width), np.tanh(middle / width)
    load = np.clip(torque, -drives.limit, drives.limit)
    outer = inverse_dynamics(robot, 0.5 * (q[1:] + q[:-1]), middle, np.zeros_like(middle), effects=False)
    slow = np.exp(-np.abs(middle) / drives.fading)
    rising = 1.0 + drives.rise * slow
    even = drives.coulomb + drives.load * np.abs(load) + drives.outer * np.abs(outer)
    dry = even * rising
    # of a torque more the joint gets what friction under load does not take
    acting *= 1.0 - sign * np.sign(load) * drives.load * rising
    G *= (1.0 + drives.outer * _nodes(rising * sign * np.sign(outer)))[::every, :, None]
    D = drives.viscous + _nodes(dry) * (1.0 - turn**2) / width + drives.kd * _nodes(acting * on)
    D -= _nodes(even * drives.rise * slow * np.abs(sign)) / drives.fading
    K = drives.kp * _nodes(acting * volts * within)
    forces = {
        "Ia": -0.5 * (a[1:] + a[:-1]),
        "fv": -middle,
        "fc": -sign * rising,
        "fo": -np.ones_like(middle),
        "kp": acting * pushing,
        "kd": acting * damping,
        "width": dry * (1.0 - sign**2) * middle / width**2,
        "delay": -acting * volts * within * drives.kp * _jump(command, motion.time, drives.delay_s),
        "fl": -sign * rising * np.abs(load),
        "sat": -acting * given * np.abs(given),
        "fe": -sign * rising * np.abs(outer),
        "rise": -sign * even * slow,
        "fading": -sign * even * drives.rise * slow * np.abs(middle) / drives.fading**2,
    }
    F = _forces(robot, (q, v, a), unknowns, forces)
    out = np.empty((len(motion.kept), n, len(unknowns) + 2 * n))
    announced(kernel.sensitivities)(M, C, G, every, K, D, F, h, np.array(motion.kept), out)
    return out


def _forces(
    robot: Robot, motion: tuple[Array, Array, Array], unknowns: Sequence[Unknown], of_drives: Mapping[str, Array]
) -> Array:
    """Torque that a change of one in every unknown adds between two nodes, ``(steps, joints, unknowns)``."""
    n = robot.n_dof
    F = np.zeros((len(motion[0]) - 1, n, len(unknowns)))
    bodies = [k for k, unknown in enumerate(unknowns) if unknown.symbol not in of_drives]
    if bodies:
        Y = torque_regressor(robot.with_effects(()), *(0.5 * (x[1:] + x[:-1]) for x in motion))
        for k in bodies:
            for j, sign in unknowns[k].shared:
                F[:, :, k] -= sign * Y[:, :, robot.parameters.index(f"{unknowns[k].symbol}{j + 1}")]
    for k, unknown in enumerate(unknowns):
        if unknown.symbol in of_drives:
            rows = range(n) if unknown.joint < 0 else (j for j, _ in unknown.shared)
            for j in rows:
                F[:, j, k] = unknown.scale * of_drives[unknown.symbol][:, j]
    return F


_DRIVE_OF = {
    "Ia": "armature",
    "fv": "viscous",
    "fc": "coulomb",
    "fo": "offset",
    "kp": "kp",
    "kd": "kd",
    "width": "width",
    "delay": "delay_s",
    "sat": "saturation",
    "fl": "load",
    "fe": "outer",
    "rise": "rise",
    "fading": "fading",
}
_SMALL = {
    "Ia": 1e-3, "fv": 1e-2, "fc": 1e-2, "fo": 1e-2, "kp": 0.1, "kd": 0.01, "width": 2e-3, "delay": 1e-3, "sat": 0.1, "fl": 0.1, "fe": 0.1,
    "rise": 0.1, "fading": 0.1,
}  # fmt: skip
"""Least sizes of values, of which a difference takes a small share."""
_SHARE = 1e-3


def _differences(robot: Robot, drives: Drives, command: Command, motion: LoopMotion, unknowns: Sequence[Unknown]) -> Array:
    """The sensitivities by central differences, one pair of motions a column."""
    n, first = robot.n_dof, (motion.position[0], motion.velocity[0])
    options = dict(motion.asked)
    stamps = options.pop("stamps")
    out = np.empty((len(stamps), n, len(unknowns) + 2 * n))

    def between(make: Callable[[float], tuple[Robot, Drives, tuple[Array, Array]]], step: float) -> Array:
        high, low = (
            simulate_commands(body, with_, command, stamps, state, refuse=False, **options).at_stamps
            for body, with_, state in (make(step), make(-step))
        )
        return np.asarray((high - low) / (2.0 * step))

    for k, unknown in enumerate(unknowns):
        if unknown.symbol in _DRIVE_OF:
            name = _DRIVE_OF[unknown.symbol]
            value = getattr(drives, name)
            moved = np.ones(n) if unknown.joint < 0 else np.eye(n)[[j for j, _ in unknown.shared]].sum(axis=0)
            size = max(float(np.abs(value * moved).max()), _SMALL[unknown.symbol])
            column = between(
                lambda h, name=name, value=value, moved=moved: (robot, drives.with_(**{name: value + h * moved}), first),  # type: ignore[misc]
                _SHARE * size,
            )
            out[:, :, k] = unknown.scale * column
        else:
            size = max(abs(robot.parameters[f"{unknown.symbol}{unknown.joint + 1}"]), 1e-4)
            stated = {
                (f"{unknown.symbol}{j + 1}", sign): robot.parameters[f"{unknown.symbol}{j + 1}"]
                for j, sign in unknown.shared
            }
            out[:, :, k] = between(
                lambda h, stated=stated: (
                    robot.with_parameters({name: x + sign * h for (name, sign), x in stated.items()}),
                    drives,
                    first,
                ),  # type: ignore[misc]
                _SHARE * size,
            )
    for j in range(2 * n):
        unit = np.eye(2 * n)[j]
        out[:, :, len(unknowns) + j] = between(
            lambda h, unit=unit: (robot, drives, (first[0] + h * unit[:n], first[1] + h * unit[n:])),  # type: ignore[misc]
            1e-4 if j < n else 1e-3,
        )
    return out


def _nodes(steps: Array) -> Array:
    """Values of steps at the grid rows between them."""
    return np.asarray(0.5 * (np.concatenate([steps[:1], steps]) + np.concatenate([steps, steps[-1:]])))


def _rigid_slopes(robot: Robot, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
    """Inertia matrix, and slopes of inverse dynamics with velocity and with position, ``(rows, n, n)`` each."""
    n, still = robot.n_dof, np.zeros_like(q)
    M, C, G = np.empty((3, len(q), n, n))

    def torque(q: Array, v: Array, a: Array) -> Array:
        return inverse_dynamics(robot, q, v, a, effects=False)

    weight = torque(q, still, still)
    for j in range(n):
        unit, small = np.zeros(n), np.zeros(n)
        unit[j], small[j] = 1.0, 1e-5
        M[:, :, j] = torque(q, still, still + unit) - weight
        C[:, :, j] = (torque(q, v + small, a) - torque(q, v - small, a)) / 2e-5
        G[:, :, j] = (torque(q + small, v, a) - torque(q - small, v, a)) / 2e-5
    return M, C, G
