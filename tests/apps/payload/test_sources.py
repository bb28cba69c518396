"""Loads block by block, and bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_program import dynid


def test_online(folder: Path, loaded_log: Path) -> None:
    done = dynid("payload", folder, loaded_log, "--online", "--json")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-1]["values"]["m1"] == pytest.approx(2.0, rel=0.08)
    assert "m1" in lines[-1]["known"]
