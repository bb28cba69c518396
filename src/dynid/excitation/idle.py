"""Joints that an exciting motion leaves alone unless it is asked to move them: those that follow others, fingers, wheels."""

from __future__ import annotations

import re
from collections.abc import Collection

import numpy as np

from dynid.errors import UnknownNameError
from dynid.robot.model import Robot

_BY_NAME = re.compile(
    r"finger|gripper|knuckle|thumb|wheel|caster|roller|(?<=hand_)(?:index|middle|ring|little|pinky|mrl)(?=_|$)",
    re.IGNORECASE,
)
_FOLLOWS = re.compile(r"joint '(?P<name>.+?)' is treated as a joint of its own; it mimics")
ALL = "all"


def idle_joints(robot: Robot, moved: Collection[str] = ()) -> dict[str, str]:
    """Joints to hold, and why; ``moved`` are those to move all the same, or ``all``."""
    for name in moved:
        if name != ALL and name not in robot.joint_names:
            raise UnknownNameError("joint", name, robot.joint_names, "--move")
    if ALL in moved:
        return {}
    follows = {match["name"] for note in robot.source.notes if (match := _FOLLOWS.match(note)) is not None}
    found: dict[str, str] = {}
    for joint in robot.moving_joints:
        name = joint.name
        if name in moved:
            continue
        if name in follows:
            found[name] = "follows another joint"
        elif word := _BY_NAME.search(name):
            found[name] = f"by name: {word[0].lower()}"
    return found if len(found) < robot.n_joints else {}


def without_idle_joints(robot: Robot, moved: Collection[str] = ()) -> tuple[Robot, str]:
    """The robot with such joints locked at neutral, or in the middle of a range that has no neutral, and a sentence on them."""
    idle = idle_joints(robot, moved)
    if not idle:
        return robot, ""
    low, high = robot.position_limits.T
    places = {}
    for name in idle:
        k = robot.joint_names.index(name)
        inside = (not np.isfinite(low[k]) or low[k] <= 0.0) and (not np.isfinite(high[k]) or high[k] >= 0.0)
        places[name] = 0.0 if inside else float(0.5 * (low[k] + high[k]))
    because = {why: [name for name in idle if idle[name] == why] for why in dict.fromkeys(idle.values())}
    told = "; ".join(f"{', '.join(names)} ({why})" for why, names in because.items())
    return robot.lock(places), f"these joints are held and not moved: {told}; --move JOINT,.. or --move all moves them"
