"""Robots identified again from a store, any subset of its rows, without the logs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dynid.adapters.blas import one_blas_thread
from dynid.arrays import Array
from dynid.engine import Serial, engine_from
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.linear import relative
from dynid.estimation.result import Estimate, Method
from dynid.fleet.changes import ALARM_RATE, Change, changes_of
from dynid.fleet.choice import Choice
from dynid.fleet.daily import Monitored, follow
from dynid.fleet.entry import Entry, Key, merged
from dynid.fleet.information import Information, Reducer, by_day, noise_of, safe_inverse, total_of
from dynid.fleet.store import Store, open_store
from dynid.progress import Tell, silent
from dynid.run.gate import gate
from dynid.run.judged import judged
from dynid.run.motion import method_of
from dynid.run.options import Fit, Settings, Work
from dynid.run.record import Run
from dynid.run.store import save_run
from dynid.validation.rows import row_error_of


@dataclass(frozen=True, eq=False)
class DayError:
    """Errors of the rows of one day and condition."""

    key: Key
    rows: int
    error: float
    """By the estimate from all rows."""
    held_out: float
    """By the estimate from all other rows; NaN where there are none."""

    def as_dict(self) -> dict[str, Any]:
        return {
            "day": self.key.day.isoformat(),
            "condition": dict(self.key.condition),
            "rows": self.rows,
            "relative_error": self.error,
            "held_out": self.held_out,
        }


@dataclass(frozen=True, eq=False)
class StoredRobot:
    """One robot identified from a store."""

    id: str
    run: Run
    days: tuple[DayError, ...]
    held_out_error: float
    """Error of rows that took no part in the estimate: of each row of the store by the others, or for a single one of its
    last part by its first."""
    changes: tuple[Change, ...] | None
    """Changes from one day to the next beyond chance; None where there are too few days to tell."""

    @property
    def alarm(self) -> bool | None:
        return None if self.changes is None else bool(self.changes)

    def summary(self) -> dict[str, Any]:
        """What scripts rely on, under fixed names."""
        found = self.run.summary()
        names = ("method", "outcome", "n_base", "rank", "condition_number", "feasible", "intervals", "base", "notes")
        return {
            "id": self.id,
            "estimate": {name: found[name] for name in names}
            | {
                "n_rows": self.run.estimate.n_rows,
                "relative_error": self.run.estimate.relative_error,
                "held_out_error": self.held_out_error,
                "days": [day.as_dict() for day in self.days],
            },
            "alarm": self.alarm,
            "changes": None if self.changes is None else [change.as_dict() for change in self.changes],
        }


@dataclass(frozen=True, eq=False)
class StoreIdentification:
    """Robots identified from a store."""

    store: Store
    robots: tuple[StoredRobot, ...]
    seconds: float

    def summary(self) -> dict[str, Any]:
        """What scripts rely on, under fixed names."""
        return {
            "store": str(self.store.folder),
            "rows": sum(len(robot.days) for robot in self.robots),
            "robots": [robot.summary() for robot in self.robots],
            "seconds": self.seconds,
        }

    def save(self, folder: str | Path) -> tuple[Path, ...]:
        """Write a run for each robot: into the folder for one robot, into folders inside it for several."""
        target = Path(folder)
        if len(self.robots) == 1:
            return (save_run(self.robots[0].run, target),)
        names = [robot.id.replace("/", "_") for robot in self.robots]
        if len(set(names)) < len(names):
            raise InputError("two robots have the same name but for a slash: write their runs apart with --robot")
        return tuple(save_run(robot.run, target / name) for robot, name in zip(self.robots, names, strict=True))


def identify_store(
    store: Store | str | Path,
    *,
    where: str | None = None,
    robots: Sequence[str] = (),
    from_day: str | None = None,
    to_day: str | None = None,
    settings: Settings | None = None,
    tell: Tell = silent,
) -> StoreIdentification:
    """Identify robots from the rows of a store.

    Args:
        store: a store, or its folder.
        where: comparisons joined by ``and``: of ``robot``, ``day`` or conditions by name.
        robots: only these.
        from_day: the first day.
        to_day: the last day.
        settings: options of the estimate; by default those of the command line.
        tell: called with a short text before each step.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> _ = dynid.add_to_store(
        ...     "arm.urdf", "log.csv", "store", robot_id="R1", day="2026-03-01", cutoff_hz=20.0, effects="viscous"
        ... )
        >>> found = dynid.identify_store("store", where="robot=R1 and day>=2026-01-01")
        >>> [robot.id for robot in found.robots], found.robots[0].run.estimate.feasible
        (['R1'], True)
    """
    started = time.perf_counter()
    opened = store if isinstance(store, Store) else open_store(store)
    with one_blas_thread():
        choice = Choice.of(where, robots, from_day, to_day)
        own = opened.run
        options = replace(own.settings, **_fit_of(settings or Settings()))
        engine = engine_from(options.engine)
        if isinstance(engine, Serial):
            method, found = method_of(options, own.robot, tell), list[StoredRobot]()
            for name, entries in choice.by_robot(opened):
                tell(f"robot {name}")
                found.append(_identified(opened, name, entries, method, options))
        else:
            next(choice.by_robot(opened, light=True))  # names that the store does not have are refused before any work
            work, names = _OfRobot(opened.folder, choice, options), choice.robots or opened.robots
            each = engine.map(work, names, lambda done, count: tell(f"robot {done} of {count}"))
            found = [one for one in each if one is not None]
    return StoreIdentification(opened, tuple(found), time.perf_counter() - started)


@dataclass(frozen=True)
class _OfRobot:
    """One robot after another, its rows read where it is identified."""

    folder: Path
    choice: Choice
    settings: Settings

    def __call__(self, name: str) -> StoredRobot | None:
        store, choice = open_store(self.folder), self.choice
        entries = list(store.entries([name], choice.first, choice.last, choice.keeps))
        if not entries:
            return None
        with one_blas_thread():
            return _identified(store, name, entries, method_of(self.settings, store.run.robot), self.settings)


def _fit_of(settings: Settings) -> dict[str, Any]:
    """Options of the estimate and where it runs; those of model and rows are the store's."""
    return {name: getattr(settings, name) for name in (*Fit.__dataclass_fields__, *Work.__dataclass_fields__)}


