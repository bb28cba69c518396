"""Actuators of position-controlled joints from commands and positions: read, ask, estimate, roll out."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.actuators.linear import LinearActuators, actuator_robot, instrumental_actuators, linear_actuators
from dynid.estimation.actuators.model import ActuatorLog, ActuatorModel, ActuatorProblem
from dynid.estimation.actuators.output_error import OutputError, output_error
from dynid.estimation.actuators.rollout import Rollout, roll_out, total_rms
from dynid.estimation.actuators.separability import Separability, separability, typical_sizes
from dynid.parameters import INERTIAL_SYMBOLS
from dynid.progress import Tell, silent
from dynid.recording.checks.commands import still_joints
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.robot.read import read_robot
from dynid.run.actuator_notes import answer_notes, limit_notes, separated_notes, still_notes
from dynid.run.actuator_options import ActuatorSettings
from dynid.run.actuator_problem import (
    SYMBOL_OF,
    actuator_logs,
    actuator_problem,
    freed_bodies,
    gain_symbols,
    read_command_logs,
)
from dynid.run.actuator_profile import Profile, profiled
from dynid.run.log_paths import log_paths

BODY_SPREAD = 0.3
"""Deviation of a freed body's parameters before the data speak, as a share of the body's own size."""
PRIOR_SIZES = 3.0
"""Deviation of friction and rotor inertia about the description, in sizes that matter in the joint."""


@dataclass(frozen=True, eq=False)
class ActuatorRun:
    """What an actuator identification did and found.

    Args:
        settings: the options.
        robot: cut to the joints of the logs.
        problem: what was asked of which logs.
        linear: the estimate from rows.
        refined: the estimate from simulated positions; None where only the linear one was asked for.
        model: the final values.
        sigma: deviation of every unknown, by name; infinite where the data do not determine it.
        separability: what cannot be told apart.
        rollouts: of the final model, on the logs identified on and on the unseen ones.
        described: the same with the values of the description.
        notes: sentences for the user.
        seconds: time spent, s.
    """

    settings: ActuatorSettings
    robot: Robot
    problem: ActuatorProblem
    unseen: tuple[ActuatorLog, ...]
    linear: LinearActuators
    refined: OutputError | None
    model: ActuatorModel
    sigma: dict[str, float]
    separability: Separability
    rollouts: tuple[tuple[Rollout, ...], tuple[Rollout, ...]]
    described: tuple[tuple[Rollout, ...], tuple[Rollout, ...]]
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    profiles: tuple[Profile, ...] = ()
    """Lag and dead band, where they were asked for."""
    instrumental: ActuatorModel | None = None
    """Instrumental variables beside output error."""

    def value(self, joint: int, symbol: str) -> tuple[float, float] | None:
        """Value and deviation of one quantity of a joint; None where it was not asked or cannot be told apart."""
        name = f"{symbol}{joint + 1}"
        scale = 1.0
        if symbol in ("kp", "kd"):
            scale = float(getattr(self.problem.logs[0].control, symbol)[joint])
        if name in self.separability.entangled:
            return None
        if name not in self.sigma:
            return (scale, 0.0) if symbol in ("kp", "kd") and name not in self.problem.names else None
        return float(self.model.values[symbol][joint]) * scale, self.sigma[name] * scale

    def as_json(self) -> dict[str, Any]:
        """The keys that scripts rely on, and more."""

        def pair(found: tuple[float, float] | None) -> dict[str, float] | None:
            return None if found is None else {"value": found[0], "sigma": found[1]}

        joints = [
            {"name": name} | {word: pair(self.value(j, symbol)) for word, symbol in SYMBOL_OF.items()}
            for j, name in enumerate(self.robot.joint_names)
        ]
        delays = self.model.values["delay"]
        shared = "delay" in self.problem.names or not self.problem.asks("delay")
        found: dict[str, Any] = {
            "joints": joints,
            "delay_s": {"value": float(np.median(delays)), "sigma": self.sigma.get("delay", 0.0)},
            "inseparable": [list(names) for names in self.separability.inseparable],
            "undetermined": [
                {"names": list(g.names), "determined": g.determined, "experiment": g.experiment}
                for g in self.separability.groups
            ],
            "rollout": self._rms(self.rollouts),
            "rollout_description": self._rms(self.described),
            "method": self.settings.method,
            "linear": self._linear_json(),
            "instrumental": self._instrumental_json(),
            "lag_s": self._profile_json("lag"),
            "dead_band": self._profile_json("dead_band"),
            "notes": list(self.notes),
            "seconds": self.seconds,
        }
        if not shared:
            found["delay_s"]["joints"] = delays.tolist()
        return found

    def _rms(self, parts: tuple[tuple[Rollout, ...], tuple[Rollout, ...]]) -> dict[str, float | None]:
        return {
            name: total_rms(part) if part else None
            for name, part in zip(("identification", "validation"), parts, strict=True)
        }

    def _profile_json(self, name: str) -> dict[str, Any] | None:
        return next((one.as_json() for one in self.profiles if one.name == name), None)

    def _instrumental_json(self) -> dict[str, Any] | None:
        """Values by instrumental variables, where output error is the answer."""
        if self.instrumental is None:
            return None
        pairs = zip(self.problem.names, self.problem.unknowns, strict=True)
        return {
            "values": {
                name: {"value": self.instrumental.value(u)}
                for name, u in pairs
                if u.symbol in ("Ia", "fv", "fc", "fo", "kp", "kd")
            }
        }

    def _linear_json(self) -> dict[str, Any]:
        names, base = self.linear.estimate.base.names, self.linear.estimate
        values = {
            n: {"value": float(v), "sigma": float(s)} for n, v, s in zip(names, base.base_values, base.sigma, strict=True)
        }
        return {"values": values, "delay_s": float(np.median(self.linear.model.values["delay"]))}


def identify_actuators(
    robot: Robot | str | Path,
    logs: Sequence[str | Path] | str | Path,
    settings: ActuatorSettings | None = None,
    *,
    validate_on: Sequence[str | Path] = (),
    tell: Tell = silent,
) -> ActuatorRun:
    """Armature, friction, delay and gains of position-controlled joints, from commands and positions.

    Args:
        robot: the robot, or the path of its description; its bodies are held unless the settings free some.
        logs: one log or several, with positions and commanded positions.
        settings: the options; by default those of the command line.
        validate_on: unseen logs to roll out.
        tell: called with a short text before each step.

    Examples:
        >>> import dynid
        >>> arm = dynid.demo_robot(effects="none")
        >>> motion = dynid.demo_samples(arm, rate_hz=200.0)
        >>> friction = 0.5 * motion.velocity
        >>> u = motion.position + (motion.torque + friction) / 100.0  # what drives with kp = 100 were sent
        >>> log = dynid.Recording(motion.time, motion.position, arm.joint_names, reference_position=u)
        >>> _ = dynid.write_urdf(arm, "arm.urdf"), dynid.write_recording(log, "log.csv")
        >>> settings = dynid.ActuatorSettings(kp=100.0, kd=0.0, delay=0.0, command="linear", method="linear")
        >>> run = dynid.identify_actuators("arm.urdf", "log.csv", settings)
        >>> round(run.value(0, "fv")[0], 2)
        0.5
    """
    started = time.perf_counter()
    chosen = settings or ActuatorSettings()
    paths = log_paths(logs)
    if chosen.split is not None and validate_on:
        raise InputError("a split and validation logs were both given, expected one of the two")
    described = _described(robot, chosen)
    tell("reading the logs")
    cut, recordings, notes = read_command_logs(described, paths, chosen)
    unseen_paths = log_paths(validate_on)
    _, unseen, more = read_command_logs(cut, unseen_paths, chosen) if unseen_paths else (cut, (), ())
    still = set.intersection(*(set(still_joints(r)) for r in recordings))
    chosen, profiles = _profiled_drive(cut, recordings, chosen, still, tell)
    made, later = actuator_logs(cut, recordings, unseen, chosen)
    notes = (*notes, *more, *still_notes(cut, still), *limit_notes(cut, made))
    problem = actuator_problem(actuator_robot(cut), made, chosen, still)
    tell("linear estimate from command rows")
    problem, linear, guess = _linear(problem, chosen)
    later = [_with_gains(log, guess) for log in later]
    refined, final = _estimated(problem, linear, chosen, tell)
    apart = _separated(problem, linear, refined)
    sigma = _sigma(problem, linear, refined)
    tell("rolling out")
    description = ActuatorModel.described(problem.robot)
    groups = (problem.logs, later)
    ran, told = (
        tuple(tuple(roll_out(m, log, problem.tick_s) for log in group) for group in groups) for m in (final, description)
    )
    beside = instrumental_actuators(problem, linear).model if refined is not None and refined.converged else None
    notes = (
        *notes,
        *(one.sentence() for one in profiles),
        *answer_notes(problem, final, refined, freed_bodies(problem.robot, chosen)),
    )
    notes = (*notes, *separated_notes(problem, apart))
    return ActuatorRun(
        settings=chosen,
        robot=cut,
        problem=problem,
        unseen=tuple(later),
        linear=linear,
        refined=refined,
        model=final,
        sigma=sigma,
        separability=apart,
        rollouts=(ran[0], ran[1]),
        described=(told[0], told[1]),
        notes=notes,
        seconds=time.perf_counter() - started,
        profiles=profiles,
        instrumental=beside,
    )


def _described(robot: Robot | str | Path, settings: ActuatorSettings) -> Robot:
    """The robot without effects, on a base that is held."""
    described = robot if isinstance(robot, Robot) else read_robot(robot, "none", settings.gravity, settings.lock)
    if described.floating:
        raise InputError(
            f"robot '{described.name}' has a floating base: hold the base while recording, and remove the free joint from the description"
        )
    return described


def _linear(
    problem: ActuatorProblem, settings: ActuatorSettings
) -> tuple[ActuatorProblem, LinearActuators, dict[str, Array]]:
    """The estimate from command rows, and the guess of gains that are not known.

    The first estimate is the number that such a gain is a multiple of, so that all unknowns have a size of one.
    """
    start = ActuatorModel.described(problem.robot, delay_s=0.0 if isinstance(settings.delay, str) else settings.delay)
    linear = linear_actuators(problem, start)
    values = {name: linear.model.values[name] for name in gain_symbols(settings) if getattr(settings, name) == "auto"}
    if not values:
        return problem, linear, {}
    guess = {name: np.maximum(value, 1e-3 * value.max() + 1e-6) for name, value in values.items()}
    problem = replace(problem, logs=tuple(_with_gains(log, guess) for log in problem.logs))
    return problem, linear_actuators(problem, start), guess


def _with_gains(log: ActuatorLog, gains: Mapping[str, Any]) -> ActuatorLog:
    return replace(log, control=replace(log.control, **gains))


def _profiled_drive(
    robot: Robot, recordings: Sequence[Recording], settings: ActuatorSettings, still: set[int], tell: Tell
) -> tuple[ActuatorSettings, tuple[Profile, ...]]:
    """The settings with the lag and dead band found that are to be found, and how they were."""
    profiles: tuple[Profile, ...] = ()
    for name in ("lag", "dead_band"):
        if getattr(settings, name) == "auto":
            profiles += (_profile(name, robot, recordings, _without_auto(settings), still, tell),)
            settings = _with_drive(settings, name, profiles[-1].value)
    return settings, profiles


def _with_drive(settings: ActuatorSettings, name: str, value: float) -> ActuatorSettings:
    """The settings with another lag or dead band."""
    return replace(settings, lag=value) if name == "lag" else replace(settings, dead_band=value)


def _without_auto(settings: ActuatorSettings) -> ActuatorSettings:
    """What is still to be found at zero."""
    for name in ("lag", "dead_band"):
        if getattr(settings, name) == "auto":
            settings = _with_drive(settings, name, 0.0)
    return settings


def _profile(
    name: str,
    robot: Robot,
    recordings: Sequence[Recording],
    settings: ActuatorSettings,
    still: set[int],
    tell: Tell,
) -> Profile:
    """The lag or dead band that leaves least of the positions, everything else found anew for each."""
    model = actuator_robot(robot)

    def logs(value: float) -> list[ActuatorLog]:
        return actuator_logs(robot, recordings, (), _with_drive(settings, name, value))[0]

    def fit(value: float) -> OutputError:
        problem, linear, _ = _linear(actuator_problem(model, logs(value), settings, still), settings)
        refined = _estimated(problem, linear, settings, silent)[0]
        assert refined is not None
        return refined

    return profiled(name, fit, sum(len(log.time) for log in logs(0.0)), tell)


# Answering ----------------------------------------------------------------------------------------


def _estimated(
    problem: ActuatorProblem, linear: LinearActuators, settings: ActuatorSettings, tell: Tell
) -> tuple[OutputError | None, ActuatorModel]:
    if settings.method == "linear":
        return None, linear.model
    if settings.method == "iv":
        return None, instrumental_actuators(problem, linear).model
    tell("output error on simulated positions")
    stated = ActuatorModel.described(problem.robot)
    moved = replace(linear.model, values={**linear.model.values, **{s: stated.values[s] for s in ("Ia", "fv", "fc", "fo")}})
    refined = output_error(problem, (linear.model, moved), window_s=settings.window, prior=_prior(problem, linear))
    return refined, refined.model


def _prior(problem: ActuatorProblem, linear: LinearActuators) -> tuple[Array, Array]:
    """The description, wide: it decides where the data do not, and nothing else.

    Friction and rotor inertia may be off by several times what matters in the joint; freed bodies by a share of the size that
    their ten numbers have together. Gains and delays have no such prior.
    """
    stated = ActuatorModel.described(problem.robot)
    centre = np.array([stated.value(u) for u in problem.unknowns])
    spread = PRIOR_SIZES * typical_sizes(problem, linear.model)
    inertials = problem.robot.parameters.inertials
    for k, unknown in enumerate(problem.unknowns):
        if unknown.symbol in ("width", "delay", "kp", "kd"):
            spread[k] = np.inf
        elif unknown.symbol in INERTIAL_SYMBOLS:
            mass, first, second = inertials[unknown.joint, 0], inertials[unknown.joint, 1:4], inertials[unknown.joint, 4:]
            size = float(np.abs(second).max())
            if unknown.symbol == "m":
                size = float(mass)
            elif unknown.symbol in ("mx", "my", "mz"):
                size = max(float(np.linalg.norm(first)), 0.02 * float(mass))
            spread[k] = BODY_SPREAD * max(size, 1e-5)
        else:
            spread[k] = max(spread[k], PRIOR_SIZES * abs(centre[k]))
    return centre, spread


def _separated(problem: ActuatorProblem, linear: LinearActuators, refined: OutputError | None) -> Separability:
    if refined is not None:
        return separability(problem, refined.model, refined.information, refined.inflation)
    p, names = len(problem.unknowns), linear.regression.parameters.names
    information = np.zeros((p, p))
    places = [problem.names.index(name) for name in names]
    weights = 1.0 / np.maximum(linear.estimate.residual_rms, 1e-12)
    stacked = linear.regression.stacked(weights=weights)[:, :-1]
    information[np.ix_(places, places)] = stacked.T @ stacked
    sizes = typical_sizes(problem, linear.model)
    for k, unknown in enumerate(problem.unknowns):
        if unknown.symbol in ("delay", "width"):
            information[k, k] = 1.0 / max(linear.delay_sigma_s if unknown.symbol == "delay" else sizes[k], 1e-6) ** 2
    return separability(problem, linear.model, information)


def _sigma(problem: ActuatorProblem, linear: LinearActuators, refined: OutputError | None) -> dict[str, float]:
    if refined is not None:
        return dict(zip(problem.names, refined.sigma.tolist(), strict=True))
    found = dict(zip(linear.regression.parameters.names, np.asarray(linear.estimate.sigma).tolist(), strict=True))
    return {name: found.get(name, linear.delay_sigma_s) for name in problem.names}
