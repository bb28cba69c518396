"""Packed parts of bags that unpack to more than memory holds are refused before anything is unpacked as a whole."""

from __future__ import annotations

import bz2
import io
import struct

import pytest

from dynid.errors import InputError
from dynid.recording.readers.formats import bag_sizes
from dynid.recording.readers.formats.bag_sizes import WithinFile, check_bag_sizes, check_mcap_sizes
from dynid.recording.readers.read import read_recording
from fuzz.targets import TARGETS

lz4 = pytest.importorskip("lz4.frame")
zstandard = pytest.importorskip("zstandard")

PACK = {"zstd": zstandard.compress, "lz4": lz4.compress, "bz2": bz2.compress, "": bytes, "none": bytes}
ZEROS = bytes(3_000_000)


def mcap(packing: str, data: bytes, declared: int, more: int = 0) -> io.BytesIO:
    packed = PACK[packing](data)
    chunk = (
        struct.pack("<QQQII", 0, 1, declared, 0, len(packing)) + packing.encode() + struct.pack("<Q", len(packed)) + packed
    )
    return io.BytesIO(b"\x89MCAP0\r\n" + struct.pack("<BQ", 6, len(chunk) + more) + chunk)


def bag(packing: str, data: bytes, declared: int) -> io.BytesIO:
    packed = PACK[packing](data)
    fields = [b"op=\x05", b"compression=" + packing.encode(), b"size=" + struct.pack("<L", declared)]
    header = b"".join(struct.pack("<L", len(field)) + field for field in fields)
    return io.BytesIO(b"#ROSBAG V2.0\n" + struct.pack("<L", len(header)) + header + struct.pack("<L", len(packed)) + packed)


CASES = [
    (check_mcap_sizes, mcap, "zstd"),
    (check_mcap_sizes, mcap, "lz4"),
    (check_bag_sizes, bag, "lz4"),
    (check_bag_sizes, bag, "bz2"),
]


@pytest.mark.parametrize(("check", "make", "packing"), CASES)
def test_parts_that_are_larger_than_they_say_or_than_memory_are_refused(check, make, packing, monkeypatch):
    check("log", make(packing, ZEROS, len(ZEROS)))  # three megabytes harm nobody
    with pytest.raises(InputError, match=r"log: a chunk at byte \d+ unpacks to more than the 1000 bytes it declares"):
        check("log", make(packing, ZEROS, 1000))
    with pytest.raises(InputError, match="declares 4000000000 bytes, expected at most 536870912"):
        check("log", make(packing, ZEROS, 4_000_000_000))
    monkeypatch.setattr(bag_sizes, "HARMLESS", 1_000_000)
    with pytest.raises(
        InputError, match=r"log: unpacks from \d+ to more than 3000000 bytes \(\d+ times\), expected at most 200"
    ):
        check("log", make(packing, ZEROS, len(ZEROS)))


@pytest.mark.parametrize(("check", "make", "packing"), [(check_mcap_sizes, mcap, ""), (check_bag_sizes, bag, "none")])
def test_parts_that_are_not_packed_are_left_alone(check, make, packing, monkeypatch):
    monkeypatch.setattr(bag_sizes, "HARMLESS", 1000)
    check("log", make(packing, ZEROS, len(ZEROS)))


def test_damage_is_left_to_the_library_and_lengths_must_fit_in_the_file():
    for check, make, packing in CASES:
        damaged = make(packing, bytes(range(256)) * 40, 256 * 40).getvalue()
        check("log", io.BytesIO(damaged[:-30] + bytes(range(30))))
    with pytest.raises(InputError, match=r"declares \d+ bytes where \d+ are left; the file may be truncated"):
        check_mcap_sizes("log", mcap("zstd", ZEROS, len(ZEROS), more=2**40))


def test_the_reader_asks_first(tmp_path):
    pytest.importorskip("mcap")
    pytest.importorskip("rosbags")
    (tmp_path / "log.mcap").write_bytes(mcap("zstd", ZEROS, 2**40).getvalue())
    (tmp_path / "log.bag").write_bytes(bag("bz2", ZEROS, 1000).getvalue())
    with pytest.raises(InputError, match=r"log\.mcap: a chunk .* declares 1099511627776 bytes"):
        read_recording(tmp_path / "log.mcap", ["a"])
    with pytest.raises(InputError, match=r"log\.bag: a chunk .* unpacks to more than"):
        read_recording(tmp_path / "log.bag", ["a"])


def test_a_file_is_never_asked_for_more_than_it_has():
    """A length of 2**52 behind an index would make Python look for that much memory before it reads."""
    file = WithinFile(io.BytesIO(b"abcdef"))
    assert file.seekable()
    file.seek(2)
    assert file.read(2**52) == b"cdef"
    assert file.read(2**52) == b""
    assert file.tell() == 6
    file.seek(0)
    assert file.read() == b"abcdef"


def test_a_length_inside_a_chunk_is_not_believed(tmp_path):
    pytest.importorskip("mcap")
    path = TARGETS["mcap"].make(tmp_path)
    content, place = bytearray(path.read_bytes()), 8
    while content[place] != bag_sizes._CHUNK:
        place += 9 + struct.unpack_from("<Q", content, place + 1)[0]
    (name,) = struct.unpack_from("<L", content, place + 9 + 28)
    struct.pack_into("<Q", content, place + 9 + 32 + name, 2**52)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"log\.mcap"):
        read_recording(path, ["shoulder", "elbow"])
