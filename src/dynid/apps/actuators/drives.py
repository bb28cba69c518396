"""Logs with their drives: what is known of the controller of each, and of motors that are driven by voltage, as hobby servos are.

    tau = k_t / R (V d - k_t v),    d = clip(kp (u - q), +- duty)

``V`` is the supply, ``d`` the share of it that the firmware applies. The position gain of a log is then a duty per radian, what is found
of it is ``k_t / R``, and what is found of the velocity gain is ``k_t^2 / R``, the braking by the voltage that the motor induces.

Torque limits that are not known follow from rows: a drive at its limit gives the same torque whatever the error of position is. Where the
motion needs an almost constant torque while the controller asks for much more, that torque is the limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dynid.apps.actuators.model import ActuatorLog, ActuatorModel, ActuatorProblem, command_samples
from dynid.apps.actuators.options import ActuatorSettings
from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.io.logs.base_columns import log_columns, read_columns
from dynid.io.logs.log_file import LogFile
from dynid.io.logs.names import fold
from dynid.io.logs.paths import log_part
from dynid.model.robot import Robot
from dynid.pipeline.data import read_options
from dynid.signals.commands import Command, PositionControl
from dynid.signals.recording import Recording

COLUMNS = {
    "supply": ("volts", "voltage", "supply_voltage", "present_input_voltage"),
    "enabled": ("enabled", "torque_enable", "torque_enabled"),
    "kp": ("kp", "p_gain", "position_p_gain"),
}
"""Columns of a log with one number for all joints, by their folded names."""


@dataclass(frozen=True, eq=False)
class Motor:
    """What a log says of the drives beside positions.

    Args:
        supply: voltage over time, one column; zero where the drives are switched off.
        kp: position gain in the firmware's units; None where the log has none.
    """

    supply: Command
    kp: float | None


def read_motors(paths: Sequence[Path], settings: ActuatorSettings) -> tuple[Motor, ...]:
    """Supply and gain of every log; none of drives that are given torques."""
    return tuple(_read(path, settings) for path in paths) if settings.servo else ()


def _read(path: Path, settings: ActuatorSettings) -> Motor:
    options = read_options(settings)
    with LogFile(log_part(path).path) as file:
        there = {fold(name): name for name in reversed(log_columns(file, options))}
        named = {
            what: there[next(n for n in names if n in there)] for what, names in COLUMNS.items() if there.keys() & set(names)
        }
        if "supply" not in named and settings.supply is None:
            raise InputError(f"{path} has no supply voltage, expected a column 'volts', or --supply")
        if "kp" not in named and settings.kp == "auto":
            raise InputError(f"{path} has no position gain of the firmware, expected a column 'kp', or --kp")
        made = read_columns(file, list(named.values()), options) if named else None
    found = {} if made is None else dict(zip(named, made.position.T, strict=True))
    time = np.array([0.0, 1.0]) if made is None else made.time
    volts = np.full(len(time), settings.supply) if settings.supply is not None else found["supply"]
    on = found.get("enabled", np.ones(len(time))) > 0.0
    if not (volts[on] > 0.0).all():
        raise InputError(f"{path}: supply voltage is {volts[on].min():g} V while the drive is on, expected more than zero")
    kp = None
    if settings.kp == "auto":
        kp = float(found["kp"][0])
        if kp <= 0.0 or np.ptp(found["kp"]) > 0.0:
            raise InputError(
                f"{path}: column '{named['kp']}' is {kp:g} and changes or is not positive, expected one gain for the whole log"
            )
    return Motor(Command(time, (volts * on)[:, None]), kp)


def with_motor(log: ActuatorLog, motor: Motor, settings: ActuatorSettings) -> ActuatorLog:
    """A log whose drives are given the voltage of a supply."""
    control, n, servo = log.control, log.position.shape[1], settings.servo
    assert servo is not None
    kp = servo.kp_unit * (control.kp if motor.kp is None else np.full(n, motor.kp))
    if not (kp > 0.0).all():
        raise InputError(f"{log.place}: position gain of a drive is {kp.min():g}, expected more than zero")
    supply = replace(motor.supply, values=np.repeat(motor.supply.values, n, axis=1))
    limit = None if settings.limit is None else control.limit  # the description's is that of the joint, not of the motor
    return replace(log, control=replace(control, kp=kp, kd=np.ones(n), limit=limit, reach=servo.duty / kp, supply=supply))


def motor_constants(kp: float, kd: float, covariance: Array) -> dict[str, tuple[float, float]] | None:
    """Motor constant and resistance with their deviations, from ``k_t / R`` and ``k_t^2 / R``.

    Args:
        kp: ``k_t / R``, N m/V. kd: ``k_t^2 / R``, N m s/rad.
        covariance: of the two, in this order.

    Returns:
        ``kt`` in N m/A (or V s/rad) and ``resistance`` in ohm, both at the joint; None where one of the two is within two
            deviations of zero.
    """
    if not (np.array([kp, kd]) > 2.0 * np.sqrt(np.maximum(np.diag(covariance), 0.0))).all():
        return None
    kt, resistance = kd / kp, kd / kp**2
    slopes = {
        "kt": (kt, np.array([-kd / kp**2, 1.0 / kp])),
        "resistance": (resistance, np.array([-2.0 * kd / kp**3, 1.0 / kp**2])),
    }
    return {name: (value, float(np.sqrt(max(g @ covariance @ g, 0.0)))) for name, (value, g) in slopes.items()}


def actuator_logs(
    robot: Robot,
    recordings: Sequence[Recording],
    unseen: Sequence[Recording],
    settings: ActuatorSettings,
    motors: Sequence[Motor] = (),
) -> tuple[list[ActuatorLog], list[ActuatorLog]]:
    """Logs to identify on, and logs to roll out: unseen ones, or the rest of the first after a split.

    ``motors`` are those of ``recordings``, then of ``unseen``; none for drives that are given torques.
    """
    control = _controls(robot, settings, len(recordings))
    control += [control[0]] * len(unseen)
    logs = [_log(r, c, settings) for r, c in zip((*recordings, *unseen), control, strict=True)]
    if motors:
        logs = [with_motor(log, motor, settings) for log, motor in zip(logs, motors, strict=True)]
    made = logs[: len(recordings)]
    if settings.split is None:
        return made, logs[len(recordings) :]
    cuts = [(log, round(settings.split * len(log.time))) for log in made]
    return [log.part(0, edge) for log, edge in cuts], [log.part(edge, len(log.time)) for log, edge in cuts]


def _log(recording: Recording, control: PositionControl, settings: ActuatorSettings) -> ActuatorLog:
    sent = recording.reference_velocity if settings.control == "velocity" else recording.reference_position
    assert sent is not None
    command = Command(recording.time, sent, settings.command)
    return ActuatorLog(recording.place, recording.time, recording.position, command, control)


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


def _per_joint(robot: Robot, values: Sequence[float], flag: str) -> Array:
    if len(values) not in (1, robot.n_joints):
        raise InputError(
            f"{flag} has {len(values)} numbers, expected 1, or {robot.n_joints}: one per joint ({', '.join(robot.joint_names)})"
        )
    return np.broadcast_to(np.asarray(values, dtype=float), (robot.n_joints,)).copy()


MORE = 1.3
"""Times the largest torque that was given that a drive must have been asked for."""
LEAST_SHARE, LEAST_ROWS = 0.01, 30
MOVING = 0.2
"""Speed below which a joint may be held by friction, rad/s or m/s."""
TRUE = 0.3
"""How far the torque given may be from that asked for below the limit: further off, the model is wrong, and says nothing of limits."""
FAR = 2.0
"""Times the limit that a drive must have been asked for in a tenth of these rows: a little more than was given may be friction."""
EVEN = 0.1
"""Spread of the torque at the limit, relative to it, at most."""


def torques(problem: ActuatorProblem, model: ActuatorModel, log: ActuatorLog) -> tuple[Array, Array, Array]:
    """What the controller asked for, what the measured motion needed, and the velocity, ``(rows, joints)`` each."""
    samples = command_samples(log, problem.robot.joint_names).motion
    drives, v = model.drives(log.control), samples.velocity
    sent = log.command.at(samples.time, drives.delay_s)
    asked = drives.kp * (sent - samples.position) - drives.kd * v
    needed = inverse_dynamics(model.robot, samples.position, v, samples.acceleration, effects=False)
    friction = drives.viscous * v + drives.coulomb * np.tanh(v / drives.width) + drives.offset
    return asked, needed + friction + drives.armature * samples.acceleration, v


def found_limits(problem: ActuatorProblem, model: ActuatorModel) -> dict[int, float]:
    """Limits of joints that have none, by number, where the logs show them."""
    asked, given, speed = (
        np.concatenate(parts) for parts in zip(*(torques(problem, model, log) for log in problem.logs), strict=True)
    )
    limit = problem.logs[0].control.limit
    assert limit is not None
    found = {}
    for j in np.flatnonzero(~np.isfinite(limit)):
        top = float(np.quantile(np.abs(given[:, j]), 0.98))
        turning = np.abs(speed[:, j]) > MOVING  # friction holds a joint at rest against any torque below it
        beyond, below = turning & (np.abs(asked[:, j]) > MORE * top), turning & (np.abs(asked[:, j]) < 0.8 * top)
        if min(beyond.sum(), below.sum()) < max(LEAST_ROWS, LEAST_SHARE * len(asked)):
            continue
        followed = float(asked[below, j] @ given[below, j] / max(float(asked[below, j] @ asked[below, j]), 1e-300))
        if abs(followed - 1.0) > TRUE:
            continue
        flat = given[beyond, j] * np.sign(asked[beyond, j])
        value, spread = float(np.median(flat)), float(np.quantile(flat, 0.75) - np.quantile(flat, 0.25))
        far = float(np.quantile(np.abs(asked[beyond, j]), 0.9))
        if value > 0.0 and spread < EVEN * value and far > FAR * value:
            found[int(j)] = value
    return found


def with_limits(logs: Sequence[ActuatorLog], limits: dict[int, float]) -> tuple[ActuatorLog, ...]:
    """Logs whose controllers have these limits."""
    made = []
    for log in logs:
        assert log.control.limit is not None
        limit = log.control.limit.copy()
        limit[list(limits)] = list(limits.values())
        made.append(replace(log, control=replace(log.control, limit=limit)))
    return tuple(made)
