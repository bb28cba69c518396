"""Springs, counterbalances and cables of a robot from the tables ``[[spring]]`` of a robot or run file.

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
from typing import Any, TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.model.effects.effect import Effect
from dynid.model.effects.springs import Cable, PointSpring, Potential, TorsionSpring
from dynid.model.effects.wrapped import OnJoints
from dynid.model.joint import Joint
from dynid.model.robot import Robot

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
        if kind not in _KINDS:
            raise UnknownNameError("kind of spring", str(kind), _KINDS, place)
        keys, make = _KINDS[kind]
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
_KINDS: dict[Any, tuple[tuple[str, ...], _Maker]] = {
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
