"""The robot that comes with dynid: a seven-joint arm to try everything on."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from dynid.robot.dh import robot_from_dh
from dynid.robot.effects import Effect
from dynid.robot.files import Description
from dynid.robot.model import Robot
from dynid.robot.read import chosen_effects

DEMO_ARM = "demo_arm.toml"


def demo_robot(effects: Sequence[Effect] | Sequence[str] | str | None = None) -> Robot:
    """The demonstration arm, with seven joints and true inertials, friction and rotor inertias.

    Args:
        effects: effects or their names; None for viscous, coulomb, offset and armature; "none" for rigid bodies only.

    Examples:
        >>> import dynid
        >>> dynid.demo_robot(effects="none").joint_names[0]
        'shoulder_yaw'
    """
    description = Description(Path(DEMO_ARM), demo_description().encode())
    return robot_from_dh(description).with_effects(chosen_effects(effects))


def demo_description() -> str:
    """The demonstration arm's DH TOML text, for those who want it as a file."""
    return resources.files("dynid.robot").joinpath("data", DEMO_ARM).read_text(encoding="utf-8")
