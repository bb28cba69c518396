"""Advice can be followed: every flag and every mapping key that a message names exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from cli_program import app
from dynid.io.logs.layout import KEYS
from dynid.pipeline.options import all_options
from dynid.signals.steps import clock, cuts, filters

SOURCE = Path(__file__).parents[2] / "src" / "dynid"
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+")
OWN = {"--help", "--version", "--no-"}
"""Flags of the program as a whole, and the beginning of those that switch one off."""
FOREIGN = re.compile(r"ros2 [^']*|--no-gui|--no-init-file|--eval$")
"""Commands of other programs that a message may name, and flags by which Octave is started."""
MAPPING_KEY = re.compile(r"(?<![\w.])([a-z_]+) = [\[{]")
"""A key with a list or table, as a message would show it: ``torque = [..]``."""


def flags_of_program() -> dict[str, set[str]]:
    """Every flag of every verb."""
    return _flags(typer.main.get_command(app))


def _flags(group: Any) -> dict[str, set[str]]:
    """By verb; verbs of verbs, such as those of the store, count with the first."""
    found = {}
    for name, verb in group.commands.items():
        flags = {option for one in verb.params for option in (*one.opts, *one.secondary_opts)}
        found[name] = flags.union(*_flags(verb).values()) if hasattr(verb, "commands") else flags
    return found


def sentences() -> Iterator[tuple[str, str]]:
    """Every text of the source that is no docstring, with the place it stands at; f-strings with blanks for their values."""
    for path in sorted(SOURCE.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        docs = {
            id(node.body[0].value)
            for node in nodes
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
        left_out = docs | parts
        for node in nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in left_out:
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", node.value
            elif isinstance(node, ast.JoinedStr):
                text = "".join(part.value if isinstance(part, ast.Constant) else "\x00" for part in node.values)
                yield f"{path.relative_to(SOURCE)}:{node.lineno}", text


@pytest.fixture(scope="module")
def texts() -> list[tuple[str, str]]:
    return list(sentences())


def test_every_flag_in_a_message_is_one_of_some_verb(texts: list[tuple[str, str]]) -> None:
    known = set().union(*flags_of_program().values()) | OWN
    named = [(place, flag) for place, text in texts for flag in FLAG.findall(FOREIGN.sub("", text))]
    assert len(named) > 150  # the walk finds them at all
    assert [entry for entry in named if entry[1] not in known] == []


def test_commands_in_messages_take_their_flags(texts: list[tuple[str, str]]) -> None:
    verbs = flags_of_program()
    wrong = []
    for place, text in texts:
        for verb, rest in re.findall(r"\bdynid ([a-z-]+)([^'`;:)\n]*)", text):
            if verb in verbs:
                wrong += [(place, verb, flag) for flag in FLAG.findall(rest) if flag not in verbs[verb]]
    assert wrong == []


def test_findings_on_data_name_flags_of_identify_and_keys_of_mappings(texts: list[tuple[str, str]]) -> None:
    """What the data check advises is to be done to a run: its flags are those of identify, or of the verb that is named before them."""
    known = flags_of_program()
    checks = [
        (place, text)
        for place, text in texts
        if place.startswith(("signals/checks", "validation/data_check", "validation/misread_logs", "validation/model_fit"))
    ]
    of_verbs = [(place, verb, flag) for place, text in checks for verb, flag in re.findall(r"dynid (\w+) (--[a-z-]+)", text)]
    assert of_verbs
    plain = [(place, re.sub(r"dynid \w+ --[a-z-]+", "", text)) for place, text in checks]
    of_verbs += [(place, "identify", flag) for place, text in plain for flag in FLAG.findall(text)]
    assert [(place, verb, flag) for place, verb, flag in of_verbs if flag not in known[verb]] == []
    keys = [(place, key) for place, text in checks if "mapping" in text for key in MAPPING_KEY.findall(text)]
    assert keys
    assert [entry for entry in keys if entry[1] not in KEYS] == []


def test_settings_in_messages_exist(texts: list[tuple[str, str]]) -> None:
    """Python names of options that a refusal offers."""
    known = {one.name for one in all_options()}
    offered = [(place, name) for place, text in texts for name in re.findall(r"in Python (\w+)(?==|\)|,)", text)]
    known |= {"allow_inconsistent", "rate_hz", "joints"}
    assert [entry for entry in offered if entry[1] not in known] == []


def test_steps_in_findings_exist_and_are_said_to_be_python(texts: list[tuple[str, str]]) -> None:
    """A user of the command line must not be sent to a class."""
    found = [
        (place, text, name)
        for place, text in texts
        if place.startswith(("signals/checks", "validation/data_check", "validation/misread_logs", "validation/model_fit"))
        for name in re.findall(r"\b([A-Z][A-Za-z]+)\(", text)
    ]
    assert found
    assert [place for place, text, _ in found if "in Python" not in text] == []
    assert [name for _, _, name in found if not any(hasattr(module, name) for module in (clock, cuts, filters))] == []
