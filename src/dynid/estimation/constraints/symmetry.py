"""Left and right: joints that are paired by their names share friction and rotors, their links are mirror images.

``FL_* FR_*`` pairs every joint whose name fits the first pattern with the one that has the same words in the second. The axis that is
mirrored is the one by which the described links are most alike; a constant offset of a joint is its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from dynid.errors import InputError
from dynid.model.inertia import phi_from_pseudo_inertia, pseudo_inertia
from dynid.model.robot import Robot

SIDES = (
    *("FL_* FR_*", "RL_* RR_*", "HL_* HR_*", "LF_* RF_*", "LH_* RH_*"),
    *("left_* right_*", "*_left *_right", "l_* r_*", "*_l *_r", "L_* R_*", "*_L *_R"),
)
"""Patterns by which the sides of robots are commonly named."""
ITS_OWN = ("fo",)
"""Symbols that do not mirror: the offset of a joint is that of its own assembly."""


def paired_joints(names: Sequence[str], patterns: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Numbers (from 0) of joints that patterns such as ``FL_* FR_*`` pair, in the order of the first.

    Examples:
        >>> paired_joints(("FL_hip", "FL_knee", "FR_hip", "FR_knee"), ("FL_* FR_*",))
        ((0, 2), (1, 3))
    """
    found: list[tuple[int, int]] = []
    for pattern in patterns:
        sides = pattern.split()
        if len(sides) != 2 or any(side.count("*") != 1 for side in sides):
            raise InputError(f"--symmetric has '{pattern}', expected two names with one * each, such as 'FL_* FR_*'")
        (a, z), (b, y) = (side.split("*") for side in sides)
        pairs = [
            (i, names.index(other))
            for i, name in enumerate(names)
            if len(name) >= len(a) + len(z) and name.startswith(a) and name.endswith(z)
            if (other := b + name[len(a) : len(name) - len(z)] + y) in names and other != name
        ]
        if not pairs:
            raise InputError(f"--symmetric '{pattern}' pairs no joints; joints: {', '.join(names)}")
        found += pairs
    taken = [j for _, j in found]
    if len(set(taken)) < len(taken) or set(taken) & {i for i, _ in found}:
        raise InputError(
            "--symmetric pairs a joint twice, expected every joint in at most one pair, or as the first of several"
        )
    return tuple(found)


def proposed_symmetry(names: Sequence[str]) -> tuple[str, ...]:
    """Patterns by which the names of a robot's joints pair, empty where they do not.

    Examples:
        >>> proposed_symmetry(("FL_hip", "FR_hip"))
        ('FL_* FR_*',)
    """
    found = []
    for pattern in SIDES:
        with suppress(InputError):
            paired_joints(names, (pattern,))
            found.append(pattern)
    return tuple(found)


def mirrors(robot: Robot, pairs: Sequence[tuple[int, int]]) -> tuple[str | None, ...]:
    """Of every pair the axis that is mirrored between its links, None where they are equal as they are.

    Where the description does not tell, that which most pairs have.
    """
    choices = ("y", "x", "z", None)
    inertials = robot.parameters.inertials
    scores = np.array([[np.linalg.norm(mirrored(inertials[j], axis) - inertials[i]) for axis in choices] for i, j in pairs])
    size = np.array([max(np.linalg.norm(inertials[i]), 1e-12) for i, _ in pairs])
    most = int(np.argmin((scores / size[:, None]).sum(axis=0)))
    best = np.where(scores[:, most] <= scores.min(axis=1) + 1e-9 * size, most, np.argmin(scores, axis=1))
    return tuple(choices[k] for k in best)


def mirrored(phi: Any, axis: str | None) -> Any:
    """Ten parameters of a body in a frame whose axis points the other way."""
    flip = np.ones(4)
    if axis is not None:
        flip["xyz".index(axis)] = -1.0
    return phi_from_pseudo_inertia(flip[:, None] * pseudo_inertia(phi) * flip)


def with_symmetry(table: Mapping[str, Any], patterns: Sequence[str], robot: Robot) -> dict[str, Any]:
    """A table of constraints with the links and joints of both sides tied."""
    if not patterns:
        return dict(table)
    pairs = paired_joints(robot.joint_names, patterns)
    equal = [
        {"links": [i + 1, j + 1]} | ({} if axis is None else {"mirror": axis})
        for (i, j), axis in zip(pairs, mirrors(robot, pairs), strict=True)
    ]
    symbols = {
        (column.number - 1, column.symbol)
        for column in robot.parameters.columns
        if column.kind != "inertial" and column.symbol not in ITS_OWN
    }
    linear = [
        {"terms": {f"{symbol}{i + 1}": 1.0, f"{symbol}{j + 1}": -1.0}, "lower": 0.0, "upper": 0.0}
        for i, j in pairs
        for number, symbol in sorted(symbols)
        if number == i and (j, symbol) in symbols
    ]
    found = dict(table)
    for kind, entries in (("equal", equal), ("linear", linear)):
        given = table.get(kind, [])
        found[kind] = [*(given if isinstance(given, list) else [given]), *entries]
    return found
