"""Parquet tables: plain columns, or one list of joints per row as LeRobot writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dynid.adapters.urls import READ_BYTES, UrlPath
from dynid.errors import InputError
from dynid.recording.finding import Finding
from dynid.recording.readers.foreign import foreign_errors
from dynid.recording.readers.formats.format import OpenOptions
from dynid.recording.readers.formats.npz import HARMLESS_BYTES, MOST_PACKING
from dynid.recording.readers.formats.parquet_pages import refuse_large_pages
from dynid.recording.readers.formats.table import Batch
from dynid.recording.readers.log_file import LogFile

_LONG_ROWS = 1_000_000
LARGE_FILE_BYTES = 256 << 20
"""Files from this size on may have large pages."""


class ParquetFormat:
    """Parquet files."""

    name = "parquet"
    suffixes = (".parquet", ".pq")

    def recognises(self, path: Path, head: bytes) -> bool:
        """The four bytes that every parquet file starts with."""
        return head.startswith(b"PAR1")

    def open(self, path: Path, options: OpenOptions) -> ParquetTable:
        """Schema and row count; rows are read later."""
        return open_parquet(options.log_at(path))


@dataclass(frozen=True)
class ParquetTable:
    """A parquet file; row groups are decoded page by page as batches are asked for."""

    file: LogFile
    shapes: Mapping[str, tuple[int, ...]]
    n_rows: int
    element_names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    format: str = "parquet"

    def batches(self, columns: Sequence[str], rows: int) -> Iterator[Batch]:
        """Batches of ``rows`` rows; memory does not grow with the file."""
        return self.batches_from(columns, rows, 0)

    def batches_from(self, columns: Sequence[str], rows: int, first: int) -> Iterator[Batch]:
        """Batches from row ``first`` of the file; row groups before it are not read."""
        import pyarrow as pa
        import pyarrow.parquet as arrow_parquet

        where = str(self.file.path)
        # Buffered pages keep memory low even where the whole log is one row group.
        with (
            foreign_errors(where, "cannot be read as parquet"),
            _source(self.file) as source,
            arrow_parquet.ParquetFile(source, pre_buffer=False, buffer_size=_buffer_bytes(self.file.path)) as file,
        ):
            groups, skipped = _groups_from(file.metadata, first)
            # Threads would take half as much time again in all, and there is other work for the other cores.
            for record in file.iter_batches(batch_size=rows, row_groups=groups, columns=list(columns), use_threads=False):
                if skipped >= len(record):
                    skipped -= len(record)
                    continue
                record, skipped = record.slice(skipped), 0
                found = {name: record.column(record.schema.get_field_index(name)) for name in columns}
                yield {name: _numbers(where, name, column, self.shapes[name]) for name, column in found.items()}
        if self.n_rows > _LONG_ROWS:  # of a short file the next one uses the same memory again
            pa.default_memory_pool().release_unused()


def _groups_from(metadata: Any, first: int) -> tuple[list[int], int]:
    """Row groups that hold row ``first`` and those behind it, and how many of their rows come before it."""
    for group in range(metadata.num_row_groups):
        n = metadata.row_group(group).num_rows
        if first < n:
            return list(range(group, metadata.num_row_groups)), first
        first -= n
    return [], 0


@contextmanager
def _source(file: LogFile) -> Iterator[Any]:
    """What parquet is read from: the file where it is open, which stays so, else its path, which needs no Python while it is read."""
    if file.held is None and not isinstance(file.path, UrlPath):
        yield file.path
        return
    with file.reading() as source:
        yield source


def _buffer_bytes(path: Path) -> int:
    """Bytes that are read at a time of each column."""
    return READ_BYTES if isinstance(path, UrlPath) else 1 << 18


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
    return column.to_numpy(zero_copy_only=False)


def open_parquet(log: LogFile) -> ParquetTable:
    """Read the schema and the row count."""
    import pyarrow as pa
    import pyarrow.parquet as arrow_parquet

    where = str(log.path)
    _check_pages(log)
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
            if pa.types.is_fixed_size_list(kind):
                if _is_number(kind.value_type):
                    shapes[entry.name] = (kind.list_size,)
            elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
                if _is_number(kind.value_type):
                    width = _first_length(file, entry.name)
                    if width:
                        shapes[entry.name] = (width,)
            elif not pa.types.is_nested(kind):
                shapes[entry.name] = ()
    _check_packing(log.path, n_rows * sum(max(1, *shape) if shape else 1 for shape in shapes.values()) * 8)
    if n_rows == 0:
        raise InputError(f"{where}: holds {len(schema.names)} columns and no rows")
    return ParquetTable(log, shapes, n_rows, _lerobot_names(log.path, shapes), units)


def _check_packing(path: Path, unpacked: int) -> None:
    """Refuse a small file that says it holds very many rows, before any is unpacked."""
    packed = max(path.stat().st_size, 1)
    if unpacked > HARMLESS_BYTES and unpacked > MOST_PACKING * packed:
        raise InputError(
            f"{path}: unpacks from {packed} to {unpacked} bytes ({unpacked / packed:.0f} times), "
            f"expected at most {MOST_PACKING:.0f} times"
        )


def _check_pages(log: LogFile) -> None:
    """Refuse pages that ask for more memory than their column has; of files behind URLs and of large ones they are not read twice."""
    if isinstance(log.path, UrlPath) or log.path.stat().st_size > LARGE_FILE_BYTES:
        return
    with foreign_errors(str(log.path), "cannot be read"), log.reading() as file:
        refuse_large_pages(str(log.path), file, HARMLESS_BYTES)


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _first_length(file: Any, name: str) -> int:
    for record in file.iter_batches(batch_size=64, columns=[name]):
        for value in record.column(record.schema.get_field_index(name)).to_pylist():
            if value is not None:
                return len(value)
    return 0


def _lerobot_names(path: Path, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[str, ...]]:
    """Names of list elements from ``meta/info.json`` of the dataset the file lies in; a URL has no folders above it."""
    if isinstance(path, UrlPath):
        return {}
    for folder in list(path.resolve().parents)[:4]:
        info = folder / "meta" / "info.json"
        if not info.is_file():
            continue
        with foreign_errors(str(info), "cannot be read as JSON"):
            features = json.loads(info.read_text(encoding="utf-8")).get("features", {})
        found: dict[str, tuple[str, ...]] = {}
        for column, shape in shapes.items():
            names = features.get(column, {}).get("names") if isinstance(features.get(column), dict) else None
            if isinstance(names, dict) and len(names) == 1:
                names = next(iter(names.values()))
            if isinstance(names, list) and len(shape) == 1 and len(names) == shape[0]:
                found[column] = tuple(str(name) for name in names)
        return found
    return {}
