"""Notes on what an estimate does not know."""

from __future__ import annotations

import pytest

from bench import Bench
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings

NARROW = "too narrow for friction"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"filter_on": "signals", "friction": "linear"}, True),
        ({"rows": "polynomial", "friction": "linear"}, True),
        ({"friction": "linear"}, False),
        ({"filter_on": "signals", "effects": ("viscous",), "friction": None}, False),
    ],
)
def test_intervals_of_friction_by_filtered_velocity_are_called_too_narrow(bench: Bench, options: dict, told: bool) -> None:
    settings = Settings(**({"method": "wls", "cutoff_hz": 10.0} | options))
    assert any(NARROW in note for note in identify(bench.urdf, bench.log, settings).notes) is told
