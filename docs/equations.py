r"""Equations as MathML when the pages are built: ``$\tau = Y \phi$`` needs no script and no network."""

from __future__ import annotations

import html
import re

from latex2mathml.converter import convert

# What pymdownx.arithmatex leaves in its generic form: \( inline \) in a span, \[ display \] in a div.
_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_DISPLAY = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)


def on_page_content(content: str, **_: object) -> str:
    """MkDocs calls this with each page's HTML."""
    content = _DISPLAY.sub(lambda found: convert(html.unescape(found[1]), display="block"), content)
    return _INLINE.sub(lambda found: convert(html.unescape(found[1])), content)
