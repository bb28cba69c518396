"""MJCF: MuJoCo's inverse dynamics of the same text are the reference."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from dynid.adapters import mujoco as adapter
from dynid.adapters import pinocchio as reference
from dynid.errors import InputError
from dynid.robot.effects import Armature
from dynid.robot.mjcf import read_mjcf
from dynid.robot.model import Robot
from problems import ARM_MJCF, demo_arm, random_motion, random_tree

FRICTIONLESS = ARM_MJCF.replace('damping="0.3"', "").replace('frictionloss="0.2"', "")


def write(folder: Path, text: str, name: str = "arm.xml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def unbounded(text: str) -> mujoco.MjModel:
    """MuJoCo's own model without the missing mesh, and without joint limits, which would push back."""
    spec = mujoco.MjSpec.from_string(
        text.replace('<mesh name="shell" file="missing.stl"/>', "").replace('<geom type="mesh" mesh="shell"/>', "")
    )
    model = spec.compile()
    model.jnt_limited[:] = False
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
    return model


def assert_same_dynamics(robot: Robot, model: mujoco.MjModel) -> None:
    robot = robot.with_effects([Armature()])
    q, v, a = random_motion(robot, 10)
    ours = reference.inverse_dynamics(reference.pinocchio_model(robot), reference.to_pinocchio_position(robot, q), v, a)
    forces = adapter.inverse_dynamics(model, *adapter.to_mujoco_motion(robot, q, v, a))
    np.testing.assert_allclose(adapter.from_mujoco_force(robot, q, forces), ours, atol=1e-10 * np.abs(ours).max())


def test_dynamics_are_those_of_mujoco_on_the_same_text(tmp_path: Path) -> None:
    assert_same_dynamics(read_mjcf(write(tmp_path, FRICTIONLESS)), unbounded(FRICTIONLESS))


def test_joints_limits_effects_and_merged_bodies(tmp_path: Path) -> None:
    robot = read_mjcf(write(tmp_path, ARM_MJCF))
    assert robot.joint_names == ("turn", "pitch", "yaw", "push")
    assert robot.links == ("upper", "fore.pitch", "fore.yaw", "fore")
    assert [joint.kind for joint in robot.joints] == ["revolute", "continuous", "revolute", "prismatic"]
    turn, pitch, yaw, push = robot.joints
    assert (turn.q_min, turn.q_max) == pytest.approx((-np.pi / 2, 2 * np.pi / 3))
    assert turn.tau_max == 60.0  # force range times gear
    assert pitch.tau_max == 20.0  # a plain motor's control range times gear
    assert turn.nominal == {"Ia": 0.05, "fv": 0.3, "fc": 0.2}
    assert pitch.nominal == pytest.approx({"Ia": 0.002 * 10**2, "fv": 0.3})
    assert (push.q_min, push.q_max) == (-0.2, 0.3)
    assert yaw.dq_max == np.inf
    assert not robot.parameters.inertials[1:3].any()  # between joints of one body there is nothing
    assert robot.parameters["m1"] == pytest.approx(2.3)
    assert {link.name: link.body for link in robot.merged} == {"stand": -1, "camera": 0}
    np.testing.assert_allclose(robot.gravity, [0.1, 0.2, -9.7])
    assert "no velocity limit: MJCF has none" in robot.source.notes


FREE = """<mujoco><worldbody><body name="torso" pos="1 2 3" quat="0.8 0.6 0 0"><freejoint name="root"/>
  <inertial mass="3" pos="0.1 0 0" diaginertia="0.1 0.2 0.25"/>
  <body name="leg" pos="0 0 -0.3"><joint name="hip" axis="1 1 0" pos="0 0 0.1"/>
  <inertial mass="1" pos="0 0 -0.2" diaginertia="0.02 0.02 0.01"/></body></body></worldbody></mujoco>"""


def test_a_free_joint_is_a_floating_base(tmp_path: Path) -> None:
    robot = read_mjcf(write(tmp_path, FREE))
    assert robot.floating
    assert robot.links == ("torso", "leg")
    assert_same_dynamics(robot, unbounded(FREE))


@pytest.mark.parametrize("robot", [demo_arm(), random_tree(3, 6, effects=[Armature()])], ids=["arm", "tree"])
def test_what_we_write_we_read_back(tmp_path: Path, robot: Robot) -> None:
    again = read_mjcf(write(tmp_path, adapter.mjcf_text(robot)))
    columns = again.with_effects([Armature()]).parameters
    assert set(again.joint_names) == set(robot.joint_names)
    for i, theirs in enumerate(again.joints):  # depth first, so perhaps in another order
        j = robot.joint_index(theirs.name)
        ours = robot.joints[j]
        assert again.links[i] == robot.links[j]
        assert (theirs.parent < 0) == (ours.parent < 0)
        assert ours.parent < 0 or again.links[theirs.parent] == robot.links[ours.parent]
        np.testing.assert_allclose(theirs.pose(0.7), ours.pose(0.7), atol=1e-14)
        np.testing.assert_allclose(again.parameters.inertials[i], robot.parameters.inertials[j], atol=1e-13)
        assert columns[f"Ia{i + 1}"] == pytest.approx(robot.parameters[f"Ia{j + 1}"])


