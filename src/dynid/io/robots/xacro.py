"""Xacro files expanded to URDF without running them: properties, macros, blocks, conditions, includes, arguments at their defaults.

The file is walked element by element into a new tree. Expressions in ``${..}`` are evaluated by
:mod:`~dynid.io.robots.xacro_expression`, which runs no code of the file. Files that are included or loaded as YAML must lie beside the
description, in a package above or beside it, or in one that ``ROS_PACKAGE_PATH`` or ``AMENT_PREFIX_PATH`` names. What this reader refuses,
the package ``xacro`` expands where the user trusts the file (``--trust-xacro``, or ``DYNID_TRUST_XACRO=1`` in the environment).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from dynid.errors import InputError
from dynid.io.robots.description import home_of, read_description
from dynid.io.robots.xacro_child import PACKAGES, expand_trusted
from dynid.io.robots.xacro_expression import SYMBOLS, Budget, ExpressionError, Namespace, dotted, evaluate, joined, size_of
from dynid.io.robots.xml import parse_xml, serialize_xml
from dynid.option_types import TRUST_XACRO

NAMESPACES = ("{http://www.ros.org/wiki/xacro}", "{http://ros.org/wiki/xacro}", "{http://wiki.ros.org/xacro}")
MOST_ELEMENTS = 100_000
MOST_LEVELS = 60
"""Macros, includes and conditions inside one another."""
_TEXT = re.compile(
    r"(?P<escaped>\$\$+[{(])|\$\{(?P<expression>[^}]*)\}|\$\((?P<command>[^)]*)\)|(?P<text>[^$]+|\$[^{($]+|\$$)"
)
_PARAMETER = re.compile(
    r"""^\s*([^\s:=]+?)\s*:?=\s*(\^\|?)?(\$\{.*?\}|\$\(.*?\)|(?:'[^']*'|\"[^\"]*\"|[^\s'\"])+|)(?:\s+|$)(.*)""", re.DOTALL
)
_UNITS = {
    "radians": 1.0,
    "degrees": 0.017453292519943295,
    "meters": 1.0,
    "millimeters": 0.001,
    "foot": 0.3048,
    "inches": 0.0254,
}


class Scope(Namespace):
    """Properties (or macros) of a file or a macro, and those around it; texts are evaluated when they are first asked for."""

    def __init__(self, parent: Scope | None = None, *, included: bool = False) -> None:
        super().__init__()
        self.parent, self.included = parent, included
        self.waiting: set[str] = set()

    def holder(self, name: str) -> Scope:
        """The scope that has a name: this one or one around it."""
        scope: Scope | None = self
        while scope is not None and name not in scope:
            scope = scope.parent
        if scope is None:
            raise KeyError(name)
        return scope

    def top(self) -> Scope:
        """The outermost scope."""
        return self if self.parent is None else self.parent.top()


@dataclass(frozen=True, eq=False)
class Macro:
    """A macro: its body, its parameters, and for those that have one the name to take over and the default."""

    body: Element
    parameters: tuple[str, ...]
    defaults: dict[str, tuple[str | None, str | None]]


def uses_xacro(root: Element) -> bool:
    """Whether an element of the file is xacro's."""
    return any(element.tag.startswith(NAMESPACES) for element in root.iter())


def expand_xacro(path: Path) -> bytes:
    """The URDF of a xacro file, with its arguments at their defaults; what cannot be expanded is refused in one sentence."""
    if os.environ.get(TRUST_XACRO) == "1":
        return expand_trusted(path)
    expansion = _Expansion(path.resolve())
    try:
        root = expansion.copy(parse_xml(read_description(path).content, f"robot file '{path}'"), Scope(), Scope())
    except (ExpressionError, RecursionError) as error:
        why = "it nests too deeply" if isinstance(error, RecursionError) else str(error)
        hint = "; --trust-xacro lets the package xacro expand a file that you trust" if "not allowed" in why else ""
        raise InputError(f"robot file '{path}' cannot be expanded: {why} (in '{expansion.files[-1].name}'){hint}") from None
    return serialize_xml(root).encode()


