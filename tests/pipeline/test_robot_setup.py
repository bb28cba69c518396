"""The robot as the settings want it: locked joints, couplings, springs."""

from __future__ import annotations

from pathlib import Path

import pytest

import dynid
from dynid.errors import InputError
from dynid.pipeline.options import Settings
from dynid.pipeline.robot_setup import coupling_of, described_robot


def test_joints_are_locked_after_the_description_is_read(tmp_path: Path) -> None:
    path = Path(dynid.write_urdf(dynid.demo_robot(), tmp_path / "arm.urdf").path)
    names = dynid.demo_robot().joint_names
    robot = described_robot(path, Settings(lock={names[2]: 0.0}))
    assert robot.joint_names == tuple(name for name in names if name != names[2])


def test_a_coupling_is_added_and_may_be_measured_at_the_motors() -> None:
    robot = described_robot(dynid.demo_robot(), Settings(coupling=("3:2=1",), side="motor"))
    assert robot.coupling is not None
    assert robot.coupling.side == "motor"
    assert coupling_of(dynid.demo_robot(), Settings()) is None


def test_effects_of_motors_need_coupled_ones() -> None:
    with pytest.raises(InputError, match="give --coupling as well"):
        described_robot(dynid.demo_robot(), Settings(motor_effects=("viscous",)))
