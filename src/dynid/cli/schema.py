"""Flags made from the options of a run, so that each option is written once, in :mod:`dynid.run.options`."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import Field
from typing import Annotated, Any, get_type_hints

import typer

from dynid.cli.console import be_quiet, log_to_stderr
from dynid.errors import InputError
from dynid.run.kinds import Switch
from dynid.run.option import default_of, flag_of, is_flag, kind_of, options_of

LAST = {"json": 1, "quiet": 2}
"""Flags that every verb shows last, in this order."""


def takes_quiet(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Give a verb the flag ``--quiet``, which every verb has."""
    settings: dict[str, Any] = {"help": "Only the result and errors: no progress, no notes.", "show_default": False}
    flag = _keyword("quiet", Annotated[bool, typer.Option("--quiet", "-q", **settings)], default=False)

    def heeded(typed: dict[str, Any]) -> dict[str, Any]:
        be_quiet(typed["quiet"])
        log_to_stderr()
        return {}

    return _with_flags(verb, [flag], heeded)


def takes_options(*groups: type, without: Iterable[str] = ()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Give a verb the flags of some groups of options; the verb gets those that were typed as ``given``, by name."""
    left_out = set(without)
    panels = {one.name: _panel(group) for group in groups for one in options_of(group)}
    chosen = [one for one in options_of(*groups) if is_flag(one) and one.name not in left_out]
    flags = [_keyword(one.name, _typed(one, panels[one.name])) for one in chosen]
    return lambda verb: _with_flags(verb, flags, lambda typed: {"given": _parsed(chosen, typed)})


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


def _panel(group: type) -> str:
    """The heading of a group of flags: what its class says it holds."""
    return (group.__doc__ or "").strip().splitlines()[0].rstrip(".")


def _typed(one: Field[Any], panel: str) -> Any:
    """How typer reads an option: as text, which the option's kind then takes apart."""
    kind, default = kind_of(one), default_of(one)
    plain = default is None or default in ({}, ())
    words = _as_written(one.metadata["help"])
    settings: dict[str, Any] = {
        "help": words if plain else f"{words} \\[default: {kind.text(default)}]",
        "show_default": False,
        "rich_help_panel": panel,
    }
    if isinstance(kind, Switch):
        flag = flag_of(one)
        names = [f"{flag}/--no-{flag[2:]}", *([f" /{kind.off}"] if kind.off else [])]
        return Annotated[bool | None, typer.Option(*names, **settings)]
    taken: Any = list[str] | None if kind.repeated else str | None
    return Annotated[taken, typer.Option(flag_of(one), *one.metadata["also"], metavar=kind.metavar or "TEXT", **settings)]


def _as_written(text: str) -> str:
    """A text in which ``[[spring]]`` and the like are words, not markup of the terminal."""
    return re.sub(r"\[(?=[a-zA-Z/#@])", r"\\[", text)


def _parsed(chosen: list[Field[Any]], typed: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in chosen:
        text = typed[one.name]
        if text is None or text == []:
            continue
        name, flag = kind_of(one).gives(text, one.name), flag_of(one)
        if name not in typed:
            raise InputError(f"{flag} is '{text}', expected {getattr(kind_of(one), 'expected', kind_of(one).metavar)}")
        if name in found or (name != one.name and typed[name] is not None):
            raise InputError(f"{flag} {text} and --{name.replace('_', '-')} were both given, expected one of the two")
        found[name] = kind_of(one).parse(text, flag)
    return found
