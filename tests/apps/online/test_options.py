"""Options of ``dynid watch`` that contradict one another are refused by name."""

from __future__ import annotations

import pytest

from dynid.apps.online.options import OnlineSettings
from dynid.errors import InputError


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"forget": 1.0, "last": 2.0}, "--forget and --last were both given"),
        ({"resume": True}, "--resume goes on from a checkpoint: give --checkpoint FILE"),
        ({"every": 0.0}, "'every' is 0.0, expected a positive number of s"),
        ({"false_alarms": -1.0}, "'false_alarms' is -1.0, expected a positive number"),
    ],
)
def test_options_that_cannot_be(given: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        OnlineSettings(**given)  # type: ignore[arg-type]


def test_defaults_count_all_rows_alike() -> None:
    settings = OnlineSettings()
    assert settings.forget is None
    assert settings.last is None
    assert settings.source == "stdin"
