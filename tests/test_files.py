"""Files are whole or not there, and follow the user's mask."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.files import (
    check_memory,
    csv_lines,
    memory_budget,
    read_json,
    write_atomically,
    write_bytes,
    write_json,
    write_text,
)
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


def test_the_budget_is_a_share_of_memory_or_what_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DYNID_MEMORY_GB", raising=False)
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < memory_budget() <= 0.25 * machine
    monkeypatch.setenv("DYNID_MEMORY_GB", "1.5")
    assert memory_budget() == 1.5 * 2**30
    check_memory("x.npz", 1.5 * 2**30)
    with pytest.raises(InputError, match=r"x\.npz needs 2 GiB of memory, expected at most 1\.5 GiB; .* DYNID_MEMORY_GB=2 "):
        check_memory("x.npz", 2.0 * 2**30)
    for wrong in ("much", "-1", "nan", "0", "inf"):
        monkeypatch.setenv("DYNID_MEMORY_GB", wrong)
        with pytest.raises(InputError, match=f"DYNID_MEMORY_GB is '{wrong}', expected a number of GiB"):
            memory_budget()


def test_a_table_with_a_cell_beyond_the_limit_of_the_parser_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("name,value\nm1," + "1" * 140_000 + "\n")
    with pytest.raises(InputError, match=r"values '.*x\.csv' is no table: field larger"):
        csv_lines(tmp_path / "x.csv", "values")


def test_a_pipe_or_a_device_is_never_replaced_by_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        with pytest.raises(InputError, match=f"cannot write '.*{name}': it is no ordinary file"):
            write_bytes(tmp_path / name, b"")
    assert (tmp_path / "pipe").is_fifo()
    assert (tmp_path / "link").is_symlink()
