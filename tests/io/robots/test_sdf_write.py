"""SDF export: read again it moves like the robot; poses, frames and joints mean what SDFormat says."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InconsistentModelError, InputError, UnknownNameError
from dynid.io.robots.description import read_description
from dynid.io.robots.proof import Change, changes_of, file_parity
from dynid.io.robots.read import read_robot
from dynid.io.robots.sdf_read import robot_from_sdf
from dynid.io.robots.sdf_write import write_sdf
from dynid.model.effects import effects_from_names
from messages import facts
from problems import ARM_MJCF, ARM_URDF, demo_arm, planar_2r, random_motion, random_tree

ALL = effects_from_names("viscous,coulomb,offset,armature")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("floating", [False, True])
def test_any_tree_survives(tmp_path, seed, floating):
    robot = random_tree(seed, 7, floating=floating, effects=ALL)
    written = write_sdf(robot, tmp_path / "tree.sdf")
    assert file_parity("sdf", robot, written.path) < 1e-13
    heavier = robot.with_parameters({"mx7": robot.parameters["mx7"] + 0.05})
    assert file_parity("sdf", heavier, written.path) > 1e-5
    assert any("rotor inertia" in note for note in written.notes)
    assert any("keeps gravity in its worlds" in note for note in written.notes)


@pytest.mark.parametrize(("suffix", "text"), [(".urdf", ARM_URDF), (".xml", ARM_MJCF)])
def test_merged_links_are_links_or_frames_again(tmp_path, suffix, text):
    source = tmp_path / f"arm{suffix}"
    source.write_text(text)
    robot = read_robot(source)
    written = write_sdf(robot, tmp_path / "arm.sdf", allow_inconsistent=True)
    assert file_parity("sdf", robot, written.path) < 1e-13
    again = robot_from_sdf(read_description(written.path))
    massive = {link.name for link in robot.merged if link.phi.any()}
    assert {link.name for link in again.merged} == massive
    by_name = {link.name: link for link in again.merged}
    for link in robot.merged:
        if link.name in massive:
            np.testing.assert_allclose(by_name[link.name].phi, link.phi, atol=1e-14)


def test_limits_and_friction_are_kept(tmp_path):
    robot = demo_arm()
    path = write_sdf(robot, tmp_path / "demo.sdf").path
    again = robot_from_sdf(read_description(path)).with_effects(robot.effects)
    assert again.joint_names == robot.joint_names
    assert again.links == robot.links
    np.testing.assert_array_equal(again.position_limits, robot.position_limits)
    for limit in ("dq_max", "tau_max"):
        np.testing.assert_array_equal(again.limits(limit), robot.limits(limit))
    for name in ("fv3", "fc6"):
        assert again.parameters[name] == robot.parameters[name]


def test_names_that_sdf_keeps_for_itself(tmp_path):
    robot = planar_2r()
    clashing = replace(robot, links=("shoulder", "world"), name="a & b")
    written = write_sdf(clashing, tmp_path / "odd.sdf")
    assert any("link 'world' is written as 'world_link'" in note for note in written.notes)
    again = robot_from_sdf(read_description(written.path))
    assert again.links == ("shoulder_link", "world_link")
    assert again.name == "a & b"
    assert file_parity("sdf", clashing, written.path) < 1e-13


def test_screw_joints_can_be_said(tmp_path):
    robot = planar_2r()
    screw = np.array([0.0, 0.01, 0.0, 0.0, 1.0, 0.0])
    helical = replace(robot, joints=(robot.joints[0], replace(robot.joints[1], screw=screw)))
    written = write_sdf(helical, tmp_path / "screw.sdf")
    assert 'version="1.10"' in written.path.read_text()
    assert f"<screw_thread_pitch>{2 * math.pi * 0.01!r}" in written.path.read_text()
    assert file_parity("sdf", helical, written.path) < 1e-13


def test_what_no_body_could_be_is_refused(tmp_path):
    robot = planar_2r().with_parameters({"Iyy1": -1.0})
    with pytest.raises(InconsistentModelError, match="upper"):
        write_sdf(robot, tmp_path / "bad.sdf")
    assert any("not physically" in note for note in write_sdf(robot, tmp_path / "bad.sdf", allow_inconsistent=True).notes)
    with pytest.raises(InputError, match=facts("SDF", "moment", "mass")):
        write_sdf(planar_2r().with_parameters({"m2": 0.0}), tmp_path / "bad.sdf", allow_inconsistent=True)


def test_proof_refuses_a_file_of_another_robot(tmp_path):
    path = write_sdf(demo_arm(), tmp_path / "demo.sdf").path
    with pytest.raises(UnknownNameError, match="unknown joint 'shoulder' in"):
        file_parity("sdf", planar_2r(), path)
    four = demo_arm().only(list(demo_arm().joint_names[:4]))
    assert file_parity("sdf", four, path) < 1e-13  # its other joints are held where the robot holds them
    with pytest.raises(InputError, match="is neither one of robot 'demo_arm' nor locked in it"):
        file_parity("sdf", replace(four, merged=()), path)


WHOLE = """<?xml version="1.0"?>
<!-- an arm -->
<sdf version="1.9">
  <world name="hall">
    <gravity>0 0 -9.81</gravity>
    <model name="arm">
      <link name="base"/>
      <joint name="bolt" type="fixed"><parent>world</parent><child>base</child></joint>
      <link name="upper">
        <inertial>
          <pose degrees="true">0.1 0 0 0 0 90</pose>
          <mass>2.0</mass> <!-- by hand -->
          <inertia><ixx>0.1</ixx><iyy>0.2</iyy><izz>0.25</izz></inertia>
        </inertial>
        <visual name="look"><geometry><box><size>0.2 0.1 0.1</size></box></geometry></visual>
        <sensor name="imu" type="imu"><update_rate>100</update_rate></sensor>
      </link>
      <joint name="turn" type="revolute">
        <parent>base</parent><child>upper</child>
        <axis><xyz>0 1 0</xyz><limit><lower>-2</lower><upper>2</upper></limit><dynamics><damping>0.5</damping></dynamics></axis>
      </joint>
      <link name="fore"><pose>0.5 0 0 0 0 0</pose>
        <inertial><mass>1</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial>
      </link>
      <joint name="bend" type="revolute"><parent>upper</parent><child>fore</child>
        <axis><xyz>0 1 0</xyz><limit><lower>-2</lower><upper>2</upper></limit></axis></joint>
      <plugin name="drive" filename="libdrive.so"><kp>20</kp></plugin>
    </model>
  </world>
