"""Parquet tables, plain and as LeRobot writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dynid.errors import InputError
from dynid.io.logs.formats.parquet import _columns, _page_sizes, open_parquet, refuse_large_pages
from dynid.io.logs.log_file import LogFile
from dynid.io.logs.read import read_recording
from dynid.signals.recording import Recording
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


LEG = ("hip", "thigh", "calf")
LEG_T = np.arange(50) / 50.0
LEG_Q = np.outer(np.sin(LEG_T), [1.0, 0.5, -0.3])
COMMANDS = LEG_Q + 0.1


def leg_motion(path: Path, **options: Any) -> Recording:
    found = read_recording(path, list(LEG), **options)
    assert isinstance(found, Recording)
    return found


def test_lerobot_actions_are_commands(tmp_path: Path) -> None:
    table = pa.table(
        {
            "timestamp": LEG_T,
            "observation.state": pa.array(LEG_Q.tolist(), pa.list_(pa.float64(), 3)),
            "action": pa.array(COMMANDS.tolist(), pa.list_(pa.float64(), 3)),
            "episode_index": np.zeros(len(LEG_T), dtype=np.int64),
        }
    )
    pq.write_table(table, tmp_path / "episode.parquet")
    log = leg_motion(tmp_path / "episode.parquet")
    assert log.reference_position is not None
    assert np.allclose(log.reference_position, COMMANDS)


def written(path: Path, **options: object) -> Path:
    rng = np.random.default_rng(0)
    table = pa.table({"t": np.arange(50_000) * 1e-3, "q1": rng.normal(size=50_000), "tau1": rng.normal(size=50_000)})
    pq.write_table(table, path, **options)
    return path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"use_dictionary": False, "data_page_size": 10_000},
        {"row_group_size": 7_000, "write_statistics": ["t"]},
        {"compression": "none"},
    ],
)
def test_pages_add_up_to_what_the_footer_says(options: dict, tmp_path: Path) -> None:
    path = written(tmp_path / "log.parquet", **options)
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
    known = [group.column(k) for group in groups for k in range(metadata.num_columns)]
    with path.open("rb") as file:
        refuse_large_pages(str(path), file, 0)
        for (name, start, packed, unpacked), other in zip(list(_columns(file)), known, strict=True):
            assert (name, packed) == (other.path_in_schema, other.total_compressed_size)
            assert unpacked == other.total_uncompressed_size
            sizes = list(_page_sizes(file, start, packed))
            for whole, stated in zip((packed, unpacked), zip(*sizes, strict=True), strict=True):
                # the footer counts headers too, a few dozen bytes a page
                assert 0 <= whole - sum(stated) <= 200 * len(sizes)
    assert open_parquet(LogFile(path)).n_rows == 50_000


@pytest.mark.parametrize(("field", "sentence"), [(2, "unpacks to 2147483647 bytes"), (3, "has 2147483647 bytes")])
def test_a_page_that_asks_for_gigabytes_is_refused(field: int, sentence: str, tmp_path: Path) -> None:
    path = written(tmp_path / "log.parquet", use_dictionary=False, compression="none", row_group_size=10)
    content = path.read_bytes()
    start = pq.read_metadata(path).row_group(0).column(1).data_page_offset
    # the header begins with the kind of page and its sizes: 0x15 before each, zigzag varints of two bytes for 80 numbers or fewer
    first = start + 3 if field == 2 else start + 6
    assert content[start : start + 3] == b"\x15\x00\x15"
    assert content[start + 5] == 0x15
    size = b"\xfe\xff\xff\xff\x0f"  # 2^31 - 1
    path.write_bytes(content[:first] + size + content[first + 2 :])  # what lies behind is not reached
    with pytest.raises(InputError, match=f"a page of column 'q1' says that it {sentence}"):
        open_parquet(LogFile(path))
