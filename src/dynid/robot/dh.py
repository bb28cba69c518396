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
(:mod:`dynid.robot.loop_file`), ``actuated`` names, and of a joint ``start`` (a position near a closed one) and ``friction = true``
(a passive joint that rubs). ``parameters = ["mx", "Izz"]`` states that a link has these inertial parameters and no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.inertia import phi_from_mass_com_inertia, skew
from dynid.parameters import INERTIAL_SYMBOLS
from dynid.robot.checks import limit_notes
from dynid.robot.coupling import Coupling, coupling_from_table
from dynid.robot.files import Description, read_description
from dynid.robot.joint import Joint, JointKind
from dynid.robot.loop_file import loops_from_table, with_loops
from dynid.robot.model import MergedLink, Robot, Source, make_robot
from dynid.robot.springs import with_springs
from dynid.robot.toml_values import check_keys as _check_keys
from dynid.robot.toml_values import cosine_sine as _cosine_sine
from dynid.robot.toml_values import limit as _limit
from dynid.robot.toml_values import number as _number
from dynid.robot.toml_values import pose_of
from dynid.robot.toml_values import table_of as _table
from dynid.robot.toml_values import text as _text
from dynid.robot.toml_values import vector as _vector
from dynid.structured import toml_table

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
_TENSOR_KEYS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
_FLANGE_KEYS = ("a", "alpha", "d")
_KINDS: dict[str, JointKind] = {"revolute": "revolute", "continuous": "continuous", "prismatic": "prismatic"}


def read_dh(path: str | PathLike[str]) -> Robot:
    """The robot of a DH TOML file, with no effects but the springs that it states."""
    return robot_from_dh(read_description(path))


def robot_from_dh(description: Description) -> Robot:
    """The robot of a DH TOML file that was read, with no effects."""
    where = f"robot file '{description.path}'"
    return robot_from_table(toml_table(description.text, where), where, description.source("dh"))


def robot_from_table(table: Mapping[str, Any], where: str = "DH table", source: Source | None = None) -> Robot:
    """The robot of a parsed DH table; ``where`` is what messages call it."""
    _check_keys(table, _ROBOT_KEYS, _ROBOT_OPTIONAL, where)
    name = _text(table["name"], f"name in {where}")
    gravity = _vector(table["gravity"], f"gravity in {where}")
    convention = _convention(table["dh_convention"], where)
    rows, names = _rows_and_names(table, where)
    parents = [_parent(row, i, names, where) for i, row in enumerate(rows)]
    order = _base_to_tip(parents, names, where)
    new_number = {old: new for new, old in enumerate(order)} | {-1: -1}
    joints = [_joint(rows[i], names[i], new_number[parents[i]], convention, where) for i in order]
    inertials = np.array([_inertial(rows[i], names[i], where) for i in order])
    links = [_text(rows[i].get("link", f"link{i + 1}"), f"link of joint '{names[i]}'") for i in order]
    merged: tuple[MergedLink, ...] = ()
    if "flange" in table:
        merged = (_flange(table["flange"], new_number[len(rows) - 1], convention, where),)
    robot = make_robot(
        name,
        joints,
        inertials,
        links=links,
        gravity=gravity,
        merged=merged,
        source=source or Source(format="dh"),
        coupling=_coupling(table, [names[i] for i in order], where),
        absent=[one for new, old in enumerate(order) for one in _absent(rows[old], new + 1, names[old], where)],
    )
    robot = _closed(robot, table, rows, names, where)
    return _with_springs(robot, table, where).with_notes(_notes(robot))


