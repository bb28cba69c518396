"""Runs whose files are checked against the hashes in run.json."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.codec import to_record
from dynid.errors import InputError
from dynid.pipeline.export import export_models, write_result
from dynid.pipeline.manifest import ChangedFileError, read_record, sealed
from dynid.pipeline.model_files import read_exports
from dynid.pipeline.report import report_result
from fuzz.kills import kill_all, kill_store, race, whole
from fuzz.targets import _identified


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_result(_identified(), tmp_path / "run", formats=["urdf", "json"]).folder


def test_every_file_of_a_run_has_its_hash(folder: Path) -> None:
    assert whole(folder)
    assert {"estimate.json", "estimate.npz", "robot.urdf", "report.html", "exports.json"} <= set(
        read_record(folder)["files"]
    )
    export_models(dynid.load_result(folder), folder, ["mjcf"])
    report_result(dynid.load_result(folder), folder / "report.html")
    assert whole(folder)
    stage_names = [
        path for path in folder.rglob("*") if path.is_file() and b".new" in path.read_bytes().replace(b".newton", b"")
    ]
    assert not [path for path in stage_names if b".run." in path.read_bytes()]


@pytest.mark.parametrize("name", ["estimate.json", "estimate.npz", "robot.urdf", "run.json"])
def test_a_changed_file_is_named(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    changed = (
        content.replace(b"0.4 0 0", b"0.5 0 0").replace(b'"rank"', b'"Rank"') if not name.endswith("npz") else content[:-1]
    )
    assert changed != content or name == "run.json"
    (folder / name).write_bytes(changed if changed != content else content.replace(b"wls", b"ols", 1))
    with pytest.raises(ChangedFileError, match=rf"{name}' was changed"):
        dynid.load_result(folder)


def test_an_edited_geometry_is_not_exported(folder: Path) -> None:
    robot = folder / "robot.urdf"
    robot.write_text(robot.read_text().replace("0.4 0 0", "0.7 0 0"))
    with pytest.raises(InputError, match=r"robot.urdf' was changed"):
        export_models(dynid.load_result(folder), folder, ["urdf"])


def test_an_edited_model_or_report_is_named_and_no_longer_proven(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    model = next(folder.glob("*_identified.urdf"))
    model.write_text(model.read_text() + "\n<!-- mine -->\n")
    (folder / "report.html").unlink()
    with caplog.at_level("WARNING", logger="dynid"):
        dynid.load_result(folder)
    said = " ".join(record.getMessage() for record in caplog.records)
    assert f"{model.name}' was changed" in said
    assert "report.html' is missing" in said
    (edited,) = (item for item in read_exports(folder) if item.format == "urdf")
    assert not edited.proven
    assert "changed after the proof" in edited.notes[-1]


@pytest.mark.parametrize("version", [3, 5, None, "4", True])
def test_other_formats_are_refused(folder: Path, version: object) -> None:
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(sealed(record | {"format": version})))
    with pytest.raises(InputError, match="expected 4: another version of dynid wrote it"):
        dynid.load_result(folder)


def test_a_loaded_run_is_the_whole_run(folder: Path) -> None:
    run, again = _identified(), dynid.load_result(folder, with_samples=True)
    assert again.validation is not None
    assert to_record(again.validation) == to_record(run.validation)
    for one in fields(run):
        if one.name == "replay":  # made for the verdict, from samples that are not stored
            continue
        here, there = getattr(run, one.name), getattr(again, one.name)
        assert (here is None) == (there is None), one.name
        if isinstance(here, tuple):
            assert len(here) == len(there), one.name
            assert [type(x) for x in here] == [type(x) for x in there], one.name
    np.testing.assert_array_equal(run.estimate.base_values, again.estimate.base_values)
    np.testing.assert_allclose(again.samples[0].position, run.samples[0].position)


def test_a_folder_of_other_files_is_refused_and_other_files_of_a_run_stay(tmp_path: Path, folder: Path) -> None:
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "thesis.tex").write_text("ten years")
    with pytest.raises(
        InputError, match=r"holds other files \(thesis.tex\) and is no run: name a new or an empty folder with -o"
    ):
        write_result(_identified(), other)
    assert [path.name for path in other.iterdir()] == ["thesis.tex"]
    (folder / "notes.md").write_text("mine")
    write_result(_identified(), folder, formats=["json"])
    assert (folder / "notes.md").read_text() == "mine"
    assert not list(folder.glob("*.urdf")) or [path.name for path in folder.glob("*.urdf")] == ["robot.urdf"]


@pytest.mark.slow
def test_kills_leave_the_old_or_the_new() -> None:
    """Before every change of a name in each verb, and some at random; 200 of each: python tests/fuzz/kills.py."""
    for verb, found in kill_all(3).items():
        assert found["names changed"] > 5, verb
        assert found["old"], verb
        assert found["new"], verb


@pytest.mark.slow
def test_kills_of_an_addition_leave_a_store_without_or_with_it() -> None:
    found = kill_store(4)
    assert found["names changed"] > 4
    assert found["old"]
    assert found["new"]


def test_of_two_runs_at_once_one_is_refused() -> None:
    assert race(3) == {"[0, 2]": 3}
