"""Kinds of options: what a value may be, and how it is read from and written to the command line and run files.

An option is one dataclass field whose metadata holds its kind. Flags, run-file templates, stored settings and the command
that repeats a run all follow from it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from dynid.engine import engine_from
from dynid.errors import InputError, UnknownNameError


@dataclass(frozen=True)
class Kind:
    """What an option takes; each kind reads text of the command line and checks values of run files and Python."""

    metavar: str = ""

    def parse(self, text: Any, flag: str) -> Any:
        """The value of a flag."""
        return text

    def gives(self, text: Any, name: str) -> str:
        """The option that a text on the command line gives: that of the flag, ``name``, or another one that shares it."""
        return name

    def check(self, value: Any, name: str) -> Any:
        """The value, made plain; refused in one sentence where it is no such value. None passes where None is the default."""
        return value

    def words(self, flag: str, value: Any) -> list[str]:
        """The words of a command line that give this value."""
        text = self.text(value)
        return [f"{flag}={text}"] if text.startswith("-") else [flag, text]

    def text(self, value: Any) -> str:
        """The value as a flag takes it."""
        return str(value)

    def toml(self, value: Any) -> str:
        """The value as a run file has it."""
        return json.dumps(value, ensure_ascii=False)

    @property
    def repeated(self) -> bool:
        """Whether the flag may be given several times."""
        return False

    def needs_file(self, value: Any) -> bool:
        """Whether only a run file can give this value, no flag."""
        return False


def refusal(name: str, value: Any, expected: str) -> InputError:
    """The sentence for a value that an option cannot have."""
    return InputError(f"setting '{name}' is {value!r}, expected {expected}")


def is_number(value: object) -> bool:
    """Whether a value is a finite number, and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def number_of(text: str, flag: str, expected: str) -> float:
    """A number on the command line."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{flag} is '{text}', expected {expected}") from None


@dataclass(frozen=True)
class Text(Kind):
    """Any text."""

    def check(self, value: Any, name: str) -> Any:
        if not isinstance(value, str):
            raise refusal(name, value, "text")
        return value


@dataclass(frozen=True)
class EngineName(Text):
    """Where work runs, in words that :func:`~dynid.engine.engine_from` knows."""

    def check(self, value: Any, name: str) -> Any:
        engine_from(super().check(value, name))
        return value


@dataclass(frozen=True)
class File(Text):
    """The path of a file or folder; in a run file it is relative to that file."""

    def parse(self, text: Any, flag: str) -> Any:
        return str(text)

    def check(self, value: Any, name: str) -> Any:
        return super().check(str(value) if isinstance(value, Path) else value, name)

    def is_path(self, value: Any) -> bool:
        """Whether this value is a path, not one of the words or numbers that the option takes as well."""
        return True


@dataclass(frozen=True)
class NumberOrPath(File):
    """A number or a word as text, or the path of a file."""

    words_taken: tuple[str, ...] = ()

    def check(self, value: Any, name: str) -> Any:
        return super().check(repr(float(value)) if is_number(value) else value, name)

    def is_path(self, value: Any) -> bool:
        try:
            float(value)
        except (TypeError, ValueError):
            return value not in self.words_taken
        return False


@dataclass(frozen=True)
class Choice(Text):
    """One of some names; ``where`` is ``module:ATTRIBUTE`` of names that other rooms know."""

    names: tuple[str, ...] = ()
    where: str = ""
    what: str = "choice"

    def check(self, value: Any, name: str) -> Any:
        text = super().check(value, name)
        known = self.known()
        if text not in known:
            raise UnknownNameError(self.what, text, known)
        return text

    def known(self) -> tuple[str, ...]:
        """The names at this moment: registries may have grown."""
        if not self.where:
            return self.names
        module, attribute = self.where.split(":")
        found = getattr(import_module(module), attribute)
        return tuple(found() if callable(found) else found)


@dataclass(frozen=True)
class Number(Kind):
    """A finite number between limits; ``words_taken`` are words that stand for a number found from the data."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    words_taken: tuple[str, ...] = ()
    unit: str = ""

    def parse(self, text: Any, flag: str) -> Any:
        plain = str(text).strip()
        return plain if plain in self.words_taken else number_of(plain, flag, self.expected)

    def check(self, value: Any, name: str) -> Any:
        if value in self.words_taken:
            return value
        if not is_number(value):
            raise refusal(name, value, self.expected)
        below = value <= self.low if self.open_low else value < self.low
        above = value >= self.high if self.open_high else value > self.high
        if below or above:
            raise refusal(name, value, self.expected)
        return value

    @property
    def expected(self) -> str:
        """What the option takes, in words."""
        if self.low > -math.inf and self.high < math.inf:
            between = f"a number between {self.low:g} and {self.high:g}"
        elif self.low == 0.0:
            between = "a positive number" if self.open_low else "zero or a positive number"
        elif self.low > -math.inf:
            between = f"a number of at least {self.low:g}"
        else:
            between = "a number"
        words = "".join(f" or '{word}'" for word in self.words_taken)
        return f"{between}{f' of {self.unit}' if self.unit else ''}{words}"

    def text(self, value: Any) -> str:
        return value if isinstance(value, str) else repr(value)


