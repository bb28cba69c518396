"""Actuators of position-controlled joints from commands and positions: read, ask, estimate, roll out, say what to beware of."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from dynid.apps.actuators.comparison import DESCRIPTION, MECHANISM, Compared, Rollout, actuator_verdict, best_of, roll_out
from dynid.apps.actuators.drives import actuator_logs, motor_constants, read_motors
from dynid.apps.actuators.estimate import ActuatorEstimate, chosen_effects, estimated_actuators, profiled_drive
from dynid.apps.actuators.lags import Lags
from dynid.apps.actuators.linear import actuator_robot, instrumental_actuators
from dynid.apps.actuators.model import (
    FURTHER,
    SYMBOL_OF,
    ActuatorLog,
    ActuatorModel,
    ActuatorProblem,
    actuator_problem,
    freed_bodies,
    read_command_logs,
    still_joints,
)
from dynid.apps.actuators.notes import (
    answer_notes,
    gain_findings,
    limit_notes,
    lost_joints,
    separated_notes,
    still_notes,
    stray_notes,
    symmetry_notes,
)
from dynid.apps.actuators.options import ActuatorSettings
from dynid.apps.actuators.separability import Profile
from dynid.engine import Tell, silent
from dynid.errors import InputError
from dynid.finding import Finding, Verdict
from dynid.io.logs.paths import log_paths
from dynid.io.robots.read import read_robot
from dynid.model.robot import Robot


@dataclass(frozen=True, eq=False, kw_only=True)
class ActuatorRun(ActuatorEstimate):
    """What an actuator identification did and found.

    Args:
        settings: the options.
        robot: cut to the joints of the logs.
        compared: rollouts of the final model, of the description and of the plain models that it must beat.
        seconds: time spent, s.
        profiles: lag and dead band, where they were asked for.
        instrumental: instrumental variables beside output error.
    """

    settings: ActuatorSettings
    robot: Robot
    compared: tuple[Compared, ...]
    seconds: float = 0.0
    profiles: tuple[Profile, ...] = ()
    instrumental: ActuatorModel | None = None

    @property
    def rollouts(self) -> tuple[tuple[Rollout, ...], tuple[Rollout, ...]]:
        """Of the final model, on the logs identified on and on the unseen ones."""
        return self.compared[0].rollouts

    @property
    def described(self) -> tuple[tuple[Rollout, ...], tuple[Rollout, ...]]:
        """The same with the values of the description."""
        return self.compared[1].rollouts

    @cached_property
    def verdict(self) -> Verdict:
        """What the mechanism is worth, beside the description and plain models."""
        reasons = []
        if self.refined is not None and not self.refined.converged:
            reasons.append(Finding("warning", "output error did not settle", "shorter windows (--window), better gains"))
        known, unseen = self.rollouts
        reasons += [*lost_joints(self.robot, (*known, *unseen)), *gain_findings(self.problem, known)]
        return actuator_verdict(self.compared, reasons)

    def value(self, joint: int, symbol: str) -> tuple[float, float] | None:
        """Value and deviation of one quantity of a joint; None where it was not asked or cannot be told apart."""
        name = self.problem.name_for(joint, symbol)
        scale = 1.0
        if symbol in ("kp", "kd") and self.settings.motor == "torque":
            scale = float(getattr(self.problem.logs[0].control, symbol)[joint])
        if name in self.separability.entangled:
            return None
        if name not in self.sigma:
            return (scale, 0.0) if symbol in ("kp", "kd") and name not in self.problem.names else None
        return float(self.model.values[symbol][joint]) * scale, self.sigma[name] * scale

    @property
    def words(self) -> dict[str, str]:
        """Words for the values of a joint and their symbols; and of effects that were asked for by name."""
        asked = [words for name, words in FURTHER.items() if name in self.settings.effects]
        return SYMBOL_OF | {word: symbol for words in asked for word, symbol in words.items()}

    def motor(self, joint: int) -> dict[str, tuple[float, float]] | None:
        """Motor constant ``kt`` (N m/A) and ``resistance`` (ohm) at the joint with their deviations; None of drives that are given torques
        and where the logs do not tell them apart."""
        gains = [self.value(joint, symbol) for symbol in ("kp", "kd")]
        if self.settings.motor == "torque" or self.refined is None or None in gains:
            return None
        places = [self.problem.names.index(self.problem.name_for(joint, symbol)) for symbol in ("kp", "kd")]
        kp, kd = (found[0] for found in gains if found is not None)
        return motor_constants(kp, kd, self.refined.covariance[np.ix_(places, places)])

    def as_json(self) -> dict[str, Any]:
        """The keys that scripts rely on, and more."""

        def pair(found: tuple[float, float] | None) -> dict[str, float] | None:
            return None if found is None else {"value": found[0], "sigma": found[1]}

        joints = [
            {"name": name}
            | {word: pair(self.value(j, symbol)) for word, symbol in self.words.items()}
            | {word: pair(found) for word, found in (self.motor(j) or {}).items()}
            for j, name in enumerate(self.robot.joint_names)
        ]
        delays, asked, linear = self.model.values["delay"], self.problem, self.linear.estimate
        delay: dict[str, Any] = {"value": float(np.median(delays)), "sigma": self.sigma.get("delay", 0.0)}
        if "delay" not in asked.names and asked.asks("delay"):
            delay["joints"] = delays.tolist()
        rows = {
            n: {"value": float(v), "sigma": float(s)}
            for n, v, s in zip(linear.base.names, linear.base_values, linear.sigma, strict=True)
        }
        beside = self.instrumental and {
            name: {"value": self.instrumental.value(u)}
            for name, u in zip(asked.names, asked.unknowns, strict=True)
            if u.symbol in SYMBOL_OF.values()
        }
        profiles = {one.name: one.as_json() for one in self.profiles}
        return {
            "joints": joints,
            "delay_s": delay,
            "inseparable": [list(names) for names in self.separability.inseparable],
            "undetermined": [asdict(group) | {"names": list(group.names)} for group in self.separability.groups],
            "rollout": self.compared[0].as_json(),
            "rollout_description": self.compared[1].as_json(),
            "models": {one.name: one.as_json() for one in self.compared},
            "lags": {one.name: one.as_json() for one in self.lags if one.order},
            "best": best_of(self.compared).name,
            "verdict": self.verdict.as_dict(),
            "method": self.settings.method,
            "linear": {"values": rows, "delay_s": float(np.median(self.linear.model.values["delay"]))},
            "instrumental": None if beside is None else {"values": beside},
            "lag_s": profiles.get("lag"),
            "dead_band": profiles.get("dead_band"),
            "notes": list(self.notes),
            "seconds": self.seconds,
        }


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

    Returns:
        values of each joint with their standard deviations, the delay in s, and the RMS error of positions when the
            model is rolled out, rad.

    Examples:
        >>> import dynid
        >>> from dynid.apps.actuators.options import LOAD, ActuatorSettings
        >>> arm = dynid.demo_robot(effects="none")
        >>> motion = dynid.demo_samples(arm, rate_hz=200.0)
        >>> friction = 0.5 * motion.velocity
        >>> u = motion.position + (motion.torque + friction) / 100.0  # what drives with kp = 100 were sent
        >>> log = dynid.Recording(motion.time, motion.position, arm.joint_names, reference_position=u)
        >>> _ = dynid.write_urdf(arm, "arm.urdf"), dynid.write_recording(log, "log.csv")
        >>> settings = ActuatorSettings(kp=100.0, kd=0.0, delay=0.0, command="linear", method="linear")
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
    motors = read_motors([*paths, *unseen_paths], chosen)
    chosen, told = chosen_effects(cut, recordings, chosen, still, tell, motors[: len(paths)])
    chosen, profiles = profiled_drive(cut, recordings, chosen, still, tell, motors[: len(paths)])
    made, later = actuator_logs(cut, recordings, unseen, chosen, motors)
    notes = (*notes, *more, *told, *still_notes(cut, still), *limit_notes(cut, made))
    problem = actuator_problem(actuator_robot(cut), made, chosen, still)
    found = estimated_actuators(problem, later, chosen, tell)
    problem, refined, final = found.problem, found.refined, found.model
    tell("rolling out")
    compared = _compared(problem, found.unseen, (final, ActuatorModel.described(problem.robot)), found.lags)
    beside = instrumental_actuators(problem, found.linear) if refined is not None and refined.converged else None
    freed = freed_bodies(problem.robot, chosen)
    notes = (*notes, *found.notes, *(one.sentence() for one in profiles), *answer_notes(problem, final, refined, freed))
    notes = (*notes, *separated_notes(problem, found.separability))
    if not chosen.symmetric:
        notes = (*notes, *symmetry_notes(cut))
    if not freed:
        notes = (*notes, *stray_notes(problem, final, compared[0].rollouts[0]))
    return ActuatorRun(
        **{**vars(found), "notes": notes},
        settings=chosen,
        robot=cut,
        compared=compared,
        seconds=time.perf_counter() - started,
        profiles=profiles,
        instrumental=beside,
    )


def _compared(
    problem: ActuatorProblem, later: Sequence[ActuatorLog], models: Sequence[ActuatorModel], lags: Sequence[Lags]
) -> tuple[Compared, ...]:
    """Rollouts of the final model and of the description, then of the plain models."""
    makers = [partial(roll_out, one, tick_s=problem.tick_s) for one in models] + [lag.roll_out for lag in lags]
    names = [MECHANISM, DESCRIPTION, *(lag.name for lag in lags)]
    groups = (problem.logs, later)
    return tuple(
        Compared(name, (tuple(make(log) for log in groups[0]), tuple(make(log) for log in groups[1])))
        for name, make in zip(names, makers, strict=True)
    )


def _described(robot: Robot | str | Path, settings: ActuatorSettings) -> Robot:
    """The robot without effects, on a base that is held."""
    described = robot if isinstance(robot, Robot) else read_robot(robot, "none", settings.gravity, settings.lock)
    if described.floating:
        raise InputError(
            f"robot '{described.name}' has a floating base: hold the base while recording, and remove the free joint from the description"
        )
    return described
