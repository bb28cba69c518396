"""Text tables: comma, semicolon, tab or space separated, with one line of column names.

SAGE recordings: a folder with ``control.csv``, ``state_motor.csv`` and ``joint_list.txt``.

Rows are ``type,timestamp,positions,velocities,torques`` with a list of numbers per cell; stamps are seconds (simulation) or microseconds
(robot). Commands have a clock of their own: each state gets the command that was in force, the last one sent before it.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.files import check_memory, foreign_errors, read_limited, sentence
from dynid.finding import Finding
from dynid.io.logs.log_file import LogFile
from dynid.io.logs.table import MALFORMED, Batch, OpenOptions, Table, array_table, named_elements

_SAMPLE_BYTES = 1 << 20
_BLOCK_BYTES = 1 << 22
_TAIL_BYTES = 1 << 18
_FEWEST_LINES = 20  # that tell how short a whole number may be written
_NUMBER = re.compile(r"[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?|[-+]?(nan|inf|infinity)", re.IGNORECASE)
_LONG_INTEGER = re.compile(r"\d{16,18}|[1-8]\d{18}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,9})?(?P<zone>Z|[-+]\d\d(:?\d\d)?)?")
_TRUTH = ("true", "false", "True", "False", "TRUE", "FALSE")
_ABSENT = ("", "nan", "NaN", "NAN", "-nan", "-NaN", "null", "NULL", "NA", "N/A", "n/a", "#N/A", "None", "none")


class CsvFormat:
    """Text tables; no bytes at their head tell them, so they are known by their suffix."""

    name = "csv"
    suffixes = (".csv", ".tsv", ".txt", ".log", ".dat")

    def recognises(self, path: Path, head: bytes) -> bool:
        """Never by its bytes."""
        return False

    def open(self, path: Path, options: OpenOptions) -> Table:
        """Separator, decimal sign and column names from the head of the file; rows are read later."""
        log = options.log_at(path)
        where = str(log.path)
        lines = _first_lines(log)
        top = _header_line(lines)
        delimiter = _delimiter(lines[top])
        names, skip = _names(where, lines[top], top, delimiter, options.header)
        rows = [_split(line, delimiter) for line in lines[skip : skip + 50] if line.strip()]
        if not rows:
            raise InputError(f"{where}: holds a header of {len(names)} columns and no rows")
        if delimiter != " " and all(len(row) == len(names) + 1 and not row[-1] for row in rows):
            names = [*names, ""]  # a comma after the last value of each line
        decimal = "," if delimiter != "," and any("," in cell for row in rows for cell in row) else "."
        end, findings = _torn(log, delimiter, len(names), skip)
        # Columns of ISO 8601 dates with their time of day, and whether they state a zone.
        dates: dict[str, bool] = {}
        for k, name in enumerate(names):
            found = [_DATE.fullmatch(row[k]) for row in rows if len(row) > k and row[k] not in _ABSENT]
            if found and all(found):
                dates[name] = bool(found[0] and found[0]["zone"])
        # stamps in ns and other integers of 16 and more digits would lose their last ones as floats
        long = {k for k in range(len(names)) if all(len(row) > k and _LONG_INTEGER.fullmatch(row[k]) for row in rows)}
        integers = frozenset(names[k] for k in long)
        cells = {name: {row[k] for row in rows if len(row) > k} - set(_ABSENT) for k, name in enumerate(names)}
        truths = frozenset(name for name, own in cells.items() if own and own <= set(_TRUTH))
        reader = _CsvReader(log, tuple(names), delimiter, decimal, skip, integers, end, dates, truths)
        shapes: dict[str, tuple[int, ...]] = {name: () for name in names if name}
        return Table("csv", shapes, reader.batches, units=dict.fromkeys(dates, "ns"), findings=findings)


@dataclass(frozen=True)
class _CsvReader:
    """The rows of a text table, those before byte ``end`` where it is given.

    ``dates`` are columns of dates, and whether they state a zone; ``truths`` are columns of true and false.
    """

    file: LogFile
    names: tuple[str, ...]
    delimiter: str
    decimal: str
    skip_lines: int
    integers: frozenset[str]
    end: int | None
    dates: Mapping[str, bool]
    truths: frozenset[str]

    def batches(self, columns: Sequence[str], rows: int, first: int = 0) -> Iterator[Batch]:
        """Blocks of the file, converted column by column; malformed lines are counted under ``MALFORMED``."""
        import pyarrow as pa

        where = str(self.file.path)
        for name in columns:
            if self.names.count(name) > 1:
                raise InputError(f"{where}: column '{name}' appears {self.names.count(name)} times, expected once")
        # Columns are addressed by place, so that doubled names elsewhere in the file do no harm.
        places = {name: f"c{self.names.index(name)}" for name in columns}
        size = min(max(rows * len(self.names) * 12, 1 << 16), _BLOCK_BYTES)
        skip = self.skip_lines
        try:
            for block in self._blocks(size):
                record, malformed = self._parse(block, places, skip)
                skip = 0
                batch: Batch = {name: _values(record.column(place)) for name, place in places.items()}
                batch[MALFORMED] = np.array([malformed])
                yield batch
        except pa.ArrowInvalid as error:
            self._refuse(where, error)
        except OSError as error:
            raise InputError(f"{where}: cannot be read: {sentence(error)}") from error

    def _blocks(self, size: int) -> Iterator[Any]:
        """Whole lines of the file, about ``size`` bytes at a time; the first block holds all lines before the rows."""
        with self.file.reading() as file:
            end = file.seek(0, io.SEEK_END) if self.end is None else self.end
            start, wanted = 0, max(size, _SAMPLE_BYTES)
            while start < end:
                file.seek(start)
                block = _in_arrow(file.read(min(wanted, end - start)))
                if start + block.size < end:
                    data = memoryview(block).tobytes()
                    whole = 1 + max(data.rfind(b"\n"), -1 if b"\n" in data else data.rfind(b"\r"))
                    if not whole:  # a line longer than the block
                        wanted *= 2
                        continue
                    block = block.slice(0, whole)
                start, wanted = start + block.size, size
                if memoryview(block).tobytes().strip():
                    if self.delimiter == " ":  # words with any number of blanks between them, with one blank each
                        text = re.sub(rb"^[ \t]+|[ \t\r]+$", b"", memoryview(block).tobytes(), flags=re.MULTILINE)
                        block = _in_arrow(re.sub(rb"[ \t]+", b" ", text))
                    yield block

    def _parse(self, block: Any, places: Mapping[str, str], skip_lines: int) -> tuple[Any, int]:
        """The rows of a block as a table, and how many lines had another number of fields.

        Each block is parsed to its end before the next is read, from memory of Arrow's own and by native code alone unless a line
        is malformed. Threads of Arrow may outlive the call, and abort the process where they meet Python at its exit: a streaming
        reader would go on in them, and memory of Python would be given back by them.
        """
        import pyarrow as pa
        import pyarrow.csv as arrow_csv

        malformed = 0

        def count_malformed(_row: Any) -> str:
            nonlocal malformed
            malformed += 1
            return "skip"

        types = {
            place: pa.timestamp("ns", tz="UTC" if self.dates[name] else None)
            if name in self.dates
            else pa.int64()
            if name in self.integers
            else pa.bool_()
            if name in self.truths
            else pa.float64()
            for name, place in places.items()
        }

        def parse(data: Any, handler: Callable[[Any], str] | None) -> Any:
            return arrow_csv.read_csv(
                pa.BufferReader(data),
                read_options=arrow_csv.ReadOptions(
                    column_names=[f"c{k}" for k in range(len(self.names))],
                    skip_rows=skip_lines,
                    use_threads=handler is None,
                ),
                parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, invalid_row_handler=handler),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=types,
                    include_columns=list(places.values()) or None,
                    null_values=list(_ABSENT),
                    true_values=[*_TRUTH[::2], "1", "1.0"],
                    false_values=[*_TRUTH[1::2], "0", "0.0"],
                    decimal_point=self.decimal,
                ),
            )

        try:
            return parse(block, None), 0
        except pa.ArrowInvalid as error:
            if not re.search(r"Expected \d+ columns, got \d+", str(error)):
                raise
        # Arrow hands a malformed line over as text: one that is none would be told on the terminal and not be counted.
        text = memoryview(block).tobytes().decode("utf-8", "replace").encode()
        table = parse(_in_arrow(text), count_malformed)
        return table, malformed

    def _refuse(self, where: str, error: Exception) -> None:
        text = str(error)
        if "Empty CSV" in text:
            raise InputError(f"{where}: holds a header of {len(self.names)} columns and no rows") from error
        value = re.search(r"invalid value '(.*?)'", text, re.DOTALL)
        column = re.search(r"In CSV column #(\d+)", text)
        if value is not None:
            found = self.names[int(column[1])] if column is not None else ""
            name = f"column '{found}'" if found else "a column"
            wanted = (
                "dates such as 2024-05-17T09:30:00.25, all with a zone or all without"
                if found in self.dates
                else "true or false"
                if found in self.truths
                else "numbers"
            )
            raise InputError(f"{where}: {name} holds '{value[1][:40]}', expected {wanted}") from error
        raise InputError(f"{where}: cannot be read as a text table: {sentence(error)}") from error


def _in_arrow(data: bytes) -> Any:
    """A copy in memory of Arrow's own, which it gives back without Python."""
    import pyarrow as pa

    stream = pa.BufferOutputStream()
    stream.write(data)
    return stream.getvalue()


