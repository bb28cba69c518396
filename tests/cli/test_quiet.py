"""``--quiet``: every verb has it; notes and progress are left out, results and errors are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from bench import Bench
from dynid.cli.app import app
from dynid.errors import InputError


def verbs(group, name=""):
    """Every command with its name, those of groups too."""
    for word, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from verbs(command, f"{name}{word} ")
        else:
            yield pytest.param(command, id=f"{name}{word}")


@pytest.mark.parametrize("command", list(verbs(get_command(app))))
def test_every_verb_has_it(command) -> None:
    assert any("--quiet" in one.opts for one in command.params)


def test_notes_are_left_out_and_come_back(bench: Bench, tmp_path: Path) -> None:
    words = [
        "simulate",
        str(bench.urdf),
        str(bench.motion),
        "-o",
        str(tmp_path / "log.csv"),
        "--rate",
        "100",
        "--armature",
        "0.2",
    ]
    quiet = CliRunner().invoke(app, [*words, "--quiet"])
    assert quiet.exit_code == 0
    assert quiet.stderr == ""
    assert "written to" in quiet.stdout
    assert "friction simulated" in CliRunner().invoke(app, words).stderr


def test_errors_are_raised_all_the_same(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.urdf"):
        CliRunner().invoke(app, ["base", str(tmp_path / "no.urdf"), "-q"], catch_exceptions=False)
