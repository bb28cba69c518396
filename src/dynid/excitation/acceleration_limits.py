"""Limits that a description lacks: from a limits file, a table of well-known arms, or torque limits and the mass matrix.

URDF, SDF and MJCF have no acceleration limits. Where nobody states one, joint ``j`` may accelerate as its drive can in every pose
of its range, alone and against gravity, and no faster than to its largest speed in a quarter of a second:

    a_j = min( (tau_max_j - max_q |g_j(q)|) / max_q M_jj(q),  v_max_j / 0.25 s )
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.closed_chains import closures_of
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.files import json_value, read_limited, toml_table, yaml_value
from dynid.model.robot import Robot

RISE_S = 0.25
"""Shortest time from rest to the largest speed, where acceleration limits are derived, s."""

LEFT_BY_GRAVITY = 0.2
"""Share of a torque limit that is taken for acceleration at least; torque itself is held along the motion."""

_POSES = 100

_KEYS = ("min_position", "max_position", "max_velocity", "max_acceleration", "max_jerk", "max_effort")
_LARGEST_FILE = 1_000_000


@dataclass(frozen=True)
class KnownArm:
    """An arm whose maker, or whose driver, publishes acceleration limits: how its name is written, the numbers, where they stand."""

    name: str
    pattern: str
    acceleration: tuple[float, ...]
    source: str


KNOWN_ARMS = (
    KnownArm(
        "Franka Emika Panda", r"\b(franka[ _-]*)?(emika[ _-]*)?panda", (15.0, 7.5, 10.0, 12.5, 15.0, 20.0, 20.0),
        "libfranka, rate_limiting.h, kMaxJointAcceleration",
    ),
    KnownArm("Franka Research 3", r"\b(franka[ _-]*)?fr3", (10.0,) * 7, "libfranka, rate_limiting.h, kMaxJointAcceleration"),
    KnownArm(
        "Universal Robots arm", r"\bur(3|5|7|8|10|12|15|16|20|30)(e|_|\b)", (5.0,) * 6,
        "ur_moveit_config, joint_limits.yaml: chosen by its authors, the controller itself limits torque",
    ),
)  # fmt: skip
"""Accelerations in rad/s^2, base to tip."""


def known_arm(robot: Robot) -> KnownArm | None:
    """The arm of the table that has the robot's name and number of joints; None where there is none."""
    for arm in KNOWN_ARMS:
        named = re.search(arm.pattern, robot.name.replace("_", " "), re.IGNORECASE)
        if named and len(arm.acceleration) == robot.n_joints and all(j.kind != "prismatic" for j in robot.moving_joints):
            return arm
    return None


def derived_acceleration(robot: Robot, speed: Array, torque: Array) -> Array:
    """Acceleration that each joint's own drive can give in every pose, ``(joints,)``; infinite where that is not known.

    Args:
        robot: with the inertial parameters of its description.
        speed: velocity limits, rad/s or m/s.
        torque: torque limits, N m or N.
    """
    if not robot.parameters.values.any():
        return np.full(robot.n_joints, np.inf)
    q = random_poses(robot, _POSES)
    still = np.zeros_like(q)
    gravity = inverse_dynamics(robot.with_effects([]), q, still, still)
    needed = np.empty(robot.n_joints)
    for j in range(robot.n_joints):
        unit = still.copy()
        unit[:, j] = 1.0
        needed[j] = np.abs(inverse_dynamics(robot.with_effects([]), q, still, unit)[:, j] - gravity[:, j]).max()
    left = np.maximum(torque - np.abs(gravity).max(axis=0), LEFT_BY_GRAVITY * torque)
    by_drive = np.divide(left, needed, out=np.full_like(left, np.inf), where=needed > 0.0)
    known = np.isfinite(torque) & np.isfinite(speed)
    return np.where(known, np.minimum(by_drive, speed / RISE_S), np.inf)


def random_poses(robot: Robot, count: int, seed: int = 0) -> Array:
    """Poses all over the range of the joints, of a closed robot those that it can reach; a joint without limits turns once."""
    low, high = robot.position_limits.T
    low, high = np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi)
    q = np.random.default_rng(seed).uniform(low, high, (count, robot.n_joints))
    return q[closures_of(robot).reachable(q)] if robot.loops else q


def read_robot_limits(path: str | Path, robot: Robot) -> dict[str, Array]:
    """Limits of a file by quantity, infinite where it has none: ``position (joints, 2)``, the others ``(joints,)``.

    The file is MoveIt's or ros2_control's ``joint_limits.yaml``, or the same as TOML or JSON: under ``joint_limits`` a table by the
    name of each joint with ``max_velocity``, ``max_acceleration``, ``max_jerk``, ``max_effort``, ``min_position``, ``max_position``;
    ``has_velocity_limits = false`` and its like switch a limit off.
    """
    file = Path(path)
    tables = _joint_tables(_content(file), file)
    unknown = [name for name in tables if name not in {joint.name for joint in robot.joints}]
    if tables and len(unknown) == len(tables):
        raise InputError(
            f"limits file '{file}' names no joint of robot '{robot.name}': it has {', '.join(unknown[:4])}, the robot has "
            f"{', '.join(robot.joint_names[:4])}"
        )
    values = {key: np.full(robot.n_joints, np.inf) for key in _KEYS}
    values["min_position"] = -values["min_position"]
    for j, name in enumerate(robot.joint_names):
        for key in _KEYS:
            quantity = key.split("_")[1]
            if tables.get(name, {}).get(f"has_{quantity}_limits", True) and key in tables.get(name, {}):
                values[key][j] = _number(tables[name][key], key, name, file)
    return {
        "position": np.column_stack([values["min_position"], values["max_position"]]),
        "velocity": values["max_velocity"],
        "acceleration": values["max_acceleration"],
        "jerk": values["max_jerk"],
        "torque": values["max_effort"],
    }


def _content(file: Path) -> Any:
    what, suffix = f"limits file '{file}'", file.suffix.lower()
    if suffix not in (".yaml", ".yml", ".toml", ".json"):
        raise InputError(f"{what} ends with '{file.suffix}', expected .yaml, .toml or .json")
    text = read_limited(file, what, _LARGEST_FILE)
    if suffix == ".toml":
        return toml_table(text, what)
    if suffix == ".json":
        return json_value(text, what)
    return yaml_value(text, what)


def _joint_tables(content: Any, file: Path) -> dict[str, dict[str, Any]]:
    """The table of each joint, wherever ``joint_limits`` stands: ros2_control has it below the names of nodes."""
    for _ in range(4):
        if not isinstance(content, dict) or "joint_limits" in content or len(content) != 1:
            break
        content = next(iter(content.values()))
    found = content.get("joint_limits") if isinstance(content, dict) else None
    if not isinstance(found, dict) or not found or not all(isinstance(one, dict) for one in found.values()):
        raise InputError(f"limits file '{file}' has no 'joint_limits' with a table for each joint")
    return found


def _number(value: Any, key: str, joint: str, file: Path) -> float:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    if not fits or (key != "min_position" and key != "max_position" and not value > 0):
        kind = "a number" if "position" in key else "a positive number"
        raise InputError(f"limits file '{file}' has {key} = {value!r} for joint '{joint}', expected {kind}")
    return float(value)
