"""A store of triangles: a folder of Parquet files, one per addition, that are written once and never changed.

    STORE/store.json                       format, hash of structure and options
    STORE/channels.npz                     the columns of the triangles
    STORE/run/                             the run that fixed filter, rows and friction
    STORE/rows/robot=R/DAY.ID.parquet      one row: robot, day, condition, triangles
    STORE/logs/ab/HASH                     where the log of this hash is kept

An addition is complete when its file has its name, which is one rename. What was killed before leaves a file in ``partial``,
which nobody reads and the next addition removes. Nothing is listed or rewritten when a day is added.
"""

from __future__ import annotations

import datetime
import fcntl
import hashlib
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import Field, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from dynid.apps.fleet.entry import FORMAT, Entry, Key, merged, parse_day, read_entry, write_entry
from dynid.arrays import freeze
from dynid.codec import to_record
from dynid.errors import InputError
from dynid.files import memory_budget, read_arrays, read_json, read_limited, to_json, write_json
from dynid.folders import changed_folder, sync
from dynid.model.effects import effect_to_dict
from dynid.model.robot import Robot
from dynid.option_types import flag_of, kind_of, options_of
from dynid.pipeline.folder import load_result, save_result, versions
from dynid.pipeline.option_groups import MODEL, READING, ROWS, WORK
from dynid.pipeline.options import Settings
from dynid.pipeline.result import IdentificationResult
from dynid.pipeline.robot_setup import described_robot
from dynid.regression.base import BaseReduction
from dynid.regression.channels import Channel
from dynid.regression.factor import Regression

PREFIX = "robot="
_ROW = re.compile(r"(\d{4}-\d{2}-\d{2})\.[0-9a-f]{16}\.parquet")
_LONGEST_MARK = 4096
_LONGEST_ID = 80


