"""URDF export: a robot's own file keeps all but its numbers, new files move alike, impossible bodies are refused."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from dynid.errors import InconsistentModelError, InputError, UnknownNameError
from dynid.io.robots.proof import PARITY, file_parity, largest_gap, why_unequal
from dynid.io.robots.read import read_robot
from dynid.io.robots.urdf_write import write_urdf
from dynid.model.inertia import is_consistent, phi_from_mass_com_inertia, phi_from_principal, principal_form
from dynid.model.links import links_of
from dynid.model.poses import rotation_from_rpy, rpy_from_rotation
from dynid.model.robot import Source
from messages import facts
from problems import ARM_MJCF, ARM_URDF, demo_arm, planar_2r, random_rotation, random_tree

ALL = "viscous,coulomb,offset,armature"


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(ARM_URDF)
    return path


def changed(robot, seed=0):
    """Heavier links, each by a factor of its own, and some friction: as an identification would leave them."""
    rng = np.random.default_rng(seed)
    values = robot.parameters.values.copy()
    n = robot.parameters.n_inertial
    values[:n] *= np.repeat(rng.uniform(1.05, 1.4, robot.n_bodies), 10)
    values[n:] += rng.uniform(0.1, 0.3, len(values) - n)
    return robot.with_parameters(robot.parameters.with_values(values))


def test_unchanged_robot_gives_the_same_bytes(arm, tmp_path):
    written = write_urdf(read_robot(arm), tmp_path / "same.urdf")
    assert written.path.read_bytes() == arm.read_bytes()
    assert written.patched
    assert file_parity("urdf", read_robot(arm), written.path) < 1e-14


def test_changed_robot_reloads_with_parity(arm, tmp_path):
    robot = read_robot(arm, effects=ALL)
    new = changed(robot)
    written = write_urdf(new, tmp_path / "new.urdf")
    assert file_parity("urdf", new, written.path) < 1e-13
    # the proof can fail: the old robot is not the new file
    assert file_parity("urdf", robot, written.path) > 1e-3
    again = read_robot(written.path, effects=ALL)
    np.testing.assert_allclose(again.parameters.inertials, new.parameters.inertials, rtol=1e-12, atol=1e-15)
    for joint in range(1, robot.n_joints + 1):
        assert again.parameters[f"fv{joint}"] == new.parameters[f"fv{joint}"]
        assert again.parameters[f"fc{joint}"] == new.parameters[f"fc{joint}"]
    assert any("rotor inertia" in note for note in written.notes)
    assert any("torque offset" in note for note in written.notes)


def test_everything_else_in_the_file_stays(tmp_path):
    text = (
        "<?xml version='1.0'?>\r\n<!-- ours > theirs -->\r\n<robot name='r' >\r\n"
        '\t<link name="base"/>\r\n\t<link name=\'arm\'><!-- "quoted" -->\r\n'
        '\t\t<visual><geometry><mesh filename="package://there/a.dae" scale="1 1 1"/></geometry></visual>\r\n'
        "\t\t<inertial> <!-- by hand -->\r\n\t\t\t<mass\r\n\t\t\t\tvalue = '1.0' />\r\n"
        '\t\t\t<inertia izz="0.3" ixx="0.1" iyy="0.25" ixy="0" ixz="0" iyz="0" note="a > b"/>\r\n'
        "\t\t</inertial>\r\n\t</link>\r\n"
        "\t<joint name='j' type='continuous'><parent link='base'/><child link='arm'/><axis xyz='0 1 0'/></joint>\r\n"
        "\t<gazebo reference='arm'><mu1>0.2</mu1></gazebo>\r\n</robot>\r\n<!-- end -->\r\n"
    )
    source = tmp_path / "r.urdf"
    source.write_bytes(text.encode())
    robot = read_robot(source, effects="viscous").with_parameters(
        {"m1": 2.0, "mx1": 0.5, "Iyy1": 0.5, "Izz1": 0.6, "fv1": 0.7}
    )
    written = write_urdf(robot, tmp_path / "out.urdf").path.read_bytes().decode()
    expected = (
        text.replace("value = '1.0'", "value = '2.0'")
        .replace("<inertial>", '<inertial>\r\n\t\t\t<origin xyz="0.25 0.0 0.0" rpy="0 0 0"/>')
        .replace('iyy="0.25"', 'iyy="0.375"')
        .replace('ixx="0.1"', 'ixx="0.1"')
        .replace('izz="0.3"', 'izz="0.475"')
        .replace('ixy="0" ixz="0" iyz="0"', 'ixy="0.0" ixz="0.0" iyz="0.0"')
        .replace("<axis xyz='0 1 0'/>", "<axis xyz='0 1 0'/><dynamics damping=\"0.7\"/>")
    )
    assert written == expected
    assert file_parity("urdf", robot, tmp_path / "out.urdf") < 1e-13


def test_link_without_inertial_gets_one(tmp_path):
    source = tmp_path / "r.urdf"
    source.write_text(
        '<robot name="r">\n  <link name="base"/>\n  <link name="arm"/>\n'
        '  <joint name="j" type="continuous">\n    <parent link="base"/>\n    <child link="arm"/>\n  </joint>\n</robot>\n'
    )
    phi = phi_from_mass_com_inertia(1.5, np.array([0.1, 0.0, 0.2]), np.diag([0.1, 0.12, 0.05]))
    robot = read_robot(source, effects="coulomb")
    robot = robot.with_parameters(robot.parameters.with_values([*phi, 0.25]))
    written = write_urdf(robot, tmp_path / "out.urdf").path
    assert file_parity("urdf", robot, written) < 1e-13
    lines = written.read_text().splitlines()
    assert lines[2:4] == ['  <link name="arm">', "    <inertial>"]
    assert lines[8] == "  </link>"
    assert '    <dynamics friction="0.25"/>' in lines


def test_links_hanging_on_a_moving_one_keep_their_own_inertials(arm, tmp_path):
    robot = read_robot(arm)
    new = changed(robot)
    path = write_urdf(new, tmp_path / "new.urdf").path
    before, after = ({link.name: link.phi for link in read_robot(p).merged} for p in (arm, path))
    assert before.keys() == after.keys() >= {"base", "camera"}
    for name, phi in before.items():
        np.testing.assert_array_equal(after[name], phi)


def test_a_body_lighter_than_what_hangs_on_it_is_shared_out(tmp_path):
    source = tmp_path / "arm.urdf"
    camera = 'ixx="0.001" ixy="{}" ixz="{}" iyy="0.002" iyz="{}" izz="0.0025"'
    source.write_text(ARM_URDF.replace(camera.format("0.01", "-0.005", "0.002"), camera.format(0, 0, 0)))
    robot = read_robot(source)
    light = robot.parameters.values.copy()
    light[:10] *= 0.08  # upper and camera together weigh less than the camera's description
    new = robot.with_parameters(robot.parameters.with_values(light))
    written = write_urdf(new, tmp_path / "light.urdf")
    assert any("link 'upper' without camera would be no physical body" in note for note in written.notes)
    assert file_parity("urdf", new, written.path) < 1e-12
    again = read_robot(written.path)
    (camera,) = [link for link in again.merged if link.name == "camera"]
    assert is_consistent(camera.phi, margin=1e-6)
    assert 0.0 < camera.phi[0] < 0.3
    (upper,) = [link.phi for link in links_of(again) if link.name == "upper"]
    assert is_consistent(upper, margin=1e-6)
    model = pin.buildModelFromUrdf(str(written.path))
    assert model.inertias[1].mass == pytest.approx(new.parameters["m1"], rel=1e-12)


def test_an_impossible_link_that_cannot_be_taken_off_is_put_into_its_body(arm, tmp_path):
    robot = read_robot(arm)
    (camera,) = [link for link in robot.merged if link.name == "camera"]
    assert not is_consistent(camera.phi)
    values = robot.parameters.values.copy()
    values[:10] *= 0.08
    new = robot.with_parameters(robot.parameters.with_values(values))
    written = write_urdf(new, tmp_path / "light.urdf")
    assert any("inertials were put into it from camera" in note for note in written.notes)
    assert file_parity("urdf", new, written.path) < 1e-12
    again = read_robot(written.path)
    (camera,) = [link for link in again.merged if link.name == "camera"]
    assert not camera.phi.any()
    np.testing.assert_allclose(again.parameters.inertials[0], new.parameters.inertials[0], rtol=1e-12)


ARM_WITH_GRIPPER = """<robot name="gripping">
  <link name="base"/>
  <link name="wrist"><inertial><origin xyz="0.01 0 0.06"/><mass value="1.2"/>
    <inertia ixx="0.012" ixy="0.0004" ixz="0.001" iyy="0.01" iyz="0.0007" izz="0.005"/></inertial></link>
  <link name="hand"><inertial><origin xyz="-0.01 0 0.03"/><mass value="0.7"/>
    <inertia ixx="0.001" ixy="0" ixz="0" iyy="0.0025" iyz="0" izz="0.0017"/></inertial></link>
  <link name="finger"><inertial><origin xyz="0 0.01 0.02"/><mass value="0.05"/>
    <inertia ixx="2e-5" ixy="0" ixz="0" iyy="2e-5" iyz="0" izz="1e-5"/></inertial></link>
  <joint name="roll" type="continuous"><parent link="base"/><child link="wrist"/><axis xyz="0 1 0"/></joint>
  <joint name="mount" type="fixed"><parent link="wrist"/><child link="hand"/>
    <origin xyz="0 0 0.1" rpy="0 0 -0.785"/></joint>
  <joint name="grip" type="prismatic"><parent link="hand"/><child link="finger"/><origin xyz="0 0 0.06"/>
    <axis xyz="0 1 0"/><limit lower="0" upper="0.04" effort="20" velocity="1"/></joint>
