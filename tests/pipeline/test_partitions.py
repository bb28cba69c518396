"""Partitions of a long log: worked on apart, anywhere, they give the triangles of the log."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.engine import Dask, engine_from
from dynid.estimation.residuals import SEGMENT_ROWS, one_block_with_cells
from dynid.pipeline import partitions
from dynid.pipeline.data import open_logs
from dynid.pipeline.log import Logs
from dynid.pipeline.partitions import partitioned, partitioned_samples
from dynid.pipeline.row_plan import RowPlan
from dynid.pipeline.signal_filter import Filter
from dynid.pipeline.validate import prediction_errors
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import Regression, factorise
from dynid.regression.partitions import merged
from dynid.regression.row_source import RowSource

FILTER = Filter(20.0, 8.0, 4, "logged", row_band_hz=8.0)


def _parts(path: Path, rows: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[RowSource], RowSource]:
    monkeypatch.setattr(partitions, "PARTITION_ROWS", rows)
    robot = dynid.demo_robot()
    found = open_logs(robot, [path], dynid.Settings(stream="on"))
    assert isinstance(found, Logs)
    whole = RowPlan("torque", 8.0).source(found.robot, found.filtered(FILTER, 10**9, still=True).samples)
    return [part for log in partitioned(whole) for part in log], whole


def _difference(one: Regression, other: Regression) -> float:
    return max(
        float(np.abs(a.R.T @ a.R - b.R.T @ b.R).max() / np.abs(a.R.T @ a.R).max())
        for a, b in zip(one.factors, other.factors, strict=True)
    )


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty seconds with jitter of the clock, a pause and a lost stretch."""
    made = dynid.demo_recording(seconds=60.0, torque_noise=0.1)
    jitter = 2e-4 * np.random.default_rng(0).uniform(-1.0, 1.0, made.n_samples)
    time = np.array(made.time) + jitter
    time[4000:] += 3.0
    path = tmp_path_factory.mktemp("partitions") / "log.parquet"
    dynid.write_recording(made.with_(time=time), path)
    return path


@pytest.mark.parametrize("rows", [800, 1500, 10**6])
def test_partitions_have_the_triangles_of_the_log(log: Path, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    parts, whole = _parts(log, rows, monkeypatch)
    assert len(parts) == {800: 6, 1500: 3, 10**6: 2}[rows]
    found = merged(parts, map, whole)
    serial = factorise(whole)
    assert found.n_samples == serial.n_samples
    assert _difference(serial, found) < 1e-11


def test_threads_give_the_same_bits_as_one_after_the_other(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts, whole = _parts(log, 800, monkeypatch)
    one, other = merged(parts, map, whole), merged(parts, engine_from("threads:3").map, whole)
    assert all(np.array_equal(a.R, b.R) for a, b in zip(one.factors, other.factors, strict=True))


def test_many_parts_are_merged_as_a_tree(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynid.regression.partitions.BLOCK_LIMIT", 3)
    parts, whole = _parts(log, 800, monkeypatch)
    found = merged(parts, map, whole)
    assert found.n_blocks == 3
    assert _difference(factorise(whole), found) < 1e-11


def test_an_engine_does_not_change_what_is_identified(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "PARTITION_ROWS", 800)
    settings = dynid.Settings(
        method="wls", cutoff_hz=8.0, signal_band_hz=20.0, velocity="logged", dead_zone=0.02, stream="on"
    )
    settings = replace(settings, effects=("viscous", "coulomb", "armature"))
    runs = [dynid.identify(dynid.demo_robot(), log, replace(settings, engine=name)) for name in ("serial", "threads:2")]
    scale = np.abs(runs[0].estimate.base_values).max()
    np.testing.assert_allclose(runs[0].estimate.base_values, runs[1].estimate.base_values, atol=1e-9 * scale)
    assert runs[1].regression is not None
    assert runs[1].regression.n_blocks == 6
    one, other = (run.identification for run in runs)
    assert one is not None
    assert other is not None
    assert one.n_samples == other.n_samples
    np.testing.assert_allclose(other.rmse, one.rmse, rtol=1e-8)
    assert other.relative_error_raw == pytest.approx(one.relative_error_raw, rel=1e-8)
    # stretches of the rows that are transformed end with their partitions, so sigma is another estimate of the same
    ratio = runs[1].estimate.sigma[runs[1].estimate.sigma > 0.0] / runs[0].estimate.sigma[runs[0].estimate.sigma > 0.0]
    assert np.all((ratio > 0.7) & (ratio < 1.4))


def test_the_colour_of_the_noise_needs_no_rows_again(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes back from a part gives the covariance that its rows give, and costs less than a megabyte."""
    parts, _ = _parts(log, 10**6, monkeypatch)
    part = parts[0]
    sent = pickle.dumps(one_block_with_cells(part))
    assert len(sent) < 1_000_000
    back = pickle.loads(sent).regression(part)  # noqa: S301
    assert back.cells is not None
    base = reduce_to_base(dynid.demo_robot())
    whole = factorise(part)
    assert whole.n_samples < SEGMENT_ROWS  # one stretch in both
    with_rows = replace(back, sources=(part,))
    found = [dynid.estimate(data, base, dynid.OrdinaryLeastSquares()) for data in (whole, with_rows)]
    np.testing.assert_allclose(found[1].sigma, found[0].sigma, rtol=1e-6)
    assert found[1].details["degrees_of_freedom"] == pytest.approx(found[0].details["degrees_of_freedom"], rel=1e-6)
    together = one_block_with_cells(part).regression(part) + back
    assert together.cells is not None
    np.testing.assert_allclose(together.cells.count, 2.0 * back.cells.count)
    np.testing.assert_allclose(together.cells.gram(3), 2.0 * back.cells.gram(3))


def test_errors_of_partitions_add_up_to_those_of_the_log(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = dynid.Settings(method="ols", cutoff_hz=8.0, signal_band_hz=20.0, velocity="logged", stream="on")
    run = dynid.identify(dynid.demo_robot(), log, replace(settings, dead_zone=0.02, effects=("viscous",)))
    monkeypatch.setattr(partitions, "PARTITION_ROWS", 800)
    assert run.data is not None
    assert run.data.known is not None
    known = run.data.known
    assert len(partitioned_samples(known.samples[0], run.robot, run.judged_hz)) == 6
    (one, moved), (other, also) = (
        prediction_errors(run, run.estimate, known, engine_from(name)) for name in ("serial", "threads:2")
    )
    assert one is not None
    assert other is not None
    np.testing.assert_allclose(other.rmse, one.rmse, rtol=1e-9)
    assert [part.n_samples for part in other.logs] == [part.n_samples for part in one.logs]
    for name in ("lowest", "highest", "slowest", "fastest"):
        np.testing.assert_allclose(getattr(also, name), getattr(moved, name), atol=1e-9)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [("dask:", "no address"), ("cluster", "unknown engine"), ("threads:x", "expected a number")],
)
def test_an_engine_that_is_none_is_refused_as_a_setting(text: str, sentence: str) -> None:
    with pytest.raises(dynid.InputError, match=sentence):
        dynid.Settings(engine=text)


def test_dask_is_named_by_its_scheduler() -> None:
    assert engine_from("dask:tcp://127.0.0.1:8786") == Dask("tcp://127.0.0.1:8786")
    assert engine_from("dask") == Dask()
