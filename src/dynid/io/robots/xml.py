"""XML of unknown origin, and XML edited as text.

Every reader of URDF, SDF and MJCF passes its bytes through :func:`parse_xml` before any other parser sees them: no entities, no
external references, no surprises in size. :class:`XmlText` edits bytes: the parser reports where elements begin and end, only the
tags that change are replaced, and comments, order and layout stay. Text is escaped as ``xml.sax.saxutils`` does it, whose import
loads a client for the internet.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from xml.parsers import expat

from dynid.errors import InputError

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

LARGEST_XML_BYTES = 64 * 2**20
DEEPEST_XML = 400
"""No robot nests deeper; parsers that recurse would exhaust their stack."""


def parse_xml(content: bytes, where: str) -> Element:
    """The outermost element of ``content``; ``where`` is what messages call it.

    Refused: declarations of entities (entity bombs), external entities and document types, broken or
    truncated text, more than 64 MB, more than 400 levels.
    """
    from xml.etree.ElementTree import ParseError

    from defusedxml import ElementTree
    from defusedxml.common import DefusedXmlException, DTDForbidden, EntitiesForbidden

    if len(content) > LARGEST_XML_BYTES:
        raise InputError(f"{where} has {len(content)} bytes, expected at most {LARGEST_XML_BYTES}")
    try:
        root: Element = ElementTree.fromstring(content, forbid_dtd=True, forbid_entities=True, forbid_external=True)
    except (DTDForbidden, EntitiesForbidden):
        raise InputError(f"{where} declares a document type or entities, which are refused in XML") from None
    except DefusedXmlException as error:
        raise InputError(f"{where} refers to something outside itself, which is refused in XML: {error}") from None
    except ParseError as error:
        raise InputError(f"{where} is not well-formed XML: {error}") from None
    except (ValueError, LookupError) as error:  # an encoding that is unknown or does not fit the bytes
        raise InputError(f"{where} cannot be decoded as XML: {error}") from None
    level, depth = [root], 1
    while level := [child for element in level for child in element]:
        depth += 1
        if depth > DEEPEST_XML:
            raise InputError(f"{where} nests elements deeper than {DEEPEST_XML} levels")
    return root


def serialize_xml(root: Element) -> str:
    """The element as text that any parser can take: no document type, no entities beyond XML's own."""
    from xml.etree.ElementTree import tostring

    return tostring(root, encoding="unicode")


def add_element(parent: Element, tag: str, text: str | None = None, **attributes: str) -> Element:
    """A new child, with text in it where some is given."""
    from xml.etree.ElementTree import SubElement

    made = SubElement(parent, tag, attributes)
    made.text = text
    return made


def xml_lines(element: Element, step: str = "  ") -> list[str]:
    """An element as lines of text, each level indented by ``step``."""
    from xml.etree.ElementTree import indent

    indent(element, step)
    return [re.sub(" />$", "/>", line) for line in serialize_xml(element).splitlines()]


def xml_tag(tag: str, attributes: Mapping[str, str]) -> str:
    """An element without content, in one line."""
    from xml.etree.ElementTree import Element

    return xml_lines(Element(tag, dict(attributes)))[0]


def xml_document(root: Element) -> str:
    """A whole file."""
    return "\n".join(['<?xml version="1.0"?>', *xml_lines(root), ""])


def read_numbers(text: str) -> list[float]:
    """Numbers separated by spaces; none where a part is no number."""
    try:
        return [float(part) for part in text.split()]
    except ValueError:
        return []


def attribute_numbers(element: Element, attribute: str, count: int, default: str, where: str) -> list[float]:
    """An attribute of ``count`` finite numbers separated by spaces."""
    text = element.get(attribute, default)
    values = read_numbers(text)
    if len(values) != count or not all(map(math.isfinite, values)):
        raise InputError(f"{where} has {attribute} '{text}', expected {count} finite number{'s' * (count > 1)}")
    return values


def text_numbers(text: str, count: int, what: str) -> list[float]:
    """``count`` finite numbers separated by spaces; ``what`` is what messages call them."""
    values = read_numbers(text)
    if len(values) != count or not all(map(math.isfinite, values)):
        raise InputError(f"{what} is '{text.strip()}', expected {count} finite numbers")
    return values


