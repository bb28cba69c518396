"""What ``dynid gains`` refuses beside a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynid.apps.gains.options import GainsSettings
from dynid.apps.gains.verb import gains_of
from dynid.errors import InputError
from messages import facts


@pytest.mark.parametrize(
    ("robot", "asked", "reading", "flag"),
    [
        ("arm.urdf", {}, {}, "--robot"),
        (None, {"effects": ("viscous",)}, {}, "--effects"),
        (None, {}, {"cutoff_hz": 4.0}, "--cutoff-hz"),
        (None, {}, {"velocity": "logged"}, "--velocity"),
    ],
)
def test_what_a_run_says_already_is_refused_beside_it(tmp_path: Path, robot, asked, reading, flag: str) -> None:
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(InputError, match=facts(flag, "run")):
        gains_of(str(tmp_path), ["log.csv"], robot, GainsSettings(mass=1.0, **asked), reading)
