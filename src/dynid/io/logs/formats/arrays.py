"""Archives of arrays: NumPy's (``.npz``) and HDF5, with ``t``, ``q``, ``dq``, ``tau`` as arrays (rows, joints) or one array per column.

An HDF5 file holds the arrays of one log, or one group per episode (``data/demo_0``, as Isaac Lab and robomimic write them). Only plain
arrays of numbers in the file itself are read: links to other files, virtual and external arrays are refused. Nothing is unpacked before
its declared size has been checked.
"""

from __future__ import annotations

import importlib
import math
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InputError, MissingPackageError
from dynid.files import array_header, foreign_errors, limited_memory, memory_budget, read_array
from dynid.io.logs.log_file import local_copy
from dynid.io.logs.names import fold, is_motion
from dynid.io.logs.table import (
    HARMLESS_BYTES,
    MOST_PACKING,
    OpenOptions,
    Table,
    array_table,
    check_log_memory,
    named_elements,
    refuse_tight_packing,
)

MOST_ARRAYS, MOST_DATASETS = 5000, 20_000
"""More than the columns of any robot, in an archive and in an episode of HDF5; each costs time to open, however small it is."""
MOST_DEPTH = 12
_NAMES = {
    "actions": "action",
    "qpos": "q",
    "qvel": "dq",
    "joint_pos_target": "q_cmd",
    "joint_position_target": "q_cmd",
}
"""Names of arrays in simulators' exports, and those that columns have elsewhere."""


class NpzFormat:
    """NumPy archives."""

    name = "npz"
    suffixes = (".npz",)

    def recognises(self, path: Path, head: bytes) -> bool:
        """A zip archive, also an empty one."""
        return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))

    def open(self, path: Path, options: OpenOptions) -> Table:
        """Every numeric array of the archive."""
        log = options.log_at(path)
        where = str(log.path)
        found: dict[str, NDArray[Any]] = {}
        with (
            foreign_errors(where, "cannot be read as npz (the file may be truncated)"),
            log.reading() as file,
            zipfile.ZipFile(file) as archive,
        ):
            members = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
            if len(members) > MOST_ARRAYS:
                raise InputError(
                    f"{where}: holds {len(members)} arrays, expected at most {MOST_ARRAYS}; put the rows of a quantity in one"
                )
            packed = max(sum(entry.compress_size for entry in members), 1)
            refuse_tight_packing(where, packed, sum(entry.file_size for entry in members))
            values = 0
            for entry in members:
                values += array_header(archive, entry)[0]  # small types become floats of eight bytes
                check_log_memory(where, values, packed)
                found[entry.filename.removesuffix(".npy")] = read_array(archive, entry)
        return table_of_arrays(where, "npz", found)


def _numbers_and_names(found: Mapping[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], tuple[str, ...] | None]:
    """Arrays of numbers by name, and the names of the joints where they are among the arrays."""
    numbers: dict[str, NDArray[Any]] = {}
    names: tuple[str, ...] | None = None
    for name, array in found.items():
        if fold(name) in ("joint_names", "joints", "names") and array.dtype.kind == "U" and array.ndim == 1:
            names = tuple(str(value) for value in array)
        elif array.dtype.kind in "iuf" and array.ndim:
            numbers[name] = array if array.dtype.kind == "i" else np.asarray(array, dtype=np.float64)
    return numbers, names


def table_of_arrays(where: str, format: str, found: Mapping[str, NDArray[Any]]) -> Table:
    """The numeric ones of some arrays as columns; names of the joints may be among them.

    Rows are as many as the clock has, else as the longest array has; scalars and arrays of another length are no columns.
    """
    vectors, names = _numbers_and_names(found)
    if not vectors:
        raise InputError(f"{where}: holds no arrays of numbers, expected t, q and tau")
    measure = next((name for name in vectors if fold(name) in ("t", "time", "timestamp", "stamp")), None)
    if measure is None:
        measure = max(vectors, key=lambda name: len(vectors[name]))
    elif vectors[measure].ndim == 2 and 1 in vectors[measure].shape:
        vectors[measure] = vectors[measure].reshape(-1)
    n = len(vectors[measure])
    if n == 0:
        raise InputError(f"{where}: the arrays have no rows")
    notes: list[str] = []
    columns: dict[str, NDArray[Any]] = {}
    for name, array in vectors.items():
        if len(array) == n:
            columns[name] = array
        elif array.ndim == 2 and array.shape[1] == n:
            columns[name] = np.ascontiguousarray(array.T)
            notes.append(f"array '{name}' of shape {array.shape} was turned to rows by joints")
        elif is_motion(name) and 2 * max(array.shape) > n:
            raise InputError(
                f"{where}: array '{name}' has {max(array.shape)} rows and '{measure}' has {n}, expected as many"
            )
        else:
            notes.append(f"array '{name}' has {len(array)} rows where '{measure}' has {n} and is ignored")
    return array_table(format, columns, element_names=named_elements(columns, names), notes=tuple(notes))


