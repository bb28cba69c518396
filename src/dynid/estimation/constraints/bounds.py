"""Bounds files: what is known of each link, in the quantities of a data sheet or a CAD program.

CSV, one line per quantity, an empty cell for no bound:

    name,lower,upper
    m1,0,10
    c1x,-0.05,0.05
    I1xx,0,1
    total_mass,16,20

or TOML, with the constraints of a run file in the same place:

    m1 = [0.0, 10.0]
    c1x = [-0.05, 0.05]
    total_mass = [16.0, 20.0]
    [[constraints.com_sphere]]
    link = 2
    centre = [0.0, 0.0, 0.1]
    radius = 0.2

``c1x`` is the centre of mass in the frame of link 1, ``I1xx`` the inertia about it, ``Ixx1`` (or ``J1xx``) that about the
frame's origin, ``mx1`` the first moment; friction and rotor inertia go by their own names.

Constraints and conditions from the tables of a run file or a file of their own, and back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.codec import read_fields
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.base import Constraint, FixedValues, Layout, Linear, PositiveEffects
from dynid.estimation.constraints.bodies import (
    CentreOfMassInBox,
    CentreOfMassInCylinder,
    CentreOfMassInHull,
    CentreOfMassInSphere,
    EqualLinks,
    MassBounds,
    SymmetricLink,
    TotalMass,
)
from dynid.estimation.constraints.conditions import (
    TOTAL_MASS,
    Condition,
    Reader,
    barycentric_name,
    centre_name,
    expected_names,
    is_known,
    parameter_name,
)
from dynid.estimation.constraints.formula import condition_from_text
from dynid.estimation.constraints.shapes import DensityInBox, DensityInEllipsoid
from dynid.files import csv_lines, read_limited, toml_table
from dynid.model.parameters import Parameters

LEAST_MASS = 1e-6
"""Smallest mass looked at, relative to the size of the link."""
_DIAGONAL = ("xx", "yy", "zz")


@dataclass(frozen=True)
class Bounds:
    """Lower and upper bounds by name, infinite where there is none, and constraints that stand in the same file."""

    limits: Mapping[str, tuple[float, float]]
    constraints: tuple[Constraint, ...] = field(default=())

    def __post_init__(self) -> None:
        checked: dict[str, tuple[float, float]] = {}
        for name, (lower, upper) in self.limits.items():
            low, high = float(lower), float(upper)
            if np.isnan(low) or np.isnan(high) or low > high:
                raise InputError(f"bounds of '{name}' are {low:g} and {high:g}, expected lower <= upper")
            checked[name] = (low, high)
        object.__setattr__(self, "limits", checked)
        object.__setattr__(self, "constraints", tuple(self.constraints))

    def convex(self) -> tuple[Constraint, ...]:
        """The bounds that are linear in the parameters: masses, ``h - m lower >= 0`` and ``m upper - h >= 0``, single parameters."""
        found: list[Constraint] = list(self.constraints)
        for name, (lower, upper) in self.limits.items():
            if np.isinf(lower) and np.isinf(upper):
                continue
            centre = centre_name(name)
            if name == TOTAL_MASS:
                found.append(TotalMass(max(lower, 0.0), upper))
            elif centre is not None:
                link, axis = centre
                moment = f"m{axis}{link}"
                if np.isfinite(lower):
                    found.append(Linear({moment: 1.0, f"m{link}": -lower}, 0.0, np.inf, label=f"{name} from {lower:g}"))
                if np.isfinite(upper):
                    found.append(Linear({moment: -1.0, f"m{link}": upper}, 0.0, np.inf, label=f"{name} up to {upper:g}"))
            elif barycentric_name(name) is None:
                parameter = parameter_name(name)
                if parameter[0] == "m" and parameter[1:].isdigit():
                    found.append(MassBounds(int(parameter[1:]), lower, upper))
                else:
                    found.append(Linear({parameter: 1.0}, lower, upper, label=parameter))
        return tuple(found)

    def conditions(self) -> tuple[Condition, ...]:
        """The bounds on inertia about the centre of mass, which are not; those that consistency implies are left out."""
        found = []
        for name, (lower, upper) in self.limits.items():
            place = barycentric_name(name)
            if place is None:
                continue
            if np.isfinite(upper):
                found.append(condition_from_text(f"{name} <= {upper!r}", f"{name} <= {upper:g}"))
            if np.isfinite(lower) and not (place[1] in _DIAGONAL and lower <= 0.0):
                found.append(condition_from_text(f"{name} >= {lower!r}", f"{name} >= {lower:g}"))
        return tuple(found)

    def check(self, parameters: Parameters, source: str = "the bounds") -> None:
        """Refuse a name that no parameter of the robot has."""
        for name in self.limits:
            if not is_known(name, parameters):
                n_links = parameters.n_inertial // 10
                raise InputError(
                    f"{source} name '{name}', which the robot with its {n_links} links does not have; "
                    f"expected {expected_names(parameters)}"
                )

    def of(self, name: str) -> tuple[float, float]:
        """Bounds of one quantity, infinite where the file says nothing."""
        return self.limits.get(name, (-np.inf, np.inf))

    def box(self, layout: Layout, scale: Array) -> tuple[Array, Array]:
        """``[LB, UB]`` of ``p = (m, c, I)`` link by link in the order of ``phi``, then the other parameters.

        Where the file says nothing, a box well beyond the link's own size.
        """
        lower, upper = np.empty(len(layout)), np.empty(len(layout))
        symbols = ("m", "cx", "cy", "cz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
        for link, slots in zip(layout.links, layout.slots, strict=True):
            mass, length = float(scale[slots[0]]), float(scale[slots[1]] / scale[slots[0]])
            reach = np.array([5.0 * mass, *(3 * [5.0 * length]), *(6 * [25.0 * mass * length**2])])
            for slot, symbol, far in zip(slots, symbols, reach, strict=True):
                name = f"{symbol[0]}{link}{symbol[1:]}"
                low, high = self.of(name)
                positive = symbol == "m" or symbol[1:] in _DIAGONAL
                lower[slot] = low if np.isfinite(low) else (0.0 if positive else -far)
                upper[slot] = high if np.isfinite(high) else max(far, 2.0 * lower[slot])
                if positive:
                    lower[slot] = max(lower[slot], 0.0)
                if symbol == "m":  # a link without mass has no centre of mass
                    lower[slot] = max(lower[slot], min(LEAST_MASS * mass, upper[slot]))
        inertial = set(layout.slots.ravel().tolist())
        for i in (i for i in range(len(layout)) if i not in inertial):
            low, high = self.of(layout.names[i])
            lower[i] = low if np.isfinite(low) else -100.0 * scale[i]
            upper[i] = high if np.isfinite(high) else 100.0 * scale[i]
        return lower, upper

    def guaranteed_by_box(self, layout: Layout) -> frozenset[str]:
        """Labels of the constraints that every point of the box meets: masses and centres of mass."""
        single = [
            c for c in self.convex() if isinstance(c, MassBounds) or (isinstance(c, Linear) and centre_of(c) is not None)
        ]
        own = frozenset(id(c) for c in self.constraints)
        return frozenset(part.label for c in single if id(c) not in own for part in c.rows(layout))

    def violated(self, layout: Layout, phi: Array) -> dict[str, float]:
        """Names of the bounds that do not hold, in the file's own quantities, with how far each is outside."""
        read = Reader(layout, phi)
        found = {}
        for name, (lower, upper) in self.limits.items():
            value = float(phi[layout.slots[:, 0]].sum()) if name == TOTAL_MASS else float(read[name])
            outside = max(lower - value, value - upper, 0.0)
            if outside > 0.0:
                found[name] = outside
        return found


