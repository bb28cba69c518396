"""Tables of the pages, made while the pages are built: ``<!-- table: sousa2014.table_1 -->`` becomes what it names.

The marker, alone on its line, stands for the Markdown that ``table_1()`` of ``docs/tables_of/sousa2014.py`` returns, and a
small line below says that it was computed in this build. An exception in a table ends the build, as does a name that nobody
has. Only published data that this machine does not have are no error: a sentence then stands in the table's place.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

# MkDocs has this file's folder on the path while it loads the hook, and no longer.
import tables_of
from mkdocs.exceptions import PluginError

FOLDER = Path(__file__).resolve().parent / "tables_of"
MARKER = re.compile(r"^<!--\s*table:\s*(.*?)\s*-->[ \t]*$", re.MULTILINE)
_log = logging.getLogger("mkdocs.hooks.tables")


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """MkDocs calls this with each page's Markdown."""
    return MARKER.sub(lambda found: made(found[1], page.file.src_uri), markdown)


def made(name: str, page: str) -> str:
    """The table, with the line below it; or the sentence that says which data are missing."""
    function = table_named(name, page)
    try:
        table, seconds = _computed(function)
    except tables_of.MissingDataError as missing:
        _log.info("table %s of %s was not built: %s is not on this machine", name, page, missing.relative)
        return (
            f"*The file `{missing.relative}` of the published data is not on the machine that built this page "
            "(`DYNID_SHARED_DATA` names the folder), so this table was not built.*"
        )
    except Exception as error:
        error.add_note(f"while building table '{name}' of {page}")
        raise
    _log.info("table %s of %s: %.2f s", name, page, seconds)
    return (
        f"{table}\n\n<small>Computed in this build by `docs/tables_of/{name.split('.')[0]}.py`, in {seconds:.2g} s.</small>"
    )


def table_named(name: str, page: str) -> Callable[[], str]:
    """The function that a marker names, or the refusal."""
    modules = sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))
    module_name, _, function_name = name.partition(".")
    if module_name not in modules or not function_name:
        raise PluginError(
            f"{page} asks for the table '{name}'; expected MODULE.FUNCTION with a module of docs/tables_of: {', '.join(modules)}"
        )
    module = import_module(f"tables_of.{module_name}")
    functions = tables_in(module)
    if function_name not in functions:
        raise PluginError(
            f"{page} asks for the table '{name}', which docs/tables_of/{module_name}.py does not have; "
            f"it has {', '.join(functions)}"
        )
    return functions[function_name]


def tables_in(module: ModuleType) -> dict[str, Callable[[], str]]:
    """Public functions that a module defines itself, by name."""
    return {
        name: value
        for name, value in vars(module).items()
        if callable(value) and not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    }


@cache
def _computed(function: Callable[[], str]) -> tuple[str, float]:
    """Once a process: `mkdocs serve` builds the pages again after each edit."""
    began = time.perf_counter()
    table = function()
    return table, time.perf_counter() - began
