"""TOML, JSON and small tables of unknown origin: limits of size, depth and numbers are checked before anything is used.

Files written whole or not at all, and values in the types that JSON has.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import os
import re
import stat
import sys
import threading
import tomllib
import uuid
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DynidError, InputError

MOST_BYTES = 64 * 2**20
"""No description, run file or record is longer."""
DEEPEST = 60
"""Tables inside tables."""
LARGEST_INTEGER = 2**63
_LONG_KEY = re.compile(rf"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{DEEPEST}}}""")
"""A key of very many parts: the parser of TOML takes memory by their square."""


BUDGET = "DYNID_MEMORY_GB"
"""Environment variable: how much memory a file may ask for, in GiB; a share of the machine's where it is not set."""
BUDGET_SHARE = 0.25
_LIMITING = threading.RLock()
"""Held while the process is limited: two threads would put back each other's limit."""


def memory_budget() -> int:
    """Bytes that what a file asks for may take: ``DYNID_MEMORY_GB``, else a quarter of the memory of the machine or its container."""
    given = os.environ.get(BUDGET, "")
    if given:
        try:
            if 0.0 < float(given) < math.inf:
                return int(float(given) * 2**30)
        except ValueError:
            pass
        raise InputError(f"{BUDGET} is '{given}', expected a number of GiB such as 16")
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with contextlib.suppress(OSError, ValueError):  # "max" where a container has no limit
        found.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return int(BUDGET_SHARE * min(found))


def check_memory(what: str, need: float, remedy: str = "") -> None:
    """Refuse what would take more memory than the budget, before any of it is taken.

    Args:
        what: subject of the refusal, such as "log.npz".
        need: bytes it would take.
        remedy: what else the user can do.
    """
    if need > (allowed := memory_budget()):
        raise InputError(
            f"{what} needs {need / 2**30:.3g} GiB of memory, expected at most {allowed / 2**30:.3g} GiB; "
            f"{f'{remedy}, or ' if remedy else ''}allow more with {BUDGET}={math.ceil(need / 2**30)} in the environment"
        )


@contextlib.contextmanager
def limited_memory(what: str, most_bytes: int) -> Iterator[None]:
    """Inside, this process gets at most so much more memory, where the system can say so.

    For libraries that take the memory a file asks for before they tell how much that is.
    """
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource

    with _LIMITING:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        wanted = pages * os.sysconf("SC_PAGE_SIZE") + most_bytes
        resource.setrlimit(resource.RLIMIT_AS, (min(one for one in (wanted, soft, hard) if one >= 0), hard))
        try:
            yield
        except MemoryError:
            raise InputError(f"{what} ask for more than {most_bytes / 2**30:.3g} GiB of memory") from None
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def read_limited(path: Path, what: str, most_bytes: int = MOST_BYTES) -> bytes:
    """The content of an ordinary file that is not too long; a pipe or a device would have no end.

    Args:
        path: the file.
        what: what a refusal calls it, such as "run file 'x.toml'".
        most_bytes: longest file that is read.
    """
    try:
        # Opened without waiting for the other end of a pipe.
        with os.fdopen(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"{what} is not an ordinary file")
            if found.st_size > most_bytes:
                raise InputError(f"{what} has {found.st_size} bytes, expected at most {most_bytes}")
            return file.read(found.st_size)  # and not as much as is allowed, which would be reserved first
    except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
        raise InputError(f"{what} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def toml_table(text: str | bytes, what: str) -> dict[str, Any]:
    """A TOML table whose numbers and depth are within limits."""
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
        if _LONG_KEY.search(text):
            raise ValueError(f"a key has more than {DEEPEST} parts")
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # also a text that is not UTF-8, and an integer of thousands of digits
        raise InputError(f"{what} is not valid TOML: {sentence(error)}") from None
    check_tree(table, what)
    return table


def json_value(text: str | bytes, what: str) -> Any:
    """A JSON value whose numbers and depth are within limits."""
    try:
        value = json.loads(text.decode("utf-8-sig") if isinstance(text, bytes) else text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} is not valid JSON: {sentence(error)}") from None
    check_tree(value, what)
    return value


def yaml_value(text: str | bytes, what: str) -> Any:
    """A YAML value whose names are text and whose numbers are within limits; a part that stands in many places is looked at once."""
    import yaml

    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{what} is not valid YAML: {sentence(error)}") from None
    waiting, seen = [value], set[int]()
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        if isinstance(one, dict | list):
            seen.add(id(one))
            for name in one if isinstance(one, dict) else ():
                check_tree(name, what)
                if not isinstance(name, str):  # YAML reads on, yes and 12 as other things than words
                    raise InputError(f"{what} has the name {name!r}, which is no text: write it in quotes")
            waiting += one.values() if isinstance(one, dict) else one
        else:
            check_tree(one, what)
    return value


def csv_lines(path: Path, what: str, verb: str = "is") -> list[tuple[int, list[str]]]:
    """Cells of the lines of a small CSV file that are not empty, each with the number of its line.

    Args:
        path: the file.
        what: what a refusal calls it, such as "base values".
        verb: of that word in a sentence.
    """
    try:
        text = read_limited(path, f"{what} '{path}'").decode("utf-8-sig")
        rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines())]
    except UnicodeDecodeError as error:
        raise InputError(f"{what} '{path}' {verb} not text: {error}") from None
    except csv.Error as error:  # such as a cell of 140,000 characters
        raise InputError(f"{what} '{path}' {verb} no table: {error}") from None
    return [(number, row) for number, row in enumerate(rows, start=1) if any(row)]


