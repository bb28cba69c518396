"""What was found wrong with the logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynid.recording.finding import DataCheck, Finding
from dynid.report.data_plots import lag_figure, step_figure
from dynid.report.page import Folded, Item, Items, Level, Part, Section, Table
from dynid.report.shown import MOST_LOGS, Shown, name_at


def data_section(shown: Shown) -> Section | None:
    """What was found wrong with the logs."""
    run = shown.run
    recordings, checks = run.recordings, run.checks
    notes = tuple(Item("note", note) for note in run.notes)
    parts: list[Part] = []
    names = [Path(path).name for path, _ in run.logs]
    for place, check in enumerate(checks):
        items = tuple(_finding_item(finding) for finding in check.findings)
        if not items:
            items = (Item("good", f"Nothing is wrong with {name_at(names, place)}."),)
        parts.append(Items(items))
        parts.append(Folded(f"Facts about {name_at(names, place)}", (_fact_table(check),)))
    clocks = [(name_at(run.windows or names, i), recording.time) for i, recording in enumerate(recordings)][:MOST_LOGS]
    steps = step_figure(clocks)
    lags = next((figure for figure in (lag_figure(check.facts) for check in checks) if figure is not None), None)
    parts += [figure for figure in (steps, lags) if figure is not None]
    if notes:
        parts.append(Folded("Notes of the run", (Items(notes),)))
    if not parts:
        return None
    text = "" if checks else "The logs of this run were not checked."
    if run.from_coefficients:
        text = "The parameters come from given coefficients; no log was checked."
    elif run.filter is None:
        text = "A table of poses has no clock and no signals to check."
    return Section("Data check", text, tuple(parts), "Data")


def _finding_item(finding: Finding) -> Item:
    level: Level = finding.severity
    where = (
        f" ({', '.join(finding.joints)})"
        if finding.joints and not any(j in finding.sentence for j in finding.joints)
        else ""
    )
    sentence, fix = finding.sentence + where, finding.fix
    return Item(level, f"{sentence[:1].upper()}{sentence[1:]}.", f"{fix[:1].upper()}{fix[1:]}." if fix else "")


def _fact_table(check: DataCheck) -> Table:
    rows: list[tuple[str, str]] = []
    for name, value in check.as_dict()["facts"].items():
        entries = value.items() if isinstance(value, Mapping) else ((None, value),)
        rows.extend((name.replace("_", " ") + ("" if key is None else f", {key}"), _fact(entry)) for key, entry in entries)
    return Table(("fact", "value"), tuple(rows), code=(1,))


def _fact(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_fact(entry) for entry in value)
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
