"""Each number of a run is computed once: one opening of a log, one base reduction of a structure, one program, no second pass."""

from __future__ import annotations

import os
import sys
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import clarabel
import pyarrow
import pyarrow.parquet
import pytest

from bench import Bench
from dynid.dynamics import structure
from dynid.estimation.consistency import fit_problem
from dynid.io.logs.read import read_recording, write_recording
from dynid.io.robots.read import read_robot
from dynid.model.robot import Robot
from dynid.pipeline import signal_filter as signals
from dynid.pipeline.export import write_result
from dynid.pipeline.identify import identify
from dynid.pipeline.options import Settings
from dynid.regression import base
from dynid.regression.energy_rows import EnergyRows
from dynid.regression.polynomial_rows import PolynomialRows
from dynid.regression.row_filter import FilteredRows
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.recording import Recording

SOURCES = (TorqueRows, EnergyRows, PolynomialRows, FilteredRows)


@dataclass
class Opened:
    """Every opening of a file while it is watched, by Python and by Arrow."""

    files: Counter[str] = field(default_factory=Counter)
    watching: bool = False

    def note(self, path: Any) -> None:
        if self.watching and isinstance(path, str | os.PathLike):
            self.files[os.path.realpath(os.fspath(path))] += 1

    def of(self, path: Path) -> int:
        return self.files[os.path.realpath(path)]


OPENED = Opened()


@pytest.fixture(scope="session", autouse=True)
def _hook() -> None:
    """Python tells of every file that it opens; such a hook can only be added, so there is one."""
    sys.addaudithook(lambda event, arguments: OPENED.note(arguments[0]) if event == "open" else None)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """Openings from now on; Arrow opens files in native code, of which Python tells nothing."""
    for place, name in ((pyarrow.parquet, "ParquetFile"), (pyarrow, "OSFile"), (pyarrow, "memory_map")):
        kind = getattr(place, name)

        def counted(source: Any, *arguments: Any, kind: Callable[..., Any] = kind, **options: Any) -> Any:
            OPENED.note(source)
            return kind(source, *arguments, **options)

        monkeypatch.setattr(place, name, counted)
    OPENED.files.clear()
    OPENED.watching = True
    yield OPENED
    OPENED.watching = False


@dataclass
class Work:
    """How often the costly steps of a run were done."""

    bases: Counter[Any] = field(default_factory=Counter)
    """Base reductions by the structure they are of."""
    programs: int = 0
    solvers: int = 0
    passes: int = 0
    """Passes over the rows of any source."""
    filtered: int = 0
    """Recordings that were filtered."""


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    done = Work()

    def count(place: Any, name: str, note: Callable[..., None]) -> None:
        own = getattr(place, name)

        def counted(*arguments: Any, **options: Any) -> Any:
            note(*arguments)
            return own(*arguments, **options)

        monkeypatch.setattr(place, name, counted)

    def one_base(robot: Robot, *_: Any) -> None:
        done.bases[structure._key(robot)] += 1

    def one_more(name: str) -> Callable[..., None]:
        return lambda *_: setattr(done, name, getattr(done, name) + 1)

    monkeypatch.setattr(structure, "_kept", OrderedDict())  # what other tests found is not taken over
    count(base, "find_base", one_base)
    count(fit_problem, "fit_in", one_more("programs"))
    count(clarabel, "DefaultSolver", one_more("solvers"))
    count(signals, "process", one_more("filtered"))
    for source in SOURCES:
        count(source, "passes", one_more("passes"))
    return done


def test_a_run_computes_everything_once(bench: Bench, tmp_path: Path, opened: Opened, work: Work) -> None:
    settings = Settings(friction="sigmoid")
    run = identify(bench.urdf, bench.log, settings, validate_on=[bench.other_log])
    assert run.estimate.outcome.usable
    assert (opened.of(bench.log), opened.of(bench.other_log)) == (1, 1)
    assert work.bases[structure._key(run.robot)] == 1
    assert max(work.bases.values()) == 1
    assert work.programs == 1, (
        "one semidefinite program: the nearest to the description fits as well as any parameters could"
    )
    assert work.solvers <= 1, "which is handed to the solver once at most"
    assert work.passes > 0
    assert work.filtered > 0

    work.passes = work.filtered = 0
    published = write_result(run, tmp_path / "run", formats=("urdf", "mjcf", "sdf", "c", "json"))
    assert len(published.exported) == 5
    assert published.report.stat().st_size > 10_000
    assert (work.passes, work.filtered) == (0, 0), "report and export read what the run found"
    assert (opened.of(bench.log), opened.of(bench.other_log)) == (1, 1), "they do not read the logs"
    assert max(work.bases.values()) == 1
    assert (work.programs, work.solvers <= 1) == (1, True)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".npz"])
def test_a_log_of_any_format_is_opened_once(bench: Bench, tmp_path: Path, suffix: str, opened: Opened) -> None:
    robot = read_robot(bench.urdf)
    known = read_recording(bench.log, robot)
    assert isinstance(known, Recording)
    log = Path(write_recording(known, tmp_path / f"log{suffix}"))
    opened.files.clear()
    same = read_recording(log, robot)
    assert isinstance(same, Recording)
    assert opened.of(log) == 1
    assert same.n_samples == known.n_samples
    assert len(same.source.sha256) == 64


def _named(column: str, robot: Robot) -> str:
    """A numbered column by the name of its joint."""
    quantity = column.rstrip("0123456789")
    return column if quantity == column else f"{quantity}.{robot.joint_names[int(column[len(quantity) :]) - 1]}"


def test_a_log_that_lacks_joints_is_opened_once(bench: Bench, tmp_path: Path, opened: Opened) -> None:
    table = pyarrow.parquet.read_table(bench.log)
    named = table.rename_columns([_named(column, bench.truth) for column in table.column_names])
    log = tmp_path / "three.parquet"
    pyarrow.parquet.write_table(named.select([name for name in named.column_names if "elbow" not in name]), log)
    opened.files.clear()
    run = identify(bench.urdf, log, Settings(method="ols", cutoff_hz=10.0))
    assert run.robot.n_joints == 3
    assert opened.of(log) == 1
