"""Sizes that the pages of a parquet file state, read before any page is unpacked.

The footer says how large a column is; each page says again how large it is unpacked, and Arrow takes the memory that it says. A page
header is a struct of Thrift's compact protocol: fields of (difference of the number, type), whole numbers as zigzag varints.
"""

from __future__ import annotations

from typing import Any, BinaryIO

from dynid.errors import InputError

HEADER_BYTES = 4096
"""A page header is a few dozen bytes, some hundred with statistics; of one that does not end here nothing is said."""
MOST_FIELDS = 64
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_UNPACKED, _PACKED = 2, 3


class _BrokenError(Exception):
    """What stands there is no page header; Arrow refuses it in its own words."""


class _Header:
    """Whole numbers among the fields of one struct, by their number, and how many bytes it takes."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0
        self.numbers = self._struct(4)

    def _next(self) -> int:
        if self.place >= len(self.data):
            raise _BrokenError
        self.place += 1
        return self.data[self.place - 1]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._next()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise _BrokenError

    def _whole(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def _struct(self, depth: int) -> dict[int, int]:
        numbers: dict[int, int] = {}
        field = 0
        for _ in range(MOST_FIELDS):
            byte = self._next()
            if byte == 0:
                return numbers
            field = field + (byte >> 4) if byte >> 4 else self._whole()
            kind = byte & 0x0F
            if kind in (_I16, _I32, _I64):
                numbers[field] = self._whole()
            else:
                self._skip(kind, depth)
        raise _BrokenError

    def _skip(self, kind: int, depth: int) -> None:
        if kind == _BYTE:
            self.place += 1
        elif kind == _DOUBLE:
            self.place += 8
        elif kind == _BINARY:
            length = self._varint()
            self.place += length
        elif kind == _STRUCT and depth:
            self._struct(depth - 1)
        elif kind not in (_TRUE, _FALSE):  # page headers hold no lists and maps
            raise _BrokenError


def refuse_large_pages(where: str, file: BinaryIO, metadata: Any, harmless: int) -> None:
    """Refuse a page that says it is larger than its column, packed or unpacked, before Arrow takes that memory."""
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            known = column.total_compressed_size, column.total_uncompressed_size
            for sizes in _page_sizes(file, column):
                for size, whole, what in zip(sizes, known, ("has", "unpacks to"), strict=True):
                    if not 0 <= size <= max(harmless, whole):
                        raise InputError(
                            f"{where}: a page of column '{column.path_in_schema}' says that it {what} {size} bytes, expected at "
                            f"most the {whole} of the column"
                        )


def _page_sizes(file: BinaryIO, column: Any) -> list[tuple[int, int]]:
    """Bytes of every page of a column chunk, packed and unpacked, as far as its headers can be followed."""
    start = column.data_page_offset
    if column.has_dictionary_page and column.dictionary_page_offset:
        start = min(start, column.dictionary_page_offset)
    end, found = start + column.total_compressed_size, list[tuple[int, int]]()
    while 0 <= start < end:
        file.seek(start)
        try:
            header = _Header(file.read(HEADER_BYTES))
        except _BrokenError:
            break
        packed, unpacked = header.numbers.get(_PACKED, 0), header.numbers.get(_UNPACKED, 0)
        found.append((packed, unpacked))
        if packed <= 0:
            break
        start += header.place + packed
    return found
