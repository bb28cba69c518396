"""SDF for Gazebo: a new file in the robot's own frames.

A joint's pose lies in its child link, so axes beside a body's origin need no other frames, and a screw joint can be written.
Bodies that were merged of several links are taken apart again, see :mod:`dynid.model.links`. SDF keeps gravity in its
worlds and has no rotor inertia.

A closed loop is a joint more, on a link that hangs on another joint already. Its two frames meet where the links stand in the file, so
a closed robot is written in the closed position that its description starts from, and joints count from there.
"""

from __future__ import annotations

import math
import os
from dataclasses import replace

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.files import write_text
from dynid.io.robots.description import TENSOR
from dynid.io.robots.simulator_joint import (
    FRICTION,
    WrittenModel,
    closed_position,
    joint_dynamics,
    left_out,
    number,
    refuse_inconsistent,
    refuse_moments_without_mass,
    untied,
    vector,
)
from dynid.io.robots.xml import escape, quoteattr
from dynid.model.inertia import mass_com_inertia
from dynid.model.joint import axis_point, pitch
from dynid.model.links import links_taken_apart, own_inertials
from dynid.model.loops import COMPONENTS, Loop
from dynid.model.poses import rpy_from_rotation
from dynid.model.robot import Robot

_UNLIMITED = 1e16
"""What SDF itself takes for no limit."""


def write_sdf(
    robot: Robot, path: str | os.PathLike[str], allow_inconsistent: bool = False, described: Robot | None = None
) -> WrittenModel:
    """Write the robot with its present parameters as one SDF model; links have no shapes.

    Args:
        robot: with the parameters to write.
        path: file to write.
        allow_inconsistent: write links that no physical body can be, instead of refusing.
        described: the same robot with the parameters of its description, for bodies that must be taken apart.

    Returns:
        the file, and notes on what SDF cannot hold.

    Examples:
        >>> import dynid
        >>> dynid.write_sdf(dynid.demo_robot(), "arm.sdf").format
        'sdf'
    """
    if robot.loops.ties:
        raise InputError(
            f"joints of robot '{robot.name}' follow others ({', '.join(tie.name for tie in robot.loops.ties)}), which is not written to "
            "SDF; export it as mjcf, urdf or json"
        )
    for loop in robot.loops.framed:
        closing_joint(loop)  # refused where SDF has no such joint
    notes = refuse_inconsistent(robot, allow_inconsistent)
    notes.extend(left_out(robot, "SDF", FRICTION, gravity=False))
    notes.extend(untied(robot))
    notes.append(f"SDF keeps gravity in its worlds; this robot's is {vector(robot.gravity)} m/s^2")
    if robot.loops:
        shift = closed_position(robot)
        moved = [f"{joint.name} from {x:.6g}" for joint, x in zip(robot.joints, shift, strict=True) if x != 0.0]
        if moved:
            notes.append(f"joints count from the closed position that the links are written in: {', '.join(moved)}")
        robot = counted_from(robot, shift)
    return WrittenModel(write_text(path, _text(robot, notes, described)), "sdf", False, tuple(notes))


def counted_from(robot: Robot, position: Array) -> Robot:
    """The same robot whose joints are at zero where they were at ``position``."""
    joints = tuple(
        replace(joint, placement=joint.pose(x), q_min=joint.q_min - x, q_max=joint.q_max - x)
        for joint, x in zip(robot.joints, position.tolist(), strict=True)
    )
    loops = replace(robot.loops, start=robot.loops.start - position)
    return replace(robot, joints=joints, loops=loops)


def closing_joint(loop: Loop) -> tuple[str, Array]:
    """Kind and axis, in the closure's frames, of the joint that closes a loop."""
    free = [component for component in COMPONENTS if component not in loop.closed]
    if not free:
        return "fixed", np.zeros(3)
    if free == ["rx", "ry", "rz"]:
        return "ball", np.zeros(3)
    if len(free) == 1:
        return "revolute" if free[0].startswith("r") else "prismatic", np.eye(3)["xyz".index(free[0][-1])]
    raise InputError(
        f"loop '{loop.name}' closes {', '.join(loop.closed)}, for which SDF has no joint; it holds fixed, revolute, prismatic and ball "
        "joints: export the robot as json"
    )