</sdf>
"""


def test_the_robots_own_file_keeps_everything_but_what_was_identified(tmp_path):
    source = tmp_path / "arm.sdf"
    source.write_text(WHOLE)
    robot = read_robot(source, "viscous,coulomb")
    assert write_sdf(robot, tmp_path / "same.sdf").path.read_text() == WHOLE
    new = robot.with_parameters({"m1": 3.0, "fv1": 0.75, "fc2": 0.25})
    written = write_sdf(new, tmp_path / "new.sdf")
    assert written.patched
    assert file_parity("sdf", new, written.path) < 1e-13
    text = written.path.read_text()
    for kept in ("<!-- an arm -->", "<!-- by hand -->", "sensor", "libdrive.so", "<size>0.2 0.1 0.1</size>", "<gravity>"):
        assert kept in text
    changes = changes_of(new, written.path)
    assert Change("link 'upper'", "mass", "2.0", "3.0") in changes
    assert Change("joint 'turn'", "damping", "0.5", "0.75") in changes
    assert Change("joint 'bend'", "friction", None, "0.25") in changes
    assert {one.element for one in changes} == {"link 'upper'", "link 'upper' pose", "joint 'turn'", "joint 'bend'"}


def test_meshes_beside_the_robots_own_file_are_found_from_another_folder(tmp_path):
    box, mesh = "<box><size>0.2 0.1 0.1</size></box>", "<mesh><uri>meshes/upper.dae</uri></mesh>"
    (tmp_path / "arm.sdf").write_text(WHOLE.replace(box, mesh))
    (tmp_path / "run").mkdir()
    robot = read_robot(tmp_path / "arm.sdf", "none")
    written = write_sdf(robot, tmp_path / "run" / "arm.sdf")
    assert any("'meshes/upper.dae' are not in the folder" in note for note in written.notes)
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "upper.dae").write_text("a mesh")
    written = write_sdf(robot, tmp_path / "run" / "arm.sdf")
    assert "<uri>../meshes/upper.dae</uri>" in written.path.read_text()
    assert changes_of(robot, written.path) == (Change("visual 'look'", "uri", "meshes/upper.dae", "../meshes/upper.dae"),)


def test_a_locked_joint_stays_a_joint_of_the_file(tmp_path):
    source = tmp_path / "arm.sdf"
    source.write_text(WHOLE)
    robot = read_robot(source, lock={"bend": 0.7})
    new = robot.with_parameters({"m1": 4.0})
    written = write_sdf(new, tmp_path / "new.sdf")
    assert 'joint name="bend"' in written.path.read_text()
    assert file_parity("sdf", new, written.path) < 1e-13


# Files of others ----------------------------------------------------------------------------------

LINK = "<inertial><mass>1</mass><inertia><ixx>0.1</ixx><iyy>0.1</iyy><izz>0.1</izz></inertia></inertial>"
BY_FRAMES = f"""<sdf version="1.9"><model name="two">
  <frame name="mount"><pose>0 0 0.5 0 0 0</pose></frame>
  <link name="upper"><pose relative_to="mount" degrees="true">0.2 0 0 0 90 0</pose>{LINK}</link>
  <joint name="turn" type="revolute"><parent>world</parent><child>upper</child>
    <pose relative_to="mount">0 0 0 0 0 0</pose>
    <axis><xyz expressed_in="__model__">0 0 2</xyz><limit><lower>-1e16</lower><upper>1e16</upper></limit></axis></joint>
  <link name="lower"><pose relative_to="turn" rotation_format="quat_xyzw">0.6 0 0 0 0 0 1</pose>{LINK}</link>
  <joint name="bend" type="continuous"><parent>upper</parent><child>lower</child><axis><xyz>0 1 0</xyz></axis></joint>
