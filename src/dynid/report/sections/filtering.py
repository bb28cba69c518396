"""How signals were filtered and rows were made."""

from __future__ import annotations

from dynid.report.estimate_plots import trial_figure
from dynid.report.page import Section, Table
from dynid.report.shown import Shown
from dynid.report.verdict import percent
from dynid.run.bands import JUDGED_HZ


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
    if run.filter.row_band_hz is not None:
        tried = tuple(
            (
                f"{trial.filter.cutoff_hz:.4g}",
                f"{trial.filter.band_hz:g}",
                trial.filter.velocity,
                percent(trial.error),
                "chosen" if trial.filter == run.filter else "",
            )
            for trial in run.trials
        )
        header = ("signals below, Hz", "rows below, Hz", "velocity", f"held-out error below {JUDGED_HZ:g} Hz", "")
        reason = (
            " Signals are filtered where the spectrum of position meets its noise, or below; rows where held-out torque is "
            "predicted best."
        )
        return Section("Filter", text + reason, (Table(header, tried, numeric=(0, 1, 3)),))
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
