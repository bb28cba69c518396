"""Tables as text: the same with and without the library that folds wide ones."""

from __future__ import annotations

import pytest

from dynid.cli import console

HEADER = ("base parameter", "value", "sigma")
ROWS = [["Ixx2 - Iyy2 + 0.1 m3", "1.2345", "0.5 %"], ["[bold]m:smile:", "-12", ""], ["", "3e-09", "-"]]


@pytest.mark.parametrize("text", [(0,), (0, 2), ()])
@pytest.mark.parametrize("rows", [ROWS, ROWS[:1], []])
def test_a_plain_table_is_what_the_library_draws(
    rows: list[list[str]], text: tuple[int, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    plain = console._plain_table(HEADER, rows, "", text, 200, bold=False)
    console._folded_table(HEADER, rows, "", text, 200)
    assert plain == capsys.readouterr().out


@pytest.mark.parametrize("cell", ["x" * 200, "\u5173\u8282", "\x1b[31m", "two\nlines"])
def test_what_must_be_folded_or_has_wide_characters_is_left_to_the_library(
    cell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert console._plain_table(HEADER, [[cell, "1", "2"]], "", (0,), 200, bold=False) is None
    console.show_table(HEADER, [[cell, "1", "2"]])
    assert "sigma" in capsys.readouterr().out
