"""MuJoCo's warnings are collected, one caller at a time, and what was set before is set again."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from dynid.apps.actuators.export import roll_out_controls
from dynid.errors import InputError
from dynid.io.robots.mujoco_model import mujoco_warnings, with_joint_names

UNSTABLE = """<mujoco><option timestep="0.01"/><worldbody><body name="b"><joint name="hub" axis="0 1 0"/>
<inertial pos="0 0 0" mass="1" diaginertia="0.01 0.01 0.01"/></body></worldbody>
<actuator><position name="drive" joint="hub" kp="1e9"/></actuator></mujoco>"""


def test_warnings_are_collected_and_the_place_is_given_back(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    model = mujoco.MjModel.from_xml_string(UNSTABLE)
    state = mujoco.MjData(model)
    others: list[str] = []
    mujoco.set_mju_user_warning(others.append)
    try:
        with mujoco_warnings() as said:
            state.qvel[:] = np.nan
            mujoco.mj_step(model, state)
        assert len(said) == 1
        assert "QVEL" in said[0]
        assert others == []
        again = mujoco.MjData(model)  # a state warns of one thing once
        again.qvel[:] = np.nan
        mujoco.mj_step(model, again)
        assert len(others) == 1
    finally:
        mujoco.set_mju_user_warning(None)
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_degrees_of_freedom_are_named():
    text = "Nan, Inf or huge value in QACC at DOF 1. The simulation is unstable. Time = 0.0090."
    assert with_joint_names(text, ["a", "b"]).startswith("Nan, Inf or huge value in QACC at joint 'b'. The")
    assert "DOF 1" in with_joint_names(text, ["a"])


def test_a_rollout_that_grows_without_bound_is_refused(tmp_path: Path, monkeypatch):
    """MuJoCo would set the state back and hand on finite positions."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.xml").write_text(UNSTABLE)
    time = 0.01 * np.arange(200.0)
    with pytest.raises(InputError, match=r"arm\.xml cannot be followed in MuJoCo at a time step of 0\.01 s: .*unstable"):
        roll_out_controls(tmp_path / "arm.xml", ["hub"], ["drive"], np.ones((200, 1)), time, (np.zeros(1), np.zeros(1)))
    assert [path.name for path in tmp_path.iterdir()] == ["arm.xml"]
