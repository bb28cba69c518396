"""``dynid gains``: drive gains from logs with and without a load of known mass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.apps.gains.options import FILTER, GainsSettings
from dynid.cli.console import percent, say, show_json
from dynid.cli.schema import AsJson, LogFiles, own_options, takes_options
from dynid.cli.screen import Screen
from dynid.errors import InputError
from dynid.option_types import flag_of, options_of
from dynid.pipeline.option_groups import READING, ROWS
from dynid.pipeline.options import Settings

if TYPE_CHECKING:
    from dynid.apps.gains.problem import DriveGains

NOT_HERE = ("drive_gains", *(one.name for one in options_of(Settings, ROWS) if one.name not in FILTER))


@takes_options(options_of(GainsSettings), options_of(Settings, READING, ROWS), without=NOT_HERE)
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
    known = sum(gain.identifiable for gain in found.gains)
    loads = ", ".join(f"{load[0]:.4g}" for load in found.loads)
    screen = Screen()
    screen.line(
        f"{known} of {len(found.gains)} drive gains found: error of the signal {percent(found.relative_error)}, load of {loads} kg on "
        f"'{found.frame}'",
        "good" if known == len(found.gains) else "warning",
    )
    screen.table(("joint", f"gain, {found.unit}", "+- (95 %)", "unweighted"), rows, most=len(rows))
    if found.least_squares:
        screen.line("unweighted: plain least squares on the same rows, to compare; where the two differ, trust neither much")
    for note in found.notes:
        say(f"note: {note}")
    if known == len(found.gains):
        screen.last(f"next: dynid identify ROBOT LOG --drive-gains {','.join(f'{gain.value:.4g}' for gain in found.gains)}")
    screen.show()


def gains_of(
    unloaded: str,
    loaded: Sequence[str | Path],
    robot: str | Path | None,
    asked: GainsSettings,
    reading: Mapping[str, Any],
) -> DriveGains:
    """The gains that ``dynid gains`` finds.

    Args:
        unloaded: a run without the load, or a log without it.
        loaded: logs with the load.
        robot: description of the robot, where a log was given in place of a run.
        asked: what is known and how it is estimated.
        reading: those options of a run that were given, by name: how logs are read and filtered.
    """
    from dynid.apps.gains.gains import identify_gains
    from dynid.io.logs.log_file import log_path
    from dynid.io.robots.read import read_robot
    from dynid.pipeline.folder import load_robot_result

    source: Any
    without: list[str | Path] = [unloaded]
    if (Path(unloaded) / "run.json").is_file():
        # what a run says already is refused, rather than left without effect
        given = {"--robot": robot is not None, "--effects": asked.effects != GainsSettings().effects}
        given |= {flag_of(one): one.name in reading for one in options_of(Settings) if one.name in FILTER}
        for flag in (flag for flag, is_given in given.items() if is_given):
            raise InputError(
                f"{flag} was given beside a run, whose robot, friction and filter are used: leave it out, or give a log in place of "
                "the run, with --robot"
            )
        source = load_robot_result(unloaded)
        without = [path for path, _ in source.logs]
        settings = Settings.from_dict(source.settings.as_dict() | dict(reading))
    else:
        if robot is None:
            raise InputError(f"{log_path(unloaded)} is a log, expected --robot ROBOT beside it, or a run in its place")
        source, settings = read_robot(robot, asked.effects or "none"), Settings(**reading)
    return identify_gains(
        source,
        without,
        loaded,
        asked.mass,
        total=asked.total,
        frame=asked.frame,
        settings=settings,
        method=asked.method,
        prior=asked.gains_prior,
        prior_sigma=asked.gains_prior_percent / 100.0,
    )
