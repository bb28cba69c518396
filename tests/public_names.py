"""The public names of the package: where each is offered, and where its text stands."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import dynid


def public_names() -> dict[str, Any]:
    """Every name of the top and of the families, once, under the shortest path that leads to it."""
    found = {f"dynid.{name}": getattr(dynid, name) for name in dynid.__all__ if name != "__version__"}
    held = {id(value) for value in found.values()}
    for family in dynid.FAMILIES:
        module = importlib.import_module(f"dynid.{family}")
        for name in module.__all__:
            value = getattr(module, name)
            if id(value) not in held:
                held.add(id(value))
                found[f"dynid.{family}.{name}"] = value
    return found


def family_texts(name: str) -> list[str]:
    """The part of a family's docstring that is about a name: a paragraph that begins with it, up to the next such one."""
    found = []
    for family in dynid.FAMILIES:
        text = inspect.getdoc(importlib.import_module(f"dynid.{family}")) or ""
        parts = re.split(r"^(?=``\w+``: )", text, flags=re.MULTILINE)
        found += [part for part in parts if part.startswith(f"``{name}``: ")]
    return found


def texts(path: str, value: Any) -> list[str]:
    """The docstring of a name, and what its family says of it."""
    return [inspect.getdoc(value) or "", *family_texts(path.rsplit(".", 1)[1])]


def has_example(path: str, value: Any) -> bool:
    """Whether a doctest shows the name at work."""
    name = path.rsplit(".", 1)[1]
    return any(re.search(rf"\b{name}\b", example.source) for text in texts(path, value) for example in examples_of(text))


def examples_of(text: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(text)


def undocumented_arguments(path: str, value: Any) -> list[str]:
    """Parameters that no text explains: by name in the docstring, or by a text of their own below a field."""
    if not callable(value) or _is_abstract(value):
        return []
    try:
        parameters = list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return []
    said = " ".join(texts(path, value))
    said = re.sub(r">>>.*|\.\.\. .*", "", said)
    fields = _fields_with_text(value) if inspect.isclass(value) else set()
    return [name for name in parameters if name not in fields and not re.search(rf"\b{re.escape(name)}\b", said)]


def _is_abstract(value: Any) -> bool:
    return (
        bool(getattr(value, "_is_protocol", False))
        or inspect.isabstract(value)
        or (inspect.isclass(value) and issubclass(value, (Exception, Warning)))
        or (inspect.isclass(value) and hasattr(value, "__members__"))
    )


def _fields_with_text(kind: type) -> set[str]:
    found: set[str] = set()
    for body in (_definition(one) for one in kind.__mro__[:-1]):
        if body is None:
            continue
        for field, below in zip(body.body, [*body.body[1:], None], strict=True):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                explained = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
                # an option of a run carries its help, one that several groups share by a function of its own
                option = isinstance(field.value, ast.Call) and getattr(field.value.func, "id", "").endswith("option")
                if explained or option:
                    found.add(field.target.id)
    return found


def _definition(kind: type) -> ast.ClassDef | None:
    """The class as its module writes it; None for classes that are not written in Python or not at the top of a module."""
    return _definitions(kind.__module__).get(kind.__name__)


@cache
def _definitions(module: str) -> dict[str, ast.ClassDef]:
    file = getattr(sys.modules[module], "__file__", None)
    if file is None or not file.endswith(".py"):
        return {}
    return {node.name: node for node in ast.parse(Path(file).read_text("utf-8")).body if isinstance(node, ast.ClassDef)}
