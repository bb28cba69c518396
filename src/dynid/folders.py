"""Folders replaced as a whole: a reader sees the old content or the new one, whenever the writer ends.

A change is made in a copy beside the folder (files are linked, not copied), written to the disk, and then exchanged with the folder in one
step of the operating system. Where that step does not exist, or would move a folder that somebody stands in, the finished copy is given the
name of a journal; from then on the change is decided, and the files are moved one by one. A process that ends in between leaves the
journal, and whoever opens the folder next completes it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import glob
import os
import re
import shutil
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dynid.errors import DynidError, InputError
from dynid.files import write_bytes

MOST_ENTRIES = 5000
"""A folder with more files is not exchanged: it is somebody's home, not a run."""
_AT_FDCWD, _EXCHANGE_LINUX, _SWAP_MACOS = -100, 2, 2
_NEW, _JOURNAL, _GONE = ".new", ".journal", ".removed"
_UNIQUE = re.compile(r"\.[0-9a-f]{32}\.new$")
_OWN = re.compile(r"^\.dynid\.(lock|journal|[0-9a-f]{32}\.new)$")
"""Names that only this module makes inside a folder."""
OURS = ("run.json", "exports.json", "dynid.toml")
"""Files that a change may read of a folder that is too large to be linked."""


class BusyFolderError(InputError):
    """Another process is writing into the folder."""


@dataclass
class _Held:
    file: int
    path: Path
    owner: int
    count: int = 1


_HELD: dict[Path, _Held] = {}
_GUARD = threading.Lock()


@contextlib.contextmanager
def only_writer(folder: str | Path) -> Iterator[Path]:
    """Be the only one who writes into the folder; another process that tries meanwhile is refused.

    The lock is the operating system's and ends with its process, so one that was killed leaves nothing to clear. A thread
    that holds the lock may ask for it again.

    Examples:
        >>> with only_writer("run") as place:
        ...     place.name
        'run'
    """
    place = _place(folder)
    held = _HELD.get(place)
    if held is not None and held.owner == threading.get_ident():
        held.count += 1
    else:
        _take(place)
    try:
        yield place
    finally:
        _release(place)


def _place(folder: str | Path) -> Path:
    """The folder itself where the path is a link to it."""
    try:
        return Path(folder).resolve()
    except (OSError, RuntimeError) as error:
        raise InputError(f"folder '{folder}' cannot be found: {error}") from None


def _beside(place: Path, end: str) -> Path:
    return place.parent / f".{place.name}{end}"


def _take(place: Path) -> None:
    path = _lock_path(place)
    while True:
        try:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise InputError(f"cannot write '{place}': {error.strerror or error}") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            text = os.pread(file, 32, 0).decode("ascii", "replace").strip()
            other = f" (process {text})" if text.isdigit() else ""
            os.close(file)
            if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                raise InputError(f"folder '{place}' cannot be locked: {error.strerror or error}") from None
            raise BusyFolderError(
                f"folder '{place}' is being written by another run{other}: wait until it has ended, or name another folder"
            ) from None
        # Whoever held the lock before removes its file; a lock on a file without a name would be nobody's.
        try:
            same = os.path.samestat(os.fstat(file), path.stat())
        except FileNotFoundError:
            same = False
        if same:
            break
        os.close(file)
    with contextlib.suppress(
        OSError
    ):  # the number is for a message alone, and a full disk is told of by what is written next
        os.ftruncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())
    with _GUARD:
        _HELD[place] = _Held(file, path, threading.get_ident())


def _lock_path(place: Path) -> Path:
    """Beside the folder; inside it where its parent cannot be written, as with a mounted folder."""
    if not place.parent.is_dir():
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"cannot write '{place}': folder '{place.parent}' cannot be made: {error.strerror}") from None
    if _can_stage_beside(place):
        return _beside(place, ".lock")
    return place / ".dynid.lock"


def _release(place: Path) -> None:
    with _GUARD:
        held = _HELD[place]
        held.count -= 1
        if held.count:
            return
        del _HELD[place]
    with contextlib.suppress(OSError):  # a disk that can no longer be written has its error told by what was written last
        held.path.unlink(missing_ok=True)  # while it is still locked, so that nobody waits at a name that is gone
    os.close(held.file)


