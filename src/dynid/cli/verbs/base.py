"""``dynid base``: base parameters and their expressions."""

from __future__ import annotations

from typing import Annotated

import typer

from dynid.cli.console import show, show_json, show_note, show_table
from dynid.cli.options import DEFAULT_EFFECTS, AsJson, Effects, Gravity, Lock, RobotFile, parsed_gravity, parsed_lock


def base(
    robot: RobotFile,
    effects: Effects = DEFAULT_EFFECTS,
    gravity: Gravity = None,
    lock: Lock = None,
    floating: Annotated[
        bool, typer.Option("--floating", help="Put the robot on a floating base (legged or flying robots).")
    ] = False,
    json: AsJson = False,
) -> None:
    """Base parameters: the combinations of parameters that motion can determine.

    Example: [bold]dynid base arm.urdf --effects none[/bold]
    """
    from dynid.regression.base import reduce_to_base
    from dynid.robot.read import read_robot

    model = read_robot(robot, effects, parsed_gravity(gravity), parsed_lock(lock), floating=floating)
    reduction = reduce_to_base(model)
    notes = [*model.source.notes, *([reduction.note] if reduction.note else [])]
    if json:
        show_json(
            {
                "robot": model.name,
                "n_parameters": reduction.n_parameters,
                "n_base": reduction.n_base,
                "base": reduction.as_list(),
                "notes": notes,
            }
        )
        return
    for note in notes:
        show_note(note)
    units = dict(zip(model.parameters.names, model.parameters.units, strict=True))
    rows = [(str(i + 1), item["expression"], units[item["name"]]) for i, item in enumerate(reduction.as_list())]
    show_table(("#", "base parameter", "unit"), rows, text=(1, 2))
    show(f"{model.name}: {reduction.n_parameters} parameters, {reduction.n_base} base parameters")
