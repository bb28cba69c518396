"""A look at a log: its part, notes and findings."""

from __future__ import annotations

from pathlib import Path

import pytest

import dynid
from dynid.errors import InputError
from dynid.pipeline.inspect import inspect_any, inspect_log


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspect")
    dynid.write_urdf(dynid.demo_robot(), folder / "arm.urdf")
    dynid.write_recording(dynid.demo_recording(seconds=6.0), folder / "log.csv")
    return folder


def test_times_of_the_log_or_of_all_logs_are_looked_at(place: Path) -> None:
    part, _ = inspect_log(f"{place / 'log.csv'}@1:3", place / "arm.urdf")
    assert (part.time[0], part.time[-1]) == pytest.approx((1.0, 3.0))
    later, check = inspect_log(place / "log.csv", place / "arm.urdf", from_s=2.0)
    assert later.time[0] == pytest.approx(2.0)
    assert check.facts["rows"] == later.n_samples


def test_a_motion_log_is_told_from_others(place: Path) -> None:
    found, check = inspect_any(place / "log.csv", place / "arm.urdf")
    assert isinstance(found, dynid.Recording)
    assert not any(finding.level == "error" for finding in check)
    with pytest.raises(InputError):
        inspect_any(place / "none.csv", place / "arm.urdf")
