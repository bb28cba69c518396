"""One screen: the answer of a verb in at most 25 lines of 100 columns, what matters first.

Lines are folded to the terminal, colour is for terminals only (``NO_COLOR`` is heeded), and what does not fit is counted and named by the
option that shows it.
"""

from __future__ import annotations

import re
import shlex
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from dynid.cli.console import columns, in_colour, show, wants_notes

LINES = 25
JOINTS = 8
"""Joints that a screen names; the worst come first."""
FINDINGS = 3
WHOLE = 10
"""Lines that a finding or a note may take: enough for its whole sentence on narrow terminals."""
NO_END = 1_000_000
"""Lines of a screen that shows everything."""
_CODES = {"error": "31;1", "do not use": "31;1", "warning": "33", "usable": "33;1", "good": "32;1", "title": "1"}

Row: TypeAlias = Sequence[str | float | None]
"""Cells of a table; a number is drawn as a bar, relative to the largest of its column."""


def fold(text: str, most: int = 2, indent: int = 0) -> list[str]:
    """A text in lines of the screen's width; what is over is cut off with three dots.

    Args:
        text: one sentence or command.
        most: lines that it may take.
        indent: places that are put before each line.
    """
    plain, width = printable(text).replace(" %", "\u00a0%"), columns() - indent  # a number keeps its sign
    made = textwrap.wrap(plain, width, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False) or [""]
    lines = [line.replace("\u00a0", " ") for line in made]
    if len(lines) <= most:
        return lines
    kept = lines[:most]
    kept[-1] = f"{kept[-1][: width - 4]} ..."
    return kept


def bar(share: float, size: int) -> str:
    """A bar of ``size`` places for a share between 0 and 1; a share that is not zero has at least one place."""
    block = "\u2588" if str(getattr(sys.stdout, "encoding", "")).lower().startswith("utf") else "#"
    return block * (max(1, round(size * min(share, 1.0))) if share > 0.0 else 0)


