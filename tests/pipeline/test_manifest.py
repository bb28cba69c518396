"""The record of a run vouches for its files and for itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dynid.errors import InputError
from dynid.pipeline.manifest import (
    FORMAT,
    RECORD,
    ChangedFileError,
    add_files,
    changed_files,
    claim,
    clear_run,
    name_changed_files,
    read_file,
    read_record,
    sealed,
    write_record,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "numbers.json").write_text("1")
    write_record(tmp_path, {"format": FORMAT}, ["numbers.json", "absent.txt"])
    return tmp_path


def test_files_that_are_there_are_vouched_for(folder: Path) -> None:
    record = read_record(folder)
    assert list(record["files"]) == ["numbers.json"]
    assert read_file(folder, record, "numbers.json") == b"1"
    with pytest.raises(InputError, match=r"no hash of absent\.txt"):
        read_file(folder, record, "absent.txt")


def test_a_changed_file_is_named(folder: Path) -> None:
    record = read_record(folder)
    (folder / "numbers.json").write_text("2")
    assert changed_files(folder, record) == ("numbers.json",)
    with pytest.raises(ChangedFileError, match=r"numbers\.json"):
        read_file(folder, record, "numbers.json")


def test_a_changed_record_is_refused(folder: Path) -> None:
    record = json.loads((folder / RECORD).read_text())
    (folder / RECORD).write_text(json.dumps(record | {"kind": "other"}))
    with pytest.raises(ChangedFileError, match="changed after it was written"):
        read_record(folder)
    (folder / RECORD).write_text(json.dumps(record | {"format": FORMAT - 1}))
    with pytest.raises(InputError, match=f"expected {FORMAT}"):
        read_record(folder)


def test_files_are_entered_later(folder: Path) -> None:
    (folder / "report.html").write_text("<p>")
    add_files(folder, ["report.html"])
    assert sorted(read_record(folder)["files"]) == ["numbers.json", "report.html"]


def test_files_that_a_user_changed_stay(folder: Path) -> None:
    (folder / "own.txt").write_text("mine")
    (folder / "report.html").write_text("<p>")
    add_files(folder, ["report.html"])
    (folder / "report.html").write_text("<p>edited")
    clear_run(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["own.txt", "report.html"]


def test_a_folder_with_other_files_is_not_taken(folder: Path, tmp_path: Path) -> None:
    claim(folder)
    claim(tmp_path / "new")
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.tex").write_text("")
    with pytest.raises(InputError, match=r"thesis\.tex"):
        claim(other)


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../other", "sub/../../x", "a\0b"])
def test_names_outside_the_folder_are_refused_even_under_a_right_seal(name: str, folder: Path) -> None:
    record = json.loads((folder / RECORD).read_text())
    (folder / RECORD).write_text(json.dumps(sealed(record | {"files": {name: "0" * 64}})))
    with pytest.raises(InputError, match=r"'files' of .* is no table of files and hashes"):
        read_record(folder)


def test_missing_and_changed_files_are_told_apart(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "report.html").write_text("<p>")
    add_files(folder, ["report.html"])
    record = read_record(folder)
    (folder / "report.html").unlink()
    (folder / "numbers.json").write_text("2")
    name_changed_files(folder, record)
    assert [one.getMessage().rsplit("' ")[1] for one in caplog.records] == [
        "was changed after the run was written",
        "is missing",
    ]


def test_what_is_in_the_way_is_listed_to_a_few(tmp_path: Path) -> None:
    for name in "abc":
        (tmp_path / name).write_text("")
    with pytest.raises(InputError, match=r"holds other files \(a, b, c\) and is no run"):
        claim(tmp_path)
    (tmp_path / "d").write_text("")
    with pytest.raises(InputError, match=r"holds other files \(a, b, c, \.\.\.\) and is no run"):
        claim(tmp_path)


def test_what_is_refused_before_it_is_read(folder: Path) -> None:
    """A run of another format, a number that JSON does not have, and a file that no run writes, each by its number."""
    record = json.loads((folder / RECORD).read_text())
    (folder / RECORD).write_text(json.dumps(record | {"format": 3}))
    with pytest.raises(InputError, match="has format 3, expected 4: another version of dynid wrote it"):
        read_record(folder)
    (folder / RECORD).write_text(json.dumps(record | {"seconds": float("nan")}))
    with pytest.raises(ChangedFileError, match="was changed after it was written"):
        read_record(folder)
    with (folder / "numbers.json").open("wb") as file:
        file.truncate(2**30 + 1)  # takes no room on the disk
    with pytest.raises(InputError, match=r"numbers\.json of run .* has 1073741825 bytes, expected at most 1073741824"):
        read_file(folder, record, "numbers.json")