def phi_from_box(layout: Layout, p: Array) -> Array:
    """``phi`` from ``(m, c, I)`` in the order of ``phi`` (26)."""
    rows = p[layout.slots]
    m, x, y, z = rows[:, 0], rows[:, 1], rows[:, 2], rows[:, 3]
    xx, yy, zz = m * x * x, m * y * y, m * z * z
    new = np.empty_like(rows)
    new[:, 0] = m
    new[:, 1:4] = m[:, None] * rows[:, 1:4]
    new[:, 4:] = rows[:, 4:]
    new[:, 4] += yy + zz
    new[:, 5] -= m * x * y
    new[:, 6] += xx + zz
    new[:, 7] -= m * x * z
    new[:, 8] -= m * y * z
    new[:, 9] += xx + yy
    phi = np.array(p)
    phi[layout.slots] = new
    return phi


def centre_of(constraint: Linear) -> tuple[int, str] | None:
    """Link and axis, if the constraint bounds a centre of mass."""
    return centre_name(constraint.label.split(" ", 1)[0])


def read_bounds(path: str | Path) -> Bounds:
    r"""Bounds from a CSV (name, lower, upper) or TOML file.

    Examples:
        >>> with open("bounds.csv", "w") as file:
        ...     _ = file.write("name,lower,upper\nm1,0.5,4.0\n")
        >>> read_bounds("bounds.csv").of("m1")
        (0.5, 4.0)
    """
    place = Path(path)
    suffix = place.suffix.lower()
    limits: dict[str, tuple[float, float]] = {}
    if suffix == ".csv":
        lines = csv_lines(place, "bounds file")
        header = [cell.lower() for cell in lines[0][1]] if lines else []
        if header != ["name", "lower", "upper"]:
            raise InputError(
                f"bounds file '{place}' has the columns {', '.join(header) or 'none'}, expected name, lower, upper"
            )
        for number, row in lines[1:]:
            if len(row) != 3:
                raise InputError(f"line {number} of bounds file '{place}' has {len(row)} cells, expected 3")
            name = row[0].strip()
            lower, upper = (_cell(cell, other, name, place) for cell, other in zip(row[1:], (-np.inf, np.inf), strict=True))
            _add(limits, name, lower, upper, place)
        return Bounds(limits)
    if suffix == ".toml":
        content = toml_table(read_limited(place, f"bounds file '{place}'"), f"bounds file '{place}'")
        table = content.pop("constraints", {})
        if not isinstance(table, Mapping):
            raise InputError(f"[constraints] of bounds file '{place}' is {table!r}, expected a table")
        for name, pair in content.items():
            if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2 or not all(map(_is_number, pair)):
                raise InputError(f"bounds of '{name}' in '{place}' are {pair!r}, expected two numbers [lower, upper]")
            _add(limits, name, float(pair[0]), float(pair[1]), place)
        return Bounds(limits, constraints_from_table(with_meshes_seen_from(table, place.parent)))
    raise InputError(f"bounds file '{place}' is of type '{place.suffix}', expected .csv or .toml")


