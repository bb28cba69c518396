"""Messages of ros2_control with commands beside states: controller states and dynamic joint states.

``control_msgs/JointTrajectoryControllerState`` has ``reference`` (older: ``desired``) and ``feedback`` (older: ``actual``) per joint.
``control_msgs/DynamicJointState`` has named interfaces per joint; ``position`` and ``velocity`` are states.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InputError

CONTROLLER_STATE = ("control_msgs/msg/JointTrajectoryControllerState", "control_msgs/JointTrajectoryControllerState")
DYNAMIC_STATE = ("control_msgs/msg/DynamicJointState", "control_msgs/DynamicJointState")

_PARTS = {
    "position": (("feedback", "actual"), "positions"),
    "velocity": (("feedback", "actual"), "velocities"),
    "effort": (("feedback", "actual"), "effort"),
    "q_cmd": (("reference", "desired"), "positions"),
}
_INTERFACES = {
    "position": "position",
    "velocity": "velocity",
    "effort": "effort",
    "position_command": "q_cmd",
    "command": "q_cmd",
}


def controller_columns(
    where: str, topic: str, messages: Iterator[tuple[int, Any]]
) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """Columns of a controller's states, ``position.JOINT`` .. ``q_cmd.JOINT``, and the stamps (header, recorder)."""
    stamps: list[tuple[int, int]] = []
    rows: list[dict[str, float]] = []
    for logged, message in messages:
        stamps.append((_stamp_ns(message.header), logged))
        rows.append(_controller_row(where, topic, message))
    return _columns(where, topic, rows), stamps


def _controller_row(where: str, topic: str, message: Any) -> dict[str, float]:
    names = [str(name) for name in message.joint_names]
    row: dict[str, float] = {}
    for column, (points, field) in _PARTS.items():
        for point in points:
            values = getattr(getattr(message, point, None), field, ())
            if len(values) == len(names):
                row |= {f"{column}.{name}": float(value) for name, value in zip(names, values, strict=True)}
                break
            if len(values):
                raise InputError(f"{where}: a message of '{topic}' has {len(values)} {field} for {len(names)} joints")
    return row


def dynamic_columns(
    where: str, topic: str, messages: Iterator[tuple[int, Any]]
) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """Columns of dynamic joint states, one per joint and known interface."""
    stamps: list[tuple[int, int]] = []
    rows: list[dict[str, float]] = []
    for logged, message in messages:
        stamps.append((_stamp_ns(message.header), logged))
        row: dict[str, float] = {}
        for name, interfaces in zip(message.joint_names, message.interface_values, strict=True):
            for interface, value in zip(interfaces.interface_names, interfaces.values, strict=True):
                column = _INTERFACES.get(str(interface))
                if column is not None:
                    row[f"{column}.{name}"] = float(value)
        rows.append(row)
    return _columns(where, topic, rows), stamps


def _columns(where: str, topic: str, rows: list[dict[str, float]]) -> dict[str, NDArray[Any]]:
    if not rows:
        raise InputError(f"{where}: topic '{topic}' holds no messages")
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {name: np.array([row.get(name, np.nan) for row in rows]) for name in names}


def _stamp_ns(header: Any) -> int:
    stamp = header.stamp
    nanoseconds = stamp.nanosec if hasattr(stamp, "nanosec") else stamp.nsec
    return int(stamp.sec) * 1_000_000_000 + int(nanoseconds)
