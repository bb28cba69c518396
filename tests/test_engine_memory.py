from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from dynid import engine as memory
from dynid.engine import give_back


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.fixture(autouse=True)
def whole_process(monkeypatch) -> None:
    """As in a process of its own: all other tests are told that it has no memory."""
    monkeypatch.setattr(memory, "_resident", resident)
    monkeypatch.setattr(memory, "_left", 0)


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


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not say how much a process has")
def test_a_process_that_has_not_grown_is_left_alone(monkeypatch) -> None:
    looked: list[int] = []
    monkeypatch.setattr(memory.gc, "collect", lambda: looked.append(1))
    give_back(much=0)
    give_back(much=0)
    assert len(looked) == 1
    grown = np.ones(2 * memory.GROWN // 8)
    give_back(much=0)
    assert len(looked) == 2
    assert grown[0] == 1.0
