"""The list of changed attributes: what was identified and nothing else."""

from __future__ import annotations

from dynid.io.robots.mjcf_write import write_mjcf
from dynid.io.robots.proof import Change, changes_of
from dynid.io.robots.read import read_robot
from dynid.io.robots.urdf_write import write_urdf

ARM = """<mujoco model="arm"><option gravity="0 0 -9.81"/><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="one"><inertial mass="2" pos="0.1 0 0" diaginertia="0.1 0.1 0.1"/><joint name="j1" axis="0 1 0" damping="0.5"/>
<geom type="sphere" size="0.1"/><body name="two" pos="0.5 0 0"><joint name="j2" axis="0 1 0"/>
<geom type="sphere" size="0.1" mass="1"/></body></body></worldbody>
<actuator><position joint="j1" kp="10"/></actuator></mujoco>"""


def test_only_what_was_replaced_is_listed(tmp_path):
    (tmp_path / "arm.xml").write_text(ARM)
    robot = read_robot(tmp_path / "arm.xml", "viscous,coulomb,armature")
    same = write_mjcf(robot, tmp_path / "same.xml")
    assert changes_of(robot, same.path) == ()
    new = robot.with_parameters({"fv1": 0.75, "fc2": 0.25})
    found = changes_of(new, write_mjcf(new, tmp_path / "new.xml").path)
    assert found == (
        Change("joint 'j1'", "damping", "0.5", "0.75"),
        Change("joint 'j2'", "frictionloss", None, "0.25"),
    )
    assert [one.size for one in found] == [0.5, 0.25]
    assert str(found[1]) == "joint 'j2' frictionloss: none -> 0.25"


def test_an_inertial_that_was_not_stated_is_new(tmp_path):
    (tmp_path / "arm.xml").write_text(ARM)
    robot = read_robot(tmp_path / "arm.xml")
    heavier = robot.with_parameters({"m2": 1.5})
    found = changes_of(robot, write_mjcf(heavier, tmp_path / "new.xml").path)
    assert {one.element for one in found} == {"body 'two' inertial"}
    assert Change("body 'two' inertial", "mass", None, "1.5") in found


def test_other_formats_have_no_list(tmp_path):
    (tmp_path / "arm.xml").write_text(ARM)
    robot = read_robot(tmp_path / "arm.xml")
    path = write_urdf(robot, tmp_path / "arm.urdf").path
    assert changes_of(robot, path) == ()
    again = read_robot(path)
    found = changes_of(again, write_urdf(again.with_parameters({"m1": 3.0}), tmp_path / "new.urdf").path)
    assert Change("link 'one' mass", "value", "2.0", "3.0") in found
    (tmp_path / "arm.xml").unlink()
    assert changes_of(robot, tmp_path / "any.xml") == ()


def test_round_off_of_zero_is_small_and_another_text_is_large():
    assert Change("link 'one'", "ixy", "0", "-9e-13").size < 1e-9
    assert Change("compiler", "meshdir", "meshes", "../meshes").size == float("inf")
