"""Drives that are more than a gain: speeds as commands, a current loop, a motor that its speed limits; truth known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dynid.signals.commands import PositionControl


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"stall": np.array([-1.0])}, "stall of the drives is -1"),
        ({"no_load_speed": np.array([3.0])}, "expected both"),
        ({"lag_s": -1.0}, "lag of the current loop"),
        ({"velocity": True, "rate": True}, "follows the commanded speed already"),
    ],
)
def test_drives_that_cannot_be_are_refused(given: dict[str, Any], word: str) -> None:
    from dynid.errors import InputError

    with pytest.raises(InputError, match=word):
        PositionControl(np.ones(1), np.ones(1), **given)
