"""A designed motion that several tests look at."""

from __future__ import annotations

import pytest

from designed_motion import designed_motion


@pytest.fixture(scope="package")
def excitation():
    return designed_motion()
