"""A log on disk, in memory or behind a URL (``s3://``, ``gs://``, ``https://``, any that fsspec knows), opened and hashed once.

Files behind URLs are read in pieces where the server can give pieces. A URL may carry a key: a password before its host, a signature
behind its question mark. What is shown and stored of a URL is :func:`without_secrets`; the URL itself is held in memory only, and errors
of other libraries are cleared of it.
"""

from __future__ import annotations

import atexit
import errno
import hashlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property, lru_cache
from importlib import import_module
from pathlib import Path, PosixPath
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable
from urllib.parse import unquote, urlsplit

import numpy as np

from dynid.errors import DynidError, InputError
from dynid.files import foreign_errors, sentence
from dynid.signals.recording import COLUMN_OF_QUANTITY, Recording, StaticRecording

_HEAD_BYTES = 16
_WORD = r"[A-Za-z][A-Za-z0-9+.-]+"
_URL = re.compile(rf"(?:{_WORD}::)*{_WORD}://")
_COLLAPSED = re.compile(rf"({_WORD}):/(?!/)")
"""What pathlib leaves of a URL."""
_PART = re.compile(r"@[-+.\deE]*:[-+.\deE]*$")
_EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs", "http": "http", "https": "http", "abfs": "azure", "az": "azure"}
_NAMES_BEFORE_HOST = ("abfs", "abfss", "az")
"""Schemes in which what stands before the host is a name and no secret."""
READ_BYTES = 1 << 22
"""Bytes that are asked for at a time of what is read from end to end: the time to the first byte then matters little."""
_BUFFER_BYTES = 1 << 16
"""Bytes of the smallest request."""


@runtime_checkable
class DataFrame(Protocol):
    """A table of pandas or polars: columns by name."""

    @property
    def columns(self) -> Any:
        """Names of the columns."""

    def __getitem__(self, name: Any, /) -> Any:
        """One column."""


HeldLog: TypeAlias = Recording | StaticRecording | Mapping[str, Any] | DataFrame
"""A log in memory: a recording, arrays by the names that columns of a log have (``t``, ``q``, ``dq``, ``tau``, ..), a data frame."""


