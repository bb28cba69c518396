"""SAGE folders: states with the command in force."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.io.logs.read import read_recording
from dynid.signals.recording import Recording

JOINTS = ("hip", "thigh", "calf")
T = np.arange(50) / 50.0
Q = np.outer(np.sin(T), [1.0, 0.5, -0.3])
U = Q + 0.1


def motion(path: Path, **options: Any) -> Recording:
    found = read_recording(path, list(JOINTS), **options)
    assert isinstance(found, Recording)
    return found


def test_sage_states_get_the_command_in_force(tmp_path: Path) -> None:
    sent, us = T[::2] - 0.004, 1e6
    for name, kind, clock, values in (("control.csv", "Control", sent, U[::2]), ("state_motor.csv", "StateMotor", T, Q)):
        rows = ["type,timestamp,positions,velocities,torques"]
        rows += [
            f'{kind},{t * us + 1.7e15:.0f},"{list(map(float, row))}","[]","[]"' for t, row in zip(clock, values, strict=True)
        ]
        (tmp_path / name).write_text("\n".join(rows))
    (tmp_path / "joint_list.txt").write_text("calf\nhip\nthigh\n")
    log = motion(tmp_path)
    order = [1, 2, 0]  # of hip, thigh, calf in the file
    assert np.allclose(log.position, Q[:, order])
    assert log.reference_position is not None
    assert np.allclose(log.reference_position[:-1:2], U[::2][:, order])
    assert np.allclose(log.reference_position[1::2], U[::2][:, order])
    (tmp_path / "control.csv").write_text("type,timestamp,positions\nControl,0,oops\nControl,20000,oops\n")
    with pytest.raises(InputError, match=r"control\.csv: line 2 has 'oops'"):
        motion(tmp_path)
