"""What was found wrong with the logs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynid.recording.finding import DataCheck, Finding
from dynid.report.data_plots import lag_figure, step_figure
from dynid.report.page import Folded, Item, Items, Level, Part, Section, Table
from dynid.report.shown import MOST_LOGS, Shown, name_at
from dynid.run.record import Run


def data_section(shown: Shown) -> Section | None:
    """What was found wrong with the logs."""
    run = shown.run
    names = [Path(path).name for path, _ in run.logs]
    parts: list[Part] = []
    for place, check in enumerate(run.checks):
        parts.extend(_check_parts(check, name_at(names, place)))
    clocks = [(name_at(run.windows or names, i), recording.time) for i, recording in enumerate(run.recordings)]
    lag = next((figure for figure in (lag_figure(check.facts) for check in run.checks) if figure is not None), None)
    parts += [figure for figure in (step_figure(clocks[:MOST_LOGS]), lag) if figure is not None]
    if run.notes:
        parts.append(Folded("Notes of the run", (Items(tuple(Item("note", note) for note in run.notes)),)))
    return Section("Data check", _unchecked(run), tuple(parts), "Data") if parts else None


def _check_parts(check: DataCheck, name: str) -> tuple[Part, ...]:
    """What was found in one log, and the facts about it."""
    items = tuple(_finding_item(finding) for finding in check.findings)
    return (
        Items(items or (Item("good", f"Nothing is wrong with {name}."),)),
        Folded(f"Facts about {name}", (_fact_table(check),)),
    )


def _unchecked(run: Run) -> str:
    """Why no log was checked; empty where logs were."""
    if run.from_coefficients:
        return "The parameters come from given coefficients; no log was checked."
    if run.filter is None:
        return "A table of poses has no clock and no signals to check."
    return "" if run.checks else "The logs of this run were not checked."


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
