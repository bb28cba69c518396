"""MJCF export: MuJoCo compiles what is written and gives the robot's torques; a robot's own file keeps the rest."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from pathlib import Path

import mujoco
import numpy as np
import pytest

from dynid.errors import InconsistentModelError, InputError, UnknownNameError
from dynid.estimation.methods.manifold import log_cholesky, phi_from_log_cholesky
from dynid.io.robots.mjcf_write import write_mjcf
from dynid.io.robots.proof import PARITY, file_parity
from dynid.io.robots.read import read_robot
from dynid.model.effects.dry_friction import Coulomb, Sigmoid, Stribeck
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.effects.wrapped import Coupled
from dynid.model.inertia import change_of_frame, phi_from_principal
from dynid.model.joint import MergedLink
from dynid.model.links import links_of
from dynid.model.robot import Source
from messages import facts
from problems import ARM_MJCF, ARM_URDF, demo_arm, planar_2r, random_rotation, random_tree

ALL = "viscous,coulomb,offset,armature"


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(ARM_MJCF)
    return path


def changed(robot, seed=0):
    """Other values for everything, every link still a physical body and a massless one still massless."""
    rng = np.random.default_rng(seed)
    values = robot.parameters.values.copy()
    for i, phi in enumerate(robot.parameters.inertials):
        if phi.any():
            theta = log_cholesky(phi)
            values[10 * i : 10 * i + 10] = phi_from_log_cholesky(theta + 0.05 * rng.uniform(-1, 1, 10) * np.abs(theta))
    n = robot.parameters.n_inertial
    values[n:] = values[n:] * rng.uniform(0.5, 1.5, len(values) - n) + 0.01
    return robot.with_parameters(robot.parameters.with_values(values))


def test_unchanged_robot_keeps_every_byte(arm, tmp_path):
    written = write_mjcf(read_robot(arm, ALL), tmp_path / "same.xml")
    assert written.patched
    assert written.path.read_text() == ARM_MJCF


def test_only_numbers_of_the_robots_own_file_change(arm, tmp_path):
    robot = read_robot(arm, ALL)
    new = changed(robot)
    written = write_mjcf(new, tmp_path / "new.xml")
    assert written.patched
    assert file_parity("mjcf", new, written.path) < 1e-13
    assert file_parity("mjcf", robot, written.path) > 1e-3
    text = written.path.read_text()
    kept = [line for line in ARM_MJCF.splitlines() if "<joint name" not in line and "inertial" not in line]
    assert [line for line in text.splitlines() if "<joint name" not in line and "inertial" not in line] == kept
    assert "fullinertia" not in text
    assert any("torque offset" in note for note in written.notes)
    camera = {link.name: link.phi for link in links_of(read_robot(written.path))}["camera"]
    np.testing.assert_allclose(camera, {link.name: link.phi for link in links_of(robot)}["camera"], rtol=1e-13, atol=1e-16)


def test_friction_and_rotor_inertia_are_mujocos(arm, tmp_path):
    new = read_robot(arm, ALL).with_parameters({"fv1": 0.5, "fc1": 0.25, "Ia1": 0.125, "fv4": 2.0})
    written = write_mjcf(new, tmp_path / "new.xml")
    again = read_robot(written.path, ALL)
    for name in ("fv1", "fc1", "Ia1", "fv4"):
        assert again.parameters[name] == new.parameters[name]


def test_actuators_keep_their_share_of_rotor_inertia_or_lose_it(arm, tmp_path):
    robot = read_robot(arm, ALL)
    assert robot.parameters["Ia2"] == pytest.approx(0.2)  # gear 10, 0.002 at the rotor
    more = write_mjcf(robot.with_parameters({"Ia2": 0.3}), tmp_path / "more.xml")
    assert 'ctrlrange="-2 2" armature="0.002"' in more.path.read_text()
    assert read_robot(more.path, ALL).parameters["Ia2"] == pytest.approx(0.3)
    less = write_mjcf(robot.with_parameters({"Ia2": 0.1}), tmp_path / "less.xml")
    assert 'ctrlrange="-2 2" armature="0"' in less.path.read_text()
    assert read_robot(less.path, ALL).parameters["Ia2"] == pytest.approx(0.1)
    assert any("written in the joint alone" in note for note in less.notes)
    assert file_parity("mjcf", robot.with_parameters({"Ia2": 0.1}), less.path) < 1e-13


def test_negative_friction_is_not_handed_to_mujoco(arm, tmp_path):
    robot = read_robot(arm, ALL).with_parameters({"fv1": -0.2})
    written = write_mjcf(robot, tmp_path / "new.xml")
    assert "fv1 = -0.2 of joint 'turn' is negative and was written as 0" in written.notes
    assert read_robot(written.path, ALL).parameters["fv1"] == 0.0
    assert file_parity("mjcf", robot, written.path) < 1e-13


def test_what_belongs_to_coupled_motors_is_called_so(arm, tmp_path):
    described = read_robot(arm, ALL)
    n = described.n_dof
    coupling = np.eye(n)
    coupling[1, 0] = 1.0
    motors = [Coupled(one, tuple(map(tuple, coupling.tolist())), motors=(2,)) for one in (Armature(), Offset())]
    robot = described.with_effects([Armature(), *motors]).with_parameters({"Iam2": 0.1, "fom2": 0.2})
    notes = write_mjcf(robot, tmp_path / "new.xml").notes
    assert any(
        "MJCF holds rotor inertia of coupled motors (Iam2 ..) only as rotor inertia of each joint alone" in note
        for note in notes
    )
    assert "MJCF has no place for torque offset of coupled motors (fom2 ..)" in notes


def test_other_friction_is_held_as_far_as_a_joint_can(arm, tmp_path):
    """A robot with friction of its own has nothing of its description's beside it."""
    described = read_robot(arm, ALL)
    assert described.parameters["fv1"] > 0.0
    robot = described.with_effects([Sigmoid(), Stribeck(), Armature()]).with_parameters({"fsig1": 1.5, "fs1": 0.4})
    for source in (arm, None):
        written = write_mjcf(replace(robot, source=Source()) if source is None else robot, tmp_path / "new.xml", source)
        again = read_robot(written.path, ALL)
        assert (again.parameters["fc1"], again.parameters["fv1"]) == (0.75, 0.0)
        assert "MJCF holds parameter fsig (fsig1 ..) only as dry friction of the same mean size" in written.notes
        assert "MJCF has no place for parameter fs (fs1 ..)" in written.notes
        assert file_parity("mjcf", robot, written.path) < 1e-13
    rotors = described.with_effects([Armature()])  # no friction of its own: that of the description stays
    again = read_robot(write_mjcf(rotors, tmp_path / "rotors.xml").path, ALL)
    assert again.parameters["fv1"] == described.parameters["fv1"]


