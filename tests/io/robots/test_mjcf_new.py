"""Closed robots in files: written, read again, proven, and refused where a format has no place for loops."""

from __future__ import annotations

import numpy as np
import pytest

from closed_robots import MECHANISMS, closed_robot, feasible_motion
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.io.code.languages import write_c
from dynid.io.robots.mjcf_write import write_mjcf
from dynid.io.robots.proof import file_parity
from dynid.io.robots.read import read_robot
from dynid.io.robots.sdf_write import write_sdf
from dynid.io.robots.urdf_write import write_urdf
from dynid.pipeline.robot_json import robot_from_sidecar, write_parameters

EFFECTS = "viscous,coulomb,armature"


def same_torque(robot, again, *, effects=True):
    assert again.joint_names == robot.joint_names
    q, v, a = feasible_motion(robot, 20)
    expected = inverse_dynamics(robot, q, v, a, effects=effects)
    found = inverse_dynamics(again, q, v, a, effects=effects)
    assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize("name", MECHANISMS)
def test_mjcf_has_the_closures_as_equalities(tmp_path, name):
    import mujoco

    robot = closed_robot(name, EFFECTS)
    path = write_mjcf(robot, tmp_path / "robot.xml").path
    assert file_parity("mjcf", robot, path) < 1e-9
    same_torque(robot, read_robot(path, EFFECTS))
    model = mujoco.MjModel.from_xml_path(str(path))
    assert model.nu == robot.n_joints
    state = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, state, 0)
    mujoco.mj_forward(model, state)
    assert np.abs(state.efc_pos[state.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY]).max() < 1e-9


@pytest.mark.parametrize("name", MECHANISMS)
def test_urdf_has_its_closures_in_a_side_file(tmp_path, name):
    robot = closed_robot(name, EFFECTS)
    written = write_urdf(robot, tmp_path / "robot.urdf")
    assert [file.name for file in written.companions] == ["robot.loops.toml"]
    assert file_parity("urdf", robot, written.path) < 1e-9
    same_torque(robot, read_robot(written.path, "none"), effects=False)


@pytest.mark.parametrize("name", ["parallelogram_arm", "delta_rl5_lumped"])
def test_the_parameter_file_holds_closures_and_what_is_absent(tmp_path, name):
    robot = closed_robot(name, EFFECTS)
    again = robot_from_sidecar(write_parameters(robot, tmp_path / "robot.json").path)
    assert again.absent == robot.absent
    same_torque(robot, again)


@pytest.mark.parametrize(("write", "file"), [(write_c, "robot.c")])
def test_formats_without_loops_refuse_with_the_loops_named(tmp_path, write, file):
    with pytest.raises(InputError, match=r"closed loops \(tool\).*mjcf"):
        write(closed_robot("five_bar"), tmp_path / file)
    assert not list(tmp_path.iterdir())


CONNECTED = """<mujoco model="connected">
  <compiler angle="radian"/>
  <worldbody>
    <body name="crank"><joint name="crank" axis="0 -1 0"/><inertial mass="0.4" pos="0.06 0 0" diaginertia="1e-4 6e-4 6e-4"/>
      <body name="coupler" pos="0.12 0 0"><joint name="pin" axis="0 -1 0"/>
        <inertial mass="0.9" pos="0.175 0 0" diaginertia="2e-4 1e-2 1e-2"/></body></body>
    <body name="rocker" pos="0.4 0 0"><joint name="rocker" axis="0 -1 0"/>
      <inertial mass="0.7" pos="0.15 0 0" diaginertia="2e-4 6e-3 6e-3"/><site name="end" pos="0.3 0 0" rgba="1 0 0 1"/></body>
    <site name="other" pos="1 0 0"/>
  </worldbody>
  <equality>TIE</equality>
  <keyframe><key qpos="1.0 -0.5 1.5"/></keyframe>
</mujoco>
"""


def test_connect_between_sites_is_read_and_the_driven_joint_deduced(tmp_path):
    sites = CONNECTED.replace(
        'diaginertia="2e-4 1e-2 1e-2"/>', 'diaginertia="2e-4 1e-2 1e-2"/><site name="tip" pos="0.35 0 0"/>'
    )
    path = tmp_path / "robot.xml"
    path.write_text(sites.replace("TIE", '<connect name="loop" site1="tip" site2="end"/>'))
    robot = read_robot(path, "none")
    assert robot.joint_names == ("crank",)
    assert robot.loops.names == ("loop",)
    q, v, a = feasible_motion(robot, 10)
    shipped = closed_robot("four_bar").with_parameters({"my2": 0.0})
    straight = shipped.with_parameters({"Ixx2": 2e-4, "Ixy2": 0.0, "Izz2": 1e-2 + 0.9 * 0.175**2})
    np.testing.assert_allclose(inverse_dynamics(robot, q, v, a), inverse_dynamics(straight, q, v, a), rtol=1e-9)


def test_equalities_of_tendons_are_noted_and_not_modelled(tmp_path):
    path = tmp_path / "robot.xml"
    tendon = '<tendon><fixed name="t"><joint joint="crank" coef="1"/></fixed></tendon><keyframe>'
    path.write_text(CONNECTED.replace("TIE", '<tendon tendon1="t"/>').replace("<keyframe>", tendon))
    robot = read_robot(path, "none")
    assert not robot.loops
    assert any("not modelled: equality constraints of tendons" in note for note in robot.source.notes)


@pytest.mark.parametrize("name", MECHANISMS)
def test_sdf_has_a_joint_more_for_every_loop(tmp_path, name):
    """Read again, the file has the robot's torque; its joints count from the closed position that the links stand in."""
    robot = closed_robot(name, EFFECTS)
    written = write_sdf(robot, tmp_path / "robot.sdf")
    again = read_robot(written.path, "none")
    assert again.loops.names == robot.loops.names
    assert file_parity("sdf", robot, written.path) < 1e-9
    heavier = robot.with_parameters(robot.parameters.with_values(1.1 * robot.parameters.values))
    assert file_parity("sdf", heavier, written.path) > 1e-4
