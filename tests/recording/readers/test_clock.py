"""Clocks, their units, and rows in order of time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dynid.errors import InputError
from dynid.recording.readers.read import open_recording, read_recording
from log_files import ARM, RNG, TAU, N, Q, T, numbered, plain, write_csv
from messages import facts


@pytest.mark.parametrize(
    ("name", "scale"), [("t_ms", 1e3), ("time_us", 1e6), ("timestamp_ns", 1e9), ("t", 1e3), ("t", 1e6), ("t", 1e9)]
)
def test_units_of_time_are_found_and_said(tmp_path, name, scale):
    path = write_csv(tmp_path / "log.csv", {name: T * scale} | numbered("q", 0.01 * Q))
    recording = read_recording(path, ARM)
    np.testing.assert_allclose(recording.time, T, atol=1e-12)
    assert any("is read as" in note for note in recording.source.notes)
    np.testing.assert_allclose(read_recording(path, ARM, units={"time": "s"}).time, T * scale)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_dates_in_nanoseconds_keep_every_digit(tmp_path, suffix):
    stamps = 1_700_000_000_123_456_789 + np.arange(N, dtype=np.int64) * 8_000_001
    columns = {"stamp": stamps} | numbered("q", Q)
    path = tmp_path / f"log{suffix}"
    if suffix == ".csv":
        write_csv(path, columns)
    elif suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        np.savez(path, **columns)
    recording = read_recording(path, ARM)
    np.testing.assert_allclose(recording.time, np.arange(N) * 0.008000001, rtol=0, atol=1e-15)
    assert any("counts from the first stamp" in note for note in recording.source.notes)
    np.testing.assert_array_equal(open_recording(path, ARM, chunk_rows=9).read().time, recording.time)


def test_timestamp_columns_of_parquet_carry_their_unit(tmp_path):
    stamps = pa.array((np.arange(N) * 8000 + 1_700_000_000_000_000), pa.timestamp("us"))
    pq.write_table(pa.table({"time": stamps} | numbered("q", Q)), tmp_path / "log.parquet")
    np.testing.assert_allclose(read_recording(tmp_path / "log.parquet", ARM).time, T, atol=1e-12)


def test_seconds_and_nanoseconds_apart(tmp_path):
    ns = (np.arange(N, dtype=np.int64) * 8_000_000) + 999_000_000
    columns = {"header.stamp.sec": 1_700_000_000 + ns // 10**9, "header.stamp.nanosec": ns % 10**9}
    path = write_csv(tmp_path / "log.csv", columns | numbered("q", Q))
    np.testing.assert_allclose(read_recording(path, ARM).time, T, atol=1e-12)


def test_a_rate_replaces_the_clock(tmp_path):
    path = write_csv(tmp_path / "log.csv", numbered("q", Q) | numbered("tau", TAU))
    recording = read_recording(path, ARM, rate_hz=125.0)
    np.testing.assert_allclose(recording.time, T)
    np.testing.assert_allclose(open_recording(path, ARM, rate_hz=125.0, chunk_rows=7).read().time, T)
    with pytest.raises(InputError, match="rate_hz is -1"):
        read_recording(path, ARM, rate_hz=-1.0)


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
    assert sum(chunk.n_dropped for chunk in stream.chunks()) == 3
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
