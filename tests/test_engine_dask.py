"""Dask's workers: the results of a serial run, whatever happens to a worker, and refusals in one sentence."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid import engine_dask as dask
from dynid.engine import Dask
from dynid.errors import InputError
from dynid.estimation.residuals import one_block_with_cells
from dynid.pipeline import partitions
from dynid.pipeline.data import open_logs
from dynid.pipeline.log import Logs
from dynid.pipeline.partitions import partitioned
from dynid.pipeline.row_plan import RowPlan
from dynid.pipeline.signal_filter import Filter
from dynid.regression.factor import Regression, factorise
from dynid.regression.partitions import merged
from dynid.regression.row_source import RowSource
from engine_work import end_of_worker, process_of, sixth_of

distributed = pytest.importorskip("distributed", reason="Dask is not installed: pip install 'dynid[dask]'")

FILTER = Filter(20.0, 8.0, 4, "logged", row_band_hz=8.0)
PARTITIONS = 64


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers in this process, which start at once."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50
    ) as made:
        yield made
        dask.connected(made.scheduler_address, 0).close()
        dask.connected.cache_clear()


def test_order_numbers_progress_and_failures(cluster: Any) -> None:
    engine, told = Dask(cluster.scheduler_address), list[tuple[int, int]]()
    assert engine.n_workers == 2
    assert list(engine.map(sixth_of, [1, 2, 3], progress=lambda *done: told.append(done))) == [6, 3, 2]
    assert told == [(1, 3), (2, 3), (3, 3)]
    told.clear()
    found = dict(engine.completed(sixth_of, [3, 2, 1], progress=lambda *done: told.append(done)))
    assert found == {0: 2, 1: 3, 2: 6}
    assert told == [(1, 3), (2, 3), (3, 3)]
    with pytest.raises(ZeroDivisionError) as caught:
        list(engine.map(sixth_of, [1, 0]))
    assert "in item 1 of 2" in caught.value.__notes__
    assert list(engine.map(sixth_of, [])) == []


@pytest.mark.parametrize("way", ["map", "completed"])
def test_workers_give_up_what_was_taken(cluster: Any, way: str) -> None:
    results = getattr(Dask(cluster.scheduler_address), way)(sixth_of, [1, 2, 3, 6])
    for _ in range(3):
        next(results)
    deadline = time.monotonic() + 20.0
    while len(cluster.scheduler.tasks) > 1:
        assert time.monotonic() < deadline, (
            f"workers still hold {len(cluster.scheduler.tasks)} of 4 pieces of work, 1 is left"
        )
        time.sleep(0.01)
    assert len(list(results)) == 1


def test_no_scheduler_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "WAIT_S", 0.3)
    with pytest.raises(InputError, match=r"no scheduler answers at tcp://127\.0\.0\.1:1 within 0\.3 s"):
        list(Dask("tcp://127.0.0.1:1").map(sixth_of, [1]))
    with pytest.raises(InputError, match="no scheduler answers at nowhere"):
        list(Dask("nowhere").map(sixth_of, [1]))


def test_a_scheduler_without_workers() -> None:
    with (
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50) as empty,
        pytest.raises(InputError, match="has no worker, expected at least one"),
    ):
        list(Dask(empty.scheduler_address).map(sixth_of, [1]))


def test_workers_that_never_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask, "WAIT_S", 0.3)
    monkeypatch.setattr(dask, "POLL_S", 0.1)
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address="127.0.0.1:0", silence_logs=50
    ) as leaving:
        engine = Dask(leaving.scheduler_address)
        assert list(engine.map(sixth_of, [1])) == [6]
        leaving.scale(0)
        leaving.sync(leaving._correct_state)
        with pytest.raises(InputError, match=r"all workers were lost and none came back within 0\.3 s"):
            list(engine.map(sixth_of, [2]))
        dask.connected(leaving.scheduler_address, 0).close()


def test_other_versions_are_refused() -> None:
    own = dask.versions_here()
    dask.refuse_other_versions(own, {"tcp://a": dict(own)}, "tcp://s")
    with pytest.raises(
        InputError, match=rf"worker tcp://b of tcp://s runs numpy 1\.0, this process {np.__version__}; install the same"
    ):
        dask.refuse_other_versions(own, {"tcp://a": dict(own), "tcp://b": own | {"numpy": "1.0"}}, "tcp://s")


def test_the_install_line_where_dask_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(dask, "import_module", absent)
    with pytest.raises(InputError, match=r"not installed: pip install 'dynid\[dask\]'"):
        list(Dask(n=3).map(sixth_of, [1]))


def _parts(path: Path, rows: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[RowSource], RowSource]:
    monkeypatch.setattr(partitions, "PARTITION_ROWS", rows)
    robot, plan = dynid.demo_robot(), RowPlan("torque", 8.0)
    found = open_logs(robot, [path], dynid.Settings(stream="on"))
    assert isinstance(found, Logs)
    whole = plan.source(found.robot, found.filtered(FILTER, 10**9, still=True).samples)
    return [part for log in partitioned(whole) for part in log], whole


def _difference(one: Regression, other: Regression) -> float:
    return max(
        float(np.abs(a.R.T @ a.R - b.R.T @ b.R).max() / np.abs(a.R.T @ a.R).max())
        for a, b in zip(one.factors, other.factors, strict=True)
    )


def test_triangles_of_partitions_and_what_travels(cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from distributed.protocol import serialize

    dynid.write_recording(dynid.demo_recording(seconds=30.0, torque_noise=0.1), tmp_path / "log.parquet")
    parts, whole = _parts(tmp_path / "log.parquet", 800, monkeypatch)
    assert len(parts) == 3
    found = merged(parts, Dask(cluster.scheduler_address).map, whole)
    assert _difference(factorise(whole), found) < 1e-12
    for part in parts:
        assert (
            sum(memoryview(frame).nbytes for value in (part, one_block_with_cells(part)) for frame in serialize(value)[1])
            < 1_000_000
        )


@pytest.fixture(scope="module")
def four() -> Iterator[Any]:
    """The engine's own cluster: four processes of one thread."""
    yield Dask(n=4)
    client = dask.connected(None, 4)
    cluster = client.cluster
    client.close()
    cluster.close()
    dask.connected.cache_clear()


