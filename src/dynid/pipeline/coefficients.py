"""Dynamic coefficients that are known already, and the parameters retrieved from them (Gaz and others 2019, two steps).

A table of coefficients is CSV. Each line has a base parameter of the robot by its name, or the combination of parameters that
a publication groups (then ``name`` is only a label), its value, and, if known, its standard deviation in percent:

    name,expression,value,sigma_percent
    pi_1,J2yy + J1zz,0.0292,0.3735
    pi_33,mc2y - 0.316 (m3 + m4 + m5 + m6 + m7) - mc3z,-3.1026,0.002

Feasible parameters are found for the coefficients of a table or of an earlier result.
No log is needed. Logs that are given validate: they have no part in the result.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dynid.arrays import Array, BoolArray, freeze, matrix
from dynid.dynamics.joint_wrench import largest_joint_wrench
from dynid.engine import Tell, silent
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.consistency.feasibility import Feasibility
from dynid.estimation.constraints.conditions import parameter_name
from dynid.estimation.constraints.formula import linear_terms
from dynid.estimation.linear import base_to_standard, find_identifiable
from dynid.estimation.methods.retrieval import PenaltyRetrieval
from dynid.estimation.result import Estimate, Outcome
from dynid.files import csv_lines
from dynid.model.links import with_links_apart
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.pipeline.data import open_unseen
from dynid.pipeline.estimate_checks import check_feasibility, consistency_notes
from dynid.pipeline.filter_selection import chosen_filter
from dynid.pipeline.folder import load_robot_result
from dynid.pipeline.log import Data, Logs
from dynid.pipeline.options import Settings
from dynid.pipeline.result import COEFFICIENTS, IdentificationResult
from dynid.pipeline.robot_setup import method_of
from dynid.pipeline.row_plan import RowPlan
from dynid.pipeline.signal_filter import FILTERING, Filter, with_dead_zone
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.validation.prediction import validate

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
    seen = find_identifiable(A)
    back = np.zeros((base.n_base, len(given.names)))
    back[seen.mask] = np.linalg.pinv(A[:, seen.mask])
    standard = found.standard
    assert isinstance(standard, Parameters)
    if not found.outcome.usable:  # the coefficients as they are, with no body that has them
        nominal = base.base_values(robot.parameters)
        standard = base_to_standard(base, np.where(seen.mask, back @ given.values, nominal), robot.parameters)
    outcome = found.outcome
    if outcome is Outcome.SOLVED and not seen.mask.all():
        outcome = Outcome.RANK_DEFICIENT
    columns = given.values, grouping.K @ standard.values, given.sigma_percent
    listed = zip(given.names, *(column.tolist() for column in columns), strict=True)
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
        details={
            **found.details,
            "cost": found.cost,
            "lower_bound": found.lower_bound,
            "gap": found.gap,
            "gap_share": found.gap_share,
            "violated": dict(found.violated),
            "degrees_of_freedom": given.degrees_of_freedom,
            "coefficients": [
                {"name": name, "given": value, "retrieved": other, "sigma_percent": spread}
                for name, value, other, spread in listed
            ],
        },
    )


def _carried(back: Array, covariance: Array) -> Array:
    """Covariance of ``back c``; NaN for whatever rests on a coefficient whose own is not known."""
    known = np.nan_to_num(covariance)
    carried = back @ known @ back.T
    unknown = (np.abs(back) > 1e-9) @ np.isnan(np.diag(covariance)).astype(float) > 0.0
    carried[unknown, :] = carried[:, unknown] = np.nan
    return np.asarray(carried)


# Files --------------------------------------------------------------------------------------------------------
def read_coefficients(path: str | Path, robot: Robot) -> Coefficients:
    """Coefficients from CSV.

    Effects of the robot of which no parameter is named are left out of it: the coefficients know nothing of them, and base
    parameters are named without them.
    """
    place = Path(path)
    rows = value_rows(place, "coefficients")
    terms = [_terms(row, number, place) for number, row in rows]
    mentioned = {name for one in terms for name in one}
    kept = [effect for effect in robot.effects if effect_symbols(robot, effect.name) & mentioned]
    model = robot.with_effects(kept)
    base = reduce_to_base(model)
    K = np.zeros((len(rows), len(model.parameters)))
    for i, ((number, row), one) in enumerate(zip(rows, terms, strict=True)):
        K[i] = _combination(row, one, model, base, f"line {number} of '{place}'")
    names = [row.get("name") or row["expression"] for _, row in rows]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"coefficient '{twice[0]}' stands {names.count(twice[0])} times in '{place}', expected once")
    values = np.array([number_in(row["value"], "value", number, place) for number, row in rows])
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


def csv_table(place: Path, what: str) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Header and lines of a CSV file, with their numbers in the file."""
    lines = csv_lines(place, what, "is" if what == "grouping" else "are")
    if len(lines) < 2:
        raise InputError(
            f"no line below the header of {what} '{place}', found {len(lines)} lines, expected one for each value"
        )
    header = lines[0][1]
    for number, row in lines[1:]:
        if len(row) != len(header):
            raise InputError(f"line {number} of '{place}' has {len(row)} cells, expected {len(header)} as in its header")
    return header, lines[1:]


