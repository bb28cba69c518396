"""``dynid guide``: the commands for one kind of user."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Annotated

import typer

from dynid.cli.console import show, show_failure, show_json
from dynid.cli.schema import AsJson
from dynid.cli.screen import NO_END, fold
from dynid.errors import InputError

WIDEST = 100
"""Columns of a line."""


def guide(
    user: Annotated[
        str | None,
        typer.Argument(
            metavar="[USER]",
            help="ur, franka, ros2, legged, servo, fleet, sensor or paper; without it, what each is.",
            show_default=False,
        ),
    ] = None,
    robot: Annotated[
        Path | None, typer.Argument(metavar="[ROBOT]", help="Your robot's description.", show_default=False)
    ] = None,
    log: Annotated[Path | None, typer.Argument(metavar="[LOG]", help="A log of its motion.", show_default=False)] = None,
    run: Annotated[
        bool, typer.Option("--run", help="Run the commands that need no other file, up to the first that fails.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Print the commands for one kind of user, with your files filled in.

    The log is looked into first: joints that stand still are locked, and drive gains are taken from the log where the controller logs
    the torque and the current that it wants.

    Example: [bold]dynid guide ur arm.urdf log.csv[/bold]
    """
    from dynid.apps.guide.guides import GUIDES, guide_for

    if user is None:
        if json:
            show_json({"guides": {name: what for name, (what, _) in GUIDES.items()}})
            return
        for name, (what, _) in GUIDES.items():
            show(f"dynid guide {name:<8} {what}")
        return
    if (robot is None) != (log is None):
        raise InputError(f"'{robot or log}' was given alone, expected ROBOT and LOG, or neither")
    if run and robot is None:
        raise InputError("--run needs your files: dynid guide USER ROBOT LOG --run")
    files, steps = guide_for(user, robot, log)
    if json:
        show_json({"user": user, "steps": [step.as_dict() for step in steps], "notes": list(files.notes)})
    else:
        for note in files.notes:
            show("# " + "\n# ".join(fold(note, most=NO_END, indent=2)))
        for step in steps:
            beside = "" if step.ready or not files.given else " (fill in your own first)"
            show("# " + "\n# ".join(fold(f"{step.why}{beside}", most=NO_END, indent=2)))
            show(_in_lines(step.words))
    for step in steps if run else ():
        if not step.ready:
            continue
        sys.stdout.flush()
        sys.stderr.write(f"$ {step.command}\n")
        done = subprocess.run([sys.executable, "-m", "dynid", *step.words], check=False, stdout=sys.stderr if json else None)
        if done.returncode:
            show_failure(f"this command ended with code {done.returncode}: {step.command}")
            raise typer.Exit(done.returncode)


def _in_lines(words: Sequence[str]) -> str:
    """A command as a shell takes it, in lines of no more than 100 columns; blanks inside of words break none."""
    quoted = " ".join(shlex.quote(word).replace(" ", "\0") for word in ("dynid", *words))
    lines = wrap(quoted, WIDEST - 6, break_long_words=False, break_on_hyphens=False)
    return " \\\n    ".join(lines).replace("\0", " ")
