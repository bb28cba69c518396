"""The only place where arrays are frozen or refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InputError, UnknownNameError

Array: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]


def freeze(values: ArrayLike, dtype: Any = np.float64) -> NDArray[Any]:
    """A read-only, C-contiguous array of ``values``; copies unless it is already one that owns its memory."""
    array = np.asarray(values, dtype=dtype, order="C")
    if array.flags.writeable or not array.flags.owndata:
        array = np.array(array, dtype=dtype, order="C", copy=True)
        array.flags.writeable = False
    return array


def frozen_view(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view on ``array``, for large arrays that have no other owner."""
    view = array.view()
    view.flags.writeable = False
    return view


def check_shape(name: str, array: NDArray[Any], shape: tuple[int | None, ...]) -> None:
    """Refuse ``array`` unless its shape is ``shape``, where None stands for any length."""
    fits = array.ndim == len(shape) and all(
        want is None or have == want for have, want in zip(array.shape, shape, strict=True)
    )
    if not fits:
        wanted = "(" + ", ".join("any" if want is None else str(want) for want in shape) + ")"
        raise InputError(f"{name} has shape {array.shape}, expected {wanted}")


def all_finite(array: NDArray[Any]) -> bool:
    """Whether every entry is a finite number; a finite sum, one pass without memory of its own, shows that none is not."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = array.sum()
    return bool(np.isfinite(total)) or bool(np.isfinite(array).all())


def check_finite(name: str, array: NDArray[Any]) -> None:
    """Refuse ``array`` if it holds NaN or infinity."""
    if all_finite(array):
        return
    bad = int(array.size - np.count_nonzero(np.isfinite(array)))
    if bad:
        raise InputError(f"{name} holds {bad} values that are NaN or infinite, expected finite numbers")


def check_positive(what: str, value: float | None, unit: str = "", *, or_zero: bool = False) -> None:
    """Refuse a number that is not finite and positive, or not zero either where that is allowed; None passes."""
    if value is not None and not (np.isfinite(value) and (value > 0.0 or (or_zero and value == 0.0))):
        wanted = "zero or a positive number" if or_zero else "a positive number"
        raise InputError(f"{what} is {value}, expected {wanted}{f' of {unit}' if unit else ''}")


def matrix(name: str, values: ArrayLike, shape: tuple[int | None, ...]) -> Array:
    """Frozen float array of the given shape with finite entries."""
    array = freeze(values)
    check_shape(name, array, shape)
    check_finite(name, array)
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
