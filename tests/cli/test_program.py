"""The program loads the verb that is asked for and no other, and all of them where none is named."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.main import get_command

from cli_program import app
from dynid.cli.program import VERBS, needed_verbs


def test_the_program_has_every_verb_in_the_order_of_its_help() -> None:
    assert tuple(get_command(app).commands) == tuple(VERBS)


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (["identify", "arm.urdf", "log.csv"], ("identify",)),
        (["compare-runs", "a", "b"], ("compare-runs",)),
        (["store", "add"], ("store",)),
        ([], tuple(VERBS)),
        (["--help"], tuple(VERBS)),
        (["identfy", "arm.urdf"], tuple(VERBS)),
        (["compare_results"], tuple(VERBS)),
    ],
)
def test_only_the_verb_that_is_named_is_needed(words: list[str], needed: tuple[str, ...]) -> None:
    assert needed_verbs(words) == needed


def test_other_verbs_are_not_loaded() -> None:
    asked = "import sys; sys.argv = ['dynid', 'doctor', '--help']\nfrom dynid.cli import main\ntry: main()\nexcept SystemExit: pass\n"
    told = "print(*sorted(name for name in sys.modules if name.startswith('dynid.cli.verbs.')))"
    done = subprocess.run([sys.executable, "-c", asked + told], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "dynid.cli.verbs.data"


def test_a_misspelt_verb_is_answered_with_the_right_one() -> None:
    done = subprocess.run([sys.executable, "-m", "dynid", "identfy"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "'identify'" in done.stderr


def test_a_refusal_is_folded_on_a_terminal_and_one_line_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools search one line; a reader has 80 columns."""
    import os
    import sys

    from dynid import cli

    text = f"dynid: {'a word and ' * 40}the end\n"
    assert cli._folded(text) == text
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((80, 24)))
    lines = cli._folded(text).splitlines()
    assert max(map(len, lines)) <= 80
    assert " ".join(line.strip() for line in lines) == text.strip()
