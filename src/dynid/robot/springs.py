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
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.robot.effects import Cable, Effect, OnJoints, PointSpring, Potential, TorsionSpring
from dynid.robot.joint import Joint
from dynid.robot.model import Robot

_POINTS = ("parent_point", "link_point")
_FARTHEST_M = 1e6
"""No spring of a robot ends farther away."""
_SHAPE = ("phase", "ratio")


@dataclass(frozen=True)
class Spring:
    """One entry: the effect, the number (from 1) of its joint, and nominal values by symbol."""

    effect: Effect
    joint: int
    values: Mapping[str, float] = field(default_factory=dict)

    def on_joint(self) -> OnJoints:
        return OnJoints(self.effect, (self.joint,))


def with_springs(robot: Robot, tables: Sequence[Mapping[str, Any]], where: str) -> Robot:
    """The robot with the springs of these tables after its other effects.

    A spring of the same columns takes the place of one that the robot has already.
    """
    if not tables:
        return robot
    springs = [spring_from_table(table, robot.driven_joints, where) for table in tables]
    effects, values = list(robot.effects), dict[tuple[str, str], float]()
    for spring in springs:
        new = spring.on_joint()
        effects = [effect for effect in effects if effect.label != new.label] + [new]
        values |= {(symbol, robot.driven_joints[spring.joint - 1].name): value for symbol, value in spring.values.items()}
    made = robot.with_effects(effects)
    named = {(column.symbol, column.joint): column.name for column in made.parameters.columns}
    return made.with_parameters({named[place]: value for place, value in values.items()})


def spring_from_table(table: Mapping[str, Any], joints: Sequence[Joint], where: str) -> Spring:
    """One entry ``[[spring]]``, checked."""
    place = f"[[spring]] of {where}"
    kind = table.get("kind")
    if kind not in _KINDS:
        raise UnknownNameError("kind of spring", str(kind), _KINDS, place)
    keys, make = _KINDS[kind]
    for key in table:
        if key not in ("joint", "kind", *keys):
            raise UnknownNameError("key", key, ("joint", "kind", *keys), f"{place}, kind {kind}")
    number = _joint(table.get("joint"), joints, place)
    effect, values = make(_Entry(table, f"{place}, joint {table['joint']}"), joints[number - 1])
    return Spring(effect, number, values)


def _joint(given: Any, joints: Sequence[Joint], place: str) -> int:
    names = [joint.name for joint in joints]
    if given in names:
        return names.index(given) + 1
    text = str(given)
    if text.isdigit() and 1 <= int(text) <= len(names):
        return int(text)
    raise InputError(f"{place} is on joint {given!r}, expected a number from 1 to {len(names)} or one of {', '.join(names)}")


@dataclass(frozen=True)
class _Entry:
    table: Mapping[str, Any]
    place: str

    def number(self, key: str) -> float | None:
        value = self.table.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InputError(f"{key} in {self.place} is {value!r}, expected a number")
        return float(value)

    def numbers(self, *keys: str) -> dict[str, float]:
        """Those of the keys that are given."""
        found = {key: self.number(key) for key in keys}
        return {key: value for key, value in found.items() if value is not None}

    def whole(self, key: str) -> dict[str, tuple[int, ...]]:
        value = self.table.get(key)
        if value is None:
            return {}
        if not isinstance(value, list | tuple) or not all(isinstance(one, int) for one in value):
            raise InputError(f"{key} in {self.place} is {value!r}, expected a list of whole numbers")
        return {key: tuple(value)}


def _torsion(entry: _Entry, joint: Joint) -> tuple[Effect, dict[str, float]]:
    rest, stiffness = entry.number("rest_angle"), entry.number("stiffness")
    values = {} if stiffness is None else {"ks": stiffness}
    return TorsionSpring(rest_angle=rest or 0.0, find_rest=rest is None), values


def _between(form: str) -> Callable[[_Entry, Joint], tuple[Effect, dict[str, float]]]:
    def make(entry: _Entry, joint: Joint) -> tuple[Effect, dict[str, float]]:
        options: dict[str, Any] = {"form": form} | entry.numbers("column", "exponent")
        if "action" in entry.table:
            options["action"] = entry.table["action"]
        has_points, has_shape = ([key in entry.table for key in keys] for keys in (_POINTS, _SHAPE))
        if any(has_points) and (not all(has_points) or any(has_shape)):
            raise InputError(f"{entry.place} needs both parent_point and link_point, and then neither phase nor ratio")
        options["fit"] = entry.table.get("fit", not (all(has_points) or all(has_shape)))
        if all(has_points):
            points = [_point(entry.table[key], f"{key} of {entry.place}") for key in _POINTS]
            made = PointSpring.between(joint, *points, **options)
        else:
            if joint.kind == "prismatic":
                raise InputError(
                    f"{entry.place} is on a joint that slides, a spring between two points acts on one that turns"
                )
            made = PointSpring(**(options | entry.numbers("phase", "ratio", "length")))
        return made, _nominal_force(entry, form)

    return make


def _nominal_force(entry: _Entry, form: str) -> dict[str, float]:
    given = entry.numbers("stiffness", "free_length", "force")
    if form != "linear":
        return {} if "force" not in given else {"sf" if form == "constant" else "sg": given["force"]}
    stiffness = given.get("stiffness", 0.0)
    preload = -stiffness * given.get("free_length", 0.0)
    return {"sk": stiffness, "sf": preload} if given else {}


def _potential(entry: _Entry, joint: Joint) -> tuple[Effect, dict[str, float]]:
    return Potential(**entry.whole("harmonics")), {}


def _cable(entry: _Entry, joint: Joint) -> tuple[Effect, dict[str, float]]:
    stiffness = entry.number("stiffness")
    options: dict[str, Any] = {**entry.whole("powers"), **entry.numbers("centre")}
    return Cable(**options), {} if stiffness is None else {"kc": stiffness}


_GEOMETRY = (*_POINTS, *_SHAPE, "length", "fit")
_KINDS: dict[Any, tuple[tuple[str, ...], Callable[[_Entry, Joint], tuple[Effect, dict[str, float]]]]] = {
    "torsion": (("rest_angle", "stiffness"), _torsion),
    "linear": ((*_GEOMETRY, "stiffness", "free_length"), _between("linear")),
    "constant": ((*_GEOMETRY, "force"), _between("constant")),
    "gas": ((*_GEOMETRY, "force", "column", "exponent", "action"), _between("gas")),
    "potential": (("harmonics",), _potential),
    "cable": (("powers", "centre", "stiffness"), _cable),
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
