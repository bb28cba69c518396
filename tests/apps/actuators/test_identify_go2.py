"""The Go2's recording: identified on its first part, rolled out on the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynid.apps.actuators.export import export_actuators
from dynid.apps.actuators.identify import identify_actuators
from dynid.apps.actuators.options import ActuatorSettings
from shared_data import shared


@pytest.mark.slow
def test_identified_joints_halve_the_rollout_error(tmp_path: Path) -> None:
    robot, log = shared("go2/robot.xml"), shared("go2/part1.parquet")
    run = identify_actuators(robot, log, ActuatorSettings(kp=20.0, kd=1.5, split=0.65))
    found = run.as_json()
    described = found["rollout_description"]["validation"]
    assert found["rollout"]["validation"] < 0.5 * described
    for joint in found["joints"]:
        assert 0.0 <= joint["armature"]["value"] < 0.1
        assert 0.0 <= joint["viscous"]["value"] < 1.5
        assert 0.0 <= joint["coulomb"]["value"] < 2.0
    exported = export_actuators(run, ("mjcf",), tmp_path)
    assert exported["mujoco_rollout"]["rms"] < 0.5 * described
