"""Logs into a store: read once, made into triangles, appended."""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dynid.apps.fleet.entry import Entry, Key, parse_day
from dynid.apps.fleet.make_entry import entry_of_logs
from dynid.apps.fleet.store import Store, create_store, open_store, reading_of, refuse_other_robot
from dynid.engine import Tell, engine_from, one_blas_thread, silent
from dynid.errors import InputError
from dynid.io.logs.log_file import LogFile, UrlPath
from dynid.io.logs.paths import log_paths
from dynid.model.robot import Robot
from dynid.pipeline.data import open_unseen
from dynid.pipeline.identify import identify
from dynid.pipeline.log import Logs
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.validate import UNLIKE, misread_logs
from dynid.validation.prediction import row_error_of


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

    Returns:
        the logs that were added, those skipped because the store has them, and notes.

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
            if place.exists() and (not place.is_dir() or any(place.iterdir())):
                raise InputError(f"'{place}' exists and is no store, expected a new name or an empty folder")
            # the run that decides filter, rows and friction of a new store
            opened, run = None, identify(robot, paths, Settings.from_dict(options), tell=tell)
            if run.filter is None:
                raise InputError(f"{paths[0]} is a table of poses, expected a motion log: a store keeps motion")
            settings = reading_of(run, options, place)
        key = Key(name if name is not None else run.robot.name, when, condition or {})
        new, skipped = _sorted_out(opened, paths)
        if not new:
            assert opened is not None
            return Added(place, key, None, (), skipped, (), False, time.perf_counter() - started)
        tell("making triangles")
        entry, channels, found, warnings = _entry_of_logs(run, new, key, settings)
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
        found.paths,
        skipped,
        found.notes,
        not exists,
        time.perf_counter() - started,
        warnings,
    )


_FIELD = re.compile(r"\{(\w+)\}")


def keys_from_names(paths: Sequence[Path], pattern: str) -> dict[tuple[str, str, tuple[tuple[str, str], ...]], list[Path]]:
    """Logs by robot, day and conditions, which their names hold.

    Args:
        paths: the logs.
        pattern: of a file's name, such as ``{robot}_{day}.parquet``; names other than ``robot`` and ``day`` are conditions.
    """
    names = _FIELD.findall(pattern)
    for name in ("robot", "day"):
        if names.count(name) != 1:
            raise InputError(
                f"--pattern is '{pattern}', expected {{{name}}} once in it, such as '{{robot}}_{{day}}.parquet'"
            )
    if len(set(names)) < len(names):
        raise InputError(f"--pattern is '{pattern}', expected each name once")
    parts = _FIELD.split(pattern)
    fields = {"day": r"\d{4}-?\d{2}-?\d{2}"}
    regex = "".join(
        re.escape(part) if k % 2 == 0 else f"(?P<{part}>{fields.get(part, '.+?')})" for k, part in enumerate(parts)
    )
    found: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[Path]] = {}
    for path in paths:
        match = re.fullmatch(regex, path.name)
        if match is None:
            raise InputError(
                f"log '{path.name}' does not fit --pattern '{pattern}'; {{day}} is read as 2026-03-01 or 20260301"
            )
        told = match.groupdict()
        digits = told.pop("day").replace("-", "")
        day = f"{digits[:4]}-{digits[4:6]}-{digits[6:]}"
        found.setdefault((told.pop("robot"), day, tuple(sorted(told.items()))), []).append(path)
    return dict(sorted(found.items(), key=lambda item: item[0][1]))


def _entry_of_logs(
    run: IdentificationResult, paths: Sequence[Path], key: Key, settings: Settings
) -> tuple[Entry, Any, Logs, tuple[str, ...]]:
    """The logs filtered as the store's run was, as an entry; with the channels of its triangles, the logs used and warnings on them.

    The triangles show at no cost how far logs are from the store's run, and only logs that are far are checked.
    """
    found = open_unseen(run.robot, paths, settings).without_short()
    names = {str(path): path.name for path in paths}
    logs = [(names[path], digest) for path, digest in found.files]
    entry, regression = entry_of_logs(run, found, key, logs, engine_from(settings.engine), settings.max_rows)
    channels = [factor.channel for factor in regression.factors]
    error = row_error_of(regression, run.estimate).relative_error
    warnings: tuple[str, ...] = ()
    if error > UNLIKE:
        unlike = (
            f"the run that made the store leaves {100.0 * error:.0f} % of the torque of these logs unexplained: another load, another "
            "robot or another unit; 'dynid data' with the same flags looks into a log"
        )
        warnings = misread_logs(run, found.recordings, loaded=True) or (unlike,)
    return entry, channels, found, warnings


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


def _day(day: str | datetime.date | None, paths: Sequence[Path]) -> datetime.date:
    if day is not None:
        return parse_day(day, "--day")
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
