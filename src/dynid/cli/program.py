"""The program made of verbs. Nothing heavy is imported here, and a verb's module only when the verb is asked for.

What a verb of the main path works on: robot, logs and settings, from its arguments and the file of ``--config``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dynid.cli.console import log_to_stderr, show
from dynid.cli.help import FIRST_STEPS, TwoFloors
from dynid.cli.schema import constraints_table, takes_quiet
from dynid.errors import InputError

if TYPE_CHECKING:
    from dynid.pipeline.options import Settings
    from dynid.pipeline.run_file import RunFile

VERBS = {
    "demo": "cli.verbs.demo",
    "guide": "apps.guide.verb",
    "init": "cli.verbs.data",
    "doctor": "cli.verbs.data",
    "data": "cli.verbs.data",
    "base": "cli.verbs.model",
    "check": "cli.verbs.model",
    "repair": "cli.verbs.model",
    "excite": "cli.verbs.motion",
    "simulate": "cli.verbs.motion",
    "identify": "cli.verbs.identify",
    "validate": "cli.verbs.validate",
    "predict": "cli.verbs.predict",
    "compare": "cli.verbs.compare",
    "compare-runs": "cli.verbs.compare",
    "payload": "apps.payload.verb",
    "gains": "apps.gains.verb",
    "actuators": "apps.actuators.verb",
    "watch": "apps.online.verb",
    "export": "cli.verbs.export",
    "report": "cli.verbs.export",
    "fleet": "apps.fleet.verb",
    "store": "apps.fleet.verb",
}
"""Where the function (or the family of verbs) of each name stands, in the order of ``dynid --help``."""


def needed_verbs(words: Sequence[str]) -> tuple[str, ...]:
    """The verb that a command line names first; all of them where it names none, for help and for what is misspelt."""
    return (words[0],) if words and words[0] in VERBS else tuple(VERBS)


def program(verbs: Iterable[str] = VERBS) -> typer.Typer:
    """The program with these verbs."""
    made = typer.Typer(
        name="dynid",
        help="Robot dynamic identification: from a robot description and logs of its motion to a validated dynamic model.",
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback(invoke_without_command=True)(_common)
    for name in verbs:
        verb = getattr(import_module(f"dynid.{VERBS[name]}"), name.replace("-", "_"))
        if isinstance(verb, typer.Typer):
            made.add_typer(verb, name=name)
        else:
            made.command(name, cls=TwoFloors)(takes_quiet(verb))
    return made


def _show_version(asked: bool) -> None:
    if asked:
        from dynid import __version__

        show(f"dynid {__version__}")
        raise typer.Exit


def _common(
    ctx: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    if ctx.invoked_subcommand is None:
        show(FIRST_STEPS.rstrip())
        raise typer.Exit
    log_to_stderr()


_DESCRIPTIONS = (".urdf", ".xml", ".mjcf", ".xacro", ".sdf", ".toml")


def _robot_and_logs(robot: Path | None, logs: Sequence[str] | None, file: RunFile) -> tuple[Path | None, list[Path]]:
    """Robot and logs where the first word may be a log.

    The robot is then that of the run file; without one it is a log of a sensor whose own motion is logged, which needs no robot.
    """
    from dynid.io.logs.paths import log_paths

    if robot is None or robot.suffix.lower() in _DESCRIPTIONS or robot.suffix == "" or not robot.is_file():
        return robot or file.robot, log_paths(logs or file.logs)
    behind = [Path(word) for word in logs or () if Path(word).suffix.lower() in _DESCRIPTIONS]
    if behind:
        raise InputError(
            f"'{robot}' is no robot description, and '{behind[0]}' is no log: the robot comes first, then the logs"
        )
    return file.robot, [robot, *log_paths(logs or ())]


def asked_run(
    robot: Path | None,
    logs: Sequence[str] | None,
    unseen: Sequence[str] | None,
    *,
    config: Path | None,
    constraints: Path | None,
    given: Mapping[str, Any] | None,
) -> tuple[RunFile, Settings]:
    """What these arguments ask for, and the settings; what they leave open is taken from the file.

    The robot is None where the logs are of a sensor whose own motion is logged. A run without either, or without logs where no
    coefficients stand for them, is refused.
    """
    from dynid.io.logs.paths import log_paths
    from dynid.pipeline.run_file import RunFile, read_run_file

    file = RunFile() if config is None else read_run_file(config)
    known = constraints_table(constraints)
    settings = file.settings({**(given or {}), **({"constraints": known} if known else {})})
    description, recordings = _robot_and_logs(robot, logs, file)
    if not recordings and (not settings.coefficients or description is None):
        found = "" if config is None else f"; '{config}' does not name both"
        raise InputError(f"expected a robot and at least one log, as arguments or in the file of --config{found}")
    validated = tuple(log_paths(unseen or file.validate))
    return replace(file, robot=description, logs=tuple(recordings), validate=validated), settings