@dataclass(frozen=True)
class NumberOrFile(Number):
    """A number, or a path: then the flag gives the option ``file_option`` instead."""

    file_option: str = ""

    def gives(self, text: Any, name: str) -> str:
        return name if _is_numeric(text) else self.file_option

    def parse(self, text: Any, flag: str) -> Any:
        return super().parse(text, flag) if _is_numeric(text) else str(text)


def _is_numeric(text: Any) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True)
class Whole(Number):
    """A whole number between limits."""

    def parse(self, text: Any, flag: str) -> Any:
        number = super().parse(text, flag)
        if isinstance(number, str):
            return number
        if number != int(number):
            raise InputError(f"{flag} is '{text}', expected a whole number")
        return int(number)

    def check(self, value: Any, name: str) -> Any:
        if value not in self.words_taken and (not isinstance(value, int) or isinstance(value, bool)):
            raise refusal(name, value, self.expected)
        return super().check(value, name)

    @property
    def expected(self) -> str:
        return super().expected.replace("a number", "a whole number").replace("a positive number", "a positive whole number")


@dataclass(frozen=True)
class Numbers(Kind):
    """Numbers separated by commas, ``count`` of them where that is fixed."""

    count: int | None = None

    def parse(self, text: Any, flag: str) -> Any:
        values = tuple(number_of(part, flag, "numbers separated by commas") for part in str(text).split(","))
        if self.count not in (None, len(values)):
            raise InputError(f"{flag} has {len(values)} numbers ('{text}'), expected {self.count}: {self.metavar.lower()}")
        return values

    def check(self, value: Any, name: str) -> Any:
        good = isinstance(value, tuple | list) and all(map(is_number, value)) and self.count in (None, len(value))
        if not good:
            raise refusal(name, value, f"{self.count} numbers" if self.count else "a list of numbers")
        return tuple(float(number) for number in value)

    def text(self, value: Any) -> str:
        return ",".join(repr(number) for number in value)

    def toml(self, value: Any) -> str:
        return json.dumps(list(value))


@dataclass(frozen=True)
class Names(Kind):
    """Names separated by commas; the word ``none`` for no name at all."""

    def parse(self, text: Any, flag: str) -> Any:
        return () if str(text).strip() == "none" else tuple(part.strip() for part in str(text).split(","))

    def check(self, value: Any, name: str) -> Any:
        if isinstance(value, str):
            value = self.parse(value, name)
        if not isinstance(value, tuple | list) or not all(isinstance(part, str) for part in value):
            raise refusal(name, value, "a list of names")
        return tuple(value)

    def text(self, value: Any) -> str:
        return ",".join(value) or "none"

    def toml(self, value: Any) -> str:
        return json.dumps(list(value), ensure_ascii=False)


@dataclass(frozen=True)
class Terms(Kind):
    """Texts such as ``6:5=1``, the flag once for each."""

    form: str = ""
    """What each looks like, in messages."""

    @property
    def repeated(self) -> bool:
        return True

    def parse(self, text: Any, flag: str) -> Any:
        return tuple(str(item).strip() for item in text)

    def check(self, value: Any, name: str) -> Any:
        listed = (value,) if isinstance(value, str) else value
        if not isinstance(listed, tuple | list) or not all(isinstance(part, str) and "=" in part for part in listed):
            raise refusal(name, value, f"texts such as '{self.form}'")
        return tuple(listed)

    def words(self, flag: str, value: Any) -> list[str]:
        return [word for term in value for word in (flag, term)]

    def text(self, value: Any) -> str:
        return ", ".join(value) or "none"

    def toml(self, value: Any) -> str:
        return json.dumps(list(value), ensure_ascii=False)


