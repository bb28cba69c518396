"""The manifest of a run, ``run.json``: format version, the hash of every file of the run, and a hash over the record itself."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dynid.errors import InputError
from dynid.files import plain, read_json, read_limited, write_json

FORMAT = 4
RECORD = "run.json"
MOST_BYTES = 2**30


class ChangedFileError(InputError):
    """A file of a run is not the one that the run wrote."""


def sealed(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record with its own hash, by which a change of it is seen."""
    content = {name: value for name, value in plain(record).items() if name != "seal"}
    return content | {"seal": _seal(content)}


def _seal(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def hash_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_record(folder: Path, record: Mapping[str, Any], files: Iterable[str]) -> None:
    """Write ``run.json`` with the hashes of these files; it is written last, because it vouches for the others."""
    hashes = {name: hash_of(folder / name) for name in sorted(set(files)) if (folder / name).is_file()}
    write_json(folder / RECORD, sealed({**record, "files": hashes}))


def add_files(folder: Path, files: Iterable[str]) -> None:
    """Enter files that were written into the folder of a run later; other folders have no record."""
    if is_run(folder):
        record = read_record(folder)
        kept = {name: digest for name, digest in record["files"].items() if (folder / name).is_file()}
        new = {name: hash_of(folder / name) for name in files}
        write_json(folder / RECORD, sealed({**record, "files": dict(sorted((kept | new).items()))}))


def is_run(folder: Path) -> bool:
    """Whether the folder has a record of a run."""
    return (folder / RECORD).is_file()


def read_record(folder: Path) -> dict[str, Any]:
    """The record of a run: of a format that this version reads, and as it was written."""
    path = folder / RECORD
    record = read_json(path, "run")
    found = record.get("format")
    if found != FORMAT or isinstance(found, bool):
        raise InputError(
            f"run '{folder}' has format {str(found)[:20]}, expected {FORMAT}: another version of dynid wrote it; identify again"
        )
    if record.get("seal") != _seal({name: value for name, value in record.items() if name != "seal"}):
        raise ChangedFileError(
            f"'{path}' was changed after it was written: its hash is not the one it states; identify again"
        )
    files = record.get("files")
    if not isinstance(files, dict) or not all(
        isinstance(digest, str) and _is_inside(name) for name, digest in files.items()
    ):
        raise InputError(f"run '{folder}' is damaged: 'files' of {RECORD} is no table of files and hashes")
    return record


def _is_inside(name: str) -> bool:
    path = Path(name)
    return bool(name) and "\0" not in name and not path.is_absolute() and ".." not in path.parts


def read_file(folder: Path, record: Mapping[str, Any], name: str) -> bytes:
    """The content of a file of a run, which is the one that the run wrote."""
    path = folder / name
    if name not in record["files"]:
        raise InputError(f"run '{folder}' is damaged: {RECORD} has no hash of {name}")
    content = read_limited(path, f"{name} of run '{folder}'", MOST_BYTES)
    if hashlib.sha256(content).hexdigest() != record["files"][name]:
        raise ChangedFileError(
            f"'{path}' was changed after the run was written: its hash is not the one in {RECORD}; identify again"
        )
    return content


def changed_files(folder: Path, record: Mapping[str, Any]) -> tuple[str, ...]:
    """Files of a run that are gone or are not what the run wrote."""
    return tuple(
        name for name, digest in record["files"].items() if not (folder / name).is_file() or hash_of(folder / name) != digest
    )


def name_changed_files(folder: Path, record: Mapping[str, Any]) -> None:
    """Say which files beside the numbers were changed: a report or a model that somebody edited is no longer the run's."""
    for name in changed_files(folder, record):
        what = "was changed after the run was written" if (folder / name).is_file() else "is missing"
        logging.getLogger("dynid").warning("'%s' %s", folder / name, what)


def claim(folder: Path) -> None:
    """Refuse to make a run of a folder that holds something else."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError(f"cannot write the run '{folder}': it is a file, expected a folder")
    if is_run(folder):
        return
    try:
        other = sorted(path.name for path in folder.iterdir() if not path.name.startswith(".dynid."))
    except OSError as error:
        raise InputError(f"folder '{folder}' cannot be read: {error.strerror or error}") from None
    if other:
        listed = ", ".join(other[:3]) + (", ..." if len(other) > 3 else "")
        raise InputError(
            f"folder '{folder}' holds other files ({listed}) and is no run: name a new or an empty folder with -o"
        )


def clear_run(folder: Path) -> None:
    """Take away the files of an earlier run; those that were changed since are the user's own and stay."""
    if is_run(folder):
        try:
            hashes = read_record(folder)["files"]
        except InputError:  # of another version, or damaged: nothing is known of its files
            hashes = {}
        for name, digest in hashes.items():
            path = folder / name
            if path.is_file() and hash_of(path) == digest:
                path.unlink()
        (folder / RECORD).unlink()
