"""Hostile and broken XML is refused in one sentence."""

from __future__ import annotations

import pytest

import dynid.io.robots.xml as xml
from dynid.errors import InputError
from dynid.io.robots.xml import DEEPEST_XML, LONGEST_NAME, attribute_numbers, named_elements, parse_xml, serialize_xml
from messages import facts

BOMB = b"""<?xml version="1.0"?>
<!DOCTYPE robot [<!ENTITY a "boom"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>
<robot name="&c;"/>"""
EXTERNAL = b'<!DOCTYPE robot [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="r">&x;</robot>'
DOCTYPE = b'<!DOCTYPE robot SYSTEM "http://example.org/robot.dtd"><robot/>'


@pytest.mark.parametrize("content", [BOMB, EXTERNAL, DOCTYPE])
def test_entities_and_document_types_are_refused(content: bytes) -> None:
    with pytest.raises(InputError, match=r"^robot file 'r.urdf' declares a document type or entities") as caught:
        parse_xml(content, "robot file 'r.urdf'")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"<robot><link name='a'>", facts("XML", "1")),
        (b"<robot><link></robot>", "not well-formed XML: mismatched tag"),
        (b"", "not well-formed XML"),
        (b"solid mesh", "not well-formed XML"),
        (b"<robot name='\xff\xfe'/>", "not well-formed XML"),
        (b"<?xml version='1.0' encoding='klingon'?><robot/>", "cannot be decoded|not well-formed"),
        (b"<a>" * (DEEPEST_XML + 1) + b"</a>" * (DEEPEST_XML + 1), f"deeper than {DEEPEST_XML} levels"),
    ],
)
def test_broken_text_is_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        parse_xml(content, "robot file 'r.urdf'")
    assert "\n" not in str(caught.value)


def test_size_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xml, "LARGEST_XML_BYTES", 10)
    with pytest.raises(InputError, match="has 17 bytes, expected at most 10"):
        parse_xml(b'<robot name="a"/>', "robot file 'r.urdf'")


def test_text_round_trip_keeps_what_was_vetted() -> None:
    root = parse_xml(b'<robot name="a&lt;b"><link name="x"/></robot>', "r")
    again = parse_xml(serialize_xml(root).encode(), "r")
    assert again.get("name") == "a<b"
    assert [child.get("name") for child in again] == ["x"]


def test_numbers_of_an_attribute() -> None:
    root = parse_xml(b'<origin xyz="1 2e-1 -3" rpy="1 2"/>', "r")
    assert attribute_numbers(root, "xyz", 3, "", "origin") == [1.0, 0.2, -3.0]
    assert attribute_numbers(root, "absent", 1, "5", "origin") == [5.0]
    with pytest.raises(InputError, match=facts("1 2", "3")):
        attribute_numbers(root, "rpy", 3, "", "origin")


def test_a_name_that_fills_the_screen_is_refused() -> None:
    root = parse_xml(f"<robot><link name='{'a' * LONGEST_NAME}'/></robot>".encode(), "r")
    assert list(named_elements(root, "link", "r")) == ["a" * LONGEST_NAME]
    root = parse_xml(f"<robot><link name='{'a' * 10_000}'/></robot>".encode(), "r")
    with pytest.raises(InputError, match=r"^r has a <link> with a name of 10000 characters, expected at most 1000$"):
        named_elements(root, "link", "r")
