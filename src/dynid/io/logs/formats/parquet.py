"""Parquet tables: plain columns, or one list of joints per row as LeRobot writes them.

The footer says how large a column is; each page says again how large it is, and Arrow takes the memory that it says. Footer and page
headers are structs of Thrift's compact protocol: fields of (difference of the number, type), whole numbers as zigzag varints. They are
read here by hand, since looking at a damaged column through Arrow can end the process.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from dynid.errors import InputError
from dynid.files import foreign_errors, json_object, read_limited
from dynid.io.logs.log_file import READ_BYTES, LogFile, UrlPath
from dynid.io.logs.table import HARMLESS_BYTES, Batch, OpenOptions, Table, refuse_tight_packing

_LONG_ROWS = 1_000_000
LARGE_FILE_BYTES = 256 << 20
"""Files from this size on may have large pages."""
HEADER_BYTES = 4096
"""A page header is a few dozen bytes, some hundred with statistics; of one that does not end here nothing is said."""
FOOTER_BYTES = 16 << 20
_DEEPEST = 8
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)

# numbers of fields in the structs of the format
_ROW_GROUPS, _COLUMNS, _COLUMN, _PATH = 4, 1, 3, 3
_ALL_UNPACKED, _ALL_PACKED, _DATA_OFFSET, _DICTIONARY_OFFSET = 6, 7, 9, 11
_UNPACKED, _PACKED = 2, 3


class ParquetFormat:
    """Parquet files."""

    name = "parquet"
    suffixes = (".parquet", ".pq")

    def recognises(self, path: Path, head: bytes) -> bool:
        """The four bytes that every parquet file starts with."""
        return head.startswith(b"PAR1")

    def open(self, path: Path, options: OpenOptions) -> Table:
        """Schema and row count; rows are read later."""
        return open_parquet(options.log_at(path))


def _batches(
    log: LogFile, shapes: Mapping[str, tuple[int, ...]], n_rows: int, columns: Sequence[str], rows: int, first: int = 0
) -> Iterator[Batch]:
    """Batches from row ``first`` of the file; row groups before it are not read, and memory does not grow with the file."""
    import pyarrow as pa
    import pyarrow.parquet as arrow_parquet

    where = str(log.path)
    # Buffered pages keep memory low even where the whole log is one row group.
    buffer_bytes = READ_BYTES if isinstance(log.path, UrlPath) else 1 << 18
    with (
        foreign_errors(where, "cannot be read as parquet"),
        _source(log) as source,
        arrow_parquet.ParquetFile(source, pre_buffer=False, buffer_size=buffer_bytes) as file,
    ):
        groups, skipped = list(range(file.metadata.num_row_groups)), first
        while groups and skipped >= (n := file.metadata.row_group(groups[0]).num_rows):
            skipped -= n
            del groups[0]
        # Threads would take half as much time again in all, and there is other work for the other cores.
        for record in file.iter_batches(batch_size=rows, row_groups=groups, columns=list(columns), use_threads=False):
            if skipped >= len(record):
                skipped -= len(record)
                continue
            record, skipped = record.slice(skipped), 0
            found = {name: record.column(record.schema.get_field_index(name)) for name in columns}
            yield {name: _numbers(where, name, column, shapes[name]) for name, column in found.items()}
    if n_rows > _LONG_ROWS:  # of a short file the next one uses the same memory again
        pa.default_memory_pool().release_unused()


@contextmanager
def _source(file: LogFile) -> Iterator[Any]:
    """What parquet is read from: the file where it is open, which stays so, else its path, which needs no Python while it is read."""
    if file.held is None and not isinstance(file.path, UrlPath):
        yield file.path
        return
    with file.reading() as source:
        yield source


def _numbers(where: str, name: str, column: Any, shape: tuple[int, ...]) -> Any:
    import pyarrow as pa

    kind = column.type
    if shape:
        import pyarrow.compute as compute

        lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
        known = ~np.isnan(lengths.astype(np.float64))
        if not np.all(lengths[known] == shape[0]):
            found = sorted({int(length) for length in lengths[known]})
            raise InputError(f"{where}: lists of column '{name}' have {found} entries, expected {shape[0]} in each row")
        values = np.full((len(column), shape[0]), np.nan)
        flat = column.flatten().cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        values[known] = flat.reshape(-1, shape[0])
        return values
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        column = column.cast(pa.int64())
    exact = pa.types.is_float64(column.type) or (pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type))
    if column.null_count or not exact:  # a cast loads all of Arrow's compute functions
        column = column.cast(pa.float64(), safe=False)
    # Arrow's own conversion loads pandas where that is installed, which takes as long as reading the log.
    return column.to_numpy(zero_copy_only=False) if column.null_count else np.from_dlpack(column)


def open_parquet(log: LogFile) -> Table:
    """Read the schema and the row count."""
    import pyarrow as pa
    import pyarrow.parquet as arrow_parquet

    where = str(log.path)
    # Pages that ask for more memory than their column has; of files behind URLs and of large ones they are not read twice.
    if not isinstance(log.path, UrlPath) and log.path.stat().st_size <= LARGE_FILE_BYTES:
        with foreign_errors(where, "cannot be read"), log.reading() as content:
            refuse_large_pages(where, content, HARMLESS_BYTES)
    with (
        foreign_errors(where, "cannot be read as parquet (the file may be truncated)"),
        _source(log) as source,
        arrow_parquet.ParquetFile(source) as file,
    ):
        schema = file.schema_arrow
        n_rows = file.metadata.num_rows
        shapes: dict[str, tuple[int, ...]] = {}
        units: dict[str, str] = {}
        for entry in schema:
            kind = entry.type
            if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
                units[entry.name] = kind.unit
            if entry.name in shapes:
                raise InputError(f"{where}: column '{entry.name}' appears more than once, expected once")
            if (shape := _shape_of(file, entry)) is not None:
                shapes[entry.name] = shape
    # Refuse a small file that says it holds very many rows, before any is unpacked.
    unpacked = n_rows * sum(max(1, *shape) if shape else 1 for shape in shapes.values()) * 8
    refuse_tight_packing(where, max(log.path.stat().st_size, 1), unpacked)
    if n_rows == 0:
        raise InputError(f"{where}: holds {len(schema.names)} columns and no rows")
    names = _lerobot_names(log.path, shapes)
    read = partial(_batches, log, shapes, n_rows)
    return Table("parquet", shapes, read, n_rows, seeks=True, element_names=names, units=units)


def _shape_of(file: Any, entry: Any) -> tuple[int, ...] | None:
    """The shape of one row's entry: a number, or a list as long as its first; None for what holds no numbers."""
    import pyarrow as pa

    kind = entry.type
    if not pa.types.is_nested(kind):
        return ()
    fixed = pa.types.is_fixed_size_list(kind)
    if not (fixed or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return None
    if not (pa.types.is_integer(kind.value_type) or pa.types.is_floating(kind.value_type)):
        return None
    if fixed:
        return (kind.list_size,)
    for record in file.iter_batches(batch_size=64, columns=[entry.name]):
        for value in record.column(record.schema.get_field_index(entry.name)).to_pylist():
            if value is not None:
                return (len(value),) if len(value) else None
    return None


def _lerobot_names(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[str, ...]]:
    """Names of list elements from ``meta/info.json`` of the dataset the file lies in; a URL has no folders above it."""
    if isinstance(path, UrlPath):
        return {}
    for folder in list(path.resolve().parents)[:4]:
        info = folder / "meta" / "info.json"
        if not info.is_file():
            continue
        features = json_object(read_limited(info, f"'{info}'"), info).get("features")
        features = features if isinstance(features, dict) else {}
        found: dict[str, tuple[str, ...]] = {}
        for column, shape in shapes.items():
            names = features.get(column, {}).get("names") if isinstance(features.get(column), dict) else None
            if isinstance(names, dict) and len(names) == 1:
                names = next(iter(names.values()))
            if isinstance(names, list) and len(shape) == 1 and len(names) == shape[0]:
                found[column] = tuple(str(name) for name in names)
        return found
    return {}


# What pages unpack to -------------------------------------------------------------------------
class _BrokenError(Exception):
    """What stands there is no such struct; Arrow refuses it in its own words."""


class _Struct:
    """The fields of one struct by their number, and how many bytes it takes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0
        self.fields = self._struct(_DEEPEST)

    def _taken(self, n: int) -> bytes:
        if n > len(self.data) - self.place:
            raise _BrokenError
        self.place += n
        return self.data[self.place - n : self.place]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._taken(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise _BrokenError

    def _whole(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _struct(self, depth: int) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while byte := self._taken(1)[0]:
            number = number + (byte >> 4) if byte >> 4 else self._whole()
            kind = byte & 0x0F
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_I16, _I32, _I64):
            return self._whole()
        if kind == _BINARY:
            return self._taken(self._varint())
        if kind == _STRUCT and depth:
            return self._struct(depth - 1)
        if kind in (_LIST, _SET) and depth:
            byte = self._taken(1)[0]
            n = byte >> 4 if byte >> 4 < 15 else self._varint()
            if n > len(self.data) - self.place:
                raise _BrokenError
            return [self._value(byte & 0x0F, depth - 1) for _ in range(n)]
        if kind in (_TRUE, _FALSE, _BYTE):  # in lists a truth value is a byte
            return self._taken(1)
        if kind == _DOUBLE:
            return self._taken(8)
        raise _BrokenError  # the format has no maps


def refuse_large_pages(where: str, file: BinaryIO, harmless: int) -> None:
    """Refuse a page that says it is larger than its column, packed or unpacked, before Arrow takes that memory."""
    try:
        columns = list(_columns(file))
    except _BrokenError:
        return
    for name, start, packed, unpacked in columns:
        for sizes in _page_sizes(file, start, packed):
            for size, whole, what in zip(sizes, (packed, unpacked), ("has", "unpacks to"), strict=True):
                if not 0 <= size <= max(harmless, whole):
                    raise InputError(
                        f"{where}: a page of column '{name}' says that it {what} {size} bytes, expected at most the {whole} of the column"
                    )


def _columns(file: BinaryIO) -> Iterator[tuple[str, int, int, int]]:
    """Name, first byte, and bytes packed and unpacked of the columns of all row groups, from the footer."""
    end = file.seek(0, io.SEEK_END)
    file.seek(max(0, end - 8))
    length = int.from_bytes(file.read(4), "little")
    if not 0 < length <= min(end - 8, FOOTER_BYTES):
        raise _BrokenError
    file.seek(end - 8 - length)
    for group in _structs(_Struct(file.read(length)).fields.get(_ROW_GROUPS)):
        for chunk in _structs(group.get(_COLUMNS)):
            for column in _structs([chunk.get(_COLUMN)]):
                data, dictionary, packed, unpacked = (
                    value if isinstance(value := column.get(number), int) else 0
                    for number in (_DATA_OFFSET, _DICTIONARY_OFFSET, _ALL_PACKED, _ALL_UNPACKED)
                )
                path = column.get(_PATH)
                parts = [part for part in path if isinstance(part, bytes)] if isinstance(path, list) else []
                start = min((start for start in (data, dictionary) if start > 0), default=-1)
                yield b".".join(parts).decode("utf-8", "replace"), start, packed, unpacked


def _structs(value: Any) -> list[dict[int, Any]]:
    """The structs of a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _page_sizes(file: BinaryIO, first: int, length: int) -> Iterator[tuple[int, int]]:
    """Bytes of every page of a column, packed and unpacked, as far as its headers can be followed."""
    start = first
    while 0 <= start < first + length:
        file.seek(start)
        try:
            header = _Struct(file.read(HEADER_BYTES))
        except _BrokenError:
            return
        packed, unpacked = header.fields.get(_PACKED), header.fields.get(_UNPACKED)
        if not (isinstance(packed, int) and isinstance(unpacked, int)):
            return
        yield packed, unpacked
        if packed <= 0:
            return
        start += header.place + packed
