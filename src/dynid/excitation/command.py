"""An exciting motion for a robot description, by the options of ``dynid excite``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.engine import Engine
from dynid.errors import InputError, UnknownNameError
from dynid.excitation.acceleration_limits import derived_acceleration, known_arm, read_robot_limits
from dynid.excitation.collision import Clearance, UncheckedError, usual_clearance
from dynid.excitation.criteria import Criterion
from dynid.excitation.excitation_result import Excitation, finished_excitation, led_from, told_if_poor
from dynid.excitation.fixed_motions import actuator_excitation, sinusoid_excitation
from dynid.excitation.limits import Limits, limits_of, per_joint, without_excluded_joints
from dynid.excitation.options import DEFAULT_CLEARANCE_M, LIMITS, ROBOT, SEARCHED, ExciteSettings
from dynid.excitation.points import design_points
from dynid.excitation.pose_limits import tool_place
from dynid.excitation.prediction import evaluate_motion, periods_until
from dynid.excitation.ramps import check_home
from dynid.excitation.search import Progress, search_excitation
from dynid.excitation.shapes import BSplineShape, FourierShape, LinearShape
from dynid.excitation.surroundings import stated_obstacles, tool_solid
from dynid.excitation.trajectories import check_n_samples
from dynid.io.robots.read import read_robot
from dynid.model.robot import Robot
from dynid.option_types import changed_options, options_of

DEFAULT_PERIOD_S = 20.0
DEFAULT_HARMONICS = 5
DEFAULT_INTERVALS = 12
NO_LIMIT = 100.0
"""Velocity limit, rad/s or m/s, from which a description states none: those of 60 public ones are 60 at most, or 100 and more."""
RANGE_FRACTION = 0.95
"""Share of each joint's range that a motion uses where it uses less than all of the other limits."""
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
    model, kept = _moved_within(robot, asked, limits)
    if asked.home is not None:
        check_home(model, np.asarray(asked.home, dtype=np.float64), kept)
    if asked.torque_noise is not None:
        per_joint("torque noise", asked.torque_noise, model)
    if asked.purpose == "actuators":
        found = actuator_excitation(model, kept, **asked.chosen("top_hz", "seed"))
    elif asked.shape == "points":
        chosen = asked.chosen("measure", "lambda1", "lambda2", "seconds", "seed", "starts", "periods", "engine")
        found = told_if_poor(
            design_points(model, asked.points, limits=kept, tick_s=1.0 / asked.rate, progress=progress, **chosen)
        )
    elif asked.shape == "sinusoids":
        given = asked.chosen("joint", "amplitude", "centre", "rest", "periods", "seed")
        found = sinusoid_excitation(model, kept, length_s, period=asked.period_s, **given)
    else:
        found = told_if_poor(_searched(model, kept, length_s, asked, progress, own))
    if asked.until is not None:
        found = _repeated(found, asked, asked.until)
    return found if asked.home is None else led_from(found, asked.home)


def evaluate_excitation(robot: Robot | str | Path, motion: str | Path, settings: ExciteSettings | None = None) -> Excitation:
    """A motion that exists judged like a designed one: what ``dynid excite --evaluate`` does.

    Args:
        robot: the robot, or the path of its description.
        motion: a table of the motion, or a log of it.
        settings: the options; by default those of the command line.
    """
    asked = settings or ExciteSettings()
    model, kept = _moved_within(robot, asked, None)
    return evaluate_motion(model, motion, kept)


def moved_robot(robot: Robot | str | Path, settings: ExciteSettings) -> tuple[Robot, str]:
    """The robot of the joints that are moved, and a sentence on those that are held."""
    return without_excluded_joints(_described(robot, settings), settings.move)


def _moved_within(robot: Robot | str | Path, settings: ExciteSettings, given: Limits | None) -> tuple[Robot, Limits]:
    """The robot of the joints that are moved, and its limits."""
    model, held = moved_robot(robot, settings)
    kept = _limits(model, settings, given)
    return model, replace(kept, notes=(held, *kept.notes)) if held else kept


def _repeated(found: Excitation, asked: ExciteSettings, target: str) -> Excitation:
    """The motion played as often as a target asks for."""
    needed = periods_until(found, target, asked.periods, asked.torque_noise, asked.rate)
    check_n_samples(found.playable.duration_s / asked.periods * needed, asked.rate)
    again = finished_excitation(
        found.robot,
        found.base,
        found.trajectory,
        found.limits,
        criterion=found.criterion,
        rest=asked.rest and asked.shape != "points",
        periods=needed,
        n_times=found.margins.n_times,
        began=monotonic() - found.seconds,
        seed=found.seed,
        starts=found.starts,
        notes=(*found.notes, f"the motion is played {needed} times until {target}"),
        energy_rows=found.energy_rows,
    )
    return again


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
        found = _usual_limits(model, settings, apart)
    else:
        notes = () if apart is None else apart.notes
        found = replace(given, clearance=apart, notes=(*notes, *given.notes))
    if np.isinf(found.torque).all() and np.isfinite(model.limits("tau_max")).any():
        _refuse_unchecked(f"torque limits cannot be checked: robot '{model.name}' has no inertial parameters", settings)
    return replace(found, notes=(*told, *found.notes), unchecked=(*told, *found.unchecked))


