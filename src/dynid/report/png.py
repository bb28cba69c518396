"""Figures as PNG files, for slides and for pages that take no SVG."""

from __future__ import annotations

from functools import cache

ZOOM = 2
"""Pixels for every unit of the drawing: sharp on paper and on dense screens."""

_PROBE = "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='20'><text x='2' y='15' font-size='14'>N m</text></svg>"
_EMPTY = "<svg xmlns='http://www.w3.org/2000/svg' width='40' height='20'></svg>"


def png_of(svg: str) -> bytes:
    """The drawing as PNG, on white."""
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=ZOOM, background="white"))


@cache
def can_draw_text() -> bool:
    """False on a machine without any font, where a drawing would come out without its words."""
    return png_of(_PROBE) != png_of(_EMPTY)
