"""Written motions held against their limits by other libraries: the small part of ``benchmarks/motions.py``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "motions.py"


def checked(*words: str) -> dict[str, Any]:
    """Run apart: benchmarks must be started before NumPy is loaded."""
    done = subprocess.run([sys.executable, SCRIPT, *words, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_points_of_both_delta_robots_are_what_another_program_finds():
    for found in checked("--points", "--seconds", "3")["points"]:
        assert abs(found["off_by"]) < 1e-6
        assert found["loop_gap"] < 1e-12
        assert not found["violations"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("--smoke",), ("--only", "gripper,rail,parallelogram", "--seconds", "2")], ids=["smoke", "more"]
)
def test_no_limit_is_broken_and_nothing_touches(words):
    found = checked(*words)
    assert found["violations"] == 0
    assert found["refused"] == 0
    assert found["motions"] == 2 * found["robots"]
