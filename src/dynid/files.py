"""Files written whole or not at all, and values in the types that JSON has."""

from __future__ import annotations

import json
import math
import os
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import InputError


def write_atomically(path: str | os.PathLike[str], write: Callable[[Path], object]) -> Path:
    """Let ``write`` fill a temporary file beside ``path``, then give it its name.

    Readers see the old file or the new one, never a part; a failure leaves what was there. The temporary file is made by
    ``write`` itself, so that its permissions follow the user's mask, and has the suffix of ``path``.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"cannot write '{target}': there is no folder '{target.parent}'")
    if target.is_dir():
        raise InputError(f"cannot write '{target}': it is a folder")
    temporary = target.with_name(f".{target.stem}.{uuid.uuid4().hex}{target.suffix}")
    try:
        write(temporary)
        temporary.replace(target)
    except OSError as error:
        raise InputError(f"cannot write '{target}': {error.strerror or error}") from error
    finally:
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
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{what} '{path.parent}' has no readable {path.name}: {error.strerror or error}") from None
    except ValueError as error:
        raise InputError(f"'{path}' is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise InputError(f"'{path}' holds a {type(value).__name__}, expected a JSON object")
    return value


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
