"""Constraints as the tables of a run file, to be read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from dynid.estimation.constraints.base import Constraint


def table_from_constraints(constraints: Sequence[Constraint]) -> dict[str, list[dict[str, Any]]]:
    """The inverse of ``constraints_from_table``; infinite bounds are left out."""
    table: dict[str, list[dict[str, Any]]] = {}
    for constraint in constraints:
        values = {item.name: getattr(constraint, item.name) for item in fields(type(constraint))}  # type: ignore[arg-type]
        said = {k: v for k, v in values.items() if v is not None and not (isinstance(v, float) and np.isinf(v))}
        table.setdefault(constraint.kind, []).append(said)
    return table
