"""Logs read and written: files that are none, truncated ones, what is written is read back; examples in docstrings."""

from __future__ import annotations

import doctest

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dynid.errors import InputError
from dynid.io.logs import formats, layout, names, paths, read
from dynid.io.logs.read import read_recording, write_recording
from dynid.signals.recording import Recording, StaticRecording, WrenchRecording
from log_files import ARM, TAU, Q, T, plain


def test_files_that_are_no_logs(tmp_path):
    with pytest.raises(InputError, match="there is no such file"):
        read_recording(tmp_path / "log.csv", ARM)
    with pytest.raises(InputError, match=r"is a folder without metadata.yaml"):
        read_recording(tmp_path, ARM)
    (tmp_path / "log.docx").write_text("hello")
    with pytest.raises(InputError, match=r"the suffix '.docx' is not that of a log"):
        read_recording(tmp_path / "log.docx", ARM)


def test_content_wins_over_the_suffix_and_the_hash_knows_the_file(tmp_path):
    pq.write_table(pa.table(plain()), tmp_path / "log.csv")
    first = read_recording(tmp_path / "log.csv", ARM)
    assert first.source.format == "parquet"
    (tmp_path / "copy.parquet").write_bytes((tmp_path / "log.csv").read_bytes())
    assert read_recording(tmp_path / "copy.parquet", ARM).source.sha256 == first.source.sha256


@pytest.mark.parametrize("suffix", [".parquet", ".npz"])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.99])
def test_truncated_files_are_refused(tmp_path, suffix, share):
    recording = Recording(time=T, position=Q, torque=TAU, joint_names=ARM)
    content = write_recording(recording, tmp_path / f"log{suffix}").read_bytes()
    (tmp_path / f"cut{suffix}").write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match="may be truncated") as caught:
        read_recording(tmp_path / f"cut{suffix}", ARM)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("module", [formats, layout, names, paths, read], ids=lambda module: module.__name__)
def test_examples_run(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples write their files where they run
    found = doctest.testmod(module)
    assert found.attempted > 0
    assert found.failed == 0


NAMES = ("shoulder", "elbow")


def make(n: int = 50, **more) -> Recording:
    rng = np.random.default_rng(3)
    time = np.arange(n) * 0.004
    return Recording(time=time, position=rng.normal(size=(n, 2)), torque=rng.normal(size=(n, 2)), joint_names=NAMES, **more)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
@pytest.mark.parametrize("by_name", [False, True])
def test_written_recordings_read_back_to_the_last_bit(tmp_path, suffix, by_name):
    rng = np.random.default_rng(1)
    full = make(
        velocity=rng.normal(size=(50, 2)),
        acceleration=rng.normal(size=(50, 2)),
        current=rng.normal(size=(50, 2)),
        reference_position=rng.normal(size=(50, 2)),
        external_torque=rng.normal(size=(50, 2)),
    )
    path = write_recording(full, tmp_path / f"log{suffix}", by_name=by_name)
    again = read_recording(path, NAMES)
    assert again.quantities == full.quantities
    for name in ("time", *full.quantities):
        np.testing.assert_array_equal(getattr(again, name), getattr(full, name))
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
@pytest.mark.parametrize("n_joints", [2, 12])
def test_written_pose_tables_read_back(tmp_path, suffix, n_joints):
    rng = np.random.default_rng(2)
    root = rng.normal(size=(6, n_joints, n_joints))
    names = tuple(f"axis_{chr(97 + k)}" for k in range(n_joints))
    table = StaticRecording(
        position=rng.normal(size=(6, n_joints)),
        joint_names=names,
        inertia=root @ root.transpose(0, 2, 1),
        gravity=rng.normal(size=(6, n_joints)),
    )
    again = read_recording(write_recording(table, tmp_path / f"poses{suffix}"), names)
    assert isinstance(again, StaticRecording)
    # Only the lower triangle is written.
    np.testing.assert_allclose(again.inertia, table.inertia, rtol=1e-14, atol=1e-14)
    np.testing.assert_array_equal(again.gravity, table.gravity)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_written_wrenches_read_back(tmp_path, suffix):
    rng = np.random.default_rng(2)
    sensor = WrenchRecording(
        time=np.arange(9) * 0.002,
        wrench=rng.normal(size=(9, 6)),
        linear_acceleration=rng.normal(size=(9, 3)),
        angular_velocity=rng.normal(size=(9, 3)),
        angular_acceleration=rng.normal(size=(9, 3)),
        linear_velocity=rng.normal(size=(9, 3)),
        joint_names=NAMES,
        position=rng.normal(size=(9, 2)),
    )
    again = read_recording(write_recording(sensor, tmp_path / f"sensor{suffix}"), NAMES)
    assert isinstance(again, WrenchRecording)
    for name in ("time", "wrench", "linear_acceleration", "angular_velocity", "angular_acceleration", "position"):
        np.testing.assert_array_equal(getattr(again, name), getattr(sensor, name))


def test_writing_refuses_what_it_cannot_do(tmp_path):
    with pytest.raises(InputError, match=r"expected the suffix .csv, .parquet or .npz"):
        write_recording(make(), tmp_path / "log.xlsx")
    with pytest.raises(InputError, match="there is no folder"):
        write_recording(make(), tmp_path / "nowhere" / "log.csv")


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = write_recording(make(), tmp_path / "log.npz")
    before = path.read_bytes()

    def full_disk(*_args, **_more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez_compressed", full_disk)
    with pytest.raises(InputError, match="No space left on device"):
        write_recording(make(80), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["log.npz"]
