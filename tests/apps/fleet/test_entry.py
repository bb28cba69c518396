"""Rows of a store as files: read as they were written, and refused in one sentence where they are built otherwise."""

from __future__ import annotations

import copy
import datetime
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.apps.fleet.entry import Key, merged, parse_day, read_entry, write_entry
from dynid.arrays import freeze
from dynid.errors import InputError
from dynid.io.logs.read import read_recording
from dynid.signals.recording import Recording
from small_fleet import Shop, make_shop

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return make_shop(tmp_path_factory.mktemp("shop"))


def test_a_key_travels_and_says_what_it_is() -> None:
    key = Key("R1", datetime.date(2026, 3, 1), {"tool": "B", "cell": "4"})
    assert copy.copy(key) == key
    assert key.describe() == "robot R1, 2026-03-01, cell=4, tool=B"
    with pytest.raises(InputError, match="--robot-id is empty"):
        Key(" ", key.day, {})
    with pytest.raises(InputError, match="--day is '2026-02-30', expected a day such as"):
        parse_day("2026-02-30", "--day")


def test_merged_entries_hold_the_rows_of_all(shop: Shop) -> None:
    entries = list(shop.store.entries())
    both = merged(entries, shop.store.channels, shop.store.run.robot)
    for j, factor in enumerate(both.factors):
        assert factor.n_rows == sum(entry.rows[j] for entry in entries)
        square = sum(entry.triangles[j].T @ entry.triangles[j] for entry in entries)
        np.testing.assert_allclose(factor.R.T @ factor.R, square, rtol=1e-9, atol=1e-9 * np.abs(square).max())
    with pytest.raises(InputError, match="no row of the store"):
        merged([], shop.store.channels, shop.store.run.robot)


