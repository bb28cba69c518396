"""One screen: 25 lines of 100 columns, narrow terminals, pipes, colour."""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys

import pytest

from dynid.cli import console
from dynid.cli.screen import LINES, Screen, bar, cut, fold


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def filled(n_notes: int = 40) -> Screen:
    screen = Screen()
    screen.line("verdict: good: predicts unseen torque to 1 %", "good")
    rows = [(f"a_joint_with_a_long_name_{k}", f"{k} %", float(k), "1 N m", "usable") for k in range(12)]
    screen.table(("joint", "unseen", "", "friction", "grade"), rows, text=(0, 4))
    screen.findings([("warning", f"joint {k} is " + "very " * 60 + "bad", "add --friction load") for k in range(5)])
    for k in range(n_notes):
        screen.remark(f"note number {k} " + "words " * 30)
    screen.last("next: dynid export run")
    return screen


@pytest.mark.parametrize("width", [40, 60, 80, 100, 300])
def test_no_line_is_wider_than_the_terminal_and_no_screen_higher_than_25(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(console.shutil, "get_terminal_size", lambda: os.terminal_size((width, 40)))
    filled().show()
    lines = out.getvalue().splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= min(width, 100)
    assert lines[0].startswith("verdict: good")
    assert lines[-1] == "next: dynid export run"


@pytest.mark.parametrize("width", [80, 100])
@pytest.mark.parametrize("n_joints", [3, 8, 30])
def test_a_full_screen_gives_rows_of_its_table_for_a_finding(
    monkeypatch: pytest.MonkeyPatch, width: int, n_joints: int
) -> None:
    """Long lines before the table and two at the end leave no room for what to do: fewer joints are shown, and counted."""
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(console.shutil, "get_terminal_size", lambda: os.terminal_size((width, 40)))
    screen = Screen()
    for k in range(4):
        screen.line(f"line {k} " + "words " * 30)
    screen.table(("joint", "unseen"), [(f"joint{k}", "1 %") for k in range(n_joints)])
    screen.line("not known: 3 of 9 parameters")
    screen.findings([("error", f"joint {k} is " + "very " * 30 + "bad", "record another motion") for k in range(5)])
    for _ in range(6):
        screen.remark("words " * 30)
    for _ in range(2):
        screen.last("next: " + "word " * 30)
    screen.show()
    lines = out.getvalue().splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= width
    shown = sum(line.startswith("joint") and line.endswith("1 %") for line in lines)
    assert shown >= 3
    assert (f"and {n_joints - shown} more" in lines) == (shown < n_joints)
    assert "  -> record another motion" in lines
    assert "not known: 3 of 9 parameters" in lines


def test_a_pipe_has_100_columns_and_no_colour(capsys: pytest.CaptureFixture[str]) -> None:
    filled().show()
    told = capsys.readouterr().out
    assert "\x1b" not in told
    assert len(told.splitlines()) <= LINES
    assert max(map(len, told.splitlines())) <= 100
    assert "and 4 more" in told
    assert "3 more findings: --verbose" in told  # sentences of four lines are whole or not there
    assert "very bad" in told
    assert "..." not in told
    assert "more notes: --verbose" in told


def test_a_command_in_several_lines_is_one_to_a_shell(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    words = [
        "dynid",
        "identify",
        "/some/example-robot-data/" + "arm/" * 10 + "arm.urdf",
        "my log-" + "x" * 120 + ".csv",
        "--split",
        "0.65",
    ]
    screen.next(shlex.join(words))
    screen.show()
    told = capsys.readouterr().out.removeprefix("next: dynid ")
    assert len(told.splitlines()) > 1
    heard = subprocess.run(["sh", "-c", f"printf '%s\\n' {told}"], capture_output=True, text=True, check=True).stdout
    assert heard.splitlines() == words[1:]


@pytest.mark.parametrize(
    ("name", "value", "coloured"), [("TERM", "xterm", True), ("NO_COLOR", "1", False), ("TERM", "dumb", False)]
)
def test_colour_is_for_terminals_that_want_it(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, coloured: bool
) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    filled().show()
    assert ("\x1b[" in out.getvalue()) == coloured


def test_all_notes_are_shown_where_there_is_room(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.line("one")
    for k in range(3):
        screen.remark(f"short {k}")
    screen.show()
    assert capsys.readouterr().out.splitlines() == ["one", "note: short 0", "note: short 1", "note: short 2"]


def test_bars_are_as_long_as_their_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert [len(bar(share, 24)) for share in (0.0, 1e-6, 0.5, 1.0, 2.0)] == [0, 1, 12, 24, 24]


def test_names_of_others_cannot_steer_the_terminal() -> None:
    assert cut("a\x1b[31mb\nc", 20) == "a?[31mb?c"
    assert fold("3\u00a0% of\ttorque") == ["3 % of?torque"]
    assert cut("shoulder_pan_joint", 12) == "shoul..joint"


def test_a_finding_is_shown_whole_or_counted(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    for k in range(18):
        screen.line(f"line {k}")
    screen.findings([("warning", f"joint {k} is bad", f"remedy {k} " + "words " * 30) for k in range(3)])
    screen.last("next: dynid export run")
    screen.show()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= LINES
    assert sum(line.startswith("warning: ") for line in lines) == sum(line.startswith("  -> ") for line in lines) == 1
    assert "2 more findings: --verbose" in lines
