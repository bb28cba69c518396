from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from dynid.adapters.memory import give_back


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only the GNU C library can be asked to")
def test_what_was_freed_is_given_back() -> None:
    kept = []
    blocks = []
    for _ in range(2_000):  # small blocks between others that stay: the heap cannot shrink by itself
        blocks.append(np.ones(12_000))
        kept.append(np.ones(10))
    full = resident()
    blocks.clear()
    give_back(much=0)
    assert resident() < full - 100e6
