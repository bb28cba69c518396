"""Closures in exported files: equality constraints of MJCF, a side file beside URDF, and formats that have no place for them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dynid.adapters.mujoco import pose_attributes
from dynid.arrays import Array
from dynid.errors import InputError
from dynid.export.written import vector
from dynid.files import write_bytes
from dynid.regression.closed_motion import closures_of
from dynid.regression.random_states import random_states_within_limits
from dynid.regression.torque import inverse_dynamics
from dynid.robot.loop_file import GROUND, SIDE_FILE
from dynid.robot.loops import Frame, Loop
from dynid.robot.model import Robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_BALL, _FIXED = ("x", "y", "z"), ("x", "y", "z", "rx", "ry", "rz")
_SAME = 1e-9
_ARM = 0.1
"""m between the two points that stand for a hinge in MJCF."""


def refuse_loops(robot: Robot, format: str) -> None:
    """One sentence for formats that hold no closed chains."""
    if robot.loops:
        raise InputError(
            f"robot '{robot.name}' has closed loops ({', '.join(robot.loops.names)}), which are not written to {format}; "
            "export it as mjcf, urdf or json"
        )


def refuse_lumped(robot: Robot) -> None:
    """One sentence where links have numbers that the description leaves out and that would act in a file of whole bodies."""
    if not robot.absent:
        return
    q, v, a = random_states_within_limits(robot, 20)
    ours = inverse_dynamics(robot, q, v, a, effects=False)
    whole = inverse_dynamics(replace(robot, absent=()), q, v, a, effects=False)
    if np.abs(whole - ours).max() > _SAME * max(float(np.abs(ours).max()), 1e-300):
        raise InputError(
            f"robot '{robot.name}' is a lumped model: parameters that its description leaves out ({', '.join(robot.absent[:3])}, ..) "
            "are not zero now and would act in a file of whole bodies; export it as json"
        )


def add_equalities(root: Element, robot: Robot, bodies: list[Element], world: Element, notes: list[str]) -> None:
    """Closures as ``connect`` and ``weld`` between sites or ``joint``, and a keyframe ``closed`` at which they hold."""
    from xml.etree.ElementTree import SubElement

    equality = SubElement(root, "equality")
    for tie in robot.loops.ties:
        joints = {"joint1": robot.joints[tie.follower].name}
        joints |= {"joint2": robot.joints[tie.leader].name} if tie.leader >= 0 else {}
        coefficients = [*tie.coefficients, 0.0, 0.0, 0.0, 0.0][:5]
        SubElement(equality, "joint", {"name": tie.name} | joints, polycoef=vector(np.array(coefficients)))
    for loop in robot.loops.framed:
        for k, shift in enumerate(_points(loop)):
            sites = []
            for end, frame in (("first", loop.first), ("second", loop.second)):
                name = f"{loop.name}_{end}{k + 1 if k else ''}"
                above = bodies[frame.body] if frame.body >= 0 else world
                placement = np.array(frame.placement)
                placement[:3, 3] += placement[:3, :3] @ shift
                SubElement(above, "site", {"name": name, "size": "0.005"} | pose_attributes(placement))
                sites.append(name)
            kind = "weld" if loop.closed == _FIXED else "connect"
            SubElement(equality, kind, name=f"{loop.name}{k + 1 if k else ''}", site1=sites[0], site2=sites[1])
        if len(_points(loop)) == 2:
            notes.append(f"hinge '{loop.name}' is written as two connected points, {_ARM:g} m apart on its axis")
    position = closures_of(robot).seeds.position[0]
    SubElement(SubElement(root, "keyframe"), "key", name="closed", qpos=vector(position[_depth_first(robot)]))


def _depth_first(robot: Robot) -> list[int]:
    """Joints in the order in which MuJoCo meets them."""
    order: list[int] = []
    waiting = [i for i, joint in enumerate(robot.joints) if joint.parent < 0][::-1]
    while waiting:
        order.append(waiting.pop())
        waiting.extend([i for i, joint in enumerate(robot.joints) if joint.parent == order[-1]][::-1])
    return order


def equality_names(robot: Robot) -> tuple[str, ...]:
    """Names of the constraints that a new MJCF file has."""
    framed = [f"{loop.name}{k + 1 if k else ''}" for loop in robot.loops.framed for k in range(len(_points(loop)))]
    return (*(tie.name for tie in robot.loops.ties), *framed)


def _points(loop: Loop) -> list[Array]:
    """Points of the two frames that coincide: one for a ball joint or a weld, two on the axis for a hinge."""
    if loop.closed in (_BALL, _FIXED):
        return [np.zeros(3)]
    turns = [c for c in loop.closed if c.startswith("r")]
    if loop.closed[:3] == _BALL and len(turns) == 2:
        axis = next(i for i, c in enumerate(("rx", "ry", "rz")) if c not in turns)
        return [np.zeros(3), _ARM * np.eye(3)[axis]]
    raise InputError(
        f"loop '{loop.name}' closes {', '.join(loop.closed)}, for which MJCF has no constraint; it holds ball joints (x, y, z), hinges "
        "(x, y, z and two turns) and rigid ties (all six)"
    )


def write_side_file(robot: Robot, path: Path) -> Path:
    """The closures beside a URDF file, as :func:`dynid.robot.loop_file.with_side_file` reads them again."""
    names = [joint.name for joint in robot.joints]
    listed = ", ".join(f'"{name}"' for name in robot.loops.actuated)
    lines = [f"actuated = [{listed}]"]
    if robot.loops.rubbing:
        lines.append("friction = [" + ", ".join(f'"{name}"' for name in robot.loops.rubbing) + "]")
    for tie in robot.loops.ties:
        coefficients = ", ".join(repr(c) for c in tie.coefficients)
        leader = tie.leader if tie.leader >= 0 else next(i for i in range(len(names)) if i != tie.follower)
        lines += ["", "[[loop]]", f"name = {_quoted(tie.name)}", f"joint = {_quoted(names[tie.follower])}"]
        lines += [f"follows = {_quoted(names[leader])}", f"polynomial = [{coefficients}]"]
    for loop in robot.loops.framed:
        closed = ", ".join(f'"{component}"' for component in loop.closed)
        lines += ["", "[[loop]]", f'name = "{loop.name}"', f"closed = [{closed}]"]
        lines += [f"{end} = {_frame(robot, frame)}" for end, frame in (("first", loop.first), ("second", loop.second))]
    lines += ["", "[start]"]
    lines += [f'"{name}" = {value!r}' for name, value in zip(names, robot.loops.start.tolist(), strict=True)]
    return Path(write_bytes(path.with_name(path.stem + SIDE_FILE), ("\n".join(lines) + "\n").encode()))


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)  # a JSON string is a TOML string


def _frame(robot: Robot, frame: Frame) -> str:
    link = GROUND if frame.body < 0 else robot.links[frame.body]
    position = ", ".join(repr(float(x)) for x in frame.placement[:3, 3])
    rpy = ", ".join(repr(float(x)) for x in _angles(frame.placement[:3, :3]))
    return f'{{ link = "{link}", position = [{position}], rpy = [{rpy}] }}'


def _angles(R: Array) -> tuple[float, float, float]:
    """Turns about the fixed axes x, y, z in this order."""
    flat = float(np.hypot(R[0, 0], R[1, 0]))
    pitch = float(np.arctan2(-R[2, 0], flat))
    if flat < 1e-9:  # roll and yaw turn about one axis there
        return float(np.arctan2(-R[1, 2], R[1, 1])), pitch, 0.0
    return float(np.arctan2(R[2, 1], R[2, 2])), pitch, float(np.arctan2(R[1, 0], R[0, 0]))
