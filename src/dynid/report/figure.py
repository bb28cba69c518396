"""Figures as data: panels with a title and a caption, drawn twice: interactively in the page and as SVG files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dynid.errors import InputError
from dynid.report.panel import Panel
from dynid.report.svg import figure_svg


@dataclass(frozen=True, eq=False)
class Figure:
    """Panels that belong together, and a sentence that says what is to be seen in them.

    ``strips`` stand below one another on one common horizontal axis, a ``grid`` has as many columns as there is room for.
    """

    name: str
    title: str
    caption: str
    panels: tuple[Panel, ...]
    arrangement: Literal["strips", "grid"] = "grid"
    panel_height: int = 180
    columns: int = 3

    def __post_init__(self) -> None:
        if not self.panels:
            raise InputError(f"figure '{self.name}' has no panel")

    def _repr_svg_(self) -> str:
        """The drawing that a notebook shows."""
        return figure_svg(self)
