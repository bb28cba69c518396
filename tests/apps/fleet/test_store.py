from __future__ import annotations

import datetime
import os
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.apps.fleet import store as store_module
from dynid.apps.fleet.add import add_to_store
from dynid.apps.fleet.entry import Entry, Key
from dynid.apps.fleet.store import Store, create_store, open_store
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.io.demo import demo_robot
from dynid.io.robots.urdf_write import write_urdf
from dynid.pipeline.signal_filter import to_samples
from small_fleet import DAY, OPTIONS, Shop, make_shop, small_robot


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return make_shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def copy(shop: Shop, tmp_path: Path) -> Store:
    return open_store(shutil.copytree(shop.store.folder, tmp_path / "store"))


def another(entry: Entry, day: int, robot: str = "K") -> Entry:
    key = Key(robot, DAY + datetime.timedelta(days=day), {})
    return replace(entry, key=key, logs=((f"log of day {day}", f"{day:064x}"),))


def test_rows_are_those_of_the_logs(shop: Shop) -> None:
    found = list(shop.store.entries())
    assert [entry.key.day.isoformat() for entry in found] == ["2026-03-01", "2026-03-02"]
    assert [dict(entry.key.condition) for entry in found] == [{}, {"tool": "B"}]
    assert all(entry.logs[0][0].startswith("log") and len(entry.logs[0][1]) == 64 for entry in found)


def test_triangles_hold_the_normal_matrix_of_the_unfiltered_rows(tmp_path: Path, shop: Shop) -> None:
    """With signals filtered instead of rows, the rows are plain ones, which NumPy can stack."""
    folder = tmp_path / "plain"
    add_to_store(shop.urdf, shop.logs[0], folder, day=DAY, filter_on="signals", **OPTIONS)
    store = open_store(folder)
    (entry,) = store.entries()
    run = store.run
    from dynid.io.logs.read import read_recording

    assert run.filter is not None
    samples = to_samples(read_recording(shop.logs[0], run.robot), run.filter, run.settings.max_rows)
    assert samples.torque is not None
    Y = torque_regressor(run.robot, samples.position, samples.velocity, samples.acceleration)
    for j, (triangle, channel) in enumerate(zip(entry.triangles, store.channels, strict=True)):
        rows = np.column_stack([Y[:, j][:, channel.columns], samples.torque[:, j]])
        expected = rows.T @ rows
        np.testing.assert_allclose(triangle.T @ triangle, expected, rtol=1e-9, atol=1e-9 * expected.max())


def test_another_structure_is_refused_by_name(shop: Shop, tmp_path: Path) -> None:
    other = demo_robot("none").only(["shoulder_pitch", "elbow", "forearm_roll"])
    moved = small_robot()
    joints = list(moved.joints)
    placement = np.array(joints[1].placement)
    placement[0, 3] += 0.01
    joints[1] = replace(joints[1], placement=placement)
    for robot, message in (
        (other.only(["shoulder_pitch", "forearm_roll"]), "its joints are shoulder_pitch, elbow, those of"),
        (replace(moved, joints=tuple(joints)), "the placement of joint 'elbow' differs by 0.01"),
    ):
        with pytest.raises(InputError, match=message):
            add_to_store(robot, shop.logs[2], shop.store.folder, robot_id="A", day=DAY)
    heavier = small_robot()
    heavier = heavier.with_parameters(heavier.parameters.with_values(1.1 * heavier.parameters.values))
    path = tmp_path / "heavier.urdf"
    write_urdf(heavier, path)
    found = add_to_store(path, shop.logs[0], shop.store.folder)  # masses are the prior's, not the structure's
    assert found.skipped


def test_an_entry_is_read_as_it_was_written(shop: Shop, copy: Store) -> None:
    (first, _) = shop.store.entries()
    copy.add(another(first, 5))
    (again,) = copy.entries(["K"])
    for name in ("residual", "freedom", "torque_energy", "held_out_residual", "held_out_energy"):
        np.testing.assert_array_equal(getattr(again, name), getattr(first, name))
    for one, two in zip(again.triangles, first.triangles, strict=True):
        np.testing.assert_array_equal(one, two)
    for one, two in zip(again.noise, first.noise, strict=True):
        np.testing.assert_array_equal(one, two)
    assert again.rows == first.rows
    assert again.seconds == first.seconds


