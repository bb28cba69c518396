"""Public names and flags are those of the snapshot; ``python tests/golden/make.py --surface`` takes a new one."""

from __future__ import annotations

import difflib

from golden.surface import SNAPSHOT, surface


def test_public_names_and_flags_are_those_of_the_snapshot() -> None:
    kept, found = SNAPSHOT.read_text("utf-8").splitlines(), surface().splitlines()
    changed = [line for line in difflib.unified_diff(kept, found, "snapshot", "now", lineterm="", n=0) if line[:2] != "@@"]
    assert not changed, "\n".join(changed)


def test_the_snapshot_holds_names_and_flags() -> None:
    lines = SNAPSHOT.read_text("utf-8").splitlines()
    assert any(line.startswith("dynid.identify(") for line in lines)
    assert "dynid identify --json" in lines
