"""Files are whole or not there, and follow the user's mask."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.files import read_json, write_atomically, write_bytes, write_json, write_text
from messages import facts


def test_content_arrives_as_it_is(tmp_path: Path) -> None:
    assert write_bytes(tmp_path / "a.bin", b"\x00\r\n").read_bytes() == b"\x00\r\n"
    assert write_text(str(tmp_path / "b.txt"), "ü\r\n").read_bytes() == "ü\r\n".encode()
    path = write_json(tmp_path / "c.json", {"x": np.array([1.0, np.nan]), "path": tmp_path})
    assert read_json(path, "folder") == {"x": [1.0, None], "path": str(tmp_path)}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.bin", "b.txt", "c.json"]


def test_writers_that_want_a_suffix_get_it(tmp_path: Path) -> None:
    path = write_atomically(tmp_path / "x.npz", lambda temporary: np.savez(temporary, x=np.arange(3)))
    assert np.load(path)["x"].tolist() == [0, 1, 2]


def test_permissions_follow_the_mask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        path = write_bytes(tmp_path / "x", b"")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


def test_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = write_text(tmp_path / "x.txt", "before")

    def half(temporary: Path) -> None:
        temporary.write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(InputError, match=facts("x.txt", "device")):
        write_atomically(path, half)
    with pytest.raises(ZeroDivisionError):
        write_atomically(path, lambda temporary: temporary.write_text(str(1 / 0)))
    assert path.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["x.txt"]


def test_impossible_places_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write '.*': there is no folder '.*no'"):
        write_bytes(tmp_path / "no" / "x", b"")
    with pytest.raises(InputError, match="it is a folder"):
        write_bytes(tmp_path, b"")
