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
    rows = tuple(
        (
            os.path.relpath(file, page.parent),
            item.format if file == item.path else "",
            _proof(item) if file == item.path else "",
        )
        for item in exported
        for file in item.files
    )
    notes = tuple(
        Item("note", f"{item.format}: {note}.")
        for item in exported
        for note in (*item.notes, *([item.lacks()] if item.lacks() else []))
        if note != item.warning
    )
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


def _proof(item: Exported) -> str:
    if math.isnan(item.parity):
        return "not proven"
    return f"{item.parity:.1e}{', NOT proven' if item.failed else ''}"