def _usual_limits(model: Robot, settings: ExciteSettings, apart: Clearance | None) -> Limits:
    """The tightest of what is given, the file of limits and the description; accelerations are always limited."""
    given = {
        name: getattr(settings, name)
        for name in ("position", "velocity", "acceleration", "jerk", "torque")
        if getattr(settings, name) is not None
    }
    given = {
        name: value if name == "position" else per_joint(f"{name} limit", value, model) for name, value in given.items()
    }
    told: list[str] = []
    if settings.robot_limits is not None:
        for name, values in read_robot_limits(settings.robot_limits, model).items():
            if np.isfinite(values).any():
                given[name] = _tightest(name, given.get(name), values)
    rate = np.minimum(given.get("acceleration", np.inf), model.limits("ddq_max"))
    speed = np.minimum(given.get("velocity", np.inf), model.limits("dq_max"))
    stated_fast = [name for name, most in zip(model.joint_names, speed, strict=True) if NO_LIMIT <= most < np.inf]
    if stated_fast:
        raise InputError(
            f"robot '{model.name}' has velocity limits of {speed.min():g} rad/s or more on {', '.join(stated_fast)}, which no robot "
            "reaches; give those of the drives with --velocity or --robot-limits"
        )
    lacking = ~np.isfinite(rate)
    if lacking.any() and np.isfinite(speed).all():
        arm = known_arm(model)
        torque = np.minimum(given.get("torque", np.inf), model.limits("tau_max"))
        usual = np.array(arm.acceleration) if arm else derived_acceleration(model, speed, torque)
        unknown = [name for name, bad in zip(model.joint_names, lacking & ~np.isfinite(usual), strict=True) if bad]
        if unknown:
            raise InputError(
                f"robot '{model.name}' has no acceleration limit on joint{'s' * (len(unknown) > 1)} {', '.join(unknown)}, and no "
                "torque limit and inertia to derive one from; give one with --acceleration or --robot-limits"
            )
        given["acceleration"] = np.where(lacking, usual, rate)
        told.append(
            f"acceleration limits are those of {arm.name} ({arm.source})"
            if arm
            else "acceleration limits are derived from torque limits and the mass matrix; give the controller's with "
            "--acceleration or --robot-limits"
        )
    room = None if settings.keep_in is None else np.reshape(settings.keep_in, (2, 3))
    found = limits_of(
        model,
        fraction=settings.fraction,
        range_fraction=1.0 if settings.fraction == 1.0 else RANGE_FRACTION,
        **given,
        torque_uncertainty=settings.torque_uncertainty,
        tool_speed=settings.tool_speed,
        tool=settings.tool,
        tool_room=None if room is None else np.column_stack([room[0] - 0.5 * room[1], room[0] + 0.5 * room[1]]),
        clearance=apart,
    )
    guessed = _placeholder(model, "torque" in given)
    return replace(found, notes=(*found.notes, *told, *guessed), unchecked=guessed)


def _placeholder(model: Robot, torque_given: bool) -> tuple[str, ...]:
    """What to say of torque limits that are one power of ten for all joints, as descriptions have where nobody filled them in."""
    most = model.limits("tau_max")
    if torque_given or len(most) < 3 or (most != most[0]).any() or not most[0] > 0.0 or not np.log10(most[0]).is_integer():
        return ()
    same = " and velocity limits" if np.unique(model.limits("dq_max")).size == 1 else ""
    return (
        (
            f"torque limits{same} of the description are the same for all joints ({most[0]:g} N m), as if nobody filled them in: "
            "give those of the drives with --torque, --velocity or --robot-limits"
        ),
    )


def _tightest(name: str, given: Any, values: Array) -> Array:
    if given is None:
        return values
    if name == "position":
        return np.column_stack([np.maximum(given[:, 0], values[:, 0]), np.minimum(given[:, 1], values[:, 1])])
    return np.asarray(np.minimum(values, given))


def _refuse_unchecked(what: str, settings: ExciteSettings) -> None:
    if not settings.unchecked:
        raise InputError(f"{what}, so no motion is written; --unchecked writes it all the same")


def _clearance(model: Robot, settings: ExciteSettings) -> tuple[Clearance | None, tuple[str, ...]]:
    """What is to be kept apart, and notes on it; nothing where that was switched off."""
    if not settings.collision:
        return None, ("bodies are not kept apart, nor from the mounting plane: --no-collision was given",)
    ground = settings.ground
    height = 0.0 if ground is None else None if isinstance(ground, str) else ground
    least = DEFAULT_CLEARANCE_M if settings.clearance is None else settings.clearance
    body, point = tool_place(model, settings.tool)
    tool = tool_solid(settings.tool_sphere, settings.tool_box, point)
    around = stated_obstacles(settings.box, settings.plane, settings.ceiling, settings.wall)
    try:
        found, notes = usual_clearance(
            model,
            least_m=least,
            ground_m=height,
            assumed=ground is None,
            around=around,
            tool=None if tool is None else (body, tool),
        )
    except UncheckedError as error:
        _refuse_unchecked(str(error), settings)
        return None, (str(error),)
    if found is None and settings.clearance is not None:
        raise InputError(f"--clearance {settings.clearance:g} cannot be kept: {notes[-1]}; design without it")
    return found, notes if found is None else ()


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
    return search_excitation(
        model, None, family, torque_noise=settings.torque_noise, limits=limits, progress=progress, **chosen
    )
