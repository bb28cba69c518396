"""Names of columns and joints: folding, the usual names of each quantity, numbers and units in names, near misses.

Names are compared after folding case and separators, so ``shoulder_pan.q``, ``q[shoulder_pan]`` and ``Q/Shoulder_Pan``
are one name.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import permutations

from dynid.io.logs.units import UNITS

STEMS: Mapping[str, tuple[str, ...]] = {
    "position": ("q", "pos", "position", "positions", "angle", "jpos", "joint_angle"),
    "velocity": ("dq", "qd", "qdot", "v", "vel", "velocity", "velocities", "speed", "jvel"),
    "acceleration": ("ddq", "qdd", "qddot", "acc", "accel", "acceleration", "accelerations"),
    "torque": ("tau", "tau_j", "torque", "torques", "effort", "efforts", "trq"),
    "current": ("i", "current", "currents", "motor_current", "amps"),
    "reference_position": (
        "q_ref", "q_des", "q_d", "q_cmd", "target_q", "commanded_joint_position", "reference_position",
        "position_reference", "target_position", "command_position", "action",
    ),
    "reference_velocity": (
        "dq_ref", "dq_cmd", "qd_cmd", "commanded_joint_velocity", "reference_velocity", "velocity_reference", "target_velocity",
        "command_velocity",
    ),
    "external_torque": (
        "tau_ext", "external_torque", "tau_external", "tau_ext_hat_filtered", "external_joint_torque",
    ),
    "gravity": ("g", "gravity", "gravity_torque"),
}  # fmt: skip
_QUALIFIERS = (
    "", "actual_", "measured_", "joint_", "measured_joint_", "actual_joint_", "meas_", "msr_", "observation_"
)  # fmt: skip
_QUALIFIERS_AFTER = ("_actual", "_measured", "_meas", "_msr")
#: Quantities whose names may carry a qualifier such as ``measured_``.
QUALIFIED = ("position", "velocity", "acceleration", "torque", "current")
#: Names that are a quantity as a whole, not a stem with a qualifier.
_WHOLE: Mapping[str, tuple[str, ...]] = {"position": ("observation_state",)}
_SAME_ARM = (
    ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"),
    ("rotation", "pitch", "elbow", "wrist_pitch", "wrist_roll", "jaw"),
)
"""Names of the joints of SO-100 and SO-101 arms, in order: those of LeRobot and their newer URDF, and those of the older URDF and MJCF."""
_NAMESPACES = ("joint_states_", "robot_state_", "state_")
_IN_BRACKETS = re.compile(r"(?P<name>.*\S)\s*(?:\[(?P<square>[^\[\]]+)\]|\((?P<round>[^()]+)\))\s*")
_KNOWN = {unit for units in UNITS.values() for unit in units}
_SPELLINGS: Mapping[str, str] = {
    "°": "deg", "degree": "deg", "degrees": "deg", "radian": "rad", "radians": "rad", "amps": "A", "amp": "A", "ampere": "A",
    "seconds": "s", "sec": "s", "millimeter": "mm", "newton": "N", "rounds": "rev", "turn": "rev", "turns": "rev",
}  # fmt: skip


def fold(name: str) -> str:
    """Lower case, every separator an underscore, the namespace of joint-state exports dropped."""
    folded = re.sub(r"[^0-9a-z]+", "_", name.strip().lower()).strip("_")
    for namespace in _NAMESPACES:
        if folded.startswith(namespace) and len(folded) > len(namespace):
            return folded[len(namespace) :]
    return folded


def aliases(quantity: str) -> tuple[str, ...]:
    """Every folded name under which ``quantity`` is looked for, the most likely first."""
    stems = STEMS[quantity]
    names = [*stems]
    if quantity in QUALIFIED:
        names += [qualifier + stem for qualifier in _QUALIFIERS for stem in stems]
        names += [stem + qualifier for qualifier in _QUALIFIERS_AFTER for stem in stems]
    return tuple(dict.fromkeys([*names, *_WHOLE.get(quantity, ())]))


EVERY_ALIAS = frozenset(name for quantity in STEMS for name in aliases(quantity))
_MOTION_ALIAS = frozenset(name for quantity in QUALIFIED for name in aliases(quantity))


def is_motion(name: str) -> bool:
    """Whether a column of this name would be read as motion, torque or current of some joint."""
    folded = fold(name)
    number = numbered(folded)
    return folded in _MOTION_ALIAS or (number is not None and bool(number[0] & _MOTION_ALIAS))


def numbered(folded: str) -> tuple[frozenset[str], int] | None:
    """Possible aliases and the number in ``q1``, ``q_1``, ``q_joint_1``, ``joint1_q``, ``j1_q``, ``a1_position``."""
    if (parts := re.fullmatch(r"(.*\D)(\d{1,9})", folded)) is not None:
        head = parts[1].rstrip("_")
        heads = {head}
        if (inner := re.fullmatch(r"(.+)_(?:joint|j|axis|a)", head)) is not None:
            heads.add(inner[1])
        return frozenset(heads), int(parts[2])
    if (parts := re.fullmatch(r"(?:joint|j|axis|a)_?(\d{1,9})_(.*\D)", folded)) is not None:
        return frozenset({parts[2]}), int(parts[1])
    return None


def near_name(name: str, joint_names: Iterable[str]) -> str | None:
    """The joint whose spelling is close to ``name``; numbers in it have to be the same."""

    def bare(text: str) -> str:
        return fold(text).removesuffix("_joint").removeprefix("joint_")

    digits = re.findall(r"\d+", name)
    known = {bare(joint): joint for joint in joint_names if re.findall(r"\d+", joint) == digits}
    found = difflib.get_close_matches(bare(name), known, n=1, cutoff=0.8)
    return known[found[0]] if found else None


def alias_notes(joint_names: Sequence[str], columns: Sequence[str]) -> list[str]:
    """A note where columns were taken for joints by names that another file of the same arm has for them."""
    known = {own: other for pair in permutations(_SAME_ARM, 2) for own, other in zip(*pair, strict=True)}
    taken = [
        f"'{column}' as {joint}"
        for joint, column in zip(joint_names, columns, strict=False)
        if (alias := known.get(fold(joint))) is not None and alias in fold(column) and fold(joint) not in fold(column)
    ]
    return [f"columns are read by another name of the joint: {', '.join(taken)}"] if taken else []


def joint_forms(joint_names: Sequence[str]) -> dict[str, int]:
    """Folded spellings of each joint's name to its index: with and without ``_joint`` and a prefix that all names share."""
    folded = [fold(name) for name in joint_names]
    spellings: list[set[str]] = [{name} for name in folded]
    low, high = min(folded, default=""), max(folded, default="")
    alike = next((k for k, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), min(len(low), len(high)))
    shared = low.rfind("_", 0, alike) + 1 if len(folded) > 1 else 0
    for name, forms in zip(folded, spellings, strict=True):
        for form in (name, name[shared:]):
            forms |= {form, form.removesuffix("_joint"), form.removeprefix("joint_")}
    # names under which logs know the joints of an arm that has several sets of them; only where all of one set are there
    for own, other in permutations(_SAME_ARM, 2):
        for name, alias in zip(own, other, strict=True) if set(own) <= set(folded) else ():
            spellings[folded.index(name)].add(alias)
    counts: dict[str, int] = {}
    for forms in spellings:
        for form in forms:
            counts[form] = counts.get(form, 0) + 1
    # A bare number is no name: whether it counts from 0 or from 1 is known only from all columns together.
    return {
        form: index
        for index, forms in enumerate(spellings)
        for form in forms
        if form and counts[form] == 1 and not form.isdigit()
    }


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
    plain = re.sub(r"[\s.*·⋅]", "", text).replace("²", "^2").replace("s2", "s^2")
    head, stroke, tail = plain.partition("/")
    unit = _SPELLINGS.get(head.lower(), head) + stroke + {"sec": "s", "sec^2": "s^2"}.get(tail.lower(), tail)
    spelled = next((one for one in (unit, unit.lower()) if one in _KNOWN), None)
    return None if spelled is None else (found["name"], spelled)


def without_units(columns: Iterable[str], joint_names: Collection[str]) -> dict[str, str]:
    """Columns whose names end in a unit, by the name without it; none where two would have one name."""
    every = tuple(columns)
    bare = {column: found[0] for column in every if (found := header_unit(column, joint_names)) is not None}
    kept = [bare.get(column, column) for column in every]
    return {column: name for column, name in bare.items() if kept.count(name) == 1}
