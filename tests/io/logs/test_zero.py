"""Position zeros by option and mapping; names of joints that another file of the same arm has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.errors import UnknownNameError
from dynid.io.logs.names import alias_notes
from dynid.io.logs.read import open_recording, read_recording


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rows = "\n".join(f"{0.01 * k},{0.1 * k + 90},{0.2 * k},{k},{-k}" for k in range(20))
    (tmp_path / "log.csv").write_text(f"t,q1,q2,tau1,tau2\n{rows}\n")
    return tmp_path / "log.csv"


def test_a_zero_is_subtracted_after_units(log: Path) -> None:
    units = {"position": "deg"}
    plain = read_recording(log, ["a", "b"], units=units)
    by_option = read_recording(log, ["a", "b"], units=units, zero={"a": np.pi / 2})
    by_mapping = read_recording(log, ["a", "b"], units=units, mapping={"zero": [np.pi / 2, 0.0]})
    for moved in (by_option, by_mapping):
        np.testing.assert_allclose(moved.position, plain.position - [np.pi / 2, 0.0])
        np.testing.assert_array_equal(moved.torque, plain.torque)
        assert any("position zeros were subtracted: a 1.571" in note for note in moved.source.notes)
    pieces = list(open_recording(log, ["a", "b"], chunk_rows=7, units=units, zero={"a": np.pi / 2}))
    np.testing.assert_allclose(np.concatenate([piece.position for piece in pieces]), by_option.position)


def test_an_unknown_joint_is_refused(log: Path) -> None:
    with pytest.raises(UnknownNameError, match="--zero"):
        read_recording(log, ["a", "b"], zero={"c": 1.0})


def test_names_of_another_file_of_the_arm_are_noted() -> None:
    names = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]
    columns = ["q_Rotation", "q_Pitch", "q_Elbow", "q_Wrist_Pitch", "q_Wrist_Roll", "q_Jaw"]
    (note,) = alias_notes(names, columns)
    assert "'q_Rotation' as shoulder_pan" in note
    assert "wrist_roll" not in note.split("as wrist_flex")[1].split("'q_Jaw'")[0]
    assert alias_notes(names, [f"q_{name}" for name in names]) == []
