"""Which logs a user named: files, folders, patterns and URLs, each perhaps with the times of ``LOG@10:25`` behind it."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dynid.errors import InputError, listed
from dynid.io.logs.formats import formats
from dynid.io.logs.log_file import DataFrame, HeldLog, MemoryLog, UrlPath, is_url, log_path, url_matches, without_secrets
from dynid.signals.recording import Recording, StaticRecording

_PART = re.compile(r"(?P<file>.+)@(?P<low>[^:@]*):(?P<high>[^:@]*)")
LogInput: TypeAlias = str | Path | HeldLog
"""A log by its path, or one in memory: a recording, a dictionary of arrays or a data frame."""
LogInputs: TypeAlias = LogInput | Sequence[LogInput]


def log_paths(logs: LogInputs) -> list[Path]:
    """Every log that is named, in order; a pattern or a folder stands for its logs in order of their names.

    Args:
        logs: a file, a folder (its files with the suffix of a log; a ROS 2 bag is one log), a pattern with ``*``, ``?``,
            ``[..]`` or ``**``, or a URL, in which a pattern (``*``, ``[..]``) or a folder (a ``/`` at its end) may stand as well;
            or several of these. ``@FROM:TO`` behind any of them names seconds of each log. Logs in memory, recordings,
            dictionaries of arrays and data frames, may stand among them.

    Examples:
        >>> import dynid
        >>> for name in ("run2.csv", "run1.csv"):
        ...     _ = dynid.write_recording(dynid.demo_recording(), name)
        >>> [str(path) for path in log_paths("run*.csv@1:5")]
        ['run1.csv@1:5', 'run2.csv@1:5']
    """
    named: Sequence[Any] = [logs] if isinstance(logs, (str, Path, *_HELD)) else logs
    return [path for number, one in enumerate(named, start=1) for path in _expanded(one, number)]


_HELD = (Recording, StaticRecording, Mapping, DataFrame)


def _expanded(one: LogInput, number: int) -> list[Path]:
    if isinstance(one, UrlPath | MemoryLog):
        return [one]
    if isinstance(one, _HELD):
        source = one.source.path if isinstance(one, Recording | StaticRecording) else ""
        return [MemoryLog(source or f"recording {number}", one)]
    if not isinstance(one, str | Path):
        raise InputError(
            f"log {number} is of type {type(one).__name__}, expected a path, a recording, arrays by name or a data frame"
        )
    if one == "":  # as a path it would be the working folder
        raise InputError(f"log {number} is an empty text, expected a file, a folder, a pattern or a URL")
    path = log_path(one)
    return _logs_at_url(path) if isinstance(path, UrlPath) else _logs_at_path(path)


def _logs_at_url(path: UrlPath) -> list[Path]:
    """The address itself, or those in its folder or of its pattern."""
    text, times = split_times(path.url)
    folder = text.endswith("/")
    if not folder and not any(sign in text.partition("?")[0] for sign in "*["):
        return [path]
    found = url_matches(text)
    if folder:
        found = [name for name in found if _has_suffix(name) and not name.name.startswith((".", "_"))]
    if not found:
        what = "no log lies in" if folder else "no log matches"
        raise InputError(f"{what} '{without_secrets(text)}', expected files such as 's3://bucket/folder/*.parquet'")
    return [UrlPath(f"{name.url}{times}") for name in found]


def _logs_at_path(path: Path) -> list[Path]:
    """The file itself, or those in its folder or of its pattern."""
    text, times = split_times(str(path))
    place = Path(text)
    if path.is_file():
        return [path]
    if _is_log(place):
        found = [place]
    elif place.is_dir():
        found = sorted(name for name in place.iterdir() if _wanted(name) and (name.is_dir() or _has_suffix(name)))
        if not found:
            below = next((name for name in sorted(place.rglob("*")) if name.is_file() and _has_suffix(name)), None)
            remedy = f"; for those in folders below it give '{place}/**/*{below.suffix}'" if below else ""
            raise InputError(f"{place}: is a folder without logs, expected files such as *.csv or *.parquet in it{remedy}")
    elif not place.exists() and glob.has_magic(text):
        root = place.anchor or "."
        found = sorted(name for name in Path(root).glob(text.removeprefix(place.anchor)) if _wanted(name))
        if not found:
            raise InputError(f"no log matches '{text}', expected a pattern of files such as 'logs/*.parquet'")
    else:
        return [path]
    return [Path(f"{name}{times}") for name in found]


def _wanted(path: Path) -> bool:
    """A file that is not hidden, or a folder that is one log, such as a ROS 2 bag."""
    return not path.name.startswith((".", "_")) and (path.is_file() or _is_log(path))


def _is_log(folder: Path) -> bool:
    return folder.is_dir() and any(known.recognises(folder, b"") for known in formats())


def _has_suffix(path: Path) -> bool:
    return any(path.suffix.lower() in known.suffixes for known in formats())


def names_of(paths: Sequence[Path], most: int = 6) -> str:
    """File names for a sentence; of many the first ones and how many there are."""
    return listed([path.name for path in paths], most)


@dataclass(frozen=True)
class LogPart:
    """A log file and the times of it that are used; None is its start or end."""

    path: Path
    from_s: float | None = None
    to_s: float | None = None

    @property
    def named(self) -> bool:
        """Whether it names times of its own."""
        return self.from_s is not None or self.to_s is not None

    def meets(self, other: LogPart) -> bool:
        """Whether two parts of one file have rows in common."""
        starts = [-np.inf if one.from_s is None else one.from_s for one in (self, other)]
        ends = [np.inf if one.to_s is None else one.to_s for one in (self, other)]
        return bool(max(starts) < min(ends))


def log_part(text: str | Path) -> LogPart:
    """The file and the times that ``LOG@FROM:TO`` names; a file that is called so itself is taken whole.

    >>> log_part("log.csv@10:25")
    LogPart(path=PosixPath('log.csv'), from_s=10.0, to_s=25.0)
    >>> log_part("log.csv@10:").to_s is None
    True
    """
    if isinstance(text, MemoryLog):
        return LogPart(text)
    whole = log_path(text)
    found = _matched(whole)
    if found is None or (not isinstance(whole, UrlPath) and whole.exists()):
        return LogPart(whole)
    times: list[float | None] = []
    for word in (found["low"], found["high"]):
        try:
            times.append(float(word) if word.strip() else None)
        except ValueError:
            times.append(np.nan)
    if any(time is not None and not np.isfinite(time) for time in times) or times == [None, None]:
        raise InputError(f"log '{whole}' names no times: expected LOG@FROM:TO in seconds, such as log.csv@10:25")
    low, high = times
    if low is not None and high is not None and not low < high:
        raise InputError(f"log '{whole}' ends at {high:g} s before it starts at {low:g} s, expected FROM below TO")
    return LogPart(log_path(found["file"]), low, high)


def _matched(path: Path) -> re.Match[str] | None:
    """File and times; in a URL they stand behind the last ``/``, since a user may stand before a host."""
    found = _PART.fullmatch(path.url if isinstance(path, UrlPath) else str(path))
    if found is not None and isinstance(path, UrlPath) and "/" in found["low"] + found["high"]:
        return None
    return found


def split_times(text: str) -> tuple[str, str]:
    """What is named and ``@FROM:TO`` behind it, empty where there is none."""
    found = _matched(log_path(text))
    return (text, "") if found is None else (found["file"], text[len(found["file"]) :])


def refuse_same(paths: Sequence[str | Path], hashes: Sequence[str], seen: Iterable[tuple[str, str]] = ()) -> None:
    """Refuse rows that were given before: a log with the content of another one or of one in ``seen``, paths and hashes of the
    identification set, unless both name times that do not meet."""
    known = [(digest, log_part(path), "a log of the identification set") for path, digest in seen]
    for path, digest in zip(paths, hashes, strict=True):
        part = log_part(path)
        for other, place, words in known:
            if digest == other and part.meets(place):
                raise InputError(f"log '{path}' has the same content as {words}; a log may be used once only")
        known.append((digest, part, f"'{path}'"))


def found_log(log: str, beside: Path) -> str:
    """Where a log is now: as it was named, or in the folder ``beside`` where only that has it."""
    if is_url(log):
        return log

    def is_there(place: str | Path) -> bool:
        try:
            return log_part(place).path.exists()
        except OSError:  # a name that no file can have
            return False

    other = beside / log
    return str(other) if not is_there(log) and is_there(other) else log
