"""What settings make of a description and of the name of a method: transmissions and springs of the robot, options of the method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dynid.engine import Tell, silent
from dynid.errors import InputError
from dynid.estimation.methods.registry import method_from_options
from dynid.estimation.result import Method
from dynid.io.robots.dh import with_springs
from dynid.io.robots.read import read_robot
from dynid.model.coupling import Coupling, coupling_from_terms
from dynid.model.friction import with_coupling
from dynid.model.robot import Robot
from dynid.pipeline.option_groups import FLOATING
from dynid.pipeline.options import Settings

SETTINGS = "the settings"


def described_robot(robot: Robot | str | Path, settings: Settings) -> Robot:
    """The robot as the settings want it; numbers of joints are those of the description, before any is locked."""
    gravity = settings.gravity
    if gravity == "auto":
        raise InputError("--gravity auto is found by identify, expected three numbers here")
    if isinstance(robot, Robot):
        return with_mechanisms(robot if gravity is None else robot.with_gravity(gravity), settings)
    read = read_robot(robot, settings.effects or "none", gravity)
    if settings.floating and not read.floating:
        read = read_robot(robot, settings.effects or "none", gravity, floating=True)
    return with_mechanisms(read, settings).lock(settings.lock)


def with_mechanisms(robot: Robot, settings: Settings) -> Robot:
    """The robot with the coupling and the springs of the settings."""
    robot = with_springs(robot, settings.spring, SETTINGS)
    coupling = coupling_of(robot, settings)
    return robot if coupling == robot.coupling else with_coupling(robot, coupling)


def coupling_of(robot: Robot, settings: Settings) -> Coupling | None:
    """The robot's own coupling with what the settings change of it."""
    own, names = robot.coupling, [joint.name for joint in robot.driven_joints]
    if not settings.coupling:
        if settings.motor_effects is not None and own is None:
            raise InputError("--motor-effects names effects of coupled motors, but there are none: give --coupling as well")
        if own is None:
            return None
    made = coupling_from_terms(settings.coupling, names, start=own)
    ratios = settings.gear_ratios
    return replace(
        made,
        gear_ratios=made.gear_ratios if ratios is None or len(ratios) != made.n_joints else ratios,
        side=settings.side or made.side,
        effects=made.effects if settings.motor_effects is None else settings.motor_effects,
    )


def described_model(
    robot: Robot | str | Path | None, settings: Settings, validate_on: Sequence[Path]
) -> tuple[Robot, Settings]:
    """The robot that is identified, before the data were asked for what is to be found; the settings say whether its root link floats.

    Options that do not go together, or that the robot does not have, are refused before any work.
    """
    if settings.split is not None and validate_on:
        raise InputError("a split and validation logs were both given, expected one of the two")
    if robot is None:
        raise SensorLogError("no robot was given, expected logs of a force/torque sensor")
    feet = settings.feet or settings.flat_feet or settings.force_frames
    if settings.floating is None and (feet or (isinstance(robot, Robot) and robot.floating)):
        settings = replace(settings, floating=True)
    if settings.floating:
        refuse_fixed_options(settings)
    model = described_robot(robot, without_search(settings))
    if settings.floating and not model.floating:
        raise InputError(
            f"robot '{model.name}' stands fixed, expected one on a floating base: read_robot(..., floating=True)"
        )
    check_settings(settings, model)
    return model, settings


def refuse_fixed_options(settings: Settings) -> None:
    """Refuse options that robots on a floating base have no use for."""
    if settings.rows not in ("torque", FLOATING):
        raise InputError(
            f"--rows {settings.rows} is for robots that stand fixed; a floating base has rows of its own: leave it out"
        )
    if settings.filter_on != "rows" or settings.filter != "butterworth":
        raise InputError(
            "a robot on a floating base has its rows filtered, expected --filter-on rows and --filter butterworth"
        )
    if settings.friction not in (None, "auto", "linear"):
        raise InputError(
            f"--friction {settings.friction} is for robots that stand fixed, expected linear or auto on a floating base"
        )
    for name in ("frame", "frame_pose", "shape", "static", "ignore_torque", "gear_ratios", "calibrate"):
        if getattr(settings, name):
            raise InputError(f"--{name.replace('_', '-')} is not for robots on a floating base: leave it out")
    if settings.torque_delay != 0.0 or settings.gravity == "auto":
        raise InputError(
            "--torque-delay and --gravity auto are for robots that stand fixed: leave them out on a floating base"
        )


class FloatingLogError(InputError):
    """A log that holds the motion of the robot's base beside the torque of its joints, and the feet whose contacts it has."""

    def __init__(self, message: str, feet: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.feet = feet


class SensorLogError(InputError):
    """A log of a force/torque sensor where joint torque or poses were expected."""


def without_search(settings: Settings) -> Settings:
    """The settings as they are before the data were asked for what is to be found."""
    gravity = None if settings.gravity == "auto" else settings.gravity
    return replace(settings, gravity=gravity, torque_delay=0.0 if settings.torque_delay == "auto" else settings.torque_delay)


def check_settings(settings: Settings, robot: Robot) -> None:
    """Refuse before any work what does not go together, and bounds and constraints that the robot does not have."""
    if settings.calibrate and (settings.coefficients is not None or settings.fix_bodies is not None):
        raise InputError("--calibrate needs bodies that are fitted to the logs: leave out --coefficients and --fix-bodies")
    if settings.coefficients is not None:
        return
    if settings.ignore_torque and settings.rows != "torque":
        raise InputError(f"--rows {settings.rows} takes the torque of all joints, --ignore-torque needs --rows torque")
    if settings.drop_above is not None:
        raise InputError(
            "--drop-above leaves out given coefficients, none were given: name them with --coefficients RUN|CSV"
        )
    if settings.fix_bodies is None and settings.friction is None:
        method_of(replace(settings, boxes=False), robot)


def method_of(settings: Settings, robot: Robot, tell: Tell = silent) -> Method:
    """The method that the settings name, with the options it takes from them; the mass of a whole robot that floats is a constraint."""
    if settings.mass is not None and robot.floating:
        known = {"total_mass": {"lower": settings.mass, "upper": settings.mass}}
        settings = replace(settings, constraints={**settings.constraints, **known})
    return method_from_options(settings.method, settings.as_dict(), robot, tell)