def test_includes_are_put_in_place(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    write(tmp_path / "parts", '<mujocoinclude><joint name="knee"/></mujocoinclude>', "knee.xml")
    text = FREE.replace('<joint name="hip" axis="1 1 0" pos="0 0 0.1"/>', '<include file="parts/knee.xml"/>')
    assert read_mjcf(write(tmp_path, text)).joint_names == ("root", "knee")


BALL = FREE.replace('<joint name="hip" axis="1 1 0" pos="0 0 0.1"/>', '<joint name="hip" type="ball"/>')
LOOSE = FREE.replace(
    "</worldbody>",
    '<body name="cup"><freejoint name="cup_joint"/><inertial mass="1" pos="0 0 0" diaginertia="1 1 1"/></body></worldbody>',
)
MESH_MASS = ARM_MJCF.replace('<inertial mass="2" pos="0.1 0.02 0" fullinertia="0.1 0.12 0.15 0.01 -0.005 0.002"/>', "")
BOMB = '<!DOCTYPE x [<!ENTITY a "b">]><mujocoinclude/>'


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (BALL, "joint 'hip' in .* is a ball joint, expected hinge, slide or a free joint"),
        (LOOSE, "joint 'cup_joint' floats inside the tree"),
        (MESH_MASS, "cannot compile .*missing.stl.*bodies without <inertial> weigh what their meshes do: upper"),
        (FREE.replace("<freejoint", "<wings/><freejoint"), "cannot compile robot file .*unrecognized element"),
        (FREE.replace('mass="1"', 'mass="0"'), "cannot compile robot file .*'leg'"),
        ("<mujoco/>", "has no moving joint"),
        ("<robot/>", "outermost element <robot>, expected <mujoco>"),
        ('<mujoco><include file="../else/where.xml"/></mujoco>', "includes '../else/where.xml', which lies outside"),
        ('<mujoco><include file="/etc/passwd"/></mujoco>', "includes '/etc/passwd', which lies outside"),
        ('<mujoco><include file="arm.xml"/></mujoco>', "includes 'arm.xml' more than once"),
        ('<mujoco><include file="none.xml"/></mujoco>', "none.xml' does not exist"),
        ('<mujoco><include file="bomb.xml"/></mujoco>', "included file .* declares a document type or entities"),
        ("<mujoco><include/></mujoco>", "an <include> without a file"),
        ("<mujoco><worldbody><composite/></worldbody></mujoco>", "uses <composite>, which is not supported"),
    ],
)
def test_bad_files_get_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    write(tmp_path, BOMB, "bomb.xml")
    with pytest.raises(InputError, match=sentence) as caught:
        read_mjcf(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_mass_from_a_mesh_that_is_there(tmp_path: Path) -> None:
    """A tetrahedron of density 1000: volume 1/6 m^3 scaled by 0.1^3."""
    (tmp_path / "meshes").mkdir()
    corners = "v 0 0 0\nv 0.1 0 0\nv 0 0.1 0\nv 0 0 0.1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
    write(tmp_path / "meshes", corners, "part.obj")
    text = """<mujoco><compiler meshdir="meshes"/>
      <asset><mesh name="part" file="part.obj"/><mesh file="absent.stl"/></asset>
      <worldbody><body name="a"><joint/><geom type="mesh" mesh="part"/></body></worldbody></mujoco>"""
    assert read_mjcf(write(tmp_path, text)).parameters["m1"] == pytest.approx(1000 * 0.1**3 / 6, rel=1e-6)


def test_what_is_not_modelled_is_noted(tmp_path: Path) -> None:
    text = FREE.replace('pos="0 0 0.1"/>', 'pos="0 0 0.1" stiffness="3" damping="1 2"/>').replace(
        "</mujoco>", '<equality><joint joint1="hip"/></equality><option><flag gravity="disable"/></option></mujoco>'
    )
    robot = read_mjcf(write(tmp_path, text))
    notes = "\n".join(robot.source.notes)
    assert "spring of joint 'hip' (stiffness 3)" in notes
    assert "nonlinear damping of joint 'hip'" in notes
    assert "equality constraints" in notes
    assert not robot.gravity.any()
