"""The public names of the package: where each is offered, and where its text stands."""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import dynid

LINE_LENGTH = 125
START, END = "    # isort: off", "    # isort: on"


def public_names() -> dict[str, Any]:
    """Every public name with what it stands for."""
    return {f"dynid.{name}": getattr(dynid, name) for name in dynid.__all__}


def type_checking_block(modules: Mapping[str, Sequence[str]]) -> str:
    """What ``if TYPE_CHECKING`` of the package holds for this table of names; ``python tests/public_names.py`` puts it there."""
    lines = []
    for module, names in modules.items():
        line = f"    from {module} import {', '.join(f'{name} as {name}' for name in names)}"
        whole = len(line) <= LINE_LENGTH
        lines += (
            [line] if whole else [f"    from {module} import (", *(f"        {one} as {one}," for one in names), "    )"]
        )
    return "\n".join([START, *lines, END])


def has_example(path: str, value: Any) -> bool:
    """Whether a doctest shows the name at work."""
    name = path.rsplit(".", 1)[1]
    return any(re.search(rf"\b{name}\b", example.source) for example in examples_of(inspect.getdoc(value) or ""))


def examples_of(text: str) -> list[doctest.Example]:
    return doctest.DocTestParser().get_examples(text)


def undocumented_arguments(value: Any) -> list[str]:
    """Parameters that no text explains: by name in the docstring, or by a text of their own below a field."""
    if not callable(value) or _is_abstract(value):
        return []
    try:
        parameters = list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return []
    said = re.sub(r">>>.*|\.\.\. .*", "", inspect.getdoc(value) or "")
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


if __name__ == "__main__":
    front = Path(dynid.__file__)
    head, _, rest = front.read_text("utf-8").partition(START)
    front.write_text(head + type_checking_block(dynid._MODULES) + rest.partition(END)[2], "utf-8")