def one_number(text: str, what: str) -> float:
    """A number, which may be infinite; ``what`` is the beginning of the sentence that refuses it."""
    values = read_numbers(text)
    if len(values) != 1 or math.isnan(values[0]):
        raise InputError(f"{what} '{text[:40]}', expected a number")
    return values[0]


LONGEST_NAME = 1000
"""Characters of the name of a link or joint; sentences repeat them."""


def named_elements(parent: Element, tag: str, where: str) -> dict[str, Element]:
    """The children of one tag by their names, which they must have and of which none may appear twice."""
    found: dict[str, Element] = {}
    elements = parent.findall(tag)
    for element in elements:
        name = element.get("name", "")
        if not name:
            raise InputError(f"{where} has a <{tag}> without a name")
        if len(name) > LONGEST_NAME:
            raise InputError(f"{where} has a <{tag}> with a name of {len(name)} characters, expected at most {LONGEST_NAME}")
        if name in found:
            count = sum(other.get("name") == name for other in elements)
            raise InputError(f"{tag} name '{name}' appears {count} times in {where}")
        found[name] = element
    return found


def escape(text: str, others: Mapping[str, str] = {}) -> str:
    """The text with ``&``, ``<``, ``>`` and others replaced."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), *others.items()):
        text = text.replace(character, entity)
    return text


_ATTRIBUTE = re.compile(rb"""([^\s=/>"']+)(\s*=\s*)("[^"]*"|'[^']*')""")


@dataclass(eq=False)
class ElementSpan:
    """One element and the bytes it covers: ``start`` to ``tag_end`` is its start tag, ``end`` is behind its end tag."""

    tag: str
    attributes: dict[str, str]
    start: int
    tag_end: int
    self_closing: bool
    end: int = -1
    children: list[ElementSpan] = field(default_factory=list)

    def child(self, tag: str) -> ElementSpan | None:
        """The first child of that name."""
        return next((child for child in self.children if child.tag == tag), None)

    def named(self, tag: str) -> dict[str, ElementSpan]:
        """The children of one tag by their names."""
        return {child.attributes.get("name", ""): child for child in self.children if child.tag == tag}


class XmlText:
    """XML bytes, already vetted against hostile content, with the edits asked for so far."""

    def __init__(self, content: bytes, where: str) -> None:
        if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise InputError(f"{where} is UTF-16 text, expected UTF-8 to edit it in place")
        self.where = where
        self._content = content
        self._edits: list[tuple[int, int, bytes]] = []
        self._newline = "\r\n" if b"\r\n" in content else "\n"
        self.indent_step = "\t" if b"\n\t" in content else "  "
        parser = expat.ParserCreate()
        parser.buffer_text = True
        open_elements: list[ElementSpan] = []
        roots: list[ElementSpan] = []

        def begin(tag: str, attributes: dict[str, str]) -> None:
            start = parser.CurrentByteIndex
            tag_end = self._tag_end(start)
            span = ElementSpan(tag, attributes, start, tag_end, self._content[tag_end - 2 : tag_end] == b"/>")
            (open_elements[-1].children if open_elements else roots).append(span)
            open_elements.append(span)

        def finish(tag: str) -> None:
            span = open_elements.pop()
            span.end = span.tag_end if span.self_closing else self._tag_end(parser.CurrentByteIndex)

        parser.StartElementHandler = begin
        parser.EndElementHandler = finish
        try:
            parser.Parse(self._content, True)
        except expat.ExpatError as error:
            raise InputError(f"{self.where} is not well-formed XML: {error}") from None
        self.root = roots[0]

    def set_attributes(self, element: ElementSpan, values: Mapping[str, str], drop: Collection[str] = ()) -> None:
        """Replace the values of attributes where they stand; those the tag lacks are added behind the others.

        Attributes to ``drop`` are taken out.
        """
        missing = dict(values)
        first = element.start + 1 + len(element.tag.encode())
        last = element.start + 1 + len(element.tag.encode())
        for match in _ATTRIBUTE.finditer(self._content, first, element.tag_end):
            name, quoted = match.group(1).decode(), match.group(3)
            last = match.end()
            if name in drop:
                start = match.start()
                while self._content[start - 1 : start].isspace():
                    start -= 1
                self._edits.append((start, match.end(), b""))
            elif name in missing:
                quote = quoted[:1]
                value = escape(missing.pop(name), {quote.decode(): "&quot;" if quote == b'"' else "&apos;"})
                self._edits.append((match.start(3), match.end(3), quote + value.encode() + quote))
        if missing:
            added = "".join(f' {name}="{escape(value, {chr(34): "&quot;"})}"' for name, value in missing.items())
            self._edits.append((last, last, added.encode()))

    def put_texts(self, element: ElementSpan, texts: Mapping[str, str]) -> None:
        """Give children of an element, by their tags, other texts where these mean something else; those it lacks are added."""
        for tag, text in texts.items():
            child = element.child(tag)
            if child is None:
                self.insert_child(element, [f"<{tag}>{escape(text)}</{tag}>"], at_end=True)
                continue
            last = child.end if child.self_closing else self._content.rindex(b"</", child.tag_end, child.end)
            stated, numbers = self._content[child.tag_end : last].decode(), read_numbers(text)
            if read_numbers(stated) != numbers or not (numbers or stated == text):
                written = f">{escape(text)}</{tag}>" if child.self_closing else escape(text)
                first = self._content.rindex(b"/", child.start, child.tag_end) if child.self_closing else child.tag_end
                self._edits.append((first, last, written.encode()))

    def insert_child(self, element: ElementSpan, lines: Sequence[str], *, at_end: bool = False) -> None:
        """Put lines of XML into an element, first or last among its children, laid out as its neighbours are."""
        indent = self._indent(element.children[0] if element.children else element)
        if indent is not None and not element.children:
            indent += self.indent_step
        start = "" if indent is None else self._newline + indent
        text = "".join(start + line.lstrip() if indent is None else start + line for line in lines)
        if element.self_closing:
            closing = "" if indent is None else self._newline + (self._indent(element) or "")
            slash = self._content.rindex(b"/", element.start, element.tag_end)
            self._edits.append((slash, element.tag_end, f">{text}{closing}</{element.tag}>".encode()))
            return
        place = element.children[-1].end if at_end and element.children else element.tag_end
        self._edits.append((place, place, text.encode()))

    def move_meshes(self, here: Path, there: Path, notes: list[str]) -> None:
        """Name meshes of URDF and SDF that are named from one folder from another one; a note names those that are not there."""
        waiting, lost = [self.root] if here != there else [], []
        for element in waiting:  # which grows by what is in it
            waiting += element.children
            uri = element.child("uri")
            stated = b"" if uri is None else self._content[uri.tag_end : uri.end].partition(b"<")[0]
            name = stated.decode().strip() or element.attributes.get("filename", "")
            if element.tag != "mesh" or not name or "://" in name or name.startswith("/"):
                continue
            moved = os.path.relpath(here / name, there)
            if not os.path.isfile(here / name):  # noqa: PTH113 - a name that no file can have is that of none
                lost.append(name)
            elif uri is None:
                self.set_attributes(element, {"filename": moved})
            else:
                self.put_texts(element, {"uri": moved})
        if lost:
            notes.append(f"{len(lost)} meshes such as '{lost[0]}' are not in the folder '{here}' that they are named from")

    def remove(self, element: ElementSpan) -> None:
        """Take an element out, with its line where it has lines of its own."""
        start, indent = element.start, self._indent(element)
        if indent is not None:
            start -= len(indent)
            start -= 2 if self._content[start - 2 : start] == b"\r\n" else 1
        self._edits.append((start, element.end, b""))

    def edited(self) -> bytes:
        """The bytes with all edits applied."""
        content = self._content
        for start, end, replacement in sorted(self._edits, key=lambda edit: edit[:2], reverse=True):
            content = content[:start] + replacement + content[end:]
        return content

    def _indent(self, element: ElementSpan) -> str | None:
        """White space before an element that starts its line, None for one inside a line."""
        begin = element.start
        while begin > 0 and self._content[begin - 1 : begin] in (b" ", b"\t"):
            begin -= 1
        if begin == 0 or self._content[begin - 1 : begin] != b"\n":
            return None
        return self._content[begin : element.start].decode()

    def _tag_end(self, start: int) -> int:
        """Behind the ``>`` that closes the tag at ``start``; one inside quotes does not."""
        quote = 0
        for place in range(start, len(self._content)):
            byte = self._content[place]
            if quote:
                quote = 0 if byte == quote else quote
            elif byte in b"\"'":
                quote = byte
            elif byte == ord(">"):
                return place + 1
        raise InputError(f"{self.where} ends inside a tag")
