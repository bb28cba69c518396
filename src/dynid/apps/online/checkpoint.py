"""Checkpoints of a watch: numbers, names and arrays in one file that is whole or absent.

It is an ``.npz`` of the arrays, and one array of bytes that is JSON and says where each of them belongs. Nothing in it is ever
executed, and what is read is compared with the state of a watch of the same options before any of it is used.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import InputError
from dynid.files import json_value, memory_budget, read_arrays, read_limited, sentence, write_atomically
from dynid.folders import sync

FORMAT = "dynid-watch-2"
_ARRAY = "array:"
_TREE = "tree"


def packed(state: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """A state as arrays alone."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    tree = json.dumps({"format": FORMAT, "state": _without_arrays(state, arrays)})
    return arrays | {_TREE: np.frombuffer(tree.encode(), dtype=np.uint8)}


def _without_arrays(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    """A value with the names of its arrays in their places; they go into ``arrays``.

    A function of the module: one inside :func:`packed` that calls itself is a cycle, which keeps all arrays of every checkpoint until
    the collector comes, which in a watch is hours.
    """
    if isinstance(value, np.ndarray):
        name = f"a{len(arrays)}"
        arrays[name] = value
        return _ARRAY + name
    if isinstance(value, Mapping):
        return {str(key): _without_arrays(entry, arrays) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_without_arrays(entry, arrays) for entry in value]
    return value.item() if isinstance(value, np.generic) else value


def unpacked(arrays: Mapping[str, np.ndarray[Any, Any]]) -> dict[str, Any]:
    """The state that arrays were made of."""

    def walk(value: Any) -> Any:
        if isinstance(value, str) and value.startswith(_ARRAY):
            return arrays[value[len(_ARRAY) :]]
        if isinstance(value, dict):
            return {key: walk(entry) for key, entry in value.items()}
        return [walk(entry) for entry in value] if isinstance(value, list) else value

    tree = json_value(bytes(arrays[_TREE]), "the tree of its arrays")
    if tree["format"] != FORMAT:
        raise ValueError(f"format '{tree['format']}', expected '{FORMAT}'")
    return dict(walk(tree["state"]))


def check_like(value: Any, like: Any, where: str) -> None:
    """Refuse a value that is not built as another one is.

    Args:
        value: read from a file.
        like: a state with the same names, kinds of numbers and shapes. A length of zero stands for any length, a list of one for a list of
            any number of such, an empty mapping for counts by name, None for a value that its reader checks.
        where: place of the value, for the refusal.
    """
    built = True
    if isinstance(like, Mapping):
        built = isinstance(value, Mapping) and (not like or value.keys() == like.keys())
        for key, entry in value.items() if built else ():
            check_like(entry, like.get(key, 0), f"{where}, {key}")
    elif isinstance(like, list | tuple):
        built = isinstance(value, list | tuple) and len(like) in (1, len(value))
        for k, entry in enumerate(value if built else ()):
            check_like(entry, like[min(k, len(like) - 1)], f"{where}, {k}")
    elif isinstance(like, np.ndarray):
        built = isinstance(value, np.ndarray) and (value.dtype.kind, value.ndim) == (like.dtype.kind, like.ndim)
        built = built and all(n in (0, own) for own, n in zip(value.shape, like.shape, strict=True))
    elif like is not None:
        built = type(value) is type(like) or (type(like) is float and type(value) is int)
    if not built:
        raise InputError(f"{where}: this is not what a watch with these options writes; start anew without --resume")


def write_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """A state into a file, which reaches the disk before it takes the place of the last one."""
    content = io.BytesIO()
    np.savez(content, **packed(state))  # type: ignore[arg-type]

    def write(temporary: Path) -> None:
        temporary.write_bytes(content.getbuffer())
        sync(temporary)

    write_atomically(path, write)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The state in a file."""
    if not path.is_file():
        raise InputError(f"there is no checkpoint '{path}' to resume from; leave --resume out to start anew")
    try:
        return unpacked(read_arrays(read_limited(path, f"checkpoint '{path}'", memory_budget()), path))
    except Exception as error:  # decoders raise nearly anything on damaged archives
        raise InputError(f"'{path}' is no checkpoint of a watch: {sentence(error)}") from None


def remove_leftovers(path: Path) -> None:
    """Remove temporary files of a process that was killed while it wrote a checkpoint."""
    pattern = re.compile(rf"\.{re.escape(path.stem)}\.[0-9a-f]{{32}}{re.escape(path.suffix)}")
    for entry in path.parent.iterdir():
        if pattern.fullmatch(entry.name):
            entry.unlink(missing_ok=True)
