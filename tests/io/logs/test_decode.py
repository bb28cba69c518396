"""Rows sorted, left out and counted, and the clock against the motion."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dynid.errors import InputError
from dynid.io.logs.read import open_recording, read_recording
from log_files import ARM, RNG, TAU, Held, N, Q, T, held_log, numbered, plain, write_csv
from messages import facts


def test_hygiene_is_done_and_counted(tmp_path):
    columns = plain()
    order = np.r_[0:10, 20:30, 10:20, 30:40, 5, 6]
    columns = {name: values[order].copy() for name, values in columns.items()}
    columns["tau2"][3] = np.nan
    columns["dq1"][3:5] = np.nan
    recording = read_recording(write_csv(tmp_path / "log.csv", columns), ARM)
    kept = np.r_[0:3, 5:40]
    np.testing.assert_array_equal(recording.torque, TAU[kept])
    assert recording.source.n_rows_in_file == 42
    assert recording.source.n_dropped == 4
    text = " ".join(recording.source.notes)
    assert "2 rows with NaN" in text
    assert "sorted by their stamps" in text
    assert "2 rows with a repeated stamp" in text


def test_a_clock_that_starts_over_is_refused(tmp_path):
    twice = {name: np.r_[values, values] for name, values in plain().items()}
    twice["t"][N:] += 0.003
    with pytest.raises(InputError, match=facts("40", "0.312", "0.003", "clock")):
        read_recording(write_csv(tmp_path / "log.csv", twice), ARM)


def test_a_quantity_without_numbers_is_left_out(tmp_path):
    columns = plain() | numbered("tau", np.full((N, 3), np.nan))
    recording = read_recording(write_csv(tmp_path / "log.csv", columns), ARM)
    assert recording.torque is None
    assert any("torque holds no numbers" in note for note in recording.source.notes)


def test_streams_sort_late_rows_and_refuse_wild_ones(tmp_path):
    n = 5000
    time = np.arange(n) * 1e-3
    values = RNG.normal(size=(n, 3))
    order = np.arange(n)
    order[[2399, 2400]] = [2400, 2399]
    table = pa.table({"t": time[order]} | numbered("q", values[order]))
    pq.write_table(table, tmp_path / "log.parquet")
    whole = read_recording(tmp_path / "log.parquet", ARM)
    np.testing.assert_array_equal(whole.position, values)
    stream = open_recording(tmp_path / "log.parquet", ARM, chunk_rows=1200)
    np.testing.assert_array_equal(stream.read().position, values)
    wild = np.r_[3000:5000, 0:3000]
    pq.write_table(pa.table({"t": time[wild]} | numbered("q", values[wild])), tmp_path / "wild.parquet")
    np.testing.assert_array_equal(read_recording(tmp_path / "wild.parquet", ARM).position, values)
    with pytest.raises(InputError, match="stamps go back"):
        open_recording(tmp_path / "wild.parquet", ARM, chunk_rows=1200).read()


def test_streams_count_what_they_drop(tmp_path):
    columns = {name: values.copy() for name, values in plain().items()}
    columns["q1"][[0, 11, 39]] = np.nan
    stream = open_recording(write_csv(tmp_path / "log.csv", columns), ARM, chunk_rows=10)
    assert sum(dropped for _, dropped in stream.pieces()) == 3
    columns["q1"][:] = np.nan
    empty = open_recording(write_csv(tmp_path / "nan.csv", columns), ARM, chunk_rows=10)
    with pytest.raises(InputError, match=facts("40", "NaN", "row")):
        list(empty)


SLOW = np.arange(60.0)  # one row a second, no unit in the name
SLOW_Q = np.stack([np.sin(0.3 * SLOW), 0.8 * np.sin(0.21 * SLOW + 1.0)], axis=1)
SLOW_V = np.stack([0.3 * np.cos(0.3 * SLOW), 0.8 * 0.21 * np.cos(0.21 * SLOW + 1.0)], axis=1)


def test_a_row_a_second_is_told_from_a_kilohertz_by_its_velocity(tmp_path):
    motion = numbered("q", SLOW_Q) | numbered("dq", SLOW_V)
    recording = read_recording(write_csv(tmp_path / "slow.csv", {"t": SLOW} | motion), ["a", "b"])
    np.testing.assert_array_equal(recording.time, SLOW)
    assert "time column 't' is read as s: in ms its positions would change" in " ".join(recording.source.notes)
    np.testing.assert_array_equal(open_recording(tmp_path / "slow.csv", ["a", "b"], chunk_rows=7).read().time, SLOW)
    fast = numbered("q", SLOW_Q) | numbered("dq", 1e3 * SLOW_V)  # the same rows, a kilohertz
    recording = read_recording(write_csv(tmp_path / "fast.csv", {"t": SLOW} | fast), ["a", "b"])
    np.testing.assert_allclose(recording.time, 1e-3 * SLOW)


def test_without_velocity_the_unit_of_an_impossibly_fast_log_is_asked_for(tmp_path):
    path = write_csv(tmp_path / "slow.csv", {"t": SLOW} | numbered("q", SLOW_Q))
    with pytest.raises(InputError, match=facts("slow.csv", "'t' may be in ms or in s", "joint a", 'units = {time = "s"}')):
        read_recording(path, ["a", "b"])
    np.testing.assert_array_equal(read_recording(path, ["a", "b"], units={"time": "s"}).time, SLOW)
    np.testing.assert_allclose(read_recording(path, ["a", "b"], units={"time": "ms"}).time, 1e-3 * SLOW)


def test_a_robot_at_rest_leaves_the_unit_to_the_steps(tmp_path):
    noise = 1e-6 * RNG.normal(size=(60, 2))
    columns = {"t": SLOW} | numbered("q", noise) | numbered("dq", 1e-5 * RNG.normal(size=(60, 2)))
    np.testing.assert_allclose(read_recording(write_csv(tmp_path / "still.csv", columns), ["a", "b"]).time, 1e-3 * SLOW)


def test_a_locked_joint_that_the_log_shows_elsewhere(tmp_path):
    robot = Held({"shoulder_lift_joint": 0.5})
    path = write_csv(tmp_path / "log.csv", held_log(0.511))
    (finding,) = read_recording(path, robot).source.findings
    assert (finding.code, finding.level, finding.where) == ("lock_position", "warning", ("shoulder_lift_joint",))
    assert finding.what == "joint shoulder_lift_joint is locked at 0.5, in the log its column 'q2' is 0.511"
    assert read_recording(write_csv(path, held_log(0.509)), robot).source.findings == ()
    in_degrees = plain() | {f"q{k + 1}": np.rad2deg(Q[:, k]) for k in range(3)} | {"q2": np.full(N, np.rad2deg(0.5))}
    assert read_recording(write_csv(path, in_degrees), robot, units={"position": "deg"}).source.findings == ()
    moving = read_recording(write_csv(path, plain()), robot).source.findings
    assert f"runs from {Q[:, 1].min():.4g} to {Q[:, 1].max():.4g}" in moving[0].what


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


def test_lerobot_episodes(tmp_path):
    path = lerobot(tmp_path, None, Q, np.repeat([4, 5], N // 2))
    with pytest.raises(InputError, match=r"holds several episodes .* choose it with --episode N"):
        read_recording(path, ARM)
    recording = read_recording(path, ARM, episode=5)
    np.testing.assert_array_equal(recording.position, Q[N // 2 :])
    with pytest.raises(InputError, match=facts("4 to 5", "9", "4", "5", "episode")):
        read_recording(path, ARM, episode=9)
