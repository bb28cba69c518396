"""Units, drive gains and gear ratios; numbers beyond what any robot has."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError, UnknownNameError
from dynid.recording.readers.read import open_recording, read_recording
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