def _cell(cell: str, missing: float, name: str, place: Path) -> float:
    text = cell.strip()
    if not text:
        return missing
    try:
        return float(text)
    except ValueError:
        raise InputError(f"bound of '{name}' in '{place}' is '{text}', expected a number or nothing") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _add(limits: dict[str, tuple[float, float]], name: str, lower: float, upper: float, place: Path) -> None:
    centre = centre_name(name)
    key = name if centre is None else f"c{centre[0]}{centre[1]}"
    if key in limits:
        raise InputError(f"bounds of '{name}' stand twice in '{place}', expected once")
    limits[key] = (lower, upper)


KINDS: dict[str, type[Any]] = {
    constraint.kind: constraint
    for constraint in (
        MassBounds,
        TotalMass,
        CentreOfMassInBox,
        CentreOfMassInSphere,
        CentreOfMassInCylinder,
        CentreOfMassInHull,
        DensityInEllipsoid,
        DensityInBox,
        SymmetricLink,
        EqualLinks,
        FixedValues,
        PositiveEffects,
        Linear,
    )
}
"""Every constraint by the word that a run file uses for it."""


def constraints_from_table(table: Mapping[str, Any]) -> tuple[Constraint, ...]:
    """Constraints from a ``[constraints]`` table: a key per kind, with one table or a list of them.

        [constraints]
        total_mass = { upper = 27.0 }
        fixed = { Ia7 = 0.0 }
        com_box = [{ link = 1, lower = [-0.1, -0.1, 0.0], upper = [0.1, 0.1, 0.3] }]

    Args:
        table: of a run file, or the same as a dictionary. A link is named by its number from 1, by its own name or by that of
            its joint; lengths are metres in its frame. Kinds: ``mass``, ``total_mass``, ``com_box``, ``com_sphere``,
            ``com_cylinder``, ``com_hull``, ``density_box``, ``density_ellipsoid``, ``symmetric``, ``equal``, ``fixed``, ``positive``,
            ``linear``.

    Returns:
        one constraint for each entry.

    Examples:
        >>> import dynid
        >>> dynid.constraints_from_table({"total_mass": {"upper": 27.0}})[0].upper
        27.0
    """
    found: list[Constraint] = []
    for kind, entries in table.items():
        if kind not in KINDS:
            raise UnknownNameError("constraint", kind, KINDS)
        for entry in entries if isinstance(entries, list) else [entries]:
            if not isinstance(entry, Mapping):
                raise InputError(f"constraint '{kind}' is {entry!r}, expected a table such as {{ link = 1, lower = 0.5 }}")
            found.append(_from_entry(kind, entry))
    return tuple(found)


