"""Files are whole or not there, and follow the user's mask."""

from __future__ import annotations

import gc
import io
import os
import resource
import threading
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.files import (
    check_memory,
    csv_lines,
    json_value,
    limited_memory,
    memory_budget,
    read_arrays,
    read_json,
    read_limited,
    to_json,
    toml_table,
    write_atomically,
    write_bytes,
    write_json,
    write_text,
    yaml_value,
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


def test_numbers_and_depth_of_every_kind_of_text_have_limits() -> None:
    assert toml_table("a = [1, 2.5, true, 'x', { b = 9223372036854775807 }]", "t")["a"][4] == {"b": 2**63 - 1}
    assert toml_table(b"\xef\xbb\xbfa = 1", "t") == toml_table("a = 1", "t") == {"a": 1}
    assert json_value(b"\xef\xbb\xbf[null, 1e3]", "j") == [None, 1000.0]
    assert json_value("[-9223372036854775808]", "j") == [-(2**63)]
    shared = "a: &a [1, {x: 2}]\n" + "".join(
        f"{chr(98 + k)}: &{chr(98 + k)} [*{chr(97 + k)}, *{chr(97 + k)}]\n" for k in range(20)
    )
    assert len(yaml_value(shared, "y")) == 21  # looked at once, not a million times
    assert yaml_value("&a [*a]", "y")
    for text in ("a: 99999999999999999999", "a: [1, {b: 99999999999999999999}]", "99999999999999999999: a"):
        with pytest.raises(InputError, match=r"^y has an integer of 67 bits, expected at most 64"):
            yaml_value(text, "y")
    with pytest.raises(InputError, match=r"^y has the date 2020-01-01, expected numbers"):
        yaml_value("a: [2020-01-01]", "y")
    with pytest.raises(InputError, match=r"^y is not valid YAML: "):
        yaml_value("a: [", "y")
    for text, name in (("joint_limits: {true: {}}", "True"), ("a: [{12: 1}]", "12")):
        with pytest.raises(InputError, match=f"^y has the name {name}, which is no text: write it in quotes$"):
            yaml_value(text, "y")
    for text in ("[[9223372036854775809]]", "{'a': {'b': 9223372036854775809}}".replace("'", '"')):
        with pytest.raises(InputError, match="has an integer of 64 bits"):
            json_value(text, "j")
    with pytest.raises(InputError, match="'a' of j has an integer"):
        json_value('{"a": [9223372036854775809]}', "j")
    for opened, closed in ("[]", ('{"a":', "}")):
        inside = "1" if closed == "}" else ""
        json_value(opened * 60 + inside + closed * 60, "j")
        with pytest.raises(InputError, match="more than 60 deep"):
            json_value(opened * 62 + inside + closed * 62, "j")
    with pytest.raises(InputError, match=r"'a' of t has the date 2020-01-01, expected numbers, text, lists and tables"):
        toml_table("a = [[2020-01-01]]", "t")


def test_a_key_of_toml_has_few_parts() -> None:
    """The parser of Python takes memory by the square of their number."""
    assert toml_table("a" + ".a" * 20 + " = 1", "t")
    assert toml_table("a = '" + "x " * 10**6 + "'", "t")
    for key in (".".join("a" * 10**5), "[" + " . ".join(['"a"'] * 100) + "]\nb"):
        with pytest.raises(InputError, match="a key has more than 60 parts"):
            toml_table(f"{key} = 1", "t")


def test_a_file_is_read_into_no_more_than_it_holds(tmp_path: Path) -> None:
    """What is allowed may be more than the process can have."""
    (tmp_path / "x").write_bytes(b"abc")
    assert read_limited(tmp_path / "x", "x", 2**62) == b"abc"
    with pytest.raises(InputError, match="x has 3 bytes, expected at most 2"):
        read_limited(tmp_path / "x", "x", 2)


def test_limits_of_memory_end_with_their_blocks_also_in_threads() -> None:
    before = resource.getrlimit(resource.RLIMIT_AS)
    entered = threading.Barrier(2, timeout=0.2)

    def limited() -> None:
        with limited_memory("x", 2**30), suppress(threading.BrokenBarrierError):
            entered.wait()  # never both at once

    both = [threading.Thread(target=limited) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert entered.broken
    assert resource.getrlimit(resource.RLIMIT_AS) == before
    refused = pytest.raises(InputError, match=r"inner ask for more than 0\.25 GiB")
    gc.collect()  # what other tests left would be freed inside, and make room below the limits
    with limited_memory("outer", 2**30):
        outer, _ = resource.getrlimit(resource.RLIMIT_AS)
        with refused, limited_memory("inner", 2**28):
            assert resource.getrlimit(resource.RLIMIT_AS)[0] < outer
            bytearray(2**32)
        assert resource.getrlimit(resource.RLIMIT_AS)[0] == outer
    assert resource.getrlimit(resource.RLIMIT_AS) == before


def test_lines_of_a_table_are_counted_from_one(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("name, value\n\n m1 , 2\n")
    assert csv_lines(tmp_path / "x.csv", "values") == [(1, ["name", "value"]), (3, ["m1", "2"])]
    (tmp_path / "x.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"values '.*x\.csv' are not text"):
        csv_lines(tmp_path / "x.csv", "values", "are")


def archive(*members: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as made:
        for name, content in members:
            made.writestr(name, content)
    return out.getvalue()


def test_arrays_are_read_by_name_and_never_beyond_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.BytesIO()
    np.savez(out, a=np.arange(3), b=np.array(["x"]), c=np.array([True]))
    whole = out.getvalue()
    assert set(read_arrays(whole, tmp_path)) == {"a", "b", "c"}
    assert {name: one.tolist() for name, one in read_arrays(whole, tmp_path, ["c", "none"]).items()} == {"c": [True]}
    header = io.BytesIO()
    np.lib.format.write_array(header, np.arange(4.0), version=(2, 0))
    assert read_arrays(archive(("a.npy", header.getvalue())), tmp_path)["a"].tolist() == [0.0, 1.0, 2.0, 3.0]
    liar = io.BytesIO()
    np.lib.format.write_array_header_1_0(liar, {"descr": "<f8", "fortran_order": False, "shape": (10**9, 10**9)})
    with pytest.raises(InputError, match=r"declares shape \(1000000000, 1000000000\) but holds"):
        read_arrays(archive(("a.npy", liar.getvalue())), tmp_path)
    objects = io.BytesIO()
    np.savez(objects, a=np.array([{}], dtype=object))
    for content, why in (
        (objects.getvalue(), "holds Python objects, expected numbers"),
        (b"PK", "not a zip"),
        (whole[:-30], "zip"),
    ):
        with pytest.raises(InputError, match=f"cannot be read as arrays of numbers: .*{why}"):
            read_arrays(content, tmp_path)
    monkeypatch.setenv("DYNID_MEMORY_GB", "0.0000001")
    with pytest.raises(InputError, match="GiB of memory"):
        read_arrays(whole, tmp_path)


def test_json_has_no_infinity_and_ends_with_a_line() -> None:
    assert to_json({"x": float("inf"), "y": np.float64("nan")}) == '{\n  "x": null,\n  "y": null\n}\n'