@dataclass(frozen=True)
class Store:
    """A store of triangles.

    Args:
        folder: of the store.
        fixed: hash of its structure and options.

    Examples:
        >>> import dynid
        >>> from dynid.apps.fleet.store import Store
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> added = dynid.add_to_store(
        ...     "arm.urdf", "log.csv", "store", robot_id="R1", day="2026-03-01", cutoff_hz=20.0, effects="viscous"
        ... )
        >>> store = dynid.open_store("store")
        >>> isinstance(store, Store), store.robots
        (True, ('R1',))
    """

    folder: Path
    fixed: str

    @cached_property
    def run(self) -> IdentificationResult:
        """The run that fixed filter, rows and friction."""
        return load_result(self.folder / "run")

    @property
    def base(self) -> BaseReduction:
        """The base parameters of the store."""
        return self.run.estimate.base

    @cached_property
    def channels(self) -> tuple[Channel, ...]:
        """The columns of the triangles."""
        path = self.folder / "channels.npz"
        try:
            stored = read_arrays(read_limited(path, "the file", memory_budget()), path)
            found = [
                _channel(str(name), stored[f"columns{j}"], stored[f"expansion{j}"]) for j, name in enumerate(stored["names"])
            ]
        except (InputError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"store '{self.folder}' has no readable channels.npz: {error}") from None
        n = len(self.run.robot.parameters)
        if any(one.expansion.shape != (len(one.columns), n) for one in found):
            raise InputError(f"store '{self.folder}' has channels over other columns than the {n} parameters of its run")
        return tuple(found)

    @property
    def robots(self) -> tuple[str, ...]:
        """All robots with at least one row."""
        rows = self.folder / "rows"
        found = [place.name for place in rows.iterdir() if place.name.startswith(PREFIX)] if rows.is_dir() else []
        names = sorted(unquote(name.removeprefix(PREFIX)) for name in found)
        return tuple(name for name in names if next(self.files(name), None) is not None)

    def files(self, robot: str, first: datetime.date | None = None, last: datetime.date | None = None) -> Iterator[Path]:
        """Files of a robot between two days, in the order of time; no file is opened."""
        place = self.folder / "rows" / _partition(robot)
        for file in sorted(place.iterdir()) if place.is_dir() else ():
            match = _ROW.fullmatch(file.name)
            if match is None:
                continue
            day = parse_day(match[1], f"the day in the name of '{file}'")
            if (first is None or day >= first) and (last is None or day <= last):
                yield file

    def entries(
        self,
        robots: Sequence[str] | None = None,
        first: datetime.date | None = None,
        last: datetime.date | None = None,
        keep: Callable[[Key], bool] | None = None,
        *,
        light: bool = False,
    ) -> Iterator[Entry]:
        """Rows of some robots between two days; ``light`` without triangles."""
        for robot in self.robots if robots is None else robots:
            seen: dict[str, Path] = {}
            for path in self.files(robot, first, last):
                entry = read_entry(path, self.fixed, self.channels, light=light)
                for name, digest in entry.logs:
                    if digest in seen:
                        raise InputError(
                            f"log '{name}' is in '{seen[digest]}' and in '{path}': rows of two stores were copied together; "
                            "remove one of the two files"
                        )
                    seen[digest] = path
                if keep is None or keep(entry.key):
                    yield entry

    def merged(self, entries: Sequence[Entry]) -> Regression:
        """Some rows as one regression of the robot, one block each."""
        return merged(entries, self.channels, self.run.robot)

    def place_of(self, digest: str) -> Path | None:
        """The file that holds the log of this hash; None where it was not added, or its addition was cut off."""
        mark = self._mark(digest)
        if not mark.exists():
            return None
        name = read_limited(mark, f"'{mark}'", _LONGEST_MARK).decode("utf-8", "replace")
        place = self.folder / name
        if "\0" in name or not place.resolve().is_relative_to(self.folder.resolve()):
            raise InputError(f"'{mark}' says that its log is in '{name}', which is no file of store '{self.folder}'")
        return place if place.is_file() else None

    def key_at(self, path: Path) -> Key:
        """Which robot and day a file is about."""
        return read_entry(path, self.fixed, self.channels, light=True).key

    def add(self, entry: Entry) -> Path:
        """Append an entry: complete with one rename, or not there at all."""
        key = entry.key
        parts = [key.robot, key.day.isoformat(), to_json(key.condition), *sorted(digest for _, digest in entry.logs)]
        name = f"{key.day.isoformat()}.{hashlib.sha256(chr(10).join(parts).encode()).hexdigest()[:16]}.parquet"
        target = self.folder / "rows" / _partition(key.robot) / name
        with self._locked():
            for left in (self.folder / "partial").iterdir():
                left.unlink()
            for name, digest in entry.logs:
                known = self.place_of(digest)
                if known is not None:
                    raise InputError(f"log '{name}' is in the store already: {self.key_at(known).describe()}")
            _made(target.parent)
            for _, digest in entry.logs:  # says where the log will be; it is there when that file is
                mark = self._mark(digest)
                _made(mark.parent)
                self._put(mark, lambda path: path.write_text(str(target.relative_to(self.folder)), encoding="utf-8"))
            self._put(target, lambda path: write_entry(entry, self.fixed, path))
        return target

    def remove(self, robots: Sequence[str], keep: Callable[[Key], bool]) -> tuple[Key, ...]:
        """Take the rows of these robots out of the store that ``keep`` says no to; their logs can be added again."""
        removed = []
        with self._locked():
            for robot in robots:
                for path in list(self.files(robot)):
                    entry = read_entry(path, self.fixed, self.channels, light=True)
                    if keep(entry.key):
                        continue
                    path.unlink()  # from here on its logs count as not added
                    sync(path.parent)
                    for _, digest in entry.logs:
                        self._mark(digest).unlink(missing_ok=True)
                    removed.append(entry.key)
        return tuple(removed)

    def _mark(self, digest: str) -> Path:
        return self.folder / "logs" / digest[:2] / digest

    def _put(self, target: Path, write: Callable[[Path], object]) -> None:
        """A file written aside, brought to disk, and given its name."""
        aside = self.folder / "partial" / uuid.uuid4().hex
        try:
            write(aside)
            sync(aside)
            aside.replace(target)
            sync(target.parent)
        except OSError as error:
            aside.unlink(missing_ok=True)
            raise InputError(f"cannot write '{target}': {error.strerror or error}") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One addition at a time; the system lets go of the lock when its holder ends, however it ends."""
        try:
            handle = (self.folder / "lock").open("a")
        except OSError as error:
            raise InputError(f"store '{self.folder}' cannot be written: {error.strerror or error}") from None
        with handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield


def open_store(folder: str | Path) -> Store:
    """A store that exists.

    Args:
        folder: as made by :func:`dynid.add_to_store`.

    Returns:
        the store; a folder that is none is refused.

    Examples:
        >>> import dynid
        >>> _ = dynid.write_urdf(dynid.demo_robot(), "arm.urdf"), dynid.write_recording(dynid.demo_recording(), "log.csv")
        >>> _ = dynid.add_to_store(
        ...     "arm.urdf", "log.csv", "store", robot_id="R1", day="2026-03-01", cutoff_hz=20.0, effects="viscous"
        ... )
        >>> len(list(dynid.open_store("store").entries()))
        1
    """
    place = Path(folder)
    if not (place / "store.json").is_file():
        raise InputError(
            f"'{place}' is no store: it has no store.json; make one with 'dynid store add ROBOT LOG --to {place}'"
        )
    record = read_json(place / "store.json", "store")
    if record.get("format") != FORMAT:
        raise InputError(f"store '{place}' has format {record.get('format')}, expected {FORMAT}")
    fixed = record.get("fixed")
    if not isinstance(fixed, str):
        raise InputError(f"store '{place}' is damaged: store.json lacks the hash 'fixed'")
    return Store(place, fixed)


def create_store(folder: str | Path, run: IdentificationResult, channels: Sequence[Channel]) -> Store:
    """An empty store that fixes what a run chose: built aside, then given its name; what a killed process left aside goes first."""
    place = Path(folder)
    if not place.parent.is_dir():
        raise InputError(f"cannot make store '{place}': there is no folder '{place.parent}'")
    with changed_folder(place) as change:
        if place.is_dir() and any(not path.name.startswith(".dynid.") for path in place.iterdir()):
            raise InputError(f"'{place}' exists and is no store, expected a new name or an empty folder")
        for part in ("rows", "logs", "partial"):
            (change.stage / part).mkdir()
        save_result(run, change.stage / "run")
        arrays: dict[str, Any] = {"names": np.array([channel.name for channel in channels])}
        for j, channel in enumerate(channels):
            arrays |= {f"columns{j}": channel.columns, f"expansion{j}": channel.expansion}
        np.savez(change.stage / "channels.npz", allow_pickle=False, **arrays)
        record = {"format": FORMAT, "fixed": fixed_hash(run), "robot": run.robot.name, "versions": versions()}
        write_json(change.stage / "store.json", record)
    return open_store(place)


def _channel(name: str, columns: Any, expansion: Any) -> Channel:
    """The columns of one triangle, which fit together."""
    fits = columns.ndim == 1 and expansion.ndim == 2 and len(columns) == len(expansion) and columns.dtype.kind == "i"
    if not fits or not np.isfinite(expansion).all() or not np.all((columns >= 0) & (columns < expansion.shape[1])):
        raise ValueError(f"columns of channel '{name}' are not those of its expansion")
    return Channel(name, freeze(columns, np.int64), freeze(expansion))


def _partition(robot: str) -> str:
    """The folder of a robot; its name may hold any character."""
    if len(robot) > _LONGEST_ID:
        raise InputError(f"--robot-id has {len(robot)} characters, expected at most {_LONGEST_ID}")
    return PREFIX + quote(robot, safe="")


def _made(folder: Path) -> None:
    """The folder, and its name in the folder above, on disk."""
    if not folder.is_dir():
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


FIXED = tuple(one.name for one in options_of(Settings, MODEL, ROWS) if one.name != "max_rows")
"""Options that a store fixes."""
FREE = tuple(one.name for one in options_of(Settings, READING, WORK))
"""Options that each addition may have of its own: how its logs are read, and where the work runs."""
SAME = 1e-9


def fixed_hash(run: IdentificationResult) -> str:
    """Hash of structure and options: rows with the same hash can be merged."""
    joints = [[joint.name, joint.kind, joint.parent, joint.placement, joint.screw] for joint in run.robot.joints]
    record = {
        "joints": joints,
        "gravity": run.robot.gravity,
        "effects": [effect_to_dict(effect) for effect in run.robot.effects],
        "coupling": to_record(run.robot.coupling),
        "filter": to_record(run.filter),
        "rows": run.rows.as_dict(),
        "options": {name: getattr(run.settings, name) for name in FIXED},
    }
    return hashlib.sha256(to_json(record).encode()).hexdigest()


def reading_of(run: IdentificationResult, given: Mapping[str, Any], store: Path) -> Settings:
    """How logs of an addition are read; options that the store fixes are refused where they differ from it."""
    asked = Settings.from_dict(given)  # in the types that settings have
    options = {one.name: one for one in options_of(Settings, MODEL, ROWS)}
    for name in FIXED:
        if name in given and getattr(asked, name) != getattr(run.settings, name):
            one, own = options[name], getattr(run.settings, name)
            given_now = _told(one, getattr(asked, name))
            raise InputError(
                f"store '{store}' was made with {flag_of(one)} {_told(one, own)}, {given_now} was given: a store never mixes options; "
                "leave the flag out, or make another store with --to"
            )
    values = run.settings.as_dict() | {"from_s": None, "to_s": None, "engine": Settings.engine}
    return Settings.from_dict(values | {name: getattr(asked, name) for name in FREE if name in given})


def _told(one: Field[Any], value: Any) -> str:
    return "the default" if value in (None, (), {}) else kind_of(one).text(value)


def refuse_other_robot(run: IdentificationResult, robot: Robot | str | Path, store: Path) -> None:
    """Refuse a robot with other joints or another gravity than the store's; nominal masses may differ."""
    own = run.robot
    if isinstance(robot, Robot):
        other = robot
    elif Path(robot).is_file() and hashlib.sha256(Path(robot).read_bytes()).hexdigest() == own.source.sha256:
        return
    else:
        other = described_robot(robot, run.settings)
    if set(own.joint_names) < set(other.joint_names):
        other = other.only(own.joint_names)
    found = difference(own, other)
    if found:
        raise InputError(
            f"store '{store}' holds rows of '{own.name}': {found}; a store never mixes structures, make another with --to"
        )


def difference(own: Robot, other: Robot) -> str:
    """The first difference in structure between two robots, in words; empty where there is none."""
    if own.joint_names != other.joint_names:
        return f"its joints are {', '.join(own.joint_names)}, those of '{other.name}' are {', '.join(other.joint_names)}"
    for mine, theirs in zip(own.joints, other.joints, strict=True):
        if mine.kind != theirs.kind:
            return f"joint '{mine.name}' is {mine.kind} there and {theirs.kind} in '{other.name}'"
        for what, one, two in (
            ("placement", mine.placement, theirs.placement),
            ("axis", mine.screw, theirs.screw),
        ):
            if not np.allclose(one, two, rtol=SAME, atol=SAME):
                worst = float(np.abs(one - two).max())
                return f"the {what} of joint '{mine.name}' differs by {worst:.3g} in '{other.name}'"
    if not np.allclose(own.gravity, other.gravity, rtol=SAME, atol=SAME):
        return f"its gravity is {_numbers(own.gravity)}, that of '{other.name}' is {_numbers(other.gravity)}"
    return ""


def _numbers(values: Any) -> str:
    return ", ".join(f"{value:g}" for value in values)