</model></sdf>"""


def test_poses_are_read_in_the_frames_they_name(tmp_path):
    path = tmp_path / "two.sdf"
    path.write_text(BY_FRAMES)
    robot = robot_from_sdf(read_description(path))
    assert robot.joint_names == ("turn", "bend")
    # the first axis is vertical, through x = 0, though the link's frame lies at x = 0.2 with its z axis along x
    np.testing.assert_allclose(robot.joints[0].pose(math.pi / 2)[:3, 3], [0.0, 0.2, 0.5], atol=1e-15)
    np.testing.assert_allclose(robot.joints[0].placement[:3, :3] @ [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], atol=1e-15)
    assert robot.joints[0].q_min == -math.inf
    q, v, a = np.zeros((1, 2)), np.zeros((1, 2)), np.array([[1.0, 0.0]])
    # spinning up two bodies of 1 kg at 0.2 m and 0.6 m with 0.1 kg m^2 each
    assert inverse_dynamics(robot, q, v, a)[0, 0] == pytest.approx(0.2 + 0.04 + 0.36)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('version="1.9"', 'version="1.4"', facts("1.4", "SDF", "1.7", "version")),
        ("<sdf version", "<gazebo version", "outermost element <gazebo>"),
        ('relative_to="turn"', 'relative_to="nowhere"', "unknown frame 'nowhere'"),
        ('<frame name="mount">', '<frame name="mount" attached_to="lower">', "refer to each other in a circle"),
        ('name="lower"', 'name="world"', "unknown child link 'lower'"),
        ('type="continuous"', 'type="ball"', "is a ball joint, expected one of revolute"),
        ("<xyz>0 1 0</xyz>", "<xyz>0 0 0</xyz>", "axis of joint 'bend' .* is zero"),
        ("<xyz>0 1 0</xyz>", "<xyz>0 one 0</xyz>", "expected 3 finite numbers"),
        ("<parent>upper</parent><child>lower</child>", "<parent>world</parent><child>upper</child>", "1 links that hang on nothing"),
        ("<mass>1</mass>", "<mass>heavy</mass>", "mass of .* is 'heavy'"),
        ("</model>", "<model name='inner'/></model>", "has a <model> inside"),
        ("</model>", "<link name='loose'/></model>", "1 links that hang on nothing"),
    ],
)  # fmt: skip
def test_broken_files_get_a_sentence(tmp_path, old, new, said):
    path = tmp_path / "bad.sdf"
    assert old in BY_FRAMES
    path.write_text(BY_FRAMES.replace(old, new).replace("</sdf>", "</gazebo>" if "gazebo" in new else "</sdf>"))
    with pytest.raises(InputError, match=said):
        robot_from_sdf(read_description(path))


def test_rereading_moves_like_the_original_to_rounding(tmp_path):
    robot = random_tree(5, 6)
    again = robot_from_sdf(read_description(write_sdf(robot, tmp_path / "r.sdf").path)).with_gravity(robot.gravity)
    q, v, a = random_motion(robot, 20)
    order = [robot.joint_index(name) for name in again.joint_names]
    ours = inverse_dynamics(robot, q, v, a)[:, order]
    np.testing.assert_allclose(inverse_dynamics(again, q[:, order], v[:, order], a[:, order]), ours, atol=1e-11)
