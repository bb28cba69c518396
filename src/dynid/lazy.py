"""Names that a package offers and loads from the modules that define them, each at its first use."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any


class Offered:
    """The public names of a package by the modules that define them.

    Args:
        package: name of the package or module that offers the names.
        modules: names by module.
        own: names that the package defines itself.

    The names become ``__all__`` of the package. Its ``__getattr__`` and ``__dir__`` use this value, so that importing the
    package imports none of the modules.
    """

    def __init__(self, package: str, modules: Mapping[str, Sequence[str]], own: Sequence[str] = ()) -> None:
        self.package = package
        self.where = {name: module for module, names in modules.items() for name in names}
        self.names = sorted([*own, *self.where])
        sys.modules[package].__dict__["__all__"] = self.names

    def load(self, name: str) -> Any:
        """The object of that name, kept in the package from then on."""
        if name not in self.where:
            raise AttributeError(f"module '{self.package}' has no attribute '{name}'")
        value = getattr(import_module(self.where[name]), name)
        setattr(sys.modules[self.package], name, value)
        return value
