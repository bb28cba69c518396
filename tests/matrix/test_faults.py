"""Whatever fails beside the identification, the run is written: report sections, exporters and the replay made to raise in turn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import dynid
from dynid.pipeline import model_files, report, verdict
from dynid.pipeline.export import write_result
from dynid.pipeline.result import IdentificationResult


def failing(*_: object, **__: object) -> object:
    raise RuntimeError("made to fail")


SETTINGS = dynid.Settings(method="wls", cutoff_hz=20.0, friction="linear", split=0.6)


@pytest.fixture(scope="module", name="files")
def _files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("arm")
    dynid.write_urdf(dynid.demo_robot(), folder / "arm.urdf")
    dynid.write_recording(dynid.demo_recording(), folder / "log.csv")
    return folder / "arm.urdf", folder / "log.csv"


@pytest.fixture(scope="module", name="run")
def _run(files: tuple[Path, Path]) -> IdentificationResult:
    return dynid.identify(*files, SETTINGS)


@pytest.mark.parametrize("section", report.IN_ORDER, ids=lambda one: one.__name__)
def test_a_section_that_fails_takes_nothing_with_it(section, run, tmp_path, monkeypatch):
    def fail(shown: object) -> None:
        raise RuntimeError("made to fail")

    fail.__name__ = section.__name__
    monkeypatch.setattr(report, "_MAKERS", [fail if one is section else one for one in report.IN_ORDER])
    written = write_result(run, tmp_path / "run", formats=["json"])
    assert any("could not be made: RuntimeError: made to fail" in note for note in written.refusals)
    assert written.report is not None
    assert dynid.load_result(tmp_path / "run").settings == run.settings


@pytest.mark.parametrize("format", [*model_files._FORMATS])
@pytest.mark.parametrize("step", ["write", "prove"])
def test_an_exporter_that_fails_takes_nothing_with_it(format, step, run, tmp_path, monkeypatch):
    """A proof is tried, and fails, on machines without the program that makes it too."""
    changed = replace(model_files._FORMATS[format], unprovable=lambda: "", **{step: failing})
    broken = {**model_files._FORMATS, format: changed}
    monkeypatch.setattr(model_files, "_FORMATS", broken)
    written = write_result(run, tmp_path / "run", formats=[format])
    assert "made to fail" in " ".join([*written.refusals, (tmp_path / "run" / "report.html").read_text()])
    assert dynid.load_result(tmp_path / "run").settings == run.settings


def test_a_replay_that_fails_takes_nothing_with_it(files, tmp_path, monkeypatch):
    monkeypatch.setattr(verdict, "replay", failing)
    found = dynid.identify(*files, SETTINGS)
    assert found.verdict is not None
    assert any("made to fail" in f"{reason.what} {reason.remedy}" for reason in found.verdict.reasons)
    write_result(found, tmp_path / "run", formats=["json"])
    assert dynid.load_result(tmp_path / "run").replay is None


def test_a_report_that_fails_takes_nothing_with_it(run, tmp_path, monkeypatch):
    monkeypatch.setattr("dynid.pipeline.export.write_report", failing)
    written = write_result(run, tmp_path / "run", formats=["json"])
    assert written.report is None
    assert any("report.html was not written: RuntimeError: made to fail" in note for note in written.refusals)
    assert dynid.load_result(tmp_path / "run").settings == run.settings
