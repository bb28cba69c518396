"""PyTorch archives of tensors (``.pt``), such as PACE's recordings, read without PyTorch and without running a pickle.

A ``.pt`` file is a zip of raw storages and of one pickle that says how they become tensors. The pickle is never loaded: its opcodes are
read one by one, and only those that name tensors, dictionaries, lists, text and numbers are understood. Anything else is refused by name.

PACE's names (``time``, ``dof_pos``, ``des_dof_pos``) become ``t``, ``q`` and ``q_cmd``.
"""

from __future__ import annotations

import pickletools
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InputError
from dynid.recording.readers.foreign import foreign_errors
from dynid.recording.readers.formats.format import OpenOptions
from dynid.recording.readers.formats.npz import MOST_BYTES
from dynid.recording.readers.formats.table import ArrayTable
from dynid.recording.readers.log_file import LogFile

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
_DICTIONARY = {("collections", "OrderedDict")}
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


class TorchFormat:
    """PyTorch archives."""

    name = "pt"
    suffixes = (".pt", ".pth")

    def recognises(self, path: Path, head: bytes) -> bool:
        """A zip archive with the suffix of PyTorch."""
        return path.suffix.lower() in self.suffixes and head.startswith(b"PK\x03\x04")

    def open(self, path: Path, options: OpenOptions) -> ArrayTable:
        """Every tensor of the dictionary in the file."""
        return open_torch(options.log_at(path))


def open_torch(log: LogFile) -> ArrayTable:
    """The tensors of the outermost dictionary by name; nothing of the file is executed."""
    where = str(log.path)
    with (
        foreign_errors(where, "cannot be read as a PyTorch archive (the file may be truncated)"),
        log.reading() as file,
        zipfile.ZipFile(file) as archive,
    ):
        if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
            raise InputError(f"{where}: unpacks to more than {MOST_BYTES / 2**30:.0f} GiB; write longer logs as parquet")
        pickles = [name for name in archive.namelist() if name.endswith("data.pkl")]
        if len(pickles) != 1:
            raise InputError(f"{where}: holds {len(pickles)} files data.pkl, expected one, as torch.save writes it")
        root = pickles[0].removesuffix("data.pkl")
        content = _Machine(where, archive, root).run(archive.read(pickles[0]))
    return _table(where, content)


def _table(where: str, content: Any) -> ArrayTable:
    if not isinstance(content, dict):
        raise InputError(
            f"{where}: holds a {type(content).__name__}, expected a dictionary of tensors such as time, dof_pos, des_dof_pos"
        )
    arrays, names = _tensors_and_names(content)
    if not arrays:
        raise InputError(f"{where}: the dictionary holds no tensors ({', '.join(map(str, content)) or 'it is empty'})")
    if "t" in arrays:
        arrays["t"] = arrays["t"].reshape(-1)
        arrays = {name: array for name, array in arrays.items() if len(array) == len(arrays["t"])}
    elements = {name: names for name, array in arrays.items() if names and array.shape[1:] == (len(names),)}
    notes = ("tensors were read without PyTorch; no code of the file was run",)
    table = ArrayTable.of(where, "pt", arrays)
    return ArrayTable("pt", table.arrays, elements, notes=notes)


def _tensors_and_names(content: dict[Any, Any]) -> tuple[dict[str, NDArray[Any]], tuple[str, ...]]:
    """The tensors of a dictionary as arrays of one or two axes, by column name, and its list of joint names."""
    arrays: dict[str, NDArray[Any]] = {}
    names: tuple[str, ...] = ()
    for name, value in content.items():
        if isinstance(value, np.ndarray) and value.ndim:
            made = value.reshape(len(value), -1) if value.ndim > 2 else value
            arrays[_NAMES.get(str(name), str(name))] = made if made.dtype.kind in "iu" else made.astype(np.float64)
        elif isinstance(value, list | tuple) and value and all(isinstance(one, str) for one in value):
            names = tuple(value)
    return arrays, names


