"""Written motions held against their limits by other libraries: the small part of ``benchmarks/motions.py``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "motions.py"


def checked(*words: str) -> dict[str, object]:
    """Run apart: benchmarks must be started before NumPy is loaded."""
    done = subprocess.run([sys.executable, SCRIPT, *words, "--json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("--smoke",), ("--only", "gripper,rail,parallelogram", "--seconds", "2")], ids=["smoke", "more"]
)
def test_no_limit_is_broken_and_nothing_touches(words):
    found = checked(*words)
    assert found["violations"] == 0
    assert found["refused"] == 0
    assert found["motions"] == 2 * found["robots"]
