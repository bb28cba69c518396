"""What a file format has to offer so that logs in it can be read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from dynid.recording.readers.formats.table import Table
from dynid.recording.readers.log_file import LogFile


@dataclass(frozen=True)
class OpenOptions:
    """What a user can say about the inside of a file: ``topic`` of a bag, ``header`` of a text table without names.

    ``file`` is the log itself, open already: a format that reads from it does not open the file a second time.
    """

    topic: str | None = None
    header: tuple[str, ...] | None = None
    file: LogFile | None = None

    def log_at(self, path: Path) -> LogFile:
        """The log, open or not."""
        return self.file or LogFile(path)


class Format(Protocol):
    """A file format of logs."""

    @property
    def name(self) -> str:
        """Name of the format, as recordings state it in ``source.format``."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """File name endings in lower case with their dot, such as ``(".csv", ".tsv")``."""

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first 16 bytes of a file show this format whatever its suffix; ``head`` is empty for a folder."""

    def open(self, path: Path, options: OpenOptions) -> Table | Mapping[str, Any]:
        """The columns: a :class:`Table` that reads in batches, or simply arrays by name, one entry per row each."""
