"""Actuators of position-controlled joints from commands and positions: read, ask, estimate, roll out, say what to beware of."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.apps.actuators.linear import LinearActuators, actuator_robot, instrumental_actuators, linear_actuators
from dynid.apps.actuators.model import (
    SYMBOL_OF,
    ActuatorLog,
    ActuatorModel,
    ActuatorProblem,
    actuator_logs,
    actuator_problem,
    freed_bodies,
    gain_symbols,
    read_command_logs,
    still_joints,
)
from dynid.apps.actuators.options import ActuatorSettings
from dynid.apps.actuators.output_error import OutputError, Rollout, output_error, roll_out, total_rms
from dynid.apps.actuators.separability import Profile, Separability, profiled, separability, typical_sizes
from dynid.apps.actuators.strays import stray_notes
from dynid.arrays import Array
from dynid.engine import Tell, silent
from dynid.errors import InputError
from dynid.io.logs.paths import log_paths
from dynid.io.robots.read import read_robot
from dynid.model.inertia import is_consistent
from dynid.model.parameters import INERTIAL_SYMBOLS
from dynid.model.robot import Robot
from dynid.signals.recording import Recording

BEYOND = 0.02
"""Share of commands beyond the description's limits, or of drives at their torque limit, that is worth a note."""


def still_notes(robot: Robot, still: set[int]) -> tuple[str, ...]:
    """Joints that do not move."""
    return tuple(
        f"joint {robot.joint_names[j]} does not move in any log: nothing of it is identified; move it, or lock it with --lock"
        for j in sorted(still)
    )


def limit_notes(robot: Robot, logs: Sequence[ActuatorLog]) -> tuple[str, ...]:
    """Commands beyond the joints' limits, and drives at their torque limits."""
    notes = []
    low, high = robot.position_limits.T
    for log in logs:
        sent = log.command.at(log.time, np.zeros(robot.n_joints))
        share = np.mean((sent < low - 1e-6) | (sent > high + 1e-6), axis=0) * (not log.control.velocity)
        assert log.control.limit is not None
        torque = log.control.kp * (sent - log.position)
        full = np.mean(np.abs(torque) > log.control.limit, axis=0)
        for j, name in enumerate(robot.joint_names):
            if share[j] > BEYOND:
                notes.append(
                    f"{log.place}: {100 * share[j]:.0f} % of the commands of joint {name} lie beyond its limits "
                    f"[{low[j]:.3g}, {high[j]:.3g}]: if it rests on its stop there, cut that part with --from and --to"
                )
            if full[j] > BEYOND:
                notes.append(
                    f"{log.place}: the drive of joint {name} is at its torque limit of {log.control.limit[j]:.4g} in "
                    f"{100 * full[j]:.0f} % of the rows, where gains and friction hardly show: "
                    "record smaller steps, or give the true --limit"
                )
    return tuple(notes)


def separated_notes(problem: ActuatorProblem, apart: Separability) -> tuple[str, ...]:
    """Whether logs with different gains tell gains from friction."""
    asked = [name for name, u in zip(problem.names, problem.unknowns, strict=True) if u.symbol in ("kp", "kd")]
    first = problem.logs[0].control
    differ = any(
        not np.array_equal(getattr(log.control, symbol), getattr(first, symbol))
        for log in problem.logs
        for symbol in ("kp", "kd")
    )
    if not asked or not differ or apart.entangled & set(asked):
        return ()
    return (f"the logs have different gains, which tell {', '.join(asked)} from friction and rotor inertia",)


def answer_notes(
    problem: ActuatorProblem, model: ActuatorModel, refined: OutputError | None, freed: Sequence[int]
) -> tuple[str, ...]:
    """Values at their bounds, an answer that did not settle, freed bodies that cannot exist."""
    notes = []
    if refined is not None:
        bound = [
            n for n, b, u in zip(problem.names, refined.at_bound, problem.unknowns, strict=True) if b and u.symbol != "width"
        ]
        if bound:
            notes.append(f"at the bound of what is physical (zero): {', '.join(bound)}")
        if not refined.converged:
            notes.append(
                f"output error stopped after {len(refined.steps)} steps before it settled: deviations are those of a settled answer, "
                "so do not rely on them; shorter windows (--window) settle more easily"
            )
    bad = [problem.robot.links[b] for b in freed if not is_consistent(model.robot.parameters.inertials[b])]
    if bad:
        notes.append(f"freed bodies that are not physically consistent: {', '.join(bad)}; hold them, or record more motion")
    return tuple(notes)


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

        def rms(parts: tuple[tuple[Rollout, ...], tuple[Rollout, ...]]) -> dict[str, float | None]:
            known, unseen = (total_rms(part) if part else None for part in parts)
            return {"identification": known, "validation": unseen}

        joints = [
            {"name": name} | {word: pair(self.value(j, symbol)) for word, symbol in SYMBOL_OF.items()}
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
            "rollout": rms(self.rollouts),
            "rollout_description": rms(self.described),
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
        >>> from dynid.apps.actuators.options import ActuatorSettings
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
    beside = instrumental_actuators(problem, linear) if refined is not None and refined.converged else None
    notes = (
        *notes,
        *(one.sentence() for one in profiles),
        *answer_notes(problem, final, refined, freed_bodies(problem.robot, chosen)),
    )
    notes = (*notes, *separated_notes(problem, apart))
    if not freed_bodies(problem.robot, chosen):
        notes = (*notes, *stray_notes(problem, final, ran[0]))
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
    """The settings with the lag and dead band found that are to be found, everything else found anew for each value; and how."""
    profiles: list[Profile] = []

    def logs_with(**drive: Any) -> list[ActuatorLog]:
        return actuator_logs(robot, recordings, (), replace(held, **drive))[0]

    def fit(value: float) -> OutputError:
        problem, linear, _ = _linear(actuator_problem(actuator_robot(robot), logs_with(**{name: value}), held, still), held)
        refined = _estimated(problem, linear, held, silent)[0]
        assert refined is not None
        return refined

    for name in ("lag", "dead_band"):
        if getattr(settings, name) == "auto":
            open_ones: dict[str, Any] = {n: 0.0 for n in ("lag", "dead_band") if getattr(settings, n) == "auto"}
            held = replace(settings, **open_ones)  # what is still to be found stays at zero
            profiles.append(profiled(name, fit, sum(len(log.time) for log in logs_with()), tell))
            found: dict[str, Any] = {name: profiles[-1].value}
            settings = replace(settings, **found)
    return settings, tuple(profiles)


def _estimated(
    problem: ActuatorProblem, linear: LinearActuators, settings: ActuatorSettings, tell: Tell
) -> tuple[OutputError | None, ActuatorModel]:
    if settings.method == "linear":
        return None, linear.model
    if settings.method == "iv":
        return None, instrumental_actuators(problem, linear)
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