def test_motors_that_share_joints_leave_what_a_joint_can_hold(tmp_path):
    B = np.array([[1.0, 1.0], [1.0, -0.5]])
    robot = planar_2r([Coupled(effect, tuple(map(tuple, B))) for effect in (Viscous(), Coulomb(), Armature())])
    robot = robot.with_parameters({"fvm1": 1.0, "fvm2": 2.0, "fcm1": 0.5, "fcm2": 0.25, "Iam1": 0.1, "Iam2": 0.2})
    written = write_mjcf(robot, tmp_path / "motors.xml")
    again = read_robot(written.path, ALL)
    np.testing.assert_allclose([again.parameters["fv1"], again.parameters["fv2"]], B.T**2 @ [1.0, 2.0])
    np.testing.assert_allclose([again.parameters["fc1"], again.parameters["fc2"]], np.abs(B.T) @ [0.5, 0.25])
    np.testing.assert_allclose([again.parameters["Ia1"], again.parameters["Ia2"]], B.T**2 @ [0.1, 0.2])
    assert any("motors (Iam1 ..)" in note and "rotor inertia of each joint" in note for note in written.notes)
    assert file_parity("mjcf", robot, written.path) < 1e-13


def test_gravity_is_written(arm, tmp_path):
    tilted = read_robot(arm, ALL, gravity=[1.0, 2.0, 3.0])
    assert file_parity("mjcf", tilted, write_mjcf(tilted, tmp_path / "a.xml").path) < 1e-13
    bare = tmp_path / "bare.xml"
    bare.write_text(ARM_MJCF.replace('<option gravity="0.1 0.2 -9.7"/>', ""))
    assert '<option gravity="1.0 2.0 3.0"/>' in write_mjcf(tilted, tmp_path / "b.xml", source=bare).path.read_text()
    off = tmp_path / "off.xml"
    off.write_text(ARM_MJCF.replace('-9.7"/>', '-9.7"><flag gravity="disable"/></option>'))
    written = write_mjcf(tilted, tmp_path / "c.xml", source=off)
    assert file_parity("mjcf", tilted, written.path) < 1e-13


