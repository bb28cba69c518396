"""The model as files, each with the proof that it holds what was identified."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

from dynid.report.page import Item, Items, Section, Table
from dynid.run.export import Exported


def export_section(exported: Sequence[Exported], page: Path, refusals: Sequence[str] = ()) -> Section | None:
    """The files of the model, each with the proof that it holds what was identified; links are relative to the page."""
    if not exported and not refusals:
        return None
    wrong = tuple(f"{item.format}: {item.warning}" for item in exported if item.warning)
    missing = tuple(Item("warning", f"{text[:1].upper()}{text[1:]}.") for text in (*refusals, *wrong))
    rows = tuple(row for item in exported for row in _file_rows(item, page.parent))
    notes = tuple(Item("note", f"{item.format}: {note}.") for item in exported for note in _notes(item))
    parts = (
        *((Items(missing),) if missing else ()),
        *((Table(("file", "format", "torque difference after reloading"), rows, numeric=(2,), links=(0,)),) if rows else ()),
        *((Items(notes),) if notes else ()),
    )
    text = (
        "Each file was read again (URDF by Pinocchio, MJCF by MuJoCo, C by the compiler, SDF and JSON by dynid) and its torque "
        "compared with the identified model's on random states; the difference is relative and of what the format holds. What "
        "it has no place for is named below: take it from the JSON or the C file."
    )
    return Section("The model as files", text if rows else "", parts, "Files")


def _file_rows(item: Exported, folder: Path) -> list[tuple[str, str, str]]:
    """The files of one format; format and proof stand beside the first."""
    names = [os.path.relpath(file, folder) for file in item.files]
    return [(names[0], item.format, _proof(item)), *((name, "", "") for name in names[1:])]


def _notes(item: Exported) -> list[str]:
    """What is to be told of a format beside its warning, last what it has no place for."""
    lacks = item.lacks()
    return [note for note in (*item.notes, *([lacks] if lacks else [])) if note != item.warning]


def _proof(item: Exported) -> str:
    if math.isnan(item.parity):
        return "not proven"
    return f"{item.parity:.1e}{', NOT proven' if item.failed else ''}"
