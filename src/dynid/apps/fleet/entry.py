"""What is kept of the logs of one robot, day and condition: everything that identification needs, and no row; as a Parquet file.

Triangles ``R_j`` of ``[W tau]`` for the parameters, the noise ``N_j`` of their columns for uncertainty (both add up over days),
the residual of the day's own fit for the weights of the joints, and the error of a part that was held out.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dynid.arrays import Array, IntArray, freeze
from dynid.errors import InputError
from dynid.files import foreign_errors
from dynid.io.logs.formats.parquet import refuse_large_pages
from dynid.io.logs.log_file import LogFile
from dynid.io.logs.table import HARMLESS_BYTES
from dynid.model.robot import Robot
from dynid.regression.channels import Channel
from dynid.regression.factor import Factor, Regression


@dataclass(frozen=True)
class Key:
    """Which robot, on which day, under which conditions."""

    robot: str
    day: datetime.date
    condition: Mapping[str, str]

    def __post_init__(self) -> None:
        if not self.robot.strip():
            raise InputError("--robot-id is empty, expected a name such as R17")
        object.__setattr__(self, "condition", dict(sorted(self.condition.items())))

    def describe(self) -> str:
        conditions = "".join(f", {name}={value}" for name, value in self.condition.items())
        return f"robot {self.robot}, {self.day.isoformat()}{conditions}"


def parse_day(day: str | datetime.date, what: str) -> datetime.date:
    """A day as ``YYYY-MM-DD``."""
    if isinstance(day, datetime.date):
        return day
    try:
        return datetime.date.fromisoformat(day)
    except ValueError:
        raise InputError(f"{what} is '{day}', expected a day such as 2026-03-01") from None


@dataclass(frozen=True, eq=False)
class Entry:
    """One row of a store."""

    key: Key
    logs: tuple[tuple[str, str], ...]
    """Name and hash of every log."""
    rows: tuple[int, ...]
    """Rows of each channel."""
    triangles: tuple[Array, ...]
    noise: tuple[Array, ...]
    """``N_j`` over the own columns of each channel."""
    noise_freedom: float
    residual: Array
    """Sum of squares that the day's own weighted fit leaves of each channel."""
    freedom: Array
    """Rows of each channel less the values that were fitted to them."""
    torque_energy: Array
    """Sum of squares of the torque of each channel."""
    held_out_residual: Array
    """Sum of squares that a fit to the first part of each log leaves of the rest; NaN where a part is too short."""
    held_out_energy: Array
    seconds: float

    @property
    def held_out_error(self) -> float:
        """Error of the held-out part, all channels together."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(np.sqrt(self.held_out_residual.sum() / self.held_out_energy.sum()))


def merged(entries: Sequence[Entry], channels: Sequence[Channel], robot: Robot) -> Regression:
    """All entries as one regression of the robot, one block each."""
    if not entries:
        raise InputError("no row of the store was chosen, expected at least one")
    factors = tuple(
        Factor(
            channel,
            freeze(np.array([entry.triangles[j] for entry in entries])),
            freeze([entry.rows[j] for entry in entries], np.int64),
        )
        for j, channel in enumerate(channels)
    )
    return Regression(robot.parameters, factors, stored_of=robot)


FORMAT = 1
HASH = b"dynid.fixed"
VERSION = b"dynid.format"
HEAVY = ("triangles", "noise")
"""Columns that only identification needs."""
_LISTS = ("residual", "freedom", "torque_energy", "held_out_residual", "held_out_energy")


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
    """The entry of a file; ``light`` leaves out triangles and noise, for a list. A file that is built otherwise is refused."""
    import pyarrow.parquet as parquet

    own = schema(fixed)
    columns = [name for name in own.names if not (light and name in HEAVY)]
    with (
        foreign_errors(str(path), "cannot be read as a row of a store"),
        LogFile(path) as log,
        log.reading() as content,
    ):
        refuse_large_pages(str(path), content, HARMLESS_BYTES)
        file = parquet.ParquetFile(content, pre_buffer=False)
        written = file.schema_arrow
        version, found = ((written.metadata or {}).get(key, b"none").decode(errors="replace") for key in (VERSION, HASH))
        if version != str(FORMAT):
            raise InputError(f"'{path}' has format {version}, expected {FORMAT}: it was not written by this store's version")
        if found != fixed:
            raise InputError(
                f"'{path}' was made with another structure or other options (hash {found[:12]}, the store's is {fixed[:12]}): "
                "it belongs to another store, move it back there"
            )
        for name in columns:
            kind = written.field(name).type if name in written.names else "missing"
            if kind != own.field(name).type:
                raise InputError(
                    f"'{path}' is no row of a store: column '{name}' is {kind}, expected {own.field(name).type}"
                )
        if file.metadata.num_rows != 1:
            raise InputError(f"'{path}' is no row of a store: it has {file.metadata.num_rows} rows, expected 1")
        table = file.read(columns=columns, use_threads=False)
        return _entry(path, {name: table.column(name)[0] for name in columns}, [channel.width for channel in channels])


def _entry(path: Path, row: Mapping[str, Any], widths: Sequence[int]) -> Entry:
    """The entry of one row, whose columns have the types of the schema: no value is missing, every list has its length."""
    plain = {name: row[name].as_py() for name in ("robot", "day", "condition", "logs", "seconds", "rows", "noise_freedom")}
    logs = [] if plain["logs"] is None else [(log["name"], log["sha256"]) for log in plain["logs"]]
    said = [
        *plain.values(),
        *(plain["rows"] or ()),
        *(text for log in logs for text in log),
        *dict(plain["condition"]).values(),
    ]
    if any(value is None for value in said) or len(plain["rows"]) != len(widths):
        raise InputError(f"'{path}' is no row of a store: a value of it is missing")
    numbers = {name: row[name].values.to_numpy(zero_copy_only=False) for name in row if name in _LISTS or name in HEAVY}
    for name in _LISTS:
        known = name.startswith("held_out") or np.isfinite(numbers[name]).all()
        if len(numbers[name]) != len(widths) or not known:
            raise InputError(f"'{path}' is no row of a store: '{name}' is not {len(widths)} finite numbers")
    triangles: tuple[Array, ...] = ()
    noise: tuple[Array, ...] = ()
    if HEAVY[0] in numbers:
        triangles = _unpacked(numbers["triangles"], [width + 1 for width in widths], path)
        halves = _unpacked(numbers["noise"].astype(np.float64), widths, path)
        noise = tuple(freeze(half + np.triu(half, 1).T) for half in halves)
    return Entry(
        key=Key(plain["robot"], plain["day"], dict(plain["condition"])),
        logs=tuple(logs),
        rows=tuple(plain["rows"]),
        triangles=triangles,
        noise=noise,
        noise_freedom=plain["noise_freedom"],
        seconds=plain["seconds"],
        **{name: freeze(numbers[name]) for name in _LISTS},
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
    if len(values) != expected or not np.isfinite(values).all():
        raise InputError(f"'{path}' holds {len(values)} numbers of triangles, expected {expected} finite ones")
    squares, start = [], 0
    for size in sizes:
        square = np.zeros((size, size))
        count = size * (size + 1) // 2
        square[_upper(size)] = values[start : start + count]
        squares.append(freeze(square))
        start += count
    return tuple(squares)
