"""Arguments that several verbs share, and flags made from options, so that each option is written once.

The options of a run stand in :mod:`dynid.pipeline.options`, those of an application in its own room.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import Field
from pathlib import Path
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from dynid.cli.console import be_quiet, log_to_stderr
from dynid.cli.help import show_all
from dynid.option_types import TRUST_XACRO, Switch, default_of, flag_of, is_flag, kind_of, options_of

RobotFile: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="ROBOT", help="Robot description: .urdf, .xacro, .xml (MJCF), .sdf or .toml (DH).", show_default=False
    ),
]
_LOGS = (
    "Logs: CSV, parquet, npz, ROS bags; LOG@10:25 is the part from 10 to 25 s. Also a folder, a pattern in quotes ('logs/*.csv'), a URL "
    "(https://, s3://, gs://)."
)
LogFiles: TypeAlias = Annotated[list[str], typer.Argument(metavar="LOG...", help=_LOGS, show_default=False)]
OptionalRobotFile: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="ROBOT", help="Robot description: .urdf, .xacro, .xml (MJCF), .sdf or .toml (DH).", show_default=False
    ),
]
OptionalLogFiles: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(metavar="LOG...", help=_LOGS, show_default=False),
]
UnseenLogs: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--validate", metavar="LOG", help="Unseen log to validate on; repeat for several.", show_default=False),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else on stdout.")]
Verbose: TypeAlias = Annotated[bool, typer.Option("--verbose", help="Print everything, not just one screen.")]
Output: TypeAlias = Annotated[Path, typer.Option("-o", "--output", help="Where to write.")]
RunFolder: TypeAlias = Annotated[
    Path | None, typer.Option("-o", "--output", help="Folder to write the run into; default: run.", show_default=False)
]
ConfigFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--config", help="Run file with these options (see dynid init); flags take precedence.", show_default=False
    ),
]
ConstraintsFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--constraints",
        metavar="FILE",
        help="TOML file with a table \\[constraints], such as that of a run file: what is known of the links beyond consistency.",
        show_default=False,
    ),
]
Seed: TypeAlias = Annotated[int, typer.Option("--seed", help="Seed of everything random.")]


def constraints_table(path: Path | None) -> dict[str, Any]:
    """The table of a file of constraints; empty without one."""
    if path is None:
        return {}
    from dynid.estimation.constraints.bounds import read_constraints_table

    return read_constraints_table(path)


LAST = {"verbose": 1, "json": 2, "trust_xacro": 3, "quiet": 4, "help_all": 5}
"""Flags that every verb shows last, in this order."""


def takes_quiet(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the flag ``--quiet``, which every verb has, and ``--trust-xacro`` where it takes a robot."""
    quiet: dict[str, Any] = {"help": "No progress, no notes: only the result and errors.", "show_default": False}
    trust: dict[str, Any] = {"help": "Let the package xacro run the expressions of a .xacro file.", "show_default": False}
    more: dict[str, Any] = {
        "help": "Show every option and exit.",
        "is_eager": True,
        "callback": show_all,
        "show_default": False,
    }
    flags = [
        _keyword("quiet", Annotated[bool, typer.Option("--quiet", "-q", **quiet)], default=False),
        _keyword("help_all", Annotated[bool, typer.Option("--help-all", **more)], default=False),
    ]
    if {"robot", "model", "run", "unloaded"} & inspect.signature(verb).parameters.keys():
        flags.append(_keyword("trust_xacro", Annotated[bool, typer.Option("--trust-xacro", **trust)], default=False))

    def heeded(typed: dict[str, Any]) -> dict[str, Any]:
        be_quiet(typed["quiet"])
        log_to_stderr()
        if typed.get("trust_xacro"):
            os.environ[TRUST_XACRO] = "1"  # processes that are started inherit it
        return {}

    return _with_flags(verb, flags, heeded)


def takes_options(
    *options: Iterable[Field[Any]], without: Iterable[str] = (), only: Iterable[str] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a verb the flags of some options; the verb gets those that were typed as ``given``, by name.

    Args:
        options: where two have the same name, the verb takes the first.
        without: names of options that the verb does not take.
        only: names of the options that the verb takes; all of them where none is named.
    """
    left_out, wanted = set(without), set(only)
    found: dict[str, Field[Any]] = {}
    for one in itertools.chain(*options):
        if is_flag(one) and one.name not in left_out and (not wanted or one.name in wanted):
            found.setdefault(one.name, one)
    chosen = list(found.values())
    flags = [_keyword(one.name, _typed(one)) for one in chosen]

    def parsed(typed: dict[str, Any]) -> dict[str, Any]:
        written = [one for one in chosen if typed[one.name] not in (None, [])]
        return {"given": {one.name: kind_of(one).parse(typed[one.name], flag_of(one)) for one in written}}

    return lambda verb: _with_flags(verb, flags, parsed)


def own_options(given: dict[str, Any], settings: type) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of the options that were typed, those that these settings have, and the others."""
    mine = {one.name for one in options_of(settings)}
    own = {name: value for name, value in given.items() if name in mine}
    return own, {name: value for name, value in given.items() if name not in mine}


def _with_flags(
    verb: Callable[..., Any], flags: list[inspect.Parameter], taken: Callable[[dict[str, Any]], dict[str, Any]]
) -> Callable[..., Any]:
    """A verb with more flags; ``taken`` gets their values, and returns what the verb is called with in their place."""

    @functools.wraps(verb)
    def called(**values: Any) -> Any:
        typed = {flag.name: values.pop(flag.name) for flag in flags}
        return verb(**values, **taken(typed))

    own = [parameter for parameter in _parameters(verb) if parameter.name != "given"]
    shown = sorted([*own, *flags], key=lambda parameter: LAST.get(parameter.name, 0))
    # typer reads these parameters in place of the wrapper's own
    called.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    called.__annotations__ = {one.name: one.annotation for one in shown}
    return called


def _keyword(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _parameters(verb: Callable[..., Any]) -> list[inspect.Parameter]:
    """A verb's own parameters with their types resolved, all by keyword, as typer calls them."""
    hints = get_type_hints(verb, include_extras=True)
    found = inspect.signature(verb).parameters.items()
    return [
        one.replace(annotation=hints.get(name, one.annotation), kind=inspect.Parameter.KEYWORD_ONLY) for name, one in found
    ]


def _typed(one: Field[Any]) -> Any:
    """How typer reads an option: as text, which the option's kind then takes apart."""
    kind, default = kind_of(one), default_of(one)
    plain = default is None or default in ({}, ())
    words = re.sub(r"\[(?=[a-zA-Z/#@])", r"\\[", one.metadata["help"])  # [[spring]] and the like are words, not markup
    settings: dict[str, Any] = {
        "help": words if plain else f"{words} \\[default: {kind.text(default)}]",
        "show_default": False,
        "rich_help_panel": one.metadata["group"] or None,
    }
    if isinstance(kind, Switch):
        flag = flag_of(one)
        names = [f"{flag}/--no-{flag[2:]}", *([f" /{kind.off}"] if kind.off else [])]
        return Annotated[bool | None, typer.Option(*names, **settings)]
    taken: Any = list[str] | None if kind.repeated else str | None
    return Annotated[taken, typer.Option(flag_of(one), *one.metadata["also"], metavar=kind.metavar or "TEXT", **settings)]
