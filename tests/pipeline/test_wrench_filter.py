"""Filters of sensor logs by their names."""

from __future__ import annotations

import pytest

from dynid.errors import InputError
from dynid.pipeline.wrench_filter import SensorFilter, sensor_filter


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("none", SensorFilter("none")),
        ("savgol:21,2", SensorFilter("savgol", 21, 2)),
        ("butterworth:12", SensorFilter("butterworth", band_hz=12.0)),
        ("rows:5.5", SensorFilter("rows", band_hz=5.5)),
        ("polynomial:0.1", SensorFilter("polynomial", window_s=0.1)),
    ],
)
def test_a_text_names_a_filter(text: str, found: SensorFilter) -> None:
    assert sensor_filter(text) == found
    assert found.describe()


@pytest.mark.parametrize(
    "text", ["none:1", "savgol:20,2", "savgol:5,5", "savgol:5", "butterworth:-1", "rows:nan", "box:3", ""]
)
def test_what_names_none_is_refused_with_what_is_expected(text: str) -> None:
    with pytest.raises(InputError, match="savgol:WINDOW,ORDER"):
        sensor_filter(text)