def check_tree(value: Any, what: str, depth: int = 0) -> None:
    """Refuse integers that no number of a computer holds, dates, and tables too deep to walk through."""
    if depth > DEEPEST:
        raise InputError(f"{what} has tables inside tables, more than {DEEPEST} deep")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(item, float | str | bool):
                check_tree(item, f"'{key}' of {what}" if depth == 0 else what, depth + 1)
    elif isinstance(value, list):
        for item in value:
            if not isinstance(item, float | str | bool):
                check_tree(item, what, depth + 1)
    elif isinstance(value, int):
        if abs(value) > LARGEST_INTEGER:
            raise InputError(f"{what} has an integer of {value.bit_length()} bits, expected at most 64")
    elif value is not None and not isinstance(value, float | str):
        raise InputError(f"{what} has the {type(value).__name__} {value}, expected numbers, text, lists and tables")


@contextlib.contextmanager
def foreign_errors(where: str, action: str) -> Iterator[None]:
    """Errors of file libraries as one sentence: decoders raise nearly anything on damaged files."""
    try:
        yield
    except (DynidError, MemoryError, ImportError):
        raise
    except Exception as error:
        raise InputError(f"{where}: {action}: {sentence(error)}") from error


def sentence(error: BaseException) -> str:
    """The first line of an error's text, without its class unless it has no text."""
    text = str(error).strip().splitlines()
    return (text[0][:200] if text else type(error).__name__).rstrip(".")


def refuse_target(target: Path) -> None:
    """Refuse to put a file in the place of a folder, or of a device or pipe, which would no longer be one."""
    if target.exists() and not target.is_file():
        raise InputError(f"cannot write '{target}': it is {'a folder' if target.is_dir() else 'no ordinary file'}")


def write_atomically(path: str | os.PathLike[str], write: Callable[[Path], object]) -> Path:
    """Let ``write`` fill a temporary file beside ``path``, then give it its name.

    Readers see the old file or the new one, never a part; a failure leaves what was there. The temporary file is made by
    ``write`` itself, so that its permissions follow the user's mask, and has the suffix of ``path``.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"cannot write '{target}': there is no folder '{target.parent}'")
    refuse_target(target)
    temporary = target.with_name(f".{target.stem}.{uuid.uuid4().hex}{target.suffix}")
    try:
        write(temporary)
        temporary.replace(target)
    except OSError as error:
        raise InputError(f"cannot write '{target}': {error.strerror or error}") from error
    finally:
        with contextlib.suppress(
            OSError
        ):  # a file system that cannot be written has nothing to remove, and its first error counts
            temporary.unlink(missing_ok=True)
    return target


def write_bytes(path: str | os.PathLike[str], content: bytes) -> Path:
    """Bytes, atomically."""
    return write_atomically(path, lambda temporary: temporary.write_bytes(content))


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Text in UTF-8 with its line ends as they are, atomically."""
    return write_bytes(path, text.encode())


def write_json(path: str | os.PathLike[str], value: Mapping[str, Any]) -> Path:
    """One JSON object, atomically."""
    return write_text(path, to_json(value))


def to_json(value: Mapping[str, Any]) -> str:
    """JSON text; numbers that JSON does not know become null."""
    return json.dumps(plain(value), indent=2, allow_nan=False) + "\n"


def read_json(path: Path, what: str) -> dict[str, Any]:
    """A JSON object; ``what`` says in a refusal what the file should have been part of."""
    try:
        content = read_limited(path, path.name)
    except InputError as error:
        raise InputError(f"{what} '{path.parent}' has no readable {path.name}: {error}") from None
    return json_object(content, path)


def json_object(content: bytes, path: Path) -> dict[str, Any]:
    """The JSON object that these bytes of a file are."""
    value = json_value(content, f"'{path}'")
    if not isinstance(value, dict):
        raise InputError(f"'{path}' holds a {type(value).__name__}, expected a JSON object")
    return value


def read_arrays(content: bytes, path: Path, names: Sequence[str] | None = None) -> dict[str, NDArray[Any]]:
    """Arrays of numbers and text of an npz archive; sizes are checked before anything is unpacked.

    Args:
        content: bytes of the archive.
        path: the file they came from, for a refusal.
        names: arrays to read, those that it has; None for all.
    """
    found: dict[str, NDArray[Any]] = {}
    with (
        foreign_errors(f"'{path}'", "cannot be read as arrays of numbers"),
        zipfile.ZipFile(io.BytesIO(content)) as archive,
    ):
        members = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        check_memory(f"'{path}'", sum(entry.file_size for entry in members.values()))
        for name in members if names is None else names:
            if name in members:
                _, dtype = array_header(archive, members[name])
                if dtype.kind not in "biufU":
                    raise ValueError(f"array '{name}' holds {dtype}, expected numbers")
                found[name] = read_array(archive, members[name])
    return found


def array_header(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> tuple[int, np.dtype[Any]]:
    """How many values an array of an archive has, and of which type; a header alone would make NumPy reserve the memory."""
    with archive.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(stream)
    if dtype.hasobject:
        raise ValueError(f"array '{entry.filename}' holds Python objects, expected numbers")
    if math.prod(shape) * dtype.itemsize > entry.file_size:
        raise ValueError(f"array '{entry.filename}' declares shape {shape} but holds {entry.file_size} bytes")
    return math.prod(shape), dtype


def read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """One array of an archive, whose header was looked at before."""
    with archive.open(entry) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def plain(value: Any) -> Any:
    """``value`` in the types that JSON has."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)
