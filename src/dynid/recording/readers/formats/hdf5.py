"""HDF5 as simulators export it: arrays of one log, or one group per episode (``data/demo_0``, as Isaac Lab and robomimic write them).

Only plain arrays of numbers in the file itself are read: links to other files, virtual and external arrays are refused.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.adapters.urls import local_copy
from dynid.errors import InputError, MissingPackageError
from dynid.recording.readers.foreign import foreign_errors
from dynid.recording.readers.formats.format import OpenOptions
from dynid.recording.readers.formats.table import ArrayTable
from dynid.recording.readers.names import fold

MAGIC = b"\x89HDF\r\n\x1a\n"
MOST_BYTES = 8 * 2**30
MOST_ARRAYS = 20_000
HARMLESS_BYTES, MOST_PACKING = 256 * 2**20, 200.0
"""A file this small may be packed as tightly as it likes."""
MOST_DEPTH = 12
KNOWN = {
    "actions": "action",
    "qpos": "q",
    "qvel": "dq",
    "joint_pos_target": "q_cmd",
    "joint_position_target": "q_cmd",
}
"""Names of arrays in simulators' exports, and those that columns have elsewhere."""


class Hdf5Format:
    """HDF5 files."""

    name = "hdf5"
    suffixes = (".h5", ".hdf5")

    def recognises(self, path: Path, head: bytes) -> bool:
        """The signature of HDF5."""
        return head.startswith(MAGIC)

    def open(self, path: Path, options: OpenOptions) -> ArrayTable:
        """Every array of numbers; of several episodes one after the other, with ``episode_index``."""
        try:
            h5py = importlib.import_module("h5py")
        except ImportError:
            raise MissingPackageError("h5py", "reading HDF5 logs", "hdf5") from None
        where = str(path)
        with (
            foreign_errors(where, "cannot be read as HDF5 (the file may be truncated)"),
            h5py.File(local_copy(path), "r") as file,
        ):
            groups = _episodes(h5py, file)
            parts = [_arrays(h5py, group, where) for _, group in groups]
            names = _joint_names(file)
        return _table(where, [number for number, _ in groups], parts, names)


def _episodes(h5py: Any, file: Any) -> list[tuple[int, Any]]:
    """Groups that are episodes with their numbers; the file itself where there are none."""
    data = file.get("data")
    if not isinstance(data, h5py.Group):
        return [(0, file)]
    found = []
    for name in data:
        digits = name.rpartition("_")[2]
        if (
            isinstance(data.get(name, getlink=True), h5py.HardLink)
            and isinstance(data[name], h5py.Group)
            and re.fullmatch("[0-9]{1,9}", digits)
        ):
            found.append((int(digits), data[name]))
    return sorted(found, key=lambda one: one[0]) or [(0, data)]


def _arrays(h5py: Any, group: Any, where: str) -> dict[str, NDArray[Any]]:
    """Arrays of numbers of a group and the groups below it, by their path."""
    found: dict[str, NDArray[Any]] = {}
    size = packed = 0
    waiting = [("", group, 0)]
    while waiting:
        path, here, depth = waiting.pop()
        for name in here:
            place = f"{path}/{name}" if path else name
            if not isinstance(here.get(name, getlink=True), h5py.HardLink):
                raise InputError(f"{where}: '{place}' is a link, expected arrays in the file itself")
            item = here[name]
            if isinstance(item, h5py.Group):
                if depth >= MOST_DEPTH:
                    raise InputError(f"{where}: groups lie deeper than {MOST_DEPTH}, expected a log")
                waiting.append((place, item, depth + 1))
                continue
            if not isinstance(item, h5py.Dataset) or item.dtype.kind not in "iuf" or not 1 <= item.ndim <= 2:
                continue
            if item.is_virtual or item.external:
                raise InputError(f"{where}: array '{place}' lies in another file, expected arrays in the file itself")
            size += int(item.size) * 8
            packed += max(int(item.id.get_storage_size()), 1)
            _refuse_larger(where, size, packed, len(found))
            found[place] = np.asarray(item, dtype=np.float64 if item.dtype.kind == "f" else None)
    return found


def _refuse_larger(where: str, size: int, packed: int, n_arrays: int) -> None:
    """Refuse what would unpack to more than a log holds."""
    if size > HARMLESS_BYTES and size > MOST_PACKING * packed:
        raise InputError(
            f"{where}: unpacks from {packed} to {size} bytes, expected at most {MOST_PACKING:.0f} times as many"
        )
    if size > MOST_BYTES or n_arrays >= MOST_ARRAYS:
        raise InputError(
            f"{where}: holds more than {MOST_BYTES >> 30} GiB or {MOST_ARRAYS} arrays; write longer logs as parquet"
        )


def _joint_names(file: Any) -> tuple[str, ...] | None:
    """Joint names that the file states, as an array of text or an attribute."""
    for holder in (file, file.attrs):
        for name in ("joint_names", "joints"):
            if name in holder:
                values = np.atleast_1d(np.asarray(holder[name]))
                if values.dtype.kind in "SUO" and values.ndim == 1:
                    return tuple(v.decode() if isinstance(v, bytes) else str(v) for v in values)
    return None


def _table(
    where: str, numbers: list[int], parts: list[dict[str, NDArray[Any]]], names: tuple[str, ...] | None
) -> ArrayTable:
    rows, whole, shorter = _of_one_length(parts)
    if not whole or not sum(rows):
        raise InputError(
            f"{where}: holds no arrays of numbers of one length, expected time, positions and commands or torque"
        )
    called = _called(whole)
    columns = {called[path]: np.concatenate([part[path] for part in parts]) for path in whole}
    if len(parts) > 1:
        columns["episode_index"] = np.repeat(numbers, rows)
    notes = tuple(f"array '{path}' has another length and is ignored" for path in shorter)
    wide = {name: names for name, array in columns.items() if names is not None and array.shape[1:] == (len(names),)}
    return ArrayTable("hdf5", columns, wide, notes=notes)


def _of_one_length(parts: list[dict[str, NDArray[Any]]]) -> tuple[list[int], list[str], list[str]]:
    """Rows of every part, the arrays that all parts have with as many rows, and those that all have with fewer."""
    shared = [path for path in parts[0] if all(path in part for part in parts)] if parts else []
    rows = [max((len(part[path]) for path in shared), default=0) for part in parts]
    whole = [path for path in shared if all(len(part[path]) == n for part, n in zip(parts, rows, strict=True))]
    return rows, whole, [path for path in shared if path not in whole]


def _called(paths: list[str]) -> dict[str, str]:
    """Columns by the last part of their paths, by the whole path where that is not one of a kind."""
    last = [fold(path.rpartition("/")[2]) for path in paths]
    return {
        path: KNOWN.get(name, name) if last.count(name) == 1 else fold(path) for path, name in zip(paths, last, strict=True)
    }
