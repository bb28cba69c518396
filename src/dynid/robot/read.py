"""One call for every format: the robot of a file, with effects, gravity and locked joints as asked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike

from numpy.typing import ArrayLike

from dynid.errors import InputError
from dynid.robot.effects import Effect, effects_from_names
from dynid.robot.files import Description, read_description
from dynid.robot.model import Robot
from dynid.robot.motors import with_coupling

DEFAULT_EFFECTS = ("viscous", "coulomb", "offset", "armature")
"""Names of the effects that a robot gets when none are chosen."""
HEAVIEST = 1e9
"""kg, kg m and kg m^2 of a link, at most."""
FARTHEST = 1e6
"""Metres from joint to joint, at most."""


def read_robot(
    path: str | PathLike[str],
    effects: Sequence[Effect] | Sequence[str] | str | None = None,
    gravity: ArrayLike | None = None,
    lock: Mapping[str, float] | None = None,
    joints: Sequence[str] | None = None,
    *,
    floating: bool = False,
) -> Robot:
    """The robot of a URDF, xacro, MJCF, SDF or DH TOML file.

    Args:
        path: the file; its format is recognised by its suffix and, for XML, by its outermost element.
        effects: effects or their names; None for viscous, coulomb, offset and armature; "none" for no
            effect, rigid bodies only.
        gravity: replaces the file's own, m/s^2.
        lock: joints held at these positions and merged into the links that carry them.
        joints: the joints to keep, such as those of a log; all others are locked, at ``lock`` or neutral.
        floating: puts a URDF robot on a floating base (MJCF files say so themselves).

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf")
        >>> robot = dynid.read_robot("arm.urdf", effects="viscous,coulomb")
        >>> robot.n_joints, robot.parameters.names[-1]
        (7, 'fc7')
    """
    described = _read_by_format(read_description(path), floating)
    _refuse_beyond(described, path)
    chosen = chosen_effects(effects)
    # springs that the description states are part of the robot, but not of rigid bodies alone
    stated = [one for one in described.effects if one.label not in [effect.label for effect in chosen]] if chosen else []
    robot = with_coupling(described.with_effects([*chosen, *stated]), described.coupling)
    if gravity is not None:
        robot = robot.with_gravity(gravity)
    positions = dict(lock or {})
    for name, value in positions.items():
        if not math.isfinite(value):
            raise InputError(f"joint '{name}' cannot be locked at {value}, expected a finite number")
    return robot.lock(positions) if joints is None else robot.only(joints, positions)


def chosen_effects(effects: Sequence[Effect] | Sequence[str] | str | None = None) -> tuple[Effect, ...]:
    """Effects from effects, from names or from nothing (the default ones)."""
    if effects is None:
        return effects_from_names(DEFAULT_EFFECTS)
    if isinstance(effects, str):
        return effects_from_names(effects)
    chosen: list[Effect] = []
    for effect in effects:
        if isinstance(effect, str):
            chosen.extend(effects_from_names([effect]))
        elif isinstance(effect, Effect):
            chosen.append(effect)
        else:
            raise InputError(f"{effect!r} is not an effect; give effects such as Viscous() or their names")
    names = [effect.label for effect in chosen]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"effect '{twice[0]}' is asked for {names.count(twice[0])} times, expected once")
    return tuple(chosen)


def _read_by_format(description: Description, floating: bool) -> Robot:
    suffix = description.path.suffix.lower()
    if suffix == ".toml":
        from dynid.robot.dh import robot_from_dh

        _refuse_floating(floating, description, "DH")
        return robot_from_dh(description)
    if suffix not in (".urdf", ".xml", ".mjcf", ".xacro", ".sdf"):
        raise InputError(
            f"robot file '{description.path}' ends in '{suffix}', expected .urdf, .xacro, .xml (MJCF), .sdf or .toml (DH)"
        )
    from dynid.adapters.xml import parse_xml

    root = parse_xml(description.content, f"robot file '{description.path}'").tag
    if root == "robot":
        from dynid.robot.loop_file import with_side_file
        from dynid.robot.urdf import robot_from_urdf

        return with_side_file(robot_from_urdf(description, floating=floating), description.path)
    if root == "mujoco":
        from dynid.robot.mjcf import robot_from_mjcf

        _refuse_floating(floating, description, "MJCF")
        return robot_from_mjcf(description)
    if root == "sdf":
        from dynid.robot.sdf import robot_from_sdf

        _refuse_floating(floating, description, "SDF")
        return robot_from_sdf(description)
    raise InputError(
        f"robot file '{description.path}' has the outermost element <{root}>, "
        "expected <robot> (URDF), <mujoco> (MJCF) or <sdf>"
    )


def _refuse_beyond(robot: Robot, path: str | PathLike[str]) -> None:
    """Numbers that no machine has would only overflow later: a mass of 1e300 kg, a link a light year long."""
    n = robot.parameters.n_inertial
    for name, value in zip(robot.parameters.names[:n], robot.parameters.values[:n].tolist(), strict=True):
        if not abs(value) <= HEAVIEST:
            link = robot.links[(robot.parameters.index(name)) // 10]
            raise InputError(
                f"robot file '{path}' gives link '{link}' {name} = {value:.3g} in SI units, expected at most {HEAVIEST:.0e}"
            )
    for joint in robot.joints:
        far = float(abs(joint.placement[:3, 3]).max())
        if not far <= FARTHEST:
            raise InputError(
                f"robot file '{path}' puts joint '{joint.name}' {far:.3g} m from its parent, expected at most {FARTHEST:.0e}"
            )


def _refuse_floating(floating: bool, description: Description, format: str) -> None:
    if floating:
        raise InputError(f"floating applies to URDF files only, '{description.path}' is {format}")
