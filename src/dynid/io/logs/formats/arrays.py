"""Archives of arrays: NumPy's (``.npz``) and HDF5, with ``t``, ``q``, ``dq``, ``tau`` as arrays (rows, joints) or one array per column.

An HDF5 file holds the arrays of one log, or one group per episode (``data/demo_0``, as Isaac Lab and robomimic write them). Only plain
arrays of numbers in the file itself are read: links to other files, virtual and external arrays are refused. Nothing is unpacked before
its declared size has been checked.

PyTorch archives of tensors (``.pt``), such as PACE's recordings, read without PyTorch and without running a pickle.

A ``.pt`` file is a zip of raw storages and of one pickle that says how they become tensors. The pickle is never loaded: its opcodes are
read one by one, and only those that name tensors, dictionaries, lists, text and numbers are understood. Anything else is refused by name.

PACE's names (``time``, ``dof_pos``, ``des_dof_pos``) become ``t``, ``q`` and ``q_cmd``.
"""

from __future__ import annotations

import importlib
import math
import mmap
import pickletools
import re
import struct
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InputError, MissingPackageError
from dynid.files import array_header, check_memory, foreign_errors, limited_memory, memory_budget, read_array
from dynid.io.logs.log_file import local_copy
from dynid.io.logs.names import fold, is_motion
from dynid.io.logs.table import (
    HARMLESS_BYTES,
    MOST_PACKING,
    OpenOptions,
    Table,
    array_table,
    check_log_memory,
    checked_arrays,
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
        _refuse_endless_heaps(where, copy)
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


def _refuse_endless_heaps(where: str, file: Path) -> None:
    """Refuse a damaged table of texts: the library walks from object to object, and one of no size keeps it there for ever."""
    if not file.stat().st_size:
        return
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as content:
        start = content.find(_HEAP)
        while start >= 0:
            (size,) = struct.unpack_from("<Q", content[start + 8 : start + 16].ljust(8, b"\0"))
            place, end = start + 16, min(start + size, len(content))
            while place + 16 <= end:
                number, length = struct.unpack_from("<H6xQ", content, place)
                step = 16 + -(-length // 8) * 8 if number else length  # object 0 is what is free
                if not step:
                    raise InputError(f"{where}: its table of texts is damaged (an object of no size at byte {place})")
                place += step
            start = content.find(_HEAP, start + 1)


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


_HEAP = b"GCOL\x01\0\0\0"
"""How a table of texts of any length begins in an HDF5 file, its version and reserved bytes."""


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


_TYPES = {
    "FloatStorage": np.float32,
    "DoubleStorage": np.float64,
    "HalfStorage": np.float16,
    "LongStorage": np.int64,
    "IntStorage": np.int32,
    "ShortStorage": np.int16,
    "ByteStorage": np.uint8,
}
_TENSOR = {("torch._utils", "_rebuild_tensor_v2"), ("torch._utils", "_rebuild_tensor")}
_DICTIONARY = ("collections", "OrderedDict")
_MOST_DIMENSIONS = 8
_TENSOR_NAMES = {
    "time": "t",
    "dof_pos": "q",
    "joint_pos": "q",
    "dof_vel": "dq",
    "joint_vel": "dq",
    "des_dof_pos": "q_cmd",
    "des_joint_pos": "q_cmd",
    "target_dof_pos": "q_cmd",
    "dof_target": "q_cmd",
}
_MARK: Any = object()
_PLAIN = {
    "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "UNICODE", "INT", "FLOAT",
}  # fmt: skip

_NEW: Mapping[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
    "MARK": lambda: _MARK,
}
"""What opcodes without an argument put onto the stack."""


class TorchFormat:
    """PyTorch archives."""

    name = "pt"
    suffixes = (".pt", ".pth")

    def recognises(self, path: Path, head: bytes) -> bool:
        """A zip archive with the suffix of PyTorch."""
        return path.suffix.lower() in self.suffixes and head.startswith(b"PK\x03\x04")

    def open(self, path: Path, options: OpenOptions) -> Table:
        """The tensors of the outermost dictionary by name; nothing of the file is executed."""
        log = options.log_at(path)
        where = str(log.path)
        with (
            foreign_errors(where, "cannot be read as a PyTorch archive (the file may be truncated)"),
            log.reading() as file,
            zipfile.ZipFile(file) as archive,
        ):
            members = archive.infolist()
            # a storage is of one byte a number or more
            check_log_memory(where, sum(one.file_size for one in members) // 8, sum(one.compress_size for one in members))
            pickles = [name for name in archive.namelist() if name.endswith("data.pkl")]
            if len(pickles) != 1:
                raise InputError(f"{where}: holds {len(pickles)} files data.pkl, expected one, as torch.save writes it")
            content = _tensors(where, archive, pickles[0])
        if not isinstance(content, dict):
            raise InputError(
                f"{where}: holds a {type(content).__name__}, expected a dictionary of tensors such as time, dof_pos, des_dof_pos"
            )
        arrays: dict[str, NDArray[Any]] = {}
        names: tuple[str, ...] = ()
        for name, value in content.items():
            if isinstance(value, np.ndarray) and value.ndim:
                made = value.reshape(len(value), -1) if value.ndim > 2 else value
                arrays[_TENSOR_NAMES.get(str(name), str(name))] = (
                    made if made.dtype.kind in "iu" else made.astype(np.float64)
                )
            elif isinstance(value, list | tuple) and value and all(isinstance(one, str) for one in value):
                names = tuple(value)
        if not arrays:
            raise InputError(f"{where}: the dictionary holds no tensors ({', '.join(map(str, content)) or 'it is empty'})")
        if "t" in arrays:
            arrays["t"] = arrays["t"].reshape(-1)
            arrays = {name: array for name, array in arrays.items() if len(array) == len(arrays["t"])}
        notes = ("tensors were read without PyTorch; no code of the file was run",)
        return array_table("pt", checked_arrays(where, arrays), element_names=named_elements(arrays, names), notes=notes)


def _since_mark(stack: list[Any]) -> list[Any]:
    """What was put on the stack since the last mark, taken off it with the mark."""
    place = next(k for k in reversed(range(len(stack))) if stack[k] is _MARK)
    values = stack[place + 1 :]
    del stack[place:]
    return values


def _name(where: str, value: Any) -> Any:
    """A text or a number that names something; a tuple of tuples of itself would take for ever to look up."""
    if not isinstance(value, str | int):
        raise InputError(
            f"{where}: its pickle has a {type(value).__name__} for a name, expected text or a number; it was not run"
        )
    return value


def _refuse_foreign(where: str, named: tuple[Any, ...]) -> None:
    """Refuse a name that is neither of a tensor nor of a dictionary: a pickle may call whatever it names."""
    if named not in {*_TENSOR, _DICTIONARY} and not (named[0] == "torch" and named[1] in _TYPES):
        raise InputError(f"{where}: its pickle names {'.'.join(map(str, named))}, expected tensors alone; it was not run")


def _tensors(where: str, archive: zipfile.ZipFile, pickle: str) -> Any:
    """What the few opcodes of a dictionary of tensors make on a stack; any other opcode is refused, and nothing is run."""
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    storages: dict[Any, NDArray[Any]] = {}
    asked = 0

    argument: Any
    for opcode, argument, _ in pickletools.genops(archive.read(pickle)):
        match opcode.name:
            case "STOP":
                return stack.pop()
            case "PROTO" | "FRAME":  # version and length of what follows say nothing of tensors
                pass
            case name if name in _PLAIN:
                stack.append(argument)
            case name if name in _NEW:
                stack.append(_NEW[name]())
            case "BINPUT" | "LONG_BINPUT" | "PUT" | "MEMOIZE":
                memo[len(memo) if argument is None else argument] = stack[-1]
            case "BINGET" | "LONG_BINGET" | "GET":
                stack.append(memo[argument])
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                n = int(opcode.name[-1])
                stack[-n:] = [tuple(stack[-n:])]
            case "TUPLE":
                stack.append(tuple(_since_mark(stack)))
            case "LIST":
                stack.append(_since_mark(stack))
            case "APPEND" | "APPENDS":
                values = [stack.pop()] if opcode.name == "APPEND" else _since_mark(stack)
                stack[-1].extend(values)
            case "SETITEM" | "SETITEMS":
                pairs = [stack.pop(-2), stack.pop()] if opcode.name == "SETITEM" else _since_mark(stack)
                stack[-1].update(zip((_name(where, key) for key in pairs[::2]), pairs[1::2], strict=True))
            case "GLOBAL" | "STACK_GLOBAL":
                named = tuple(argument.split(" ", 1)) if opcode.name == "GLOBAL" else (stack.pop(-2), stack.pop())
                _refuse_foreign(where, tuple(_name(where, one) for one in named))
                stack.append(named)
            case "BINPERSID":
                _, (_, kind), key, _, count = stack.pop()
                identity = _name(where, kind), _name(where, key)
                if identity not in storages:  # many tensors may lie in one storage
                    storages[identity] = _storage(where, archive, pickle.removesuffix("data.pkl"), *identity, int(count))
                stack.append(storages[identity])
            case "REDUCE":
                arguments, made = stack.pop(), stack.pop()
                if made == _DICTIONARY:
                    stack.append({})
                    continue
                asked += _values(where, arguments[2])
                check_memory(where, 8 * asked, "write longer logs as parquet")
                stack.append(_tensor(where, *arguments[:4]))
            case unknown:
                raise InputError(
                    f"{where}: its pickle uses '{unknown}', expected tensors, text and numbers alone; it was not run"
                )
    raise InputError(f"{where}: its pickle has no end")


def _values(where: str, shape: Any) -> int:
    """Numbers of a tensor, which may be more than its storage has: strides of zero make any number of one."""
    if len(shape) > _MOST_DIMENSIONS:
        raise InputError(f"{where}: a tensor has {len(shape)} dimensions, expected at most {_MOST_DIMENSIONS}")
    return math.prod(int(n) for n in shape)


def _storage(where: str, archive: zipfile.ZipFile, root: str, kind: str, key: str, count: int) -> NDArray[Any]:
    """A raw storage of the archive."""
    dtype = np.dtype(_TYPES[kind]).newbyteorder("<")
    raw = archive.read(f"{root}data/{key}")
    if len(raw) < count * dtype.itemsize:
        raise InputError(f"{where}: storage {key} has {len(raw)} bytes, expected {count * dtype.itemsize}")
    return np.frombuffer(raw, dtype, count)


def _tensor(where: str, storage: NDArray[Any], offset: Any, shape: Any, strides: Any) -> NDArray[Any]:
    reach = int(offset) + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if 0 not in shape else 0
    if reach >= len(storage) or min((*strides, offset), default=0) < 0:
        raise InputError(f"{where}: a tensor of shape {tuple(shape)} reaches beyond its storage of {len(storage)} numbers")
    size = storage.dtype.itemsize
    view = np.lib.stride_tricks.as_strided(storage[int(offset) :], shape, [s * size for s in strides], writeable=False)
    return np.array(view, dtype=storage.dtype.newbyteorder("="))