@pytest.mark.parametrize(
    "option", ['inertiafromgeom="true"', 'settotalmass="20"', 'boundmass="4"', 'boundinertia="0.2"', 'balanceinertia="true"']
)
def test_compiler_options_that_change_masses_are_put_out_of_force(tmp_path, option):
    source = tmp_path / "arm.xml"
    text = ARM_MJCF.replace('<geom type="mesh" mesh="shell"/>', '<geom type="box" size="0.1 0.1 0.1"/>')
    text = text.replace('<inertial mass="0.3"', '<geom type="sphere" size="0.02"/><inertial mass="0.3"')
    source.write_text(text.replace('angle="degree"', f'angle="degree" {option}'))
    robot = read_robot(source, ALL)
    new = changed(robot)
    written = write_mjcf(new, tmp_path / "new.xml")
    assert written.patched
    assert file_parity("mjcf", new, written.path) < 1e-12


def test_bodies_in_frames_without_names_and_in_included_files(tmp_path):
    (tmp_path / "part.xml").write_text(
        "<mujocoinclude><body pos='0.3 0 0'><joint axis='0 1 0'/>"
        "<frame euler='0 0 30'><inertial mass='1' pos='0.1 0 0' diaginertia='0.01 0.02 0.02'/></frame>"
        "</body></mujocoinclude>"
    )
    source = tmp_path / "main.xml"
    source.write_text(
        "<mujoco model='two'><!-- a comment --><worldbody><frame pos='0 0 1'><body><joint name='first' axis='0 0 1'/>"
        "<geom type='box' size='0.1 0.1 0.1' mass='2'/><include file='part.xml'/></body></frame></worldbody></mujoco>"
    )
    robot = read_robot(source, ALL)
    assert robot.joint_names == ("first", "joint2")
    new = changed(robot)
    written = write_mjcf(new, tmp_path / "new.xml")
    assert written.patched
    assert any("written as one file" in note for note in written.notes)
    assert file_parity("mjcf", new, written.path) < 1e-13


def test_locked_joints_stay_joints_of_the_file(arm, tmp_path):
    robot = read_robot(arm, ALL, joints=["turn", "pitch"], lock={"yaw": 0.4, "push": 0.05})
    new = changed(robot)
    written = write_mjcf(new, tmp_path / "cut.xml")
    assert written.patched
    assert file_parity("mjcf", new, written.path) < 1e-13
    elsewhere = read_robot(arm, ALL, joints=["turn", "pitch"], lock={"yaw": 0.0, "push": 0.05}).with_parameters(
        new.parameters
    )
    assert file_parity("mjcf", elsewhere, written.path) > 1e-6


def test_mass_between_two_joints_of_one_body_needs_a_new_file(arm, tmp_path):
    robot = read_robot(arm, ALL).with_parameters({"m2": 0.1, "Ixx2": 0.01, "Iyy2": 0.01, "Izz2": 0.01})
    written = write_mjcf(robot, tmp_path / "new.xml")
    assert not written.patched
    assert any("no body of its own for link 'fore.pitch'" in note for note in written.notes)
    assert file_parity("mjcf", robot, written.path) < 1e-12


def test_replicated_bodies_need_a_new_file(tmp_path):
    source = tmp_path / "fan.xml"
    source.write_text(
        "<mujoco><worldbody><replicate count='3' offset='0.2 0 0'><body name='blade'><joint name='hub' axis='0 0 1'/>"
        "<geom type='box' size='0.1 0.02 0.01'/></body></replicate></worldbody></mujoco>"
    )
    robot = changed(read_robot(source, ALL))
    written = write_mjcf(robot, tmp_path / "new.xml")
    assert not written.patched
    assert any("<replicate>" in note for note in written.notes)
    assert file_parity("mjcf", robot, written.path) < 1e-12


