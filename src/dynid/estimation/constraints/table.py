"""Constraints and conditions from the tables of a run file or a file of their own, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from dynid.codec import read_fields
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.base import Constraint, FixedValues, Linear, PositiveEffects
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
from dynid.estimation.constraints.conditions import Condition
from dynid.estimation.constraints.expression import condition_from_text
from dynid.estimation.constraints.shapes import DensityInBox, DensityInEllipsoid
from dynid.files import read_limited, toml_table
from dynid.model.parameters import Parameters

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
