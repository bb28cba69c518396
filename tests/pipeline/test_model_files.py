"""Runs as models in every format, each proven by reloading it; the proofs lie beside the files."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from bench import Bench
from cli_program import app
from dynid.dynamics.simulate import simulate
from dynid.errors import InconsistentModelError, InputError, UnknownNameError
from dynid.excitation.shapes import random_fourier
from dynid.io.logs.read import write_recording
from dynid.io.robots.mjcf_write import write_mjcf
from dynid.io.robots.read import read_robot
from dynid.pipeline.export import export_models
from dynid.pipeline.folder import load_result, save_result
from dynid.pipeline.identify import identify
from dynid.pipeline.model_files import FORMATS, read_exports
from dynid.pipeline.options import Settings
from dynid.pipeline.sections.closing import export_section
from dynid.report.page import Table
from messages import facts

QUICK = Settings(method="sdp", cutoff_hz=10.0, friction="linear")
"""What is exported is under test, not how friction is chosen."""


@pytest.fixture(scope="module")
def run(bench: Bench):
    return identify(bench.urdf, bench.log, QUICK)


def test_every_format_is_written_and_proven(run, tmp_path: Path) -> None:
    formats = [name for name in FORMATS if name not in ("cpp", "python", "matlab")]  # tests/io/code proves these
    exported = export_models(run, tmp_path / "models", formats)
    assert [item.format for item in exported] == ["urdf", "mjcf", "sdf", "c", "json", "latex"]
    for item in exported:
        if not (item.format in ("c", "latex") and math.isnan(item.parity)):
            assert item.parity < 1e-9, item.format
        for file in item.files:
            assert file.is_file()
    record = json.loads((tmp_path / "models" / "exports.json").read_text())["exports"]
    assert [entry["format"] for entry in record] == formats
    for entry in record:
        for name, digest in entry["sha256"].items():
            assert hashlib.sha256((tmp_path / "models" / name).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("format", ["urdf", "sdf"])
def test_links_carry_rotors_where_a_format_has_no_place_for_them_unless_they_are_wanted_apart(
    run, tmp_path: Path, format: str
) -> None:
    (carrying,) = export_models(run, tmp_path / "carrying", [format])
    (apart,) = export_models(run, tmp_path / "apart", [format], rotors_apart=True)
    found = [read_robot(item.path, "none").parameters.inertials for item in (carrying, apart)]
    np.testing.assert_allclose(found[1], run.model.parameters.inertials, rtol=1e-9, atol=1e-12)
    assert np.abs(found[0] - found[1]).max() > 1e-3
    assert sum("no place for rotor inertia: the links carry" in note for note in carrying.notes) == 1
    assert not any("the links carry" in note for note in apart.notes)
    lost = [math.sqrt(sum(one.relative**2 for one in item.lacking)) for item in (carrying, apart)]
    assert lost[0] < lost[1]


def test_exporting_again_renews_the_proof(run, tmp_path: Path) -> None:
    export_models(run, tmp_path, ["urdf", "json"])
    export_models(run, tmp_path, ["urdf"])
    record = json.loads((tmp_path / "exports.json").read_text())["exports"]
    assert [entry["format"] for entry in record] == ["json", "urdf"]


def test_without_a_compiler_c_is_written_but_not_proven(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    (item,) = export_models(run, tmp_path, ["c"])
    assert math.isnan(item.parity)
    assert "not proven: there is no C compiler on this machine" in item.notes
    assert (item.proven, item.failed, item.warning) == (False, False, "")
    assert item.path.is_file()


@pytest.fixture(scope="module")
def impossible(run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved run whose last link has a negative mass, as least squares may find it."""
    values = run.estimate.standard.as_dict()
    values["m4"] = -abs(values["m4"]) - 0.5
    standard = run.estimate.standard.with_values(list(values.values()))
    broken = replace(run, estimate=replace(run.estimate, standard=standard))
    return save_result(broken, tmp_path_factory.mktemp("impossible") / "run")


def test_a_failed_proof_is_told(impossible: Path, tmp_path: Path) -> None:
    with pytest.raises(InconsistentModelError, match=r"'dynid export RUN --allow-inconsistent'"):
        export_models(load_result(impossible), tmp_path, ["urdf"])
    with pytest.raises(InconsistentModelError, match="MuJoCo compiles no such bodies, allowed or not"):
        export_models(load_result(impossible), tmp_path, ["mjcf"], allow_inconsistent=True)
    urdf, sdf = export_models(load_result(impossible), tmp_path, ["urdf", "sdf"], allow_inconsistent=True)
    assert (urdf.proven, urdf.failed, sdf.proven, sdf.failed) == (False, True, True, False)
    assert urdf.warning == urdf.notes[-1]
    assert re.search(r"_identified.urdf' is NOT proven: its torque differs by .* Pinocchio misplaces", urdf.warning)
    assert sdf.warning == ""
    assert read_exports(tmp_path) == (urdf, sdf)
    section = export_section((urdf, sdf), tmp_path / "report.html")
    assert section is not None
    warnings, table, notes = section.parts
    assert isinstance(warnings, tuple)
    assert isinstance(table, Table)
    assert isinstance(notes, tuple)
    assert [(item.level, item.what) for item in warnings] == [("warning", f"Urdf: {urdf.warning}.")]
    assert table.rows[0][2].endswith("NOT proven")
    assert "NOT" not in table.rows[1][2]
    assert all("NOT proven" not in item.what for item in notes)


