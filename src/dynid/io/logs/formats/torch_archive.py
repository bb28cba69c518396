"""PyTorch archives of tensors (``.pt``), such as PACE's recordings, read without PyTorch and without running a pickle.

A ``.pt`` file is a zip of raw storages and of one pickle that says how they become tensors. The pickle is never loaded: its opcodes are
read one by one, and only those that name tensors, dictionaries, lists, text and numbers are understood. Anything else is refused by name.

PACE's names (``time``, ``dof_pos``, ``des_dof_pos``) become ``t``, ``q`` and ``q_cmd``.
"""

from __future__ import annotations

import math
import pickletools
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InputError
from dynid.files import check_memory, foreign_errors
from dynid.io.logs.table import OpenOptions, Table, array_table, check_log_memory, checked_arrays, named_elements

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
_NAMES = {
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
                arrays[_NAMES.get(str(name), str(name))] = made if made.dtype.kind in "iu" else made.astype(np.float64)
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
