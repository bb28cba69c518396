"""Plain words: turns that readers had to read twice are in no help text, message or page; recipe and package need the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from typer.main import get_command

from cli_program import app

TOP = Path(__file__).resolve().parents[2]
BANNED = (
    "has no say", "beside it stands", "no better than to", "as consistent as it likes", "what a log lacks",
    "which physical statement makes",
    "is said", "are said", "where nobody asked", "no estimator gives back", "so it does", "came about", "that is none", "what it holds",
    "stands beside it", "for want of", "is heeded", "may be had", "nobody knows", "is told in", "found as it is",
)  # fmt: skip
"""Turns of phrase, and what they were replaced by is in the history of the pages."""
PAGES = [*sorted((TOP / "docs").glob("*.md")), TOP / "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_pages_are_in_plain_words(page: Path) -> None:
    text = " ".join(page.read_text(encoding="utf-8").lower().split())
    assert [turn for turn in BANNED if turn in text] == []


def _texts(group, name=""):
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _texts(command, f"{name}{word} ")
        else:
            yield (
                f"{name}{word}",
                " ".join([command.help or "", *(getattr(one, "help", None) or "" for one in command.params)]),
            )


def test_help_texts_are_in_plain_words() -> None:
    for name, text in _texts(get_command(app)):
        assert [turn for turn in BANNED if turn in " ".join(text.lower().split())] == [], name


def test_every_page_is_in_the_menu_and_linked_from_the_first_one() -> None:
    menu, first = (TOP / "mkdocs.yml").read_text(), (TOP / "docs" / "index.md").read_text()
    for page in sorted((TOP / "docs").glob("*.md")):
        assert page.name in menu, page.name
        assert page.name == "index.md" or f"({page.name})" in first, page.name


def test_the_conda_recipe_needs_what_the_package_needs() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    recipe = (TOP / "recipe" / "meta.yaml").read_text()
    named = {"pin": "pinocchio", "mujoco": "mujoco-python"}
    for line in project["dependencies"]:
        name, version = re.fullmatch(r"([\w-]+)>=([\d.]+)", line).groups()  # type: ignore[union-attr]
        assert f"- {named.get(name, name)} >={version}\n" in recipe, line
