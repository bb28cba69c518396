"""Values of friction and rotor inertia: given to a robot, read from it, and in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_finite
from dynid.errors import InputError
from dynid.robot.effects import Offset
from dynid.robot.model import Robot


def with_effect(robot: Robot, name: str, values: ArrayLike) -> Robot:
    """The robot with these values of one of its effects, one for every joint or one per joint."""
    places = _places(robot)
    if name not in places:
        raise InputError(
            f"values of {name} were given, but the robot's effects are {', '.join(places) or 'none'}; add it to them (--effects)"
        )
    array = np.asarray(values, dtype=np.float64)
    check_finite(name, array)
    n = places[name].stop - places[name].start
    if array.shape not in ((), (1,), (n,)):
        raise InputError(f"{name} has {array.size} values, expected 1, or {n}: one per joint")
    if name != Offset.name and (array < 0.0).any():
        raise InputError(f"{name} is {array.min():g}, expected zero or more")
    new = robot.parameters.values.copy()
    new[places[name]] = array
    return robot.with_parameters(robot.parameters.with_values(new))


def effect_values(robot: Robot) -> dict[str, Array]:
    """Values of every effect of the robot, by the effect's name."""
    return {name: robot.parameters.values[place] for name, place in _places(robot).items()}


def told_effects(robot: Robot) -> str:
    """What of friction and rotor inertia a simulation of this robot has, for a person to read."""
    told: dict[str, list[str]] = {"friction": [], "actuator": [], "spring": []}
    for name, place in _places(robot).items():
        values, columns = robot.parameters.values[place], robot.parameters.columns[place]
        if not values.any():
            continue
        low, high = f"{values.min():.3g}", f"{values.max():.3g}"
        units = " or ".join(dict.fromkeys(column.unit for column in columns))
        told[columns[0].kind].append(f"{name} {low if low == high else f'{low} to {high}'} {units}")
    sentence = ", ".join(told["friction"]) or "none"
    springs = f"; springs: {', '.join(told['spring'])}" if told["spring"] else ""
    return f"{sentence}; rotor inertia: {', '.join(told['actuator']) or 'none'}{springs}"


def _places(robot: Robot) -> dict[str, slice]:
    """Where the values of each effect stand among the parameters."""
    places, first = {}, robot.parameters.n_inertial
    for effect in robot.effects:
        n = effect.incidence(robot.n_joints).shape[1]
        places[effect.label] = slice(first, first + n)
        first += n
    return places