def _text(robot: Robot, notes: list[str], described: Robot | None) -> str:
    apart = {wanted.link: wanted.phi for wanted in links_taken_apart(robot, notes, own_inertials(described))}
    called = _link_names(robot, notes)
    # a thread pitch in metres per turn came with version 1.10
    version = "1.10" if any(pitch(joint) != 0.0 for joint in robot.joints) else "1.8"
    lines = ['<?xml version="1.0"?>', f'<sdf version="{version}">', f"  <model name={quoteattr(robot.name)}>"]
    taken = {*robot.joint_names, *called.values()}
    for i, joint in enumerate(robot.joints):
        parent = called[robot.links[joint.parent]] if joint.parent >= 0 else ""
        lines += _link_lines(called[robot.links[i]], parent, joint.placement, apart[robot.links[i]], notes)
        if joint.kind == "floating":
            notes.append(f"floating joint '{joint.name}' is not written: nothing holds the model to the world")
        else:
            lines += _joint_lines(robot, i, parent or "world", called[robot.links[i]], notes)
    for link in robot.merged:
        parent = called[robot.links[link.body]] if link.body >= 0 else ""
        if not apart[link.name].any():  # SDF has no links without mass, but frames
            attached = f" attached_to={quoteattr(parent)}" if parent else ""
            lines += [
                f"    <frame name={quoteattr(called[link.name])}{attached}>",
                f"      <pose>{_pose(link.placement)}</pose>",
                "    </frame>",
            ]
            continue
        lines += _link_lines(called[link.name], parent, link.placement, apart[link.name], notes)
        name = f"{link.name}_fixed"
        while name in taken:
            name += "_"
        taken.add(name)
        lines += [
            f'    <joint name={quoteattr(name)} type="fixed">',
            *_ends(parent or "world", called[link.name]),
            "    </joint>",
        ]
    for loop in robot.loops.framed:  # after the joints of the tree: the first joint of a link carries it
        kind, axis = closing_joint(loop)
        first, second = (loop.first, loop.second) if loop.second.body >= 0 else (loop.second, loop.first)
        parent = "world" if first.body < 0 else called[robot.links[first.body]]
        lines += [f'    <joint name={quoteattr(loop.name)} type="{kind}">', *_ends(parent, called[robot.links[second.body]])]
        lines.append(f"      <pose>{_pose(second.placement)}</pose>")
        if axis.any():
            lines += ["      <axis>", f"        <xyz>{vector(axis)}</xyz>", "      </axis>"]
        lines.append("    </joint>")
    return "\n".join([*lines, "  </model>", "</sdf>", ""])


def _link_names(robot: Robot, notes: list[str]) -> dict[str, str]:
    """Links under names that SDF allows: none like a joint's, none like the ground's."""
    links = [*robot.links, *(link.name for link in robot.merged)]
    taken = {"world", *robot.joint_names}
    called: dict[str, str] = {}
    for link in links:
        name = link
        while name in taken or (name != link and name in links):
            name += "_link"
        if name != link:
            notes.append(f"link '{link}' is written as '{name}': SDF keeps that name for a joint or for the ground")
        called[link] = name
        taken.add(name)
    return called


def _link_lines(name: str, parent: str, placement: Array, phi: Array, notes: list[str]) -> list[str]:
    relative = f" relative_to={quoteattr(parent)}" if parent else ""
    lines = [f"    <link name={quoteattr(name)}>", f"      <pose{relative}>{_pose(placement)}</pose>"]
    refuse_moments_without_mass(name, phi, "SDF")
    mass, com, tensor = mass_com_inertia(phi)
    if not phi.any():
        # without an inertial SDF would give the link 1 kg
        notes.append(f"link '{name}' has no mass; Gazebo may refuse that")
    lines += [
        "      <inertial>",
        f"        <pose>{vector(com)} 0 0 0</pose>",
        f"        <mass>{number(float(mass))}</mass>",
        "        <inertia>",
        *(f"          <{tag}>{number(float(tensor[row, column]))}</{tag}>" for tag, row, column in TENSOR),
        "        </inertia>",
        "      </inertial>",
        "    </link>",
    ]
    return lines


def _joint_lines(robot: Robot, i: int, parent: str, child: str, notes: list[str]) -> list[str]:
    joint = robot.joints[i]
    advance = pitch(joint)
    kind = "screw" if advance != 0.0 else joint.kind
    axis = joint.screw[:3] if kind == "prismatic" else joint.screw[3:]
    lines = [f'    <joint name={quoteattr(joint.name)} type="{kind}">', *_ends(parent, child)]
    point = axis_point(joint)
    if point.any():
        lines.append(f"      <pose>{vector(point)} 0 0 0</pose>")
    if kind == "screw":
        lines.append(f"      <screw_thread_pitch>{number(2.0 * math.pi * advance)}</screw_thread_pitch>")
    lines += ["      <axis>", f"        <xyz>{vector(axis)}</xyz>", "        <limit>"]
    unbounded = kind == "continuous"
    for tag, value, none in (
        ("lower", -math.inf if unbounded else joint.q_min, -_UNLIMITED),
        ("upper", math.inf if unbounded else joint.q_max, _UNLIMITED),
        ("effort", joint.tau_max, -1.0),
        ("velocity", joint.dq_max, -1.0),
    ):
        lines.append(f"          <{tag}>{number(value if math.isfinite(value) else none)}</{tag}>")
    lines.append("        </limit>")
    friction = joint_dynamics(robot, i, notes, FRICTION)
    if any(friction.values()):
        lines += [
            "        <dynamics>",
            *(f"          <{name}>{number(value)}</{name}>" for name, value in friction.items()),
            "        </dynamics>",
        ]
    return [*lines, "      </axis>", "    </joint>"]


def _ends(parent: str, child: str) -> list[str]:
    return [f"      <parent>{escape(parent)}</parent>", f"      <child>{escape(child)}</child>"]


def _pose(placement: Array) -> str:
    return f"{vector(placement[:3, 3])} {vector(rpy_from_rotation(placement[:3, :3]))}"
