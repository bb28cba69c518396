"""``[[loop]]`` tables: the closures of a robot as its own TOML file, or a side file of a URDF, states them.

    actuated = ["crank"]                     # optional: deduced where it is left out

    [[loop]]
    name = "coupler"
    closed = ["x", "y", "z", "rx", "ry"]     # a hinge about z
    first = { link = "coupler", position = [0.4, 0.0, 0.0], rpy = [0.0, 0.0, 0.0] }
    second = { link = "rocker", position = [0.3, 0.0, 0.0] }

A side file ``arm.loops.toml`` beside ``arm.urdf`` may also hold ``[start]`` (joint = position) and ``friction`` (names of passive
joints that rub); in a robot's own TOML file these are keys of its joints. A joint that follows another one, by the coefficients of
a polynomial in its position (``mimic`` of the URDF itself is read without a side file):

    [[loop]]
    name = "parallelogram"
    joint = "rod"
    follows = "lower_arm"
    polynomial = [0.0, -1.0]

``mimic`` of URDF: a joint that follows another one, ``q = multiplier q_leader + offset``, as a closure of the robot.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.files import read_limited, toml_table, write_bytes
from dynid.io.robots.description import check_keys, link_places, number, pose_of, table_of, text
from dynid.io.robots.xml import attribute_numbers
from dynid.model.joint import Joint, neutral_position
from dynid.model.loops import Closure, Frame, JointTie, Loop, Loops, independent_joints
from dynid.model.poses import inverse_pose, rpy_from_rotation
from dynid.model.robot import Robot

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

SIDE_FILE: Final = ".loops.toml"
GROUND: Final = "base"
_STEP = 1e-6


def with_side_file(robot: Robot, path: Path) -> Robot:
    """The robot of a URDF with the loops of the file ``NAME.loops.toml`` beside it, if there is one."""
    side = path.with_name(path.stem + SIDE_FILE)
    if not side.is_file():
        return robot
    where = f"loop file '{side}'"
    table = toml_table(read_limited(side, where), where)
    check_keys(table, ("loop",), ("actuated", "start", "friction"), where)
    start = {
        name: number(value, f"start of joint '{name}' in {where}")
        for name, value in table_of(table.get("start", {}), f"[start] of {where}").items()
    }
    loops = loops_from_table(table, robot, start, names_of(table.get("friction", []), f"friction in {where}"), where)
    return with_loops(robot, loops).with_notes([f"loops read from {side.name}"])


def with_loops(robot: Robot, loops: Loops) -> Robot:
    """An open robot with closures; it has no effects yet."""
    n = robot.parameters.n_inertial
    if len(robot.parameters) != n:
        raise InputError(f"robot '{robot.name}' has effects already; give it loops first")
    # a log may number followers too: their columns then have a place, and are not needed
    described = () if loops.framed else tuple(joint.name for joint in robot.joints)
    return replace(robot, loops=loops, described_joints=described)


def loops_from_table(
    table: Mapping[str, Any], robot: Robot, start: Mapping[str, float], rubbing: Sequence[str], where: str
) -> Loops:
    """Closures, actuated joints and start of an open robot from a parsed file."""
    rows = table["loop"]
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{where} has no [[loop]] tables, expected one per closure")
    closures = tuple(_closure(row, k, robot, where) for k, row in enumerate(rows, start=1))
    stated = {one.follower for one in closures if isinstance(one, JointTie)}
    closures += tuple(tie for tie in robot.loops.ties if tie.follower not in stated)
    names = [joint.name for joint in robot.joints]
    for name in start:
        if name not in names:
            raise UnknownNameError("joint", name, names, f"start in {where}")
    guess = np.array([start.get(joint.name, neutral_position(joint)) for joint in robot.joints])
    if "actuated" in table:
        actuated = names_of(table["actuated"], f"actuated in {where}")
    else:
        actuated = deduced_joints(robot.joints, closures, guess, where)
    return Loops(closures, actuated, tuple(rubbing), guess)


def names_of(value: Any, what: str) -> tuple[str, ...]:
    """A list of names."""
    if not isinstance(value, list):
        raise InputError(f"{what} is {value!r}, expected a list of joint names")
    return tuple(text(one, what) for one in value)


def deduced_joints(
    joints: Sequence[Joint], closures: Sequence[Closure], start: Array, where: str = "the description"
) -> tuple[str, ...]:
    """Actuated joints where none are named: those with a torque limit if they are as many as can move on their own, else those
    nearest to the base that leave the rest determined."""
    if all(isinstance(one, JointTie) for one in closures):
        return free_of_ties(joints, [one for one in closures if isinstance(one, JointTie)])
    q = _closed_from(joints, closures, start, where)
    jacobian = _jacobian(joints, closures, q)
    n_free = len(joints) - int(np.linalg.matrix_rank(jacobian, tol=1e-6))
    strong = [i for i, joint in enumerate(joints) if np.isfinite(joint.tau_max)]
    if len(strong) == n_free:
        return tuple(joints[i].name for i in strong)
    depth = [0] * len(joints)
    for i, joint in enumerate(joints):
        depth[i] = depth[joint.parent] + 1 if joint.parent >= 0 else 0
    preference = sorted(range(len(joints)), key=lambda i: (i not in strong, depth[i], i))
    return tuple(joints[i].name for i in independent_joints(jacobian, preference))


def residual_of(joints: Sequence[Joint], closures: Sequence[Closure], q: Array) -> Array:
    """What stays open of all closures at one position of the tree: metres, and sines of angles."""
    poses: list[Array] = []
    for joint, position in zip(joints, q, strict=True):
        above = poses[joint.parent] if joint.parent >= 0 else np.eye(4)
        poses.append(above @ joint.pose(position))
    found: list[float] = []
    for loop in closures:
        if isinstance(loop, JointTie):
            found.append(float(q[loop.follower] - loop.position(q[loop.leader] if loop.leader >= 0 else 0.0)))
            continue
        first, second = (
            (poses[frame.body] if frame.body >= 0 else np.eye(4)) @ frame.placement for frame in (loop.first, loop.second)
        )
        relative = inverse_pose(first) @ second
        R, turns = relative[:3, :3], [i for i in range(3) if f"r{'xyz'[i]}" in loop.closed]
        found.extend(relative[i, 3] for i in range(3) if "xyz"[i] in loop.closed)
        for i in turns:
            j, k = (i + 1) % 3, (i + 2) % 3
            if len(turns) == 3:
                found.append(0.5 * (R[k, j] - R[j, k]))
            else:
                found.append(-R[j, k] if len(turns) == 2 and j in turns else R[k, j])
    return np.array(found)


def _jacobian(joints: Sequence[Joint], closures: Sequence[Closure], q: Array) -> Array:
    columns = []
    for step in _STEP * np.eye(len(q)):
        ahead, behind = residual_of(joints, closures, q + step), residual_of(joints, closures, q - step)
        columns.append((ahead - behind) / (2.0 * _STEP))
    return np.array(columns).T


def _closed_from(joints: Sequence[Joint], closures: Sequence[Closure], start: Array, where: str) -> Array:
    """The nearest closed position to the start, all joints free to move."""
    q = np.array(start)
    for _ in range(60):
        r = residual_of(joints, closures, q)
        if np.abs(r).max() < 1e-9:
            return q
        step = np.linalg.lstsq(_jacobian(joints, closures, q), -r, rcond=1e-8)[0]
        q = q + step * min(1.0, 0.5 / max(float(np.abs(step).max()), 1e-300))
    raise InputError(
        f"the loops of {where} do not close near the start position: {np.abs(r).max():.3g} m or rad stay open; "
        "state `start` of the joints nearer to a closed position, and check the loops' frames"
    )


def _closure(row: Mapping[str, Any], k: int, robot: Robot, where: str) -> Closure:
    """A loop between two frames, or a joint that follows another one."""
    place = f"loop {row.get('name', k)!r} in {where}"
    if "joint" not in row:
        check_keys(row, ("closed", "first", "second"), ("name",), place)
        closed = names_of(row["closed"], f"closed of {place}")
        first, second = (_frame(row[key], robot, f"{key} of {place}") for key in ("first", "second"))
        return Loop(text(row.get("name", f"loop{k}"), f"name of {place}"), first, second, closed)
    check_keys(row, ("joint", "follows"), ("name", "polynomial"), place)
    names = [joint.name for joint in robot.joints]
    ends = [text(row[key], f"{key} of {place}") for key in ("joint", "follows")]
    for name in ends:
        if name not in names:
            raise UnknownNameError("joint", name, names, place)
    given = row.get("polynomial", [0.0, 1.0])
    if not isinstance(given, list):
        raise InputError(f"polynomial of {place} is {given!r}, expected a list of numbers, the constant first")
    polynomial = tuple(number(c, f"polynomial of {place}") for c in given)
    follower, leader = map(names.index, ends)
    return JointTie(text(row.get("name", f"loop{k}"), f"name of {place}"), follower, leader, polynomial)


def free_of_ties(joints: Sequence[Joint], ties: Sequence[JointTie]) -> tuple[str, ...]:
    """Names of the joints that follow no other."""
    followers = {tie.follower for tie in ties}
    return tuple(joint.name for i, joint in enumerate(joints) if i not in followers)


def _frame(value: Any, robot: Robot, what: str) -> Frame:
    frame = table_of(value, what)
    check_keys(frame, ("link",), ("position", "rpy"), what)
    name = text(frame["link"], f"link in {what}")
    body, placement = frame_on(robot, name, what)
    return Frame(body, placement @ pose_of(frame, what))


def frame_on(robot: Robot, link: str, what: str) -> tuple[int, Array]:
    """Body and pose in it of a link, be it merged into another one; the ground is called ``base``."""
    places = {GROUND: (-1, np.eye(4))} | link_places(robot)
    if link not in places:
        raise UnknownNameError("link", link, places, what)
    return places[link]


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
        (slope,) = attribute_numbers(mimic, "multiplier", 1, "1", place)
        (offset,) = attribute_numbers(mimic, "offset", 1, "0", place)
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
    behind: dict[int, list[JointTie]] = {}
    for tie in ties:
        behind.setdefault(tie.leader, []).append(tie)
    following = {tie.follower for tie in ties}
    ready = [tie for tie in ties if tie.leader not in following]
    for tie in ready:  # a follower may lead another joint itself
        start[tie.follower] = tie.position(float(start[tie.leader]) if tie.leader >= 0 else 0.0)
        ready += behind.get(tie.follower, ())
    return with_loops(robot, Loops(tuple(ties), free_of_ties(robot.joints, ties), (), start))


# Written ---------------------------------------------------------------------------------------
def write_side_file(robot: Robot, path: Path) -> Path:
    """The closures beside a URDF file, as :func:`with_side_file` reads them again."""
    names = [joint.name for joint in robot.joints]
    quoted = partial(json.dumps, ensure_ascii=False)  # a JSON string is a TOML string
    lines = [f"actuated = [{', '.join(map(quoted, robot.loops.actuated))}]"]
    if robot.loops.rubbing:
        lines.append(f"friction = [{', '.join(map(quoted, robot.loops.rubbing))}]")
    for tie in robot.loops.ties:
        coefficients = ", ".join(repr(c) for c in tie.coefficients)
        leader = tie.leader if tie.leader >= 0 else next(i for i in range(len(names)) if i != tie.follower)
        lines += ["", "[[loop]]", f"name = {quoted(tie.name)}", f"joint = {quoted(names[tie.follower])}"]
        lines += [f"follows = {quoted(names[leader])}", f"polynomial = [{coefficients}]"]
    for loop in robot.loops.framed:
        lines += ["", "[[loop]]", f"name = {quoted(loop.name)}", f"closed = [{', '.join(map(quoted, loop.closed))}]"]
        for end, frame in (("first", loop.first), ("second", loop.second)):
            link = GROUND if frame.body < 0 else robot.links[frame.body]
            position = ", ".join(repr(float(x)) for x in frame.placement[:3, 3])
            rpy = ", ".join(repr(float(x)) for x in rpy_from_rotation(frame.placement[:3, :3]))
            lines.append(f"{end} = {{ link = {quoted(link)}, position = [{position}], rpy = [{rpy}] }}")
    lines += ["", "[start]"]
    lines += [f"{quoted(name)} = {value!r}" for name, value in zip(names, robot.loops.start.tolist(), strict=True)]
    return Path(write_bytes(path.with_name(path.stem + SIDE_FILE), ("\n".join(lines) + "\n").encode()))
