"""``dynid repair``: the nearest consistent model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dynid.cli.console import percent, show, show_json, show_note
from dynid.cli.options import AsJson, ConstraintsFile, constraints_table


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
    constraints: ConstraintsFile = None,
    json: AsJson = False,
) -> None:
    """Write the nearest model whose links are all physically consistent; the robot's dynamics are kept where possible.

    Example: [bold]dynid repair arm.urdf -o arm_repaired.urdf[/bold]
    """
    from dynid.estimation.constraints.constraints import constraints_from_table
    from dynid.run.repairing import repair_model

    result, notes = repair_model(model, output, constraints_from_table(constraints_table(constraints)))
    if json:
        show_json(
            {
                "feasible_before": result.feasible_before,
                "feasible_after": result.feasible_after,
                "base_kept": result.base_kept,
                "torque_change": result.torque_change,
                "changed": result.changed,
                "inconsistent": result.inconsistent,
                "violated": result.violated,
                "files": [str(output)],
                "notes": notes,
            }
        )
    else:
        for note in notes:
            show_note(note)
        if result.feasible_before:
            kept = " and every constraint was kept" if constraints is not None else ""
            show(f"every link was consistent{kept}; nothing was changed")
        else:
            broken = [f"inconsistent: {', '.join(result.inconsistent)}"] if result.inconsistent else []
            broken += [f"constraints violated: {', '.join(result.violated)}"] if result.violated else []
            show("; ".join([*broken, f"changed: {', '.join(result.changed)}"]))
            kept = "the robot moves exactly as before" if result.base_kept else "no consistent model moves exactly as before"
            show(f"{kept}; torque on random states changes by {percent(result.torque_change, 4)}")
        show(f"written to {output}")
    if not result.feasible_after:
        raise typer.Exit(1)
