"""What a refusal must hold: file, joint, numbers, options. Its wording is free."""

from __future__ import annotations

import re


def facts(*words: str) -> str:
    """A pattern for ``pytest.raises(match=...)``: every fact stands in the message, in any order; numbers as whole numbers."""
    return "(?s)" + "".join(f"(?=.*{_pattern(word)})" for word in words)


def _pattern(word: str) -> str:
    if re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", word):
        return rf"(?<![\w.]){re.escape(word)}(?!\d|\.\d)"
    return re.escape(word)
