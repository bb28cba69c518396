"""Lines become the numbers that the same lines in a file are read as; the grid brings their stamps to a uniform clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.apps.online.decode import HEAD_ROWS, Counts, Grid, LineDecoder
from dynid.errors import InputError
from dynid.io.logs.layout import ReadOptions
from dynid.io.logs.read import read_recording
from dynid.model.robot import Robot
from online_streams import small_arm

N_ROWS = 2 * HEAD_ROWS
UNITS = "t [ms],q1 [deg],q2 [deg],q3 [rad],tau1 [Nm],tau2 [mNm],tau3 [Nm]"
PLAIN = "t,q1,q2,q3,tau1,tau2,tau3"
CURRENT = "t,q1,q2,q3,i1,i2,i3"


def written(header: str, step: float = 0.005) -> list[str]:
    """A header and rows of numbers under it."""
    rng = np.random.default_rng(3)
    rows = np.column_stack([np.round(step * np.arange(N_ROWS), 6), rng.normal(size=(N_ROWS, 6)).round(4)])
    return [header, *(",".join(map(repr, row)) for row in rows.tolist())]


def decoded(robot: Robot, lines: list[str], **options: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    decoder = LineDecoder(robot, ReadOptions(**options), velocity=False, where="the stream")
    rows = [row for line in lines for row in decoder.decode(line)] + decoder.settle()
    assert decoder.n_malformed == 0
    return np.array([time for time, _ in rows]), decoder.values(np.array([numbers for _, numbers in rows]))


@pytest.mark.parametrize(
    ("header", "step", "options"),
    [
        (PLAIN, 0.005, {}),
        (UNITS, 5.0, {}),
        (PLAIN, 0.005, {"units": {"position": "deg"}, "mapping": {"sign": [-1, 1, -1]}}),
        (PLAIN, 0.005, {"mapping": {"sign": {"elbow": -1}}}),
        (PLAIN, 0.005, {"mapping": {"position": ["q1", "-q2", "q3"], "torque": ["tau1", "-tau2", "tau3"]}}),
        (CURRENT, 0.005, {"drive_gains": (10.0, 20.0, 5.0), "mapping": {"sign": [1, -1, 1]}}),
        (UNITS, 5.0, {"units": {"position": "rad", "time": "s"}}),
    ],
)
def test_a_stream_is_read_as_the_same_lines_in_a_file(
    tmp_path: Path, header: str, step: float, options: dict[str, Any]
) -> None:
    lines = written(header, step)
    log = tmp_path / "log.csv"
    log.write_text("\n".join(lines) + "\n")
    expected = read_recording(log, small_arm(), ReadOptions(kind="motion", **options))
    time, values = decoded(small_arm(), lines, **options)
    np.testing.assert_array_equal(time, expected.time)
    np.testing.assert_array_equal(values, np.column_stack([expected.position, expected.torque]))


def test_degrees_in_the_names_of_columns_are_no_radians() -> None:
    _, plain = decoded(small_arm(), written(PLAIN))
    _, degrees = decoded(small_arm(), written("t,q1 [deg],q2 [deg],q3 [deg],tau1,tau2,tau3"))
    np.testing.assert_allclose(degrees[:, :3], np.radians(plain[:, :3]), rtol=1e-12)
    np.testing.assert_array_equal(degrees[:, 3:], plain[:, 3:])


def test_current_named_in_the_unit_of_torque_needs_drive_gains() -> None:
    with pytest.raises(InputError, match="give --drive-gains"):
        decoded(small_arm(), written("t,q1,q2,q3,tau1 [A],tau2 [A],tau3 [A]"))


def test_the_grid_counts_what_it_leaves_out_and_where_it_begins_again() -> None:
    counts = Counts()
    grid = Grid.of([0.0, 0.01, 0.02, 0.03], counts)
    assert grid.period_s == pytest.approx(0.01)
    begins, points = grid.push(0.0)
    assert begins
    assert points == [(0.0, 1.0)]
    assert grid.push(0.0) == (False, None)
    begins, points = grid.push(0.02)  # a missed row: both samples lie between the rows around it
    assert not begins
    assert points == [(pytest.approx(0.01), pytest.approx(0.5)), (pytest.approx(0.02), pytest.approx(1.0))]
    assert grid.push(0.015) == (False, None)
    assert grid.push(5.0)[0]
    assert grid.push(1.0)[0]
    assert (counts.rows, counts.repeated, counts.late, counts.gaps, counts.jumps_back) == (6, 1, 1, 1, 1)
    again = Grid.restored(grid.state(), counts)
    assert again.push(1.01) == grid.push(1.01)
