"""Mutations of files: bytes, lines, words, numbers, and the trees of JSON, TOML and XML. The same random state gives the same file."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable
from typing import Any

ODD_NUMBERS = (
    "0", "-0", "-1", "1e300", "-1e300", "1e-320", "1e999", "nan", "NaN", "inf", "-Infinity", "9" * 400, "9007199254740993",
    "18446744073709551616", "-9223372036854775809", "0x10", "1_0", "1,5", ".", "1e", "1" + "0" * 5000, "4294967295", "1e8",
)  # fmt: skip
ODD_TEXTS = (
    "", " ", "\x00", "\ufeff", "\u202e", "a" * 300, "[/]", "[bold]", "<b>", "'", '"', "\\", "{}", "%s", "${x}", "$(find x)", "../..",
    "/dev/zero", "\n", "é", "\ud7ff", "None", "true", "[1, 2]", "joint1", "base", "__class__", "q1", "9**9**8", "../../etc/passwd",
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 3, 1.5, -0.0, 1e300, -1e300, 1e-320, float("nan"), float("inf"), 10**400, 2**63, 2**64, "", "text", "1",
    "nan", [], {}, [[]], [{}], {"a": 1}, [1, 2], [None], ["a"], [[1.0] * 4] * 4, [[0.0] * 3] * 3, [True], "a" * 300, [1e300] * 6, -7,
)  # fmt: skip
_NUMBER = re.compile(rb"[-+]?\d+\.?\d*(?:[eE][-+]?\d+)?")
_WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*")

Mutator = Callable[[random.Random, bytes], bytes]


def mutate_bytes(rng: random.Random, content: bytes) -> bytes:
    """Bits turned, pieces removed, doubled, exchanged, cut off, and integers of the size of lengths set to their limits."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        if not data:
            return bytes(rng.randrange(256) for _ in range(8))
        at, length = rng.randrange(len(data)), rng.choice((1, 2, 4, 8, 16, 64, 256, 4096))
        choice = rng.randrange(8)
        if choice == 0:
            data[at] ^= 1 << rng.randrange(8)
        elif choice == 1:
            data[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, 0x20, 0x0A, rng.randrange(256)))
        elif choice == 2:
            del data[at : at + length]
        elif choice == 3:
            data[at:at] = data[at : at + length]
        elif choice == 4:
            other = rng.randrange(len(data))
            data[at : at + length] = data[other : other + length]
        elif choice == 5:
            del data[at:]
        elif choice == 6:
            width = rng.choice((2, 4, 8))
            value = rng.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**64 - 1, rng.getrandbits(64)))
            data[at : at + width] = (value % 2 ** (8 * width)).to_bytes(width, "little")
        else:
            data[at:at] = bytes(rng.randrange(256) for _ in range(min(length, 64)))
    return bytes(data)


def mutate_text(rng: random.Random, content: bytes) -> bytes:
    """Numbers and words replaced by odd ones; lines removed, doubled, exchanged, joined."""
    data = content
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        choice = rng.randrange(6)
        if choice in (0, 1):
            data = _replaced(rng, data, _NUMBER, rng.choice(ODD_NUMBERS))
        elif choice == 2:
            data = _replaced(rng, data, _WORD, rng.choice(ODD_TEXTS))
        elif choice == 3:
            data = _replaced(rng, data, _NUMBER if rng.random() < 0.5 else _WORD, rng.choice((*ODD_TEXTS, *ODD_NUMBERS)))
        elif choice == 4:
            data = _lines(rng, data)
        else:
            data = mutate_bytes(rng, data)
    return data


def _replaced(rng: random.Random, data: bytes, pattern: re.Pattern[bytes], text: str) -> bytes:
    start = rng.randrange(len(data) + 1)
    found = pattern.search(data, start) or pattern.search(data)
    return data if found is None else data[: found.start()] + text.encode("utf-8", "replace") + data[found.end() :]


