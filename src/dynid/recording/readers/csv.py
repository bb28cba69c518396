"""Text tables: comma, semicolon, tab or space separated, with one line of column names."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import InputError
from dynid.recording.readers.table import MALFORMED, Batch, foreign_errors, sentence

_SAMPLE_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 22
_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?|[-+]?(nan|inf|infinity)", re.IGNORECASE)
_ABSENT = (
    "",
    "nan",
    "NaN",
    "NAN",
    "-nan",
    "-NaN",
    "null",
    "NULL",
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "None",
    "none",
)


@dataclass(frozen=True)
class CsvTable:
    """A text table; rows stay in the file until they are asked for."""

    path: Path
    names: tuple[str, ...]
    delimiter: str
    decimal: str
    skip_lines: int
    integers: frozenset[str]
    notes: tuple[str, ...] = ()
    format: str = "csv"
    element_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    n_rows: int | None = None

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every column holds plain numbers."""
        return {name: () for name in self.names if name}

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Batch]:
        """Blocks of the file, converted column by column; malformed lines are counted under ``MALFORMED``."""
        import pyarrow as pa
        import pyarrow.csv as arrow_csv

        where = str(self.path)
        for name in columns:
            if self.names.count(name) > 1:
                raise InputError(f"{where}: column '{name}' appears {self.names.count(name)} times, expected once")
        malformed = 0

        def count_malformed(_row: Any) -> str:
            nonlocal malformed
            malformed += 1
            return "skip"

        # Columns are addressed by place, so that doubled names elsewhere in the file do no harm.
        places = {name: f"c{self.names.index(name)}" for name in columns}
        types = {places[name]: pa.int64() if name in self.integers else pa.float64() for name in columns}
        width = max(len(self.names), 1)
        block = min(max(rows * width * 12, 1 << 16), _BLOCK_BYTES)
        source: Any = _Respaced(self.path) if self.delimiter == " " else str(self.path)
        reported = 0
        try:
            reader = arrow_csv.open_csv(
                source,
                read_options=arrow_csv.ReadOptions(
                    column_names=[f"c{k}" for k in range(len(self.names))],
                    skip_rows=self.skip_lines,
                    block_size=block,
                    use_threads=True,
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, invalid_row_handler=count_malformed),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(places.values()) or None,
                    null_values=list(_ABSENT),
                    decimal_point=self.decimal,
                ),
            )
            for record in reader:
                batch: Batch = {name: _numbers(record.column(place)) for name, place in places.items()}
                batch[MALFORMED] = np.array([malformed - reported])
                reported = malformed
                yield batch
            if malformed > reported:
                last: Batch = {name: np.empty(0) for name in columns}
                last[MALFORMED] = np.array([malformed - reported])
                yield last
        except pa.ArrowInvalid as error:
            self._refuse(where, places, error)
        except OSError as error:
            raise InputError(f"{where}: cannot be read: {sentence(error)}") from error

    def _refuse(self, where: str, places: Mapping[str, str], error: Exception) -> None:
        text = str(error)
        if "Empty CSV" in text:
            raise InputError(f"{where}: holds a header of {len(self.names)} columns and no rows") from error
        value = re.search(r"invalid value '(.*?)'", text, re.DOTALL)
        column = re.search(r"In CSV column #(\d+)", text)
        if value is not None:
            name = f"column '{self.names[int(column[1])]}'" if column is not None else "a column"
            raise InputError(f"{where}: {name} holds '{value[1][:40]}', expected numbers") from error
        raise InputError(f"{where}: cannot be read as a text table: {sentence(error)}") from error


class _Respaced(io.RawIOBase):
    """A file of words apart by any number of blanks, seen with one blank between words."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            block = self._file.read(_BLOCK_BYTES)
            block += self._file.readline() if block else b""
            block = re.sub(rb"^[ \t]+|[ \t\r]+$", b"", block, flags=re.MULTILINE)
            self._rest = re.sub(rb"[ \t]+", b" ", block)
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


def _numbers(column: Any) -> Any:
    return column.to_numpy(zero_copy_only=False)


def open_csv(path: Path, header: Sequence[str] | None = None) -> CsvTable:
    """Look at the head of a text file: separator, decimal sign, column names."""
    where = str(path)
    with foreign_errors(where, "cannot be read"), path.open("rb") as file:
        sample = file.read(_SAMPLE_BYTES)
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{where}: the text is UTF-16, expected UTF-8")
    if b"\x00" in sample:
        raise InputError(f"{where}: holds zero bytes, expected a text table")
    try:
        text = sample.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = sample.decode("latin-1")
    if not text.strip():
        raise InputError(f"{where}: the file is empty, expected a header and rows")
    lines = re.split(r"\r\n|\n|\r", text)
    if len(sample) == _SAMPLE_BYTES and len(lines) > 1:
        lines = lines[:-1]
    first = next(k for k, line in enumerate(lines) if line.strip())
    # Comment lines before the header are skipped; the last one is the header where a line of numbers follows
    # it.
    comments = [k for k in range(first, len(lines)) if lines[k].lstrip()[:1] in ("#", "%")]
    leading = [k for place, k in enumerate(comments) if k == first + place]
    top = first
    if leading:
        following = next((k for k in range(leading[-1] + 1, len(lines)) if lines[k].strip()), None)
        top = leading[-1] if following is None or _is_numeric(lines[following]) else following
    delimiter = _delimiter(lines[top])
    names = _split(lines[top].lstrip("#% \t"), delimiter)
    skip = top + 1
    if header is not None:
        if len(header) != len(names):
            raise InputError(f"{where}: mapping names {len(header)} columns in 'header', the file has {len(names)}")
        skip = top + 1 if not _is_numeric(lines[top]) else top
        names = [str(name) for name in header]
    elif all(_NUMBER.fullmatch(name) for name in names):
        raise InputError(
            f"{where}: the first line holds {len(names)} numbers, expected column names such as t, q1, tau1 "
            "(or give them in a mapping under 'header')"
        )
    rows = [_split(line, delimiter) for line in lines[skip : skip + 50] if line.strip()]
    if not rows:
        raise InputError(f"{where}: holds a header of {len(names)} columns and no rows")
    if delimiter != " " and all(len(row) == len(names) + 1 and not row[-1] for row in rows):
        names = [*names, ""]  # a comma after the last value of each line
    decimal = "," if delimiter != "," and any("," in cell for row in rows for cell in row) else "."
    # Stamps of 16 and more digits lose their last ones as floats.
    integers = frozenset(
        name
        for k, name in enumerate(names)
        if all(len(row) > k and re.fullmatch(r"\d{16,18}|[1-8]\d{18}", row[k]) for row in rows)
    )
    return CsvTable(path, tuple(names), delimiter, decimal, skip, integers)


def _is_numeric(line: str) -> bool:
    cells = _split(line, _delimiter(line))
    return all(_NUMBER.fullmatch(cell) for cell in cells if cell)


def _delimiter(line: str) -> str:
    """The separator of a header or first line: the most frequent of tab, semicolon and comma, else blanks."""
    plain = re.sub(r'"[^"]*"', "", line)
    # Commas inside brackets belong to a name, as in M[2,1].
    plain = re.sub(r"\[[^\]]*\]", "", plain)
    counts = {sign: plain.count(sign) for sign in ("\t", ";", ",")}
    best = max(counts, key=lambda sign: counts[sign])
    if counts[best]:
        return best
    return " " if " " in plain.strip() else ","


def _split(line: str, delimiter: str) -> list[str]:
    if delimiter == " ":
        return line.split()
    row = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    return [cell.strip() for cell in row]
