"""What every test shares: one BLAS thread per worker, repeatable hypothesis examples, and nothing built or flushed twice."""

from __future__ import annotations

import functools
import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from bench import Bench

# Workers already fill the cores; BLAS reads these once, when NumPy is first loaded.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# No deadline: the first example of a kernel pays for its compilation. `make test-laws` asks for many more examples.
EXAMPLES = int(os.environ.get("DYNID_EXAMPLES", "25"))
settings.register_profile("desk", deadline=None, max_examples=EXAMPLES)
settings.register_profile("ci", deadline=None, max_examples=EXAMPLES, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


HEAVY_ROOMS = ("cli", "golden", "pipeline", "matrix", "estimation", "laws", "docs", "papers", "contract")
"""Rooms whose files take long go first, so that what is left for the last worker is short."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order by rooms; within a room as collected, which every worker does alike."""
    here = Path(__file__).parent
    rank = {here / room: place for place, room in enumerate(HEAVY_ROOMS)}
    items.sort(key=lambda item: min((rank[folder] for folder in item.path.parents if folder in rank), default=len(rank)))


def pytest_collection_finish() -> None:
    """Keep what was imported and collected, some 400,000 objects, out of every later garbage collection."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A simulated arm with its description and logs."""
    from bench import make_bench

    return make_bench(tmp_path_factory.mktemp("bench"))


@pytest.fixture(scope="session", autouse=True)
def quick_machinery() -> Iterator[None]:
    """The flags of all verbs are built once, and files are not forced to the disk, which no test can see.

    Runs give memory back between their steps in a process that has much of it. One with all test files always has: an
    ``identify`` of one second would take up to four. ``tests/test_engine_memory.py`` asks for it whatever the size.
    """
    import typer.main
    import typer.testing

    import dynid.engine

    once = functools.cache(typer.main.get_command)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(typer.main, "get_command", once)
        patched.setattr(typer.testing, "_get_command", once)
        patched.setattr(os, "fsync", lambda _: None)
        patched.setattr(dynid.engine, "_resident", lambda: 0)
        yield


@pytest.fixture(scope="module", autouse=True)
def short_free_runs(request: pytest.FixtureRequest) -> Iterator[None]:
    """Reports of commands and runs let the model run free for 0.2 s instead of 2 s, a fifth of what such a test takes.

    The table they fill is tested in ``tests/validation`` and ``tests/pipeline/test_report.py``, which do not shorten it.
    """
    room = request.path.relative_to(Path(__file__).parent).parts[0]
    if room not in ("cli", "pipeline", "apps", "laws") or request.path.name == "test_report.py":
        yield
        return
    from dynid.model.robot import Robot
    from dynid.pipeline.sections import torque
    from dynid.signals.samples import Samples
    from dynid.validation.replay import HorizonError, error_over_horizons

    def short(identified: Robot, description: Robot, samples: Samples, most_windows: int) -> tuple[HorizonError, ...]:
        beginning = samples[: int(samples.time.searchsorted(samples.time[0] + 0.5))]
        return error_over_horizons(identified, description, beginning, most_windows)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torque, "error_over_horizons", short)
        yield
