"""Hook of MkDocs: names of the Python interface become their entries.

A marker ``<!-- names: read_robot effects.Viscous -->`` in a page is replaced by the documentation of ``dynid.read_robot`` and
``dynid.Viscous``, taken from where they are defined; a name that does not exist ends the build.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

from mkdocs.exceptions import PluginError

MARKER = re.compile(r"<!-- names:(.*?)-->", re.DOTALL)


def on_page_markdown(markdown: str, *, page: Any, config: Any, files: Any) -> str:
    """The page with the names in place of the markers."""
    return MARKER.sub(lambda marker: "\n".join(entry(name, page.file.src_uri) for name in marker[1].split()), markdown)


def entry(name: str, page: str) -> str:
    """The directive of mkdocstrings for a public name, under its public path."""
    module, _, last = f"dynid.{name}".rpartition(".")
    value = getattr(importlib.import_module(module), last, None)
    if value is None:
        raise PluginError(f"{page} lists the name '{name}', which {module} does not have")
    shown = f"    options:\n      heading: {module}.{last}\n      toc_label: {name}\n"
    return f"::: {value.__module__}.{value.__qualname__}\n{shown}"
