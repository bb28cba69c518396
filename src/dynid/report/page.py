"""Sections of data, put into one template: an HTML file that needs nothing but itself.

Names in it come from other people's files. All text is escaped, data is embedded as JSON that cannot end its element, and
the page's policy lets only the scripts run that are part of this package (by their hashes) and nothing be fetched.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any, Literal, TypeAlias
from urllib.parse import quote

import numpy as np

from dynid.arrays import Array
from dynid.finding import Finding, Level
from dynid.report.figure import Figure
from dynid.report.panel import COLOURS, Curve, Panel, limits_of
from dynid.report.scene import Scene, scene_record

LEVEL_WORDS: dict[Level, str] = {"good": "good", "warning": "mind", "error": "wrong", "note": "note"}
CODE_WORDS = {"change": "change", "outlier": "outlier"}
"""Findings that are called by their code and not by how grave they are."""


@dataclass(frozen=True)
class Table:
    """A table; columns in ``numeric`` are set to the right, those in ``code`` in fixed width, those in ``links`` lead to files."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...] = ()
    code: tuple[int, ...] = ()
    links: tuple[int, ...] = ()
    """Columns of paths relative to the page."""


@dataclass(frozen=True, eq=False)
class HeatMap:
    """Numbers as the colours of a table: red above zero, blue below, full at ``most``; cells that are not known are hatched."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Array
    """``(rows, columns)``."""
    most: float
    what: str
    """What the numbers are, for the text shown at a cell."""


@dataclass(frozen=True)
class Tabs:
    """Figures of which one is shown at a time, each under a short label."""

    figures: tuple[tuple[str, Figure], ...]


@dataclass(frozen=True)
class Folded:
    """Parts that are shown when asked for."""

    summary: str
    parts: tuple[Part, ...]


Part: TypeAlias = Table | HeatMap | tuple[Finding, ...] | str | Figure | Tabs | Scene | Folded
"""What a section holds below its explanation; a plain text is one to be typed."""


@dataclass(frozen=True)
class Section:
    """A section of the report: a heading, its explanation, and tables and figures.

    Args:
        title: the heading.
        text: the explanation below it.
        parts: tables, figures and lists, in order.
        short: the heading in the menu, where it is shorter.

    Examples:
        >>> import dynid
        >>> dynid.Section("Payload", "Tool B was mounted.").title
        'Payload'
    """

    title: str
    """Heading."""
    text: str = ""
    """Explanation below the heading."""
    parts: tuple[Part, ...] = ()
    """Tables, figures and further text."""
    short: str = ""
    """Title in the page's list of contents; empty for the title itself."""


@dataclass(frozen=True)
class Tile:
    """One number that matters, with its name and what to compare it with."""

    value: str
    name: str
    remark: str = ""
    level: Level = "note"


@dataclass(frozen=True)
class Head:
    """What the reader came for, at the top of the page."""

    level: Level
    headline: str
    reasons: tuple[Finding, ...] = ()
    tiles: tuple[Tile, ...] = ()


@dataclass
class _Embedded:
    """Data of figures and scenes, gathered while the page is written; an array used twice is stored once."""

    figures: dict[str, Any] = field(default_factory=dict)
    scenes: list[dict[str, Any]] = field(default_factory=list)
    arrays: list[str] = field(default_factory=list)
    _known: dict[int, int] = field(default_factory=dict)
    _kept: list[Array] = field(default_factory=list)

    def array(self, values: Array) -> int:
        if id(values) not in self._known:
            self._known[id(values)] = len(self.arrays)
            self._kept.append(values)  # so that its id stays its own
            self.arrays.append(base64.b64encode(np.ascontiguousarray(values, dtype="<f4").tobytes()).decode())
        return self._known[id(values)]

    def add_figure(self, figure: Figure) -> str:
        name = figure.name
        while name in self.figures:
            name += "_more"
        self.figures[name] = {
            "arrangement": figure.arrangement,
            "panel_height": figure.panel_height,
            "columns": figure.columns,
            "panels": [self._panel(panel) for panel in figure.panels],
        }
        return name

    def _panel(self, panel: Panel) -> dict[str, Any]:
        def axis(along: Literal["x", "y"]) -> dict[str, Any]:
            one = panel.x if along == "x" else panel.y
            record: dict[str, Any] = {"title": one.title, "log": one.log, "range": list(limits_of(panel, along))}
            return record | ({"categories": list(one.categories)} if one.categories else {})

        return {
            "title": panel.title,
            "x": axis("x"),
            "y": axis("y"),
            "curves": [self._curve(curve) for curve in panel.curves],
            "marks": [mark.__dict__ for mark in panel.marks],
        }

    def _curve(self, curve: Curve) -> dict[str, Any]:
        record: dict[str, Any] = {
            "name": curve.name,
            "role": curve.role,
            "kind": curve.kind,
            "dashed": curve.dashed,
            "width": curve.width,
            "x": self.array(curve.x),
            "y": self.array(curve.y),
        }
        if curve.spread is not None:
            record["spread"] = self.array(curve.spread)
        if curve.bar is not None:
            record["bar"] = curve.bar
        if curve.texts:
            record["texts"] = list(curve.texts)
        return record

    def add_scene(self, scene: Scene) -> int:
        self.scenes.append(scene_record(scene) | {"frames": self.array(scene.frames)})
        return len(self.scenes) - 1

    def record(self) -> dict[str, Any]:
        return {"colours": COLOURS, "figures": self.figures, "scenes": self.scenes, "arrays": self.arrays}


