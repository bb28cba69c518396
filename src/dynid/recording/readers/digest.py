"""The hash by which a log is recognised."""

from __future__ import annotations

import hashlib
from pathlib import Path

from dynid.recording.readers.foreign import foreign_errors


def sha256_of(path: Path) -> str:
    """SHA-256 of a file, read in blocks, or of the files of a folder in order of their names."""
    with foreign_errors(str(path), "cannot be read"):
        if path.is_dir():
            digest = hashlib.sha256()
            for file in sorted(entry for entry in path.iterdir() if entry.is_file()):
                digest.update(file.name.encode() + bytes.fromhex(sha256_of(file)))
            return digest.hexdigest()
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
