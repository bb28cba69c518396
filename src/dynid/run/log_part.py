"""Which part of a log is used: ``LOG@10:25`` names one log's own times, and standstill at its ends is left out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.adapters.urls import UrlPath, log_path
from dynid.errors import InputError
from dynid.recording.recording import Recording

MARGIN_S = 0.5
"""Standstill that is kept before and after the motion, s."""
THRESHOLD = 1e-3
"""Share of its range by which a joint must leave its first or last position to move."""
_PART = re.compile(r"(?P<file>.+)@(?P<low>[^:@]*):(?P<high>[^:@]*)")


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


def no_torque(path: str | Path, held: Iterable[str]) -> str:
    """The sentence on a log without joint torque, with what can be done with the quantities that it holds."""
    remedies = {
        "current": " It has motor current: give --drive-gains.",
        "reference_position": " From commands and positions alone 'dynid actuators' finds friction, rotor inertia and delay.",
    }
    hint = next((text for name, text in remedies.items() if name in set(held)), "")
    return f"{path} has no joint torque, expected columns tau1.. or one per joint name.{hint}"


def refuse_zero_torque(what: str | Path, seen: bool, n_rows: int) -> None:
    """Refuse a log whose torque is zero throughout: any robot without mass and friction would explain it."""
    if not seen:
        raise InputError(
            f"{what}: the torque of every joint is zero in all {n_rows} rows, expected measured torque; name its columns in a mapping "
            "file (--mapping FILE), or use a log in which the drives are on"
        )


def without_standstill(recording: Recording) -> tuple[Recording, str]:
    """The log from half a second before its motion to half a second after it, and what was left out, in words."""
    q, t = recording.position, recording.time
    limit = THRESHOLD * np.ptp(q, axis=0)
    moves = limit > 0.0
    if recording.n_samples < 2 or not moves.any():
        return recording, ""
    away = np.flatnonzero((np.abs(q - q[0]) > limit)[:, moves].any(axis=1))
    back = np.flatnonzero((np.abs(q - q[-1]) > limit)[:, moves].any(axis=1))
    start, end = float(t[away[0]]) - MARGIN_S, float(t[back[-1]]) + MARGIN_S
    head_s, tail_s = start - float(t[0]), float(t[-1]) - end
    if max(head_s, tail_s) <= MARGIN_S or not start < end:
        return recording, ""
    kept = recording.between(start if head_s > 0.0 else None, end if tail_s > 0.0 else None)
    return kept, standstill_note(head_s, tail_s)


def standstill_note(head_s: float, tail_s: float) -> str:
    """What was left out, in words."""
    return (
        f"standstill was left out: {max(head_s, 0.0):.3g} s before the motion and {max(tail_s, 0.0):.3g} s after it "
        "(--no-trim keeps it)"
    )
