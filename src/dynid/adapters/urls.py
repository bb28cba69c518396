"""Files behind URLs (``s3://``, ``gs://``, ``https://``, any that fsspec knows), read in pieces where the server can give pieces.

A URL may carry a key: a password before its host, a signature behind its question mark. What is shown and stored of a URL is
:func:`without_secrets`; the URL itself is held in memory only, and errors of other libraries are cleared of it.
"""

from __future__ import annotations

import atexit
import errno
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from importlib import import_module
from pathlib import Path, PosixPath
from typing import Any, Self
from urllib.parse import unquote, urlsplit
from urllib.request import url2pathname

from dynid.errors import DynidError, InputError

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
        return Path(url2pathname(unquote(urlsplit(name).path) if "%" in name else name.removeprefix("file://")))
    return UrlPath(name)


def without_secrets(url: str) -> str:
    """A URL without user, password, query and fragment; a part of a log in time (``@10:25``) stays."""
    part = _PART.search(url)
    text, behind = (url[: part.start()], part[0]) if part else (url, "")
    return "::".join(_shown(one) for one in text.split("::")) + behind


def _shown(element: str) -> str:
    scheme, separator, rest = element.partition("://")
    if not separator:
        return element
    rest = rest.split("?", 1)[0]
    if scheme in ("http", "https"):
        rest = rest.split("#", 1)[0]
    host, slash, path = rest.partition("/")
    if scheme not in _NAMES_BEFORE_HOST:
        host = host.rpartition("@")[2]
    return f"{scheme}://{host}{slash}{path}"


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
                if cause is not None and _no_answer(cause):
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
    return sorted(UrlPath(_url_of(url, str(name))) for name in found)


def _url_of(url: str, name: str) -> str:
    """The URL of a file that was found by another URL, with the same user."""
    elements = url.split("::")
    place = elements.index(_named_element(url))
    scheme, _, rest = elements[place].partition("://")
    inside = name.partition("://")[2] if "://" in name else name
    user = rest.partition("/")[0].rpartition("@")[0]
    if user and scheme not in _NAMES_BEFORE_HOST and "@" not in inside.partition("/")[0]:
        inside = f"{user}@{inside}"
    return "::".join([*elements[:place], f"{scheme}://{inside.lstrip('/')}", *elements[place + 1 :]])


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
        raise InputError(f"{without_secrets(url)}: cannot be read: {_cleared(error, url)}") from None


def _no_answer(cause: BaseException) -> bool:
    """Whether a file was called missing because its server could not be asked, or refused to answer."""
    return getattr(cause, "status", None) not in (404, 410)


def _cleared(error: BaseException, url: str) -> str:
    """The first line of an error's text, without anything that the URL keeps to itself."""
    status = getattr(error, "status", None)
    lines = [f"the server answers {status}"] if isinstance(status, int) else str(error).strip().splitlines()
    text = (lines[0][:200] if lines else type(error).__name__).rstrip(".")
    text = text.replace(url, without_secrets(url))
    return type(error).__name__ if any(secret in text for secret in _secrets(url)) else text


def _secrets(url: str) -> list[str]:
    """User, password and query of a URL, whole and in pieces, as written and decoded."""
    found: list[str] = []
    for element in url.split("::"):
        scheme, _, rest = element.partition("://")
        place, _, query = rest.partition("?")
        host = place.partition("/")[0]
        user = "" if scheme in _NAMES_BEFORE_HOST else host.rpartition("@")[0]
        pieces = [user, *user.split(":"), query, *(pair.partition("=")[2] for pair in query.split("&"))]
        found += [piece for piece in pieces if piece]
    return [*found, *(unquote(piece) for piece in found)]
