"""Several methods on the same data."""

from __future__ import annotations

from dynid.report.estimate_plots import method_figure
from dynid.report.page import Section, Table
from dynid.report.shown import Shown
from dynid.report.verdict import percent


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
