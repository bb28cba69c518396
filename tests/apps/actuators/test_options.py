"""Options of ``dynid actuators``."""

from __future__ import annotations

import pytest

from dynid.apps.actuators.options import ActuatorSettings
from dynid.errors import InputError


def test_auto_needs_output_error() -> None:
    with pytest.raises(InputError, match="--lag auto"):
        ActuatorSettings(lag="auto", method="linear")
