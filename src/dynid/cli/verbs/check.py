"""``dynid check``: physical consistency of every body of a model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.console import show, show_json, show_table
from dynid.cli.options import AsJson


def check(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="URDF, MJCF, DH file or run folder.", show_default=False)],
    json: AsJson = False,
) -> None:
    """Whether every link could exist: positive mass and a density that has this inertia. Exit code 1 if not.

    Example: [bold]dynid check arm.urdf[/bold]
    """
    from dynid.run import read_model
    from dynid.validation.consistency import check_model

    verdict = check_model(read_model(model))
    if json:
        show_json({"feasible": verdict.feasible, "links": [asdict(link) for link in verdict.links]})
    else:
        rows = [
            (
                link.name,
                f"{link.mass:.6g}",
                "empty" if link.empty else ("yes" if link.consistent else "NO"),
                f"{link.triangle_slack:.3g}",
                f"{link.min_eigenvalue:.3g}",
                link.fault,
            )
            for link in verdict.links
        ]
        show_table(
            ("link", "mass kg", "consistent", "triangle slack kg m^2", "min eigenvalue", "fault"), rows, text=(0, 2, 5)
        )
        bad = verdict.inconsistent
        good = "every link is consistent"
        if all(link.empty for link in verdict.links):
            good = "there is nothing to check, no link has mass or inertia"
        show(f"{model.name}: " + (f"{len(bad)} inconsistent: {', '.join(bad)}" if bad else good))
    if not verdict.feasible:
        raise typer.Exit(1)
