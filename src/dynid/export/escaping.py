"""Text inside XML, as ``xml.sax.saxutils`` writes it, whose import loads a client for the internet."""

from __future__ import annotations

from collections.abc import Mapping

_WHITE = {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


def escape(text: str, others: Mapping[str, str] = {}) -> str:
    """The text with ``&``, ``<``, ``>`` and others replaced."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), *others.items()):
        text = text.replace(character, entity)
    return text


def quoteattr(text: str) -> str:
    """The text as the value of an attribute, in quotes."""
    escaped = escape(text, _WHITE)
    if '"' not in escaped:
        return f'"{escaped}"'
    if "'" not in escaped:
        return f"'{escaped}'"
    return '"' + escaped.replace('"', "&quot;") + '"'