def _first_lines(log: LogFile) -> list[str]:
    """The whole lines among the first bytes of a file."""
    where = str(log.path)
    with foreign_errors(where, "cannot be read"), log.reading() as file:
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
    return lines[:-1] if len(sample) == _SAMPLE_BYTES and len(lines) > 1 else lines


def _header_line(lines: Sequence[str]) -> int:
    """Place of the header: comments before it are skipped; the last comment is it where a line of numbers follows."""
    first = next(k for k, line in enumerate(lines) if line.strip())
    comments = [k for k in range(first, len(lines)) if lines[k].lstrip()[:1] in ("#", "%")]
    leading = [k for place, k in enumerate(comments) if k == first + place]
    if not leading:
        return first
    following = next((k for k in range(leading[-1] + 1, len(lines)) if lines[k].strip()), None)
    return leading[-1] if following is None or _is_numeric(lines[following]) else following


def _names(where: str, line: str, top: int, delimiter: str, header: Sequence[str] | None) -> tuple[list[str], int]:
    """Column names, of the file or as given, and how many lines lie before the rows."""
    names = _split(line.lstrip("#% \t"), delimiter)
    if header is not None:
        if len(header) != len(names):
            raise InputError(f"{where}: mapping names {len(header)} columns in 'header', the file has {len(names)}")
        return [str(name) for name in header], top if _is_numeric(line) else top + 1
    if all(_NUMBER.fullmatch(name) for name in names):
        raise InputError(
            f"{where}: the first line holds {len(names)} numbers, expected column names such as t, q1, tau1 "
            "(or give them in a mapping under 'header')"
        )
    return names, top + 1


