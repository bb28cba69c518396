"""``--help`` as users see it: no word of a text is lost to the markup of the terminal, and every verb has an example."""

from __future__ import annotations

import re

import pytest
from rich.text import Text
from typer.main import get_command

from cli_program import app, dynid


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


def test_help_of_identify_fits_sixty_lines_and_the_rest_is_on_the_second_floor() -> None:
    short, whole = dynid("identify", "--help"), dynid("identify", "--help-all")
    assert short.returncode == whole.returncode == 0
    assert len(short.stdout.strip().splitlines()) <= 60
    flags = {flag for one in get_command(app).commands["identify"].params for flag in one.opts if flag.startswith("--")}
    assert {flag for flag in flags if flag not in whole.stdout} == set()
    assert "--split" in short.stdout
    assert "--signal-band-hz" not in short.stdout


@pytest.mark.parametrize("command", list(verbs(get_command(app))))
def test_every_verb_has_both_floors(command) -> None:
    assert any("--help-all" in one.opts for one in command.params)


def test_a_misspelt_flag_names_the_nearest() -> None:
    done = dynid("identify", "a.urdf", "b.csv", "--slpit", "0.5")
    assert done.returncode == 2
    assert "--split" in done.stderr
    assert "--spring" not in done.stderr


def test_the_program_alone_says_what_to_do_first() -> None:
    done = dynid()
    assert done.returncode == 0
    for verb in ("demo", "guide", "data", "identify"):
        assert f"dynid {verb}" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("verb", "flags"),
    [
        ("excite", ("--ceiling", "--clearance", "--home", "--ground", "--fraction", "--plane")),
        ("simulate", ("--viscous", "--coulomb")),
    ],
)
def test_the_short_help_has_what_keeps_a_motion_safe_and_what_its_example_uses(verb: str, flags: tuple[str, ...]) -> None:
    told = dynid(verb, "--help").stdout
    assert all(f" {flag} " in told for flag in flags)
    assert "where n ." not in told
