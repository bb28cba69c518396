"""``dynid base``: base parameters and their expressions.

``dynid check``: physical consistency of every body of a model, or feasibility of bare base values.

``dynid repair``: the nearest consistent model.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.console import exponent, percent, show, show_json, show_note, show_table
from dynid.cli.schema import (
    AsJson,
    ConstraintsFile,
    RobotFile,
    constraints_table,
    takes_options,
)
from dynid.errors import InputError
from dynid.option_types import options_of
from dynid.pipeline.options import Settings

if TYPE_CHECKING:
    from dynid.model.robot import Robot
    from dynid.pipeline.base_check import BaseCheck
    from dynid.validation.consistency import ModelConsistency


@takes_options(options_of(Settings), only=("effects", "gravity", "lock"))
def base(
    robot: RobotFile,
    given: dict[str, Any],
    floating: Annotated[
        bool, typer.Option("--floating", help="Put the robot on a floating base (legged or flying robots).")
    ] = False,
    json: AsJson = False,
) -> None:
    """Base parameters: the combinations of parameters that motion can determine.

    Example: [bold]dynid base arm.urdf --effects none[/bold]
    """
    from dynid.io.robots.read import read_robot
    from dynid.regression.base import reduce_to_base

    model = read_robot(robot, floating=floating, **given)
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


INERTIAL_SYMBOLS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")


@takes_options(options_of(Settings), only=("effects",))
def check(
    given: dict[str, Any],
    model: Annotated[
        Path | None,
        typer.Argument(
            metavar="MODEL", help="URDF, MJCF, SDF, DH file, run folder or file of parameters (.json).", show_default=False
        ),
    ] = None,
    base: Annotated[
        Path | None,
        typer.Option(
            "--base",
            metavar="VALUES.csv",
            help="Base values to check instead of a model: columns name or expression, and value. Their grouping is that of the "
            "robot MODEL, of the expressions, or of --grouping.",
            show_default=False,
        ),
    ] = None,
    grouping: Annotated[
        Path | None,
        typer.Option(
            "--grouping",
            metavar="K.csv",
            help="Matrix K of beta = K phi: parameter names in the header (m1, mx1, Ixx1 or L1xx ..), one line per base "
            "parameter, its label in a first column 'name' if it has one.",
            show_default=False,
        ),
    ] = None,
    condition: Annotated[
        str,
        typer.Option(
            "--condition", metavar="full|plain", help="With --base: plain leaves out the triangle inequality, as Sousa does."
        ),
    ] = "full",
    margin: Annotated[
        float,
        typer.Option(
            "--margin",
            metavar="E",
            help="With --base: smallest eigenvalue of every link, relative to its size in MODEL, in SI units without one.",
        ),
    ] = 1e-6,
    constraints: ConstraintsFile = None,
    json: AsJson = False,
) -> None:
    """Physical consistency of every link of a model; or, with --base, whether any robot can have given base values, with the
    proof and the nearest values that one can have. Exit code 1 if not.

    A link is consistent if its mass is positive and some distribution of mass has its inertia.

    Example: [bold]dynid check arm.urdf[/bold], [bold]dynid check --base beta.csv --grouping K.csv --condition plain[/bold]
    """
    if base is not None:
        _check_base(base, grouping, model, (condition, margin, constraints, given.get("effects")), json)
        return
    _check_links(model, grouping, constraints, json)


def _check_links(model: Path | None, grouping: Path | None, constraints: Path | None, json: bool) -> None:
    """Every link of a model, and the constraints that it must keep."""
    from dynid.validation.consistency import check_model

    if model is None:
        raise InputError("expected a model to check, or base values with --base VALUES.csv")
    if grouping is not None:
        raise InputError(f"--grouping '{grouping}' is for base values, none were given: name them with --base VALUES.csv")
    robot = _model(model)
    verdict = check_model(robot)
    violated = _violated(robot, constraints)
    if json:
        links = [asdict(link) for link in verdict.links]
        show_json({"feasible": verdict.feasible and not violated, "links": links, "violated": violated})
    else:
        _show_links(verdict, model.name)
        if constraints is not None:
            show("constraints: " + ("all are kept" if not violated else f"violated: {', '.join(violated)}"))
    if violated or not verdict.feasible:
        raise typer.Exit(1)


def _show_links(verdict: ModelConsistency, model: str) -> None:
    """Every link with its margin and fault, and the sum of them."""
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
    show_table(("link", "mass kg", "consistent", "triangle slack kg m^2", "min eigenvalue", "fault"), rows, text=(0, 2, 5))
    bad = verdict.inconsistent
    good = "every link is consistent"
    if all(link.empty for link in verdict.links):
        good = "there is nothing to check, no link has mass or inertia"
    show(f"{model}: " + (f"{len(bad)} inconsistent: {', '.join(bad)}" if bad else good))


def _violated(robot: Robot, constraints: Path | None) -> list[str]:
    """The constraints of a file that a robot does not keep."""
    if constraints is None:
        return []
    from dynid.estimation.consistency.consistent_set import violated_constraints
    from dynid.estimation.constraints.bounds import constraints_from_table

    return list(violated_constraints(robot, constraints_from_table(constraints_table(constraints))))


def _check_base(
    values: Path,
    grouping: Path | None,
    model: Path | None,
    asked: tuple[str, float, Path | None, tuple[str, ...] | None],
    json: bool,
) -> None:
    """Feasibility of base values, and the nearest feasible ones."""
    from dynid.estimation.constraints.bounds import constraints_from_table
    from dynid.pipeline.base_check import check_base, read_base_values

    condition, margin, constraints, effects = asked
    robot = None if model is None else _model(model, effects)
    given = read_base_values(values, grouping, robot)
    known = constraints_from_table(constraints_table(constraints))
    found = check_base(given, condition, margin, known)
    if json:
        show_json(found.as_dict())
    else:
        _show_base(found, values.name)
    if not found.verdict.feasible:
        raise typer.Exit(1)


def _show_base(found: BaseCheck, name: str) -> None:
    verdict, closest = found.verdict, found.closest
    if closest is not None and found.nearest is not None:
        rows = [
            (label, f"{value:.6g}", f"{new:.6g}", f"{new - value:.3g}")
            for label, value, new in zip(found.given.labels, found.given.values, closest, strict=True)
        ]
        show_table(("base parameter", "given", "closest", "change"), rows)
    elif found.bodies is not None:
        links = [(str(i + 1), *(f"{value:.5g}" for value in body)) for i, body in enumerate(found.bodies)]
        show("links with these base values (SI units, about the frame's origin):")
        show_table(("link", *INERTIAL_SYMBOLS), links)
    if verdict.decision == "feasible":
        show(f"{name}: feasible, proven: the links above meet the {verdict.condition} condition and have these base values")
    elif verdict.decision == "infeasible":
        show(
            f"{name}: infeasible, proven: no robot whose links meet the {verdict.condition} condition has these base values"
        )
        show(f"proof: {verdict.separation}")
        show(f"in conflict: {verdict.in_conflict}")
    else:
        show(f"{name}: {verdict.sentence}")
    if found.nearest is not None and closest is not None:
        show(f"closest feasible values: distance {exponent(found.distance)}, none is nearer than {exponent(found.bound)}")
    for note in found.notes:
        show_note(note)
    if verdict.inertia_matrix:
        show(verdict.inertia_matrix)


def _model(path: Path, effects: tuple[str, ...] | None = ()) -> Robot:
    """A robot's description, read without loading what runs need, or the robot of a run or of a file of parameters."""
    if path.is_dir() or path.suffix.lower() in (".json", ".npz"):
        from dynid.pipeline.folder import read_model

        return read_model(path)
    from dynid.io.robots.read import read_robot

    return read_robot(path, effects)


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
    from dynid.estimation.constraints.bounds import constraints_from_table
    from dynid.pipeline.export import repair_model

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