@dataclass(frozen=True)
class Springs(Kind):
    """Springs of joints: ``JOINT=KIND`` on the command line, tables ``[[spring]]`` in a run file."""

    @property
    def repeated(self) -> bool:
        return True

    def parse(self, text: Any, flag: str) -> Any:
        found = []
        for item in text:
            joint, _, kind = str(item).partition("=")
            if not joint.strip() or not kind.strip():
                raise InputError(f"{flag} is '{item}', expected JOINT=KIND such as 2=linear")
            found.append({"joint": joint.strip(), "kind": kind.strip()})
        return tuple(found)

    def check(self, value: Any, name: str) -> Any:
        if not isinstance(value, tuple | list) or not all(isinstance(entry, Mapping) for entry in value):
            raise refusal(name, value, f"tables [[{name}]]")
        return tuple(dict(entry) for entry in value)

    def words(self, flag: str, value: Any) -> list[str]:
        if self.needs_file(value):
            return []
        return [word for entry in value for word in (flag, f"{entry['joint']}={entry['kind']}")]

    def needs_file(self, value: Any) -> bool:
        return any(set(entry) != {"joint", "kind"} for entry in value)

    def text(self, value: Any) -> str:
        return json.dumps(value, default=str) if value else "none"

    def toml(self, value: Any) -> str:
        return toml_value(value)


@dataclass(frozen=True)
class Positions(Kind):
    """``joint=value`` pairs, the flag once for each."""

    @property
    def repeated(self) -> bool:
        return True

    def parse(self, text: Any, flag: str) -> Any:
        found: dict[str, float] = {}
        for item in text:
            name, _, value = str(item).partition("=")
            found[name.strip()] = number_of(value, flag, "joint=value, the value a number in rad or m")
        return found

    def check(self, value: Any, name: str) -> Any:
        good = isinstance(value, Mapping) and all(map(is_number, value.values()))
        if not good or not all(isinstance(joint, str) for joint in value):
            raise refusal(name, value, "a table of joints and positions")
        return dict(value)

    def words(self, flag: str, value: Any) -> list[str]:
        return [word for joint, position in value.items() for word in (flag, f"{joint}={position!r}")]

    def text(self, value: Any) -> str:
        return ", ".join(f"{joint} = {position:g}" for joint, position in value.items()) or "none"

    def toml(self, value: Any) -> str:
        entries = ", ".join(f"{json.dumps(joint, ensure_ascii=False)} = {position!r}" for joint, position in value.items())
        return f"{{ {entries} }}" if entries else "{}"


@dataclass(frozen=True)
class Switch(Kind):
    """On or off; ``off`` is one more flag that switches it off."""

    off: str = ""

    def check(self, value: Any, name: str) -> Any:
        if not isinstance(value, bool):
            raise refusal(name, value, "true or false")
        return value

    def words(self, flag: str, value: Any) -> list[str]:
        return [flag if value else f"--no-{flag[2:]}"]

    def text(self, value: Any) -> str:
        return "yes" if value else "no"


@dataclass(frozen=True)
class Table(Kind):
    """A table that only a run file or Python can give; ``form`` checks it."""

    form: Callable[[Any], Any] | None = None
    many: bool = False
    """Whether it is a list of tables, ``[[name]]``."""

    def needs_file(self, value: Any) -> bool:
        return True

    def check(self, value: Any, name: str) -> Any:
        if self.many:
            if not isinstance(value, tuple | list) or not all(isinstance(entry, Mapping) for entry in value):
                raise refusal(name, value, f"tables [[{name}]]")
            return tuple(dict(entry) for entry in value)
        if not isinstance(value, Mapping):
            raise refusal(name, value, "a table")
        return dict(value)

    def text(self, value: Any) -> str:
        return json.dumps(value, default=str) if value else "none"

    def toml(self, value: Any) -> str:
        return toml_value(value)


def toml_value(value: Any) -> str:
    """A plain value as TOML writes it in one line, tables inside it too."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(key)} = {toml_value(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(toml_value(entry) for entry in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0.0 else "-inf")
    return json.dumps(value, ensure_ascii=False)
