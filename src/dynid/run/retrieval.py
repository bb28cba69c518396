"""Retrieval in two steps: the coefficients are known, from a run or a table, and feasible parameters are found for them.

No log is needed. Logs that are given validate: they have no part in the result.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from dynid.errors import InputError
from dynid.estimation.convex.verdict import Verdict
from dynid.estimation.result import Estimate
from dynid.estimation.retrieval.coefficients import Coefficients, left_out, read_coefficients, retrieve_estimate
from dynid.estimation.retrieval.joint_wrench import largest_joint_wrench
from dynid.estimation.retrieval.retrieve import PenaltyRetrieval
from dynid.progress import Tell, silent
from dynid.regression.base import reduce_to_base
from dynid.robot.model import Robot
from dynid.run.gate import consistency_notes
from dynid.run.judged import judged
from dynid.run.logs import Logs, read_unseen
from dynid.run.motion import chosen_filter, method_of, under_load
from dynid.run.options import Settings
from dynid.run.record import COEFFICIENTS, Run
from dynid.run.rows import RowPlan
from dynid.run.signals import FILTERING, Filter, to_samples, with_dead_zone
from dynid.run.store import load_run
from dynid.validation.torque import validate

_NOT_WITH = ("friction", "split", "keep_bodies")


@dataclass(frozen=True, eq=False)
class _Source:
    """Where coefficients come from: what a run brings beside them, and what is to be said."""

    coefficients: Coefficients
    notes: tuple[str, ...] = ()
    run: Run | None = None


def retrieve_run(robot: Robot, logs: Sequence[Path], settings: Settings, tell: Tell = silent) -> Run:
    """A run from the coefficients that the settings name; ``logs`` validate it."""
    started = time.perf_counter()
    _refuse_other_options(settings)
    tell("reading the coefficients")
    source = _read(Path(str(settings.coefficients)), robot)
    kept, notes = _kept(source.coefficients, settings.drop_above)
    method = method_of(settings, kept.robot, tell)
    assert isinstance(method, PenaltyRetrieval)
    tell("estimating by retrieve")
    result, verdict = judged(retrieve_estimate(method, kept), kept.robot, settings, keep=True)
    run = Run(
        settings=settings,
        robot=kept.robot,
        estimate=result,
        identification=None,
        validation=None,
        filter=None,
        rows=RowPlan(COEFFICIENTS),
        notes=(*kept.robot.source.notes, *source.notes, *notes, *_notes(kept, result, verdict)),
        feasibility=verdict,
    )
    run = _validated(run, logs, source.run, tell) if logs else _without_data(run)
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


def _read(place: Path, robot: Robot) -> _Source:
    """Coefficients of a run folder or of a table."""
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
    return _Source(found, tuple(notes))


def _of_run(folder: Path, robot: Robot) -> _Source:
    run = load_run(folder)
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
    return _Source(given.without(unseen), tuple(notes), run)


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


def _notes(given: Coefficients, result: Estimate, verdict: Verdict) -> list[str]:
    """What the coefficients leave open."""
    notes = [result.base.note] if result.base.note else []
    missing = [name for name, origin in zip(result.base.names, result.origin, strict=True) if origin == "prior"]
    if missing:
        notes.append(
            f"{len(given.names)} coefficients fix {result.rank} of {result.base.n_base} base parameters; these follow from the "
            f"constraints and the description alone: {', '.join(missing)}"
        )
    return [*notes, *consistency_notes(result, given.robot, verdict), *result.notes]


def _without_data(run: Run) -> Run:
    note = (
        "no log was given, so torque errors are not known and what the joints carry is not stated; "
        "validate it with dynid validate RUN LOG --cutoff-hz F"
    )
    return replace(run, notes=(*run.notes, note))


def _validated(run: Run, paths: Sequence[Path], earlier: Run | None, tell: Tell) -> Run:
    """The run with its error on logs that it has not seen."""
    tell("reading the logs")
    seen = () if earlier is None else (*earlier.logs, *earlier.validation_logs)
    logs = read_unseen(run.robot, paths, run.settings, seen=seen)
    filtered = _filter(run, logs, earlier)
    if earlier is None:
        run = replace(run, robot=with_dead_zone(run.robot, logs.recordings, filtered, run.settings))
    tell("predicting torque")
    unseen = under_load(run, [to_samples(recording, filtered, run.settings.max_rows) for recording in logs.recordings])
    wrenches = largest_joint_wrench(run.identified, [(one.position, one.velocity, one.acceleration) for one in unseen])
    details = {**run.estimate.details, "largest_joint_wrench": wrenches}
    return replace(
        run,
        estimate=replace(run.estimate, details=details),
        validation=validate(run.robot, run.estimate, unseen, filtered.row_band_hz),
        filter=filtered,
        validation_logs=tuple(zip(logs.paths, logs.hashes, strict=True)),
        notes=(*run.notes, *logs.notes),
        unseen=unseen,
    )


def _filter(run: Run, logs: Logs, earlier: Run | None) -> Filter:
    """The filter of the run that the coefficients come from, or the one that the settings fix."""
    settings, changed = run.settings, run.settings.changed()
    if earlier is not None and earlier.filter is not None and not any(name in changed for name in FILTERING):
        return earlier.filter
    if settings.cutoff_hz == "auto" and settings.filter == "butterworth":
        raise InputError(
            f"{logs.paths[0]} validates what coefficients gave, which have no filter for a motion log: give --cutoff-hz F"
        )
    return chosen_filter(run.robot, logs.recordings, settings)[0]
