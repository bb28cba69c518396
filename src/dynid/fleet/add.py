"""Logs into a store: read once, made into triangles, appended."""

from __future__ import annotations

import datetime
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynid.adapters.blas import one_blas_thread
from dynid.adapters.urls import UrlPath
from dynid.errors import InputError
from dynid.fleet.entry import Key
from dynid.fleet.fixed import reading_of, refuse_other_robot
from dynid.fleet.store import Store, create_store, open_store
from dynid.fleet.triangles import entry_of
from dynid.progress import Tell, silent
from dynid.recording.readers.log_file import LogFile
from dynid.robot.model import Robot
from dynid.run.identify import identify
from dynid.run.log_paths import log_paths
from dynid.run.options import Settings
from dynid.run.record import Run


@dataclass(frozen=True)
class Added:
    """What one addition did."""

    store: Path
    key: Key
    file: Path | None
    """The row that was written; None where every log was there already."""
    logs: tuple[str, ...]
    """Logs that were added."""
    skipped: tuple[str, ...]
    """One sentence per log that was there already."""
    notes: tuple[str, ...]
    made: bool
    """Whether the store was made by this addition."""
    seconds: float
    warnings: tuple[str, ...] = ()
    """What speaks against the logs, though they were added."""

    def summary(self) -> dict[str, Any]:
        """What scripts rely on, under fixed names."""
        return {
            "store": str(self.store),
            "robot": self.key.robot,
            "day": self.key.day.isoformat(),
            "condition": dict(self.key.condition),
            "added": list(self.logs),
            "skipped": list(self.skipped),
            "file": None if self.file is None else str(self.file),
            "made": self.made,
            "notes": list(self.notes),
            "warnings": list(self.warnings),
            "seconds": self.seconds,
        }


def add_to_store(
    robot: Robot | str | Path,
    logs: Sequence[str | Path] | str | Path,
    store: str | Path,
    *,
    robot_id: str | None = None,
    day: str | datetime.date | None = None,
    condition: Mapping[str, str] | None = None,
    tell: Tell = silent,
    **options: Any,
) -> Added:
    """Add the logs of one robot and day to a store, which is made if it is missing.

    The first logs of a store decide its filter, rows and friction with its inner numbers, as :func:`dynid.identify` does;
    these stay what they are for all that is added later.

    Args:
        robot: path of the description, or the robot.
        logs: motion logs of one robot and one day.
        store: folder of the store.
        robot_id: which robot of this model; default: the name in the description.
        day: of the logs, such as 2026-03-01; default: the day at which their files were last changed (UTC).
        condition: what else may matter, such as temperature or tool, by name.
        tell: called with a short text before each step.
        options: settings by name; those of the model and of the rows only where the store is made. ``engine`` says where triangles
            are made, ``stream`` whether logs are read piece by piece, as for :func:`dynid.identify`.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> first = dynid.add_to_store(
        ...     "arm.urdf", "log.csv", "store", robot_id="R1", day="2026-03-01", cutoff_hz=20.0, effects="viscous"
        ... )
        >>> again = dynid.add_to_store("arm.urdf", "log.csv", "store", robot_id="R1", day="2026-03-02")
        >>> len(first.logs), again.skipped
        (1, ('log.csv is in the store already (robot R1, 2026-03-01) and was skipped',))
    """
    started = time.perf_counter()
    paths = log_paths(logs)
    if not paths:
        raise InputError("no log was given, expected at least one")
    place = Path(store)
    exists = (place / "store.json").is_file()
    name = robot_id if robot_id is not None else (robot.name if isinstance(robot, Robot) else None)
    with one_blas_thread():
        when = _day(day, paths)
        if exists:
            opened = open_store(place)
            settings = reading_of(opened.run, options, place)
            refuse_other_robot(opened.run, robot, place)
            run = opened.run
        else:
            opened, run = None, _first_run(robot, paths, place, options, tell)
            settings = reading_of(run, options, place)
        key = Key(name if name is not None else run.robot.name, when, condition or {})
        new, skipped = _sorted_out(opened, paths)
        if not new:
            assert opened is not None
            return Added(place, key, None, (), skipped, (), False, time.perf_counter() - started)
        tell("making triangles")
        entry, channels, notes, warnings = entry_of(run, new, key, settings)
        if opened is None:
            opened = create_store(place, run, channels)
        elif not all(own.matches(other) for own, other in zip(opened.channels, channels, strict=True)):
            raise InputError(
                f"store '{place}' has triangles over other columns than these rows: expected the same structure"
            )
        file = opened.add(entry)
    return Added(
        place,
        key,
        file,
        tuple(str(path) for path in new),
        skipped,
        notes,
        not exists,
        time.perf_counter() - started,
        warnings,
    )


def _first_run(robot: Robot | str | Path, paths: list[Path], place: Path, options: Mapping[str, Any], tell: Tell) -> Run:
    """The run that decides filter, rows and friction of a new store."""
    settings = Settings.from_dict(options)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise InputError(f"'{place}' exists and is no store, expected a new name or an empty folder")
    run = identify(robot, paths, settings, tell=tell)
    if run.filter is None:
        raise InputError(f"{paths[0]} is a table of poses, expected a motion log: a store keeps motion")
    return run


def _sorted_out(store: Store | None, paths: Sequence[Path]) -> tuple[list[Path], tuple[str, ...]]:
    """Logs that the store does not have yet, and a sentence on each that it has."""
    if store is None:
        return list(paths), ()
    new, skipped = [], []
    for path in paths:
        if not path.exists():
            raise InputError(f"log '{path}' does not exist")
        with LogFile(path) as file:
            place = store.place_of(file.sha256)
        if place is None:
            new.append(path)
        else:
            skipped.append(f"{path.name} is in the store already ({store.key_at(place).describe()}) and was skipped")
    return new, tuple(skipped)


def parsed_day(day: str | datetime.date, what: str) -> datetime.date:
    """A day as ``YYYY-MM-DD``."""
    if isinstance(day, datetime.date):
        return day
    try:
        return datetime.date.fromisoformat(day)
    except ValueError:
        raise InputError(f"{what} is '{day}', expected a day such as 2026-03-01") from None


def _day(day: str | datetime.date | None, paths: Sequence[Path]) -> datetime.date:
    if day is not None:
        return parsed_day(day, "--day")
    days: dict[datetime.date, Path] = {}
    for path in paths:
        if not path.exists():
            raise InputError(f"log '{path}' does not exist")
        if isinstance(path, UrlPath):
            raise InputError(f"log '{path}' is a URL, whose day of change is not known: give --day")
        changed = datetime.datetime.fromtimestamp(path.stat().st_mtime, tz=datetime.UTC)
        days.setdefault(changed.date(), path)
    if len(days) > 1:
        (one, first), (two, second), *_ = sorted(days.items())
        raise InputError(
            f"'{first}' was last changed on {one}, '{second}' on {two}: give --day, or add the logs of each day by themselves"
        )
    return next(iter(days))