@dataclass(frozen=True)
class Change:
    """A change of a folder that is being made."""

    target: Path
    """The folder as the caller named it."""
    stage: Path
    """Where the new content is written; it has the old content already."""

    def final(self, path: Path) -> Path:
        """The name that a file of the stage will have."""
        return self.target / path.relative_to(self.stage) if path.is_relative_to(self.stage) else path


@contextlib.contextmanager
def changed_folder(folder: str | Path) -> Iterator[Change]:
    """Change a folder as a whole: the content of ``stage`` becomes the folder's when the block ends without an error.

    The stage has the files of the folder, as links: a file is replaced there, never written into.

    Examples:
        >>> with changed_folder("results") as change:
        ...     _ = (change.stage / "answer.txt").write_text("42")
        >>> Path("results/answer.txt").read_text()
        '42'
    """
    target = Path(folder)
    place = _place(target)
    if place.exists() and not place.is_dir():
        raise InputError(f"cannot write into '{target}': it is a file, expected a folder")
    with only_writer(place):
        complete(place)
        # Take away what processes that were killed left beside the folder; nobody else can be writing there now.
        left = place.parent.glob(f".{glob.escape(place.name)}.*{_NEW}")
        for path in [*left, *place.glob(f".dynid.*{_NEW}")]:
            if _UNIQUE.search(path.name):
                shutil.rmtree(path, ignore_errors=True)
        unique = f"{uuid.uuid4().hex}{_NEW}"
        stage = _beside(place, f".{unique}") if _can_stage_beside(place) else place / f".dynid.{unique}"
        try:
            with _said_of(target, stage):
                stage.mkdir()
                before = _link_tree(place, stage) if place.is_dir() else frozenset()
                yield Change(target, stage)
                _flush(stage)
                _commit(place, stage, before)
        finally:
            shutil.rmtree(stage, ignore_errors=True)


@contextlib.contextmanager
def _said_of(target: Path, stage: Path) -> Iterator[None]:
    """Errors in the words of the folder, not of the stage that nobody asked for."""
    try:
        yield
    except DynidError as error:
        error.args = tuple(one.replace(str(stage), str(target)) if isinstance(one, str) else one for one in error.args)
        raise
    except OSError as error:
        name = str(error.filename or target).replace(str(stage), str(target))
        raise InputError(f"cannot write '{name}': {error.strerror or error}") from error


def complete(folder: str | Path) -> None:
    """Finish a change that was decided but whose process ended before all files had been moved."""
    place = _place(folder)
    for journal in (_beside(place, _JOURNAL), place / f".dynid{_JOURNAL}"):
        if journal.is_dir():
            with only_writer(place):
                if journal.is_dir():
                    _replay(place, journal)


def _can_stage_beside(place: Path) -> bool:
    parent = place.parent
    if not os.access(parent, os.W_OK | os.X_OK):
        return False
    return not place.is_dir() or (place.stat().st_dev == parent.stat().st_dev and not place.is_mount())


def _link_tree(place: Path, stage: Path) -> frozenset[str]:
    """The content of the folder as links; the names that were linked. Of a very large folder, or one with devices, only what is ours."""
    names = []
    for root, folders, files in os.walk(place):
        folders[:] = [name for name in folders if not _UNIQUE.search(name) and name != f".dynid{_JOURNAL}"]
        here = Path(root)
        links = [name for name in folders if (here / name).is_symlink()]
        names += [str((here / name).relative_to(place)) for name in (*files, *links) if name != ".dynid.lock"]
        special = any(not (here / name).is_file() and not (here / name).is_symlink() for name in files)  # devices, pipes
        if len(names) > MOST_ENTRIES or special:
            names = [name for name in OURS if (place / name).is_file()]
            break
        for name in folders:
            if name not in links:
                made = stage / here.relative_to(place) / name
                made.mkdir(parents=True, exist_ok=True)
                shutil.copystat(here / name, made)
    for name in names:
        _link(place / name, stage / name)
    shutil.copystat(place, stage)
    return frozenset(names)


