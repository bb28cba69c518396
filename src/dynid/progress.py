"""Progress of long work: functions report their steps to a callback of the caller."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Tell: TypeAlias = Callable[[str], None]
"""Called with a short text before each step."""


def silent(text: str) -> None:
    """Ignore progress."""
