"""Tables of the paper pages: ``sousa2014.py`` holds those of ``papers/sousa2014.md``, one function each.

The folder's name makes a marker read as what it stands for, the tables of a paper; it lies beside the pages and not in the
package, because what a page shows is no part of the library. Each function takes nothing, runs dynid as its user would, and
returns a Markdown table. Numbers that are printed in a paper may stand in its module, to be shown beside the computed ones;
measured data may not: :func:`shared` finds them, or the page says that they were missing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


class MissingDataError(Exception):
    """A file of the published data is not on this machine."""

    def __init__(self, relative: str) -> None:
        super().__init__(f"'{relative}' of the published data is not on this machine")
        self.relative = relative


def shared(relative: str) -> Path:
    """A file of the published data: in ``DYNID_SHARED_DATA`` or in ``../shared/data`` beside the repository."""
    for folder in (os.environ.get("DYNID_SHARED_DATA"), REPOSITORY.parent / "shared" / "data"):
        if folder is not None and Path(folder).is_dir():
            if not (Path(folder) / relative).is_file():
                break
            return Path(folder) / relative
    raise MissingDataError(relative)


def markdown(header: Sequence[str], rows: Iterable[Sequence[object]], words: int = 1) -> str:
    """A table; the first columns hold ``words`` and go to the left, the others figures and to the right."""
    lines = [" | ".join(header), " | ".join("---" if i < words else "---:" for i in range(len(header)))]
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"a row of the table has {len(row)} cells, its header {len(header)}")
        lines.append(" | ".join(str(cell) for cell in row))
    return "\n".join(f"| {line} |" for line in lines)


def yes(value: object) -> str:
    """A verdict as a word."""
    return "yes" if value else "no"
