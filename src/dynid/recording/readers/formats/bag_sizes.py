"""What the packed parts of a ROS bag unpack to, known before a library unpacks them.

A few bytes of MCAP or of a ROS 1 bag can declare, or really hold, gigabytes of zeros. Records are walked through by their lengths;
sizes are read from the headers, and where a header need not be true the part is unpacked piece by piece and counted.
"""

from __future__ import annotations

import bz2
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from dynid.errors import InputError

MOST_PART = 2**29
"""Bytes of one packed part; writers close one after a few megabytes."""
HARMLESS = 256 * 2**20
"""A bag that unpacks to no more may be packed as tightly as it likes."""
MOST_PACKING = 200.0
_PIECE = 2**20
_MCAP_HEAD = struct.Struct("<BQ")
_MCAP_CHUNK = struct.Struct("<QQQII")
_MCAP_MAGIC = 8
_CHUNK = 0x06


@dataclass(frozen=True)
class _Part:
    """A packed part: how it is packed, what its header says it unpacks to, and where it stands in the file."""

    packing: str
    declared: int
    start: int
    length: int


def check_mcap_sizes(where: str, file: BinaryIO) -> None:
    """Refuse an MCAP file whose chunks would not fit in memory."""
    _check(where, file, _mcap_parts(where, file))


def check_bag_sizes(where: str, file: BinaryIO) -> None:
    """Refuse a ROS 1 bag whose chunks would not fit in memory."""
    _check(where, file, _bag_parts(file))


class WithinFile:
    """A file that is never asked for more bytes than it has left: Python makes room for all that is asked before it reads.

    An index may point anywhere in a file, and a length read there may be any number.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._end = file.seek(0, 2)
        file.seek(0)

    def read(self, size: int = -1) -> bytes:
        """At most as many bytes as are left."""
        left = max(0, self._end - self._file.tell())
        return self._file.read(left if size < 0 else min(size, left))

    def seek(self, place: int, whence: int = 0) -> int:
        """As of the file."""
        return self._file.seek(place, whence)

    def tell(self) -> int:
        """As of the file."""
        return self._file.tell()

    def seekable(self) -> bool:
        """As of the file."""
        return self._file.seekable()


def _check(where: str, file: BinaryIO, parts: Iterator[_Part]) -> None:
    packed = unpacked = 0
    for part in parts:
        if part.packing in _PIECES and max(part.declared, part.length) > MOST_PART:
            size = max(part.declared, part.length)
            raise InputError(f"{where}: a chunk at byte {part.start} declares {size} bytes, expected at most {MOST_PART}")
        size = _counted(where, file, part) if part.packing in _PIECES else part.length
        packed += part.length
        unpacked += size
        if unpacked > HARMLESS and unpacked > MOST_PACKING * packed:
            raise InputError(
                f"{where}: unpacks from {packed} to more than {unpacked} bytes ({unpacked / packed:.0f} times), "
                f"expected at most {MOST_PACKING:.0f} times"
            )


def _mcap_parts(where: str, file: BinaryIO) -> Iterator[_Part]:
    """Chunks of an MCAP file; reading on behind a damaged record is left to the library."""
    end = file.seek(0, 2)
    place = _MCAP_MAGIC
    while place + _MCAP_HEAD.size <= end:
        file.seek(place)
        opcode, length = _MCAP_HEAD.unpack(file.read(_MCAP_HEAD.size))
        place += _MCAP_HEAD.size
        if length > end - place:
            raise InputError(
                f"{where}: a record at byte {place} declares {length} bytes where {end - place} are left; the file may be truncated"
            )
        if opcode == _CHUNK and length >= _MCAP_CHUNK.size:
            *_, declared, _, name = _MCAP_CHUNK.unpack(file.read(_MCAP_CHUNK.size))
            if name <= length - _MCAP_CHUNK.size - 8:
                packing = file.read(name).decode("ascii", "replace")
                (size,) = struct.unpack("<Q", file.read(8))
                left = place + length - file.tell()
                yield _Part(packing, declared, file.tell(), min(size, left))
        place += length


def _bag_parts(file: BinaryIO) -> Iterator[_Part]:
    """Chunks of a ROS 1 bag, as far as its records follow one another."""
    end = file.seek(0, 2)
    file.seek(0)
    file.readline(64)
    while file.tell() + 8 <= end:
        (length,) = struct.unpack("<L", file.read(4))
        if length > end - file.tell() - 4:
            return
        fields = _bag_fields(file.read(length))
        (size,) = struct.unpack("<L", file.read(4))
        start = file.tell()
        if size > end - start:
            return
        if fields.get(b"op") == b"\x05":
            declared = int.from_bytes(fields.get(b"size", b""), "little")
            yield _Part(fields.get(b"compression", b"none").decode("ascii", "replace"), declared, start, size)
        file.seek(start + size)


def _bag_fields(header: bytes) -> dict[bytes, bytes]:
    """Fields ``name=value`` of a record's header, each behind its length."""
    found, at = {}, 0
    while at + 4 <= len(header):
        size = int.from_bytes(header[at : at + 4], "little")
        name, _, value = header[at + 4 : at + 4 + size].partition(b"=")
        found[name] = value
        at += 4 + size
    return found


def _counted(where: str, file: BinaryIO, part: _Part) -> int:
    """Bytes that a packed part really unpacks to, refused where they are more than declared."""
    file.seek(part.start)
    packed, size = file.read(part.length), 0
    pieces = _PIECES[part.packing](packed)
    while True:
        try:
            got = next(pieces, 0)
        except Exception:  # damage, which the library tells of when it reads the chunk; or the library is missing
            return size
        if not got:
            return size
        size += got
        if size > part.declared:
            raise InputError(
                f"{where}: a chunk at byte {part.start} unpacks to more than the {part.declared} bytes it declares"
            )


def _bz2_pieces(packed: bytes) -> Iterator[int]:
    return _drained(bz2.BZ2Decompressor(), packed)


def _lz4_pieces(packed: bytes) -> Iterator[int]:
    import lz4.frame

    return _drained(lz4.frame.LZ4FrameDecompressor(), packed)


def _drained(decompressor: Any, packed: bytes) -> Iterator[int]:
    yield len(decompressor.decompress(packed, _PIECE))
    while not (decompressor.needs_input or decompressor.eof):
        yield len(decompressor.decompress(b"", _PIECE))


def _zstd_pieces(packed: bytes) -> Iterator[int]:
    import zstandard

    stream = zstandard.ZstdDecompressor(max_window_size=MOST_PART).stream_reader(packed)
    while got := stream.read(_PIECE):
        yield len(got)


_PIECES = {"bz2": _bz2_pieces, "lz4": _lz4_pieces, "zstd": _zstd_pieces}
"""Sizes of the pieces that packed bytes unpack to."""
