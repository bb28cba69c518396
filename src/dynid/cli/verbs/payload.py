"""``dynid payload``: a tool's or load's ten parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.console import percent, show, show_json
from dynid.cli.options import AsJson, LogFiles


def payload(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="Identification of the robot without the load.", show_default=False)
    ],
    logs: LogFiles,
    link: Annotated[
        str | None, typer.Option("--link", help="The link that carries the load; default: the last.", show_default=False)
    ] = None,
    json: AsJson = False,
) -> None:
    """Mass, centre of mass and inertia of a load, from a run without it and logs with it.

    Example: [bold]dynid payload run loaded.parquet[/bold]
    """
    from dynid.run.payload import identify_payload
    from dynid.run.store import load_run

    found = identify_payload(load_run(run), logs, link)
    if json:
        show_json(
            {
                "link": found.link,
                "mass": found.mass,
                "com": found.com,
                "inertia": found.inertia,
                "sigma": found.sigma,
                "phi": found.phi,
                "feasible": found.feasible,
                "relative_error": {"without": found.relative_error_without, "with": found.relative_error_with},
            }
        )
        return
    com = ", ".join(f"{value:.4f}" for value in found.com)
    show(f"load on link '{found.link}', in its frame")
    show(f"mass {found.mass:.4f} kg (sigma {found.sigma[0]:.4f}), centre of mass [{com}] m")
    for row in found.inertia:
        show("inertia about it " + "  ".join(f"{value: .5f}" for value in row) + " kg m^2")
    show(f"physically consistent: {'yes' if found.feasible else 'no'}")
    show(
        f"torque error on the loaded logs: {percent(found.relative_error_without)} without the load, "
        f"{percent(found.relative_error_with)} with it"
    )
