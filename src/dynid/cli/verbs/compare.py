"""``dynid compare``: every estimator on the same data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from dynid.cli.console import Stages, percent, show, show_json, show_table
from dynid.cli.options import (
    DEFAULT_EFFECTS,
    AsJson,
    DriveGains,
    Effects,
    Gravity,
    Lock,
    LogFiles,
    Mapping,
    Preset,
    RobotFile,
    effect_names,
    number_or_auto,
    numbers,
    parsed_gravity,
    parsed_lock,
)


def compare(
    robot: RobotFile,
    logs: LogFiles,
    methods: Annotated[
        str | None, typer.Option("--methods", help="Some methods, separated by commas; default: all.", show_default=False)
    ] = None,
    validate: Annotated[
        list[Path] | None,
        typer.Option("--validate", metavar="LOG", help="Unseen log to validate on; repeat for several.", show_default=False),
    ] = None,
    split: Annotated[
        float, typer.Option("--split", help="Share of each log to identify on, where no unseen log is given.")
    ] = 0.65,
    effects: Effects = DEFAULT_EFFECTS,
    gravity: Gravity = None,
    lock: Lock = None,
    friction: Annotated[
        str | None,
        typer.Option(
            "--friction", metavar="MODEL", help="Friction model in place of viscous, coulomb, offset (see identify)."
        ),
    ] = None,
    velocity: Annotated[str, typer.Option("--velocity", help="logged, position (differentiated) or auto.")] = "auto",
    cutoff_hz: Annotated[str, typer.Option("--cutoff-hz", help="Low-pass of all signals, or auto.")] = "auto",
    torque_cutoff_hz: Annotated[
        float | None, typer.Option("--torque-cutoff-hz", help="Its own cut-off for torque; default: the same.")
    ] = None,
    filter_order: Annotated[int, typer.Option("--filter-order", help="Order of the zero-phase Butterworth.")] = 4,
    from_s: Annotated[float | None, typer.Option("--from", help="Use each log from this time, s.")] = None,
    to_s: Annotated[float | None, typer.Option("--to", help="Use each log up to this time, s.")] = None,
    drive_gains: DriveGains = None,
    preset: Preset = None,
    mapping: Mapping = None,
    json: AsJson = False,
) -> None:
    """Every estimator on the same samples: error on known and unseen data, physical consistency, time.

    Example: [bold]dynid compare arm.urdf run.parquet --methods ols,wls,sdp[/bold]
    """
    from dynid.estimation.methods.registry import METHODS
    from dynid.run import Settings
    from dynid.run import compare as compare_methods

    settings = Settings(
        effects=effect_names(effects),
        gravity=parsed_gravity(gravity),
        lock=parsed_lock(lock),
        split=None if validate else split,
        friction=friction,
        velocity=cast(Literal["auto", "logged", "position"], velocity),
        cutoff_hz=number_or_auto(cutoff_hz, "--cutoff-hz"),
        torque_cutoff_hz=torque_cutoff_hz,
        filter_order=filter_order,
        from_s=from_s,
        to_s=to_s,
        drive_gains=None if drive_gains is None else tuple(numbers(drive_gains, "--drive-gains")),
        preset=preset,
        mapping=None if mapping is None else str(mapping),
    )
    chosen = METHODS if methods is None else tuple(name.strip() for name in methods.split(","))
    with Stages(quiet=json) as stages:
        run, found = compare_methods(robot, logs, settings, validate_on=validate or (), methods=chosen, tell=stages.tell)
    if json:
        assert run.filter is not None
        show_json({"methods": [one.as_dict() for one in found], "filter": run.filter.describe()})
        return
    rows = [
        (
            one.method,
            percent(one.identification),
            percent(one.validation),
            "yes" if one.estimate.feasible else "no",
            f"{one.seconds:.3f}",
            one.estimate.outcome.name.lower(),
        )
        for one in found
    ]
    show_table(("method", "error, known", "error, unseen", "consistent", "seconds", "outcome"), rows, text=(0, 3, 5))
    if run.filter is not None:
        show(f"errors against filtered torque; {run.filter.describe()}")
