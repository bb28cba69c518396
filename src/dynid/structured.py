"""TOML, JSON and small tables of unknown origin: limits of size, depth and numbers are checked before anything is used."""

from __future__ import annotations

import csv
import json
import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from dynid.errors import InputError

MOST_BYTES = 64 * 2**20
"""No description, run file or record is longer."""
DEEPEST = 60
"""Tables inside tables."""
LARGEST_INTEGER = 2**63


def read_limited(path: Path, what: str, most_bytes: int = MOST_BYTES) -> bytes:
    """The content of an ordinary file that is not too long; a pipe or a device would have no end.

    Args:
        path: the file.
        what: what a refusal calls it, such as "run file 'x.toml'".
        most_bytes: longest file that is read.
    """
    try:
        # Opened without waiting for the other end of a pipe.
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"{what} is not an ordinary file")
            if found.st_size > most_bytes:
                raise InputError(f"{what} has {found.st_size} bytes, expected at most {most_bytes}")
            return file.read(most_bytes + 1)
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        raise InputError(f"{what} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def toml_table(text: str | bytes, what: str) -> dict[str, Any]:
    """A TOML table whose numbers and depth are within limits."""
    try:
        table = tomllib.loads(text.decode("utf-8-sig") if isinstance(text, bytes) else text)
    except (ValueError, RecursionError) as error:  # also a text that is not UTF-8, and an integer of thousands of digits
        raise InputError(f"{what} is not valid TOML: {_first_line(error)}") from None
    check_tree(table, what)
    return table


def json_value(text: str | bytes, what: str) -> Any:
    """A JSON value whose numbers and depth are within limits."""
    try:
        value = json.loads(text.decode("utf-8-sig") if isinstance(text, bytes) else text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} is not valid JSON: {_first_line(error)}") from None
    check_tree(value, what)
    return value


def csv_lines(path: Path, what: str, verb: str = "is") -> list[tuple[int, list[str]]]:
    """Cells of the lines of a small CSV file that are not empty, each with the number of its line.

    Args:
        path: the file.
        what: what a refusal calls it, such as "base values".
        verb: of that word in a sentence.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{what} '{path}' cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{what} '{path}' {verb} not text: {error}") from None
    return [
        (number, [cell.strip() for cell in row])
        for number, row in enumerate(csv.reader(text.splitlines()), start=1)
        if any(cell.strip() for cell in row)
    ]


def check_tree(value: Any, what: str, depth: int = 0) -> None:
    """Refuse integers that no number of a computer holds, and tables too deep to walk through."""
    if depth > DEEPEST:
        raise InputError(f"{what} has tables inside tables, more than {DEEPEST} deep")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(item, float | str | bool):
                check_tree(item, f"'{key}' of {what}" if depth == 0 else what, depth + 1)
    elif isinstance(value, list):
        for item in value:
            if not isinstance(item, float | str | bool):
                check_tree(item, what, depth + 1)
    elif isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        raise InputError(f"{what} has an integer of {value.bit_length()} bits, expected at most 64")


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
