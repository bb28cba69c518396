"""Logs into a store: each once, as the first ones fixed it, wherever they are worked on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.apps.fleet.add import add_to_store
from dynid.apps.fleet.entry import Entry
from dynid.apps.fleet.store import Store, open_store
from dynid.errors import InputError, TooShortError
from dynid.io.logs.read import read_recording, write_recording
from dynid.io.robots.read import read_robot
from dynid.pipeline import data as logs_module
from dynid.pipeline import partitions
from dynid.pipeline.data import open_unseen
from dynid.pipeline.signal_filter import to_samples
from small_fleet import DAY, Shop, make_shop


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return make_shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def copy(shop: Shop, tmp_path: Path) -> Store:
    return open_store(shutil.copytree(shop.store.folder, tmp_path / "store"))


def test_a_log_that_is_there_is_skipped_wherever_it_is_added(shop: Shop) -> None:
    found = add_to_store(shop.urdf, shop.logs[0], shop.store.folder, robot_id="other", day="2027-01-01")
    assert found.file is None
    assert found.skipped == ("log0.parquet is in the store already (robot A, 2026-03-01) and was skipped",)
    assert shop.store.robots == ("A",)


def test_of_several_logs_the_new_ones_are_added(shop: Shop, copy: Store) -> None:
    found = add_to_store(shop.urdf, [shop.logs[0], shop.logs[2]], copy.folder, robot_id="A", day="2026-03-03")
    assert found.logs == (str(shop.logs[2]),)
    assert len(found.skipped) == 1
    assert len(list(copy.entries())) == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cutoff_hz": 8.0}, r"was made with --cutoff-hz 15\.0, 8\.0 was given: a store never mixes options"),
        ({"effects": ("viscous",)}, r"was made with --effects viscous,coulomb,offset, viscous was given"),
        ({"friction": "linear"}, r"was made with --friction the default, linear was given"),
    ],
)
def test_other_options_are_refused_by_name(shop: Shop, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        add_to_store(shop.urdf, shop.logs[2], shop.store.folder, robot_id="A", day=DAY, **options)


def test_logs_of_several_days_need_a_day(shop: Shop) -> None:
    for log, when in ((shop.logs[1], 1_700_000_000), (shop.logs[2], 1_710_000_000)):
        os.utime(log, (when, when))
    with pytest.raises(InputError, match=r"was last changed on 2023-11-14, .* on 2024-03-09: give --day"):
        add_to_store(shop.urdf, shop.logs[1:], shop.store.folder)
    with pytest.raises(InputError, match="--day is 'monday', expected a day such as 2026-03-01"):
        add_to_store(shop.urdf, shop.logs[1:], shop.store.folder, day="monday")


def added_rows(shop: Shop, folder: Path, **options: Any) -> Entry:
    """The rows of the third log in a copy of the store."""
    store = open_store(shutil.copytree(shop.store.folder, folder))
    add_to_store(shop.urdf, shop.logs[2], store.folder, robot_id="C", day=DAY, **options)
    (entry,) = store.entries(["C"])
    return entry


@pytest.mark.parametrize("options", [{"stream": "on"}, {"stream": "on", "engine": "threads:2"}, {"engine": "threads:2"}])
def test_streams_and_engines_add_the_same_rows(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    whole = added_rows(shop, tmp_path / "whole")
    monkeypatch.setattr(partitions, "PARTITION_ROWS", 300)
    if "stream" in options:
        monkeypatch.setattr(logs_module, "read_recording", never)
    other = added_rows(shop, tmp_path / "other", **options)
    assert other.rows == whole.rows
    assert other.logs == whole.logs
    assert other.seconds == pytest.approx(whole.seconds, abs=1e-9)
    for one, two in zip(whole.triangles, other.triangles, strict=True):
        np.testing.assert_allclose(two.T @ two, one.T @ one, atol=1e-9 * np.abs(one.T @ one).max())
    for name in ("residual", "freedom", "torque_energy", "held_out_residual", "held_out_energy"):
        np.testing.assert_allclose(getattr(other, name), getattr(whole, name), rtol=1e-6, atol=1e-9)
    cut = options == {"stream": "on", "engine": "threads:2"}  # stretches that are transformed end with their partitions
    for one, two in zip(whole.noise, other.noise, strict=True):
        np.testing.assert_allclose(np.diag(two), np.diag(one), rtol=0.5 if cut else 1e-6)


def never(*_: Any, **__: Any) -> Any:
    raise AssertionError("a log was read into memory")


def test_held_out_rows_are_those_of_the_end_of_the_log(shop: Shop) -> None:
    """A fit to the rows before 65 % of the log, judged on those after it, by plain least squares on stacked rows."""
    (entry, _) = shop.store.entries()
    run, base = shop.store.run, shop.store.base
    found = open_unseen(run.robot, [shop.logs[0]], run.settings, in_memory=True)
    assert run.filter is not None
    samples = [to_samples(found.recordings[0], run.filter, run.settings.max_rows)]
    chunks = list(run.rows.source(run.robot, samples).passes())
    time = np.concatenate([chunk.time for chunk in chunks if chunk.time is not None])
    cut = found.recordings[0].time[0] + 0.65 * found.recordings[0].duration_s
    early, late = time < cut - 0.2, time >= cut + 0.2
    assert 0 < (~early & ~late).sum() < 0.1 * len(time)
    blocks = [np.concatenate(parts) for parts in zip(*(chunk.blocks for chunk in chunks), strict=True)]
    weights = 1.0 / np.sqrt(entry.residual / entry.freedom)
    stacked = [
        (w * np.hstack([block[:, :-1] @ (channel.expansion @ base.lift), block[:, -1:]]))
        for w, block, channel in zip(weights, blocks, shop.store.channels, strict=True)
    ]
    known = np.vstack([one[early] for one in stacked])
    beta = np.linalg.lstsq(known[:, :-1], known[:, -1], rcond=None)[0]
    left = [np.sum((one[late, -1] - one[late, :-1] @ beta) ** 2) / w**2 for one, w in zip(stacked, weights, strict=True)]
    np.testing.assert_allclose(entry.held_out_residual, left, rtol=1e-3)
    np.testing.assert_allclose(entry.held_out_energy, [np.sum(block[late, -1] ** 2) for block in blocks], rtol=1e-9)


def test_a_short_log_does_not_end_an_addition(shop: Shop, copy: Store, tmp_path: Path) -> None:
    short = tmp_path / "short.parquet"
    recording = read_recording(shop.logs[2], read_robot(shop.urdf))
    write_recording(recording.between(None, float(recording.time[0]) + 1.0), short)
    found = add_to_store(shop.urdf, [short, shop.logs[2]], copy.folder, robot_id="A", day="2026-03-03")
    assert found.logs == (str(shop.logs[2]),)
    assert any(note.startswith("short.parquet was left out") for note in found.notes)
    with pytest.raises(TooShortError, match="too short"):
        add_to_store(shop.urdf, short, copy.folder, robot_id="A", day="2026-03-04")
