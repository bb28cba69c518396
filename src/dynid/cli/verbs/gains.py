"""``dynid gains``: drive gains from logs with and without a load of known mass."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dynid.cli.console import percent, say, show, show_json, show_table
from dynid.cli.options import AsJson, LogFiles
from dynid.cli.schema import own_options, takes_options
from dynid.run.gains_options import FILTER, GROUPS, GainsSettings
from dynid.run.options import Reading, Rows

NOT_HERE = ("drive_gains", *(name for name in Rows.__dataclass_fields__ if name not in FILTER))


@takes_options(*GROUPS, Reading, Rows, without=NOT_HERE)
def gains(
    unloaded: Annotated[
        str,
        typer.Argument(
            metavar="RUN|LOG", help="A run without the load, or a log without it (with --robot).", show_default=False
        ),
    ],
    logs: LogFiles,
    given: dict[str, Any],
    robot: Annotated[
        Path | None,
        typer.Option(
            "--robot",
            metavar="ROBOT",
            help="Robot description, where a log was given in place of a run.",
            show_default=False,
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Drive gains (N m per A) from motor current with and without a load of known mass; gains that cannot be seen are named.

    Logs with joint torque in place of current give the gains of the torque sensors.

    Example: [bold]dynid gains unloaded.parquet loaded.parquet --robot arm.urdf --mass 2.8[/bold]
    """
    from dynid.run.gains_asked import gains_of

    own, rest = own_options(given, GainsSettings)
    asked = GainsSettings(**own)
    found = gains_of(unloaded, logs, robot, asked, rest)
    if json:
        show_json(found.as_dict())
        return
    # a gain that the logs do not show has a value only together with a given one
    unseen = "not identifiable" if asked.gains_prior is None else "{:.3f}, not by the logs alone"
    beside = found.least_squares or (None,) * len(found.gains)
    rows = [
        (
            gain.joint,
            f"{gain.value:.3f}" if gain.identifiable else unseen.format(gain.value),
            f"{1.96 * gain.sigma:.3f}" if gain.identifiable or asked.gains_prior is not None else "-",
            f"{other.value:.3f}" if other is not None and gain.identifiable else "-",
        )
        for gain, other in zip(found.gains, beside, strict=True)
    ]
    show_table(("joint", f"gain, {found.unit}", "+- (95 %)", "least squares"), rows)
    loads = ", ".join(f"{load[0]:.4g}" for load in found.loads)
    show(f"load of {loads} kg on '{found.frame}'; error of the signal {percent(found.relative_error)}")
    for note in found.notes:
        say(f"note: {note}")
