"""Units in column names, as in ``q1 [deg]`` and ``tau_1 (N m)``."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from dynid.recording.readers.names import fold, joint_forms
from dynid.recording.readers.units import UNITS

_IN_BRACKETS = re.compile(r"(?P<name>.*\S)\s*(?:\[(?P<square>[^\[\]]+)\]|\((?P<round>[^()]+)\))\s*")
_KNOWN = {unit for units in UNITS.values() for unit in units}
_SPELLINGS: Mapping[str, str] = {
    "°": "deg", "degree": "deg", "degrees": "deg", "radian": "rad", "radians": "rad", "amps": "A", "amp": "A", "ampere": "A",
    "seconds": "s", "sec": "s", "millimeter": "mm", "newton": "N", "rounds": "rev", "turn": "rev", "turns": "rev",
}  # fmt: skip


def header_unit(column: str, joint_names: Collection[str] = ()) -> tuple[str, str] | None:
    """The name without its unit and the unit, as the tables of units spell it; None where brackets hold none.

    ``q[elbow]`` and ``q[1]`` hold a joint, and so does any word that is the name of one.

    >>> header_unit("q1 [deg]"), header_unit("tau_1 (N m)"), header_unit("dq2 [°/s]")
    (('q1', 'deg'), ('tau_1', 'Nm'), ('dq2', 'deg/s'))
    >>> header_unit("q[elbow]") is None
    True
    """
    found = _IN_BRACKETS.fullmatch(column)
    if found is None:
        return None
    text = found["square"] or found["round"]
    if fold(text) in joint_forms(tuple(joint_names)):
        return None
    unit = _spelled(text)
    return None if unit is None else (found["name"], unit)


def _spelled(text: str) -> str | None:
    plain = re.sub(r"[\s.*·⋅]", "", text).replace("²", "^2").replace("s2", "s^2")
    head, stroke, tail = plain.partition("/")
    head = _SPELLINGS.get(head.lower(), head)
    tail = {"sec": "s", "sec^2": "s^2"}.get(tail.lower(), tail)
    for candidate in (head + stroke + tail, (head + stroke + tail).lower()):
        if candidate in _KNOWN:
            return candidate
    return None


def without_units(columns: Iterable[str], joint_names: Collection[str]) -> dict[str, str]:
    """Columns whose names end in a unit, by the name without it; none where two would have one name."""
    every = tuple(columns)
    bare = {column: found[0] for column in every if (found := header_unit(column, joint_names)) is not None}
    kept = [bare.get(column, column) for column in every]
    return {column: name for column, name in bare.items() if kept.count(name) == 1}
