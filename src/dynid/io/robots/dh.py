"""Robots written as Denavit-Hartenberg tables in TOML.

Standard:  T = Rz(theta) Tz(d) Tx(a) Rx(alpha), the link's frame at its distal end.
Modified:  T = Rx(alpha) Tx(a) Rz(theta) Tz(d), the link's frame at its joint.

A revolute joint adds q to theta, a prismatic one adds q to d. With ``T(0)`` the placement, the joint's
screw is the link frame's own z axis in the modified convention and ``Ad(T(0)^-1)`` of the z axis in the
standard one.
Inertials are given about the centre of mass along the axes of the link's DH frame.

An inertial may also state some of ``m mx my mz Ixx Ixy Iyy Ixz Iyz Izz`` about the origin of the link's frame; the rest are zero.

A joint may state ``position`` and ``rpy`` of its frame in its parent instead of ``a``, ``alpha`` and ``d``: it then turns about, or
slides along, the z axis of that frame, where the link's frame is. Closed chains add ``[[loop]]`` tables
(:mod:`dynid.io.robots.closures`), ``actuated`` names, and of a joint ``start`` (a position near a closed one) and ``friction = true``
(a passive joint that rubs). ``parameters = ["mx", "Izz"]`` states that a link has these inertial parameters and no others.

Springs, counterbalances and cables of a robot from the tables ``[[spring]]`` of a robot or run file.

    [[spring]]
    joint = 2                        # number or name
    kind = "linear"                  # torsion, linear, constant, gas, potential, cable
    parent_point = [0.0, 0.1, 0.3]   # in the frame of the link that carries the joint
    link_point = [0.4, 0.0, 0.0]     # in the frame of the link that it moves
    stiffness = 2.0e4                # nominal values are optional: what a simulation has, and a prior

Geometry of ``linear``, ``constant`` and ``gas`` that is not given (neither the points nor ``phase`` and ``ratio``) is fitted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.files import toml_table
from dynid.io.robots.closures import loops_from_table, with_loops
from dynid.io.robots.description import (
    TENSOR,
    Description,
    body_parameters,
    check_keys,
    limit,
    limit_notes,
    number,
    pose_of,
    table_of,
    text,
    vector,
)
from dynid.model.coupling import coupling_from_table
from dynid.model.effects.effect import Effect
from dynid.model.effects.springs import Cable, PointSpring, Potential, TorsionSpring
from dynid.model.effects.wrapped import OnJoints
from dynid.model.inertia import skew
from dynid.model.joint import Joint, JointKind, MergedLink
from dynid.model.parameters import INERTIAL_SYMBOLS
from dynid.model.poses import cosine_sine, make_pose
from dynid.model.robot import Robot, Source, make_robot

Convention: TypeAlias = Literal["standard", "modified"]

BASE: Final = "base"
"""Name that ``parent`` gives to the ground."""

_LIMITS = ("q_min", "q_max", "dq_max", "ddq_max", "tau_max")
_NOMINAL = {"fv": "fv", "fc": "fc", "fo": "fo", "armature": "Ia"}
_ROBOT_KEYS = ("name", "gravity", "dh_convention", "joint")
_ROBOT_OPTIONAL = ("n_joints", "flange", "coupling", "spring", "loop", "actuated")
_DH_KEYS = ("a", "alpha", "d")
_PLACED_KEYS = ("position", "rpy")
_JOINT_KEYS = ("name", "type")
_JOINT_OPTIONAL = (
    "theta_offset", *_LIMITS, *_NOMINAL, "inertial", "link", "parent", "motor", "start", "friction", "parameters"
)  # fmt: skip
_MOTOR = {"fv": "fvm", "fc": "fcm", "armature": "Iam"}
"""Friction and rotor inertia of the motor itself, where it drives several joints: ``motor = { fv = .. }``."""
_INERTIAL_KEYS = ("mass", "com", "inertia")
_KINDS: dict[str, JointKind] = {"revolute": "revolute", "continuous": "continuous", "prismatic": "prismatic"}


def robot_from_dh(description: Description) -> Robot:
    """The robot of a DH TOML file that was read, with no effects."""
    return robot_from_table(toml_table(description.text, description.where), description.where, description.source("dh"))


def robot_from_table(table: Mapping[str, Any], where: str = "DH table", source: Source | None = None) -> Robot:
    """The robot of a parsed DH table; ``where`` is what messages call it."""
    check_keys(table, _ROBOT_KEYS, _ROBOT_OPTIONAL, where)
    name = text(table["name"], f"name in {where}")
    gravity = vector(table["gravity"], f"gravity in {where}")
    convention: Convention = table["dh_convention"]
    if convention not in get_args(Convention):
        raise UnknownNameError("dh_convention", str(convention), get_args(Convention), where)
    rows, names = _joint_tables(table, where)
    parents, order = _base_to_tip(rows, names, where)
    new_number = {old: new for new, old in enumerate(order)} | {-1: -1}
    joints = [_joint(rows[i], names[i], new_number[parents[i]], convention, where) for i in order]
    inertials = np.array([_inertial(rows[i], names[i], where) for i in order])
    links = [text(rows[i].get("link", f"link{i + 1}"), f"link of joint '{names[i]}'") for i in order]
    merged: tuple[MergedLink, ...] = ()
    if "flange" in table:  # the frame beyond the last joint of the table, remembered as a link without mass
        flange = table_of(table["flange"], place := f"[flange] of {where}")
        check_keys(flange, _DH_KEYS, ("theta_offset",), place)
        keys = (*_DH_KEYS, "theta_offset")
        pose = dh_pose(convention, *(number(flange.get(key, 0.0), f"{key} in {place}") for key in keys))
        merged = (MergedLink("flange", new_number[len(rows) - 1], pose, np.zeros(10)),)
    coupling = None
    if "coupling" in table:
        coupling = coupling_from_table(table["coupling"], [names[i] for i in order], f"[coupling] of {where}")
    springs = table.get("spring", [])
    if not isinstance(springs, list) or not all(isinstance(entry, dict) for entry in springs):
        raise InputError(f"'spring' of {where} is {springs!r}, expected tables [[spring]]")
    robot = make_robot(
        name,
        joints,
        inertials,
        links=links,
        gravity=gravity,
        merged=merged,
        source=source or Source(format="dh"),
        coupling=coupling,
        absent=[one for new, old in enumerate(order) for one in _absent(rows[old], new + 1, names[old], where)],
    )
    robot = _closed(robot, table, rows, names, where)
    return with_springs(robot, springs, where).with_notes(_notes(robot))


def _joint_tables(table: Mapping[str, Any], where: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The joints' tables in the order of the file, and their names."""
    rows = table["joint"]
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{where} has no [[joint]] tables, expected one per joint")
    if "n_joints" in table and table["n_joints"] != len(rows):
        raise InputError(f"{where} says n_joints = {table['n_joints']} but has {len(rows)} [[joint]] tables")
    names = [_joint_name(row, number, where) for number, row in enumerate(rows, start=1)]
    for one in names:
        if names.count(one) > 1:
            raise InputError(f"joint name '{one}' appears {names.count(one)} times in {where}")
    return rows, names


