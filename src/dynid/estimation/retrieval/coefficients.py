"""Dynamic coefficients that are known already, and the parameters retrieved from them (Gaz and others 2019, two steps).

A table of coefficients is CSV. Each line has a base parameter of the robot by its name, or the combination of parameters that
a publication groups (then ``name`` is only a label), its value, and, if known, its standard deviation in percent:

    name,expression,value,sigma_percent
    pi_1,J2yy + J1zz,0.0292,0.3735
    pi_33,mc2y - 0.316 (m3 + m4 + m5 + m6 + m7) - mc3z,-3.1026,0.002
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array, BoolArray, freeze, matrix
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.completion import complete
from dynid.estimation.constraints.conditions import parameter_name
from dynid.estimation.constraints.expression import linear_terms
from dynid.estimation.outcome import Outcome
from dynid.estimation.result import Estimate
from dynid.estimation.retrieval.retrieve import PenaltyRetrieval, Retrieval
from dynid.estimation.seen import seen_parameters
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.robot.model import Robot
from dynid.structured import csv_lines

COLUMNS = ("name", "expression", "value", "sigma_percent")
MATCHES = 1e-3
"""Part of a coefficient, relative to its largest factor, that may be no combination of base parameters: printed factors are
rounded."""
KNOWN_SIGMA = 1_000_000
"""Degrees of freedom of standard deviations that were given, not estimated here."""


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Values of some combinations ``K phi`` of a robot's parameters, with their covariance (NaN where it is not known)."""

    robot: Robot
    names: tuple[str, ...]
    K: Array
    values: Array
    covariance: Array
    degrees_of_freedom: float = KNOWN_SIGMA
    condition_number: tuple[float, float] = (math.nan, math.nan)
    """Unscaled and scaled, of the data that the coefficients come from."""

    def __post_init__(self) -> None:
        n = len(self.names)
        object.__setattr__(self, "K", matrix("combinations", self.K, (n, len(self.robot.parameters))))
        object.__setattr__(self, "values", matrix("coefficients", self.values, (n,)))
        object.__setattr__(self, "covariance", freeze(self.covariance))

    @property
    def sigma_percent(self) -> Array:
        """Standard deviation relative to the value, in percent; NaN where it is not known."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(100.0 * np.sqrt(np.diag(self.covariance)) / np.abs(self.values))

    def without(self, mask: BoolArray) -> Coefficients:
        """The coefficients that are not marked."""
        keep = np.flatnonzero(~mask)
        return Coefficients(
            self.robot,
            tuple(self.names[i] for i in keep),
            self.K[keep],
            self.values[keep],
            self.covariance[np.ix_(keep, keep)],
            self.degrees_of_freedom,
            self.condition_number,
        )

    def foreign(self, base: BaseReduction) -> tuple[str, ...]:
        """Coefficients that are no combination of the robot's base parameters: no motion shows them."""
        rest = np.abs(self.K - (self.K @ base.lift) @ base.K).max(axis=1, initial=0.0)
        size = np.abs(self.K).max(axis=1, initial=0.0)
        return tuple(name for name, own, largest in zip(self.names, rest, size, strict=True) if own > MATCHES * largest)


def retrieve_estimate(method: PenaltyRetrieval, given: Coefficients) -> Estimate:
    """Parameters whose coefficients are nearest to the given ones, as an estimate without data of its own."""
    robot = given.robot
    base = reduce_to_base(robot)
    try:
        grouping = BaseReduction.from_matrix(given.K, robot.parameters.names)
    except InputError as error:
        raise InputError(f"{len(given.names)} coefficients were given that are not independent: {error}") from None
    found = method.retrieve(grouping, given.values, robot=robot)
    A = given.K @ base.lift  # the coefficients over the robot's own base parameters
    seen = seen_parameters(A)
    back = np.zeros((base.n_base, len(given.names)))
    back[seen.mask] = np.linalg.pinv(A[:, seen.mask])
    standard = found.standard
    assert isinstance(standard, Parameters)
    if not found.outcome.usable:  # the coefficients as they are, with no body that has them
        nominal = base.base_values(robot.parameters)
        standard = complete(base, np.where(seen.mask, back @ given.values, nominal), robot.parameters)
    outcome = found.outcome
    if outcome is Outcome.SOLVED and not seen.mask.all():
        outcome = Outcome.RANK_DEFICIENT
    return Estimate(
        method=method.name,
        base=base,
        base_values=base.base_values(standard),
        covariance=_carried(back, given.covariance),
        standard=standard,
        origin=seen.origin,
        rank=seen.rank,
        condition_number=given.condition_number[0],
        condition_number_scaled=given.condition_number[1],
        channel_names=(),
        residual_rms=np.zeros(0),
        relative_error=math.nan,
        n_samples=0,
        n_rows=len(given.names),
        outcome=outcome,
        notes=found.notes,
        details=_details(given, found, grouping.K @ standard.values),
    )


def _carried(back: Array, covariance: Array) -> Array:
    """Covariance of ``back c``; NaN for whatever rests on a coefficient whose own is not known."""
    known = np.nan_to_num(covariance)
    carried = back @ known @ back.T
    unknown = (np.abs(back) > 1e-9) @ np.isnan(np.diag(covariance)).astype(float) > 0.0
    carried[unknown, :] = carried[:, unknown] = np.nan
    return np.asarray(carried)