def test_meshes_are_found_from_another_folder(tmp_path):
    home, away = tmp_path / "home", tmp_path / "away"
    (home / "assets").mkdir(parents=True)
    away.mkdir()
    corners = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
    faces = [(1, 3, 2), (1, 2, 4), (1, 4, 3), (2, 3, 4)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners] + [f"f {a} {b} {c}" for a, b, c in faces]
    (home / "assets" / "shell.obj").write_text("\n".join(lines))
    source = home / "arm.xml"
    source.write_text(ARM_MJCF.replace("missing.stl", "shell.obj").replace('"degree"', '"degree" meshdir="assets"'))
    robot = changed(read_robot(source, ALL))
    written = write_mjcf(robot, away / "arm.xml")
    assert mujoco.MjModel.from_xml_path(str(written.path)).nmesh == 1
    assert not any("without its looks" in note for note in written.notes)
    assert file_parity("mjcf", robot, written.path) < 1e-13
    missing = home / "missing.xml"
    missing.write_text(ARM_MJCF)
    assert any("only without its looks" in note for note in write_mjcf(read_robot(missing), away / "m.xml").notes)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("floating", [False, True])
def test_any_tree_can_be_written_anew(tmp_path, seed, floating):
    from dynid.model.effects import effects_from_names

    robot = random_tree(seed, 7, floating=floating, effects=effects_from_names(ALL))
    written = write_mjcf(robot, tmp_path / "tree.xml")
    assert not written.patched
    assert file_parity("mjcf", robot, written.path) < 1e-13
    lighter = robot.with_parameters({"m7": 0.9 * robot.parameters["m7"]})
    assert file_parity("mjcf", lighter, written.path) > 1e-4


def test_demo_arm_is_written_with_limits_motors_and_links(tmp_path):
    robot = demo_arm()
    path = write_mjcf(robot, tmp_path / "demo.xml").path
    assert file_parity("mjcf", robot, path) < PARITY
    model = mujoco.MjModel.from_xml_path(str(path))
    assert model.nu == robot.n_joints
    again = read_robot(path)
    assert again.joint_names == robot.joint_names
    assert again.links == robot.links
    assert {link.name for link in again.merged} == {link.name for link in robot.merged}
    np.testing.assert_array_equal(again.position_limits, robot.position_limits)
    np.testing.assert_array_equal(again.limits("tau_max"), robot.limits("tau_max"))
    for name in ("fv3", "fc6", "Ia2"):
        assert again.parameters[name] == robot.parameters[name]


def test_massless_moving_links_get_what_mujoco_demands(tmp_path):
    source = tmp_path / "arm.urdf"
    source.write_text(ARM_URDF)
    robot = read_robot(source, ALL)
    values = robot.parameters.values.copy()
    values[:40] = 0.0
    for i, link in enumerate(robot.links):
        if link != "other_finger":
            values[10 * i + np.array([0, 4, 6, 9])] = 1.0, 0.1, 0.1, 0.1
    robot = replace(robot, merged=()).with_parameters(robot.parameters.with_values(values))
    written = write_mjcf(robot, tmp_path / "arm.xml")
    assert any("link 'other_finger' has no mass; MuJoCo demands some" in note for note in written.notes)
    assert file_parity("mjcf", robot, written.path) < PARITY


def test_inconsistent_links_are_refused_whatever_is_allowed(arm, tmp_path):
    robot = read_robot(arm).with_parameters({"Ixx1": -1.0})
    with pytest.raises(InconsistentModelError, match=facts("1", "4", "link")) as refused:
        write_mjcf(robot, tmp_path / "bad.xml")
    assert "MuJoCo compiles no such bodies" in str(refused.value)
    assert not (tmp_path / "bad.xml").exists()


def test_source_that_changed_or_vanished_or_is_anothers(arm, tmp_path):
    robot = changed(read_robot(arm))
    arm.write_text(ARM_MJCF.replace("0.3", "0.31"))
    with pytest.raises(InputError, match="has changed since the robot was read"):
        write_mjcf(robot, tmp_path / "new.xml")
    assert write_mjcf(robot, tmp_path / "new.xml", source=arm).patched
    with pytest.raises(UnknownNameError, match="unknown link 'lower'"):
        write_mjcf(planar_2r(), tmp_path / "new.xml", source=arm)
    arm.unlink()
    written = write_mjcf(robot, tmp_path / "new.xml")
    assert not written.patched
    assert any("no longer there" in note for note in written.notes)


