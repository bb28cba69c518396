"""Which logs a user named: files, folders, patterns and URLs, each perhaps with the times of ``LOG@10:25`` behind it."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from dynid.adapters.urls import UrlPath, log_path, url_matches, without_secrets
from dynid.errors import InputError
from dynid.naming import listed
from dynid.recording.readers.formats.registry import formats
from dynid.run.log_part import split_times


def log_paths(logs: Sequence[str | Path] | str | Path) -> list[Path]:
    """Every log that is named, in order; a pattern or a folder stands for its logs in order of their names.

    Args:
        logs: a file, a folder (its files with the suffix of a log; a ROS 2 bag is one log), a pattern with ``*``, ``?``,
            ``[..]`` or ``**``, or a URL, in which a pattern (``*``, ``[..]``) or a folder (a ``/`` at its end) may stand as well;
            or several of these. ``@FROM:TO`` behind any of them names seconds of each log.

    Examples:
        >>> import dynid
        >>> for name in ("run2.csv", "run1.csv"):
        ...     _ = dynid.write_recording(dynid.demo_recording(), name)
        >>> [str(path) for path in log_paths("run*.csv@1:5")]
        ['run1.csv@1:5', 'run2.csv@1:5']
    """
    named = [logs] if isinstance(logs, (str, Path)) else logs
    return [path for one in named for path in _expanded(one)]


def _expanded(one: str | Path) -> list[Path]:
    if isinstance(one, UrlPath):
        return [one]
    path = log_path(one)
    if isinstance(path, UrlPath):
        return _of_url(path)
    if path.is_file():
        return [path]
    text, times = split_times(str(path))
    place = Path(text)
    if place.is_dir():
        found = [place] if _is_log(place) else _in_folder(place)
    elif not place.exists() and glob.has_magic(text):
        root = place.anchor or "."
        found = sorted(name for name in Path(root).glob(text.removeprefix(place.anchor)) if _wanted(name))
        if not found:
            raise InputError(f"no log matches '{text}', expected a pattern of files such as 'logs/*.parquet'")
    else:
        return [path]
    return [Path(f"{name}{times}") for name in found]


def _of_url(path: UrlPath) -> list[Path]:
    text, times = split_times(path.url)
    folder = text.endswith("/")
    if not folder and not any(sign in text.partition("?")[0] for sign in "*["):
        return [path]
    found = [name for name in url_matches(text) if not folder or (_has_suffix(name) and not _hidden(name))]
    if not found:
        what = "no log lies in" if folder else "no log matches"
        raise InputError(f"{what} '{without_secrets(text)}', expected files such as 's3://bucket/folder/*.parquet'")
    return [UrlPath(f"{name.url}{times}") for name in found]


def _in_folder(place: Path) -> list[Path]:
    found = sorted(name for name in place.iterdir() if _wanted(name) and (name.is_dir() or _has_suffix(name)))
    if not found:
        below = next((name for name in sorted(place.rglob("*")) if name.is_file() and _has_suffix(name)), None)
        remedy = f"; for those in folders below it give '{place}/**/*{below.suffix}'" if below else ""
        raise InputError(f"{place}: is a folder without logs, expected files such as *.csv or *.parquet in it{remedy}")
    return found


def _wanted(path: Path) -> bool:
    """A file that is not hidden, or a folder that is one log."""
    return not _hidden(path) and (path.is_file() or (path.is_dir() and _is_log(path)))


def _is_log(folder: Path) -> bool:
    """Whether a folder is one log, such as a ROS 2 bag."""
    return any(known.recognises(folder, b"") for known in formats())


def _has_suffix(path: Path) -> bool:
    return any(path.suffix.lower() in known.suffixes for known in formats())


def _hidden(path: Path) -> bool:
    return path.name.startswith((".", "_"))


def names_of(paths: Sequence[Path], most: int = 6) -> str:
    """File names for a sentence; of many the first ones and how many there are."""
    return listed([path.name for path in paths], most)
