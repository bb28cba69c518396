"""What is asked of position-controlled joints: logs with their controllers, and the unknowns."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.actuators.model import ActuatorLog, ActuatorProblem, unknowns_of
from dynid.recording.checks.commands import command_problem
from dynid.recording.commands import Command, PositionControl
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.run.actuator_options import ActuatorSettings
from dynid.run.logs import read_motion_logs

SYMBOL_OF = {"armature": "Ia", "viscous": "fv", "coulomb": "fc", "offset": "fo", "kp": "kp", "kd": "kd"}


def read_command_logs(
    robot: Robot, paths: Sequence[Path], settings: ActuatorSettings
) -> tuple[Robot, tuple[Recording, ...], tuple[str, ...]]:
    """Logs with commands, the robot cut to their joints, and notes on them."""
    found = read_motion_logs(robot, paths, settings, "a motion log with commands", torque=False)
    for recording in found.recordings:
        problem = command_problem(recording, velocity=settings.control == "velocity")
        if problem:
            raise InputError(problem)
    return found.robot, found.recordings, found.notes


def _controls(robot: Robot, settings: ActuatorSettings, n_logs: int) -> list[PositionControl]:
    """The controller of every log."""
    limit = robot.limits("tau_max") if settings.limit is None else _per_joint(robot, settings.limit, "--limit")

    def gains(name: str) -> list[Array]:
        given = getattr(settings, name)
        if given == "auto":
            return [np.ones(robot.n_joints)] * n_logs
        if len(given) not in (1, n_logs):
            raise InputError(
                f"--{name} has gains of {len(given)} logs, {n_logs} logs were given; expected one set, or one per log"
            )
        return [_per_joint(robot, one, f"--{name}") for one in (given * n_logs if len(given) == 1 else given)]

    stall, fastest = (
        None if values is None else _per_joint(robot, values, flag)
        for values, flag in ((settings.stall_torque, "--stall-torque"), (settings.no_load_speed, "--no-load-speed"))
    )
    follows_speed = settings.control == "velocity"
    return [
        PositionControl(
            np.zeros_like(kd) if follows_speed else kp,
            kd,
            limit,
            settings.command_rate,
            float(settings.dead_band),
            velocity=follows_speed,
            stall=stall,
            no_load_speed=fastest,
            lag_s=float(settings.lag),
        )
        for kp, kd in zip(gains("kp"), gains("kd"), strict=True)
    ]


def gain_symbols(settings: ActuatorSettings) -> tuple[str, ...]:
    """Gains that the controller has."""
    return ("kd",) if settings.control == "velocity" else ("kp", "kd")


def _per_joint(robot: Robot, values: Sequence[float], flag: str) -> Array:
    if len(values) not in (1, robot.n_joints):
        raise InputError(
            f"{flag} has {len(values)} numbers, expected 1, or {robot.n_joints}: one per joint ({', '.join(robot.joint_names)})"
        )
    return np.broadcast_to(np.asarray(values, dtype=float), (robot.n_joints,)).copy()


def actuator_logs(
    robot: Robot, recordings: Sequence[Recording], unseen: Sequence[Recording], settings: ActuatorSettings
) -> tuple[list[ActuatorLog], list[ActuatorLog]]:
    """Logs to identify on, and logs to roll out: unseen ones, or the rest of the first after a split."""
    control = _controls(robot, settings, len(recordings))
    made = [_log(r, c, settings) for r, c in zip(recordings, control, strict=True)]
    if settings.split is None:
        return made, [_log(r, control[0], settings) for r in unseen]
    cuts = [(log, round(settings.split * len(log.time))) for log in made]
    return [log.part(0, edge) for log, edge in cuts], [log.part(edge, len(log.time)) for log, edge in cuts]


def _log(recording: Recording, control: PositionControl, settings: ActuatorSettings) -> ActuatorLog:
    sent = recording.reference_velocity if settings.control == "velocity" else recording.reference_position
    assert sent is not None
    command = Command(recording.time, sent, settings.command)
    return ActuatorLog(recording.place, recording.time, recording.position, command, control)


def actuator_problem(
    robot: Robot, logs: Sequence[ActuatorLog], settings: ActuatorSettings, still: set[int]
) -> ActuatorProblem:
    """What the settings ask of joints that move, from these logs."""
    gains = tuple(s for s in gain_symbols(settings) if getattr(settings, s) == "auto" or settings.gains == "scale")
    delay = {"auto": "shared", "joint": "joint"}.get(str(settings.delay), "known")
    unknowns = unknowns_of(
        robot.n_joints,
        [SYMBOL_OF[name] for name in settings.effects],
        gains=gains,
        delay=delay,
        bodies=freed_bodies(robot, settings),
        still=sorted(still),
    )
    tick_s = None if settings.control_hz is None else 1.0 / settings.control_hz
    return ActuatorProblem(robot, tuple(logs), unknowns, tick_s)


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