def _values(column: Any) -> Any:
    """The numbers of a column; dates as nanoseconds, true as one."""
    import pyarrow as pa

    if pa.types.is_boolean(column.type):
        return column.cast(pa.int8()).cast(pa.float64()).to_numpy()
    if not pa.types.is_timestamp(column.type):
        return column.to_numpy()
    stamps = column.to_numpy().astype("datetime64[ns]")
    numbers = stamps.astype(np.int64)
    return np.where(np.isnat(stamps), np.nan, numbers.astype(np.float64)) if np.isnat(stamps).any() else numbers


def _torn(log: LogFile, delimiter: str, width: int, skip_lines: int) -> tuple[int | None, tuple[Finding, ...]]:
    """The byte where a last line starts that breaks off in its middle, and the note on it.

    Such a line has fewer fields than the header, or no line end and a last number shorter than all those above it.
    """
    with foreign_errors(str(log.path), "cannot be read"), log.reading() as file:
        size = file.seek(0, io.SEEK_END)
        start = file.seek(max(0, size - _TAIL_BYTES))
        tail = file.read()
    body = tail.rstrip(b" \t\r\n")
    ended = b"\n" in tail[len(body) :] or b"\r" in tail[len(body) :]
    lines = re.split(rb"\r\n|\n|\r", body)
    # A header is no row, and the first line of the tail may be a piece of one.
    *above, last = [
        _split(line.decode("latin-1"), delimiter) for line in lines[skip_lines if start == 0 else 1 :] if line.strip()
    ] or [[]]
    whole = [row for row in above if len(row) == width]
    if len(last) < width and whole:
        how = f"it has {len(last)} of {width} fields"
    elif ended or len(last) != width or len(whole) < _FEWEST_LINES:
        return None, ()
    elif len(last[-1]) < min(len(row[-1]) for row in whole):
        how = f"its last number is '{last[-1]}' and the line has no end"
    else:
        return None, ()
    finding = Finding(
        "warning",
        f"the last line of the file is cut off ({how}) and was left out",
        "the log was not written to its end: look whether the rest of it is missing, too",
        code="cut_off",
        values={"fields": len(last), "columns": width},
    )
    return start + len(body) - len(lines[-1]), (finding,)


