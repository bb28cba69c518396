"""Sizes that the pages of a parquet file state, read before any page is unpacked.

The footer says how large a column is; each page says again how large it is, and Arrow takes the memory that it says. Footer and page
headers are structs of Thrift's compact protocol: fields of (difference of the number, type), whole numbers as zigzag varints. They are
read here by hand, since looking at a damaged column through Arrow can end the process.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from dynid.errors import InputError

HEADER_BYTES = 4096
"""A page header is a few dozen bytes, some hundred with statistics; of one that does not end here nothing is said."""
FOOTER_BYTES = 16 << 20
_DEEPEST = 8
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)

# numbers of fields in the structs of the format
_ROW_GROUPS, _COLUMNS, _COLUMN, _PATH = 4, 1, 3, 3
_ALL_UNPACKED, _ALL_PACKED, _DATA_OFFSET, _DICTIONARY_OFFSET = 6, 7, 9, 11
_UNPACKED, _PACKED = 2, 3


class _BrokenError(Exception):
    """What stands there is no such struct; Arrow refuses it in its own words."""


class _Struct:
    """The fields of one struct by their number, and how many bytes it takes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0
        self.fields = self._struct(_DEEPEST)

    def _taken(self, n: int) -> bytes:
        if n > len(self.data) - self.place:
            raise _BrokenError
        self.place += n
        return self.data[self.place - n : self.place]

    def _varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._taken(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise _BrokenError

    def _whole(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _struct(self, depth: int) -> dict[int, Any]:
        fields: dict[int, Any] = {}
        number = 0
        while byte := self._taken(1)[0]:
            number = number + (byte >> 4) if byte >> 4 else self._whole()
            kind = byte & 0x0F
            fields[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_I16, _I32, _I64):
            return self._whole()
        if kind == _BINARY:
            return self._taken(self._varint())
        if kind == _STRUCT and depth:
            return self._struct(depth - 1)
        if kind in (_LIST, _SET) and depth:
            return self._list(depth - 1)
        if kind in (_TRUE, _FALSE, _BYTE):  # in lists a truth value is a byte
            return self._taken(1)
        if kind == _DOUBLE:
            return self._taken(8)
        raise _BrokenError  # the format has no maps

    def _list(self, depth: int) -> list[Any]:
        byte = self._taken(1)[0]
        n = byte >> 4 if byte >> 4 < 15 else self._varint()
        if n > len(self.data) - self.place:
            raise _BrokenError
        return [self._value(byte & 0x0F, depth) for _ in range(n)]


@dataclass(frozen=True)
class _Column:
    """Where the pages of a column in one row group lie, and how large they are together, packed and unpacked."""

    name: str
    start: int
    packed: int
    unpacked: int


def refuse_large_pages(where: str, file: BinaryIO, harmless: int) -> None:
    """Refuse a page that says it is larger than its column, packed or unpacked, before Arrow takes that memory."""
    try:
        columns = list(_columns(file))
    except _BrokenError:
        return
    for column in columns:
        for sizes in _page_sizes(file, column):
            for size, whole, what in zip(sizes, (column.packed, column.unpacked), ("has", "unpacks to"), strict=True):
                if not 0 <= size <= max(harmless, whole):
                    raise InputError(
                        f"{where}: a page of column '{column.name}' says that it {what} {size} bytes, expected at most the {whole} "
                        "of the column"
                    )


def _columns(file: BinaryIO) -> Iterator[_Column]:
    """Columns of all row groups, from the footer."""
    end = file.seek(0, io.SEEK_END)
    file.seek(max(0, end - 8))
    length = int.from_bytes(file.read(4), "little")
    if not 0 < length <= min(end - 8, FOOTER_BYTES):
        raise _BrokenError
    file.seek(end - 8 - length)
    for group in _listed(_Struct(file.read(length)).fields.get(_ROW_GROUPS)):
        for chunk in _listed(group.get(_COLUMNS)):
            column = chunk.get(_COLUMN)
            if isinstance(column, dict):
                yield _column(column)


def _listed(value: Any) -> list[dict[int, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _column(fields: dict[int, Any]) -> _Column:
    def whole(number: int) -> int:
        value = fields.get(number, 0)
        return value if isinstance(value, int) else 0

    starts = [start for start in (whole(_DATA_OFFSET), whole(_DICTIONARY_OFFSET)) if start > 0]
    path = fields.get(_PATH)
    names = [part.decode("utf-8", "replace") for part in path if isinstance(part, bytes)] if isinstance(path, list) else []
    return _Column(".".join(names), min(starts, default=-1), whole(_ALL_PACKED), whole(_ALL_UNPACKED))


def _page_sizes(file: BinaryIO, column: _Column) -> list[tuple[int, int]]:
    """Bytes of every page of a column, packed and unpacked, as far as its headers can be followed."""
    start, found = column.start, list[tuple[int, int]]()
    while 0 <= start < column.start + column.packed:
        file.seek(start)
        try:
            header = _Struct(file.read(HEADER_BYTES))
        except _BrokenError:
            break
        sizes = header.fields.get(_PACKED), header.fields.get(_UNPACKED)
        if not (isinstance(sizes[0], int) and isinstance(sizes[1], int)):
            break
        found.append((sizes[0], sizes[1]))
        if sizes[0] <= 0:
            break
        start += header.place + sizes[0]
    return found
