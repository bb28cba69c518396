"""``mimic`` of URDF: a joint that follows another one, ``q = multiplier q_leader + offset``, as a closure of the robot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from dynid.adapters.xml import numbers
from dynid.robot.joint import neutral_position
from dynid.robot.loop_file import free_of_ties, with_loops
from dynid.robot.loops import JointTie, Loops
from dynid.robot.model import Robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


def with_mimics(robot: Robot, mimics: Mapping[str, Element | None], notes: list[str], where: str) -> Robot:
    """The robot whose joints follow others as its file says; ``mimics`` are the elements by joint.

    On a floating base, or where a joint follows one that is not there or does not move, it stays a joint of its own, and this is said.
    """
    names = [joint.name for joint in robot.joints]
    ties: list[JointTie] = []
    for name, mimic in mimics.items():
        if mimic is None or name not in names:
            continue
        place = f"mimic of joint '{name}' in {where}"
        (slope,), (offset,) = numbers(mimic, "multiplier", 1, "1", place), numbers(mimic, "offset", 1, "0", place)
        leader = mimic.get("joint", "?")
        words = f"'{leader}' (multiplier {slope:g}, offset {offset:g})"
        if robot.floating or leader not in names or leader == name:
            why = "closed chains are defined on a fixed base" if robot.floating else "that is no other moving joint"
            notes.append(f"joint '{name}' is treated as a joint of its own; it mimics {words}, but {why}")
            continue
        own = robot.joints[names.index(name)].nominal
        beside = "; its own friction and rotor inertia in the file are not used, they count as the leader's" if own else ""
        notes.append(f"joint '{name}' follows {words}{beside}")
        ties.append(JointTie(f"{name} mimics {leader}", names.index(name), names.index(leader), (offset, slope)))
    if not ties:
        return robot
    start = np.array([neutral_position(joint) for joint in robot.joints])
    for _ in ties:  # a leader may follow another joint itself
        for tie in ties:
            start[tie.follower] = tie.position(float(start[tie.leader]) if tie.leader >= 0 else 0.0)
    return with_loops(robot, Loops(tuple(ties), free_of_ties(robot.joints, ties), (), start))
