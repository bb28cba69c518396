"""Errors of other libraries as one sentence of ours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dynid.errors import DynidError, InputError


@contextmanager
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