class Killed(BaseException):
    """What ends a process between two instructions."""


def killed_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Let the process end at the step-th time that anything is written, synchronised or renamed."""
    left = [step]

    def counted(call: Any) -> Any:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return call(*arguments, **options)

        return wrapper

    monkeypatch.setattr(os, "fsync", counted(os.fsync))
    monkeypatch.setattr(store_module, "write_entry", counted(store_module.write_entry))
    monkeypatch.setattr(Path, "replace", counted(Path.replace))
    monkeypatch.setattr(Path, "write_text", counted(Path.write_text))
    monkeypatch.setattr(Path, "mkdir", counted(Path.mkdir))


def test_an_addition_that_is_cut_off_anywhere_leaves_the_store_whole(shop: Shop, copy: Store) -> None:
    first = next(shop.store.entries())
    complete, step = 0, 0
    while step < 100:
        with pytest.MonkeyPatch.context() as patch:
            killed_at(patch, step)
            try:
                copy.add(another(first, step))
                ended = False
            except Killed:
                ended = True
        found = [entry.key.day for entry in copy.entries(["K"])]
        there = DAY + datetime.timedelta(days=step) in found
        assert len(found) == complete + there
        if there:  # cut off after the rename: it is there, and adding it again says so
            complete += 1
            with pytest.raises(InputError, match="is in the store already"):
                copy.add(another(first, step))
        else:  # cut off before: nothing of it is there, and it can be added
            copy.add(another(first, step))
            complete += 1
        if not ended:
            break
        step += 1
    assert step > 6
    assert len(list(copy.entries(["K"]))) == complete
    assert not list((copy.folder / "partial").iterdir())


def test_a_store_that_is_cut_off_while_made_is_not_there(shop: Shop, tmp_path: Path) -> None:
    place = tmp_path / "new"
    with pytest.MonkeyPatch.context() as patch:
        killed_at(patch, 6)
        with pytest.raises(Killed):
            create_store(place, shop.store.run, shop.store.channels)
    assert not place.exists()
    with pytest.raises(InputError, match=r"is no store: it has no store\.json"):
        open_store(place)
    assert create_store(place, shop.store.run, shop.store.channels).robots == ()


def test_adding_a_day_reads_no_other_row(shop: Shop, copy: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Path] = []
    true = store_module.read_entry

    def counted(path: Path, *arguments: Any, **options: Any) -> Entry:
        opened.append(path)
        return true(path, *arguments, **options)

    monkeypatch.setattr(store_module, "read_entry", counted)

    def no_listing(self: Path) -> Iterator[Path]:
        raise AssertionError(f"{self} was listed")

    true_listing = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda self: true_listing(self) if self.name == "partial" else no_listing(self))
    found = add_to_store(shop.urdf, shop.logs[2], copy.folder, robot_id="A", day="2026-03-05")
    assert found.file is not None
    assert opened == []


def test_days_are_chosen_by_name_without_opening_others(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    true = store_module.read_entry
    monkeypatch.setattr(store_module, "read_entry", lambda path, *a, **o: (opened.append(path.name), true(path, *a, **o))[1])
    assert len(list(shop.store.entries(["A"], first=datetime.date(2026, 3, 2)))) == 1
    assert len(opened) == 1


def test_rows_of_another_store_are_refused(shop: Shop, copy: Store) -> None:
    (path,) = (p for p in copy.files("A") if p.name.startswith("2026-03-01"))
    twice = path.with_name("2026-03-09." + path.name.split(".", 1)[1])
    shutil.copy(path, twice)
    with pytest.raises(InputError, match="rows of two stores were copied together"):
        list(copy.entries())
    twice.unlink()
    with pytest.raises(InputError, match="another structure or other options"):
        list(Store(copy.folder, "0" * 64).entries())
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match="cannot be read as a row of a store"):
        list(copy.entries())


def test_damaged_parts_are_refused_in_one_sentence(copy: Store) -> None:
    (robot, *_) = copy.robots
    (file, *_) = copy.files(robot)
    odd = file.rename(file.with_name(f"2026-02-30{file.name[10:]}"))
    with pytest.raises(InputError, match=r"the day in the name of .* is '2026-02-30', expected a day such as"):
        list(copy.entries())
    odd.rename(file)
    channels = copy.folder / "channels.npz"
    for content in (b"", b"PK\x03\x04 broken", np.zeros(3).tobytes()):
        channels.write_bytes(content)
        with pytest.raises(InputError, match=r"has no readable channels\.npz"):
            list(open_store(copy.folder).entries())
    np.savez(channels, names=np.array(["a"]), columns0=np.array([0]), expansion0=np.eye(1))
    with pytest.raises(InputError, match="channels over other columns than"):
        list(open_store(copy.folder).entries())


def test_names_may_hold_any_character(shop: Shop, copy: Store) -> None:
    first = next(shop.store.entries())
    for number, name in enumerate(("../up", "a b/c", "Zelle 3 <öst>", "%2F", "..")):
        copy.add(another(first, number, name))
    assert set(copy.robots) == {"A", "../up", "a b/c", "Zelle 3 <öst>", "%2F", ".."}
    assert {path.parent for path in copy.folder.rglob("*.parquet")} == {
        copy.folder / "rows" / place.name for place in (copy.folder / "rows").iterdir()
    }
    with pytest.raises(InputError, match="--robot-id is empty"):
        Key(" ", DAY, {})
    with pytest.raises(InputError, match="has 81 characters, expected at most 80"):
        copy.add(another(first, 9, "x" * 81))


def test_a_store_that_could_not_be_made_leaves_nothing_and_sweeps_up_what_others_left(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = tmp_path / f".new.{'0' * 32}.new"
    (left / "rows").mkdir(parents=True)  # of a process that was killed

    def no_space(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(store_module.np, "savez", no_space)
    with pytest.raises(InputError, match=r"cannot write '.*new': No space left"):
        create_store(tmp_path / "new", shop.store.run, shop.store.channels)
    assert not list(tmp_path.iterdir())


def test_a_row_of_a_day_that_does_not_exist_is_refused(copy: Store) -> None:
    row = next(copy.files("A"))
    row.rename(row.with_name("2026-02-30" + row.name[10:]))
    with pytest.raises(InputError, match=r"the day in the name of '.*' is '2026-02-30', expected a day"):
        list(copy.entries())


@pytest.mark.parametrize("said", [b"../../elsewhere", b"\xff\xfe\x00", b"/etc/passwd", b"x" * 5000])
def test_where_a_log_is_kept_cannot_be_outside_the_store(said: bytes, copy: Store) -> None:
    (_, digest) = next(copy.entries()).logs[0]
    (copy.folder / "logs" / digest[:2] / digest).write_bytes(said)
    with pytest.raises(InputError, match=digest):
        copy.place_of(digest)


@pytest.mark.parametrize("name", ["columns0", "expansion0"])
def test_channels_that_do_not_fit_their_columns_are_refused(name: str, copy: Store) -> None:
    with np.load(copy.folder / "channels.npz") as stored:
        arrays = {key: stored[key] for key in stored.files}
    for wrong in (arrays[name][:0], arrays[name].reshape(-1)[:1], arrays[name] + 10**6, arrays[name].astype(float) * np.nan):
        np.savez(copy.folder / "channels.npz", **(arrays | {name: wrong}))
        if name == "expansion0" and np.isfinite(wrong).all() and wrong.shape == arrays[name].shape:
            continue  # other numbers, of the right shape
        with pytest.raises(InputError, match=r"has no readable channels\.npz: columns of channel"):
            _ = open_store(copy.folder).channels
