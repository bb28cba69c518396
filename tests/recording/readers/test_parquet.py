"""Parquet tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dynid.errors import InputError
from dynid.recording.readers.read import read_recording
from log_files import ARM, TAU, N, Q, T, check, plain
from messages import facts


def lerobot(tmp_path: Path, names: object, state: np.ndarray, episodes: np.ndarray | None = None) -> Path:
    file = tmp_path / "data" / "chunk-000" / "episode_000000.parquet"
    file.parent.mkdir(parents=True)
    (tmp_path / "meta").mkdir()
    info = {"features": {"observation.state": {"dtype": "float32", "names": names}, "video": {"names": None}}}
    (tmp_path / "meta" / "info.json").write_text(json.dumps(info))
    columns = {
        "observation.state": pa.array(state.tolist(), pa.list_(pa.float64())),
        "observation.effort": pa.array(TAU.tolist(), pa.list_(pa.float64(), 3)),
        "action": pa.array((Q + 1).tolist()),
        "timestamp": T,
        "frame_index": np.arange(N),
        "episode_index": np.zeros(N, dtype=np.int64) if episodes is None else episodes,
        "task": ["pick"] * N,
    }
    pq.write_table(pa.table(columns), file)
    return file


def test_lerobot_lists(tmp_path):
    recording = read_recording(lerobot(tmp_path, None, Q), ARM)
    check(recording, velocity=False)
    np.testing.assert_array_equal(recording.reference_position, Q + 1)


@pytest.mark.parametrize("wrap", [False, True])
def test_lerobot_names_order_the_joints(tmp_path, wrap):
    names = ["elbow_joint.pos", "gripper.pos", "shoulder_pan_joint.pos", "shoulder_lift_joint.pos"]
    state = np.column_stack([Q[:, 2], T, Q[:, 0], Q[:, 1]])
    recording = read_recording(lerobot(tmp_path, {"motors": names} if wrap else names, state), ARM)
    check(recording, velocity=False)
    assert any("ignored: gripper.pos" in note for note in recording.source.notes)


def test_lerobot_without_names_must_count_right(tmp_path):
    with pytest.raises(InputError, match=facts("4", "3", "position")):
        read_recording(lerobot(tmp_path, None, np.column_stack([Q, T])), ARM)


def test_lerobot_episodes(tmp_path):
    path = lerobot(tmp_path, None, Q, np.repeat([4, 5], N // 2))
    with pytest.raises(InputError, match=r"holds several episodes .* choose it with --episode N"):
        read_recording(path, ARM)
    recording = read_recording(path, ARM, episode=5)
    np.testing.assert_array_equal(recording.position, Q[N // 2 :])
    with pytest.raises(InputError, match=facts("4 to 5", "9", "4", "5", "episode")):
        read_recording(path, ARM, episode=9)


def test_parquet_refusals(tmp_path):
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(plain() | {"q2": ["high"] * N}), path)
    with pytest.raises(InputError, match=r"'q2' holds .* values, expected numbers|cannot be read as parquet: .*high"):
        read_recording(path, ARM)
    pq.write_table(pa.table(plain()).slice(0, 0), path)
    with pytest.raises(InputError, match="holds 10 columns and no rows"):
        read_recording(path, ARM)
    ragged = pa.array([row[: 3 - (k == 20)].tolist() for k, row in enumerate(Q)])
    pq.write_table(pa.table({"t": T, "q": ragged}), path)
    with pytest.raises(InputError, match=facts("'q'", "2", "3", "column")):
        read_recording(path, ARM)


def test_parquet_nulls_are_rows_without_a_number(tmp_path):
    q1 = [None if k in (3, 4) else float(v) for k, v in enumerate(Q[:, 0])]
    pq.write_table(pa.table(plain() | {"q1": q1}), tmp_path / "log.parquet")
    recording = read_recording(tmp_path / "log.parquet", ARM)
    assert recording.n_samples == N - 2
    lists = pa.array([None if k == 2 else row.tolist() for k, row in enumerate(Q)])
    pq.write_table(pa.table({"t": T, "q": lists}), tmp_path / "log.parquet")
    np.testing.assert_array_equal(read_recording(tmp_path / "log.parquet", ARM).position, np.delete(Q, 2, axis=0))
