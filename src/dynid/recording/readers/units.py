"""Units and sides of the gearbox: the factors that bring every column to SI at the joint."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError, UnknownNameError
from dynid.recording.checked import per_joint
from dynid.recording.quantities import COLUMN_OF_QUANTITY

_ANGLE = {"rad": 1.0, "deg": math.pi / 180.0, "rev": 2.0 * math.pi, "m": 1.0, "mm": 1e-3, "cm": 1e-2}
_SPEED = {f"{unit}/s": scale for unit, scale in _ANGLE.items()} | {"rpm": math.pi / 30.0}
UNITS: Mapping[str, Mapping[str, float]] = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "position": _ANGLE,
    "reference_position": _ANGLE,
    "velocity": _SPEED,
    "reference_velocity": _SPEED,
    "acceleration": {f"{unit}/s^2": scale for unit, scale in _ANGLE.items()},
    "torque": {"Nm": 1.0, "mNm": 1e-3, "Nmm": 1e-3, "Ncm": 1e-2, "kNm": 1e3, "N": 1.0, "A": 1.0, "mA": 1e-3},
    "external_torque": {"Nm": 1.0, "mNm": 1e-3, "Nmm": 1e-3, "Ncm": 1e-2, "N": 1.0},
    "current": {"A": 1.0, "mA": 1e-3},
    "force": {"N": 1.0, "kN": 1e3, "kgf": 9.80665, "lbf": 4.4482216152605},
    "moment": {
        "Nm": 1.0,
        "Nmm": 1e-3,
        "mNm": 1e-3,
        "Ncm": 1e-2,
        "kgfm": 9.80665,
        "kgfmm": 9.80665e-3,
        "lbfin": 0.1129848290276167,
    },
}
_WRENCH = ("force", "moment")
"""Quantities of a force/torque sensor, three columns each."""
#: Power of the gear ratio (motor turns per joint turn) that brings a motor-side quantity to the joint.
_GEAR_POWER = {
    "position": -1,
    "reference_position": -1,
    "reference_velocity": -1,
    "velocity": -1,
    "acceleration": -1,
    "torque": 1,
}
_AMPERES = ("A", "mA")


@dataclass(frozen=True, eq=False)
class Scales:
    """Factors per joint of the quantities that are not in SI at the joint already.

    ``torque_is_current`` is true where the torque columns hold amperes. ``held`` is the factor of locked joints' positions,
    None where it differs from joint to joint.
    """

    factors: Mapping[str, Array]
    torque_is_current: bool = False
    held: float | None = 1.0

    def turned(self, signs: Array, quantities: Collection[str]) -> Scales:
        """With the joints turned round whose sign is -1: motion, torque and current of a joint alike."""
        if (signs == 1.0).all():
            return self
        names = [name for name in quantities if name in COLUMN_OF_QUANTITY]
        factors = {name: signs * self.factors.get(name, np.ones_like(signs)) for name in names}
        return replace(self, factors={**self.factors, **factors})


def signs_of(given: Any, joint_names: Sequence[str]) -> Array:
    """1 or -1 per joint, from a table of the joints to turn round or a list of all."""
    if given is None:
        return np.ones(len(joint_names))
    if isinstance(given, Mapping):
        for name in given:
            if name not in joint_names:
                raise UnknownNameError("joint", str(name), joint_names, "sign of the mapping")
        given = [given.get(name, 1) for name in joint_names]
    signs = per_joint("signs", given, joint_names)
    if not np.isin(signs, (-1.0, 1.0)).all():
        raise InputError(f"sign of the mapping is {signs.tolist()}, expected 1 or -1 for each joint")
    return signs


def make_scales(
    where: str,
    quantities: Collection[str],
    joint_names: Sequence[str],
    units: Mapping[str, Any],
    side: Mapping[str, str],
    gear_ratios: Any,
) -> Scales:
    """Factors of the quantities in a log, from their units and the side of the gearbox they were measured at."""
    _refuse_unknown(units, side)
    gear = None if gear_ratios is None else _gear(gear_ratios, joint_names)
    n = len(joint_names)
    scaled = [name for name in quantities if name in UNITS]
    per_joint_units = {name: _units_of(name, units.get(name), n) for name in scaled}
    torque_is_current = _are_amperes(per_joint_units.get("torque", ()))
    if torque_is_current:
        _refuse_current_twice(where, quantities, units)
    found: dict[str, Array] = {}
    if "wrench" in quantities:
        found["wrench"] = np.concatenate([_in_si(name, _units_of(name, units.get(name), 3)) for name in _WRENCH])
    for name in scaled:
        scale = _in_si(name, per_joint_units[name])
        # Current is that of the motor in any case: the gearbox is part of the drive gain.
        at_joint = side.get(name) != "motor" or (name == "torque" and torque_is_current)
        found[name] = scale if at_joint else scale * _to_joint(name, gear, where)
    factors = {name: scale for name, scale in found.items() if np.any(scale != 1.0)}
    return Scales(factors, torque_is_current, _held_scale(units.get("position"), side.get("position")))


def _refuse_current_twice(where: str, quantities: Collection[str], units: Mapping[str, Any]) -> None:
    """Amperes stand under torque or under current, not under both."""
    if "current" in quantities:
        raise InputError(
            f"{where}: has current columns, yet the unit of torque is {units['torque']!r}; leave one out of the mapping (--mapping FILE)"
        )


def _gear(given: Any, joint_names: Sequence[str]) -> Array:
    gear = per_joint("gear ratios", given, joint_names)
    if np.any(gear == 0.0):
        raise InputError(f"gear ratios are {gear.tolist()}, expected none to be zero")
    return gear


def _to_joint(name: str, gear: Array | None, where: str) -> Array | float:
    """What brings a quantity from the motor's side of the gearbox to the joint's."""
    if name not in _GEAR_POWER:
        return 1.0
    if gear is None:
        raise InputError(f"{where}: {name} is measured at the motor, expected gear ratios")
    powered: Array = gear ** float(_GEAR_POWER[name])
    return powered


def _in_si(name: str, units: Sequence[str]) -> Array:
    """What numbers of a quantity in these units are multiplied by."""
    return np.array([UNITS[name][unit] for unit in units])


def _are_amperes(torque_units: Sequence[str]) -> bool:
    amperes = [unit in _AMPERES for unit in torque_units]
    if any(amperes) and not all(amperes):
        raise InputError(f"units of torque mix amperes and newton metres: {', '.join(torque_units)}")
    return any(amperes)


def _refuse_unknown(units: Mapping[str, Any], side: Mapping[str, str]) -> None:
    for name in units:
        if name not in UNITS:
            raise UnknownNameError("quantity in units", str(name), UNITS)
    for name, place in side.items():
        if name not in COLUMN_OF_QUANTITY:
            raise UnknownNameError("quantity in side", str(name), COLUMN_OF_QUANTITY)
        if place not in ("joint", "motor"):
            raise UnknownNameError("side of the gearbox", str(place), ("joint", "motor"))


def _units_of(name: str, given: Any, n: int) -> list[str]:
    """One unit per joint, or per axis of a sensor; none given is SI."""
    given = next(iter(UNITS[name])) if given is None else given
    units = [given] * n if isinstance(given, str) else list(given)
    if len(units) != n:
        counted = f"a sensor has {n} axes" if name in _WRENCH else f"robot has {n} joints"
        raise InputError(f"{len(units)} units of {name} given, {counted}")
    for unit in units:
        if unit not in UNITS[name]:
            raise UnknownNameError(f"unit of {name}", str(unit), UNITS[name])
    return units


def _held_scale(unit: Any, side: str | None) -> float | None:
    if side == "motor" or not (unit is None or isinstance(unit, str)):
        return None
    return 1.0 if unit is None else UNITS["position"].get(unit)
