"""Where the public recordings and tables lie, for the tests that compare with them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_HERE = Path(__file__).resolve().parent


def shared_root() -> Path | None:
    """The data folder: ``DYNID_SHARED_DATA`` or ``../shared/data`` beside the repository; None where absent."""
    candidates = [os.environ.get("DYNID_SHARED_DATA"), _HERE.parent.parent / "shared" / "data"]
    for candidate in candidates:
        if candidate is not None and Path(candidate).is_dir():
            return Path(candidate)
    return None


def shared(relative: str) -> Path:
    """Path of a shared file, or skip the test with the reason."""
    root = shared_root()
    if root is None or not (root / relative).exists():
        pytest.skip(f"shared data '{relative}' is not on this machine")
    return root / relative
