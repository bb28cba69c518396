"""The list of file formats, and the way to add one.

A built-in format is one file of this folder and one line in ``_BUILT_IN``; one from outside is one call of
:func:`register_format`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from dynid.errors import InputError, UnknownNameError
from dynid.files import foreign_errors
from dynid.io.logs.formats.arrays import Hdf5Format, NpzFormat, TorchFormat, table_of_arrays
from dynid.io.logs.formats.bag import BagFormat
from dynid.io.logs.formats.csv import CsvFormat, SageFormat
from dynid.io.logs.formats.parquet import ParquetFormat
from dynid.io.logs.log_file import LogFile, MemoryLog, UrlPath, local_copy
from dynid.io.logs.table import Format, OpenOptions, Table, array_table, checked_arrays

_BUILT_IN: tuple[Format, ...] = (
    CsvFormat(),
    ParquetFormat(),
    TorchFormat(),
    NpzFormat(),
    BagFormat(),
    SageFormat(),
    Hdf5Format(),
)
_registered: list[Format] = []


def register_format(format: Format) -> Callable[[], None]:
    r"""Add a file format of logs, so that ``read_recording`` and every verb of this process understand it.

    ``format`` needs ``name``, ``suffixes``, ``recognises(path, head)`` and ``open(path, options)``, see
    :class:`~dynid.io.logs.table.Format`; ``open`` returns arrays by column name, or a
    :class:`~dynid.io.logs.table.Table` for files that are read in batches. Columns are then matched
    to joints and quantities as those of any other log.

    A format that was added later is asked first, and one of the same name takes the place of the former.

    Args:
        format: the format.

    Returns:
        a function that takes the registration back.

    >>> import pathlib, tempfile
    >>> import dynid, numpy as np
    >>> class Rlog:
    ...     name = "rlog"
    ...     suffixes = (".rlog",)
    ...
    ...     def recognises(self, path, head):
    ...         return head.startswith(b"RLOG")
    ...
    ...     def open(self, path, options):
    ...         t, q, tau = np.loadtxt(path, skiprows=1, unpack=True)
    ...         return {"t": t, "q": q[:, None], "tau": tau[:, None]}
    >>> forget = dynid.register_format(Rlog())
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "run.rlog"
    >>> _ = file.write_text("RLOG\n0.00 0.1 1.0\n0.01 0.2 1.1\n0.02 0.3 1.2\n")
    >>> recording = dynid.read_recording(file, ["elbow"])
    >>> recording.source.format, recording.torque[:, 0].tolist()
    ('rlog', [1.0, 1.1, 1.2])
    >>> forget()
    """
    for suffix in format.suffixes:
        if not suffix.startswith(".") or suffix != suffix.lower():
            raise InputError(f"format '{format.name}' has the suffix '{suffix}', expected lower case with a dot in front")
    _registered[:] = [format, *(known for known in _registered if known.name != format.name)]
    return partial(unregister_format, format.name)


def unregister_format(name: str) -> None:
    """Remove a format that :func:`register_format` added; built-in ones stay.

    Args:
        name: of the format.

    Examples:
        >>> import dynid
        >>> from dynid.io.logs.formats import unregister_format
        >>> unregister_format("xyz")
        Traceback (most recent call last):
        ...
        dynid.errors.UnknownNameError: unknown registered format 'xyz'; available: none
    """
    if name not in (known.name for known in _registered):
        raise UnknownNameError("registered format", name, [known.name for known in _registered])
    _registered[:] = [known for known in _registered if known.name != name]


def formats() -> tuple[Format, ...]:
    """All formats in the order they are asked: the latest registered first, the built-in ones last."""
    return (*_registered, *_BUILT_IN)


def format_of(path: Path, file: LogFile | None = None) -> Format:
    """The format of a file or folder; its first bytes decide over its suffix."""
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    head = (file or LogFile(path)).head
    if not head and not path.is_dir():
        raise InputError(f"{path}: the file is empty")
    for known in formats():
        if known.recognises(path, head):
            return known
    if isinstance(path, UrlPath) and path.is_dir():
        raise InputError(f"{path}: is a folder; end its URL with '/' to take the logs in it")
    if path.is_dir():
        raise InputError(f"{path}: is a folder without metadata.yaml, expected a log file or a ROS 2 bag folder")
    for known in formats():
        if path.suffix.lower() in known.suffixes:
            return known
    expected = sorted({suffix for known in formats() for suffix in known.suffixes})
    raise InputError(f"{path}: the suffix '{path.suffix}' is not that of a log; expected one of {', '.join(expected)}")


def open_table(path: Path, options: OpenOptions) -> Table:
    """The columns of a log."""
    if isinstance(path, MemoryLog):
        return table_of_arrays(str(path), "memory", path.arrays)
    found = format_of(path, options.file)
    with foreign_errors(str(path), f"cannot be read as {found.name}"):
        # a format from outside opens the file by its name
        place = path if found in _BUILT_IN else local_copy(path)
        table: Table | Mapping[str, Any] = found.open(place, options)
        return array_table(found.name, checked_arrays(str(path), table)) if isinstance(table, Mapping) else table