def test_an_entry_is_read_as_it_was_written(shop: Shop, tmp_path: Path) -> None:
    """Noise, which is symmetric, is kept by its half in single precision."""
    entry = next(shop.store.entries())
    rng = np.random.default_rng(0)
    roots = [rng.normal(size=N.shape) for N in entry.noise]
    noisy = replace(entry, noise=tuple(freeze(root @ root.T) for root in roots))
    write_entry(noisy, shop.store.fixed, tmp_path / "row.parquet")
    found = read_entry(tmp_path / "row.parquet", shop.store.fixed, shop.store.channels)
    for mine, theirs in zip(found.noise, noisy.noise, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    for mine, theirs in zip(found.triangles, noisy.triangles, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert found.held_out_error == pytest.approx(
        np.sqrt(sum(entry.held_out_residual) / sum(entry.held_out_energy)), rel=1e-12
    )
    light = read_entry(tmp_path / "row.parquet", shop.store.fixed, shop.store.channels, light=True)
    assert (light.key, light.triangles, light.noise) == (entry.key, (), ())


def _set(name: str, value: Any) -> Callable[[Any], Any]:
    def changed(table: Any) -> Any:
        place = table.schema.get_field_index(name)
        return table.set_column(place, table.schema.field(name), arrow.array([value], table.schema.field(name).type))

    return changed


def _kind(name: str, kind: Any) -> Callable[[Any], Any]:
    return lambda table: table.set_column(table.schema.get_field_index(name), name, arrow.array(["x"]).cast(kind))


BUILT_OTHERWISE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "a column is missing": (lambda table: table.drop_columns(["seconds"]), "column 'seconds' is missing, expected double"),
    "a column is text": (_kind("residual", arrow.string()), "column 'residual' is string"),
    "no row": (lambda table: table.slice(0, 0), "it has 0 rows, expected 1"),
    "two rows": (lambda table: arrow.concat_tables([table, table]), "it has 2 rows, expected 1"),
    "no robot": (_set("robot", None), "a value of it is missing"),
    "an empty name": (_set("robot", " "), "--robot-id is empty"),
    "no day": (_set("day", None), "a value of it is missing"),
    "no log": (_set("logs", None), "a value of it is missing"),
    "a log without hash": (_set("logs", [{"name": "a", "sha256": None}]), "a value of it is missing"),
    "no condition": (_set("condition", None), "cannot be read as a row of a store"),
    "rows of fewer channels": (_set("rows", [1]), "a value of it is missing"),
    "rows of one channel are missing": (_set("rows", [1, None]), "a value of it is missing"),
    "no rows": (_set("rows", None), "a value of it is missing"),
    "no numbers": (_set("freedom", None), "cannot be read as a row of a store"),
    "a number is missing": (_set("residual", [1.0, None, 2.0]), "'residual' is not"),
    "other lengths": (_set("freedom", [0.0]), "'freedom' is not 2 finite numbers"),
    "infinite": (_set("torque_energy", [float("inf")] * 3), "'torque_energy' is not"),
    "short triangles": (_set("triangles", [1.0, 2.0]), "holds 2 numbers of triangles, expected"),
    "no noise": (_set("noise", []), "holds 0 numbers of triangles"),
}


@pytest.mark.parametrize("case", BUILT_OTHERWISE)
def test_a_row_that_is_built_otherwise_is_refused(shop: Shop, tmp_path: Path, case: str) -> None:
    change, message = BUILT_OTHERWISE[case]
    (robot, *_) = shop.store.robots
    table = parquet.read_table(next(shop.store.files(robot)))
    metadata = table.schema.metadata
    path = tmp_path / "row.parquet"
    parquet.write_table(change(table).replace_schema_metadata(metadata), path)
    with pytest.raises(InputError, match=message) as refused:
        read_entry(path, shop.store.fixed, shop.store.channels)
    assert str(path) in str(refused.value) or "--robot-id" in message


def test_a_row_that_is_a_pipe_or_asks_for_gigabytes_is_refused(shop: Shop, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.parquet")
    with pytest.raises(InputError, match="is a pipe or a device"):
        read_entry(tmp_path / "pipe.parquet", shop.store.fixed, shop.store.channels)
    (robot, *_) = shop.store.robots
    path = next(shop.store.files(robot))
    start = parquet.read_metadata(path).row_group(0).column(0).data_page_offset
    content = path.read_bytes()
    assert content[start : start + 3] == b"\x15\x00\x15"  # a page of data, and the size it unpacks to
    (tmp_path / "row.parquet").write_bytes(content[: start + 3] + b"\xfe\xff\xff\xff\x0f" + content[start + 4 :])
    with pytest.raises(InputError, match=r"a page of column 'robot' says that it unpacks to 2147483647 bytes"):
        read_entry(tmp_path / "row.parquet", shop.store.fixed, shop.store.channels)


def test_files_with_wrong_bytes_give_an_entry_or_one_sentence(shop: Shop, tmp_path: Path) -> None:
    (robot, *_) = shop.store.robots
    content = next(shop.store.files(robot)).read_bytes()
    rng, path, refused = np.random.default_rng(0), tmp_path / "row.parquet", list[str]()
    for _ in range(150):
        changed = bytearray(content)
        for place in rng.integers(0, len(content), 1 + rng.integers(4)):
            changed[place] = rng.integers(256)
        path.write_bytes(changed[: len(content) if rng.random() < 0.8 else rng.integers(len(content))])
        try:
            read_entry(path, shop.store.fixed, shop.store.channels)
        except InputError as error:
            refused.append(str(error))
    assert len(refused) > 20
    assert not any("\n" in text for text in refused)


def test_what_an_entry_says_of_its_rows_follows_from_its_triangles(shop: Shop) -> None:
    """Against plain least squares with weights by the residuals themselves, and against the log."""
    entry, channels, base = next(shop.store.entries()), shop.store.channels, shop.store.base
    own = [R[:, :-1] @ one.expansion @ base.lift for R, one in zip(entry.triangles, channels, strict=True)]
    torque = [R[:, -1] for R in entry.triangles]
    np.testing.assert_allclose(entry.torque_energy, [float(y @ y) for y in torque], rtol=1e-9)
    rows = np.array(entry.rows, dtype=float)
    rank = np.linalg.matrix_rank(np.vstack(own))
    np.testing.assert_allclose(entry.freedom, rows - rank * rows / rows.sum(), rtol=1e-9)
    weights = np.sqrt(entry.freedom / entry.residual)
    W, y = (
        np.vstack([w * one for w, one in zip(weights, own, strict=True)]),
        np.concatenate([w * one for w, one in zip(weights, torque, strict=True)]),
    )
    beta = np.linalg.lstsq(W, y, rcond=None)[0]
    np.testing.assert_allclose(
        entry.residual, [float(np.sum((y - one @ beta) ** 2)) for one, y in zip(own, torque, strict=True)], rtol=0.02
    )
    np.testing.assert_allclose(
        entry.held_out_residual / entry.held_out_energy, entry.residual / entry.torque_energy, rtol=1.0
    )
    log = read_recording(shop.logs[0], shop.store.run.robot)
    assert isinstance(log, Recording)
    assert 0.8 * log.duration_s < entry.seconds <= log.duration_s