def _details(given: Coefficients, found: Retrieval, retrieved: Array) -> dict[str, Any]:
    listed = zip(given.names, given.values.tolist(), retrieved.tolist(), given.sigma_percent.tolist(), strict=True)
    return {
        **found.details,
        "cost": found.cost,
        "lower_bound": found.lower_bound,
        "gap": found.gap,
        "violated": dict(found.violated),
        "degrees_of_freedom": given.degrees_of_freedom,
        "coefficients": [
            {"name": name, "given": value, "retrieved": other, "sigma_percent": spread}
            for name, value, other, spread in listed
        ],
    }


# Files --------------------------------------------------------------------------------------------------------


def read_coefficients(path: str | Path, robot: Robot) -> Coefficients:
    """Coefficients from CSV.

    Effects of the robot of which no parameter is named are left out of it: the coefficients know nothing of them, and base
    parameters are named without them.
    """
    place = Path(path)
    rows = _rows(place)
    terms = [_terms(row, number, place) for number, row in rows]
    mentioned = {name for one in terms for name in one}
    kept = [effect for effect in robot.effects if _symbols(robot, effect.name) & mentioned]
    model = robot.with_effects(kept)
    base = reduce_to_base(model)
    K = np.zeros((len(rows), len(model.parameters)))
    for i, ((number, row), one) in enumerate(zip(rows, terms, strict=True)):
        K[i] = _combination(row, one, model, base, f"line {number} of '{place}'")
    names = [row.get("name") or row["expression"] for _, row in rows]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"coefficient '{twice[0]}' stands {names.count(twice[0])} times in '{place}', expected once")
    values = np.array([_number(row, "value", number, place) for number, row in rows])
    percent = np.array([_sigma(row, number, place) for number, row in rows])
    return Coefficients(model, tuple(names), K, values, np.diag((0.01 * percent * np.abs(values)) ** 2))


def _combination(row: Mapping[str, str], terms: Mapping[str, float], robot: Robot, base: BaseReduction, where: str) -> Array:
    """Factors of the parameters in a coefficient: those of its expression, or of the base parameter that it names."""
    if not row.get("expression"):
        (name,) = terms
        if name not in base.names:
            raise UnknownNameError("base parameter", row["name"], base.names, where)
        factors: Array = base.K[base.index(name)]
        return factors
    factors = np.zeros(len(robot.parameters))
    for name, factor in terms.items():
        factors[_index(robot, name, where)] = factor
    return factors


def _rows(place: Path) -> list[tuple[int, Mapping[str, str]]]:
    """The lines of the table with their numbers in the file, by column."""
    lines = csv_lines(place, "coefficients", "are")
    header = [cell.lower() for cell in lines[0][1]] if lines else []
    good = set(header) <= set(COLUMNS) and len(set(header)) == len(header) and "value" in header
    if not good or not {"name", "expression"} & set(header):
        raise InputError(
            f"coefficients '{place}' have the columns {', '.join(header) or 'none'}, expected name or expression, value and, "
            "if known, sigma_percent"
        )
    if len(lines) < 2:
        raise InputError(f"coefficients '{place}' have no line below the header, expected one for each coefficient")
    for number, row in lines[1:]:
        if len(row) != len(header):
            raise InputError(f"line {number} of '{place}' has {len(row)} cells, expected {len(header)}")
    return [(number, dict(zip(header, row, strict=True))) for number, row in lines[1:]]


def _terms(row: Mapping[str, str], number: int, place: Path) -> dict[str, float]:
    """Parameters of a coefficient with their factors; for a base parameter its own name."""
    if row.get("expression"):
        return linear_terms(row["expression"], f"line {number} of '{place}':")
    if not row.get("name"):
        raise InputError(f"line {number} of '{place}' has neither a name nor an expression")
    return {parameter_name(row["name"]): 1.0}


def _symbols(robot: Robot, effect: str) -> set[str]:
    """Names of the parameters of one effect of a robot."""
    alone = robot.with_effects([one for one in robot.effects if one.name == effect]).parameters
    return set(alone.names[alone.n_inertial :])


def _index(robot: Robot, name: str, where: str) -> int:
    try:
        return robot.parameters.index(name)
    except UnknownNameError as error:
        raise UnknownNameError("parameter", name, error.available, where) from None


def _number(row: Mapping[str, str], column: str, number: int, place: Path) -> float:
    try:
        value = float(row[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{column} in line {number} of '{place}' is '{row[column]}', expected a number")
    return value


def _sigma(row: Mapping[str, str], number: int, place: Path) -> float:
    """A standard deviation in percent; NaN where the cell is empty."""
    if not row.get("sigma_percent"):
        return math.nan
    value = _number(row, "sigma_percent", number, place)
    if value < 0.0:
        raise InputError(f"sigma_percent in line {number} of '{place}' is {value:g}, expected zero or a positive number")
    return value


def left_out(names: Sequence[str], spreads: Sequence[float]) -> str:
    """Coefficients with their standard deviations, for a note."""
    return ", ".join(f"{name} ({spread:.3g} %)" for name, spread in zip(names, spreads, strict=True))