def value_rows(place: Path, what: str, *, free: bool = False) -> list[tuple[int, Mapping[str, str]]]:
    """The lines of a table of values with their numbers in the file, by column; ``free``: the column ``value`` alone is enough."""
    header, lines = csv_table(place, what)
    columns = [name.lower() for name in header]
    enough = "value" in columns and (free or "name" in columns or "expression" in columns)
    if not enough or not set(columns) <= set(COLUMNS) or len(set(columns)) < len(columns):
        expected = "value and, if there is one, name" if free else "name or expression, value and, if known, sigma_percent"
        raise InputError(f"{what} '{place}' have the columns {', '.join(header)}, expected {expected}")
    return [(number, dict(zip(columns, row, strict=True))) for number, row in lines]


def _terms(row: Mapping[str, str], number: int, place: Path) -> dict[str, float]:
    """Parameters of a coefficient with their factors; for a base parameter its own name."""
    if row.get("expression"):
        return linear_terms(row["expression"], f"line {number} of '{place}':")
    if not row.get("name"):
        raise InputError(f"line {number} of '{place}' has neither a name nor an expression")
    return {parameter_name(row["name"]): 1.0}


def effect_symbols(robot: Robot, effect: str) -> set[str]:
    """Names of the parameters of one effect of a robot."""
    alone = robot.with_effects([one for one in robot.effects if one.name == effect]).parameters
    return set(alone.names[alone.n_inertial :])


def _index(robot: Robot, name: str, where: str) -> int:
    try:
        return robot.parameters.index(name)
    except UnknownNameError as error:
        raise UnknownNameError("parameter", name, error.available, where) from None


