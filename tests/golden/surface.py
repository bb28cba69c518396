"""The public surface as text: every name the package offers and every flag of every verb, one a line."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

import dynid
from dynid.cli.program import program

SNAPSHOT = Path(__file__).parent / "surface.txt"
HEADING = (
    "# Public names and flags. Written by `python tests/golden/make.py --surface`; a change here is a change for users."
)


def surface() -> str:
    """The whole snapshot."""
    return "\n".join([HEADING, "", *names("dynid", dynid), "", *verbs(bare_program())]) + "\n"


def bare_program() -> Any:
    return typer.main.get_command(program())


def names(path: str, module: Any) -> Iterator[str]:
    """Names that a module offers, each with what it is and, for functions, with its arguments."""
    for name in sorted(module.__all__):
        yield f"{path}.{name}{kind(getattr(module, name))}"


def kind(value: Any) -> str:
    """What a name is: arguments of a function (defaults are told by their being there), fields of a class, or the kind of value."""
    if inspect.ismodule(value):
        return ": module"
    if inspect.isclass(value):
        return ": class" + arguments(value)
    if callable(value):
        return arguments(value)
    return f": {type(value).__name__}"


def arguments(value: Any) -> str:
    """Names of parameters in order; ``name=`` has a default, what follows ``*`` is given by name."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    shown, by_name = [], False
    for one in parameters:
        if one.kind is one.VAR_POSITIONAL or (one.kind is one.KEYWORD_ONLY and not by_name):
            by_name = True
            shown.append(f"*{one.name}" if one.kind is one.VAR_POSITIONAL else "*")
        if one.kind is one.VAR_KEYWORD:
            shown.append(f"**{one.name}")
        elif one.kind is not one.VAR_POSITIONAL:
            shown.append(one.name if one.default is one.empty else f"{one.name}=")
    return f"({', '.join(shown)})"


def verbs(group: Any, before: str = "dynid") -> Iterator[str]:
    """Every verb with its arguments and flags: their spellings, whether they repeat, and the default."""
    for word, command in sorted(group.commands.items()):
        path = f"{before} {word}"
        if hasattr(command, "commands"):
            yield from verbs(command, path)
            continue
        for parameter in command.params:
            yield f"{path} {flag(parameter)}"


def flag(parameter: Any) -> str:
    """One argument or flag."""
    if parameter.param_type_name == "argument":
        return f"{parameter.metavar or parameter.name.upper()}{' ...' if parameter.nargs == -1 else ''}"
    spelt = "/".join([*parameter.opts, *parameter.secondary_opts])
    default = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    told = "" if default in (None, False, (), []) else f" = {default}"
    return f"{spelt}{' (repeats)' if parameter.multiple else ''}{told}"