def _rows_and_names(table: Mapping[str, Any], where: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The tables of the joints, and their names."""
    rows = table["joint"]
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{where} has no [[joint]] tables, expected one per joint")
    if "n_joints" in table and table["n_joints"] != len(rows):
        raise InputError(f"{where} says n_joints = {table['n_joints']} but has {len(rows)} [[joint]] tables")
    names = [_joint_name(row, number, where) for number, row in enumerate(rows, start=1)]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"joint name '{name}' appears {names.count(name)} times in {where}")
    return rows, names


def _coupling(table: Mapping[str, Any], names: Sequence[str], where: str) -> Coupling | None:
    return coupling_from_table(table["coupling"], names, f"[coupling] of {where}") if "coupling" in table else None


def _with_springs(robot: Robot, table: Mapping[str, Any], where: str) -> Robot:
    entries = table.get("spring", [])
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"'spring' of {where} is {entries!r}, expected tables [[spring]]")
    return with_springs(robot, entries, where)


def _closed(
    robot: Robot, table: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], names: list[str], where: str
) -> Robot:
    """The robot with the closures of the file, if it has any."""
    rubbing = [name for row, name in zip(rows, names, strict=True) if _rubs(row, name, where)]
    starts = {
        name: _number(row["start"], f"start of joint '{name}' in {where}")
        for row, name in zip(rows, names, strict=True)
        if "start" in row
    }
    if "loop" in table:
        return with_loops(robot, loops_from_table(table, robot, starts, rubbing, where))
    stray = "actuated" if "actuated" in table else "start" if starts else "friction" if rubbing else ""
    if stray:
        raise InputError(f"{where} has the key '{stray}' and no [[loop]] tables, which it belongs to")
    return robot


def _rubs(row: Mapping[str, Any], name: str, where: str) -> bool:
    value = row.get("friction", False)
    if not isinstance(value, bool):
        raise InputError(f"friction of joint '{name}' in {where} is {value!r}, expected true or false")
    return value


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
    (ca, sa), (ct, st) = _cosine_sine(alpha), _cosine_sine(theta)
    turn = np.array([[ct, -st, 0.0, 0.0], [st, ct, 0.0, 0.0], [0.0, 0.0, 1.0, d], [0.0, 0.0, 0.0, 1.0]])
    twist = np.array([[1.0, 0.0, 0.0, a], [0.0, ca, -sa, 0.0], [0.0, sa, ca, 0.0], [0.0, 0.0, 0.0, 1.0]])
    pose: Array = turn @ twist if convention == "standard" else twist @ turn
    return pose


def _joint(row: Mapping[str, Any], name: str, parent: int, convention: Convention, where: str) -> Joint:
    place = f"joint '{name}' in {where}"
    theta = _number(row.get("theta_offset", 0.0), f"theta_offset of {place}")
    kind = row["type"]
    if kind not in _KINDS:
        raise UnknownNameError("joint type", str(kind), _KINDS, place)
    if any(key in row for key in _PLACED_KEYS):
        placement, convention = pose_of(row, place) @ dh_pose("modified", 0.0, 0.0, 0.0, theta), "modified"
    else:
        a, alpha, d = (_number(row[key], f"{key} of {place}") for key in _DH_KEYS)
        placement = dh_pose(convention, a, alpha, d, theta)
    return Joint(
        name=name,
        kind=_KINDS[kind],
        parent=parent,
        placement=placement,
        screw=_screw(placement, kind == "prismatic", convention),
        nominal=_nominal(row, place),
        **{key: _limit(row[key], f"{key} of {place}") for key in _LIMITS if key in row},
    )


def _nominal(row: Mapping[str, Any], place: str) -> dict[str, float]:
    """Friction and rotor inertia that the file states, of the joint and of its motor."""
    motor = _table(row.get("motor", {}), f"motor of {place}")
    _check_keys(motor, (), tuple(_MOTOR), f"motor of {place}")
    found = {symbol: _number(row[key], f"{key} of {place}") for key, symbol in _NOMINAL.items() if key in row}
    return found | {
        symbol: _number(motor[key], f"{key} of the motor of {place}") for key, symbol in _MOTOR.items() if key in motor
    }


def _screw(placement: Array, prismatic: bool, convention: Convention) -> Array:
    """The joint's z axis in the link's frame."""
    if convention == "modified":
        axis, origin = np.array([0.0, 0.0, 1.0]), np.zeros(3)
    else:  # the z axis of the proximal frame, through that frame's origin
        axis, origin = placement[2, :3], -placement[:3, :3].T @ placement[:3, 3]
    if prismatic:
        return np.concatenate([axis, np.zeros(3)])
    return np.concatenate([skew(origin) @ axis, axis])


def _inertial(row: Mapping[str, Any], name: str, where: str) -> Array:
    if "inertial" not in row:
        return np.zeros(10)
    place = f"inertial of joint '{name}' in {where}"
    inertial = _table(row["inertial"], place)
    if inertial and all(key in INERTIAL_SYMBOLS for key in inertial):  # the ten themselves, about the link's frame
        return np.array([_number(inertial.get(key, 0.0), f"{key} in {place}") for key in INERTIAL_SYMBOLS])
    _check_keys(inertial, _INERTIAL_KEYS, (), place)
    tensor = _table(inertial["inertia"], f"inertia in {place}")
    _check_keys(tensor, _TENSOR_KEYS, (), f"inertia in {place}")
    ixx, ixy, ixz, iyy, iyz, izz = (_number(tensor[key], f"{key} in {place}") for key in _TENSOR_KEYS)
    return phi_from_mass_com_inertia(
        _number(inertial["mass"], f"mass in {place}"),
        _vector(inertial["com"], f"com in {place}"),
        np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]]),
    )


def _flange(row: Any, body: int, convention: Convention, where: str) -> MergedLink:
    """The frame beyond the last joint of the table, remembered as a link without mass."""
    place = f"[flange] of {where}"
    flange = _table(row, place)
    _check_keys(flange, _FLANGE_KEYS, ("theta_offset",), place)
    a, alpha, d = (_number(flange[key], f"{key} in {place}") for key in _FLANGE_KEYS)
    theta = _number(flange.get("theta_offset", 0.0), f"theta_offset in {place}")
    return MergedLink("flange", body, dh_pose(convention, a, alpha, d, theta), np.zeros(10))


def _joint_name(row: Mapping[str, Any], number: int, where: str) -> str:
    label = row.get("name")
    shown = f"'{label}'" if isinstance(label, str) else f"number {number}"
    placed = any(key in row for key in _PLACED_KEYS)
    required, optional = ((), _PLACED_KEYS) if placed else (_DH_KEYS, ())
    _check_keys(row, (*_JOINT_KEYS, *required), (*_JOINT_OPTIONAL, *optional), f"joint {shown} in {where}")
    return _text(label, f"name of joint number {number} in {where}")


def _parent(row: Mapping[str, Any], index: int, names: Sequence[str], where: str) -> int:
    """The joint before this one in the file unless ``parent`` names another."""
    if "parent" not in row:
        return index - 1
    parent = row["parent"]
    if parent in names:
        return names.index(parent)
    if parent == BASE:
        return -1
    raise UnknownNameError("parent", str(parent), (*names, BASE), f"joint '{names[index]}' of {where}")


def _base_to_tip(parents: Sequence[int], names: Sequence[str], where: str) -> list[int]:
    """Joints so that parents come first, in the file's order wherever that allows it."""
    order: list[int] = []
    waiting = list(range(len(parents)))
    while waiting:
        ready = next((i for i in waiting if parents[i] < 0 or parents[i] in order), None)
        if ready is None:
            cycle = ", ".join(f"'{names[i]}'" for i in waiting)
            raise InputError(f"{where} is cyclic: no path of parents leads from joints {cycle} to the base")
        order.append(ready)
        waiting.remove(ready)
    return order


def _notes(robot: Robot) -> list[str]:
    notes = limit_notes(robot.moving_joints)
    given = np.isin(robot.parameters.names[: robot.parameters.n_inertial], robot.absent, invert=True).reshape(-1, 10)
    inertials = zip(robot.links, robot.parameters.inertials, given, strict=True)
    massless = [link for link, phi, has in inertials if has.any() and not np.any(phi)]
    if massless:
        notes.append(f"links without inertials, taken as zero: {', '.join(massless)}")
    return notes


def _convention(value: Any, where: str) -> Convention:
    for convention in get_args(Convention):
        if value == convention:
            return convention  # type: ignore[no-any-return]
    raise UnknownNameError("dh_convention", str(value), get_args(Convention), where)
