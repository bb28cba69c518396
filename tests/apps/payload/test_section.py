"""The page of a load: its mass, what it explains, and what makes it doubtful."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dynid.apps.payload.load import identify_payload
from dynid.apps.payload.section import report_payload


def test_a_load_and_what_makes_it_doubtful(run, loaded_log: Path, tmp_path: Path) -> None:
    load = identify_payload(run, [loaded_log])
    page = report_payload(run, load, tmp_path / "load.html").read_text("utf-8")
    assert f"{load.mass:.4g} kg" in page
    assert "The load explains the torque" in page
    doubtful = replace(load, warnings=("the load may be on another frame",), gain_sigma=0.1)
    page = report_payload(run, doubtful, tmp_path / "load.html").read_text("utf-8")
    assert "with reservations" in page
    assert "the load may be on another frame" in page
    assert "include 10 % (1 sigma) for the drive gains" in page