class Screen:
    """What a verb found: lines that are always shown, remarks that are shown where there is room, and the last lines.

    ``whole``: everything is shown, however many lines it takes (``--verbose``).
    """

    def __init__(self, whole: bool = False) -> None:
        self._whole = whole
        self._lines: list[str] = []
        self._rows = range(0)
        """Places of the last table's rows, from which some go where the screen is full."""
        self._hidden = 0
        self._findings: list[list[str]] = []
        self._remarks: list[list[str]] = []
        self._last: list[str] = []

    def line(self, text: str, level: str = "", most: int = 2) -> None:
        """A sentence; ``level`` gives the words up to its first number, comma or second colon their colour."""
        self._lines += self._coloured(self._fold(text, most), level)

    def _fold(self, text: str, most: int = 2, indent: int = 0) -> list[str]:
        return fold(text, NO_END if self._whole else most, indent)

    @staticmethod
    def _coloured(lines: list[str], level: str) -> list[str]:
        first, *rest = lines
        if level in _CODES and in_colour():
            label = re.match(r"[^:]*:(?: [^:]*(?=:))?|.*", first)
            end = 0 if label is None else label.end()
            first = f"\x1b[{_CODES[level]}m{first[:end]}\x1b[0m{first[end:]}"
        return [first, *rest]

    def table(self, header: Sequence[str], rows: Iterable[Row], text: Sequence[int] = (0,), most: int = JOINTS) -> None:
        """A table of at most ``most`` rows, cut to the width: names are shortened, then columns on the right are left out.

        Args:
            header: of the columns; that of a bar is empty.
            rows: cells; a column of numbers is drawn as bars.
            text: columns that stand to the left.
            most: rows that are shown; a line says how many more there are.
        """
        every = list(rows)
        most = len(every) if self._whole else most
        shown = every[:most]
        bars = [k for k in range(len(header)) if any(isinstance(row[k], float) for row in shown)]
        cells = [["" if k in bars else str(cell) for k, cell in enumerate(row)] for row in shown]
        sizes = [max(len(row[k]) for row in (header, *cells)) for k in range(len(header))]
        while sum(sizes) + 2 * len(sizes) > columns() - 6 * len(bars) and max(sizes) > 12:
            sizes[sizes.index(max(sizes))] -= 1
        left = columns() - sum(sizes) - 2 * (len(sizes) - 1)
        for k in bars:
            sizes[k] = max(0, min(24, left // len(bars)))
            values = [float(row[k] or 0.0) for row in shown]
            for line, value in zip(cells, values, strict=True):
                line[k] = bar(value / (max(values) or 1.0), sizes[k])
        first_row = len(self._lines) + 1
        for index, words in enumerate((list(header), *cells)):
            left_side = [k in (*text, *bars) for k in range(len(words))]
            places = [(cut(word, size), size, first) for word, size, first in zip(words, sizes, left_side, strict=True)]
            fitted = [word.ljust(size) if first else word.rjust(size) for word, size, first in places]
            joined = "  ".join(fitted).rstrip()[: columns()]
            self._lines.append(f"\x1b[1m{joined}\x1b[0m" if index == 0 and in_colour() else joined)
        self._rows, self._hidden = range(first_row, len(self._lines)), len(every) - len(shown)
        if self._hidden:
            self._lines.append(f"and {self._hidden} more")

    def findings(self, found: Iterable[tuple[str, str, str]]) -> None:
        """Level, what was found and its remedy; the first three are shown, each of them whole or not at all."""
        for level, what, remedy in dict.fromkeys(found):
            text = f"{level}: {what[:1].lower() if what[1:2].islower() else what[:1]}{what[1:]}"
            arrows = [
                f"  -> {line.strip()}" if k == 0 else f"     {line.strip()}"
                for k, line in enumerate(self._fold(remedy, WHOLE, indent=5) if remedy else ())
            ]
            self._findings.append([*self._coloured(self._fold(text, WHOLE), level), *arrows])

    def remark(self, text: str) -> None:
        """A sentence that is shown where there is room."""
        if wants_notes():
            self._remarks.append(self._fold(f"note: {text}", WHOLE))

    def last(self, text: str, most: int = 2) -> None:
        """A line at the end."""
        self._last += self._fold(text, most)

    def next(self, command: str) -> None:
        """The command to go on with; where it takes several lines, a shell takes them as one."""
        lines = ["next:"]
        for word in map(shlex.quote, shlex.split(printable(command))):
            if len(lines[-1]) + len(word) + 3 > columns():
                lines[-1] += " \\"
                lines.append(f"    {word}")
            else:
                lines[-1] += f" {word}"
        self._last += lines

    def _shortened(self, over: int) -> list[str]:
        """The lines with so many rows of the table less, which keeps three; those left out are counted."""
        told = 0 if self._hidden else 1  # the line that counts them
        drop = min(over + told, len(self._rows) - 3)
        if over <= 0 or drop <= told:
            return self._lines
        end = self._rows.stop
        counted = f"and {self._hidden + drop} more"
        return [*self._lines[: end - drop], counted, *self._lines[end + 1 - told :]]

    def show(self, option: str = "--verbose") -> None:
        """Print it; ``option`` shows the remarks that did not fit."""
        height, findings = (NO_END, NO_END) if self._whole else (LINES, FINDINGS)
        counted = bool(self._remarks)  # a line that says how many notes there are is always left
        least = counted + (len(self._findings[0]) + (len(self._findings) > 1) if self._findings else 0)
        lines = self._shortened(len(self._lines) + len(self._last) + least - height)
        room = height - len(lines) - len(self._last)
        for line in lines:
            show(line)
        room -= _show_blocks(self._findings, room - counted, findings, "finding", option)
        _show_blocks(self._remarks, room, len(self._remarks), "note", option)
        for line in self._last:
            show(line)


def _show_blocks(blocks: Sequence[Sequence[str]], room: int, most: int, word: str, option: str) -> int:
    """Print blocks of lines that fit into ``room`` and count the others in one line; returns the lines used."""
    used = 0
    for k, lines in enumerate(blocks):
        left = len(blocks) - k
        if k == most or used + len(lines) + (left > 1) > room:
            show(f"{left} more {word}{'s' if left > 1 else ''}: {option}")
            used += 1
            break
        for line in lines:
            show(line)
        used += len(lines)
    return used


def printable(text: str) -> str:
    """A text without signs that steer a terminal: names come from files of others."""
    return "".join(sign if sign.isprintable() else "?" for sign in text.replace("\u00a0", " "))


def cut(text: str, size: int) -> str:
    """A name of at most ``size`` places, with its beginning and its end."""
    plain = printable(text)
    if len(plain) <= size:
        return plain
    return plain[:size] if size < 8 else f"{plain[: (size - 2) // 2]}..{plain[-(size - 2 - (size - 2) // 2) :]}"
