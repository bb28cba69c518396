"""What follows from a robot's joints and effects alone, found once however many robots share them.

Parameters change with every estimate; kinematic tree, channels and base parameters do not. They are kept here under the
joints, gravity and effects they follow from, so that a run that makes many robots of one structure looks each up.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from dynid.robot.model import Robot

if TYPE_CHECKING:
    from dynid.regression.base import BaseReduction
    from dynid.regression.channels import Channel

KEPT = 64
"""Structures kept at most; a run meets one per friction model it tries."""

_kept: OrderedDict[Any, Structure] = OrderedDict()
_lock = Lock()


class Structure:
    """Tree, channels and base parameters of all robots with the same joints, gravity and effects."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot

    @cached_property
    def tree_arrays(self) -> tuple[Any, ...]:
        """The kinematic tree as the kernels take it."""
        from dynid.regression import kernel

        return kernel.tree_arrays(self._robot.tree)

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """One channel per torque."""
        from dynid.regression.channels import find_torque_channels

        return find_torque_channels(self._robot)

    @cached_property
    def base(self) -> BaseReduction:
        """Base parameters in the default grouping."""
        from dynid.regression.base import find_base

        return find_base(self._robot)


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
    return joints, robot.gravity.tobytes(), robot.effects