def _is_numeric(line: str) -> bool:
    cells = _split(line, _delimiter(line))
    return all(_NUMBER.fullmatch(cell) for cell in cells if cell and cell not in _TRUTH)


def _delimiter(line: str) -> str:
    """The separator of a header or first line: the most frequent of tab, semicolon and comma, else blanks."""
    plain = re.sub(r'"[^"]*"', "", line)
    # Commas inside brackets belong to a name, as in M[2,1].
    plain = re.sub(r"\[[^][]*\]", "", plain)
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


_STATE, _CONTROL, _JOINTS = "state_motor.csv", "control.csv", "joint_list.txt"
_LONGEST_STEP_S = 1.0
"""Median step of the clock above which stamps are microseconds, not seconds."""
_LONGEST_CELL = 1_000_000


class SageFormat:
    """Folders of SAGE."""

    name = "sage"
    suffixes = ()

    def recognises(self, path: Path, head: bytes) -> bool:
        """A folder with both tables."""
        return not head and (path / _STATE).is_file() and (path / _CONTROL).is_file()

    def open(self, path: Path, options: OpenOptions) -> Table:
        """Motor states, with the command in force at each."""
        time, state = _table(path / _STATE)
        sent, control = _table(path / _CONTROL)
        if "positions" not in state or "positions" not in control:
            raise InputError(f"{path}: a table has no column 'positions', expected one in {_STATE} and in {_CONTROL}")
        commands = control["positions"]
        if commands.shape[1] != state["positions"].shape[1]:
            raise InputError(
                f"{path}: {_CONTROL} has {commands.shape[1]} joints and {_STATE} has {state['positions'].shape[1]}, expected as many"
            )
        place = np.searchsorted(sent, time, side="right") - 1
        if (place < 0).all():
            raise InputError(
                f"{path}: no command was sent before the last state: the clocks of {_CONTROL} and {_STATE} are apart"
            )
        begun = place >= 0
        arrays: dict[str, NDArray[Any]] = {
            "t": time[begun] - time[begun][0],
            "q": state["positions"][begun],
            "q_cmd": commands[place[begun]],
        }
        if "velocities" in state:
            arrays["dq"] = state["velocities"][begun]
        notes = ("each state has the last command before it; torques of the file are motor loads and not used",)
        listed = read_limited(path / _JOINTS, f"{path}: {_JOINTS}").decode() if (path / _JOINTS).is_file() else ""
        names = tuple(line.strip() for line in listed.replace(",", "\n").splitlines() if line.strip())
        return array_table("sage", arrays, element_names=named_elements(arrays, names), notes=notes)


def _table(path: Path) -> tuple[Array, dict[str, Array]]:
    """Stamps in seconds, and the lists of every column that has numbers, rows by joints."""
    check_memory(f"{path}", 16 * path.stat().st_size)  # numbers as Python holds them
    columns: dict[str, list[list[float]]] = {}
    stamps: list[float] = []
    with path.open(newline="", encoding="utf-8") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            if "timestamp" not in row:
                raise InputError(f"{path}: no column 'timestamp', found {', '.join(map(str, row))}")
            try:
                stamps.append(float(row["timestamp"]))
            except ValueError:
                text = row["timestamp"]
                raise InputError(f"{path}: line {number} has the timestamp '{text}', expected a number") from None
            for name in ("positions", "velocities"):
                if text := row.get(name):
                    columns.setdefault(name, []).append(_numbers(text, f"{path}: line {number}"))
    if len(stamps) < 2:
        raise InputError(f"{path}: {len(stamps)} rows, expected at least 2")
    time = np.array(stamps)
    if np.median(np.diff(time)) > _LONGEST_STEP_S:
        time = time * 1e-6
    found = {}
    for name, rows in columns.items():
        widths = {len(row) for row in rows}
        if len(widths) == 1 and 0 not in widths and len(rows) == len(stamps):
            found[name] = np.array(rows)
    return time, found


def _numbers(text: str, where: str) -> list[float]:
    """The numbers of one cell."""
    try:
        values = json.loads(text.replace("nan", "NaN")) if len(text) < _LONGEST_CELL else None
    except json.JSONDecodeError:
        values = None
    if not isinstance(values, list) or not all(isinstance(x, int | float) for x in values):
        raise InputError(f"{where} has '{text[:40]}', expected a list of numbers such as [0.1, 0.2]")
    return [float(x) for x in values]
