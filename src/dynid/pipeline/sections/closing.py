"""What the model lacks, as the residual on held-out blocks shows it.

Several methods on the same data.

The model as files, each with the proof that it holds what was identified.

Everything needed to repeat a run.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path

from dynid.finding import FileGrade, Finding
from dynid.option_types import kind_of
from dynid.pipeline.folder import RUN_FILE, versions
from dynid.pipeline.model_files import Exported
from dynid.pipeline.options import all_options
from dynid.pipeline.sections.context import Shown
from dynid.pipeline.sections.model import method_figure
from dynid.pipeline.verdict import percent
from dynid.report.page import Folded, Part, Section, Table


def advice_section(shown: Shown) -> Section | None:
    """The additions that would lower the error on unseen data, with the option of each; nothing where there are none."""
    advice = shown.run.advice
    if not advice:
        return None
    rows = tuple((one.joint, one.cause, percent(one.gain), one.option or "none models this") for one in advice)
    table = Table(("joint", "what its residual follows", "held-out error falls by", "option"), rows, numeric=(2,))
    text = (
        "Each addition was fitted with a block of time left out, for every block in turn; shown is by how much the error on the "
        "blocks left out falls."
    )
    return Section("Advice", text, (table,))


def comparison_section(shown: Shown) -> Section | None:
    """Several methods on the same samples."""
    comparisons = shown.run.comparisons
    if not comparisons:
        return None
    rows = tuple(
        (
            str(item["method"]),
            percent(item["relative_error"].get("identification")),
            percent(item["relative_error"].get("validation")),
            {True: "yes", False: "no"}.get(item.get("feasible"), "–"),  # type: ignore[arg-type]
            str(item.get("feasibility", {}).get("decision", "–")),
            "–" if item.get("seconds") is None else f"{float(item['seconds']):.3g}",
        )
        for item in comparisons
    )
    table = Table(("method", "identification", "unseen", "consistent", "base values", "seconds"), rows, numeric=(1, 2, 5))
    return Section("Methods compared", "", (table, method_figure(comparisons)), "Methods")


def export_section(
    exported: Sequence[Exported], page: Path, refusals: Sequence[str] = (), graded: Sequence[FileGrade] = ()
) -> Section | None:
    """The files of the model, each with the proof that it holds what was identified; links are relative to the page.

    ``graded`` is how well simulator files predict the unseen log.
    """
    if not exported and not refusals:
        return None
    wrong = tuple(f"{item.format}: {item.warning}" for item in exported if item.warning)
    missing = tuple(Finding("warning", f"{text[:1].upper()}{text[1:]}.") for text in (*refusals, *wrong))
    rows = tuple(row for item in exported for row in _file_rows(item, page.parent))
    notes = tuple(Finding("note", f"{item.format}: {note}.") for item in exported for note in _notes(item))
    parts = (
        *((missing,) if missing else ()),
        *((Table(("file", "format", "torque difference after reloading"), rows, numeric=(2,), links=(0,)),) if rows else ()),
        *((_graded_table(graded),) if graded else ()),
        *((notes,) if notes else ()),
    )
    text = (
        "Each file was read again (URDF by Pinocchio, MJCF by MuJoCo, C by the compiler, SDF and JSON by dynid) and its torque "
        "compared with the identified model's on random states; the difference is relative and of what the format holds. What "
        "it has no place for is named below: take it from the JSON or the C file."
    )
    looked_at = any(item.notes or not math.isnan(item.parity) for item in exported)  # a body has no torque to compare
    return Section("The model as files", text if looked_at else "", parts, "Files")


def _graded_table(graded: Sequence[FileGrade]) -> Table:
    """Joint by joint: unseen torque error of each file, what its format lacks of the torque, and the drift of a free run of 0.1 s."""
    header, rows = ["joint"], []
    for one in graded:
        header += [f"{one.path}: unseen error", "lacks", "drift, mrad or mm"]
    for j, joint in enumerate(graded[0].joints):
        row = [joint.name]
        for one in graded:
            own = one.joints[j]
            row += [percent(own.unseen), percent(own.loss), "–" if own.drift is None else f"{1e3 * own.drift:.3g}"]
        rows.append(tuple(row))
    last = ["ready to use"]
    for one in graded:
        last += ["yes" if one.ready else "no", "", ""]
    return Table(tuple(header), (*rows, tuple(last)), numeric=tuple(range(1, len(header))))


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
        return "not proven" if item.notes else "–"
    return f"{item.parity:.1e}{', NOT proven' if item.failed else ''}"


def repeat_section(shown: Shown) -> Section:
    """Everything needed to repeat a run: the command, the files with their hashes and the settings."""
    run = shown.run
    source, changed = run.robot.source, run.settings.changed()
    files = [] if run.mover is None else [("robot", source.path or "built in", source.sha256)]
    files += [("identified on", path, digest) for path, digest in run.logs]
    files += [("validated on", path, digest) for path, digest in run.validation_logs]
    rows = tuple(
        (one.name, "–" if value is None else kind_of(one).text(value), "changed" if one.name in changed else "")
        for one in all_options()
        for value in (getattr(run.settings, one.name),)
    )
    parts: list[Part] = [
        run.command(str((shown.folder or Path()) / RUN_FILE)),
        Table(("file", "path", "sha256"), tuple(files), code=(1, 2)),
        Folded("Settings", (Table(("setting", "value", ""), rows, code=(1,)),)),
        Folded("Versions", (Table(("package", "version"), tuple(versions().items()), code=(1,)),)),
    ]
    text = (
        "The same files with the same hashes and these settings give the same numbers. The figures of this page lie beside it, in "
        "the folder figures, as SVG and PNG files."
    )
    return Section("How to repeat this", text, tuple(parts), "Repeat")
