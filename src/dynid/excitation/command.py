"""An exciting motion for a robot description, by the options of ``dynid excite``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.engine import Engine
from dynid.errors import InputError, UnknownNameError
from dynid.excitation.collision import Clearance, usual_clearance
from dynid.excitation.criteria import Criterion
from dynid.excitation.fixed_motions import (
    actuator_excitation,
    all_joint_sinusoids,
    given_sinusoids,
    single_joint_sinusoid,
    sinusoid_excitation,
)
from dynid.excitation.limits import Limits, limits_of, without_excluded_joints
from dynid.excitation.options import DEFAULT_CLEARANCE_M, LIMITS, ROBOT, SEARCHED, ExciteSettings
from dynid.excitation.points import points_excitation
from dynid.excitation.search import Progress, search_excitation
from dynid.excitation.shapes import BSplineShape, FourierShape, LinearShape
from dynid.excitation.trajectories import FourierTrajectory, check_n_samples
from dynid.io.robots.read import read_robot
from dynid.model.robot import Robot
from dynid.option_types import changed_options, options_of

if TYPE_CHECKING:
    from dynid.excitation.excitation_result import Excitation

DEFAULT_PERIOD_S = 20.0
DEFAULT_HARMONICS = 5
DEFAULT_INTERVALS = 12
OBJECTS = ("shape", "criterion", "engine")
"""Options that Python also takes as objects: a family of motions, a criterion, an engine."""


def design_excitation(
    robot: Robot | str | Path,
    settings: ExciteSettings | None = None,
    *,
    limits: Limits | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Excitation:
    """Design a motion that shows a robot's parameters best, within its limits: what ``dynid excite`` does, with its defaults.

    Args:
        robot: the robot, with the effects whose values the motion must determine, or the path of its description.
        settings: the options; by default those of the command line.
        limits: in place of those that the options ask for; bodies are kept apart all the same unless ``collision=False``.
        progress: told after every piece of work: how many are done, of how many, and the best condition number so far.
        options: those of ``settings`` by keyword, which hold before them. ``shape``, ``criterion`` and ``engine`` may also be a
            :class:`LinearShape`, a :class:`Criterion` and an engine of your own.

    Returns:
        The motion as it is played, its condition number, and its margins to every limit.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot(effects="none").only(["shoulder_pitch", "elbow"])
        >>> found = dynid.design_excitation(robot, period=5.0, harmonics=2, seconds=2.0, starts=1, engine="serial")
        >>> found.margins.clearance > 0.0, found.playable.at_rest
        (True, True)
    """
    own = {name: options.pop(name) for name in OBJECTS if isinstance(options.get(name), LinearShape | Criterion | Engine)}
    known = [one.name for one in options_of(ExciteSettings)]
    for name in options:
        if name not in known:
            raise UnknownNameError("option of a designed motion", name, known)
    asked = replace(settings or ExciteSettings(), **options)
    if own and (asked.purpose == "actuators" or asked.shape not in SEARCHED):
        raise InputError(f"{', '.join(own)} of your own: expected with a shape that is searched, {' or '.join(SEARCHED)}")
    length_s = DEFAULT_PERIOD_S if asked.period is None else asked.period
    check_n_samples(length_s * max(asked.periods, 1), asked.rate)
    model, held = without_excluded_joints(_described(robot, asked), asked.move)
    kept = _limits(model, asked, limits)
    if held:
        kept = replace(kept, notes=(held, *kept.notes))
    if asked.purpose == "actuators":
        return actuator_excitation(model, kept, **asked.chosen("top_hz", "seed"))
    if asked.shape == "points":
        return _points(model, kept, asked, progress)
    if asked.shape == "sinusoids":
        waves = _sinusoids(model, kept, length_s, asked)
        played = asked.chosen("rest", "periods", "seed")
        return sinusoid_excitation(model, waves, kept, **played)
    return _searched(model, kept, length_s, asked, progress, own)


def _described(robot: Robot | str | Path, settings: ExciteSettings) -> Robot:
    """The robot that is moved; one that was read already has effects, gravity and locked joints of its own."""
    if not isinstance(robot, Robot):
        return read_robot(robot, settings.effects or "none", settings.gravity, dict(settings.lock))
    for name in changed_options(settings, ROBOT):
        raise InputError(
            f"{name} is given beside robot '{robot.name}', which has its own; expected the path of a description, or a robot "
            "that was changed (with_effects, with_gravity, lock)"
        )
    return robot


def _limits(model: Robot, settings: ExciteSettings, given: Limits | None) -> Limits:
    """The limits of the options, or those given; with what is kept apart."""
    if given is not None:
        for name in changed_options(settings, LIMITS):
            raise InputError(f"{name} is given beside limits, expected one of the two")
        if given.velocity.shape != (model.n_joints,):
            raise InputError(
                f"limits are of {len(given.velocity)} joints, the motion moves {model.n_joints}: {', '.join(model.joint_names)}"
            )
        if given.clearance is not None:
            return given
    apart, told = _clearance(model, settings)
    if given is None:
        listed = {name: _one_or_all(getattr(settings, name)) for name in ("velocity", "acceleration", "jerk", "torque")}
        found = limits_of(
            model,
            fraction=settings.fraction,
            position=settings.position,
            **listed,
            torque_uncertainty=settings.torque_uncertainty,
            tool_speed=settings.tool_speed,
            tool=settings.tool,
            clearance=apart,
        )
    else:
        notes = () if apart is None else apart.notes
        found = replace(given, clearance=apart, notes=(*notes, *given.notes))
    return replace(found, notes=(*told, *found.notes))


def _clearance(model: Robot, settings: ExciteSettings) -> tuple[Clearance | None, tuple[str, ...]]:
    """What is to be kept apart, and notes on it; nothing where that was switched off."""
    if not settings.collision:
        return None, ("bodies are not kept apart, nor from the mounting plane: --no-collision was given",)
    ground = settings.ground
    height = 0.0 if ground is None else None if isinstance(ground, str) else ground
    least = DEFAULT_CLEARANCE_M if settings.clearance is None else settings.clearance
    found, notes = usual_clearance(model, least_m=least, ground_m=height, assumed=ground is None)
    if found is None and settings.clearance is not None:
        raise InputError(f"--clearance {settings.clearance:g} cannot be kept: {notes[-1]}; design without it")
    return found, notes


def _points(model: Robot, limits: Limits, settings: ExciteSettings, progress: Progress | None) -> Excitation:
    chosen = settings.chosen("measure", "lambda1", "lambda2", "seconds", "seed", "starts", "periods", "engine")
    return points_excitation(
        model, None, settings.points, limits=limits, tick_s=1.0 / settings.rate, progress=progress, **chosen
    )


def _sinusoids(model: Robot, limits: Limits, length_s: float, settings: ExciteSettings) -> FourierTrajectory:
    if settings.amplitude is not None and settings.period_s is not None:
        given = (settings.amplitude, settings.period_s, settings.centre)
        return given_sinusoids(model, limits, *given, duration_s=length_s)
    if settings.joint is not None:
        return single_joint_sinusoid(model, settings.joint, limits, length_s, seed=settings.seed)
    return all_joint_sinusoids(model, limits, length_s, seed=settings.seed)


def _searched(
    model: Robot,
    limits: Limits,
    length_s: float,
    settings: ExciteSettings,
    progress: Progress | None,
    own: Mapping[str, Any],
) -> Excitation:
    family: LinearShape
    if "shape" in own:
        family = own["shape"]
    elif settings.shape == "fourier":
        family = FourierShape(length_s, DEFAULT_HARMONICS if settings.harmonics is None else settings.harmonics)
    else:
        family = BSplineShape(length_s, DEFAULT_INTERVALS if settings.intervals is None else settings.intervals)
    chosen = settings.chosen("criterion", "starts", "rest", "periods", "scaled", "seconds", "seed", "engine")
    chosen |= {name: value for name, value in own.items() if name != "shape"}
    noise = _one_or_all(settings.torque_noise)
    return search_excitation(model, None, family, torque_noise=noise, limits=limits, progress=progress, **chosen)


def _one_or_all(values: tuple[float, ...] | None) -> float | tuple[float, ...] | None:
    """One number for every joint, or one for each."""
    return values[0] if values is not None and len(values) == 1 else values