def read_constraints_table(path: str | Path) -> dict[str, Any]:
    r"""The ``[constraints]`` table of a TOML file: a run file, or one that holds nothing else; meshes are relative to it.

    Examples:
        >>> from pathlib import Path
        >>> _ = Path("known.toml").write_text("[constraints]\ntotal_mass = { upper = 27.0 }\n")
        >>> read_constraints_table("known.toml")
        {'total_mass': {'upper': 27.0}}
    """
    place = Path(path)
    where = f"constraints '{place}'"
    content = toml_table(read_limited(place, where), where)
    table = content.get("constraints")
    if not isinstance(table, dict) or not table:
        found = ", ".join(content) or "nothing"
        raise InputError(
            f"constraints '{place}' hold {found}, expected a table [constraints] with one or more of {', '.join(KINDS)}"
        )
    table = with_meshes_seen_from(table, place.parent)
    try:
        constraints_from_table(table)
    except InputError as error:
        raise InputError(f"constraints '{place}': {error}") from None
    return dict(table)


def with_meshes_seen_from(table: Any, folder: Path) -> Any:
    """A ``[constraints]`` table with the meshes it names found relative to the folder of its file."""
    if isinstance(table, Mapping):
        return {
            name: str(folder / value) if name == "mesh" and isinstance(value, str) else with_meshes_seen_from(value, folder)
            for name, value in table.items()
        }
    return [with_meshes_seen_from(entry, folder) for entry in table] if isinstance(table, list) else table


def _from_entry(kind: str, entry: Mapping[str, Any]) -> Constraint:
    cls = KINDS[kind]
    if cls is FixedValues and "values" not in entry:
        entry = {"values": dict(entry)}
    make: Callable[..., Constraint] = cls
    mesh: dict[str, Any] = {}
    if cls is CentreOfMassInHull and "mesh" in entry:
        make, mesh = CentreOfMassInHull.from_mesh, {"path": entry["mesh"]}
        mesh |= {key: entry[key] for key in ("scale", "placement") if key in entry}
        entry = {key: value for key, value in entry.items() if key not in ("mesh", "points", *mesh)}
    known = [item.name for item in fields(cls)]
    for key in entry:
        if key not in known:
            raise UnknownNameError(f"entry of constraint '{kind}'", key, known)
    try:
        entry = mesh | read_fields(cls, entry)
    except ValueError as error:
        raise InputError(f"constraint '{kind}' has {error}") from None
    return _called(kind, make, entry)


def _called(kind: str, make: Any, entry: Mapping[str, Any]) -> Constraint:
    try:
        return make(**entry)  # type: ignore[no-any-return]
    except (TypeError, ValueError) as error:
        raise InputError(f"constraint '{kind}' with entries {', '.join(entry) or 'none'} cannot be read: {error}") from error


def conditions_from_tables(
    tables: Iterable[Mapping[str, Any]], parameters: Parameters | None = None
) -> tuple[Condition, ...]:
    """Conditions from the tables ``[[conditions]]`` of a run file: ``expression`` and, if wanted, a ``name``."""
    found = []
    for number, table in enumerate(tables, start=1):
        unknown = [key for key in table if key not in ("expression", "name")]
        if unknown:
            raise InputError(f"[[conditions]] number {number} has '{unknown[0]}', expected expression and name alone")
        for key in ("expression", "name"):
            if not isinstance(table.get(key, ""), str):
                raise InputError(f"{key} of [[conditions]] number {number} is {table[key]!r}, expected text")
        if not table.get("expression", "").strip():
            raise InputError(f"[[conditions]] number {number} has no expression, expected text such as 'm1 > 2 * m2'")
        condition = condition_from_text(table["expression"], table.get("name", ""))
        if parameters is not None:
            condition.violation.check_names(parameters)  # type: ignore[attr-defined]
        found.append(condition)
    return tuple(found)
