"""Where the public recordings lie, for the tests that compare with them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared_root() -> Path | None:
    """The data folder, None where it is absent: ``DYNID_SHARED_DATA`` when set, otherwise ``../shared/data`` beside the clone."""
    named = os.environ.get("DYNID_SHARED_DATA")
    root = _BESIDE if named is None else Path(named)
    return root if root.is_dir() else None


def shared(relative: str) -> Path:
    """Path of a shared file, or skip the test with the reason."""
    root = shared_root()
    if root is None or not (root / relative).exists():
        pytest.skip(f"shared data '{relative}' is not on this machine")
    return root / relative


def need(*relatives: str) -> Path:
    """The data folder for a module whose every test reads these files; where one is missing, the module is one skip."""
    root = shared_root()
    for relative in relatives:
        if root is None or not (root / relative).exists():
            pytest.skip(f"every test here reads the shared recording '{relative}'", allow_module_level=True)
    assert root is not None
    return root
