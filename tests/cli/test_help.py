"""``--help`` as users see it: no word of a text is lost to the markup of the terminal, and every verb has an example."""

from __future__ import annotations

import re

import pytest
from rich.text import Text
from typer.main import get_command

from cli_program import app


def verbs(group, name=""):
    """Every command with its name, those of groups too."""
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from verbs(command, f"{name}{word} ")
        else:
            yield pytest.param(command, id=f"{name}{word}")


@pytest.mark.parametrize("command", list(verbs(get_command(app))))
def test_no_word_of_a_help_text_is_lost(command) -> None:
    for parameter in command.params:
        written = getattr(parameter, "help", None) or ""
        shown = Text.from_markup(written).plain
        assert shown == written.replace("\\[", "["), parameter.name
        assert "[]" not in shown, parameter.name


@pytest.mark.parametrize("command", list(verbs(get_command(app))))
def test_every_verb_says_what_it_does_and_shows_an_example(command) -> None:
    shown = Text.from_markup(command.help or "").plain
    assert re.search(r"\bdynid \w", shown), command.name
