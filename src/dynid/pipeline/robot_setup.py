"""The robot of a run: its description, and the transmissions and springs that the settings add to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dynid.errors import InputError
from dynid.io.robots.read import read_robot
from dynid.io.robots.springs import with_springs
from dynid.model.coupling import Coupling, coupling_from_terms
from dynid.model.friction import with_coupling
from dynid.model.robot import Robot
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
