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
    gear = None if gear_ratios is None else per_joint("gear ratios", gear_ratios, joint_names)
    if gear is not None and np.any(gear == 0.0):
        raise InputError(f"gear ratios are {gear.tolist()}, expected none to be zero")
    n = len(joint_names)
    scaled = [name for name in quantities if name in UNITS]
    per_joint_units = {name: _units_of(name, units[name], n) for name in scaled if name in units}
    torque_is_current = _are_amperes(per_joint_units.get("torque", ()))
    if torque_is_current and "current" in quantities:
        raise InputError(
            f"{where}: has current columns, yet the unit of torque is {units['torque']!r}; leave one out of the mapping (--mapping FILE)"
        )
    factors: dict[str, Array] = {}
    if "wrench" in quantities:
        six = np.concatenate([[UNITS[name][unit] for unit in _units_of(name, units.get(name), 3)] for name in _WRENCH])
        if np.any(six != 1.0):
            factors["wrench"] = six
    for name in scaled:
        scale = np.array([UNITS[name][unit] for unit in per_joint_units.get(name, ())] or np.ones(n))
        # Current is that of the motor in any case: the gearbox is part of the drive gain.
        if side.get(name) == "motor" and name in _GEAR_POWER and not (name == "torque" and torque_is_current):
            if gear is None:
                raise InputError(f"{where}: {name} is measured at the motor, expected gear ratios")
            scale = scale * gear ** float(_GEAR_POWER[name])
        if np.any(scale != 1.0):
            factors[name] = scale
    return Scales(factors, torque_is_current, _held_scale(units.get("position"), side.get("position")))


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