</robot>
"""


def identified_gripper(tmp_path, change):
    """The arm with its gripper held, its one body changed by ``change(phi)``; and the same as described."""
    source = tmp_path / "gripping.urdf"
    source.write_text(ARM_WITH_GRIPPER)
    described = read_robot(source, effects="none", lock={"grip": 0.03})
    return described.with_parameters(described.parameters.with_values(change(described.parameters.values))), described


def flat(phi):
    """A heavier body with its centre elsewhere that is flat but for a hair: what a consistent identification likes to find."""
    mass, com, _, L = principal_form(phi)
    turned, moved = random_rotation(np.random.default_rng(2)), com + np.array([0.01, -0.02, -0.05])
    return phi_from_principal(1.35 * mass, moved, turned, L * [1e-6, 0.5, 0.6])


@pytest.mark.parametrize("anew", [False, True])
def test_a_flat_body_is_shared_out_with_every_link_keeping_its_share_of_the_mass(tmp_path, anew):
    new, described = identified_gripper(tmp_path, flat)
    assert is_consistent(new.parameters.inertials[0])
    writer = replace(new, source=Source()) if anew else new
    written = write_urdf(writer, tmp_path / "out.urdf", described=described if anew else None)
    assert any("moved and stretched together" in note for note in written.notes)
    again = read_robot(written.path, effects="none", lock=None if anew else {"grip": 0.03})
    np.testing.assert_allclose(again.parameters.values, new.parameters.values, rtol=1e-12, atol=1e-14)
    before, after = ({link.name: link.phi for link in links_of(robot)} for robot in (described, again))
    for name in ("wrist", "hand", "finger"):
        assert is_consistent(after[name])
        assert after[name][0] == pytest.approx(1.35 * before[name][0], rel=1e-9)
    assert file_parity("urdf", new, written.path) < 1e-12


def test_a_lighter_body_takes_its_links_along(tmp_path):
    new, described = identified_gripper(tmp_path, lambda phi: 0.4 * phi)
    written = write_urdf(new, tmp_path / "out.urdf")
    assert any("inertials of hand, finger were multiplied by 0.4, as the mass of the whole was" in n for n in written.notes)
    again = read_robot(written.path, effects="none", lock={"grip": 0.03})
    np.testing.assert_allclose(again.parameters.values, new.parameters.values, rtol=1e-12, atol=1e-15)
    before, after = ({link.name: link.phi for link in links_of(robot)} for robot in (described, again))
    for name, phi in before.items():
        np.testing.assert_allclose(after[name], 0.4 * phi, rtol=1e-10, atol=1e-15)


def test_a_body_that_holds_what_hangs_on_it_leaves_that_alone(tmp_path):
    new, described = identified_gripper(tmp_path, lambda phi: 1.3 * phi)
    written = write_urdf(new, tmp_path / "out.urdf")
    assert not any("no physical body" in note for note in written.notes)
    before, after = ({link.name: link.phi for link in read_robot(p).merged} for p in (described.source.path, written.path))
    for name, phi in before.items():
        np.testing.assert_array_equal(after[name], phi)


def test_an_impossible_body_lighter_than_its_gripper_still_reloads(tmp_path):
    """Of a body that is none, the links get masses that Pinocchio can add up."""
    new, _ = identified_gripper(tmp_path, lambda phi: phi * np.array([0.3, 1, 1, 1, -1, 1, 1, 1, 1, 1]))
    written = write_urdf(new, tmp_path / "out.urdf", allow_inconsistent=True)
    assert any("so that its mass is positive" in note for note in written.notes)
    assert file_parity("urdf", new, written.path) < 1e-11


def test_pinocchio_loads_no_negative_mass_and_the_proof_says_so(tmp_path):
    new, described = identified_gripper(tmp_path, lambda phi: -0.3 * phi)
    written = write_urdf(new, tmp_path / "out.urdf", allow_inconsistent=True)
    assert file_parity("urdf", new, written.path) > 1.0
    reason = why_unequal(new, written.path)
    assert "Pinocchio misplaces the centre of links whose mass is not positive (wrist has -1.335 kg)" in reason
    again = read_robot(written.path, effects="none", lock={"grip": 0.03})
    np.testing.assert_allclose(again.parameters.values, new.parameters.values, rtol=1e-12, atol=1e-14)
    # of a file that is merely another robot's nothing of the kind is said
    assert why_unequal(new, described.source.path) == ""


def test_torques_that_overflow_differ_without_bound():
    assert largest_gap(np.ones((2, 1)), np.array([[1.0], [np.nan]])) == np.inf


def test_locked_joints_of_a_floating_robot(arm, tmp_path):
    robot = changed(read_robot(arm, effects="none", floating=True).lock({"turn": 0.4, "slide": 0.03}))
    written = write_urdf(robot, tmp_path / "floating.urdf")
    assert file_parity("urdf", robot, written.path) < 1e-12


def test_locked_joints_stay_joints_of_the_file(arm, tmp_path):
    robot = read_robot(arm, effects=ALL, joints=["turn", "spin"], lock={"slide": 0.07})
    new = changed(robot)
    written = write_urdf(new, tmp_path / "cut.urdf")
    assert file_parity("urdf", new, written.path) < 1e-13
    model = pin.buildModelFromUrdf(str(written.path))
    assert set(model.names) >= {"turn", "spin", "slide", "other_slide"}
    elsewhere = read_robot(arm, effects=ALL, joints=["turn", "spin"], lock={"slide": 0.0})
    moved = elsewhere.with_parameters(new.parameters)
    assert file_parity("urdf", moved, written.path) > 1e-6


def test_a_locked_joint_may_have_the_name_of_a_link(tmp_path):
    """As the gripper of the SO-100: Pinocchio finds two frames of that name."""
    source = tmp_path / "arm.urdf"
    source.write_text(ARM_URDF.replace('name="slide"', 'name="LINK"'))
    link = read_robot(source).links[0]
    source.write_text(source.read_text().replace('"LINK"', f'"{link}"'))
    robot = read_robot(source, joints=["turn", "spin"], lock={link: 0.07})
    written = write_urdf(robot, tmp_path / "new.urdf")
    assert file_parity("urdf", robot, written.path) < 1e-12
    assert why_unequal(robot, written.path) == ""


def test_negative_friction_is_not_handed_to_simulators(arm, tmp_path):
    robot = read_robot(arm, effects=ALL).with_parameters({"fv1": -0.2, "fc1": 0.5})
    written = write_urdf(robot, tmp_path / "new.urdf")
    assert "fv1 = -0.2 of joint 'turn' is negative and was written as 0" in written.notes
    assert '<dynamics damping="0.0" friction="0.5"/>' in written.path.read_text()


def test_nothing_is_said_to_be_written_that_has_no_place(arm, tmp_path):
    robot = read_robot(arm, effects=ALL).with_parameters({"Ia1": -0.2})
    for written in (
        write_urdf(robot, tmp_path / "patched.urdf"),
        write_urdf(replace(robot, source=Source()), tmp_path / "new.urdf"),
    ):
        assert any("no place for rotor inertia" in note for note in written.notes)
        assert not any("written as 0" in note and "Ia1" in note for note in written.notes)


def test_rotor_inertia_that_a_file_states_is_kept_up_to_date(tmp_path):
    source = tmp_path / "arm.urdf"
    source.write_text(ARM_URDF.replace('damping="0.4"', 'damping="0.4" armature="0.05"'))
    robot = read_robot(source, effects=ALL).with_parameters({"Ia1": 0.125})
    assert 'armature="0.125"' in write_urdf(robot, tmp_path / "new.urdf").path.read_text()


def test_inconsistent_links_are_refused_by_name(arm, tmp_path):
    robot = read_robot(arm).with_parameters({"Ixx2": -1.0, "m3": -0.1})
    target = tmp_path / "bad.urdf"
    with pytest.raises(InconsistentModelError, match=facts("2", "4", "link")):
        write_urdf(robot, target)
    assert not target.exists()
    written = write_urdf(robot, target, allow_inconsistent=True)
    assert any("not physically consistent" in note for note in written.notes)
    assert file_parity("urdf", robot, target) < 1e-12


@pytest.mark.parametrize("mass", [0.0, -1.4e-14])
def test_first_moments_without_mass_cannot_be_written(arm, tmp_path, mass):
    """Nor where the mass is what rounding left of zero, as in least squares of a robot without nominal masses."""
    robot = read_robot(arm).with_parameters({"m2": mass, "mx2": 0.3})
    with pytest.raises(InputError, match=facts("URDF", "moment", "mass")):
        write_urdf(robot, tmp_path / "bad.urdf", allow_inconsistent=True)


def test_source_that_changed_or_vanished(arm, tmp_path):
    robot = changed(read_robot(arm))
    kept = arm.read_text()
    arm.write_text(kept.replace("0.4", "0.5"))
    with pytest.raises(InputError, match="has changed since the robot was read"):
        write_urdf(robot, tmp_path / "new.urdf")
    assert write_urdf(robot, tmp_path / "new.urdf", source=arm).patched
    arm.unlink()
    written = write_urdf(robot, tmp_path / "new.urdf")
    assert not written.patched
    assert any("no longer there" in note for note in written.notes)
    assert file_parity("urdf", robot, written.path) < 1e-12


def test_source_of_another_robot_is_refused(arm, tmp_path):
    with pytest.raises(UnknownNameError, match="unknown link 'turret'"):
        write_urdf(demo_arm(), tmp_path / "new.urdf", source=arm)


def test_relative_meshes_are_found_from_another_folder(tmp_path):
    source = tmp_path / "arm.urdf"
    source.write_text(ARM_URDF.replace("package://nowhere/upper.dae", "meshes/upper.dae"))
    other = tmp_path / "elsewhere" / "run"
    other.mkdir(parents=True)
    robot = read_robot(source)
    written = write_urdf(robot, other / "a.urdf")
    assert any("'meshes/upper.dae' are not in the folder" in note for note in written.notes)
    assert 'filename="meshes/upper.dae"' in written.path.read_text()
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "upper.dae").write_text("a mesh")
    written = write_urdf(robot, other / "b.urdf")
    assert 'filename="../../meshes/upper.dae"' in written.path.read_text()
    assert not any("mesh" in note for note in written.notes)
    assert write_urdf(robot, tmp_path / "same.urdf").path.read_text().count('filename="meshes/upper.dae"') == 1


def test_xacro_source_is_expanded(tmp_path):
    source = tmp_path / "arm.urdf.xacro"
    source.write_text(
        ARM_URDF.replace(
            '<robot name="arm">',
            '<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:property name="grip" value="20"/>',
        ).replace('effort="20"', 'effort="${grip}"')
    )
    robot = changed(read_robot(source))
    written = write_urdf(robot, tmp_path / "arm.urdf")
    assert "written as the text that xacro expands to" in written.notes
    assert "${" not in written.path.read_text()
    assert file_parity("urdf", robot, written.path) < 1e-12


# New files ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("floating", [False, True])
def test_any_tree_can_be_written_anew(tmp_path, seed, floating):
    robot = random_tree(seed, 7, floating=floating)
    written = write_urdf(robot, tmp_path / "tree.urdf")
    assert not written.patched
    assert file_parity("urdf", robot, written.path) < 1e-12
    assert any("URDF has no gravity" in note for note in written.notes)
    assert any("shifted onto their joint axes" in note for note in written.notes)
    assert any("floating" in note for note in written.notes) == floating


def test_demo_arm_is_written_with_limits_and_friction(tmp_path):
    robot = demo_arm()
    path = write_urdf(robot, tmp_path / "demo.urdf").path
    assert file_parity("urdf", robot, path) < PARITY
    again = read_robot(path)
    assert again.joint_names == robot.joint_names
    assert again.links == robot.links
    np.testing.assert_array_equal(again.position_limits, robot.position_limits)
    for limit in ("dq_max", "tau_max"):
        np.testing.assert_array_equal(again.limits(limit), robot.limits(limit))
    for name in ("fv3", "fc6"):
        assert again.parameters[name] == robot.parameters[name]
    (flange,) = [link for link in robot.merged if link.body == 6]
    (reread,) = [link for link in again.merged if link.name == flange.name]
    np.testing.assert_allclose(reread.placement, flange.placement, atol=1e-12)


def test_standard_dh_frames_are_moved_to_the_joints(tmp_path):
    from dynid.io.robots.dh import robot_from_table

    joints = [
        {
            "name": f"j{k}",
            "type": kind,
            "a": a,
            "alpha": alpha,
            "d": d,
            "inertial": {
                "mass": 2.0,
                "com": [-0.1, 0.02, 0.03],
                "inertia": {"ixx": 0.02, "ixy": 0.001, "ixz": 0.0, "iyy": 0.03, "iyz": 0.002, "izz": 0.025},
            },
        }
        for k, (kind, a, alpha, d) in enumerate(
            [("revolute", 0.4, 1.5707963267948966, 0.3), ("prismatic", 0.1, 0.3, 0.2), ("revolute", 0.25, -0.7, 0.1)]
        )
    ]
    robot = robot_from_table(
        {"name": "standard", "gravity": [0.0, 0.0, -9.81], "dh_convention": "standard", "joint": joints}
    )
    written = write_urdf(robot, tmp_path / "dh.urdf")
    assert file_parity("urdf", robot, written.path) < 1e-13
    assert any("written as continuous" in note for note in written.notes)
    # a massive link frame at the distal end would put the centre of mass at a - 0.1
    model = pin.buildModelFromUrdf(str(written.path))
    assert model.inertias[1].lever[0] == pytest.approx(0.3)


def test_mjcf_robot_is_written_anew(tmp_path):
    source = tmp_path / "arm.xml"
    source.write_text(ARM_MJCF)
    robot = changed(read_robot(source))
    written = write_urdf(robot, tmp_path / "arm.urdf")
    assert not written.patched
    assert file_parity("urdf", robot, written.path) < 1e-13


def test_screw_joint_has_no_urdf(tmp_path):
    robot = planar_2r()
    screw = np.array([0.0, 0.01, 0.0, 0.0, 1.0, 0.0])
    helical = replace(robot, joints=(robot.joints[0], replace(robot.joints[1], screw=screw)))
    with pytest.raises(InputError, match=facts("elbow", "0.01", "m/rad", "joint")):
        write_urdf(helical, tmp_path / "screw.urdf")


def test_names_with_markup_survive(tmp_path):
    robot = replace(planar_2r(), name='a "b" & <c>', links=("upper & co", "lower"))
    path = write_urdf(robot, tmp_path / "odd.urdf").path
    again = read_robot(path)
    assert again.name == 'a "b" & <c>'
    assert again.links == ("upper & co", "lower")


def test_angles_are_accurate_everywhere():
    rng = np.random.default_rng(0)
    rotations = [random_rotation(rng) for _ in range(50)]
    for pitch in (np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, -np.pi / 2 + 1e-7):
        rotations += [rotation_from_rpy(roll, pitch, yaw) for roll, yaw in rng.uniform(-3, 3, (10, 2))]
    for rotation in rotations:
        np.testing.assert_allclose(rotation_from_rpy(*rpy_from_rotation(rotation)), rotation, atol=2e-15)


# Files --------------------------------------------------------------------------------------------


def test_a_file_is_complete_or_not_there(arm, tmp_path, monkeypatch):
    robot = changed(read_robot(arm))
    target = tmp_path / "out.urdf"
    target.write_text("before")

    def full(self, other):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(InputError, match=facts("out.urdf", "device")):
        write_urdf(robot, target)
    assert target.read_text() == "before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["arm.urdf", "out.urdf"]


def test_places_that_cannot_be_written(arm, tmp_path):
    robot = read_robot(arm)
    with pytest.raises(InputError, match="there is no folder"):
        write_urdf(robot, tmp_path / "no" / "out.urdf")
    with pytest.raises(InputError, match="it is a folder"):
        write_urdf(robot, tmp_path)


def test_proof_refuses_a_file_of_another_robot(arm, tmp_path):
    with pytest.raises(UnknownNameError, match=facts("turn", "spin", "shoulder", "joint")):
        file_parity("urdf", planar_2r(), arm)
    more = tmp_path / "more.urdf"
    tail = '<link name="tail"/><joint name="wag" type="continuous"><parent link="fore"/><child link="tail"/></joint></robot>'
    more.write_text(ARM_URDF.replace("</robot>", tail))
    with pytest.raises(InputError, match=facts("wag", "arm", "joint")):
        file_parity("urdf", read_robot(arm), more)
    broken = tmp_path / "broken.urdf"
    broken.write_text('<robot name="x"><link name="a"/><link name="b"/></robot>')
    with pytest.raises(InputError, match="cannot be loaded by Pinocchio"):
        file_parity("urdf", planar_2r(), broken)


def example_urdf(name: str) -> Path:
    files = metadata.files("example-robot-data") or []
    return next(Path(str(file.locate())) for file in files if str(file).endswith(name))


@pytest.mark.parametrize(
    "name", ["panda.urdf", "ur5_robot.urdf", "talos_full_v2.urdf", "anymal_c_simple_description/urdf/anymal.urdf"]
)
def test_published_robots_keep_their_files_and_reload(tmp_path, name):
    source = example_urdf(name)
    robot = read_robot(source, effects=ALL)
    same = write_urdf(robot, tmp_path / "same.urdf", allow_inconsistent=True)
    if not any(
        robot.joints[tie.follower].nominal for tie in robot.loops.ties
    ):  # friction of a follower is that of its leader
        assert same.path.read_bytes() == source.read_bytes()
    new = changed(robot)
    patched = write_urdf(new, tmp_path / "patched.urdf", allow_inconsistent=True)
    assert file_parity("urdf", new, patched.path, n_states=20) < 1e-11
    fresh = write_urdf(replace(new, source=Source()), tmp_path / "fresh.urdf", allow_inconsistent=True)
    assert not fresh.patched
    assert file_parity("urdf", new, fresh.path, n_states=20) < 1e-11
