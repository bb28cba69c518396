"""One call for every format: the robot of a file, with effects, gravity and locked joints as asked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from os import PathLike

from numpy.typing import ArrayLike

from dynid.errors import InputError
from dynid.io.robots.description import Description, read_description
from dynid.model.effects import effects_from_names
from dynid.model.effects.effect import Effect
from dynid.model.friction import with_coupling
from dynid.model.robot import Robot
from dynid.option_types import DEFAULT_EFFECTS

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

    Returns:
        the robot, with the parameters of the file and zero for those of its effects.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf")
        >>> robot = dynid.read_robot("arm.urdf", effects="viscous,coulomb")
        >>> robot.n_joints, robot.parameters.names[-1]
        (7, 'fc7')
    """
    described = _read_by_format(read_description(path), floating)
    # Numbers that no machine has would only overflow later: a mass of 1e300 kg, a link a light year long.
    n = described.parameters.n_inertial
    for name, value in zip(described.parameters.names[:n], described.parameters.values[:n].tolist(), strict=True):
        if not abs(value) <= HEAVIEST:
            link = described.links[described.parameters.index(name) // 10]
            raise InputError(
                f"robot file '{path}' gives link '{link}' {name} = {value:.3g} in SI units, expected at most {HEAVIEST:.0e}"
            )
    for joint in described.joints:
        far = float(abs(joint.placement[:3, 3]).max())
        if not far <= FARTHEST:
            raise InputError(
                f"robot file '{path}' puts joint '{joint.name}' {far:.3g} m from its parent, expected at most {FARTHEST:.0e}"
            )
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
    """The robot of a file by its suffix, or by its outermost element; only the reader that is needed is loaded."""
    suffix = description.path.suffix.lower()
    if suffix not in (".urdf", ".xml", ".mjcf", ".xacro", ".sdf", ".toml"):
        raise InputError(f"{description.where} ends in '{suffix}', expected .urdf, .xacro, .xml (MJCF), .sdf or .toml (DH)")
    root = "" if suffix == ".toml" else description.root.tag
    format = {"": "DH", "robot": "URDF", "mujoco": "MJCF", "sdf": "SDF"}.get(root)
    if floating and format not in (None, "URDF"):
        raise InputError(f"floating applies to URDF files only, '{description.path}' is {format}")
    if format == "DH":
        from dynid.io.robots.dh import robot_from_dh

        return robot_from_dh(description)
    if format == "URDF":
        from dynid.io.robots.closures import with_side_file
        from dynid.io.robots.urdf_read import robot_from_urdf

        return with_side_file(robot_from_urdf(description, floating=floating), description.path)
    if format == "MJCF":
        from dynid.io.robots.mjcf_read import robot_from_mjcf

        return robot_from_mjcf(description)
    if format == "SDF":
        from dynid.io.robots.sdf_read import robot_from_sdf

        return robot_from_sdf(description)
    raise InputError(
        f"{description.where} has the outermost element <{root}>, expected <robot> (URDF), <mujoco> (MJCF) or <sdf>"
    )