def _identified(store: Store, name: str, entries: Sequence[Entry], method: Method, settings: Settings) -> StoredRobot:
    own, base = store.run, store.base
    regression = merged(entries, store.channels, own.robot.parameters)
    result = estimate(regression, base, method)
    sigma = noise_of(entries)
    reducer = Reducer(store.channels, base)
    each = [reducer.information(entry, sigma) for entry in entries]
    result = with_stored_noise(result, entries, each)
    result, verdict = judged(result, own.robot, settings)
    days, held_out = _errors(result, entries, each, store)
    run = replace(
        own,
        settings=settings,
        estimate=result,
        identification=None,
        validation=None,
        row_error=row_error_of(regression, result, own.rows.kind),
        row_validation=None,
        logs=tuple(log for entry in entries for log in entry.logs),
        validation_logs=(),
        feasibility=verdict,
        verdict=None,
        replay=None,
        advice=(),
        checks=(),
        comparisons=(),
        notes=gate(result, own.robot, None, verdict),
    )
    followed = follow(name, by_day(each), Monitored.of(own.robot, base))
    return StoredRobot(name, run, days, held_out, changes_of([followed], ALARM_RATE).get(name))


def with_stored_noise(result: Estimate, entries: Sequence[Entry], each: Sequence[Information]) -> Estimate:
    """The estimate with its uncertainty widened (or narrowed) by the colour of the noise that was stored with the rows.

    The triangles alone take every row for independent. The stored noise gives the standard deviation of each base value
    with and without that assumption; their ratio is applied to what the method found.
    """
    total = total_of(each)
    inverse, _ = safe_inverse(total.H)
    white = np.sqrt(np.maximum(np.diag(inverse), 0.0))
    coloured = np.sqrt(np.maximum(np.diag(inverse @ total.M @ inverse), 0.0))
    ratio = np.where(white > 0.0, coloured / np.where(white > 0.0, white, 1.0), 1.0)
    freedom = float(sum(entry.noise_freedom for entry in entries))
    details = dict(result.details) | {"covariance": "corrected", "degrees_of_freedom": freedom}
    return replace(result, covariance=result.covariance * np.outer(ratio, ratio), details=details)


def _errors(
    result: Estimate, entries: Sequence[Entry], each: Sequence[Information], store: Store
) -> tuple[tuple[DayError, ...], float]:
    """Errors of every entry, by the estimate and by a weighted fit to all the others."""
    total = total_of(each)
    days, left, size = [], 0.0, 0.0
    for entry, own in zip(entries, each, strict=True):
        norms = np.sqrt(entry.torque_energy)
        held = float("nan")
        if len(entries) > 1:
            inverse, _ = safe_inverse(total.H - own.H)
            missed = _left(entry, inverse @ (total.g - own.g), store)
            held = relative(missed, norms)
            left, size = left + float(missed @ missed), size + float(norms @ norms)
        days.append(DayError(entry.key, sum(entry.rows), relative(_left(entry, result.base_values, store), norms), held))
    whole = float(np.sqrt(left / size)) if size > 0.0 else entries[0].held_out_error
    return tuple(days), whole


def _left(entry: Entry, beta: Array, store: Store) -> Array:
    """Norm of what base values leave of every channel of an entry."""
    phi = store.base.lift @ beta
    return np.array(
        [
            np.linalg.norm(triangle[:, -1] - triangle[:, :-1] @ channel.values(phi))
            for triangle, channel in zip(entry.triangles, store.channels, strict=True)
        ]
    )
