"""Long work says what it is at; whoever asked for it decides where that is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

Tell: TypeAlias = Callable[[str], None]
"""Hears what is being done, in a few words."""


def silent(text: str) -> None:
    """Nobody listens."""
