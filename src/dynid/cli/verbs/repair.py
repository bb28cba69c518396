"""``dynid repair``: the nearest consistent model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.console import percent, show, show_json
from dynid.cli.options import AsJson


def repair(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="URDF, MJCF, SDF, DH file, run folder or file of parameters (.json).", show_default=False
        ),
    ],
    output: Annotated[
        Path,
        typer.Option(
            "-o", "--output", help="Repaired model: .urdf, .xml (MJCF), .sdf or .json (parameters).", show_default=False
        ),
    ],
    json: AsJson = False,
) -> None:
    """Write the nearest model whose links are all physically consistent; the robot's dynamics are kept where possible.

    Example: [bold]dynid repair arm.urdf -o arm_repaired.urdf[/bold]
    """
    from dynid.run.repairing import repair_model

    result, notes = repair_model(model, output)
    if json:
        show_json(
            {
                "feasible_before": result.feasible_before,
                "feasible_after": result.feasible_after,
                "base_kept": result.base_kept,
                "torque_change": result.torque_change,
                "changed": result.changed,
                "inconsistent": result.inconsistent,
                "files": [str(output)],
                "notes": notes,
            }
        )
    else:
        for note in notes:
            show(f"note: {note}")
        if result.feasible_before:
            show("every link was consistent; nothing was changed")
        else:
            show(f"inconsistent: {', '.join(result.inconsistent)}; changed: {', '.join(result.changed)}")
            kept = "the robot moves exactly as before" if result.base_kept else "no consistent model moves exactly as before"
            show(f"{kept}; torque on random states changes by {percent(result.torque_change, 4)}")
        show(f"written to {output}")
    if not result.feasible_after:
        raise typer.Exit(1)
