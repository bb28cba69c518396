"""What follows from a robot's joints and effects alone, found once however many robots share them.

Parameters change with every estimate; kinematic tree, channels and base parameters do not. They are kept here under the
joints, gravity and effects they follow from, so that a run that makes many robots of one structure looks each up.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any, TypeVar

from dynid.model.robot import Robot

Found = TypeVar("Found")

KEPT = 64
"""Structures kept at most; a run meets one per friction model it tries."""

_kept: OrderedDict[Any, Structure] = OrderedDict()
_lock = Lock()


class Structure:
    """What was found of all robots with the same joints, gravity and effects: tree, channels, base parameters."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot
        self._found: dict[Callable[[Robot], Any], Any] = {}

    def once(self, find: Callable[[Robot], Found]) -> Found:
        """What a function finds of a robot of this structure, which it is asked for once."""
        if find not in self._found:
            self._found[find] = find(self._robot)
        found: Found = self._found[find]
        return found


def structure_of(robot: Robot) -> Structure:
    """The structure of a robot, shared with all robots that have the same."""
    own: Structure | None = robot.__dict__.get("_structure")
    if own is not None:
        return own
    key = _key(robot)
    with _lock:
        own = _kept.get(key)
        if own is None:
            own = _kept[key] = Structure(robot)
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
        else:
            _kept.move_to_end(key)
    robot.__dict__["_structure"] = own
    return own


def forget_structures() -> None:
    """Let structures be found anew: for measuring what finding them takes. A robot that was asked before keeps its own."""
    with _lock:
        _kept.clear()


def _key(robot: Robot) -> Any:
    joints = tuple(
        (joint.name, joint.kind, joint.parent, joint.placement.tobytes(), joint.screw.tobytes()) for joint in robot.joints
    )
    limits = robot.position_limits.tobytes() if robot.loops else b""  # the branch of a closed robot is grown within them
    return joints, robot.gravity.tobytes(), robot.effects, robot.loops.key, limits, robot.absent
