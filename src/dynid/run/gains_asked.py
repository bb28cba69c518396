"""The gains that ``dynid gains`` finds: from a run and loaded logs, or from logs with and without the load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dynid.adapters.urls import log_path
from dynid.errors import InputError
from dynid.estimation.drive_gains import DriveGains
from dynid.robot.model import Robot
from dynid.robot.read import read_robot
from dynid.run.gains import identify_gains
from dynid.run.gains_options import FILTER, GainsSettings
from dynid.run.option import flag_of, options_of
from dynid.run.options import Settings
from dynid.run.record import Run
from dynid.run.store import load_run


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
    source: Robot | Run
    without: list[str | Path]
    if (Path(unloaded) / "run.json").is_file():
        _refuse_beside_a_run(robot, asked, reading)
        source = load_run(unloaded)
        without = [path for path, _ in source.logs]
        settings = Settings.from_dict(source.settings.as_dict() | dict(reading))
    else:
        if robot is None:
            raise InputError(f"{log_path(unloaded)} is a log, expected --robot ROBOT beside it, or a run in its place")
        source, without, settings = read_robot(robot, asked.effects or "none"), [unloaded], Settings(**reading)
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


def _refuse_beside_a_run(robot: str | Path | None, asked: GainsSettings, reading: Mapping[str, Any]) -> None:
    """Refuse what a run says already, rather than leave it without effect."""
    given = {"--robot": robot is not None, "--effects": asked.effects != GainsSettings().effects}
    given |= {flag_of(one): one.name in reading for one in options_of(Settings) if one.name in FILTER}
    for flag, is_given in given.items():
        if is_given:
            raise InputError(
                f"{flag} was given beside a run, whose robot, friction and filter are used: leave it out, or give a log in place of "
                "the run, with --robot"
            )
