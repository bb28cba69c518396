"""Checks that every kind of recording makes when it is built: joint names, the clock, one number per joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynid.arrays import Array, check_finite, check_shape, freeze
from dynid.errors import InputError, UnknownNameError


def checked_joint_names(names: Sequence[str]) -> tuple[str, ...]:
    """Joint names as a tuple, refused where one appears twice."""
    if isinstance(names, str):
        raise InputError(f"joint_names is the text '{names}', expected a sequence of names")
    names = tuple(str(name) for name in names)
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"joint name '{twice[0]}' appears more than once, expected distinct names")
    return names


def checked_clock(time: Any) -> Array:
    """Stamps as a read-only array, refused unless they are finite and increase."""
    array = freeze(time)
    check_shape("time", array, (None,))
    check_finite("time", array)
    if array.size == 0:
        raise InputError("recording holds no rows, expected at least one")
    backwards = np.flatnonzero(np.diff(array) <= 0.0)
    if backwards.size:
        k = int(backwards[0])
        raise InputError(
            f"time does not increase from row {k} ({array[k]:.9g} s) to row {k + 1} ({array[k + 1]:.9g} s), "
            "expected strictly increasing stamps"
        )
    return array


def per_joint(what: str, values: Sequence[float] | Mapping[str, float] | Array, joint_names: Sequence[str]) -> Array:
    """One number per joint from a sequence in joint order or a table by joint name."""
    if isinstance(values, Mapping):
        for name in values:
            if name not in joint_names:
                raise UnknownNameError("joint", str(name), joint_names, what)
        absent = [name for name in joint_names if name not in values]
        if absent:
            raise InputError(f"{what} lack joint '{absent[0]}'; given: {', '.join(values)}")
        values = [values[name] for name in joint_names]
    try:
        array = freeze(values)
    except (TypeError, ValueError) as error:
        raise InputError(f"{what} are not numbers: {values!r}") from error
    if array.shape != (len(joint_names),):
        raise InputError(f"{array.size} {what} given, robot has {len(joint_names)} joints")
    check_finite(what, array)
    return array
