"""File formats: those built in, and one that is added from outside."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.io.logs.formats import format_of, formats, register_format, unregister_format
from dynid.io.logs.read import open_recording, read_recording, write_recording
from dynid.io.logs.table import Table
from dynid.signals.recording import Recording
from messages import facts

N = 30
TIME = np.arange(N) * 0.01
Q, TAU = np.random.default_rng(3).normal(size=(2, N, 2))
JOINTS = ("shoulder", "elbow")


class Block:
    """Doubles after eight bytes of name and the number of columns."""

    name = "block"
    suffixes = (".blk",)

    def recognises(self, path: Path, head: bytes) -> bool:
        return head.startswith(b"BLOCKLOG")

    def open(self, path, options):
        values = self.values(path)
        return {"t": values[:, 0], "q": values[:, 1:3], "tau": values[:, 3:5]}

    @staticmethod
    def values(path: Path) -> np.ndarray:
        return np.frombuffer(path.read_bytes()[8:]).reshape(-1, 5)


class ChunkedBlock(Block):
    def open(self, path, options):
        def read(columns, rows, first):
            values = self.values(path)
            place = {name: k for k, name in enumerate(("t", "q1", "q2", "tau1", "tau2"))}
            for start in range(first, len(values), rows):
                yield {name: values[start : start + rows, place[name]] for name in columns}

        shapes = dict.fromkeys(("t", "q1", "q2", "tau1", "tau2"), ())
        return Table("block", shapes, read)


def write_block(path: Path) -> Path:
    path.write_bytes(b"BLOCKLOG" + np.column_stack([TIME, Q, TAU]).tobytes())
    return path


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    before = formats()
    yield
    for format in formats():
        if format not in before:
            unregister_format(format.name)


@pytest.mark.parametrize("format", [Block(), ChunkedBlock()], ids=["arrays", "chunks"])
def test_a_format_from_outside_is_read_as_any_other(tmp_path, format):
    register_format(format)
    path = write_block(tmp_path / "run.blk")
    recording = read_recording(path, JOINTS)
    assert isinstance(recording, Recording)
    np.testing.assert_array_equal(recording.position, Q)
    np.testing.assert_array_equal(recording.torque, TAU)
    assert recording.source.format == "block"
    assert recording.source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    stream = open_recording(path, JOINTS, chunk_rows=7)
    assert [piece.n_samples for piece in stream] == [7, 7, 7, 7, 2]
    np.testing.assert_array_equal(stream.read().torque, TAU)


def test_content_decides_over_the_suffix_and_later_formats_are_asked_first(tmp_path):
    register_format(Block())
    assert format_of(write_block(tmp_path / "run.csv")).name == "block"

    class OwnText:
        name = "own text"
        suffixes = (".csv",)

        def recognises(self, path, head):
            return False

        def open(self, path, options):
            raise NotImplementedError

    text = write_recording(Recording(time=TIME, position=Q, joint_names=JOINTS), tmp_path / "log.csv")
    assert format_of(text).name == "csv"
    register_format(OwnText())
    assert format_of(text).name == "own text"
    unregister_format("own text")
    assert format_of(text).name == "csv"


def test_a_format_of_the_same_name_takes_the_place_of_the_former():
    n = len(formats())
    register_format(Block())
    later = Block()
    register_format(later)
    assert len(formats()) == n + 1
    assert formats()[0] is later


def test_wrong_formats_are_refused(tmp_path):
    class Shouting(Block):
        suffixes = ("BLK",)

    with pytest.raises(InputError, match="format 'block' has the suffix 'BLK'"):
        register_format(Shouting())
    with pytest.raises(UnknownNameError, match="unknown registered format 'csv'"):
        unregister_format("csv")


@pytest.mark.parametrize(
    ("opened", "message"),
    [
        (lambda: 1 / 0, "cannot be read as block: division by zero"),
        (lambda: {"t": TIME, "q": Q[:-1]}, facts("'q'", "'t'", "29", "30", "column")),
        (lambda: {"t": TIME, "q": Q, "rate": 100.0}, "column 'rate' is the single value 100.0"),
        (lambda: {"t": TIME, "q1": Q[:, 0], "q2": ["high"] * N}, facts("q2", "column")),
        (lambda: Table("block", {"t": (), "q1": (), "q2": ()}, broken), "cannot be read as block: disk is gone"),
    ],
)
def test_what_a_format_gets_wrong_is_one_sentence_with_the_file(tmp_path, opened, message):
    class Wrong(Block):
        def open(self, path, options):
            return opened()

    register_format(Wrong())
    path = write_block(tmp_path / "run.blk")
    with pytest.raises(InputError, match=message) as caught:
        read_recording(path, JOINTS)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def broken(columns, rows, first):
    yield dict.fromkeys(columns, TIME)
    raise OSError("disk is gone")


def test_the_hash_is_made_once(tmp_path, monkeypatch):
    calls = []
    real = hashlib.file_digest
    monkeypatch.setattr("hashlib.file_digest", lambda *args: calls.append(args) or real(*args))
    recording = Recording(time=TIME, position=Q, torque=TAU, joint_names=JOINTS)
    for suffix in (".csv", ".parquet", ".npz"):
        path = write_recording(recording, tmp_path / f"log{suffix}")
        assert read_recording(path, JOINTS).source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
        assert open_recording(path, JOINTS).source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert len(calls) == 6


def test_every_suffix_has_one_built_in_format():
    suffixes = [suffix for format in formats() for suffix in format.suffixes]
    assert len(suffixes) == len(set(suffixes))
    assert {".csv", ".parquet", ".npz", ".mcap", ".db3", ".bag"} <= set(suffixes)
