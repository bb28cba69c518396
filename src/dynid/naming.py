"""Parameter names of the literature brought to the names used here.

    here            m3    mx3   Iyy3   Ixy3   Ia3   fv3   fc3   fo3
    Sousa           m3    l3x   L3yy   L3xy   Ia3   fv3   fc3   fo3      (also with an underscore: L_3yy)
    Khalil          M3    MX3   YY3    XY3    IA3   FV3   FS3   OFF3

All hold tensor elements about the link frame's origin. Names of other columns stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from dynid.errors import InputError
from dynid.parameters import INERTIAL_SYMBOLS

_KHALIL = dict(
    zip(
        ("XX", "XY", "XZ", "YY", "YZ", "ZZ", "MX", "MY", "MZ", "M", "IA", "FV", "FS", "FC", "OFF"),
        ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz", "mx", "my", "mz", "m", "Ia", "fv", "fc", "fc", "fo"),
        strict=True,
    )
)
_SYMBOLS = frozenset(INERTIAL_SYMBOLS) | {"Ia", "fv", "fc", "fo"}

_SYMBOL_FIRST = re.compile(r"([A-Za-z]+)_?(\d{1,9})")  # a number of more digits is no joint
_SOUSA = re.compile(r"([LlI])_?(\d{1,9}),?([xyz]{1,2})")


def canonical_name(name: str) -> str:
    """The name used here of a parameter named as here, by Sousa or by Khalil; unknown names come back unchanged."""
    inside = _SOUSA.fullmatch(name)
    if inside:
        letter, number, axes = inside[1], int(inside[2]), inside[3]
        if letter == "I":
            raise InputError(
                f"parameter '{name}' reads as inertia about the centre of mass, expected one about the link frame's "
                f"origin: L{number}{axes} or I{axes}{number}"
            )
        symbol = f"m{axes}" if letter == "l" else f"I{''.join(sorted(axes))}"
        if symbol in INERTIAL_SYMBOLS:
            return f"{symbol}{number}"
    first = _SYMBOL_FIRST.fullmatch(name)
    if first:
        symbol = _KHALIL.get(first[1], first[1])
        if symbol in _SYMBOLS:
            return f"{symbol}{int(first[2])}"
    return name


def canonical_names(names: Iterable[str]) -> tuple[str, ...]:
    """All names in the form used here; two names of one parameter are refused."""
    given = tuple(names)
    found: dict[str, str] = {}
    for name in given:
        here = canonical_name(name)
        if here in found:
            raise InputError(f"parameter names '{found[here]}' and '{name}' both mean '{here}'")
        found[here] = name
    return tuple(found)


def listed(names: Sequence[str], most: int = 8) -> str:
    """Names for a sentence; of many the first ones and how many more there are."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def split_name(name: str) -> tuple[str, int] | None:
    """Symbol and joint number of a column, None for a name that has no number."""
    first = re.fullmatch(r"(.*\D)(\d{1,9})", name)
    return (first[1], int(first[2])) if first else None
