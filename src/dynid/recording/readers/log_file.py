"""A log on disk or behind a URL that is opened once, whoever reads from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Self

from dynid.adapters.urls import READ_BYTES, UrlPath
from dynid.errors import InputError
from dynid.recording.readers.digest import sha256_of
from dynid.recording.readers.foreign import foreign_errors

_HEAD_BYTES = 16


class LogFile:
    """A log by its path.

    Inside ``with`` its first bytes, its hash and its rows are read from one handle, so the file is opened once. Outside,
    each reading opens the file for itself: a stream that is walked through later holds nothing open until then.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.held: BufferedReader | None = None
        """The open file, None outside ``with`` and for a folder."""

    def __enter__(self) -> Self:
        if self.path.exists() and not (self.path.is_file() or self.path.is_dir()):
            raise InputError(f"{self.path}: is a pipe or a device, expected a file; write the log to a file first")
        if self.path.is_file():
            with foreign_errors(str(self.path), "cannot be read"):
                self.held = self.path.open("rb")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.held is not None:
            self.held.close()
            self.held = None

    @contextmanager
    def reading(self) -> Iterator[BufferedReader]:
        """The file from its first byte."""
        if self.held is not None:
            self.held.seek(0)
            yield self.held
            return
        with self.path.open("rb") as file:
            yield file

    @cached_property
    def head(self) -> bytes:
        """The first bytes, which tell the format; none of a folder."""
        if self.path.is_dir():
            return b""
        with foreign_errors(str(self.path), "cannot be read"), self.reading() as file:
            return file.read(_HEAD_BYTES)

    @cached_property
    def sha256(self) -> str:
        """The hash by which the log is recognised."""
        if self.path.is_dir():
            return sha256_of(self.path)
        with foreign_errors(str(self.path), "cannot be read"), self.reading() as file:
            if isinstance(self.path, UrlPath):
                return _digest(file)
            return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(file: BufferedReader) -> str:
    """SHA-256 of what lies behind a URL, in requests as large as those of its rows."""
    digest = hashlib.sha256()
    while block := file.read(READ_BYTES):
        digest.update(block)
    return digest.hexdigest()