def _closed(
    robot: Robot, table: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], names: list[str], where: str
) -> Robot:
    """The robot with the closures of the file, if it has any."""
    rubbing = []
    for row, name in zip(rows, names, strict=True):
        if not isinstance(row.get("friction", False), bool):
            raise InputError(f"friction of joint '{name}' in {where} is {row['friction']!r}, expected true or false")
        rubbing += [name] if row.get("friction") else []
    starts = {
        name: number(row["start"], f"start of joint '{name}' in {where}")
        for row, name in zip(rows, names, strict=True)
        if "start" in row
    }
    if "loop" in table:
        return with_loops(robot, loops_from_table(table, robot, starts, rubbing, where))
    stray = "actuated" if "actuated" in table else "start" if starts else "friction" if rubbing else ""
    if stray:
        raise InputError(f"{where} has the key '{stray}' and no [[loop]] tables, which it belongs to")
    return robot


def _absent(row: Mapping[str, Any], number: int, name: str, where: str) -> list[str]:
    """Parameters that a link lacks because the file lists those it has."""
    if "parameters" not in row:
        return []
    present, what = row["parameters"], f"parameters of joint '{name}' in {where}"
    if not isinstance(present, list):
        raise InputError(f"{what} is {present!r}, expected a list such as ['m', 'mx', 'Izz']")
    for symbol in present:
        if symbol not in INERTIAL_SYMBOLS:
            raise UnknownNameError("parameter", str(symbol), INERTIAL_SYMBOLS, what)
    return [f"{symbol}{number}" for symbol in INERTIAL_SYMBOLS if symbol not in present]


