"""Where a recording came from, and which part of its log it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from dynid.recording.finding import Finding


@dataclass(frozen=True)
class Part:
    """Rows ``start`` to ``stop`` (half open) of a log of ``n_rows`` rows and ``duration_s`` seconds."""

    start: int
    stop: int
    n_rows: int
    duration_s: float
    name: str = ""
    """What the part is for, such as validation part."""

    def __str__(self) -> str:
        n = self.stop - self.start
        if self.start == 0:
            rows = f"the first {n} of its {self.n_rows} rows"
        elif self.stop == self.n_rows:
            rows = f"the last {n} of its {self.n_rows} rows"
        else:
            rows = f"rows {self.start + 1} to {self.stop} of its {self.n_rows}"
        return f"{self.name}, {rows}" if self.name else rows

    def of(self, whole: Part | None) -> Part:
        """This part, which was cut from another one, as a part of the log."""
        if whole is None:
            return self
        start = whole.start + self.start
        return Part(start, whole.start + self.stop, whole.n_rows, whole.duration_s, self.name or whole.name)


@dataclass(frozen=True)
class TimePart(Part):
    """A part of a long log that is known by its times, s; its rows were not counted."""

    from_s: float = 0.0
    to_s: float = 0.0

    def __str__(self) -> str:
        return f"{self.name + ', ' if self.name else ''}{self.from_s:.6g} s to {self.to_s:.6g} s"

    def of(self, whole: Part | None) -> Part:
        """Times are those of the log, whatever the part was cut from."""
        return self


@dataclass(frozen=True)
class RecordingSource:
    """Where a recording came from and what was done to it while reading.

    ``n_rows_in_file`` counts the rows as they lie in the file, ``n_dropped`` those that were left out;
    ``notes`` are sentences for the user, ``findings`` what reading found wrong; ``part`` is the range of rows of the
    log, None for all.
    """

    path: str = ""
    sha256: str = ""
    format: str = "memory"
    notes: tuple[str, ...] = ()
    n_rows_in_file: int = 0
    n_dropped: int = 0
    preset: str | None = None
    findings: tuple[Finding, ...] = ()
    part: Part | None = None

    def noting(self, *notes: str) -> Self:
        """The same source with more notes."""
        return replace(self, notes=(*self.notes, *notes))
