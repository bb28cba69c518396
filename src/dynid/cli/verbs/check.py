"""``dynid check``: physical consistency of every body of a model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dynid.cli.console import show, show_json, show_table
from dynid.cli.options import AsJson

if TYPE_CHECKING:
    from dynid.robot.model import Robot


def check(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="URDF, MJCF, SDF, DH file, run folder or file of parameters (.json).", show_default=False
        ),
    ],
    json: AsJson = False,
) -> None:
    """Physical consistency of every link: positive mass and an inertia that some mass distribution has. Exit code 1 if not.

    Example: [bold]dynid check arm.urdf[/bold]
    """
    from dynid.validation.consistency import check_model

    verdict = check_model(_model(model))
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


def _model(path: Path) -> Robot:
    """A robot's description, read without loading what runs need, or the robot of a run or of a file of parameters."""
    if path.is_dir() or path.suffix.lower() in (".json", ".npz"):
        from dynid.run.store import read_model

        return read_model(path)
    from dynid.robot.read import read_robot

    return read_robot(path, "none")