def dh_pose(convention: Convention, a: float, alpha: float, d: float, theta: float) -> Array:
    """4x4 pose of one DH row in its convention."""
    (ca, sa), (ct, st) = cosine_sine(alpha), cosine_sine(theta)
    turn = np.array([[ct, -st, 0.0, 0.0], [st, ct, 0.0, 0.0], [0.0, 0.0, 1.0, d], [0.0, 0.0, 0.0, 1.0]])
    twist = np.array([[1.0, 0.0, 0.0, a], [0.0, ca, -sa, 0.0], [0.0, sa, ca, 0.0], [0.0, 0.0, 0.0, 1.0]])
    pose: Array = turn @ twist if convention == "standard" else twist @ turn
    return pose


def _joint(row: Mapping[str, Any], name: str, parent: int, convention: Convention, where: str) -> Joint:
    place = f"joint '{name}' in {where}"
    theta = number(row.get("theta_offset", 0.0), f"theta_offset of {place}")
    kind = row["type"]
    if not isinstance(kind, str) or kind not in _KINDS:
        raise UnknownNameError("joint type", str(kind), _KINDS, place)
    if any(key in row for key in _PLACED_KEYS):
        placement, convention = pose_of(row, place) @ dh_pose("modified", 0.0, 0.0, 0.0, theta), "modified"
    else:
        a, alpha, d = (number(row[key], f"{key} of {place}") for key in _DH_KEYS)
        placement = dh_pose(convention, a, alpha, d, theta)
    if convention == "modified":  # the z axis of the link's own frame
        axis, origin = np.array([0.0, 0.0, 1.0]), np.zeros(3)
    else:  # the z axis of the proximal frame, through that frame's origin
        axis, origin = placement[2, :3], -placement[:3, :3].T @ placement[:3, 3]
    return Joint(
        name=name,
        kind=_KINDS[kind],
        parent=parent,
        placement=placement,
        screw=np.concatenate([axis, np.zeros(3)] if kind == "prismatic" else [skew(origin) @ axis, axis]),
        nominal=_nominal(row, place),
        **{key: limit(row[key], f"{key} of {place}") for key in _LIMITS if key in row},
    )


def _nominal(row: Mapping[str, Any], place: str) -> dict[str, float]:
    """Friction and rotor inertia that the file states, of the joint and of its motor."""
    motor = table_of(row.get("motor", {}), f"motor of {place}")
    check_keys(motor, (), tuple(_MOTOR), f"motor of {place}")
    found = {symbol: number(row[key], f"{key} of {place}") for key, symbol in _NOMINAL.items() if key in row}
    return found | {
        symbol: number(motor[key], f"{key} of the motor of {place}") for key, symbol in _MOTOR.items() if key in motor
    }


def _inertial(row: Mapping[str, Any], name: str, where: str) -> Array:
    if "inertial" not in row:
        return np.zeros(10)
    place = f"inertial of joint '{name}' in {where}"
    inertial = table_of(row["inertial"], place)
    if inertial and all(key in INERTIAL_SYMBOLS for key in inertial):  # the ten themselves, about the link's frame
        return np.array([number(inertial.get(key, 0.0), f"{key} in {place}") for key in INERTIAL_SYMBOLS])
    check_keys(inertial, _INERTIAL_KEYS, (), place)
    tensor = table_of(inertial["inertia"], f"inertia in {place}")
    keys = [key for key, _, _ in TENSOR]
    check_keys(tensor, keys, (), f"inertia in {place}")
    moments = [number(tensor[key], f"{key} in {place}") for key in keys]
    centre = make_pose(None, vector(inertial["com"], f"com in {place}"))
    return body_parameters(number(inertial["mass"], f"mass in {place}"), centre, moments)


