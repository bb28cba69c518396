"""``dynid gains``: drive gains from logs with and without a load of known mass."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dynid.cli.console import percent, say, show, show_json, show_table
from dynid.cli.options import AsJson, Effects, LogFiles, numbers
from dynid.cli.schema import takes_options
from dynid.errors import InputError
from dynid.run.options import Reading, Rows

_FILTER = ("velocity", "signals", "cutoff_hz", "signal_band_hz", "filter_order", "dead_zone")


@takes_options(Reading, Rows, without=[name for name in Rows.__dataclass_fields__ if name not in _FILTER] + ["drive_gains"])
def gains(
    unloaded: Annotated[
        str,
        typer.Argument(
            metavar="RUN|LOG", help="A run without the load, or a log without it (with --robot).", show_default=False
        ),
    ],
    logs: LogFiles,
    mass: Annotated[
        float | None,
        typer.Option("--mass", metavar="KG", help="Mass of the load, the same in all loaded logs.", show_default=False),
    ] = None,
    total: Annotated[
        float | None,
        typer.Option(
            "--total",
            metavar="KG",
            help="In place of --mass: every loaded log has a load of its own, and this is the mass of all of them together.",
            show_default=False,
        ),
    ] = None,
    robot: Annotated[
        Path | None,
        typer.Option(
            "--robot",
            metavar="ROBOT",
            help="Robot description, where a log was given in place of a run.",
            show_default=False,
        ),
    ] = None,
    frame: Annotated[
        str | None,
        typer.Option(
            "--frame", metavar="LINK", help="Frame that carries the load; default: the last link.", show_default=False
        ),
    ] = None,
    method: Annotated[
        str,
        typer.Option(
            "--method", metavar="NAME", help="tls (errors in the current), sdp (the same, links and load consistent) or ols."
        ),
    ] = "tls",
    gains_prior: Annotated[
        str | None,
        typer.Option(
            "--gains-prior",
            metavar="K1,K2,..",
            help="Gains of a data sheet, N m per A, combined with the data.",
            show_default=False,
        ),
    ] = None,
    gains_prior_percent: Annotated[
        float, typer.Option("--gains-prior-percent", metavar="PERCENT", help="Standard deviation of those gains.")
    ] = 10.0,
    effects: Effects = "viscous,coulomb,offset,armature",
    json: AsJson = False,
    given: dict[str, Any] | None = None,
) -> None:
    """Drive gains (N m per A) from motor current with and without a load of known mass; gains that cannot be seen are named.

    Logs with joint torque in place of current give the gains of the torque sensors.

    Example: [bold]dynid gains unloaded.parquet loaded.parquet --robot arm.urdf --mass 2.8[/bold]
    """
    from dynid.adapters.urls import log_path
    from dynid.cli.options import effect_names
    from dynid.robot.read import read_robot
    from dynid.run.gains import METHODS, identify_gains
    from dynid.run.options import Settings
    from dynid.run.store import load_run

    if method not in METHODS:
        raise InputError(f"--method is '{method}', expected one of {', '.join(METHODS)}")
    options = given or {}
    without: list[str | Path]
    model: Any
    if (Path(unloaded) / "run.json").is_file():
        model = load_run(unloaded)
        without = [path for path, _ in model.logs]
        settings = None if not options else Settings.from_dict(model.settings.as_dict() | options)
    else:
        if robot is None:
            raise InputError(f"{log_path(unloaded)} is a log, expected --robot ROBOT beside it, or a run in its place")
        model, without, settings = read_robot(robot, effect_names(effects) or "none"), [unloaded], Settings(**options)
    found = identify_gains(
        model,
        without,
        logs,
        mass,
        total=total,
        frame=frame,
        settings=settings,
        method=method,  # type: ignore[arg-type]
        prior=None if gains_prior is None else numbers(gains_prior, "--gains-prior"),
        prior_sigma=gains_prior_percent / 100.0,
    )
    if json:
        show_json(found.as_dict())
        return
    # a gain that the logs do not show has a value only together with a given one
    unseen = "not identifiable" if gains_prior is None else "{:.3f}, not by the logs alone"
    beside = found.least_squares or (None,) * len(found.gains)
    rows = [
        (
            gain.joint,
            f"{gain.value:.3f}" if gain.identifiable else unseen.format(gain.value),
            f"{1.96 * gain.sigma:.3f}" if gain.identifiable or gains_prior is not None else "-",
            f"{other.value:.3f}" if other is not None and gain.identifiable else "-",
        )
        for gain, other in zip(found.gains, beside, strict=True)
    ]
    show_table(("joint", f"gain, {found.unit}", "+- (95 %)", "least squares"), rows)
    loads = ", ".join(f"{load[0]:.4g}" for load in found.loads)
    show(f"load of {loads} kg on '{found.frame}'; error of the signal {percent(found.relative_error)}")
    for note in found.notes:
        say(f"note: {note}")
