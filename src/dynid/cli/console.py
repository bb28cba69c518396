"""What goes to the terminal: results on stdout, messages and progress on stderr.

``--max-error``: the error up to which a verb ends well.
"""

from __future__ import annotations

import logging
import math
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import typer

from dynid.errors import InputError


class _Manner:
    """How much is said beside the result."""

    quiet = False


def be_quiet(asked: bool) -> None:
    """Leave out progress and notes of this command, or show them; errors are always shown."""
    _Manner.quiet = asked


def say(text: str) -> None:
    """A message to the user, on stderr."""
    if not _Manner.quiet:
        sys.stderr.write(text + "\n")


def show(text: str = "") -> None:
    """A line of the result, on stdout."""
    sys.stdout.write(text + "\n")


def show_note(text: str) -> None:
    """A remark beside the result, on stdout."""
    if not _Manner.quiet:
        sys.stdout.write(f"note: {text}\n")


def wants_notes() -> bool:
    """Whether remarks beside the result are shown."""
    return not _Manner.quiet


COLUMNS = 100
"""Places in a line of a screen; a wider terminal is not used, since longer lines are harder to read."""


def columns() -> int:
    """Places in a line: those of the terminal, at most 100; 100 where the output goes to a file or a pipe."""
    return max(20, min(COLUMNS, shutil.get_terminal_size().columns)) if sys.stdout.isatty() else COLUMNS


def in_colour() -> bool:
    """Whether the output is a terminal that shows colour, and the user did not forbid it (``NO_COLOR``)."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def show_failure(text: str) -> None:
    """Why a command ends with a code other than zero though it wrote its result; on stderr, as errors are."""
    sys.stderr.write(f"dynid: {text}\n")


def show_warning(text: str) -> None:
    """What makes a result doubtful; on stderr, however quiet the command."""
    sys.stderr.write(f"warning: {text}\n")


def show_json(result: Mapping[str, Any]) -> None:
    """The one JSON object of a verb."""
    from dynid.files import to_json

    sys.stdout.write(to_json(result))


def show_table(header: Sequence[str], rows: Iterable[Sequence[str]], title: str = "", *, text: Sequence[int] = (0,)) -> None:
    """A plain table; the columns ``text`` stand to the left, the others are numbers."""
    cells = [[str(cell) for cell in row] for row in rows]
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else _WIDE  # a file or a pipe has no width of its own
    plain = _plain_table(header, cells, title, text, width, bold=in_colour())
    if plain is None:
        _folded_table(header, cells, title, text, None if terminal else width)
    else:
        sys.stdout.write(plain)


_WIDE = 200


def _plain_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], title: str, text: Sequence[int], width: int, *, bold: bool
) -> str | None:
    """The table as text; None where it has to be folded, or some character may be wider than one place."""
    if not all(cell.isascii() and cell.isprintable() for row in (header, *rows) for cell in row) or title:
        return None
    sizes = [max(len(row[k]) for row in (header, *rows)) for k in range(len(header))]
    if sum(sizes) + 2 * (len(sizes) - 1) > width:
        return None

    def line(row: Sequence[str]) -> str:
        return "  ".join(
            cell.ljust(size) if k in text else cell.rjust(size)
            for k, (cell, size) in enumerate(zip(row, sizes, strict=True))
        )

    first = f"\x1b[1m{line(header)}\x1b[0m" if bold else line(header)
    return "\n".join([first, *(line(row) for row in rows), ""])


def _folded_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], title: str, text: Sequence[int], width: int | None
) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for index, name in enumerate(header):
        table.add_column(name, justify="left" if index in text else "right", overflow="fold")
    for row in rows:
        table.add_row(*row)
    # Names of joints and files are text, never markup or emoji codes.
    Console(file=sys.stdout, highlight=False, soft_wrap=False, markup=False, emoji=False, width=width).print(table)


def percent(fraction: float | None, digits: int = 2) -> str:
    """A fraction as percent, as text."""
    return "-" if fraction is None or not math.isfinite(fraction) else f"{100.0 * fraction:.{digits}f} %"


def exponent(value: float, digits: int = 4) -> str:
    """A number with its power of ten, as tables of papers have it: ``1.6504e-3``."""
    mantissa, _, power = f"{value:.{digits}e}".partition("e")
    return f"{mantissa}e{int(power)}" if power else mantissa


class _OnTerminal:
    """Progress in one line of a terminal, taken away at the end; nothing where there is no terminal or nobody wants it."""

    def __init__(self, quiet: bool) -> None:
        self._progress: Any = None
        self._task: Any = None
        self._wanted = not (quiet or _Manner.quiet) and sys.stderr.isatty()

    def _begin(self, columns: Sequence[Any], word: str, **fields: str) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._progress = Progress(*columns, console=Console(file=sys.stderr), transient=True)
        self._task = self._progress.add_task(word, **fields)

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.stop()


class ProgressBar(_OnTerminal):
    """A bar on a terminal, with the best value so far; nothing elsewhere."""

    def __init__(self, word: str, quiet: bool) -> None:
        super().__init__(quiet)
        if self._wanted:
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            best, left = TextColumn("{task.fields[best]}"), TimeRemainingColumn()
            columns = (TextColumn(word), BarColumn(), best, TimeElapsedColumn(), TextColumn("left"), left)
            self._begin(columns, word, best="")

    def tell(self, done: int, total: int, best: float) -> None:
        """The piece of work that is done, and the best value so far."""
        if self._progress is not None:
            self._progress.update(self._task, completed=done, total=total, best=f"best {best:.4g}")


class Stages(_OnTerminal):
    """The stage of the work with the time spent, replaced as it changes; nothing where there is no terminal."""

    def __init__(self, quiet: bool) -> None:
        super().__init__(quiet)
        if self._wanted:
            from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

            self._begin((SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()), "")

    def tell(self, text: str) -> None:
        """The next stage."""
        if self._progress is not None:
            self._progress.update(self._task, description=text)


def log_to_stderr() -> None:
    """Show what the library says (first-use compilation, notes) as messages."""
    logger = logging.getLogger("dynid")
    logger.setLevel(logging.ERROR if _Manner.quiet else logging.NOTSET)
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("dynid: %(message)s"))
        logger.addHandler(handler)
        logger.propagate = False


def check_max_error(max_error: float | None, expected: str = "a fraction such as 0.05", flag: str = "--max-error") -> None:
    """Refuse a limit that no error can be held against."""
    if max_error is not None and not 0.0 <= max_error < math.inf:
        raise InputError(f"{flag} is {max_error:g}, expected {expected}")


def end_above(error: float, max_error: float | None) -> None:
    """Exit code 1 where the error is larger than allowed, or is no number."""
    if max_error is not None and not error <= max_error:
        show_failure(f"the error is {percent(error)}, more than the {percent(max_error)} allowed")
        raise typer.Exit(1)
