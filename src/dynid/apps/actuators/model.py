"""What is asked of position-controlled joints, and the values that answer it.

Logs with their controllers, commands checked against the positions that they lead to (units, clocks, joints that do not follow); the
unknowns; and a model of values, which follows the commands of a log.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path

import numpy as np

from dynid.apps.actuators.options import AUTO, EFFECTS, LOAD, STRIBECK, ActuatorSettings
from dynid.arrays import Array, freeze
from dynid.dynamics.position_loop import Drives, LoopMotion, Unknown, simulate_commands
from dynid.errors import InputError
from dynid.estimation.constraints.bodies import ITS_OWN, mirrored, mirrors, paired_joints
from dynid.model.parameters import INERTIAL_SYMBOLS
from dynid.model.robot import Robot
from dynid.pipeline.data import read_motion_logs
from dynid.regression.command_rows import CommandSamples
from dynid.signals.commands import Command, PositionControl
from dynid.signals.process import process
from dynid.signals.recording import Recording
from dynid.signals.steps.clock import Resample
from dynid.signals.steps.filters import Differentiate, LowPass

SIGNAL_SHARE = 0.3
"""Band of the signals, as a share of the sampling rate, at most that below."""
SIGNAL_HZ = 40.0


def command_samples(log: ActuatorLog, joint_names: Sequence[str]) -> CommandSamples:
    """Lightly filtered motion of a log on an even clock, with its commands."""
    rate_hz = 1.0 / log.period_s
    recording = Recording(log.time, log.position, tuple(joint_names))
    steps = [
        Resample(method="cubic"),
        LowPass(cutoff_hz=min(SIGNAL_SHARE * rate_hz, SIGNAL_HZ)),
        Differentiate(velocity="position"),
    ]
    return CommandSamples(process(recording, steps), log.command, log.control)


FRICTION_SYMBOLS = ("Ia", "fv", "fc", "fo")
GAIN_SYMBOLS = ("kp", "kd")
FURTHER = {LOAD: {"saturation": "sat", "load": "fl", "outer": "fe"}, STRIBECK: {"rise": "rise", "fading": "fading"}}
"""Words and symbols of effects that are asked for by name: saturation of the motor, growth of dry friction with the torque of the drive
and with that of the bodies; its rise at rest and the speed over which that fades."""
FURTHER_OF = {word: symbol for words in FURTHER.values() for word, symbol in words.items()}
FURTHER_SYMBOLS = tuple(FURTHER_OF.values())
FADING = 0.3
"""Speed over which friction falls from its value at rest before it is fitted, rad/s."""
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
        start = dict.fromkeys(GAIN_SYMBOLS, 1.0) | dict.fromkeys(FURTHER_SYMBOLS, 0.0)
        start |= {"fading": FADING, "width": WIDTH, "delay": delay_s}
        return cls(robot, {**values, **{symbol: freeze(np.full(n, value)) for symbol, value in start.items()}})

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
            reach=control.reach,
            **{word: v[symbol] for word, symbol in FURTHER_OF.items()},
        )

    def simulate(
        self, log: ActuatorLog, first: tuple[Array, Array], tick_s: float | None = None, *, refuse: bool = True
    ) -> LoopMotion:
        """The motion that the commands of a log make from a state; ``refuse`` one that grows without bound."""
        return simulate_commands(
            self.robot,
            self.drives(log.control),
            log.command,
            log.time,
            first,
            tick_s=tick_s,
            rate=log.control.rate,
            velocity=log.control.velocity,
            supply=log.control.supply,
            refuse=refuse,
        )

    def value(self, unknown: Unknown) -> float:
        """Its value; of joints that share it, their mean."""
        if unknown.symbol in INERTIAL_SYMBOLS:
            return float(np.mean([sign * self.robot.parameters[f"{unknown.symbol}{j + 1}"] for j, sign in unknown.shared]))
        return float(np.mean([self.values[unknown.symbol][max(j, 0)] for j, _ in unknown.shared]))

    def with_values(self, unknowns: Sequence[Unknown], new: Array) -> ActuatorModel:
        """The model with these unknowns at these values."""
        values = {name: array.copy() for name, array in self.values.items()}
        bodies: dict[str, float] = {}
        for unknown, value in zip(unknowns, new, strict=True):
            if unknown.symbol in INERTIAL_SYMBOLS:
                bodies |= {f"{unknown.symbol}{j + 1}": sign * float(value) for j, sign in unknown.shared}
            else:
                values[unknown.symbol][slice(None) if unknown.joint < 0 else [j for j, _ in unknown.shared]] = value
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
        return tuple(n for n, u in zip(self.names, self.unknowns, strict=True) if u.symbol not in NOT_IN_ROWS)

    def with_named(self, model: ActuatorModel, values: Mapping[str, float]) -> ActuatorModel:
        """A model with those unknowns that have a value by their name."""
        known = [u for name, u in zip(self.names, self.unknowns, strict=True) if name in values]
        return model.with_values(known, np.array([values[name_of(u)] for u in known]))

    def untied(self) -> ActuatorProblem:
        """The same without values that joints share: what rows are made of."""
        apart = [Unknown(u.symbol, j) for u in self.unknowns for j, _ in u.shared]
        return replace(self, unknowns=tuple(apart))

    def name_for(self, joint: int, symbol: str) -> str:
        """The name under which a value of a joint is known: its own, or that of the joint that it shares it with."""
        return next(
            (name_of(u) for u in self.unknowns if u.symbol == symbol and joint in {j for j, _ in u.shared}),
            f"{symbol}{joint + 1}",
        )

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


NOT_IN_ROWS = ("delay", "width", *FURTHER_SYMBOLS)
SYMBOL_OF = {"armature": "Ia", "viscous": "fv", "coulomb": "fc", "offset": "fo", "kp": "kp", "kd": "kd"}


def read_command_logs(
    robot: Robot, paths: Sequence[Path], settings: ActuatorSettings
) -> tuple[Robot, tuple[Recording, ...], tuple[str, ...]]:
    """Logs with commands, the robot cut to their joints, and notes on them."""
    found = read_motion_logs(robot, paths, settings, "a motion log with commands", torque=False)
    for recording in found.recordings:
        problem = command_problem(recording, velocity=settings.control == "velocity")
        if problem:  # where a column is missing, a note names it
            raise InputError(
                "; ".join([problem, *(note for note in found.notes if "reference" in note and "is left out" in note)])
            )
    return found.robot, found.recordings, found.notes


def gain_symbols(settings: ActuatorSettings) -> tuple[str, ...]:
    """Gains that the controller has."""
    return ("kd",) if settings.control == "velocity" else ("kp", "kd")


def actuator_problem(
    robot: Robot, logs: Sequence[ActuatorLog], settings: ActuatorSettings, still: set[int]
) -> ActuatorProblem:
    """What the settings ask of joints that move, from these logs."""
    gains = tuple(
        s for s in gain_symbols(settings) if settings.servo or getattr(settings, s) == "auto" or settings.gains == "scale"
    )
    effects = EFFECTS if settings.effects == AUTO else settings.effects
    delay = {"auto": "shared", "joint": "joint"}.get(str(settings.delay), "known")
    unknowns = unknowns_of(
        robot.n_joints,
        [s for name in effects for s in (FURTHER[name].values() if name in FURTHER else (SYMBOL_OF[name],))],
        gains=gains,
        delay=delay,
        width=settings.servo is None,
        bodies=freed_bodies(robot, settings),
        still=sorted(still),
    )
    tick_s = None if settings.control_hz is None else 1.0 / settings.control_hz
    return ActuatorProblem(robot, tuple(logs), _tied(robot, unknowns, settings), tick_s)


def _tied(robot: Robot, unknowns: Sequence[Unknown], settings: ActuatorSettings) -> tuple[Unknown, ...]:
    """The unknowns with those of paired joints made one; offsets and delays of joints stay their own."""
    if not settings.symmetric:
        return tuple(unknowns)
    pairs = paired_joints(robot.joint_names, settings.symmetric)
    asked = {(u.symbol, u.joint) for u in unknowns}
    own = (*ITS_OWN, "delay")
    follows = {(s, j) for i, j in pairs for s, k in asked if k == j and s not in own and (s, i) in asked}
    signs = {j: np.sign(mirrored(np.ones(10), axis)) for (_, j), axis in zip(pairs, mirrors(robot, pairs), strict=True)}

    def sign(symbol: str, j: int) -> float:
        return float(signs[j][INERTIAL_SYMBOLS.index(symbol)]) if symbol in INERTIAL_SYMBOLS else 1.0

    return tuple(
        replace(u, tied=tuple((j, sign(u.symbol, j)) for i, j in pairs if i == u.joint and (u.symbol, j) in follows))
        for u in unknowns
        if (u.symbol, u.joint) not in follows
    )


def freed_bodies(robot: Robot, settings: ActuatorSettings) -> list[int]:
    """Bodies that are identified: those that are not held, and those that are freed by name."""
    held = _named(robot, settings.hold, "--hold")
    return sorted((set(range(robot.n_joints)) - held) | _named(robot, settings.free, "--free"))


def _named(robot: Robot, patterns: Sequence[str], flag: str) -> set[int]:
    found: set[int] = set()
    for pattern in patterns:
        if pattern == "all":
            return set(range(robot.n_joints))
        if pattern == "none":
            continue
        wanted = pattern if any(sign in pattern for sign in "*?[") else f"*{pattern}*"
        matching = {
            i for i in range(robot.n_joints) if any(fnmatch(name, wanted) for name in (robot.links[i], robot.joint_names[i]))
        }
        if not matching:
            raise InputError(
                f"{flag} names '{pattern}', which no link or joint is called; available: {', '.join(robot.links)}"
            )
        found |= matching
    return found


DEGREES = 180.0 / np.pi
STILL = 2e-3
"""Range of position below which a joint does not move, rad or m."""
LATEST_S, EARLIEST_S = 0.5, 0.05
"""Furthest that positions may lag their commands, and lead them by an error of stamps."""
ALIKE = 1.5
"""How many times more alike commands and positions must be at another lag before their clocks are called apart: a slow command that a
joint with dry friction follows late and in jerks is nearly as alike over a second."""


def command_problem(recording: Recording, *, velocity: bool = False) -> str:
    """One sentence on what is wrong with the commands of a log, empty where they fit the positions.

    Args:
        recording: the log.
        velocity: whether the drives were sent speeds; the way that those make is then compared with the positions.
    """
    q, u = recording.position, recording.reference_velocity if velocity else recording.reference_position
    if u is None:
        what, names = (
            ("velocities", "dq_cmd1.. (or dq_ref, target_velocity)")
            if velocity
            else ("positions", "q_cmd1.. (or q_ref, target_position, action)")
        )
        return (
            f"{recording.place} has no commanded {what}, expected columns {names}, one per joint; name them with --mapping"
        )
    if velocity:
        steps = np.diff(recording.time)[:, None] * u[:-1]
        u = np.concatenate([np.zeros((1, u.shape[1])), np.cumsum(steps, axis=0)])
    moving = np.ptp(q, axis=0) > STILL
    if not moving.any():
        return f"{recording.place}: no joint moves by more than {STILL:g} rad, so there is nothing to identify"
    commanded = moving & (np.ptp(u, axis=0) > STILL)
    if not commanded.any():
        return f"{recording.place}: joints move but no command changes, expected the positions that were sent to the drives"
    ratio = np.median(np.ptp(u[:, commanded], axis=0) / np.ptp(q[:, commanded], axis=0))
    if ratio > 0.5 * DEGREES or ratio < 2.0 / DEGREES:
        large, small = ("commands", "positions") if ratio > 1.0 else ("positions", "commands")
        return (
            f"{recording.place}: {large} move {max(ratio, 1.0 / ratio):.3g} times as far as {small}, expected about as far: "
            f"{large} look like degrees and {small} like radians; convert one of them, or give units in --mapping"
        )
    lag = _lag_s(recording.time, u[:, commanded], q[:, commanded])
    if lag is not None:
        words = f"{lag:.3g} s after" if lag > 0.0 else f"{-lag:.3g} s before"
        return (
            f"{recording.place}: positions come {words} their commands, expected a delay of 0 to {LATEST_S:g} s: the clocks of "
            "commands and states are apart; put both on one clock before they are joined"
        )
    return ""


def still_joints(recording: Recording) -> tuple[int, ...]:
    """Joints that do not move."""
    return tuple(int(j) for j in np.flatnonzero(np.ptp(recording.position, axis=0) <= STILL))


def _lag_s(time: Array, u: Array, q: Array) -> float | None:
    """Time by which positions follow commands, where that is plainly none that a drive has; None where it may be.

    Speeds of both are compared at every lag, all joints together.
    """
    period = max(float(np.median(np.diff(time))), (time[-1] - time[0]) / 20_000)
    grid = np.arange(time[0], time[-1], period)
    n = len(grid)
    if n < 16:
        return None
    reach = min(n // 3, round(5.0 / period))
    total = np.zeros(2 * reach + 1)
    smooth = max(1, round(0.05 / period))
    kernel = np.ones(smooth) / smooth
    for j in range(u.shape[1]):
        # whole means only: half a mean at an end is a jump, which both signals have at the same time whatever their clocks
        a, b = (np.gradient(np.convolve(np.interp(grid, time, x[:, j]), kernel, "valid")) for x in (u, q))
        a, b = a - a.mean(), b - b.mean()
        size = 2 ** int(np.ceil(np.log2(2 * n)))
        cross = np.fft.irfft(np.fft.rfft(b, size) * np.conj(np.fft.rfft(a, size)), size)
        norm = np.linalg.norm(a) * np.linalg.norm(b)
        if norm > 0.0:
            total += np.concatenate([cross[-reach:], cross[: reach + 1]]) / norm
    lags = period * np.arange(-reach, reach + 1)
    possible = (lags >= -EARLIEST_S) & (lags <= LATEST_S)
    best = int(np.argmax(total))
    if possible[best] or total[best] < ALIKE * total[possible].max():
        return None
    return float(lags[best])
