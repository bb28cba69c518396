"""Closed loops of MJCF: ``connect`` and ``weld`` between bodies or sites, and ``joint``, by which one joint follows another.

Driven joints are those with actuators that follow no other joint, or deduced where there are none; where joints only follow others,
all that do not. The assembly mode is that of the first keyframe, or of the file's own reference pose. Equalities of tendons are not
modelled, nor are loops of a robot on a floating base.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynid.adapters.mujoco_joints import driven_by_actuators, followers, ties
from dynid.arrays import Array
from dynid.robot.loop_file import deduced_joints, frame_on, free_of_ties, with_loops
from dynid.robot.loops import Closure, Frame, JointTie, Loop, Loops
from dynid.robot.model import Robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

TIES = ("connect", "weld", "joint")
"""Equality constraints that are modelled."""
_PLACE = ("name", "pos", "quat", "axisangle", "xyaxes", "zaxis", "euler")


def first_key(root: Element) -> list[float]:
    """Positions of the first keyframe, empty where there is none."""
    for key in root.iterfind("keyframe/key"):
        try:
            return [float(value) for value in key.get("qpos", "").split()]
        except ValueError:
            return []
    return []


def cut_equalities(root: Element) -> set[str]:
    """Keep ties between bodies, sites or joints alone; names of the sites that they need."""
    sites: set[str] = set()
    for equality in root.findall("equality"):
        for child in list(equality):
            if child.tag not in TIES:
                equality.remove(child)
            sites |= {child.get(end, "") for end in ("site1", "site2")} - {""}
    return sites


def cut_site(site: Element) -> None:
    """A site is a place and nothing else."""
    for attribute in list(site.attrib):
        if attribute not in _PLACE:
            del site.attrib[attribute]


def with_ties(robot: Robot, model: Any, body_names: list[str], key: list[float], where: str) -> Robot:
    """The robot with the closures of its file, if it has any and stands on a fixed base."""
    if robot.floating:
        return robot
    tied = [JointTie(one.name, one.joint, one.leader, one.coefficients) for one in followers(model)]
    closures: list[Closure] = [*tied, *_framed(robot, model, body_names, where)]
    if not closures:
        return robot
    start = np.array(key) if len(key) == model.nq else np.array(model.qpos0)
    driven = [robot.joints[j].name for j in driven_by_actuators(model)]
    free = free_of_ties(robot.joints, tied)
    actuated = () if len(tied) == len(closures) else tuple(name for name in driven if name in free)
    actuated = actuated or deduced_joints(robot.joints, closures, start, where)
    return with_loops(robot, Loops(tuple(closures), actuated, (), start))


def _framed(robot: Robot, model: Any, body_names: list[str], where: str) -> list[Loop]:
    """Ties between bodies or sites that were not merged into one link."""
    found: list[Loop] = []
    for tie in ties(model):
        first, second = (
            _frame(robot, body_names[b], b, pose, where) for b, pose in zip(tie.bodies, tie.placements, strict=True)
        )
        if first.body != second.body:
            closed = ("x", "y", "z", "rx", "ry", "rz") if tie.rigid else ("x", "y", "z")
            found.append(Loop(tie.name, first, second, closed))
    return found


def _frame(robot: Robot, name: str, number: int, pose: Array, where: str) -> Frame:
    if number == 0:
        return Frame(-1, pose)
    body, placement = frame_on(robot, name, where)
    return Frame(body, placement @ pose)
