"""Sections of text, tables and plots, put together into one HTML file that opens offline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --text: #1c2430; --soft: #5b6675; --page: #ffffff; --card: #f5f7fa; --line: #d9dfe7;
        --good: #1a7f4b; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --text: #e6eaf0; --soft: #9aa7b8; --page: #12161c; --card: #1b212a;
        --line: #323b48; --good: #58c58b; --bad: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 1.5rem 1rem 4rem; background: var(--page); color: var(--text);
       font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 .3rem; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
.verdict { background: var(--card); border-left: 5px solid var(--good); padding: .8rem 1rem; border-radius: 4px; }
.verdict.bad { border-color: var(--bad); } .verdict p { margin: .2rem 0; } .soft { color: var(--soft); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .9rem; min-width: 100%; }
th, td { text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
ul { padding-left: 1.2rem; } .plot { margin: 1rem 0; overflow-x: auto; }
"""


@dataclass(frozen=True)
class Table:
    """A table; columns named in ``numeric`` are set to the right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...] = ()

    def html(self) -> str:
        def cell(tag: str, index: int, text: str) -> str:
            kind = ' class="number"' if index in self.numeric else ""
            return f"<{tag}{kind}>{escape(text)}</{tag}>"

        head = "".join(cell("th", i, text) for i, text in enumerate(self.header))
        body = "".join(f"<tr>{''.join(cell('td', i, text) for i, text in enumerate(row))}</tr>" for row in self.rows)
        return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


@dataclass(frozen=True)
class Section:
    """A heading, what it means, and what it shows."""

    title: str
    text: str = ""
    tables: tuple[Table, ...] = ()
    figures: tuple[Any, ...] = ()
    items: tuple[str, ...] = ()

    def html(self) -> str:
        parts = [f"<h2>{escape(self.title)}</h2>"]
        if self.text:
            parts.append(f"<p>{escape(self.text)}</p>")
        if self.items:
            parts.append("<ul>" + "".join(f"<li>{escape(item)}</li>" for item in self.items) + "</ul>")
        parts.extend(table.html() for table in self.tables)
        parts.extend(
            f'<div class="plot">{figure.to_html(full_html=False, include_plotlyjs=False)}</div>' for figure in self.figures
        )
        return "\n".join(parts)


def page(title: str, verdict: Sequence[str], good: bool, sections: Sequence[Section]) -> str:
    """The whole page; the plotting library is put in once, and only if there is a plot."""
    script = ""
    if any(section.figures for section in sections):
        from plotly.offline import get_plotlyjs

        script = f"<script>{get_plotlyjs()}</script>"
    lines = "".join(f"<p>{escape(line)}</p>" for line in verdict)
    body = "\n".join(section.html() for section in sections)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n{script}\n</head>\n<body>\n"
        f'<h1>{escape(title)}</h1>\n<div class="verdict{"" if good else " bad"}">{lines}</div>\n{body}\n</body>\n</html>\n'
    )
