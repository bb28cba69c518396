"""The bytes of a robot description, and what is remembered about where they came from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from dynid.errors import InputError
from dynid.robot.model import Source

LARGEST_FILE_BYTES = 64 * 2**20
"""No description of a robot is longer; a larger file is a mistake or an attack."""


@dataclass(frozen=True)
class Description:
    """The content of one description file, read once."""

    path: Path
    content: bytes

    def source(self, format: str, notes: tuple[str, ...] = ()) -> Source:
        """What a robot made from this file remembers of it."""
        return Source(str(self.path), format, hashlib.sha256(self.content).hexdigest(), notes)

    @property
    def text(self) -> str:
        """The content as UTF-8 text."""
        try:
            return self.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"robot file '{self.path}' is not UTF-8 text: byte {error.start} cannot be decoded") from None


def read_description(path: str | PathLike[str]) -> Description:
    """The file's content, or the sentence that says why it cannot be had."""
    file = Path(path)
    if not file.exists():
        raise InputError(f"robot file '{file}' does not exist")
    if not file.is_file():
        raise InputError(f"robot file '{file}' is not a file")
    try:
        size = file.stat().st_size
        if size > LARGEST_FILE_BYTES:
            raise InputError(f"robot file '{file}' has {size} bytes, a description has at most {LARGEST_FILE_BYTES}")
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"robot file '{file}' cannot be read: {error.strerror}") from None
    if not content.strip():
        raise InputError(f"robot file '{file}' is empty")
    return Description(file, content)