def _link(source: Path, copy: Path) -> None:
    """A second name of a file; the same link again of a link."""
    if source.is_symlink():
        copy.symlink_to(source.readlink())
        return
    try:
        os.link(source, copy)
    except OSError:  # a file system without links, or a file of somebody else
        shutil.copy2(source, copy)


def _flush(stage: Path) -> None:
    """Everything on the disk before it gets its name."""
    for root, _, files in os.walk(stage):
        for name in files:
            path = Path(root) / name
            if not path.is_symlink() and path.stat().st_nlink == 1:
                sync(path)
        sync(Path(root))


def sync(path: Path) -> None:
    """Ask the system to bring a file, or the names in a folder, to disk."""
    try:
        file = os.open(path, os.O_RDONLY)
    except PermissionError:  # somebody's own file that only its owner reads
        return
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EROFS, errno.ENOTSUP):  # what some file systems answer for a folder
            raise
    finally:
        os.close(file)


def _commit(place: Path, stage: Path, before: frozenset[str]) -> None:
    """Give the new content the name of the folder."""
    if not place.exists():
        _rename(stage, place)
        sync(place.parent)
        return
    if stage.parent == place.parent and _may_move(place, before) and _exchange(stage, place):
        sync(place.parent)
        # Files that somebody put into the old folder while the new one was made.
        for root, _, files in os.walk(stage):
            for name in files:
                path = Path(root) / name
                relative = path.relative_to(stage)
                if str(relative) not in before and not os.path.lexists(place / relative) and not _OWN.search(name):
                    (place / relative).parent.mkdir(parents=True, exist_ok=True)
                    _rename(path, place / relative)
        return
    gone = sorted(name for name in before if not os.path.lexists(stage / name))
    write_bytes(stage / _GONE, "\0".join(gone).encode())
    sync(stage / _GONE)
    journal = _beside(place, _JOURNAL) if stage.parent == place.parent else place / f".dynid{_JOURNAL}"
    _rename(stage, journal)
    sync(journal.parent)
    _replay(place, journal)


def _may_move(place: Path, before: frozenset[str]) -> bool:
    """Whether the folder may be exchanged: all of it is in the stage, and this process does not stand in it."""
    try:
        here = Path.cwd()
    except OSError:
        return False
    whole = all(path.name in before or path.is_dir() or _OWN.search(path.name) for path in place.iterdir())
    return whole and not here.is_relative_to(place)


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names in one step; False where this system cannot."""
    library = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    if sys.platform == "darwin" and hasattr(library, "renamex_np"):
        done = library.renamex_np(first, second, ctypes.c_uint(_SWAP_MACOS))
    elif hasattr(library, "renameat2"):
        done = library.renameat2(_AT_FDCWD, first, _AT_FDCWD, second, ctypes.c_uint(_EXCHANGE_LINUX))
    else:
        return False
    return bool(done == 0)


def _replay(place: Path, journal: Path) -> None:
    """Move the files of a decided change to their places; doing it twice does no harm."""
    for root, _, files in os.walk(journal):
        for name in files:
            source = Path(root) / name
            relative = source.relative_to(journal)
            if str(relative) == _GONE:
                continue
            goal = _inside(place, str(relative))
            if not source.is_symlink() and goal.exists() and source.samefile(goal):
                continue
            goal.parent.mkdir(parents=True, exist_ok=True)
            _rename(source, goal)
    record = journal / _GONE
    for name in record.read_bytes().decode().split("\0") if record.is_file() else ():
        if name:
            _inside(place, name).unlink(missing_ok=True)
    for root, _, _ in os.walk(place):
        sync(Path(root))
    shutil.rmtree(journal)


def _inside(place: Path, name: str) -> Path:
    """A file of the folder; a journal that came with a folder from elsewhere may name others, by ``..`` or through a link."""
    goal = place / name
    if goal.name in ("", "..") or not goal.parent.resolve().is_relative_to(place):
        raise InputError(
            f"folder '{place}' has a journal that would change '{goal}', which is not in it; remove the folder that ends in {_JOURNAL}"
        )
    return goal


def _rename(source: Path, goal: Path) -> None:
    """The one place where a name changes."""
    source.replace(goal)