@dataclass
class _Machine:
    """The few opcodes of a dictionary of tensors, on a stack."""

    where: str
    archive: zipfile.ZipFile
    root: str
    stack: list[Any] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def run(self, content: bytes) -> Any:
        for opcode, argument, _ in pickletools.genops(content):
            if opcode.name == "STOP":
                return self.stack.pop()
            self._step(opcode.name, argument)
        raise InputError(f"{self.where}: its pickle has no end")

    def _step(self, name: str, argument: Any) -> None:
        step = _STEPS.get(name)
        if step is None:
            raise InputError(
                f"{self.where}: its pickle uses '{name}', expected tensors, text and numbers alone; it was not run"
            )
        step(self, argument)

    def ignore(self, argument: Any) -> None:
        """Version and length of what follows say nothing of tensors."""

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def keep(self, place: int | None) -> None:
        self.memo[len(self.memo) if place is None else place] = self.stack[-1]

    def recall(self, place: int) -> None:
        self.stack.append(self.memo[place])

    def join(self, n: int) -> None:
        self.stack[-n:] = [tuple(self.stack[-n:])]

    def make_tuple(self, _: Any) -> None:
        self.stack.append(tuple(self._marked()))

    def make_list(self, _: Any) -> None:
        self.stack.append(self._marked())

    def append(self, _: Any) -> None:
        value = self.stack.pop()
        self.stack[-1].append(value)

    def extend(self, _: Any) -> None:
        values = self._marked()
        self.stack[-1].extend(values)

    def set_item(self, _: Any) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.stack[-1][key] = value

    def set_items(self, _: Any) -> None:
        pairs = self._marked()
        self.stack[-1].update(zip(pairs[::2], pairs[1::2], strict=True))

    def name_in_text(self, text: Any) -> None:
        module, name = str(text).split(" ", 1)
        self.stack.append(self._known(module, name))

    def name_on_stack(self, _: Any) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        self.stack.append(self._known(module, name))

    def take_storage(self, _: Any) -> None:
        self.stack.append(self._storage(self.stack.pop()))

    def build(self, _: Any) -> None:
        arguments, made = self.stack.pop(), self.stack.pop()
        self.stack.append(self._made(made, arguments))

    def _marked(self) -> list[Any]:
        place = max(k for k, value in enumerate(self.stack) if value is _MARK)
        values = self.stack[place + 1 :]
        del self.stack[place:]
        return values

    def _known(self, module: str, name: str) -> tuple[str, str]:
        """A name that means a tensor, a storage or a dictionary; any other is refused."""
        if (module, name) in _TENSOR | _DICTIONARY or (module == "torch" and name in _TYPES):
            return module, name
        raise InputError(f"{self.where}: its pickle names {module}.{name}, expected tensors alone; it was not run")

    def _storage(self, identity: Any) -> NDArray[Any]:
        """A raw storage of the archive: ``("storage", type, key, device, count)``."""
        kind, key, count = identity[1][1], str(identity[2]), int(identity[4])
        dtype = np.dtype(_TYPES[kind]).newbyteorder("<")
        raw = self.archive.read(f"{self.root}data/{key}")
        if len(raw) < count * dtype.itemsize:
            raise InputError(f"{self.where}: storage {key} has {len(raw)} bytes, expected {count * dtype.itemsize}")
        return np.frombuffer(raw, dtype, count)

    def _made(self, made: Any, arguments: Any) -> Any:
        if made in _DICTIONARY:
            return {}
        storage, offset, shape, strides = arguments[:4]
        reach = int(offset) + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if 0 not in shape else 0
        if reach >= len(storage) or min((*strides, offset), default=0) < 0:
            raise InputError(
                f"{self.where}: a tensor of shape {tuple(shape)} reaches beyond its storage of {len(storage)} numbers"
            )
        size = storage.dtype.itemsize
        view = np.lib.stride_tricks.as_strided(storage[int(offset) :], shape, [s * size for s in strides], writeable=False)
        return np.array(view, dtype=storage.dtype.newbyteorder("="))


_Step: TypeAlias = Callable[[_Machine, Any], None]


def _pushing(make: Callable[[], Any]) -> _Step:
    """The step that puts a new value onto the stack."""
    return lambda machine, _: machine.push(make())


def _joining(n: int) -> _Step:
    """The step that makes one tuple of the last values."""
    return lambda machine, _: machine.join(n)


_STEPS: dict[str, _Step] = {
    **dict.fromkeys(("PROTO", "FRAME"), _Machine.ignore),
    **dict.fromkeys(_PLAIN, _Machine.push),
    "NONE": _pushing(lambda: None),
    "NEWTRUE": _pushing(lambda: True),
    "NEWFALSE": _pushing(lambda: False),
    "EMPTY_DICT": _pushing(dict),
    "EMPTY_LIST": _pushing(list),
    "EMPTY_TUPLE": _pushing(tuple),
    "MARK": _pushing(lambda: _MARK),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT", "PUT", "MEMOIZE"), _Machine.keep),
    **dict.fromkeys(("BINGET", "LONG_BINGET", "GET"), _Machine.recall),
    "TUPLE1": _joining(1),
    "TUPLE2": _joining(2),
    "TUPLE3": _joining(3),
    "TUPLE": _Machine.make_tuple,
    "LIST": _Machine.make_list,
    "APPEND": _Machine.append,
    "APPENDS": _Machine.extend,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "GLOBAL": _Machine.name_in_text,
    "STACK_GLOBAL": _Machine.name_on_stack,
    "BINPERSID": _Machine.take_storage,
    "REDUCE": _Machine.build,
}
"""What every opcode that is understood does; nothing else is run."""
