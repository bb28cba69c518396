"""Figures as SVG files for papers and slides: plain shapes and text, no script, white paper.

Figures as PNG files, for slides and for pages that take no SVG.

Figures as data: panels with a title and a caption, drawn twice: interactively in the page and as SVG files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from math import ceil, floor, log10
from typing import Literal

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.report.panel import COLOURS, Axis, Curve, Panel, Role, limits_of

_WIDTH = 860.0
_INK, _SOFT, _GRID = "#1c2430", "#5b6675", "#e3e8ee"
_LEFT, _RIGHT, _BOTTOM = 62.0, 14.0, 46.0
_NAME = 15.0  # height of one named row
_FONT = "font-family='Helvetica, Arial, sans-serif'"


class _Frame:
    """Where a panel lies and how its values become pixels."""

    def __init__(self, panel: Panel, x: float, y: float, width: float, height: float, x_range: tuple[float, float]) -> None:
        self.panel, self.x, self.y, self.width, self.height = panel, x, y, width, height
        self.x_range, self.y_range = x_range, limits_of(panel, "y")
        if panel.y.categories:  # the same distance between names in panels of different lengths
            self.y_range = -0.6, (height - 6.0) / _NAME - 0.4

    def across(self, values: Array) -> Array:
        return self.x + self.width * _share(values, self.panel.x, self.x_range)

    def up(self, values: Array) -> Array:
        share = _share(values, self.panel.y, self.y_range)
        if self.panel.y.categories:  # the first name on top
            share = 1.0 - share
        return self.y + self.height * (1.0 - share)


def figure_svg(figure: Figure) -> str:
    """The figure as one SVG document."""
    strips = figure.arrangement == "strips"
    columns = 1 if strips else min(figure.columns, len(figure.panels))
    rows = ceil(len(figure.panels) / columns)
    gap_x, gap_y = 64.0, (24.0 if strips else 58.0)
    left = max([_LEFT, *(14.0 + 6.2 * len(name) for panel in figure.panels for name in panel.y.categories)])
    gap_x = max(gap_x, left)
    legend = _legend(figure)
    top = 52.0 + (20.0 if legend else 0.0)
    width = (_WIDTH - left - _RIGHT - (columns - 1) * gap_x) / columns
    names = [max(len(one.y.categories) for one in figure.panels[k * columns : (k + 1) * columns]) for k in range(rows)]
    heights = [_NAME * n + 6.0 if n else float(figure.panel_height) for n in names]
    total = top + sum(heights) + (rows - 1) * gap_y + _BOTTOM
    ranges = [limits_of(panel, "x") for panel in figure.panels]
    common = (min(low for low, _ in ranges), max(high for _, high in ranges)) if strips else None
    size = f"width='{_WIDTH:.0f}' height='{total:.0f}' viewBox='0 0 {_WIDTH:.0f} {total:.0f}'"
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' {size} role='img' {_FONT}>",
        f"<title>{escape(figure.title)}</title><desc>{escape(figure.caption)}</desc>",
        f"<rect width='{_WIDTH:.0f}' height='{total:.0f}' fill='white'/>",
        _text(left, 20.0, figure.title, size=14.0, weight="600"),
    ]
    parts += _draw_legend(legend, left, 40.0)
    for index, panel in enumerate(figure.panels):
        row, column = divmod(index, columns)
        y = top + sum(heights[:row]) + row * gap_y
        frame = _Frame(panel, left + column * (width + gap_x), y, width, heights[row], common or ranges[index])
        last = not strips or index == len(figure.panels) - 1
        parts += _draw_panel(frame, f"{figure.name}-panel-{index}", labelled=last)
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _share(values: Array, axis: Axis, limits: tuple[float, float]) -> Array:
    low, high = limits
    if axis.log:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray((np.log10(values) - log10(low)) / (log10(high) - log10(low)))
    return np.asarray((values - low) / (high - low))


def ticks(low: float, high: float, count: int, log: bool = False) -> list[float]:
    """Round values between two limits, about ``count`` of them or somewhat more."""
    if log:
        first, last = ceil(log10(low) - 1e-9), floor(log10(high) + 1e-9)
        every = max(1, ceil((last - first + 1) / max(count, 1)))
        found = [10.0**k for k in range(first, last + 1, every)]
        if len(found) >= 2:
            return found
        found = [
            m * 10.0**k
            for k in range(first - 1, last + 2)
            for m in (1.0, 2.0, 5.0)
            if low <= m * 10.0**k * (1.0 + 1e-9) and m * 10.0**k <= high * (1.0 + 1e-9)
        ]
        if len(found) >= 2:
            return found
    # also for a logarithmic axis of less than a decade, which is nearly even
    rough = (high - low) / max(count, 1)
    power = 10.0 ** floor(log10(rough))
    step = next(m * power for m in (5.0, 2.0, 1.0) if m * power <= rough * (1.0 + 1e-9))
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def _draw_panel(frame: _Frame, clip: str, *, labelled: bool) -> list[str]:
    panel = frame.panel
    right, bottom = frame.x + frame.width, frame.y + frame.height
    area = f"x='{frame.x:.1f}' y='{frame.y:.1f}' width='{frame.width:.1f}' height='{frame.height:.1f}'"
    parts = [f"<clipPath id='{clip}'><rect {area}/></clipPath>"]
    for value in ticks(*frame.x_range, max(2, int(frame.width / (45 if panel.x.log else 110))), panel.x.log):
        x = float(frame.across(np.array([value]))[0])
        parts.append(_line(x, frame.y, x, bottom, _GRID, 0.7))
        if labelled:
            parts.append(_text(x, bottom + 14.0, _number(value), anchor="middle"))
    if panel.y.categories:
        for place, y in zip(panel.y.categories, frame.up(np.arange(len(panel.y.categories), dtype=np.float64)), strict=True):
            parts.append(_text(frame.x - 6.0, float(y) + 3.5, place, anchor="end"))
    else:
        for value in ticks(*frame.y_range, max(2, int(frame.height / 50)), panel.y.log):
            y = float(frame.up(np.array([value]))[0])
            parts.append(_line(frame.x, y, right, y, _GRID, 0.7))
            parts.append(_text(frame.x - 6.0, y + 3.5, _number(value), anchor="end"))
    drawn = [_mark(frame, mark.along, mark.value, COLOURS[mark.role][0]) for mark in panel.marks]
    drawn += [piece for curve in panel.curves for piece in _draw_curve(frame, curve)]
    parts.append(f"<g clip-path='url(#{clip})'>" + "".join(drawn) + "</g>")
    parts.append(f"<rect {area} fill='none' stroke='{_SOFT}' stroke-width='0.8'/>")
    parts.append(_text(frame.x, frame.y - 6.0, panel.title, weight="600"))
    if labelled and panel.x.title:
        parts.append(_text(frame.x + frame.width / 2, bottom + 30.0, panel.x.title, anchor="middle", colour=_SOFT))
    if panel.y.title and not panel.y.categories:
        x, y = frame.x - 46.0, frame.y + frame.height / 2
        parts.append(_text(x, y, panel.y.title, anchor="middle", colour=_SOFT, turned=True))
    return parts


def _draw_curve(frame: _Frame, curve: Curve) -> list[str]:
    draw = {"rows": _draw_rows, "bars": _draw_bars, "points": _draw_points, "line": _draw_line}[curve.kind]
    colour = COLOURS[curve.role][0]
    x, y = frame.across(curve.x), frame.up(curve.y)
    if curve.kind in ("rows", "bars"):
        return draw(frame, curve, x, y, colour)
    return [*_draw_spread(frame, curve, x, colour), *draw(frame, curve, x, y, colour)]


def _draw_rows(frame: _Frame, curve: Curve, x: Array, y: Array, colour: str) -> list[str]:
    zero = frame.x if frame.panel.x.log else float(frame.across(np.zeros(1))[0])
    return [
        f"<rect x='{min(a, zero):.1f}' y='{b - 5.0:.1f}' width='{abs(a - zero):.1f}' height='10' fill='{colour}'/>"
        for a, b in zip(x, y, strict=True)
        if np.isfinite(a)
    ]


def _draw_bars(frame: _Frame, curve: Curve, x: Array, y: Array, colour: str) -> list[str]:
    bottom = frame.y + frame.height
    zero = bottom if frame.panel.y.log else float(frame.up(np.zeros(1))[0])
    width = 12.0 if curve.bar is None else float(np.diff(frame.across(np.array([0.0, curve.bar])))[0])
    return [
        f"<rect x='{a - width / 2:.2f}' y='{min(b, zero):.1f}' width='{width:.2f}' height='{abs(b - zero):.1f}' "
        f"fill='{colour}'/>"
        for a, b in zip(x, y, strict=True)
        if np.isfinite(b)
    ]


def _draw_spread(frame: _Frame, curve: Curve, x: Array, colour: str) -> list[str]:
    if curve.spread is None:
        return []
    low, high = frame.up(curve.y - curve.spread), frame.up(curve.y + curve.spread)
    return [
        _line(float(a), float(b), float(a), float(c), colour, 1.0)
        for a, b, c in zip(x, low, high, strict=True)
        if np.isfinite(b) and np.isfinite(c)
    ]


def _draw_points(frame: _Frame, curve: Curve, x: Array, y: Array, colour: str) -> list[str]:
    # strokes without length and with round ends are dots, and one path holds them all
    seen = np.isfinite(x) & np.isfinite(y)
    dots = _places(x[seen], y[seen], "M%.1f %.1fh0")
    stroke = f"stroke='{colour}' stroke-width='{curve.width:.1f}' stroke-linecap='round' stroke-opacity='0.75'"
    return [f"<path d='{dots}' fill='none' {stroke}/>"]


def _draw_line(frame: _Frame, curve: Curve, x: Array, y: Array, colour: str) -> list[str]:
    dash = " stroke-dasharray='5 3'" if curve.dashed else ""
    return [
        f"<polyline points='{_places(x[part], y[part], '%.1f,%.1f ')[:-1]}' fill='none' "
        f"stroke='{colour}' stroke-width='{curve.width:.1f}'{dash} stroke-linejoin='round'/>"
        for part in _finite_parts(x, y)
    ]


def _places(x: Array, y: Array, form: str) -> str:
    """Every point in this form, in one formatting: curves of a report have many."""
    return (form * len(x)) % tuple(np.column_stack([x, y]).ravel().tolist())


def _finite_parts(x: Array, y: Array) -> list[slice]:
    """Stretches without a gap: a line is not drawn across values that are missing."""
    good = np.isfinite(x) & np.isfinite(y)
    edges = np.flatnonzero(np.diff(np.concatenate([[False], good, [False]]).astype(np.int8)))
    return [slice(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def _mark(frame: _Frame, along: str, value: float, colour: str) -> str:
    if along == "x":
        x = float(frame.across(np.array([value]))[0])
        return _line(x, frame.y, x, frame.y + frame.height, colour, 1.0, dashed=True)
    y = float(frame.up(np.array([value]))[0])
    return _line(frame.x, y, frame.x + frame.width, y, colour, 1.0, dashed=True)


def _legend(figure: Figure) -> list[tuple[str, Role]]:
    """Every name once; none where a single curve needs no name."""
    named: dict[str, Role] = {}
    for panel in figure.panels:
        items = [(curve.name, curve.role) for curve in panel.curves] + [(mark.name, mark.role) for mark in panel.marks]
        for name, role in items:
            if name:
                named.setdefault(name, role)
    return list(named.items()) if len(named) > 1 else []


def _draw_legend(legend: Sequence[tuple[str, Role]], x: float, y: float) -> list[str]:
    parts = []
    for name, role in legend:
        parts.append(_line(x, y - 4.0, x + 18.0, y - 4.0, COLOURS[role][0], 3.0))
        parts.append(_text(x + 23.0, y, name))
        x += 40.0 + 6.0 * len(name)
    return parts


def _line(x1: float, y1: float, x2: float, y2: float, colour: str, width: float, *, dashed: bool = False) -> str:
    dash = " stroke-dasharray='5 3'" if dashed else ""
    return f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{colour}' stroke-width='{width}'{dash}/>"


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: float = 11.0,
    anchor: str = "start",
    weight: str = "400",
    colour: str = _INK,
    turned: bool = False,
) -> str:
    turn = f" transform='rotate(-90 {x:.1f} {y:.1f})'" if turned else ""
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' font-size='{size}' text-anchor='{anchor}' font-weight='{weight}' "
        f"fill='{colour}'{turn}>{escape(text)}</text>"
    )


def _number(value: float) -> str:
    text = f"{value:.6g}"
    return "0" if text == "-0" else text


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
