"""Options of a simulated log."""

from __future__ import annotations

import pytest

from dynid.errors import InputError
from dynid.pipeline.simulate_options import SimulateSettings


def test_one_number_is_for_every_joint_and_several_are_one_for_each() -> None:
    settings = SimulateSettings(viscous=(1.0,), coulomb=(0.5, 0.2))
    assert settings.given_effects() == {"viscous": 1.0, "coulomb": (0.5, 0.2)}
    assert SimulateSettings().given_effects() == {}


def test_text_is_no_number_of_encoder_bits() -> None:
    with pytest.raises(InputError, match="encoder_bits"):
        SimulateSettings(encoder_bits="many")  # type: ignore[arg-type]