def _joint_name(row: Mapping[str, Any], number: int, where: str) -> str:
    label = row.get("name")
    shown = f"'{label}'" if isinstance(label, str) else f"number {number}"
    placed = any(key in row for key in _PLACED_KEYS)
    required, optional = ((), _PLACED_KEYS) if placed else (_DH_KEYS, ())
    check_keys(row, (*_JOINT_KEYS, *required), (*_JOINT_OPTIONAL, *optional), f"joint {shown} in {where}")
    return text(label, f"name of joint number {number} in {where}")


def _base_to_tip(rows: Sequence[Mapping[str, Any]], names: Sequence[str], where: str) -> tuple[list[int], list[int]]:
    """The parent of every joint, the one before it unless the file names another, and the joints so that parents come first."""
    known = {BASE: -1} | {name: i for i, name in enumerate(names)}
    parents: list[int] = []
    for i, row in enumerate(rows):
        parent = row.get("parent")
        if "parent" in row and not (isinstance(parent, str) and parent in known):
            raise UnknownNameError("parent", str(parent), (*names, BASE), f"joint '{names[i]}' of {where}")
        parents.append(known[str(parent)] if "parent" in row else i - 1)
    order: list[int] = []
    waiting = list(range(len(parents)))
    while waiting:
        ready = next((i for i in waiting if parents[i] < 0 or parents[i] in order), None)
        if ready is None:
            cycle = ", ".join(f"'{names[i]}'" for i in waiting)
            raise InputError(f"{where} is cyclic: no path of parents leads from joints {cycle} to the base")
        order.append(ready)
        waiting.remove(ready)
    return parents, order


def _notes(robot: Robot) -> list[str]:
    notes = limit_notes(robot.moving_joints)
    given = np.isin(robot.parameters.names[: robot.parameters.n_inertial], robot.absent, invert=True).reshape(-1, 10)
    inertials = zip(robot.links, robot.parameters.inertials, given, strict=True)
    massless = [link for link, phi, has in inertials if has.any() and not np.any(phi)]
    if massless:
        notes.append(f"links without inertials, taken as zero: {', '.join(massless)}")
    return notes


_POINTS = ("parent_point", "link_point")
_FARTHEST_M = 1e6
"""No spring of a robot ends farther away."""
_SHAPE = ("phase", "ratio")
_Maker: TypeAlias = Callable[[Mapping[str, Any], str, Joint], tuple[Effect, dict[str, float]]]
"""Makes the effect of a checked entry and its nominal values by symbol; told the table, what messages call it, and the joint."""


def _joint_number(given: Any, names: Sequence[str], place: str) -> int:
    """The number of a joint, from 1, that a table names or numbers."""
    if given in names:
        return names.index(given) + 1
    if not (str(given).isdigit() and 1 <= int(str(given)) <= len(names)):
        raise InputError(
            f"{place} is on joint {given!r}, expected a number from 1 to {len(names)} or one of {', '.join(names)}"
        )
    return int(str(given))


def with_springs(robot: Robot, tables: Sequence[Mapping[str, Any]], where: str) -> Robot:
    """The robot with the springs of these tables after its other effects.

    A spring of the same columns takes the place of one that the robot has already.
    """
    if not tables:
        return robot
    joints, place = robot.driven_joints, f"[[spring]] of {where}"
    names = [joint.name for joint in joints]
    effects, values = list(robot.effects), dict[tuple[str, str], float]()
    for table in tables:
        kind, given = table.get("kind"), table.get("joint")
        if kind not in _SPRING_KINDS:
            raise UnknownNameError("kind of spring", str(kind), _SPRING_KINDS, place)
        keys, make = _SPRING_KINDS[kind]
        for key in table:
            if key not in ("joint", "kind", *keys):
                raise UnknownNameError("key", key, ("joint", "kind", *keys), f"{place}, kind {kind}")
        number = _joint_number(given, names, place)
        effect, nominal = make(table, f"{place}, joint {given}", joints[number - 1])
        new = OnJoints(effect, (number,))
        effects = [effect for effect in effects if effect.label != new.label] + [new]
        values |= {(symbol, names[number - 1]): value for symbol, value in nominal.items()}
    made = robot.with_effects(effects)
    named = {(column.symbol, column.joint): column.name for column in made.parameters.columns}
    return made.with_parameters({named[place]: value for place, value in values.items()})