def test_helical_joints_are_refused(tmp_path):
    robot = planar_2r()
    helical = replace(robot, joints=(robot.joints[0], replace(robot.joints[1], screw=np.array([0, 0.01, 0, 0, 1.0, 0]))))
    with pytest.raises(InputError, match="joint 'elbow' is a helical joint"):
        write_mjcf(helical, tmp_path / "screw.xml")


def test_proof_refuses_a_file_of_another_robot(arm, tmp_path):
    with pytest.raises(UnknownNameError, match="unknown joint 'shoulder'"):
        file_parity("mjcf", planar_2r(), arm)
    with pytest.raises(InputError, match="neither one of robot 'arm' nor locked in it"):
        file_parity("mjcf", replace(read_robot(arm, joints=["turn"]), merged=()), arm)


@pytest.mark.parametrize("name", ["panda.urdf", "ur5_robot.urdf", "talos_full_v2.urdf"])
def test_published_robots_reload_in_mujoco(tmp_path, name):
    files = metadata.files("example-robot-data") or []
    source = next(Path(str(file.locate())) for file in files if str(file).endswith(name))
    robot = read_robot(source, effects=ALL)
    phi = robot.parameters.inertials
    # some of these descriptions hold links that no body could be
    values = robot.parameters.values.copy()
    mass = np.maximum(phi[:, 0], 1e-3)
    body = np.zeros_like(phi)
    body[:, 0], body[:, 1:4] = mass, phi[:, 1:4]
    size = (phi[:, 1:4] ** 2).sum(axis=1) / mass + 1e-3 * mass
    body[:, [4, 6, 9]] = 2.0 * size[:, None]
    values[: robot.parameters.n_inertial] = body.ravel()
    robot = replace(robot, source=Source()).with_parameters(robot.parameters.with_values(values))
    written = write_mjcf(robot, tmp_path / "robot.xml")
    assert file_parity("mjcf", robot, written.path, n_states=20) < 1e-11


def test_links_that_are_stated_as_impossible_go_into_the_body_they_hang_on(tmp_path):
    """MuJoCo compiles no such link; the body that it is part of is possible all the same."""
    source = tmp_path / "arm.urdf"
    base = '<inertial><mass value="2"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="9"/></inertial>'
    text = ARM_URDF.replace('<link name="world"/>', f'<link name="world">{base}</link>')
    assert text != ARM_URDF
    source.write_text(text)
    robot = read_robot(source, ALL)
    written = write_mjcf(robot, tmp_path / "arm.xml")
    assert "link camera on 'upper' is no physical body: inertials were put into it from camera" in written.notes
    assert "link 'world' on the ground is no physical body and is written without mass" in written.notes
    assert file_parity("mjcf", robot, written.path) < PARITY  # a finger without mass gets a trace of it
    assert not {link.name: link.phi for link in read_robot(written.path).merged}["camera"].any()


@pytest.mark.parametrize("seed", range(4))
def test_plates_hanging_on_a_body_compile(tmp_path, seed):
    """Bodies on the very boundary of what is possible, as descriptions have them for plates and rods."""
    rng = np.random.default_rng(seed)
    robot = random_tree(seed, 3)
    phi = phi_from_principal(
        rng.uniform(0.1, 2.0), rng.uniform(-0.1, 0.1, 3), random_rotation(rng), [0.0, *rng.uniform(1e-4, 1e-2, 2)]
    )
    place = np.eye(4)
    place[:3, :3], place[:3, 3] = random_rotation(rng), rng.uniform(-0.3, 0.3, 3)
    values = robot.parameters.values.copy()
    values[10:20] += change_of_frame(place[:3, :3], place[:3, 3]) @ phi
    robot = replace(robot, merged=(MergedLink("plate", 1, place, phi),), parameters=robot.parameters.with_values(values))
    assert file_parity("mjcf", robot, write_mjcf(robot, tmp_path / "plate.xml").path) < 1e-12
