"""A bare vector of base values: can a robot have them, and which ones that a robot can have are nearest?

Values are CSV. Each line names its base parameter, or states the combination of parameters that a publication groups:

    name,value              expression,value                        name,expression,value
    Izz1,0.31               L1yy + L2yy + L3yy + m3,6.2             beta_1,L1yy + L2yy + L3yy + m3,6.2

A grouping is CSV as well: the names of the parameters stand in its header, and each line is a row of ``K`` in ``beta = K phi``,
with a label in the column ``name`` if there is one. Empty cells are zero.

    name,L1yy,L2yy,L3yy,m3,L2xx
    beta_1,1,1,1,1,
    beta_2,,-1,,-1,1

With labels in both files lines are matched by them, otherwise by their order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array, freeze
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.consistency.consistent_set import MARGIN
from dynid.estimation.consistency.correction import ClosestFeasible, closest_feasible
from dynid.estimation.consistency.feasibility import Feasibility, feasibility
from dynid.estimation.constraints.base import Constraint
from dynid.estimation.constraints.conditions import parameter_name
from dynid.estimation.constraints.formula import linear_terms
from dynid.model.parameters import split_name
from dynid.model.robot import Robot
from dynid.pipeline.coefficients import csv_table, effect_symbols, number_in, read_coefficients, value_rows
from dynid.regression.base import BaseReduction, reduce_to_base


@dataclass(frozen=True, eq=False)
class BaseValues:
    """Base values with their grouping, and the robot that they belong to where one is known."""

    base: BaseReduction
    values: Array
    labels: tuple[str, ...]
    robot: Robot | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class BaseCheck:
    """What is proven of base values, and the nearest feasible ones."""

    given: BaseValues
    verdict: Feasibility
    nearest: ClosestFeasible | None
    """None where the values are feasible themselves."""

    @property
    def closest(self) -> Array | None:
        """The nearest feasible values found, those given where they are feasible; None where no robot meets the constraints."""
        if self.nearest is None:
            return self.given.values
        return None if self.nearest.standard is None else self.nearest.base

    @property
    def distance(self) -> float:
        """From the values given to the closest ones; not a number where there are none."""
        return 0.0 if self.nearest is None else self.nearest.distance

    @property
    def bound(self) -> float:
        """No feasible values are nearer, proven."""
        return 0.0 if self.nearest is None else max(self.nearest.lower_bound, self.verdict.lower_bound)

    @property
    def bodies(self) -> Array | None:
        """Consistent links, ten parameters each: the certificate, or those of the closest values."""
        return self.verdict.bodies if self.nearest is None else self.nearest.bodies

    @property
    def notes(self) -> tuple[str, ...]:
        """What else the user should know."""
        return (*self.given.notes, *(() if self.nearest is None else self.nearest.notes))

    def as_dict(self) -> dict[str, Any]:
        """Plain values; None for what does not exist."""
        closest, bodies = self.closest, self.bodies
        return {
            "decision": self.verdict.decision,
            "feasible": self.verdict.feasible,
            "distance": self.distance if math.isfinite(self.distance) else None,
            "closest": None if closest is None else closest.tolist(),
            "bound": self.bound,
            "names": list(self.given.labels),
            "values": self.given.values.tolist(),
            "bodies": None if bodies is None else bodies.tolist(),
            "direction": None if self.verdict.direction is None else self.verdict.direction.tolist(),
            "feasibility": self.verdict.as_dict(),
            "notes": list(self.notes),
        }


def check_base(
    given: BaseValues,
    condition: str = "full",
    margin: float = MARGIN,
    constraints: Sequence[Constraint] = (),
) -> BaseCheck:
    r"""Whether a robot whose links meet the condition has these base values (BPFT), and the nearest ones (BPFC).

    Args:
        given: the values, see :func:`read_base_values`.
        condition: ``full``, or ``plain`` without the triangle inequality of the moments of inertia.
        margin: relative to each link's size in the robot; in SI units where only a grouping is known.
        constraints: what else is known of the links.

    Returns:
        the verdict with its proof and, where it is not feasible, the nearest values with their distance and a bound that none
        is nearer than.

    Examples:
        >>> import dynid
        >>> with open("beta.csv", "w") as file:
        ...     _ = file.write("expression,value\nm1 + m2,-3.0\n")
        >>> found = dynid.check_base(dynid.read_base_values("beta.csv"))
        >>> found.verdict.decision, round(found.distance, 3)
        ('infeasible', 3.0)
    """
    base, values, robot = given.base, given.values, given.robot
    test = feasibility(base, values, condition, constraints, margin, robot=robot)
    verdict = _labelled(test, given).with_link_names(() if robot is None else robot.links)
    if robot is not None and base.n_base < reduce_to_base(robot).n_base:
        verdict = replace(verdict, mass_matrix=None)  # some of the robot's base values are not known
    if test.decision == "feasible":
        return BaseCheck(given, verdict, None)
    return BaseCheck(given, verdict, closest_feasible(base, values, condition, "base", constraints, margin, robot=robot))


def _labelled(test: Feasibility, given: BaseValues) -> Feasibility:
    """The test with its combination in the labels of the file."""
    if test.direction is None:
        return test
    order = np.argsort(-np.abs(test.direction))
    kept = [(given.labels[i], float(test.direction[i])) for i in order if abs(test.direction[i]) > 1e-6]
    return replace(test, combination=tuple(kept))


# Files --------------------------------------------------------------------------------------------------------
def read_base_values(path: str | Path, grouping: str | Path | None = None, robot: Robot | None = None) -> BaseValues:
    r"""Base values from CSV, in a grouping of its own file, of the expressions beside the values, or of a robot.

    Args:
        path: CSV with columns ``name`` or ``expression``, and ``value`` (SI units).
        grouping: CSV of the matrix ``K`` of ``beta = K phi``, with the names of the parameters in its header.
        robot: whose grouping the names are of, where there is neither.

    Returns:
        the values with their labels, and the base parameters that they are values of.

    Examples:
        >>> import dynid
        >>> from dynid.pipeline.base_check import read_base_values
        >>> with open("beta.csv", "w") as file:
        ...     _ = file.write("expression,value\nm1 + m2,-3.0\n")
        >>> read_base_values("beta.csv").labels
        ('m1 + m2',)
    """
    place = Path(path)
    if grouping is not None:
        return _in_grouping(place, Path(grouping), robot)
    if robot is not None:
        found = read_coefficients(place, robot)
        made = _made(found.K, found.robot.parameters.names, found.values, found.names, place, found.robot)
        foreign = found.foreign(reduce_to_base(found.robot))
        note = (
            f"no motion of this robot shows {', '.join(foreign)} of {place.name}: the values may be of another description"
        )
        return replace(made, notes=(note,)) if foreign else made
    rows = value_rows(place, "base values")
    if not all(row.get("expression") for _, row in rows):
        raise InputError(
            f"base values '{place}' name no combination of parameters: give the column expression, a robot, or the grouping "
            "with --grouping K.csv"
        )
    terms = [linear_terms(row["expression"], f"line {number} of '{place}':") for number, row in rows]
    names = tuple(dict.fromkeys(name for one in terms for name in one))
    K = [[one.get(name, 0.0) for name in names] for one in terms]
    labels = [row.get("name") or row["expression"] for _, row in rows]
    return _made(K, names, [number_in(row["value"], "value", n, place) for n, row in rows], labels, place, None)


def _made(K: Any, names: Sequence[str], values: Any, labels: Sequence[str], place: Path, robot: Robot | None) -> BaseValues:
    try:
        base = BaseReduction.from_matrix(K, names)
    except InputError as error:
        raise InputError(f"grouping of '{place}': {error}") from None
    return BaseValues(base, freeze(values), tuple(labels), robot)


def _in_grouping(place: Path, grouping: Path, robot: Robot | None) -> BaseValues:
    header, lines = csv_table(grouping, "grouping")
    named = header[0].lower() == "name"
    columns = [_canonical(name, grouping) for name in (header[1:] if named else header)]
    labels = [row[0] for _, row in lines] if named else [f"beta{i + 1}" for i in range(len(lines))]
    K = np.array([[number_in(cell or "0", "a cell", n, grouping) for cell in row[named:]] for n, row in lines])
    values = _matched(value_rows(place, "base values", free=True), labels if named else None, len(labels), place, grouping)
    if robot is None:
        return _made(K, columns, values, labels, grouping, None)
    model = robot.with_effects([effect for effect in robot.effects if effect_symbols(robot, effect.name) & set(columns)])
    whole = np.zeros((len(K), len(model.parameters)))
    for name, column in zip(columns, K.T, strict=True):
        if name not in model.parameters.names:
            raise UnknownNameError("parameter", name, model.parameters.names, f"grouping '{grouping}'")
        whole[:, model.parameters.index(name)] = column
    return _made(whole, model.parameters.names, values, labels, grouping, model)


def _canonical(name: str, place: Path) -> str:
    if not name:
        raise InputError(
            f"grouping '{place}' has a column without a name, expected names of parameters such as m1, mx1, L1xx"
        )
    found = parameter_name(name)
    if split_name(found) is None:
        raise InputError(
            f"column '{name}' of grouping '{place}' has no number of a link or joint, expected names such as m1, mx1, L1xx, fv1"
        )
    return found


def _matched(
    rows: Sequence[tuple[int, Mapping[str, str]]], labels: list[str] | None, count: int, place: Path, grouping: Path
) -> list[float]:
    """Values in the order of the grouping: by label where both files have labels."""
    if len(rows) != count:
        raise InputError(
            f"base values '{place}' have {len(rows)} lines, grouping '{grouping}' has {count}, expected as many"
        )
    found = [number_in(row["value"], "value", number, place) for number, row in rows]
    names = [row.get("name", "") for _, row in rows]
    if labels is None or not all(names):
        return found
    for name in names:
        if name not in labels:
            raise UnknownNameError("base parameter", name, labels, f"'{place}', by grouping '{grouping}'")
        if names.count(name) > 1:
            raise InputError(f"base parameter '{name}' stands {names.count(name)} times in '{place}', expected once")
    by_name = dict(zip(names, found, strict=True))
    return [by_name[label] for label in labels]
