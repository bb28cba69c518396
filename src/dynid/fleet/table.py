"""An entry as one row of an Arrow table: the schema of the store's Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array, IntArray, freeze
from dynid.errors import InputError
from dynid.fleet.entry import Entry, Key
from dynid.recording.readers.foreign import foreign_errors
from dynid.regression.channels import Channel

FORMAT = 1
HASH = b"dynid.fixed"
VERSION = b"dynid.format"
HEAVY = ("triangles", "noise")
"""Columns that only identification needs."""
_LISTS = (
    "residual",
    "freedom",
    "torque_energy",
    "held_out_residual",
    "held_out_energy",
    "low",
    "high",
    "speed",
)


def schema(fixed: str) -> Any:
    """Columns of a store whose structure and options have this hash."""
    import pyarrow as arrow

    numbers = arrow.list_(arrow.float64())
    fields = [
        ("robot", arrow.string()),
        ("day", arrow.date32()),
        ("condition", arrow.map_(arrow.string(), arrow.string())),
        ("logs", arrow.list_(arrow.struct([("name", arrow.string()), ("sha256", arrow.string())]))),
        ("seconds", arrow.float64()),
        ("rows", arrow.list_(arrow.int64())),
        ("noise_freedom", arrow.float64()),
        *((name, numbers) for name in _LISTS),
        ("triangles", numbers),
        ("noise", arrow.list_(arrow.float32())),
    ]
    return arrow.schema(fields, metadata={VERSION: str(FORMAT).encode(), HASH: fixed.encode()})


def write_entry(entry: Entry, fixed: str, path: Path) -> None:
    """One entry as a Parquet file."""
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    row: dict[str, Any] = {name: [getattr(entry, name).tolist()] for name in _LISTS}
    row |= {
        "robot": [entry.key.robot],
        "day": [entry.key.day],
        "condition": [list(entry.key.condition.items())],
        "logs": [[{"name": name, "sha256": digest} for name, digest in entry.logs]],
        "seconds": [entry.seconds],
        "rows": [list(entry.rows)],
        "noise_freedom": [entry.noise_freedom],
        "triangles": [np.concatenate([_packed(triangle) for triangle in entry.triangles])],
        "noise": [np.concatenate([_packed(gram) for gram in entry.noise]).astype(np.float32)],
    }
    table = arrow.table(row, schema=schema(fixed))
    parquet.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)


def read_entry(path: Path, fixed: str, channels: Sequence[Channel], *, light: bool = False) -> Entry:
    """The entry of a file; ``light`` leaves out triangles and noise, for a list."""
    import pyarrow.parquet as parquet

    columns = [name for name in schema("").names if not (light and name in HEAVY)]
    with (
        foreign_errors(str(path), "cannot be read as a row of a store"),
        parquet.ParquetFile(path, memory_map=False, pre_buffer=False) as file,
    ):
        metadata = file.schema_arrow.metadata or {}
        _refuse_foreign(path, metadata, fixed)
        table = file.read(columns=columns, use_threads=False)
    row = {name: table.column(name)[0] for name in columns}
    key = Key(row["robot"].as_py(), row["day"].as_py(), dict(row["condition"].as_py()))
    widths = [channel.width for channel in channels]
    triangles: tuple[Array, ...] = ()
    noise: tuple[Array, ...] = ()
    if not light:
        triangles = _unpacked(row["triangles"].values.to_numpy(), [width + 1 for width in widths], path)
        halves = _unpacked(row["noise"].values.to_numpy().astype(np.float64), widths, path)
        noise = tuple(freeze(half + np.triu(half, 1).T) for half in halves)
    lists = {name: freeze(row[name].values.to_numpy(zero_copy_only=False)) for name in _LISTS}
    return Entry(
        key=key,
        logs=tuple((log["name"], log["sha256"]) for log in row["logs"].as_py()),
        rows=tuple(row["rows"].as_py()),
        triangles=triangles,
        noise=noise,
        noise_freedom=row["noise_freedom"].as_py(),
        seconds=row["seconds"].as_py(),
        **lists,
    )


def _refuse_foreign(path: Path, metadata: dict[bytes, bytes], fixed: str) -> None:
    version = metadata.get(VERSION, b"none").decode(errors="replace")
    if version != str(FORMAT):
        raise InputError(f"'{path}' has format {version}, expected {FORMAT}: it was not written by this store's version")
    own = metadata.get(HASH, b"none").decode(errors="replace")
    if own != fixed:
        raise InputError(
            f"'{path}' was made with another structure or other options (hash {own[:12]}, the store's is {fixed[:12]}): "
            "it belongs to another store, move it back there"
        )


@lru_cache(maxsize=256)
def _upper(size: int) -> tuple[IntArray, IntArray]:
    """Places of the upper triangle, row by row."""
    return np.triu_indices(size)


def _packed(square: Array) -> Array:
    """The upper triangle, row by row."""
    return square[_upper(len(square))]


def _unpacked(values: Array, sizes: Sequence[int], path: Path) -> tuple[Array, ...]:
    expected = sum(size * (size + 1) // 2 for size in sizes)
    if len(values) != expected:
        raise InputError(f"'{path}' holds {len(values)} numbers of triangles, expected {expected}")
    squares, start = [], 0
    for size in sizes:
        square = np.zeros((size, size))
        count = size * (size + 1) // 2
        square[_upper(size)] = values[start : start + count]
        squares.append(freeze(square))
        start += count
    return tuple(squares)
