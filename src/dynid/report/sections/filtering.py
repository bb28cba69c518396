"""How signals were filtered and rows were made."""

from __future__ import annotations

from dynid.report.estimate_plots import trial_figure
from dynid.report.page import Section, Table
from dynid.report.shown import Shown
from dynid.report.verdict import percent


def filtering_section(shown: Shown) -> Section | None:
    """How signals were filtered and rows were made."""
    run = shown.run
    if run.filter is None:
        return None
    text = f"Used: {run.filter.describe()}."
    if not run.trials:
        given = run.settings.cutoff_hz != "auto"
        return Section(
            "Filter",
            f"{text} {'The settings say so.' if given else 'The filters that were tried are not stored with this run.'}",
        )
    trials = [
        (
            "logged velocity" if trial.filter.velocity == "logged" else "velocity from position",
            trial.filter.cutoff_hz,
            trial.error,
        )
        for trial in run.trials
    ]
    if len({cutoff for _, cutoff, _ in trials}) > 1:
        return Section("Filter", text, (trial_figure(trials, run.filter.cutoff_hz),))
    rows = tuple((source, f"{cutoff:g}", percent(error)) for source, cutoff, error in trials)
    table = Table(("velocity", "cut-off, Hz", "held-out error against raw torque"), rows, numeric=(1, 2))
    return Section("Filter", text, (table,))