@dataclass(eq=False)
class _Expansion:
    """One file with all that it includes."""

    path: Path
    arguments: dict[str, str] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    n_elements: int = 0
    level: int = 0

    def __post_init__(self) -> None:
        self.files = [self.path]
        self._above = [folder for folder in list(self.path.parents)[:6] if folder != folder.parent]
        variables = (os.environ.get(variable, "") for variable in PACKAGES)
        self._named = [Path(one).resolve() for text in variables for one in text.split(os.pathsep) if one]

    # Texts ------------------------------------------------------------------------------------------------------------------
    def _evaluate(self, text: str, scope: Scope) -> Any:
        """A text with its expressions replaced by their values; the value itself where the text is one expression."""
        found: list[Any] = []
        place = 0
        while place < len(text):
            match = _TEXT.match(text, place)
            if match is None:
                raise ExpressionError(f"'{text[place : place + 80]}' is no expression")
            place = match.end()
            if match["expression"] is not None:
                inner = self._text(match["expression"], scope)
                found.append(evaluate(inner, lambda name: self._symbol(name, scope), self.budget))
            elif match["command"] is not None:
                found.append(self._substitute(self._text(match["command"], scope)))
            else:
                found.append(match["text"] if match["escaped"] is None else match["escaped"][1:])
        self.budget.spend(4 + len(text) // 64)
        return found[0] if len(found) == 1 else joined("", [self._written(one) for one in found])

    def _written(self, value: Any) -> str:
        if size_of(value) > 10_000 and not isinstance(value, str):
            raise ExpressionError("a list or dictionary of more than 10000 entries is written as text")
        try:
            return str(value)
        except ValueError:  # of YAML, where a number may have any length
            raise ExpressionError("a number is too large") from None

    def _text(self, text: str, scope: Scope) -> str:
        return self._written(self._evaluate(text, scope))

    def _symbol(self, name: str, scope: Scope) -> Any:
        """The value of a property, a function, or a name that every file knows."""
        try:
            holder = scope.holder(name)
        except KeyError:
            if name in ("load_yaml", "abs_filename"):
                return getattr(self, f"_{name}")
            if name == "xacro":
                own = {"load_yaml": self._load_yaml, "abs_filename": self._abs_filename, "arg": self._argument}
                return Namespace({**SYMBOLS["xacro"], **own})
            return SYMBOLS[name]
        if name in holder.waiting:
            holder.waiting.discard(name)
            text, holder[name] = holder[name], None
            if text is None:
                raise ExpressionError(f"property '{name}' is defined by itself")
            holder[name] = _literal(self._evaluate(text, holder))
        value = holder[name]
        if value is None and name in holder:
            raise ExpressionError(f"property '{name}' is defined by itself")
        return dotted(value)

    def _substitute(self, command: str) -> Any:
        """``$(arg name)``, ``$(find package)`` and the like."""
        word, _, rest = command.strip().partition(" ")
        names = rest.split()
        if word == "eval":
            known = {name: _converted(value) for name, value in self.arguments.items()}
            table = {**SYMBOLS, **known, "true": True, "false": False}
            table["arg"] = lambda name: _converted(self._argument(name))
            table["find"] = lambda name: str(self._package(name))
            table["dirname"] = lambda: str(self.files[-1].parent)
            return str(evaluate(rest, table.__getitem__, self.budget))
        if word == "arg" and len(names) == 1:
            return self._argument(names[0])
        if word == "find" and len(names) == 1:
            return str(self._package(names[0]))
        if word == "optenv" and names:  # variables of the user's environment are nothing for a file to know
            return " ".join(names[1:])
        if word == "dirname" and not names:
            return str(self.files[-1].parent)
        raise ExpressionError(f"'$({command[:80]})' is not known; expected arg, find, eval, optenv or dirname")

    def _argument(self, name: str) -> str:
        if name not in self.arguments:
            raise ExpressionError(
                f"argument '{name[:80]}' has no value; set it in a file of your own, by "
                f"<xacro:arg name='{name[:80]}' default='..'/> before "
                f"<xacro:include filename='{self.path.name}'/>"
            )
        return self.arguments[name]

    # Files ------------------------------------------------------------------------------------------------------------------
    def _package(self, name: str) -> Path:
        """The folder of a ROS package: above the file, beside a folder above it, or where the environment says."""
        for folder in self._above:
            if _package_name(folder) == name or folder.name == name:
                return folder
            for beside in sorted(folder.iterdir()):
                if _package_name(beside) == name:
                    return beside
        for root in self._named:
            for folder in (root / "share" / name, root / name, root):
                if folder.name == name and folder.is_dir():
                    return folder
        raise ExpressionError(
            f"package '{name[:80]}' was found neither above '{self.path.parent}' nor by ROS_PACKAGE_PATH or AMENT_PREFIX_PATH"
        )

    def _abs_filename(self, name: str) -> str:
        return str(self.files[-1].parent / name)

    def _allowed(self, name: str) -> Path:
        """The file that is named, if a description may ask for it: it lies beside the description or in a package."""
        file = (self.files[-1].parent / name).resolve()
        near = (home_of(self.path.parent), *self._named)
        packages = (folder for folder in file.parents if (folder / "package.xml").is_file())
        if not any(file.is_relative_to(root) for root in near) and not any(
            folder.parent in self._above or folder in self._above for folder in packages
        ):
            raise ExpressionError(f"it reads '{file}', expected files beside '{self.path.parent}' or of its packages")
        return file

    def _load_yaml(self, name: str) -> Any:
        import yaml

        class Loader(yaml.SafeLoader):
            """YAML with xacro's units."""

        for unit, factor in _UNITS.items():
            Loader.add_constructor(f"!{unit}", partial(self._in_units, factor))
        file = self._allowed(name)
        try:
            found = yaml.load(read_description(file).text, Loader)  # it derives from the safe loader
        except yaml.YAMLError as error:
            raise ExpressionError(f"'{file}' is no YAML: {' '.join(str(error).split())[:120]}") from None
        if size_of(found) > 100_000:
            raise ExpressionError(f"'{file}' has more than 100000 entries")
        return dotted(found)

    def _in_units(self, factor: float, loader: Any, node: Any) -> float:
        return factor * float(evaluate(str(loader.construct_scalar(node)), SYMBOLS.__getitem__, self.budget))

    def _include(self, element: Element, into: Element, scope: Scope, macros: Scope) -> None:
        name = self._text(_required(element, "filename"), scope)
        optional = _truth(element.get("optional", "false"), "optional")
        if space := element.get("ns"):
            label = self._text(space, scope)
            scope[label] = scope = Scope(scope, included=True)
            macros[label] = macros = Scope(included=True)
        file = self._allowed(name)
        matches = sorted(file.parent.glob(file.name)) if re.search(r"[*[?]", file.name) else [file]
        for one in matches:
            if optional and not one.is_file():
                continue
            root = parse_xml(read_description(one).content, f"robot file '{one}'")
            self.files.append(one)
            self._children(root, into, scope, macros)
            self.files.pop()

    # Elements ---------------------------------------------------------------------------------------------------------------
    def copy(self, element: Element, scope: Scope, macros: Scope) -> Element:
        """An element with everything in it evaluated."""
        self.n_elements += 1
        if self.n_elements > MOST_ELEMENTS:
            raise ExpressionError(f"it has more than {MOST_ELEMENTS} elements")
        made = Element(element.tag)
        for name, value in element.attrib.items():
            if not name.startswith(NAMESPACES):
                made.set(name, self._text(value, scope))
        self._children(element, made, scope, macros)
        return made

    def _children(self, element: Element, into: Element, scope: Scope, macros: Scope) -> None:
        """The content of an element, evaluated, at the end of another."""
        self.level += 1
        if self.level > MOST_LEVELS:
            raise ExpressionError(f"it nests more than {MOST_LEVELS} levels deep")
        self._add_text(into, element.text, scope)
        for child in element:
            tag = str(child.tag)
            prefix = next((one for one in NAMESPACES if tag.startswith(one)), "")
            if prefix:
                self._directive(tag.removeprefix(prefix), child, into, scope, macros)
            else:
                into.append(self.copy(child, scope, macros))
            self._add_text(into, child.tail, scope)
        self.level -= 1

    def _add_text(self, into: Element, text: str | None, scope: Scope) -> None:
        if text and text.strip():
            value = self._text(text, scope)
            if len(into):
                into[-1].tail = (into[-1].tail or "") + value
            else:
                into.text = (into.text or "") + value

    def _directive(self, name: str, element: Element, into: Element, scope: Scope, macros: Scope) -> None:
        """One element of xacro's own."""
        self.budget.spend(30)
        if name == "property":
            self._define_property(element, scope)
        elif name == "macro":
            label = _required(element, "name").removeprefix("xacro:")
            macros[label] = Macro(element, *_parameters(element.get("params", "")))
        elif name == "arg":
            if (label := _required(element, "name")) not in self.arguments:
                self.arguments[label] = self._text(_required(element, "default"), scope)
        elif name == "include":
            self._include(element, into, scope, macros)
        elif name in ("if", "unless"):
            condition = _required(element, "value")
            if _truth(self._evaluate(condition, scope), condition) is (name == "if"):
                self._children(element, into, scope, macros)
        elif name == "insert_block":
            self._insert_block(_required(element, "name"), into, scope, macros)
        elif name == "element":
            label = next((value for key, value in element.attrib.items() if key.endswith("}name")), "")
            renamed = Element(self._text(label, scope), {k: v for k, v in element.attrib.items() if not k.endswith("}name")})
            renamed.text = element.text
            renamed.extend(element)
            into.append(self.copy(renamed, scope, macros))
        elif name == "attribute":
            into.set(self._text(_required(element, "name"), scope), self._text(_required(element, "value"), scope))
        else:
            called = self._text(_required(element, "macro"), scope) if name == "call" else name
            given = {key: value for key, value in element.attrib.items() if not (name == "call" and key == "macro")}
            self._call(called, element, given, into, scope, macros)

    def _define_property(self, element: Element, scope: Scope) -> None:
        name = self._text(_required(element, "name"), scope)
        if not name.isidentifier() or name.startswith("__"):
            raise ExpressionError(f"property '{name}' has no name of letters, digits and underscores")
        value, default = element.get("value"), element.get("default")
        known = _has(scope, name)
        if _truth(self._evaluate(element.get("remove", "false"), scope), "remove"):
            for one in _chain(scope):
                one.pop(name, None)
            return
        if default is not None:
            if known:
                return
            value = default
        kind = element.get("scope")
        target = scope.top() if kind == "global" else scope
        if kind == "parent" and scope.parent is not None:
            target = scope.parent
            while not scope.included and target.included and target.parent is not None:
                target = target.parent
        if value is None:
            target[f"**{name}"] = element
            return
        lazy = kind not in ("global", "parent") and _truth(
            self._evaluate(element.get("lazy_eval", "true"), scope), "lazy_eval"
        )
        _set(target, name, _literal(value) if lazy else _literal(self._evaluate(value, scope)), waits=lazy)

    def _insert_block(self, name: str, into: Element, scope: Scope, macros: Scope) -> None:
        for label in (f"**{name}", f"*{name}"):
            if _has(scope, label):
                block = scope.holder(label)[label]
                if label.startswith("**"):
                    self._children(block, into, scope, macros)
                else:
                    into.append(self.copy(block, scope, macros))
                return
        raise ExpressionError(f"block '{name}' is not defined")

    def _call(self, name: str, element: Element, given: dict[str, str], into: Element, scope: Scope, macros: Scope) -> None:
        """A macro in place of its call."""
        found, around, own_macros = self._macro(name, scope, macros)
        inner = Scope(around)
        left = list(found.parameters)
        for key, value in given.items():
            if key not in left:
                raise ExpressionError(f"macro '{name}' has no parameter '{key}'")
            left.remove(key)
            _set(inner, key, _literal(self._evaluate(value, scope)))
        blocks = Element("blocks")
        self._children(element, blocks, scope, macros)
        waiting = iter(list(blocks))
        for key in [one for one in left if one.startswith("*")]:
            block = next(waiting, None)
            if block is None:
                raise ExpressionError(f"macro '{name}' lacks the block '{key}'")
            left.remove(key)
            inner[key] = block
        if (more := next(waiting, None)) is not None:
            raise ExpressionError(f"macro '{name}' takes no block '{more.tag}'")
        for key in left:
            taken, default = found.defaults.get(key, (None, None))
            if taken is not None and _has(scope, taken):
                _set(inner, key, self._symbol(taken, scope))
            elif default is not None:
                _set(inner, key, _literal(self._evaluate(default, scope)))
            else:
                raise ExpressionError(f"macro '{name}' lacks the parameter '{key}'")
        self._children(found.body, into, inner, Scope(own_macros))

    def _macro(self, name: str, scope: Scope, macros: Scope) -> tuple[Macro, Scope, Scope]:
        """A macro, with the properties and macros around it; ``file.name`` is one of a file included under a name."""
        if not _has(macros, name):
            for space in name.split(".")[:-1]:
                if not (_has(macros, space) and _has(scope, space)):
                    break
                scope, macros = scope.holder(space)[space], macros.holder(space)[space]
            name = name.rpartition(".")[2]
        found = macros.holder(name)[name] if _has(macros, name) else None
        if not isinstance(found, Macro):
            raise ExpressionError(f"macro '{name}' is not defined")
        return found, scope, macros


def _package_name(folder: Path) -> str:
    """The name that a folder's ``package.xml`` gives it; empty where it is no package."""
    file = folder / "package.xml"
    if not file.is_file():
        return ""
    return (parse_xml(read_description(file).content, f"'{file}'").findtext("name") or "").strip()


def _chain(scope: Scope | None) -> Iterator[Scope]:
    while scope is not None:
        yield scope
        scope = scope.parent


def _has(scope: Scope, name: str) -> bool:
    return any(name in one for one in _chain(scope))


def _set(scope: Scope, name: str, value: Any, *, waits: bool = False) -> None:
    """Define a property; ``waits`` says that a text is evaluated when it is first asked for."""
    scope[name] = value
    scope.waiting.discard(name)
    if waits and isinstance(value, str):
        scope.waiting.add(name)


def _required(element: Element, name: str) -> str:
    value = element.get(name)
    if value is None:
        raise ExpressionError(f"<{str(element.tag).rpartition('}')[2]}> lacks the attribute '{name}'")
    return value


def _literal(value: Any) -> Any:
    """A text that is a number or a truth value as that; other values as they are."""
    if not isinstance(value, str):
        return value
    if len(value) >= 2 and value[0] == value[-1] == "'":
        return value[1:-1]
    if "_" in value or len(value) > 400:
        return value
    for kind in (int, float):
        try:
            return kind(value)
        except ValueError:
            continue
    return {"true": True, "True": True, "false": False, "False": False}.get(value, value)


def _converted(value: str) -> Any:
    """An argument as ``$(eval ..)`` sees it."""
    try:
        return float(value) if "." in value else int(value)
    except ValueError:
        return {"true": True, "false": False}.get(value.lower(), value)


def _truth(value: Any, condition: str) -> bool:
    if isinstance(value, str):
        if value in ("true", "True", "false", "False"):
            return value in ("true", "True")
        try:
            return bool(int(value))
        except ValueError:
            raise ExpressionError(f"condition '{condition[:80]}' is '{value[:80]}', expected true or false") from None
    return bool(value)


def _parameters(text: str) -> tuple[tuple[str, ...], dict[str, tuple[str | None, str | None]]]:
    """Parameters of a macro in order, and for those that have one the name to take over (``^``) and the default."""
    names: list[str] = []
    defaults: dict[str, tuple[str | None, str | None]] = {}
    while text.strip():
        if match := _PARAMETER.match(text):
            name, forward, default, text = match.groups()
            defaults[name] = (name if forward else None, default or None)
        else:
            name, _, text = text.strip().partition(" ") if " " in text.strip() else (text.strip(), "", "")
        names.append(name)
    return tuple(names), defaults