def page(title: str, subtitle: str, head: Head, sections: Sequence[Section]) -> str:
    """The whole page; the plotting library is put in once, and only if there is a plot."""
    embedded = _Embedded()
    names = [f"section-{number}" for number in range(1, len(sections) + 1)]
    body = "\n".join(_section_html(section, name, embedded) for section, name in zip(sections, names, strict=True))
    links = "".join(
        f'<a href="#{name}">{escape(section.short or section.title)}</a>'
        for section, name in zip(sections, names, strict=True)
    )
    scripts = []
    if embedded.figures:
        from plotly.offline import get_plotlyjs

        scripts.append(get_plotlyjs())
    scripts += [_asset(name) for name in ("page.js", "plots.js", "scene.js")]
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    policy = f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'"
    return _asset("page.html").format(
        title=escape(title),
        subtitle=escape(subtitle),
        policy=escape(policy),
        style=_asset("page.css"),
        verdict=_head_html(head),
        links=links,
        body=body,
        embedded=_json(embedded.record()),
        scripts="\n".join(f"<script>{script}</script>" for script in scripts),
    )


def figures_of(sections: Sequence[Section]) -> tuple[Figure, ...]:
    """Every figure of the sections, in their order."""
    found: list[Figure] = []

    def walk(parts: Sequence[Part]) -> None:
        for part in parts:
            if isinstance(part, Figure):
                found.append(part)
            elif isinstance(part, Tabs):
                found.extend(figure for _, figure in part.figures)
            elif isinstance(part, Folded):
                walk(part.parts)

    for section in sections:
        walk(section.parts)
    return tuple(found)


