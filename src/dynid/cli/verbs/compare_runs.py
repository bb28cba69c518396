"""``dynid compare-runs``: two runs side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.console import percent, show, show_json, show_table
from dynid.cli.options import AsJson


def compare_runs(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.", show_default=False)],
    second: Annotated[Path, typer.Argument(metavar="OTHER", help="Folder of another run.", show_default=False)],
    on: Annotated[
        list[Path] | None,
        typer.Option(
            "--on", metavar="LOG", help="Log that neither run was identified on, to predict; repeat it.", show_default=False
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Show every value, not only those that differ.")] = False,
    json: AsJson = False,
) -> None:
    """Two runs side by side: what was done differently, which values differ beyond their uncertainty, and which run predicts
    the same log better.

    Example: [bold]dynid compare-runs monday tuesday --on unseen.parquet[/bold]
    """
    from dynid.run.compare_runs import compare_runs as compared
    from dynid.run.store import load_run

    found = compared(load_run(first), load_run(second), on or ())
    if json:
        show_json(found.as_dict())
        return
    if found.changes:
        show_table(("what", str(first), str(second)), list(found.changes), text=(0, 1, 2))
    else:
        show("both runs have the same robot, logs and settings")
    shown = found.values if every else found.differing
    if shown:
        rows = [
            (
                pair.name,
                _value(pair.first, pair.first_sigma),
                _value(pair.second, pair.second_sigma),
                "" if pair.distance is None else f"{pair.distance:+.1f}",
            )
            for pair in shown
        ]
        show_table(("base parameter", str(first), str(second), "difference / its sigma"), rows)
    show(found.sentence())
    if found.errors:
        band = found.errors[0].band_hz
        errors = [(Path(pair.log).name, percent(pair.first), percent(pair.second)) for pair in found.errors]
        title = "error of predicted torque" + ("" if band is None else f" in a band of {band:g} Hz")
        show_table(("log", str(first), str(second)), errors, title)


def _value(value: float | None, sigma: float | None) -> str:
    if value is None:
        return "not a parameter"
    return f"{value:.4g} (not from the data)" if sigma is None else f"{value:.4g} +- {1.96 * sigma:.2g}"
