"""Options of ``dynid gains``."""

from __future__ import annotations

import pytest

from dynid.apps.gains.options import GainsSettings
from dynid.errors import UnknownNameError


def test_an_unknown_method_of_gains_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"'luck'.*tls.*sdp.*ols"):
        GainsSettings(method="luck")  # type: ignore[arg-type]
