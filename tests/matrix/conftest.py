from __future__ import annotations

from collections.abc import Iterator

import pytest

from matrix_place import Place


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """The arm, its logs and a run of every kind."""
    return Place(tmp_path_factory.mktemp("matrix"))


@pytest.fixture(scope="session", autouse=True)
def short_free_runs() -> Iterator[None]:
    """The model runs free for a fraction of a second in reports: what they show is not the subject here."""
    from dynid.pipeline.sections import torque

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torque, "error_over_horizons", lambda *_: ())
        yield
