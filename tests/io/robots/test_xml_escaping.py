"""Escaped text against the standard library's."""

from __future__ import annotations

from xml.sax import saxutils

import pytest

from dynid.io.robots.xml import escape, parse_xml, xml_tag


@pytest.mark.parametrize("text", ["", "arm_1", "a<b>&c", 'say "x"', "it's", "both \" and '", "line\nend\tx\r", "&amp;"])
def test_text_is_escaped_as_the_standard_library_does(text: str) -> None:
    assert escape(text) == saxutils.escape(text)
    assert escape(text, {'"': "&quot;"}) == saxutils.escape(text, {'"': "&quot;"})
    assert parse_xml(xml_tag("joint", {"name": text}).encode(), "tag").attrib == {"name": text}
