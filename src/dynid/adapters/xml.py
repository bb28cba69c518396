"""XML of unknown origin: parsed without entities, external references or surprises in size.

Every reader of URDF and MJCF passes its text through here before any other parser sees it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    _check_depth(root, where)
    return root


def serialize_xml(root: Element) -> str:
    """The element as text that any parser can take: no document type, no entities beyond XML's own."""
    from xml.etree.ElementTree import tostring

    return tostring(root, encoding="unicode")


def numbers(element: Element, attribute: str, count: int, default: str, where: str) -> list[float]:
    """An attribute of ``count`` numbers separated by spaces."""
    text = element.get(attribute, default)
    try:
        values = [float(part) for part in text.split()]
    except ValueError:
        values = []
    if len(values) != count or not all(abs(value) < float("inf") for value in values):
        raise InputError(f"{where} has {attribute} '{text}', expected {count} finite number{'s' * (count > 1)}")
    return values


def _check_depth(root: Element, where: str) -> None:
    level, depth = [root], 1
    while level := [child for element in level for child in element]:
        depth += 1
        if depth > DEEPEST_XML:
            raise InputError(f"{where} nests elements deeper than {DEEPEST_XML} levels")
