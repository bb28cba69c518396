"""The estimate of an actuator identification: from rows, refined on simulated positions, and the better of both kept.

Output error starts from the linear estimate, from the description and from mechanisms that follow commands as plain lags do, so it never
ends further from the positions than these. What it gains must hold on the last part of the logs after a fit to the first; what the logs
do not determine goes back to the description where the positions do not miss it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from dynid.apps.actuators.comparison import better_estimate
from dynid.apps.actuators.drives import Motor, actuator_logs, found_limits, with_limits
from dynid.apps.actuators.lags import Lags, fitted_lags, lagging_models
from dynid.apps.actuators.linear import LinearActuators, actuator_robot, instrumental_actuators, linear_actuators
from dynid.apps.actuators.model import (
    FRICTION_SYMBOLS,
    FURTHER_SYMBOLS,
    ActuatorLog,
    ActuatorModel,
    ActuatorProblem,
    actuator_problem,
    gain_symbols,
    name_of,
)
from dynid.apps.actuators.options import AUTO, EFFECTS, LOAD, STRIBECK, ActuatorSettings
from dynid.apps.actuators.output_error import ITERATIONS, OutputError, output_error
from dynid.apps.actuators.separability import Profile, Separability, profiled, separability, typical_sizes
from dynid.arrays import Array
from dynid.dynamics.position_loop import NARROWEST, RunawayError
from dynid.engine import Tell, silent
from dynid.estimation.shooting import NEIGHBOURS_S
from dynid.model.parameters import INERTIAL_SYMBOLS
from dynid.model.robot import Robot
from dynid.signals.recording import Recording


@dataclass(frozen=True, eq=False, kw_only=True)
class ActuatorEstimate:
    """What was estimated, from which problem; logs have gains and limits that were found on the way.

    Args:
        problem: what was asked of which logs.
        unseen: logs that are only rolled out.
        linear: the estimate from rows.
        refined: the estimate from simulated positions; None where only the linear one was asked for.
        model: the final values.
        sigma: deviation of every unknown, by name; infinite where the data do not determine it.
        separability: what cannot be told apart.
        lags: delayed lags of every joint, fitted to the same logs.
        notes: sentences for the user.
    """

    problem: ActuatorProblem
    unseen: tuple[ActuatorLog, ...]
    linear: LinearActuators
    refined: OutputError | None
    model: ActuatorModel
    sigma: dict[str, float]
    separability: Separability
    lags: tuple[Lags, ...]
    notes: tuple[str, ...]


def estimated_actuators(
    problem: ActuatorProblem, unseen: Sequence[ActuatorLog], settings: ActuatorSettings, tell: Tell
) -> ActuatorEstimate:
    """The values that answer a problem; unseen logs are only given what was found of the drives."""
    tell("linear estimate from command rows")
    notes: tuple[str, ...] = ()
    problem, linear, guess = _linear(problem, settings)
    later = tuple(_with_gains(log, guess) for log in unseen)
    limits = found_limits(problem, linear.model) if settings.servo is None else {}
    if limits:
        problem, later = replace(problem, logs=with_limits(problem.logs, limits)), with_limits(later, limits)
        told = ", ".join(f"{problem.robot.joint_names[j]} {value:.3g}" for j, value in limits.items())
        notes = (f"torque limits from rows in which the drives gave no more, whatever they were asked for: {told}",)
    lags = fitted_lags(problem.logs) if settings.control == "position" else ()
    refined, final = _estimated(problem, linear, lags, settings, tell)
    if refined is not None:
        tell("output error against the linear estimate, on the last part of the logs")
        picked, errors = better_estimate(problem, _fits(lags, settings))
        if picked:
            refined, final = None, linear.model
            notes = (*notes, LINEAR_KEPT.format(*(1e3 * error for error in errors)))
    apart = _separated(problem, linear, refined)
    if refined is not None:
        problem, refined, held = _without_undetermined(problem, linear, refined, apart, settings)
        final, notes = refined.model, (*notes, *held)
    return ActuatorEstimate(
        problem=problem,
        unseen=later,
        linear=linear,
        refined=refined,
        model=final,
        sigma=_sigma(problem, linear, refined),
        separability=apart,
        lags=lags,
        notes=notes,
    )


BODY_SPREAD = 0.3
"""Deviation of a freed body's parameters before the data speak, as a share of the body's own size."""


PRIOR_SIZES = 3.0
"""Deviation of friction and rotor inertia about the description, in sizes that matter in the joint."""


NAMEPLATE = 0.2
"""Relative deviation of the gains of a data sheet."""
LONG_STEPS = 40
"""Limit of the steps where windows are long: joints that stick and slip make the ground rough."""


LINEAR_KEPT = (
    "fitted to the first 65 % of these logs and rolled out on the rest, output error has {:.3g} mrad and the linear estimate {:.3g} mrad: "
    "the linear one is the answer"
)


def _fits(lags: Sequence[Lags], settings: ActuatorSettings) -> tuple[Callable[[ActuatorProblem], ActuatorModel], ...]:
    """Output error, and the linear estimate that it starts from, as functions of the logs."""
    known: dict[int, LinearActuators] = {}

    def linear(problem: ActuatorProblem) -> ActuatorModel:
        start = ActuatorModel.described(problem.robot, delay_s=0.0 if isinstance(settings.delay, str) else settings.delay)
        return known.setdefault(id(problem), _one_for_both(problem, linear_actuators(problem.untied(), start))).model

    def refined(problem: ActuatorProblem) -> ActuatorModel:
        linear(problem)
        return _estimated(problem, known[id(problem)], lags, settings, silent)[1]

    return refined, linear


WORSE = 1.02
"""Times the error of the windows that values of the description may leave in place of undetermined ones."""


def _without_undetermined(
    problem: ActuatorProblem, linear: LinearActuators, refined: OutputError, apart: Separability, settings: ActuatorSettings
) -> tuple[ActuatorProblem, OutputError, tuple[str, ...]]:
    """The answer with what the logs do not determine at the description, where the positions do not miss it."""
    alone = {group.names[0] for group in apart.groups if group.alone}
    asked = tuple(
        u for n, u in zip(problem.names, problem.unknowns, strict=True) if n in alone and u.symbol in FRICTION_SYMBOLS
    )
    if not asked:
        return problem, refined, ()
    stated = ActuatorModel.described(problem.robot)
    held = refined.model.with_values(asked, np.array([stated.value(u) for u in asked]))
    fewer = replace(problem, unknowns=tuple(u for u in problem.unknowns if u not in asked))
    names = ", ".join(name_of(u) for u in asked)
    missed = f"not determined alone, but the positions miss them at the description: {names}"
    try:
        again = output_error(fewer, held, window_s=settings.window_s, prior=_prior(fewer, linear, settings))
    except RunawayError:  # without friction, say, nothing holds the joint
        return problem, refined, (missed,)
    if np.sqrt(np.mean(again.rms**2)) > WORSE * np.sqrt(np.mean(refined.rms**2)):
        return problem, refined, (missed,)
    return fewer, again, (f"not determined, so held at the description: {names}",)


def _linear(
    problem: ActuatorProblem, settings: ActuatorSettings
) -> tuple[ActuatorProblem, LinearActuators, dict[str, Array]]:
    """The estimate from command rows, and the guess of gains that are not known.

    The first estimate is the number that such a gain is a multiple of, so that all unknowns have a size of one.
    """
    start = ActuatorModel.described(problem.robot, delay_s=0.0 if isinstance(settings.delay, str) else settings.delay)
    linear = linear_actuators(problem.untied(), start)
    values = {name: linear.model.values[name] for name in gain_symbols(settings) if getattr(settings, name) == "auto"}
    if not values or settings.servo:  # gains of its logs differ, and have their units
        return problem, _one_for_both(problem, linear), {}
    guess = {name: np.maximum(value, 1e-3 * value.max() + 1e-6) for name, value in values.items()}
    for unknown in (u for u in problem.unknowns if u.symbol in guess and u.tied):
        tied = [j for j, _ in unknown.shared]
        guess[unknown.symbol][tied] = np.mean(guess[unknown.symbol][tied])
    problem = replace(problem, logs=tuple(_with_gains(log, guess) for log in problem.logs))
    return problem, _one_for_both(problem, linear_actuators(problem.untied(), start)), guess


def _one_for_both(problem: ActuatorProblem, linear: LinearActuators) -> LinearActuators:
    """The linear answer with the mean of what paired joints have."""
    tied = [u for u in problem.unknowns if u.tied]
    return replace(linear, model=linear.model.with_values(tied, np.array([linear.model.value(u) for u in tied])))


def _with_gains(log: ActuatorLog, gains: Mapping[str, Any]) -> ActuatorLog:
    return replace(log, control=replace(log.control, **gains))


def chosen_effects(
    robot: Robot,
    recordings: Sequence[Recording],
    settings: ActuatorSettings,
    still: set[int],
    tell: Tell,
    motors: Sequence[Motor] = (),
) -> tuple[ActuatorSettings, tuple[str, ...]]:
    """The settings with the effects of motor and friction that predict the last part of the logs best, and a note on it."""
    if settings.effects != AUTO or settings.servo is None:
        return settings, ()
    tried = [replace(settings, effects=(*EFFECTS, *more)) for more in ((), (LOAD,), (LOAD, STRIBECK))]
    tell("effects by what they predict of the last part of the logs")
    unknown: dict[str, Any] = {n: 0.0 for n in ("lag", "dead_band") if getattr(settings, n) == "auto"}
    logs = actuator_logs(robot, recordings, (), replace(settings, **unknown), motors)[0]
    asked = [actuator_problem(actuator_robot(robot), logs, own, still) for own in tried]

    def fit(k: int, head: ActuatorProblem) -> ActuatorModel:
        problem, linear, _ = _linear(replace(head, unknowns=asked[k].unknowns), tried[k])
        return _estimated(problem, linear, (), tried[k], silent)[1]

    best, errors = better_estimate(asked[0], [partial(fit, k) for k in range(len(tried))])
    if not errors:
        return tried[best], ("the logs are too short to choose effects by: load and stribeck are left out",)
    told = ", ".join(
        f"{name} {1e3 * e:.3g}" for name, e in zip(("plain friction", LOAD, f"{LOAD} and {STRIBECK}"), errors, strict=True)
    )
    return tried[best], (
        f"effects chosen by what they miss of the last part of the logs after a fit to the first, mrad: {told}",
    )


def profiled_drive(
    robot: Robot,
    recordings: Sequence[Recording],
    settings: ActuatorSettings,
    still: set[int],
    tell: Tell,
    motors: Sequence[Motor] = (),
) -> tuple[ActuatorSettings, tuple[Profile, ...]]:
    """The settings with the lag and dead band found that are to be found, everything else found anew for each value; and how."""
    profiles: list[Profile] = []

    def logs_with(**drive: Any) -> list[ActuatorLog]:
        return actuator_logs(robot, recordings, (), replace(held, **drive), motors)[0]

    def fit(value: float) -> OutputError:
        problem, linear, _ = _linear(actuator_problem(actuator_robot(robot), logs_with(**{name: value}), held, still), held)
        refined = _estimated(problem, linear, (), held, silent)[0]
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
    problem: ActuatorProblem, linear: LinearActuators, lags: Sequence[Lags], settings: ActuatorSettings, tell: Tell
) -> tuple[OutputError | None, ActuatorModel]:
    if settings.method == "linear":
        return None, linear.model
    if settings.method == "iv":
        return None, instrumental_actuators(problem, linear)
    tell("output error on simulated positions")
    stated = ActuatorModel.described(problem.robot)
    moved = replace(linear.model, values={**linear.model.values, **{s: stated.values[s] for s in ("Ia", "fv", "fc", "fo")}})
    if settings.servo:
        # over long windows a joint that friction holds creeps where friction turns over a speed
        width = {"width": np.full(problem.robot.n_joints, NARROWEST)}
        sharp, bare = (replace(one, values={**one.values, **width}) for one in (linear.model, moved))
        starts = (sharp, bare, *_loaded(problem, sharp))
    else:
        starts = (linear.model, moved, *lagging_models(problem, linear.model, lags), *_loaded(problem, linear.model))
    steps = LONG_STEPS if settings.servo else ITERATIONS
    prior = _prior(problem, linear, settings)
    refined = output_error(problem, starts, window_s=settings.window_s, iterations=steps, prior=prior)
    return refined, refined.model


LOADED = ((1.5, 0.2), (2.0, 0.4))
"""Where a fit of friction under load starts: more torque for the same command, of which friction takes a share."""


def _loaded(problem: ActuatorProblem, near: ActuatorModel) -> list[ActuatorModel]:
    """Models that lose a share of their torque to friction under load, where that is asked for."""
    if not problem.asks("fl"):
        return []
    asked = [u for u in problem.unknowns if u.symbol in ("kp", "fl")]
    values = [[near.value(u) * more if u.symbol == "kp" else share for u in asked] for more, share in LOADED]
    return [near.with_values(asked, np.array(x)) for x in values]


def _prior(problem: ActuatorProblem, linear: LinearActuators, settings: ActuatorSettings) -> tuple[Array, Array]:
    """The description, wide: it decides where the data do not, and nothing else.

    Friction and rotor inertia may be off by several times what matters in the joint; freed bodies by a share of the size that
    their ten numbers have together. Gains and delays have no such prior, but for those of a servo with a data sheet: rows that miss alike,
    since they are close in time, count as one beside it.
    """
    stated = ActuatorModel.described(problem.robot)
    centre = np.array([stated.value(u) for u in problem.unknowns])
    spread = PRIOR_SIZES * typical_sizes(problem, linear.model)
    inertials = problem.robot.parameters.inertials
    plate = settings.servo.nameplate if settings.servo else None
    for k, unknown in enumerate(problem.unknowns):
        if plate and unknown.symbol in plate:
            centre[k] = plate[unknown.symbol]
            spread[k] = NAMEPLATE * centre[k] / np.sqrt(NEIGHBOURS_S / problem.logs[0].period_s)
        elif unknown.symbol in ("width", "delay", "kp", "kd", *FURTHER_SYMBOLS):
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
    problem = problem.untied()
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