def number_in(text: str, what: str, number: int, place: Path) -> float:
    """A finite number in a line of a table."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"{what} in line {number} of '{place}' is '{text}', expected a number")
    return value


def _sigma(row: Mapping[str, str], number: int, place: Path) -> float:
    """A standard deviation in percent; NaN where the cell is empty."""
    if not row.get("sigma_percent"):
        return math.nan
    value = number_in(row["sigma_percent"], "sigma_percent", number, place)
    if value < 0.0:
        raise InputError(f"sigma_percent in line {number} of '{place}' is {value:g}, expected zero or a positive number")
    return value


def left_out(names: Sequence[str], spreads: Sequence[float]) -> str:
    """Coefficients with their standard deviations, for a note."""
    return ", ".join(f"{name} ({spread:.3g} %)" for name, spread in zip(names, spreads, strict=True))


_NOT_WITH = ("friction", "split", "fix_bodies")


def retrieve_run(robot: Robot, logs: Sequence[Path], settings: Settings, tell: Tell = silent) -> IdentificationResult:
    """A run from the coefficients that the settings name; ``logs`` validate it."""
    started = time.perf_counter()
    _refuse_other_options(settings)
    tell("reading the coefficients")
    given, read, earlier = _read(Path(str(settings.coefficients)), robot)
    kept, notes = _kept(given, settings.drop_above)
    method = method_of(settings, kept.robot, tell)
    assert isinstance(method, PenaltyRetrieval)
    tell("estimating by retrieve")
    result, verdict = check_feasibility(retrieve_estimate(method, kept), kept.robot, settings, keep=True)
    run = IdentificationResult(
        settings=settings,
        robot=kept.robot,
        estimate=result,
        identification=None,
        validation=None,
        filter=None,
        rows=RowPlan(COEFFICIENTS),
        notes=(*kept.robot.source.notes, *read, *notes, *_notes(kept, result, verdict)),
        feasibility=verdict,
    )
    without = (
        "no log was given, so torque errors are not known and what the joints carry is not stated; "
        "validate it with dynid validate RUN LOG --cutoff-hz F"
    )
    run = _validated(run, logs, earlier, tell) if logs else replace(run, notes=(*run.notes, without))
    return replace(run, seconds=time.perf_counter() - started)


def _refuse_other_options(settings: Settings) -> None:
    if settings.method != "retrieve":
        raise InputError(
            f"coefficients '{settings.coefficients}' are for --method retrieve, which finds feasible parameters for them, and the "
            f"method is '{settings.method}': give --method retrieve"
        )
    changed = settings.changed()
    for name in _NOT_WITH:
        if name in changed:
            flag = f"--{name.replace('_', '-')}"
            raise InputError(f"{flag} identifies from logs, coefficients '{settings.coefficients}' were given instead")


def _read(place: Path, robot: Robot) -> tuple[Coefficients, list[str], IdentificationResult | None]:
    """Coefficients of a run folder or of a table, what is to be said of them, and the run."""
    if place.is_dir() or place.name == "run.json":
        return _of_run(place if place.is_dir() else place.parent, robot)
    found = read_coefficients(place, robot)
    known = {effect.name for effect in found.robot.effects}
    gone = [effect.name for effect in robot.effects if effect.name not in known]
    notes = [f"{len(found.names)} coefficients of {place.name} are the data of this run"]
    if gone:
        notes.append(f"no coefficient of {place.name} names a parameter of {', '.join(gone)}: left out of the model")
    foreign = found.foreign(reduce_to_base(found.robot))
    if foreign:
        notes.append(
            f"no motion of this robot shows {', '.join(foreign)} of {place.name}: the table may be of another description"
        )
    return found, notes, None


def _of_run(folder: Path, robot: Robot) -> tuple[Coefficients, list[str], IdentificationResult]:
    run = load_robot_result(folder)
    if robot.source.sha256 != run.robot.source.sha256:
        raise InputError(f"run '{folder}' was made from another description of the robot than '{robot.source.path}'")
    found = run.estimate
    given = Coefficients(
        run.robot,
        found.base.names,
        found.base.K,
        found.base_values,
        found.covariance,
        float(found.details.get("degrees_of_freedom", max(found.n_rows - found.rank, 1))),
        (found.condition_number, found.condition_number_scaled),
    )
    notes = [f"base values of run '{folder}' by {found.method} are the data of this run"]
    unseen = np.array([origin == "prior" for origin in found.origin])
    if unseen.any():
        names = [name for name, out in zip(found.base.names, unseen, strict=True) if out]
        notes.append(f"left out, the data of run '{folder}' do not show them: {', '.join(names)}")
    return given.without(unseen), notes, run


def _kept(given: Coefficients, most_percent: float | None) -> tuple[Coefficients, list[str]]:
    """The coefficients that are known well enough, and what was left out."""
    if most_percent is None:
        return given, []
    spread = given.sigma_percent
    if np.isnan(spread).all():
        raise InputError("--drop-above needs standard deviations, the coefficients have none: give the column sigma_percent")
    drop = spread > most_percent  # NaN is not above anything: what is not known to be vague stays
    if drop.all():
        raise InputError(
            f"every coefficient has a standard deviation above {most_percent:g} %, none is left to retrieve from"
        )
    if not drop.any():
        return given, [f"no coefficient has a standard deviation above {most_percent:g} %"]
    names = [name for name, out in zip(given.names, drop, strict=True) if out]
    text = f"left out, their standard deviation is above {most_percent:g} %: {left_out(names, spread[drop].tolist())}"
    return given.without(drop), [text]


def _notes(given: Coefficients, result: Estimate, verdict: Feasibility) -> list[str]:
    """What the coefficients leave open."""
    notes = [result.base.note] if result.base.note else []
    missing = [name for name, origin in zip(result.base.names, result.origin, strict=True) if origin == "prior"]
    if missing:
        notes.append(
            f"{len(given.names)} coefficients fix {result.rank} of {result.base.n_base} base parameters; these follow from the "
            f"constraints and the description alone: {', '.join(missing)}"
        )
    model, _ = with_links_apart(given.robot.with_parameters(result.standard), given.robot)
    return [*notes, *consistency_notes(model, verdict), *result.notes]


def _validated(
    run: IdentificationResult, paths: Sequence[Path], earlier: IdentificationResult | None, tell: Tell
) -> IdentificationResult:
    """The run with its error on logs that it has not seen."""
    tell("reading the logs")
    seen = () if earlier is None else (*earlier.logs, *earlier.validation_logs)
    logs = open_unseen(run.robot, paths, run.settings, seen=seen, in_memory=True)
    filtered = _filter(run, logs, earlier)
    if earlier is None:
        run = replace(run, robot=with_dead_zone(run.robot, logs.recordings, filtered, run.settings))
    tell("predicting torque")
    unseen = logs.filtered(filtered, run.settings.max_rows).under_load(run.model)
    wrenches = largest_joint_wrench(run.model, [(one.position, one.velocity, one.acceleration) for one in unseen.windows])
    details = {**run.estimate.details, "largest_joint_wrench": wrenches}
    return replace(
        run,
        estimate=replace(run.estimate, details=details),
        validation=validate(run.robot, run.estimate, unseen.samples, filtered.row_band_hz),
        filter=filtered,
        validation_logs=logs.files,
        notes=(*run.notes, *logs.notes),
        data=Data(logs.without_rows(), logs.without_rows(), unseen),
    )


def _filter(run: IdentificationResult, logs: Logs, earlier: IdentificationResult | None) -> Filter:
    """The filter of the run that the coefficients come from, or the one that the settings fix."""
    settings, changed = run.settings, run.settings.changed()
    if earlier is not None and earlier.filter is not None and not any(name in changed for name in FILTERING):
        return earlier.filter
    if settings.cutoff_hz == "auto" and settings.filter == "butterworth":
        raise InputError(
            f"{logs.paths[0]} validates what coefficients gave, which have no filter for a motion log: give --cutoff-hz F"
        )
    return chosen_filter(run.robot, logs.recordings, settings)[0]
