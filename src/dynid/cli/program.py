"""The program made of verbs. Nothing heavy is imported here, and a verb's module only when the verb is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Annotated

import typer

from dynid.cli.console import log_to_stderr, show
from dynid.cli.schema import takes_quiet

VERBS = (
    "demo",
    "init",
    "doctor",
    "data",
    "base",
    "check",
    "repair",
    "excite",
    "simulate",
    "identify",
    "validate",
    "compare",
    "compare-runs",
    "payload",
    "gains",
    "actuators",
    "watch",
    "export",
    "report",
    "fleet",
    "store",
)
"""In the order of ``dynid --help``. Each is a function, or a family of verbs, of its own name in a module of its own name."""


def needed_verbs(words: Sequence[str]) -> tuple[str, ...]:
    """The verb that a command line names first; all of them where it names none, for help and for what is misspelt."""
    return (words[0],) if words and words[0] in VERBS else VERBS


def program(verbs: Iterable[str] = VERBS) -> typer.Typer:
    """The program with these verbs."""
    made = typer.Typer(
        name="dynid",
        help="Robot dynamic identification: from a robot description and logs of its motion to a validated dynamic model.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    made.callback()(_common)
    for name in verbs:
        module = name.replace("-", "_")
        verb = getattr(import_module(f"dynid.cli.verbs.{module}"), module)
        if isinstance(verb, typer.Typer):
            made.add_typer(verb, name=name)
        else:
            made.command(name)(takes_quiet(verb))
    return made


def _show_version(asked: bool) -> None:
    if asked:
        from dynid import __version__

        show(f"dynid {__version__}")
        raise typer.Exit


def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    log_to_stderr()