def _lines(rng: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
    choice = rng.randrange(5)
    if choice == 0:
        del lines[i]
    elif choice == 1:
        lines.insert(j, lines[i])
    elif choice == 2:
        lines[i], lines[j] = lines[j], lines[i]
    elif choice == 3:
        del lines[min(i, j) : max(i, j)]
    else:
        lines[i] = lines[i] + rng.choice((b"", b",", b";", b"  ")) + lines[j]
    return b"\n".join(lines)


def mutate_json(rng: random.Random, content: bytes) -> bytes:
    """Values of a JSON tree replaced by others of any type, keys removed, renamed and added, lists cut and doubled."""
    if rng.random() < 0.1:
        return mutate_text(rng, content)
    try:
        tree = json.loads(content)
    except ValueError:
        return mutate_text(rng, content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        tree = mutated_tree(rng, tree)
    return json.dumps(tree).encode("utf-8", "replace")


def mutated_tree(rng: random.Random, tree: Any) -> Any:
    """The tree with one place changed."""
    path: list[tuple[Any, Any]] = []
    place = tree
    while isinstance(place, dict | list) and place and (not path or rng.random() < 0.85):
        key = rng.choice(list(place)) if isinstance(place, dict) else rng.randrange(len(place))
        path.append((place, key))
        place = place[key]
    if not path:
        return copy.deepcopy(rng.choice(ODD_VALUES))
    holder, key = path[-1]
    choice = rng.randrange(8)
    if choice == 0:
        del holder[key]
    elif choice == 1 and isinstance(holder, dict):
        holder[rng.choice(ODD_TEXTS)] = holder.pop(key)
    elif choice == 1:
        holder.append(holder[key])
    elif choice == 2 and isinstance(holder[key], float | int) and not isinstance(holder[key], bool):
        holder[key] = rng.choice((-holder[key], 1_000_000 * holder[key], str(holder[key]), [holder[key]], 10**320, 0))
    elif choice == 3:
        other = path[rng.randrange(len(path))]
        holder[key] = json.loads(json.dumps(other[0][other[1]]))
    elif choice == 4:
        holder[key] = rng.choice(ODD_TEXTS)
    else:
        holder[key] = copy.deepcopy(rng.choice(ODD_VALUES))  # the next change may be inside it
    return tree


_ATTRIBUTE = re.compile(rb'([\w:]+)="([^"]*)"')
_ELEMENT = re.compile(rb"<(\w+)[^<>]*/>")


def mutate_xml(rng: random.Random, content: bytes) -> bytes:
    """Attributes replaced, removed, exchanged; elements doubled, removed, moved and nested."""
    data = content
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        choice = rng.randrange(7)
        attributes = list(_ATTRIBUTE.finditer(data))
        elements = list(_ELEMENT.finditer(data))
        if choice in (0, 1) and attributes:
            one = rng.choice(attributes)
            value = (
                rng.choice((*ODD_NUMBERS, *ODD_TEXTS))
                if rng.random() < 0.6
                else " ".join(rng.choices(ODD_NUMBERS, k=rng.randrange(1, 8)))
            )
            safe = value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;").encode("utf-8", "replace")
            data = data[: one.start(2)] + safe + data[one.end(2) :]
        elif choice == 2 and attributes:
            one, other = rng.choice(attributes), rng.choice(attributes)
            data = data[: one.start(2)] + other[2] + data[one.end(2) :]
        elif choice == 3 and attributes:
            one = rng.choice(attributes)
            data = data[: one.start()] + data[one.end() :]
        elif choice == 4 and elements:
            one = rng.choice(elements)
            data = data[: one.start()] + data[one.end() :]
        elif choice == 5 and elements:
            one, at = rng.choice(elements), rng.choice(elements)
            data = data[: at.start()] + one[0] + data[at.start() :]
        else:
            data = mutate_text(rng, data)
    return data
