"""An exciting motion for a robot description, by the options of ``dynid excite``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.errors import InputError
from dynid.excitation.actuators import actuator_excitation
from dynid.excitation.bspline import BSplineShape
from dynid.excitation.collision import Clearance, usual_clearance
from dynid.excitation.design import design_excitation
from dynid.excitation.fourier import FourierShape
from dynid.excitation.idle import without_idle_joints
from dynid.excitation.limits import Limits, limits_of
from dynid.excitation.points import points_excitation
from dynid.excitation.search import Progress
from dynid.excitation.shape import check_n_samples
from dynid.excitation.sinusoids import (
    SinusoidTrajectory,
    all_joint_sinusoids,
    given_sinusoids,
    single_joint_sinusoid,
    sinusoid_excitation,
)
from dynid.robot.read import read_robot
from dynid.run.excite_options import DEFAULT_CLEARANCE_M, ExciteSettings

if TYPE_CHECKING:
    from dynid.excitation.judged import Excitation
    from dynid.robot.model import Robot

DEFAULT_PERIOD_S = 20.0
DEFAULT_HARMONICS = 5
DEFAULT_INTERVALS = 12


def design_motion(robot: str | Path, settings: ExciteSettings, progress: Progress | None = None) -> Excitation:
    """The motion that ``dynid excite`` designs for a description.

    Args:
        robot: Robot description: URDF, MJCF, SDF or DH table.
        settings: What motion, within which limits, and how long the search may take.
        progress: Told how far the search is.

    Returns:
        The motion as it is played, its condition number and its margins to every limit.

    Examples:
        >>> from dynid.robot.builtin import demo_description
        >>> from dynid.run.excite import design_motion
        >>> from dynid.run.excite_options import ExciteSettings
        >>> import pathlib, tempfile
        >>> arm = pathlib.Path(tempfile.mkdtemp(), "arm.toml")
        >>> _ = arm.write_text(demo_description())
        >>> found = design_motion(arm, ExciteSettings(shape="sinusoids", period=5.0))
        >>> found.margins.position.value >= 0.0
        True
    """
    length_s = DEFAULT_PERIOD_S if settings.period is None else settings.period
    check_n_samples(length_s * max(settings.periods, 1), settings.rate)
    described = read_robot(robot, settings.effects or "none", settings.gravity, dict(settings.lock))
    model, held = without_idle_joints(described, settings.move)
    apart, told = _clearance(model, settings)
    limits = _limits(model, settings, apart)
    limits = replace(limits, notes=(*([held] if held else []), *told, *limits.notes))
    if settings.purpose == "actuators":
        return actuator_excitation(model, limits, **settings.chosen("top_hz", "seed"))
    if settings.shape == "points":
        return _points(model, limits, settings, progress)
    if settings.shape == "sinusoids":
        waves = _sinusoids(model, limits, length_s, settings)
        played = settings.chosen("rest", "periods", "seed")
        return sinusoid_excitation(model, waves, limits, **played)
    return _searched(model, limits, length_s, settings, progress)


def _limits(model: Robot, settings: ExciteSettings, apart: Clearance | None) -> Limits:
    listed = {name: _one_or_all(getattr(settings, name)) for name in ("velocity", "acceleration", "jerk", "torque")}
    return limits_of(
        model,
        fraction=settings.fraction,
        position=settings.position,
        **listed,
        torque_uncertainty=settings.torque_uncertainty,
        tool_speed=settings.tool_speed,
        tool=settings.tool,
        clearance=apart,
    )


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
        model, None, settings.rows, limits=limits, tick_s=1.0 / settings.rate, progress=progress, **chosen
    )


def _sinusoids(model: Robot, limits: Limits, length_s: float, settings: ExciteSettings) -> SinusoidTrajectory:
    if settings.amplitude is not None and settings.period_s is not None:
        given = (settings.amplitude, settings.period_s, settings.centre)
        return given_sinusoids(model, limits, *given, duration_s=length_s)
    if settings.joint is not None:
        return single_joint_sinusoid(model, settings.joint, limits, length_s, seed=settings.seed)
    return all_joint_sinusoids(model, limits, length_s, seed=settings.seed)


def _searched(
    model: Robot, limits: Limits, length_s: float, settings: ExciteSettings, progress: Progress | None
) -> Excitation:
    family: Any
    if settings.shape == "fourier":
        family = FourierShape(length_s, DEFAULT_HARMONICS if settings.harmonics is None else settings.harmonics)
    else:
        family = BSplineShape(length_s, DEFAULT_INTERVALS if settings.intervals is None else settings.intervals)
    chosen = settings.chosen("criterion", "starts", "rest", "periods", "scaled", "seconds", "seed", "engine")
    noise = _one_or_all(settings.torque_noise)
    return design_excitation(model, None, family, torque_noise=noise, limits=limits, progress=progress, **chosen)


def _one_or_all(values: tuple[float, ...] | None) -> float | tuple[float, ...] | None:
    """One number for every joint, or one for each."""
    return values[0] if values is not None and len(values) == 1 else values