def test_a_format_that_refuses_takes_nothing_from_the_others(impossible: Path, tmp_path: Path) -> None:
    words = ["export", str(impossible), "-o", str(tmp_path), "--allow-inconsistent", "--to", "mjcf,sdf,json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert "dynid: mjcf was not written: " in done.stderr
    assert "'dynid repair RUN -o FILE.xml'" in done.stderr
    assert {item.format for item in read_exports(tmp_path)} == {"sdf", "json"}
    told = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    assert [text.split()[0] for text in told["refusals"]] == ["mjcf"]
    # what the refusal advises
    repaired = CliRunner().invoke(app, ["repair", str(impossible), "-o", str(tmp_path / "fixed.xml")])
    assert repaired.exit_code == 0
    assert (tmp_path / "fixed.xml").is_file()


def test_the_command_line_ends_with_one_where_a_proof_failed(impossible: Path, tmp_path: Path) -> None:
    arguments = ["export", str(impossible), "-o", str(tmp_path), "--allow-inconsistent", "--to"]
    done = CliRunner().invoke(app, [*arguments, "urdf,sdf", "--json"])
    assert done.exit_code == 1
    result = json.loads(done.stdout)
    assert result["proven"] is False
    assert result["parities"]["sdf"] < 1e-9 < result["parities"]["urdf"]
    assert any("NOT proven" in note for note in result["notes"])
    shown = CliRunner().invoke(app, [*arguments, "urdf"])
    assert shown.exit_code == 1
    assert re.search(r"^warning: '.*_identified.urdf' is NOT proven", shown.stdout, re.MULTILINE)
    fine = CliRunner().invoke(app, [*arguments, "sdf", "--json"])
    assert fine.exit_code == 0, fine.stdout
    assert json.loads(fine.stdout)["proven"] is True


def test_formats_are_checked_before_anything_is_written(run, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=facts("urdf", "mjcf", "sdf", "c", "json", "step")):
        export_models(run, tmp_path / "models", ["urdf", "step"])
    assert not (tmp_path / "models").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        export_models(run, tmp_path / "file" / "models", ["urdf"])


def test_mjcf_robot_of_a_saved_run_is_patched_with_its_meshes(bench: Bench, tmp_path: Path) -> None:
    """A loaded run finds the robot's own file, so includes and meshes beside it are found too; else its copy serves."""
    home = tmp_path / "home"
    home.mkdir()
    source = write_mjcf(bench.truth, home / "arm.xml").path
    text = source.read_text()
    part = text[text.index("<worldbody>") : text.index("</worldbody>") + len("</worldbody>")]
    (home / "bodies.xml").write_text(f"<mujocoinclude>{part}</mujocoinclude>")
    source.write_text(text.replace(part, '<include file="bodies.xml"/>'))
    found = identify(source, bench.log, QUICK)
    place = save_result(found, tmp_path / "run")
    (item,) = export_models(load_result(place), place, ["mjcf"])
    assert item.parity < 1e-9
    assert any("written as one file with what the source includes" in note for note in item.notes)
    plain = write_mjcf(bench.truth, tmp_path / "plain.xml").path
    place = save_result(identify(plain, bench.log, QUICK), tmp_path / "plain_run")
    plain.unlink()
    (item,) = export_models(load_result(place), place, ["mjcf"])
    assert item.parity < 1e-9


def test_published_robot_from_a_simulated_log(tmp_path: Path) -> None:
    """A robot of example-robot-data: identified, exported as URDF and MJCF, reloaded in Pinocchio and MuJoCo."""
    files = metadata.files("example-robot-data") or []
    source = next(Path(str(file.locate())) for file in files if str(file).endswith("ur5_robot.urdf"))
    copy = Path(shutil.copy(source, tmp_path / "ur5.urdf"))
    robot = read_robot(copy)
    rng = np.random.default_rng(0)
    friction = {
        f"{symbol}{j + 1}": size * rng.uniform(0.5, 1.5)
        for symbol, size in (("fv", 2.0), ("fc", 1.0), ("Ia", 0.3))
        for j in range(robot.n_joints)
    }
    truth = robot.with_parameters(friction)
    reference = random_fourier(truth, 5.0, 4, seed=1).samples(200.0)
    log = write_recording(simulate(truth, reference, rate_hz=200.0, seed=1).recording, tmp_path / "log.parquet")
    run = identify(copy, log, replace(QUICK, cutoff_hz=8.0))
    for item in export_models(run, tmp_path / "models", ["urdf", "mjcf"]):
        assert item.parity < 1e-9
