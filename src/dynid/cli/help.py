"""Help in two floors: ``--help`` shows the options that most runs need, by question; ``--help-all`` shows all of them."""

from __future__ import annotations

import copy
import difflib
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperCommand

QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "My log": (
        "--robot", "--sensor", "--frame", "--mass", "--kp", "--kd", "--delay", "--joints", "--preset", "--mapping", "--drive-gains",
        "--lock", "--robot-id", "--day", "--pattern", "--source", "--where",
    ),
    "My model": ("--friction", "--method", "--methods", "--gravity", "--free", "--hold", "--viscous", "--coulomb"),
    "My motion": (
        "--period", "--harmonics", "--shape", "--rate", "--until", "--fraction", "--robot-limits", "--home", "--clearance", "--ground",
        "--box", "--ceiling", "--plane",
    ),
    "Unseen data": ("--split", "--validate", "--max-error", "--max-change", "--replay", "--apply-advice"),
    "Output": (
        "--output", "--export", "--format", "--picture", "--card", "--report", "--page", "--table", "--verbose", "--json",
        "--quiet", "--help-all",
    ),
}  # fmt: skip
"""Options of the short help, under the question that they answer; a verb shows those that it has."""
FEW = 16
"""Options up to which a verb shows all of them in its short help."""
BESIDE = "Body on a force/torque sensor ("
"""Panel of options for another kind of log than most; the short help leaves it out."""
_FOLDED = 96
"""Characters of a help text that the short help shows: its first sentence, but no more than this."""


class TwoFloors(TyperCommand):
    """A verb whose ``--help`` is short; it also names the nearest flag where one was misspelt."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        if ctx.meta.get("dynid.help_all"):
            super().format_help(ctx, formatter)
            return
        kept, line = self.params, self.help
        options = [one for one in self.params if one.param_type_name == "option"]
        if len(options) > FEW:
            shown = _first_options(options)
            self.params = [*(_in_short(one) for one in kept if one not in options), *shown]
            left = len(options) - len(shown)
            self.help = f"{_short(line or '')}\n\n{left} more options: [bold]--help-all[/bold]"
        try:
            super().format_help(ctx, formatter)
        finally:
            self.params, self.help = kept, line

    def get_help_option(self, ctx: Any) -> Any:
        found = super().get_help_option(ctx)
        if found is not None:
            found.rich_help_panel = "Output"
        return found

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            possible = getattr(error, "possibilities", None)
            if possible:  # the nearest alone, not every flag that begins alike
                error.possibilities = difflib.get_close_matches(error.option_name, possible, n=1) or possible  # type: ignore[attr-defined]
            raise


def _first_options(options: list[Any]) -> list[Any]:
    """The options that answer a question, in its panel, each with the first sentence of its text."""
    found: list[Any] = []
    for question, names in QUESTIONS.items():
        asked = {flag: one for one in options for flag in one.opts if flag in names and not _beside(one)}
        needed = [one for one in options if one.required and question == "My log" and one not in asked.values()]
        chosen = [*needed, *(asked[flag] for flag in names if flag in asked)]
        found += [_in_short(one, question) for one in chosen]
    return found


def _in_short(one: Any, panel: str | None = None) -> Any:
    shown = copy.copy(one)
    shown.rich_help_panel, shown.help = panel, _sentence(one.help or "")
    return shown


def _beside(one: Any) -> bool:
    return str(one.rich_help_panel or "").startswith(BESIDE)


def _sentence(text: str) -> str:
    """The first sentence, without the default, which ``--help-all`` shows."""
    first = text.split(". ")[0].rstrip(".")
    if len(first) > _FOLDED:
        first = next((part for part in (first.split("; ")[0], first.split(": ")[0]) if len(part) <= _FOLDED), first)
    return f"{first}."


def _short(text: str) -> str:
    """The first paragraph and the example of a docstring."""
    first, *rest = text.split("\n\n")
    return "\n\n".join([first, *(part for part in rest if "[bold]dynid" in part)])


def show_all(ctx: typer.Context, asked: bool) -> None:
    """Print the help with every option, and end."""
    if asked:
        ctx.meta["dynid.help_all"] = True
        ctx.get_help()  # prints by itself where there is Rich
        raise typer.Exit


FIRST_STEPS = """dynid identifies the dynamic model of a robot from its description and logs.

  dynid demo                            see it work on a simulated arm
  dynid guide ur arm.urdf log.csv       the commands for your robot:
                                        ur, franka, ros2, legged, servo, ...
  dynid data log.csv --robot arm.urdf   what is in your log, and what is wrong
  dynid identify arm.urdf log.csv --split 0.65
                                        model, error on unseen data, report
  dynid --help                          every command
"""
"""What ``dynid`` alone says."""
