"""MJCF: MuJoCo's inverse dynamics of the same text are the reference."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from dynid.dynamics import pinocchio_model as reference
from dynid.errors import InputError
from dynid.io.robots import mujoco_model as adapter
from dynid.io.robots.description import read_description
from dynid.io.robots.mjcf_new import mjcf_text
from dynid.io.robots.mjcf_read import robot_from_mjcf
from dynid.model.effects.linear import Armature
from dynid.model.inertia import phi_from_mass_com_inertia
from dynid.model.links import links_of
from dynid.model.robot import Robot
from messages import facts
from problems import ARM_MJCF, demo_arm, random_motion, random_tree


def read_mjcf(path):
    return robot_from_mjcf(read_description(path))


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
    again = read_mjcf(write(tmp_path, mjcf_text(robot)))
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


IMPOSSIBLE = """<mujoco model="impossible"><compiler angle="degree"/>
<worldbody>
  <body name="stand"><inertial mass="3" pos="0 0 0.1" diaginertia="0.1 0.1 0.5"/>
    <body name="a" pos="0 0 1"><joint name="j1" axis="0 0 1" range="-90 90"/>
      <inertial mass="2" pos="0.1 0 0.02" quat="0.8 0.6 0 0" diaginertia="0.1 0.2 0.9"/>
      <body name="b" pos="0.3 0 0"><joint name="j2" axis="0 1 0" range="-90 90"/>
        <frame pos="0.1 0 0" euler="0 0 90"><inertial mass="1" pos="0.1 0 0" euler="10 20 30" diaginertia="0.01 0.02 0.09"/></frame>
        <body pos="0.3 0 0"><joint name="j3" axis="0 1 0" range="-90 90" armature="0.1"/>
          <inertial mass="-0.5" pos="0.1 0 0" fullinertia="0.01 0.01 0.015 0.001 0.002 0.003"/>
          <body name="tool" pos="0.1 0 0" axisangle="1 0 0 30">
            <inertial mass="0.2" pos="0 0 0.1" fullinertia="0.001 0.001 0.004 0.0001 -0.0002 0"/></body>
          <body name="e" pos="0.3 0 0"><joint name="j4" axis="1 0 0"/>
            <inertial mass="0.5" pos="0.1 0 0" diaginertia="0.01 0.01 0.012"/></body>
        </body>
      </body>
    </body>
  </body>