def _numbers(table: Mapping[str, Any], place: str, *keys: str) -> dict[str, float]:
    """Those of the keys that are given, finite numbers all."""
    found = {key: table[key] for key in keys if table.get(key) is not None}
    for key, value in found.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InputError(f"{key} in {place} is {value!r}, expected a number")
    return {key: float(value) for key, value in found.items()}


def _make_between(table: Mapping[str, Any], place: str, joint: Joint) -> tuple[Effect, dict[str, float]]:
    """A spring between a point of the link that carries the joint and one of the link that it moves."""
    form = table["kind"]
    options: dict[str, Any] = {"form": form} | _numbers(table, place, "column", "exponent")
    if "action" in table:
        options["action"] = table["action"]
    has_points, has_shape = ([key in table for key in keys] for keys in (_POINTS, _SHAPE))
    if any(has_points) and (not all(has_points) or any(has_shape)):
        raise InputError(f"{place} needs both parent_point and link_point, and then neither phase nor ratio")
    options["fit"] = table.get("fit", not (all(has_points) or all(has_shape)))
    if all(has_points):
        points = [_point(table[key], f"{key} of {place}") for key in _POINTS]
        made = PointSpring.between(joint, *points, **options)
    else:
        if joint.kind == "prismatic":
            raise InputError(f"{place} is on a joint that slides, a spring between two points acts on one that turns")
        made = PointSpring(**(options | _numbers(table, place, "phase", "ratio", "length")))
    given = _numbers(table, place, "stiffness", "free_length", "force")
    if form != "linear":
        return made, {"sf" if form == "constant" else "sg": given["force"]} if "force" in given else {}
    stiffness = given.get("stiffness", 0.0)
    return made, {"sk": stiffness, "sf": -stiffness * given.get("free_length", 0.0)} if given else {}


def _make_other(table: Mapping[str, Any], place: str, joint: Joint) -> tuple[Effect, dict[str, float]]:
    """A spring that acts on the angle of its joint alone."""
    given = _numbers(table, place, "rest_angle", "centre", "stiffness")
    stiffness = given.pop("stiffness", None)
    if table["kind"] == "torsion":
        made = TorsionSpring(rest_angle=given.get("rest_angle", 0.0), find_rest="rest_angle" not in given)
        return made, {} if stiffness is None else {"ks": stiffness}
    whole: dict[str, Any] = {}
    for key in ("harmonics", "powers"):
        if (value := table.get(key)) is not None:
            if not isinstance(value, list | tuple) or not all(isinstance(one, int) for one in value):
                raise InputError(f"{key} in {place} is {value!r}, expected a list of whole numbers")
            whole[key] = tuple(value)
    if table["kind"] == "potential":
        return Potential(**whole), {}
    return Cable(**(whole | given)), {} if stiffness is None else {"kc": stiffness}


_GEOMETRY = (*_POINTS, *_SHAPE, "length", "fit")
_SPRING_KINDS: dict[Any, tuple[tuple[str, ...], _Maker]] = {
    "torsion": (("rest_angle", "stiffness"), _make_other),
    "linear": ((*_GEOMETRY, "stiffness", "free_length"), _make_between),
    "constant": ((*_GEOMETRY, "force"), _make_between),
    "gas": ((*_GEOMETRY, "force", "column", "exponent", "action"), _make_between),
    "potential": (("harmonics",), _make_other),
    "cable": (("powers", "centre", "stiffness"), _make_other),
}


def _point(value: Any, what: str) -> Array:
    """Three finite numbers."""
    try:
        found = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.zeros(0)
    if found.shape != (3,) or not np.all(np.abs(found) < _FARTHEST_M):
        raise InputError(f"{what} is {value!r:.80}, expected three numbers below {_FARTHEST_M:g}")
    return found
