"""NumPy archives: ``t``, ``q``, ``dq``, ``tau`` as arrays (rows, joints), or one array per column."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InputError
from dynid.recording.readers.foreign import foreign_errors
from dynid.recording.readers.formats.format import OpenOptions
from dynid.recording.readers.formats.table import ArrayTable
from dynid.recording.readers.log_file import LogFile
from dynid.recording.readers.names import fold, is_motion

MOST_BYTES = 8 * 2**30
#: An archive this small may be packed as tightly as it likes (constant columns are).
HARMLESS_BYTES = 256 * 2**20
MOST_PACKING = 200.0
MOST_ARRAYS = 5000
"""More than the columns of any robot; each costs time to open, however small it is."""


class NpzFormat:
    """NumPy archives."""

    name = "npz"
    suffixes = (".npz",)

    def recognises(self, path: Path, head: bytes) -> bool:
        """A zip archive, also an empty one."""
        return head.startswith((b"PK\x03\x04", b"PK\x05\x06"))

    def open(self, path: Path, options: OpenOptions) -> ArrayTable:
        """Every numeric array of the archive."""
        return open_npz(options.log_at(path))


def open_npz(log: LogFile) -> ArrayTable:
    """Every numeric array of the archive; nothing is unpacked before its declared size has been checked."""
    where = str(log.path)
    arrays: dict[str, NDArray[Any]] = {}
    names: tuple[str, ...] | None = None
    with (
        foreign_errors(where, "cannot be read as npz (the file may be truncated)"),
        log.reading() as file,
        zipfile.ZipFile(file) as archive,
    ):
        members = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
        _check_sizes(where, members)
        for entry in members:
            name = entry.filename.removesuffix(".npy")
            array = _member(where, archive, entry)
            if fold(name) in ("joint_names", "joints", "names") and array.dtype.kind == "U" and array.ndim == 1:
                names = tuple(str(value) for value in array)
            elif array.dtype.kind in "iuf":
                arrays[name] = array if array.dtype.kind == "i" else np.asarray(array, dtype=np.float64)
    return _aligned(where, arrays, names)


def _check_sizes(where: str, members: list[zipfile.ZipInfo]) -> None:
    if len(members) > MOST_ARRAYS:
        raise InputError(
            f"{where}: holds {len(members)} arrays, expected at most {MOST_ARRAYS}; put the rows of a quantity in one"
        )
    unpacked = sum(entry.file_size for entry in members)
    packed = max(sum(entry.compress_size for entry in members), 1)
    if unpacked > MOST_BYTES:
        raise InputError(
            f"{where}: unpacks to {unpacked / 2**30:.1f} GiB, expected at most {MOST_BYTES / 2**30:.0f} GiB; "
            "write longer logs as parquet"
        )
    if unpacked > HARMLESS_BYTES and unpacked > MOST_PACKING * packed:
        raise InputError(
            f"{where}: unpacks from {packed} to {unpacked} bytes ({unpacked / packed:.0f} times), "
            f"expected at most {MOST_PACKING:.0f} times"
        )


def _member(where: str, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    with archive.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    if dtype.hasobject:
        raise InputError(f"{where}: array '{entry.filename}' holds Python objects, expected numbers")
    # The header alone would make NumPy reserve the memory.
    if math.prod(shape) * dtype.itemsize > entry.file_size:
        raise InputError(f"{where}: array '{entry.filename}' declares shape {shape} but holds {entry.file_size} bytes")
    with archive.open(entry) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def _aligned(where: str, arrays: dict[str, NDArray[Any]], names: tuple[str, ...] | None) -> ArrayTable:
    """Arrays with one length: that of time, else that of the longest one; scalars and other lengths are no
    columns.
    """
    vectors = {name: array for name, array in arrays.items() if array.ndim >= 1}
    if not vectors:
        raise InputError(f"{where}: holds no arrays of numbers, expected t, q and tau")
    measure = _measure(vectors)
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
    element_names = {
        name: names for name, array in columns.items() if names is not None and array.shape[1:] == (len(names),)
    }
    return ArrayTable("npz", columns, element_names, notes=tuple(notes))


def _measure(vectors: dict[str, NDArray[Any]]) -> str:
    """The array whose length is the number of rows: the clock, made one-dimensional, or else the longest one."""
    clock = next((name for name in vectors if fold(name) in ("t", "time", "timestamp", "stamp")), None)
    if clock is None:
        return max(vectors, key=lambda name: len(vectors[name]))
    if vectors[clock].ndim == 2 and 1 in vectors[clock].shape:
        vectors[clock] = vectors[clock].reshape(-1)
    return clock