</worldbody>
<actuator><motor joint="j1" gear="3" armature="0.01"/></actuator>
</mujoco>"""


def turned(name: str, degrees: float) -> np.ndarray:
    c, s = np.cos(np.deg2rad(degrees)), np.sin(np.deg2rad(degrees))
    return {
        "x": np.array([[1, 0, 0], [0, c, -s], [0, s, c]]),
        "y": np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]]),
        "z": np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]),
    }[name]


def test_inertias_that_no_body_has_are_read_as_stated(tmp_path: Path) -> None:
    """Quaternions, Euler angles in a frame, full inertias and a negative mass; written out by hand."""
    robot = read_mjcf(write(tmp_path, IMPOSSIBLE))
    assert robot.links == ("a", "b", "body4", "e")
    found = {link.name: link.phi for link in links_of(robot)}
    in_b = turned("z", 90) @ turned("x", 10) @ turned("y", 20) @ turned("z", 30)
    half = turned("x", 2 * np.rad2deg(np.arctan2(0.6, 0.8)))
    full = np.array([[0.01, 0.001, 0.002], [0.001, 0.01, 0.003], [0.002, 0.003, 0.015]])
    tool = np.array([[0.001, 0.0001, -0.0002], [0.0001, 0.001, 0], [-0.0002, 0, 0.004]])
    stated = {
        "stand": (3.0, [0, 0, 0.1], np.diag([0.1, 0.1, 0.5])),
        "a": (2.0, [0.1, 0, 0.02], half @ np.diag([0.1, 0.2, 0.9]) @ half.T),
        "b": (1.0, [0.1, 0.1, 0], in_b @ np.diag([0.01, 0.02, 0.09]) @ in_b.T),
        "body4": (-0.5, [0.1, 0, 0], full),
        "tool": (0.2, [0, 0, 0.1], tool),
        "e": (0.5, [0.1, 0, 0], np.diag([0.01, 0.01, 0.012])),
    }
    assert found.keys() == stated.keys()
    for name, (mass, com, inertia) in stated.items():
        np.testing.assert_allclose(found[name], phi_from_mass_com_inertia(mass, com, inertia), atol=1e-15, err_msg=name)
    assert "inertias that MuJoCo does not take are read as they are stated: stand, a, b, body4, tool" in robot.source.notes
    assert robot.joints[0].nominal == pytest.approx({"Ia": 0.09})


def test_what_mujoco_does_to_masses_is_done_to_impossible_ones_too(tmp_path: Path) -> None:
    plain = read_mjcf(write(tmp_path, IMPOSSIBLE))
    total = read_mjcf(write(tmp_path, IMPOSSIBLE.replace("<compiler", '<compiler settotalmass="12.4"'), "total.xml"))
    np.testing.assert_allclose([link.phi for link in links_of(total)], [2.0 * link.phi for link in links_of(plain)])
    bounded = read_mjcf(write(tmp_path, IMPOSSIBLE.replace("<compiler", '<compiler boundmass="0.6"'), "bounded.xml"))
    assert {link.name: link.phi[0] for link in links_of(bounded)}["body4"] == pytest.approx(0.6)  # MuJoCo compiles that one
    heavy = read_mjcf(write(tmp_path, IMPOSSIBLE.replace("<compiler", '<compiler boundmass="9"'), "heavy.xml"))
    assert {link.name: link.phi[0] for link in links_of(heavy)}["a"] == pytest.approx(2.0)  # and this one it does not
    small, large = FREE.replace("0.1 0.2 0.25", "0.1 0.2 0.9"), FREE.replace("<worldbody>", '<worldbody><frame scale="2">')
    large = large.replace("</worldbody>", "</frame></worldbody>").replace("0.1 0.2 0.25", "0.1 0.2 0.9")
    m, h, I = (
        read_mjcf(write(tmp_path, small)).parameters.inertials[:, part] for part in (slice(1), slice(1, 4), slice(4, 10))
    )
    scaled = read_mjcf(write(tmp_path, large)).parameters.inertials
    np.testing.assert_allclose(scaled, np.hstack([8.0 * m, 16.0 * h, 32.0 * I]), atol=1e-12)


def test_negative_masses_that_mujoco_takes_for_zero_are_read_too(tmp_path: Path) -> None:
    text = FREE.replace(
        "</body></body>", '<body name="c"><inertial mass="-1" pos="0 0 0" diaginertia="1 1 1"/></body></body></body>'
    )
    assert mujoco.MjModel.from_xml_string(text).body("c").mass == 0.0
    robot = read_mjcf(write(tmp_path, text))
    assert robot.merged[0].phi[0] == -1.0
    assert "inertias that MuJoCo does not take are read as they are stated: c" in robot.source.notes


def test_moving_bodies_without_mass_are_empty(tmp_path: Path) -> None:
    text = FREE.replace('<inertial mass="1" pos="0 0 -0.2" diaginertia="0.02 0.02 0.01"/>', "")
    robot = read_mjcf(write(tmp_path, text))
    assert not robot.parameters.inertials[1].any()
    assert "bodies without mass, which MuJoCo does not compile where they move: leg" in robot.source.notes


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
        (BALL, facts("hip", "joint")),
        (LOOSE, "joint 'cup_joint' floats inside the tree"),
        (MESH_MASS, facts("missing.stl", "inertia")),
        (FREE.replace("<freejoint", "<wings/><freejoint"), "cannot compile robot file .*unrecognized element"),
        (FREE.replace('mass="1"', 'mass="nan"'), "cannot compile robot file .*'leg'"),
        (IMPOSSIBLE.replace('joint="j1"', 'joint="j9"'), "cannot compile robot file .*'j9'"),
        (
            IMPOSSIBLE.replace("<compiler", '<compiler settotalmass="3"').replace('"1"', '"-8"'),
            "3 kg, but .* -.* kg together",
        ),
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
    assert "not modelled: closed loops (equality) of a robot on a floating base" in notes
    assert not robot.gravity.any()