class Hdf5Format:
    """HDF5 files."""

    name = "hdf5"
    suffixes = (".h5", ".hdf5")

    def recognises(self, path: Path, head: bytes) -> bool:
        """The signature of HDF5."""
        return head.startswith(b"\x89HDF\r\n\x1a\n")

    def open(self, path: Path, options: OpenOptions) -> Table:
        """Every array of numbers; of several episodes one after the other, with ``episode_index``."""
        try:
            h5py = importlib.import_module("h5py")
        except ImportError:
            raise MissingPackageError("h5py", "reading HDF5 logs", "hdf5") from None
        where, copy = str(path), local_copy(path)
        # Sizes of arrays are checked; lengths of texts and of its own tables the library takes from the file as they are.
        most = min(int(2 * (HARMLESS_BYTES + MOST_PACKING * copy.stat().st_size)), memory_budget())
        with (
            foreign_errors(where, "cannot be read as HDF5 (the file may be truncated)"),
            limited_memory(f"{where}: its lengths", most),
            h5py.File(copy, "r") as file,
        ):
            data = file.get("data")
            groups = [(0, file)]
            if isinstance(data, h5py.Group):
                episodes = [
                    (int(digits), data[name])
                    for name in data
                    if re.fullmatch("[0-9]{1,9}", digits := name.rpartition("_")[2])
                    and isinstance(data.get(name, getlink=True), h5py.HardLink)
                    and isinstance(data[name], h5py.Group)
                ]
                groups = sorted(episodes, key=lambda one: one[0]) or [(0, data)]
            if len(groups) > MOST_DATASETS:
                raise InputError(f"{where}: holds {len(groups)} episodes, expected at most {MOST_DATASETS}")
            read = _Hdf5Arrays(h5py, where)
            parts = [read.below(group) for _, group in groups]
            with limited_memory(f"{where}: names of joints", HARMLESS_BYTES):
                names = _stated_names(file)
        columns, notes = _joined(where, [number for number, _ in groups], parts)
        return array_table("hdf5", columns, element_names=named_elements(columns, names), notes=notes)


def _joined(
    where: str, numbers: list[int], parts: list[dict[str, NDArray[Any]]]
) -> tuple[dict[str, NDArray[Any]], tuple[str, ...]]:
    """Arrays that every episode has with as many rows as its longest, one episode after the other, and notes on the others."""
    common = set.intersection(*map(set, parts))
    shared = [path for path in parts[0] if path in common]
    rows = [max((len(part[path]) for path in shared), default=0) for part in parts]
    whole = [path for path in shared if all(len(part[path]) == n for part, n in zip(parts, rows, strict=True))]
    if not whole or not sum(rows):
        raise InputError(
            f"{where}: holds no arrays of numbers of one length, expected time, positions and commands or torque"
        )
    columns, last = {}, [fold(path.rpartition("/")[2]) for path in whole]
    for path, name in zip(
        whole, last, strict=True
    ):  # by the last part of the path, by all of it where that is not one of a kind
        column = _NAMES.get(name, name) if last.count(name) == 1 else fold(path)
        columns[column] = np.concatenate([part[path] for part in parts])
    if len(parts) > 1:
        columns["episode_index"] = np.repeat(numbers, rows)
    return columns, tuple(f"array '{path}' has another length and is ignored" for path in shared if path not in whole)


def _stated_names(file: Any) -> tuple[str, ...]:
    """Joint names that the file states, as a list of text or an attribute; shape and kind are known before anything is read."""
    for name in ("joint_names", "joints"):
        for holder in (file, file.attrs):
            if name not in holder:
                continue
            kept = holder.get_id(name) if holder is file.attrs else holder[name]
            shape, kind = getattr(kept, "shape", None), getattr(getattr(kept, "dtype", None), "kind", "")
            if kind in "SUO" and shape is not None and len(shape) < 2 and 0 < math.prod(shape) <= MOST_ARRAYS:
                texts = np.atleast_1d(np.asarray(holder[name]))
                return tuple(v.decode(errors="replace") if isinstance(v, bytes) else str(v) for v in texts)
    return ()


class _Hdf5Arrays:
    """Reads the arrays of an HDF5 file; what all its episodes ask for is counted together."""

    def __init__(self, h5py: Any, where: str) -> None:
        self._h5py, self._where = h5py, where
        self._values = self._packed = self._met = 0

    def below(self, group: Any) -> dict[str, NDArray[Any]]:
        """Arrays of numbers of a group and the groups below it, by their path."""
        h5py, where = self._h5py, self._where
        found: dict[str, NDArray[Any]] = {}
        waiting = [("", group, 0)]
        while waiting:
            path, here, depth = waiting.pop()
            for name in here:
                place = f"{path}/{name}" if path else name
                self._met += 1  # of groups too: one that holds itself twice has no end
                if self._met > MOST_DATASETS:
                    raise InputError(f"{where}: holds more than {MOST_DATASETS} arrays and groups, expected a log")
                if not isinstance(here.get(name, getlink=True), h5py.HardLink):
                    raise InputError(f"{where}: '{place}' is a link, expected arrays in the file itself")
                item = here[name]
                if isinstance(item, h5py.Group):
                    if depth >= MOST_DEPTH:
                        raise InputError(f"{where}: groups lie deeper than {MOST_DEPTH}, expected a log")
                    waiting.append((place, item, depth + 1))
                elif isinstance(item, h5py.Dataset) and item.dtype.kind in "iuf" and item.ndim in (1, 2):
                    found[place] = self._array(item, place)
        return found

    def _array(self, item: Any, place: str) -> NDArray[Any]:
        if item.is_virtual or item.external:
            raise InputError(f"{self._where}: array '{place}' lies in another file, expected arrays in the file itself")
        self._values += int(item.size)
        self._packed += int(item.id.get_storage_size())
        check_log_memory(self._where, self._values, self._packed)
        return np.asarray(item, dtype=np.float64 if item.dtype.kind == "f" else None)
