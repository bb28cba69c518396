"""How one option is written: a dataclass field that knows its flag, its meaning, its group and its kind.

A kind says what a value may be, and reads and writes it on the command line and in run files. Flags with their help, run-file
templates, stored settings and the command that repeats a run all follow from the field.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Any

from dynid.errors import InputError, UnknownNameError

TRUST_XACRO = "DYNID_TRUST_XACRO"
"""The variable that says that the package xacro may run the expressions of files; processes that are started inherit it."""
DEFAULT_EFFECTS = ("viscous", "coulomb", "offset", "armature")
"""Effects of every moving joint, where none are chosen."""


class Kind:
    """What an option takes; each kind reads text of the command line and checks values of run files and Python."""

    metavar: str

    def parse(self, text: Any, flag: str) -> Any:
        """The value of a flag."""
        return text

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
        return toml_value(value)

    @property
    def repeated(self) -> bool:
        """Whether the flag may be given several times."""
        return False

    def is_path(self, value: Any) -> bool:
        """Whether a value is the path of a file, which a run file has relative to itself."""
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
    """Text: any, one of some names, or a path.

    Args:
        metavar: what stands for it in the help.
        choices: the names that it may be.
        known_in: ``module:ATTRIBUTE`` of such names that another room knows, or that may grow.
        what: what these names are, in messages.
        valid: refuses what is no such text.
        path: whether it is the path of a file or folder.
        or_number: whether it may also be a number, or ``auto``, in place of a path.
    """

    metavar: str = ""
    choices: tuple[str, ...] = ()
    known_in: str = ""
    what: str = "choice"
    valid: Callable[[str], Any] | None = None
    path: bool = False
    or_number: bool = False

    def check(self, value: Any, name: str) -> Any:
        if self.path and isinstance(value, Path):
            value = str(value)
        if self.or_number and is_number(value):
            value = repr(float(value))
        if not isinstance(value, str):
            raise refusal(name, value, "text")
        known = self.known()
        if known and value not in known:
            raise UnknownNameError(self.what, value, known)
        if self.valid is not None:
            self.valid(value)
        return value

    def known(self) -> tuple[str, ...]:
        """The names at this moment: registries may have grown."""
        if not self.known_in:
            return self.choices
        module, attribute = self.known_in.split(":")
        found = getattr(import_module(module), attribute)
        return tuple(found() if callable(found) else found)

    def is_path(self, value: Any) -> bool:
        if not (self.path and self.or_number):
            return self.path
        try:
            float(value)
        except (TypeError, ValueError):
            return bool(value != "auto")
        return False


@dataclass(frozen=True)
class Number(Kind):
    """A finite number between limits, a ``whole`` one; ``words_taken`` are words that stand for a number found from the data."""

    metavar: str = ""
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    open_high: bool = False
    words_taken: tuple[str, ...] = ()
    unit: str = ""
    whole: bool = False

    def parse(self, text: Any, flag: str) -> Any:
        plain = str(text).strip()
        if plain in self.words_taken:
            return plain
        number = number_of(plain, flag, self.expected)
        if not self.whole:
            return number
        if number != int(number):
            raise InputError(f"{flag} is '{text}', expected a whole number")
        return int(number)

    def check(self, value: Any, name: str) -> Any:
        if value in self.words_taken:
            return value
        if not is_number(value) or (self.whole and not isinstance(value, int)):
            raise refusal(name, value, self.expected)
        below = value <= self.low if self.open_low else value < self.low
        above = value >= self.high if self.open_high else value > self.high
        if below or above:
            raise refusal(name, value, self.expected)
        return value

    @property
    def expected(self) -> str:
        """What the option takes, in words."""
        whole = "whole " if self.whole else ""
        if self.low > -math.inf and self.high < math.inf:
            between = f"a {whole}number between {self.low:g} and {self.high:g}"
        elif self.low == 0.0:
            between = f"a positive {whole}number" if self.open_low else f"zero or a positive {whole}number"
        elif self.low > -math.inf:
            between = f"a {whole}number of at least {self.low:g}"
        else:
            between = f"a {whole}number"
        words = "".join(f" or '{word}'" for word in self.words_taken)
        return f"{between}{f' of {self.unit}' if self.unit else ''}{words}"

    def text(self, value: Any) -> str:
        return value if isinstance(value, str) else repr(value)


@dataclass(frozen=True)
class Numbers(Kind):
    """Numbers in a list, or in lists of a list.

    Args:
        metavar: what stands for them in the help.
        count: of one list, where that is fixed.
        separators: between numbers; of lists of a list that between lists before it.
        low: the least that they may be.
        words_taken: words in their place.
        written: how they are written on the command line, in messages.
        expected: what they are, in messages.
    """

    metavar: str = ""
    count: int | None = None
    separators: str = ","
    low: float = -math.inf
    words_taken: tuple[str, ...] = ()
    written: str = "numbers separated by commas"
    expected: str = ""

    def parse(self, text: Any, flag: str) -> Any:
        if str(text).strip() in self.words_taken:
            return str(text).strip()
        between, inner = self.separators[:-1], self.separators[-1]
        parts = str(text).split(between) if between else [str(text)]
        found = tuple(tuple(number_of(one, flag, self.written) for one in part.split(inner)) for part in parts)
        if any(self.count not in (None, len(values)) for values in found):
            if between:
                raise InputError(f"{flag} is '{text}', expected {self.written}")
            raise InputError(f"{flag} has {len(found[0])} numbers ('{text}'), expected {self.count}: {self.metavar.lower()}")
        return found if between else found[0]

    def check(self, value: Any, name: str) -> Any:
        if isinstance(value, str) and value in self.words_taken:
            return value
        nested, found = len(self.separators) > 1, value
        if nested and self.count is None:  # one number for all, or one list for all
            found = (found,) if is_number(found) else found
            found = (found,) if isinstance(found, tuple | list) and all(map(is_number, found)) and found else found
        lists = found if nested else (found,)
        if not (isinstance(lists, tuple | list) and lists and all(map(self._fits, lists))):
            raise refusal(name, value, self.expected or (f"{self.count} numbers" if self.count else "a list of numbers"))
        plain = tuple(tuple(float(number) for number in values) for values in lists)
        return plain if nested else plain[0]

    def _fits(self, values: Any) -> bool:
        if not isinstance(values, tuple | list) or self.count not in (None, len(values)):
            return False
        return all(is_number(number) and number >= self.low for number in values) and bool(values or self.separators == ",")

    def text(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        between, inner = self.separators[:-1], self.separators[-1]
        parts = [inner.join(map(repr, values)) for values in (value if between else (value,))]
        return between.join(parts)


@dataclass(frozen=True)
class Names(Kind):
    """Names separated by commas, the word ``none`` for no name at all; with a ``form``, ``6:5=1`` or ``NAME``, the flag once for each."""

    metavar: str = ""
    form: str = ""

    @property
    def repeated(self) -> bool:
        return bool(self.form)

    def parse(self, text: Any, flag: str) -> Any:
        if self.form:
            return tuple(str(item).strip() for item in text)
        return () if str(text).strip() == "none" else tuple(part.strip() for part in str(text).split(","))

    def check(self, value: Any, name: str) -> Any:
        if isinstance(value, str):
            value = (value,) if self.form else self.parse(value, name)
        listed = isinstance(value, tuple | list) and all(isinstance(part, str) for part in value)
        if not listed or ("=" in self.form and not all("=" in part for part in value)):
            raise refusal(name, value, f"texts such as '{self.form}'" if self.form else "a list of names")
        return tuple(value)

    def words(self, flag: str, value: Any) -> list[str]:
        return [word for term in value for word in (flag, term)] if self.form else super().words(flag, value)

    def text(self, value: Any) -> str:
        return (", " if self.form else ",").join(value) or "none"


@dataclass(frozen=True)
class Switch(Kind):
    """On or off; ``off`` is one more flag that switches it off."""

    metavar: str = ""
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
    """A table, or with ``many`` a list of tables, ``[[name]]``; only a run file or Python can give it, unless it has a metavar.

    With one it is a table of joints and numbers, ``JOINT=VALUE``, or tables of a joint and a kind, ``JOINT=KIND``, a flag for each.
    """

    metavar: str = ""
    many: bool = False

    @property
    def repeated(self) -> bool:
        return True

    def parse(self, text: Any, flag: str) -> Any:
        pairs = [(item, *(part.strip() for part in str(item).partition("=")[::2])) for item in text]
        if not self.many:
            expected = "joint=value, the value a number in rad or m"
            return {joint: number_of(value, flag, expected) for _, joint, value in pairs}
        for item, joint, kind in pairs:
            if not joint or not kind:
                raise InputError(f"{flag} is '{item}', expected JOINT=KIND such as 2=linear")
        return tuple({"joint": joint, "kind": kind} for _, joint, kind in pairs)

    def check(self, value: Any, name: str) -> Any:
        if self.many:
            if not isinstance(value, tuple | list) or not all(isinstance(entry, Mapping) for entry in value):
                raise refusal(name, value, f"tables [[{name}]]")
            return tuple(dict(entry) for entry in value)
        if not isinstance(value, Mapping):
            raise refusal(name, value, "a table of joints and positions" if self.metavar else "a table")
        if self.metavar and not all(isinstance(key, str) and is_number(number) for key, number in value.items()):
            raise refusal(name, value, "a table of joints and positions")
        return dict(value)

    def words(self, flag: str, value: Any) -> list[str]:
        if self.needs_file(value):
            return []
        pairs = (
            [(one["joint"], one["kind"]) for one in value] if self.many else [(joint, repr(x)) for joint, x in value.items()]
        )
        return [word for joint, given in pairs for word in (flag, f"{joint}={given}")]

    def needs_file(self, value: Any) -> bool:
        return not self.metavar or (self.many and any(set(entry) != {"joint", "kind"} for entry in value))

    def text(self, value: Any) -> str:
        if self.metavar and not self.many:
            return ", ".join(f"{joint} = {position:g}" for joint, position in value.items()) or "none"
        return json.dumps(value, default=str) if value else "none"


def toml_value(value: Any) -> str:
    """A plain value as TOML writes it in one line, tables inside it too."""
    if isinstance(value, Mapping):
        entries = ", ".join(f"{json.dumps(key, ensure_ascii=False)} = {toml_value(entry)}" for key, entry in value.items())
        return f"{{ {entries} }}" if entries else "{}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(toml_value(entry) for entry in value) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0.0 else "-inf")
    return json.dumps(value, ensure_ascii=False)


def option(
    default: Any,
    help: str,
    kind: Kind,
    *,
    flag: str = "",
    also: tuple[str, ...] = (),
    example: Any = None,
    group: str = "",
    only_for: tuple[str, ...] = (),
) -> Any:
    """One option: a dataclass field that knows its flag, its meaning and its kind.

    Args:
        default: its value where it is not given; None passes every check then.
        help: its meaning, in the words of ``--help`` and of the run file.
        kind: what it takes.
        flag: its flag, where that is not its name.
        also: other names of that flag.
        example: a value for the run file, where the default is none.
        group: heading above it, in ``--help`` and over its section of a run file.
        only_for: what it has a meaning for (kinds of data, shapes of a motion); nothing: for all. See :func:`misplaced_options`.
    """
    metadata = {
        "help": help, "kind": kind, "flag": flag, "also": also, "example": example, "group": group, "only_for": only_for,
    }  # fmt: skip
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def same_option(settings: type, name: str, help: str = "", **own: Any) -> Any:
    """An option of other settings once more, for a verb that does not take all of them; ``help`` and ``own`` say what is different."""
    one = next(one for one in fields(settings) if one.name == name)
    words = {"help": help} if help else {}
    return option(default_of(one), **{**one.metadata, "group": "", "only_for": (), **words, **own})


def effects_option(**own: Any) -> Any:
    """Which effects a model has, for every verb that asks it."""
    words = "Joint effects in the model, or 'none' for rigid bodies only."
    return option(DEFAULT_EFFECTS, words, Names("NAMES"), example=(), **own)


def gravity_option(*, found: bool = False, **own: Any) -> Any:
    """The direction of gravity, for every verb that reads a robot; ``found`` where the verb can find it in the data."""
    words = "Gravity in the base frame; default: that of the description."
    if found:
        words += " auto: its size stays, its direction is found in the data with its interval: the base need not be level."
    kind = Numbers("X,Y,Z|auto" if found else "X,Y,Z", 3, words_taken=("auto",) if found else ())
    return option(None, words, kind, example=(0.0, 0.0, -9.81), **own)


def lock_option(**own: Any) -> Any:
    """Joints that are held, for every verb that reads a robot."""
    words = "Hold a joint and merge what it carries; repeat for several."
    return option({}, words, Table("JOINT=VALUE"), example={"finger": 0.02}, **own)


def check_options(settings: Any) -> None:
    """Check every option of frozen settings against its kind, and keep the plain value; None passes where None is the default."""
    for one in fields(settings):
        value = getattr(settings, one.name)
        if value is not None or one.default is not None:
            object.__setattr__(settings, one.name, kind_of(one).check(value, one.name))


def options_of(settings: type, *groups: str) -> list[Field[Any]]:
    """The options of some groups in the order of the groups, or all of them."""
    known = fields(settings)
    return [one for group in groups for one in known if one.metadata["group"] == group] if groups else list(known)


def changed_options(settings: Any, *groups: str) -> dict[str, Any]:
    """Those options, of some groups or of all, that do not have their default value."""
    found = {one.name: (getattr(settings, one.name), default_of(one)) for one in options_of(type(settings), *groups)}
    return {name: value for name, (value, default) in found.items() if value != default}


def misplaced_options(settings: Any, what: str, *groups: str) -> list[Field[Any]]:
    """Options that were given and that have no meaning for these data, or for this shape: refused rather than without effect."""
    changed = changed_options(settings, *groups)
    known = options_of(type(settings), *groups)
    return [one for one in known if one.name in changed and what not in (one.metadata["only_for"] or (what,))]


def flag_of(one: Field[Any]) -> str:
    """The flag of an option."""
    return str(one.metadata["flag"]) or f"--{one.name.replace('_', '-')}"


def kind_of(one: Field[Any]) -> Kind:
    """What an option takes."""
    kind = one.metadata["kind"]
    assert isinstance(kind, Kind)
    return kind


def is_flag(one: Field[Any]) -> bool:
    """Whether an option can be given on the command line; tables of tables cannot."""
    return bool(kind_of(one).metavar) or not isinstance(kind_of(one), Table)


def default_of(one: Field[Any]) -> Any:
    """The default value of an option."""
    return one.default if one.default_factory is MISSING else one.default_factory()