class MemoryLog(PosixPath):
    """The path of a log in memory: the name by which messages call it, and what it holds."""

    held: HeldLog

    def __new__(cls, name: str, held: HeldLog) -> Self:
        made = super().__new__(cls, name)
        made.held = held
        return made

    if sys.version_info >= (3, 12):

        def __init__(self, name: str, held: HeldLog) -> None:
            super().__init__(name)

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """There is no file, whatever the name."""
        return False

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """There is no file, whatever the name."""
        return False

    @property
    def arrays(self) -> dict[str, Any]:
        """All arrays by name."""
        held = self.held
        if isinstance(held, Recording | StaticRecording):
            names = ("time", "inertia", "gravity", *COLUMN_OF_QUANTITY)
            return {name: values for name in names if (values := getattr(held, name, None)) is not None}
        columns = held.keys() if isinstance(held, Mapping) else held.columns
        return {str(name): np.asarray(held[name]) for name in columns}

    @property
    def sha256(self) -> str:
        """Hash of the names and numbers."""
        digest = hashlib.sha256()
        for name, values in self.arrays.items():
            digest.update(f"{name} {np.shape(values)} ".encode())
            digest.update(np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()


class LogFile:
    """A log by its path.

    Inside ``with`` its first bytes, its hash and its rows are read from one handle, so the file is opened once. Outside,
    each reading opens the file for itself: a stream that is walked through later holds nothing open until then.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.held: io.BufferedReader | None = None
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
    def reading(self) -> Iterator[io.BufferedReader]:
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
        """The hash by which the log is recognised: of a file, or of the files of a folder in order of their names."""
        if isinstance(self.path, MemoryLog):
            return self.path.sha256
        with foreign_errors(str(self.path), "cannot be read"):
            if self.path.is_dir():
                digest = hashlib.sha256()
                for file in sorted(entry for entry in self.path.iterdir() if entry.is_file()):
                    digest.update(file.name.encode() + bytes.fromhex(LogFile(file).sha256))
                return digest.hexdigest()
            with self.reading() as opened:
                if not isinstance(self.path, UrlPath):
                    return hashlib.file_digest(opened, "sha256").hexdigest()
                digest = hashlib.sha256()
                while block := opened.read(READ_BYTES):  # in requests as large as those of its rows
                    digest.update(block)
                return digest.hexdigest()


def is_url(text: str) -> bool:
    """Whether a text names a file by a URL, also one of fsspec's chains such as ``simplecache::s3://..``."""
    return _URL.match(text) is not None


def log_path(text: str | os.PathLike[str]) -> Path:
    """The path of a log: a file on this machine, or a :class:`UrlPath`."""
    if isinstance(text, UrlPath):
        return text
    name = os.fspath(text)
    if isinstance(text, Path) and (found := _COLLAPSED.match(name)) and not text.exists():
        name = f"{found[1]}://{name[found.end() :]}"
    if not is_url(name):
        return Path(text)
    if name.startswith("file://"):
        return Path(unquote(urlsplit(name).path) if "%" in name else name.removeprefix("file://"))
    return UrlPath(name)


def without_secrets(url: str) -> str:
    """A URL without user, password, query and fragment; a part of a log in time (``@10:25``) stays."""
    part = _PART.search(url)
    text, behind = (url[: part.start()], part[0]) if part else (url, "")
    shown = []
    for element in text.split("::"):
        scheme, separator, rest = element.partition("://")
        if separator:
            rest = rest.split("?", 1)[0]
            host, slash, path = (rest.split("#", 1)[0] if scheme in ("http", "https") else rest).partition("/")
            element = f"{scheme}://{host if scheme in _NAMES_BEFORE_HOST else host.rpartition('@')[2]}{slash}{path}"
        shown.append(element)
    return "::".join(shown) + behind


def _named_element(url: str) -> str:
    """The element of a chain that names the file: the first with a place of its own."""
    return next(one for one in url.split("::") if "://" in one)


class UrlPath(PosixPath):
    """The path of a file behind a URL: its name and suffix, its size, and a way to open it; shown without secrets."""

    _url: str

    def __new__(cls, url: str) -> Self:
        made = super().__new__(cls, _named_element(without_secrets(url)))
        made._url = url
        return made

    if sys.version_info >= (3, 12):

        def __init__(self, url: str) -> None:
            super().__init__(_named_element(without_secrets(url)))

    @property
    def url(self) -> str:
        """The URL with all it carries, for the library that opens it; never to be shown."""
        return self._url

    def __str__(self) -> str:
        return without_secrets(self._url)

    def __fspath__(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"UrlPath('{self}')"

    def __reduce__(self) -> Any:
        return UrlPath, (self._url,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UrlPath) and other._url == self._url

    def __hash__(self) -> int:
        return hash(self._url)

    def __lt__(self, other: Any) -> bool:
        return str(self) < str(other)

    @cached_property
    def _info(self) -> dict[str, Any] | None:
        files, inside = _filesystem(self._url)
        with _in_one_sentence(self._url):
            try:
                found: dict[str, Any] = files.info(inside)
            except FileNotFoundError as error:
                cause = error.__cause__
                # A file may be called missing because its server could not be asked, or refused to answer.
                if cause is not None and getattr(cause, "status", None) not in (404, 410):
                    raise cause from None
                return None
        return found

    @cached_property
    def _in_pieces(self) -> bool:
        """Whether the server gives the bytes that are asked for; one of HTTP may send the whole file for any."""
        if self._info is None or not self._info.get("size") or not self._info.get("partial", True):
            return False
        if not _named_element(self._url).startswith("http"):
            return True
        files, inside = _filesystem(self._url)
        with _in_one_sentence(self._url), files.open(inside, "rb", cache_type="none") as file:
            file.seek(file.size - 1)
            try:
                return len(file.read(1)) == 1 and file.size > 1
            except ValueError:
                return False

    def exists(self, **_: Any) -> bool:
        """Whether the server knows the file; raises :class:`InputError` where no server answers."""
        return self._info is not None

    def is_file(self, **_: Any) -> bool:
        return self._info is not None and self._info.get("type") != "directory"

    def is_dir(self, **_: Any) -> bool:
        return self._info is not None and self._info.get("type") == "directory"

    def resolve(self, strict: bool = False) -> Self:
        return self

    def stat(self, **_: Any) -> os.stat_result:
        """Kind and size; nothing else is known of every server's files."""
        if self._info is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(self))
        size = self._info.get("size")
        if size is None:  # the server does not say: only the file itself tells
            size = fetched(self._url).stat().st_size
        return os.stat_result((0o040555 if self.is_dir() else 0o100444, 0, 0, 0, 0, 0, int(size), 0, 0, 0))

    def open(self, mode: str = "rb", *_: Any, **__: Any) -> Any:
        """The file, to be read from any byte on; copied to this machine first where its server gives it as a whole only."""
        if mode != "rb":
            raise InputError(f"{self}: is a URL, which is read as bytes only")
        if self._info is None:
            raise InputError(f"{self}: there is no such file")
        if not self._in_pieces:
            return fetched(self._url).open("rb")
        files, inside = _filesystem(self._url)
        with _in_one_sentence(self._url):
            file = files.open(inside, "rb", cache_type="none")
        return io.BufferedReader(_Remote(file, self._url), _BUFFER_BYTES)


class _Remote(io.RawIOBase):
    """A file of another library whose errors are one sentence without secrets."""

    def __init__(self, file: Any, url: str) -> None:
        self._file, self._url = file, url

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        with _in_one_sentence(self._url):
            data = self._file.read(min(len(buffer), max(0, self._file.size - self._file.tell())))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._file.close()
        super().close()


def url_matches(url: str) -> list[UrlPath]:
    """Files that a URL with ``*`` or ``[..]`` names, or that lie in the folder that it names with a ``/`` at its end."""
    files, inside = _filesystem(url)
    with _in_one_sentence(url):
        if url.endswith("/"):
            found = [entry["name"] for entry in files.ls(inside, detail=True) if entry.get("type") != "directory"]
        else:
            found = [name for name in files.glob(inside) if not files.isdir(name)]
    # the URL of each, with the same user
    elements = url.split("::")
    place = elements.index(_named_element(url))
    scheme, _, rest = elements[place].partition("://")
    user = rest.partition("/")[0].rpartition("@")[0]
    urls = []
    for name in map(str, found):
        inside = name.partition("://")[2] if "://" in name else name
        if user and scheme not in _NAMES_BEFORE_HOST and "@" not in inside.partition("/")[0]:
            inside = f"{user}@{inside}"
        urls.append("::".join([*elements[:place], f"{scheme}://{inside.lstrip('/')}", *elements[place + 1 :]]))
    return sorted(map(UrlPath, urls))


@lru_cache(maxsize=64)
def fetched(url: str) -> Path:
    """A copy on this machine, for formats and servers that cannot be read in pieces; it is removed when this process ends."""
    files, inside = _filesystem(url)
    folder = Path(tempfile.mkdtemp(prefix="dynid-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / UrlPath(url).name
    with _in_one_sentence(url), files.open(inside, "rb", block_size=0) as source, target.open("wb") as copy:
        shutil.copyfileobj(source, copy, READ_BYTES)
    return target


def local_copy(path: Path) -> Path:
    """A path that other libraries can open by its name."""
    return fetched(path.url) if isinstance(path, UrlPath) else path


def _filesystem(url: str) -> tuple[Any, str]:
    """fsspec's view of a URL: the file system and the path inside it."""
    scheme = _named_element(url).partition("://")[0].lower()
    extra = _EXTRAS.get(scheme)
    try:
        core = import_module("fsspec.core")
        with _in_one_sentence(url):
            files, inside = core.url_to_fs(url)
    except ImportError as error:
        remedy = f"pip install 'dynid[{extra}]'" if extra else f"pip install fsspec ({error})"
        raise InputError(
            f"{without_secrets(url)}: logs behind {scheme}:// need a package that is not installed: {remedy}"
        ) from None
    return files, str(inside)


@contextmanager
def _in_one_sentence(url: str) -> Iterator[None]:
    """What another library raises, in one sentence that holds no secret of the URL."""
    try:
        yield
    except (DynidError, ImportError, MemoryError):
        raise
    except FileNotFoundError:
        raise InputError(f"{without_secrets(url)}: there is no such file") from None
    except Exception as error:
        # The first line of an error's text, without anything that the URL keeps to itself.
        status = getattr(error, "status", None)
        text = (
            f"the server answers {status}" if isinstance(status, int) else sentence(error).replace(url, without_secrets(url))
        )
        found: list[str] = []  # user, password and query, whole and in pieces
        for element in url.split("::"):
            scheme, _, rest = element.partition("://")
            place, _, query = rest.partition("?")
            host = place.partition("/")[0]
            user = "" if scheme in _NAMES_BEFORE_HOST else host.rpartition("@")[0]
            pieces = [user, *user.split(":"), query, *(pair.partition("=")[2] for pair in query.split("&"))]
            found += [piece for piece in pieces if piece]
        secret = any(piece in text or unquote(piece) in text for piece in found)
        raise InputError(f"{without_secrets(url)}: cannot be read: {type(error).__name__ if secret else text}") from None
