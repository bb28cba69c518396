"""Robots identified again from a store, any subset of its rows, without the logs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from dynid.apps.fleet.changes import Change, changes_of
from dynid.apps.fleet.information import Followed, Monitored, Reducer, by_day, errors_of, follow, noise_of, with_stored_noise
from dynid.apps.fleet.row_query import RobotRows, RowQuery, map_robots
from dynid.apps.fleet.store import Store, open_store
from dynid.engine import Serial, Tell, engine_from, one_blas_thread, silent
from dynid.errors import InputError
from dynid.estimation.estimate import estimate
from dynid.estimation.result import Method
from dynid.option_types import options_of
from dynid.pipeline.estimate_checks import check_feasibility, estimate_warnings
from dynid.pipeline.folder import save_result
from dynid.pipeline.option_groups import ESTIMATION, WORK
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.robot_setup import method_of
from dynid.validation.prediction import row_error_of


@dataclass(frozen=True, eq=False)
class StoredRobot:
    """One robot identified from a store."""

    id: str
    run: IdentificationResult
    days: tuple[Mapping[str, Any], ...]
    """Errors of the rows of each day and condition: ``relative_error`` by this estimate, ``held_out`` by that from all other rows."""
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
                "days": list(self.days),
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
            return (save_result(self.robots[0].run, target),)
        names = [robot.id.replace("/", "_") for robot in self.robots]
        if len(set(names)) < len(names):
            raise InputError("two robots have the same name but for a slash: write their runs apart with --robot")
        return tuple(save_result(robot.run, target / name) for robot, name in zip(self.robots, names, strict=True))


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

    Returns:
        a run for each robot, in the order of their names.

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
        query = RowQuery.of(where, robots, from_day, to_day)
        own = opened.run
        # options of the estimate and where it runs; those of model and rows are the store's
        free, given = options_of(Settings, ESTIMATION, WORK), settings or Settings()
        options = replace(own.settings, **{one.name: getattr(given, one.name) for one in free})
        engine = engine_from(options.engine)
        method = (
            method_of(options, own.robot, tell) if isinstance(engine, Serial) else None
        )  # else each worker makes its own
        work = partial(_identify_robot, settings=options, method=method)
        found = map_robots(work, opened, query, engine, tell)
        changes = changes_of([followed for _, followed in found])  # by all robots, as 'dynid fleet' has it
    robots_found = tuple(replace(robot, changes=changes.get(robot.id)) for robot, _ in found)
    return StoreIdentification(opened, robots_found, time.perf_counter() - started)


def _identify_robot(
    store: Store, name: str, entries: RobotRows, settings: Settings, method: Method | None = None
) -> tuple[StoredRobot, Followed]:
    """One robot, and its days."""
    own, base = store.run, store.base
    regression = store.merged(entries)
    result = estimate(regression, base, method or method_of(settings, own.robot))
    sigma = noise_of(entries)
    reducer = Reducer(store.channels, base)
    each = [reducer.information(entry, sigma) for entry in entries]
    result = with_stored_noise(result, entries, each)
    result, verdict = check_feasibility(result, own.robot, settings)
    days, held_out = errors_of(result, entries, each, store.channels)
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
        notes=estimate_warnings(result, own.robot, None, verdict),
    )
    return StoredRobot(name, run, days, held_out, None), follow(name, by_day(each), Monitored.of(own.robot, base))