@pytest.mark.slow
def test_four_processes_and_one_killed_in_the_middle(four: Dask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = dynid.demo_recording(seconds=645.0, torque_noise=0.1)
    dynid.write_recording(made, tmp_path / "log.parquet")
    parts, whole = _parts(tmp_path / "log.parquet", 1000, monkeypatch)
    assert len(parts) == PARTITIONS
    serial, calm = factorise(whole), merged(parts, four.map, whole)
    assert _difference(serial, calm) < 1e-12
    victim = next(iter(set(four.map(process_of, range(8)))))

    def with_a_death(function: Any, items: Any) -> Iterator[Any]:
        for k, result in enumerate(four.map(function, items)):
            if k == 5:
                os.kill(victim, signal.SIGKILL)
            yield result

    disturbed = merged(parts, with_a_death, whole)
    assert disturbed.n_samples == calm.n_samples
    for one, other in zip(calm.factors, disturbed.factors, strict=True):
        assert np.array_equal(one.blocks, other.blocks)


def _memory_and_profile() -> tuple[str | None, bool]:
    from dask import config

    return os.environ.get("MALLOC_TRIM_THRESHOLD_"), config.get("distributed.worker.profile.enabled")


@pytest.mark.slow
def test_own_workers_keep_memory_and_are_not_watched_even_if_started_again(
    four: Dask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MALLOC_TRIM_THRESHOLD_", raising=False)
    client = dask.connected(None, 4)
    before = client.run(os.getpid)
    os.kill(next(iter(before.values())), signal.SIGKILL)
    deadline = time.monotonic() + 60.0
    while len(now := client.run(os.getpid, on_error="ignore")) < 4 or set(now.values()) == set(before.values()):
        assert time.monotonic() < deadline, "the worker was not started again"
        time.sleep(0.1)
    assert set(client.run(_memory_and_profile).values()) == {(None, False)}
    assert _memory_and_profile()[1], "only workers of this process have other settings"


@pytest.mark.slow
def test_work_that_ends_its_workers(four: Dask) -> None:
    with pytest.raises(InputError, match="ended several workers one after the other"):
        list(four.map(end_of_worker, [0]))
    assert list(four.map(sixth_of, [2])) == [3]


def test_nobody_else_can_give_work_to_workers_that_we_start() -> None:
    """Another user of the machine finds the port, but has not the key that this process made."""
    ours = dask.connected(None, 1)
    try:
        address = ours.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        assert ours.submit(sixth_of, 2).result() == 3
        workers = list(ours.scheduler_info()["workers"])
        assert all(worker.startswith("tls://") for worker in workers)
        for place in (address, *workers):
            for security in (None, distributed.security.Security.temporary()):
                with pytest.raises((OSError, TimeoutError, ValueError, RuntimeError)):
                    distributed.Client(place if security else place.replace("tls", "tcp"), security=security, timeout=2.0)
    finally:
        ours.close()
        dask.connected.cache_clear()
