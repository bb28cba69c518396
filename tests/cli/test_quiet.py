"""``--quiet``: every verb has it; notes and progress are left out, results and errors are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from bench import PLAIN, Bench
from cli_program import app
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


def test_notes_on_the_result_are_left_out_too(bench: Bench) -> None:
    """What a verb prints on stdout beside its numbers; a description without masses has a note."""
    words = ["base", str(bench.urdf), "--lock", "elbow=0.3"]
    loud, quiet = CliRunner().invoke(app, words), CliRunner().invoke(app, [*words, "--quiet"])
    notes = [line for line in loud.stdout.splitlines() if line.startswith("note: ")]
    assert notes
    assert [line for line in loud.stdout.splitlines() if line not in notes] == quiet.stdout.splitlines()


def test_the_reason_of_an_exit_code_is_told_all_the_same(bench: Bench, tmp_path: Path) -> None:
    words = ["identify", str(bench.urdf), str(bench.log), "-o", str(tmp_path / "run"), *map(str, PLAIN), "--method", "ols"]
    done = CliRunner().invoke(app, [*words, "--max-error", "0", "--quiet"])
    assert done.exit_code == 1
    assert "more than the 0.00 % allowed" in done.stderr
