"""Units, drive gains, gear ratios and the clock; numbers beyond what any robot has."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.io.logs.read import open_recording, read_recording
from log_files import ARM, CURRENT, DQ, TAU, N, Q, T, numbered, plain, write_csv
from messages import facts


def test_current_becomes_torque_by_drive_gains(tmp_path):
    path = write_csv(tmp_path / "log.csv", {"t": T} | numbered("q", Q) | numbered("i", CURRENT))
    assert read_recording(path, ARM).torque is None
    driven = read_recording(path, ARM, drive_gains=[10.0, 9.0, 8.0])
    np.testing.assert_allclose(driven.torque, CURRENT * [10.0, 9.0, 8.0])
    assert "torque is drive gain times motor current" in driven.source.notes
    stream = open_recording(path, ARM, drive_gains=[10.0, 9.0, 8.0])
    assert stream.quantities == ("position", "torque", "current")
    np.testing.assert_array_equal(stream.read().torque, driven.torque)


def test_effort_that_is_current(tmp_path):
    path = write_csv(tmp_path / "log.csv", {"t": T} | numbered("q", Q) | numbered("effort", CURRENT * 1e3))
    recording = read_recording(path, ARM, units={"torque": "mA"}, drive_gains=[2.0, 2.0, 2.0])
    np.testing.assert_allclose(recording.torque, 2.0 * CURRENT)
    np.testing.assert_allclose(recording.current, CURRENT)


def test_units_and_gear_ratios(tmp_path):
    columns = {"t": T} | numbered("q", Q) | numbered("dq", DQ) | numbered("tau", TAU)
    path = write_csv(tmp_path / "log.csv", columns)
    side = {"side": {"position": "motor", "velocity": "motor", "torque": "motor"}, "gear_ratios": [100, 50, 10]}
    recording = read_recording(
        path, ARM, mapping=side, units={"position": "deg", "velocity": "rpm", "torque": ["Nm", "mNm", "N"]}
    )
    gear = np.array([100.0, 50.0, 10.0])
    np.testing.assert_allclose(recording.position, np.deg2rad(Q) / gear)
    np.testing.assert_allclose(recording.velocity, DQ * 2.0 * np.pi / 60.0 / gear)
    np.testing.assert_allclose(recording.torque, TAU * [1.0, 1e-3, 1.0] * gear)
    with pytest.raises(InputError, match=facts("position", "motor")):
        read_recording(path, ARM, mapping={"side": {"position": "motor"}})
    with pytest.raises(UnknownNameError, match=facts("rad", "deg", "grad", "unit")):
        read_recording(path, ARM, units={"position": "grad"})


@pytest.mark.parametrize(
    ("column", "row", "value", "message"),
    [
        ("q2", 7, -4e200, facts("q2", "-4e+200", "8", "1e+06", "SI", "column")),
        ("q1", 0, 2e6, facts("q1", "2e+06", "1", "column")),
        ("dq3", N - 1, 1e155, rf"column 'dq3' \(velocity\) holds 1e\+155 in row {N}, "),
        ("tau1", 12, 2e9, facts("tau1", "2e+09", "13", "1e+09", "column")),
        ("t", 20, 1e200, facts("'t'", "1e+200", "21", "column")),
        ("t", 20, 1.7e308, facts("'t'", "1.7e+308", "21", "column")),
    ],
)
@pytest.mark.parametrize("absent", [False, True])
def test_numbers_that_no_robot_has(tmp_path, column, row, value, message, absent):
    columns = {name: values.copy() for name, values in plain().items()}
    columns[column][row] = value
    if absent:  # beside numbers that are not there
        columns["q3"][5] = np.nan
    path = write_csv(tmp_path / "log.csv", columns)
    with pytest.raises(InputError, match=message):
        read_recording(path, ARM)
    with pytest.raises(InputError, match=message):
        open_recording(path, ARM, chunk_rows=3).read()


def test_a_unit_that_overflows_is_refused_without_a_warning(tmp_path):
    columns = plain() | {"q1": np.full(N, 1.5e308)}
    with pytest.raises(InputError, match="column 'q1'"):
        read_recording(write_csv(tmp_path / "log.csv", columns), ARM, units={"position": "rev"})


# The clock: its columns, its unit and where it starts -----------------------------------------
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
