"""Whether the bodies could exist."""

from __future__ import annotations

from dynid.report.estimate_plots import consistency_figure
from dynid.report.page import Folded, Section, Table
from dynid.report.shown import Shown


def consistency_section(shown: Shown) -> Section:
    """Whether the bodies could exist."""
    run = shown.run
    verdict = run.consistency
    rows = tuple(
        (
            link.name,
            f"{link.mass:.5g}",
            "empty" if link.empty else ("yes" if link.consistent else "no"),
            f"{link.triangle_slack:.3g}",
            f"{link.min_eigenvalue:.3g}",
            link.fault,
        )
        for link in verdict.links
    )
    header = ("link", "mass, kg", "consistent", "triangle slack, kg m²", "smallest eigenvalue", "fault")
    table = Table(header, rows, numeric=(1, 3, 4))
    text = (
        "A body is physically consistent if its mass is positive and its principal moments obey the triangle "
        "inequality. Motion does not determine how a sum is shared among links, so parameters that predict well may still "
        "belong to no physical body."
    )
    proven = run.feasibility
    if proven is not None:
        stated = proven.sentence or f"Base values: a robot whose links meet the {proven.condition} condition has them"
        text += f" {'; '.join(part for part in (stated[:1].upper() + stated[1:], proven.inertia_matrix) if part)}."
    return Section(
        "Physical consistency",
        text,
        (consistency_figure(run.robot, run.identified), Folded("Link by link", (table,))),
        "Consistency",
    )