def _asset(name: str) -> str:
    return (files("dynid.report") / "assets" / name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """JSON inside an HTML element: nothing in it can close the element or open another."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _head_html(head: Head) -> str:
    tiles = "".join(
        f'<div class="tile {tile.level}"><span class="name">{escape(tile.name)}</span>'
        f'<span class="value">{escape(tile.value)}</span><span class="remark">{escape(tile.remark)}</span></div>'
        for tile in head.tiles
    )
    return (
        f'<section class="verdict {head.level}" id="verdict"><h2>{escape(head.headline)}</h2>'
        f"{_findings_html(head.reasons)}</section>\n" + (f'<div class="tiles">{tiles}</div>' if tiles else "")
    )


def _section_html(section: Section, name: str, embedded: _Embedded) -> str:
    parts = [f'<section id="{name}"><h2>{escape(section.title)}</h2>']
    if section.text:
        parts.append(f"<p>{escape(section.text)}</p>")
    parts.extend(_part_html(part, embedded) for part in section.parts)
    return "\n".join([*parts, "</section>"])


def _part_html(part: Part, embedded: _Embedded) -> str:
    if isinstance(part, Table):
        return _table_html(part)
    if isinstance(part, HeatMap):
        return _heat_map_html(part)
    if isinstance(part, tuple):
        return _findings_html(part)
    if isinstance(part, str):
        return f"<pre><code>{escape(part)}</code></pre>"
    if isinstance(part, Figure):
        return _figure_html(part, embedded)
    if isinstance(part, Tabs):
        return _tabs_html(part, embedded)
    if isinstance(part, Scene):
        return _scene_html(part, embedded)
    inner = "\n".join(_part_html(one, embedded) for one in part.parts)
    return f"<details><summary>{escape(part.summary)}</summary>\n{inner}\n</details>"


def _table_html(table: Table) -> str:
    def cell(tag: str, index: int, text: str) -> str:
        kinds = [kind for kind, places in (("number", table.numeric), ("code", table.code)) if index in places]
        attribute = f' class="{" ".join(kinds)}"' if kinds else ""
        shown = escape(text)
        if tag == "td" and index in table.links and text:
            shown = f'<a href="{escape(quote(text))}">{shown}</a>'
        return f"<{tag}{attribute}>{shown}</{tag}>"

    head = "".join(cell("th", i, text) for i, text in enumerate(table.header))
    body = "".join(f"<tr>{''.join(cell('td', i, text) for i, text in enumerate(row))}</tr>" for row in table.rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _heat_map_html(heat: HeatMap) -> str:
    def cell(row: str, column: str, value: float) -> str:
        if not np.isfinite(value):
            return f'<td class="unknown" title="{escape(f"{row}, {column}: not known")}"></td>'
        text = escape(f"{row}, {column}: {heat.what} {value:.3g}")
        return f'<td class="heat" style="background:{_heat_colour(value / heat.most)}" title="{text}"></td>'

    head = "<th></th>" + "".join(f'<th class="upright"><span>{escape(name)}</span></th>' for name in heat.columns)
    body = "".join(
        f"<tr><th>{escape(row)}</th>{''.join(cell(row, c, float(v)) for c, v in zip(heat.columns, values, strict=True))}</tr>"
        for row, values in zip(heat.rows, heat.values, strict=True)
    )
    table = f'<table class="heat"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scroll">{table}</div>{_heat_legend(heat)}'


def _heat_colour(share: float) -> str:
    """Red above zero, blue below; ``share`` is that of the full colour."""
    return f"rgba({'201,42,42' if share > 0.0 else '24,100,171'},{min(abs(share), 1.0):.2f})"


def _heat_legend(heat: HeatMap) -> str:
    """Colours and what they stand for, and the mark of cells that are not known."""
    shares = (-1.0, -2.0 / 3.0, -1.0 / 3.0, 0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0)
    steps = "".join(
        f'<span><i style="background:{_heat_colour(share)}"></i>{f"{share * heat.most:+.3g}" if share else 0}</span>'
        for share in shares
    )
    return f'<p class="heat-legend">{steps}<span><i class="unknown"></i>not known</span><span>{escape(heat.what)}</span></p>'


def _findings_html(findings: Sequence[Finding]) -> str:
    """A list; a finding of the fleet is called by its code, others by how grave they are."""
    if not findings:
        return ""
    lines = "".join(
        f'<li class="{one.level}"><span class="level">{escape(CODE_WORDS.get(one.code, LEVEL_WORDS[one.level]))}</span>'
        f"<span>{escape(one.what)}"
        + (f' <span class="advice">{escape(one.remedy)}</span>' if one.remedy else "")
        + "</span></li>"
        for one in findings
    )
    return f'<ul class="items">{lines}</ul>'


def _figure_html(figure: Figure, embedded: _Embedded, *, headed: bool = True) -> str:
    name = embedded.add_figure(figure)
    heading = f"<h3>{escape(figure.title)}</h3>" if headed else ""
    return (
        f'{heading}<figure class="plot" id="figure-{escape(name)}" data-figure="{escape(name)}">'
        f'<div class="drawing" role="img" aria-label="{escape(figure.title)}"></div>'
        f"<figcaption>{escape(figure.caption)}</figcaption></figure>"
    )


def _tabs_html(tabs: Tabs, embedded: _Embedded) -> str:
    if len(tabs.figures) == 1:
        return _figure_html(tabs.figures[0][1], embedded)
    buttons, panes = [], []
    for place, (label, figure) in enumerate(tabs.figures):
        chosen = "true" if place == 0 else "false"
        buttons.append(f'<button type="button" role="tab" aria-selected="{chosen}">{escape(label)}</button>')
        hidden = "" if place == 0 else " hidden"
        panes.append(f'<div role="tabpanel"{hidden}>{_figure_html(figure, embedded, headed=False)}</div>')
    return f'<div class="tabs"><div role="tablist">{"".join(buttons)}</div>{"".join(panes)}</div>'


def _scene_html(scene: Scene, embedded: _Embedded) -> str:
    number = embedded.add_scene(scene)
    moving = len(scene.frames) > 1
    play = (
        '<button type="button" class="play">Play</button>'
        f'<input type="range" class="instant" min="0" max="{len(scene.frames) - 1}" value="0" aria-label="instant">'
        if moving
        else ""
    )
    shape = '<label><input type="checkbox" class="shape" checked> shape</label>' if any(scene.shapes) else ""
    label = f"{scene.robot.name}: links as boxes of equal inertia; drag to turn"
    return (
        f'<div class="scene" data-scene="{number}"><canvas tabindex="0" role="img" aria-label="{escape(label)}"></canvas>'
        f'<p class="hint" aria-live="polite">Drag to turn, arrow keys too; point at a box to read it.</p>'
        f'<div class="controls">{play}<button type="button" class="nearer">+</button>'
        '<button type="button" class="farther">−</button><button type="button" class="reset">Reset</button>'
        f'<label><input type="checkbox" class="nominal" checked> description (dashed)</label>{shape}</div></div>'
    )
