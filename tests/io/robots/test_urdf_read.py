"""URDF and xacro: Pinocchio's own model of the same text is the reference."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from dynid.dynamics.pinocchio_model import inverse_dynamics, pinocchio_model, to_pinocchio_position
from dynid.errors import InputError
from dynid.io.robots.description import read_description
from dynid.io.robots.urdf_read import robot_from_urdf
from dynid.model.inertia import change_of_frame
from dynid.model.links import links_of
from dynid.model.robot import Robot
from problems import ARM_URDF, random_motion


def read_urdf(path, *, floating=False):
    return robot_from_urdf(read_description(path), floating=floating)


def write(folder: Path, text: str, name: str = "arm.urdf") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def assert_same_dynamics(robot: Robot, model: pin.Model, samples: int = 10) -> None:
    assert list(model.names)[1:] == list(robot.joint_names)
    q, v, a = random_motion(robot, samples)
    q = to_pinocchio_position(robot, q)
    expected = inverse_dynamics(model, q, v, a)
    ours = inverse_dynamics(pinocchio_model(robot), q, v, a)
    scale = np.abs(expected).max()
    assert scale > 0.0
    np.testing.assert_allclose(ours, expected, atol=1e-11 * scale)


def test_dynamics_are_those_of_pinocchio_on_the_same_text(tmp_path: Path) -> None:
    file = write(tmp_path, ARM_URDF)
    assert_same_dynamics(read_urdf(file), pin.buildModelFromXML(ARM_URDF))
    assert_same_dynamics(read_urdf(file, floating=True), pin.buildModelFromXML(ARM_URDF, pin.JointModelFreeFlyer()))


def test_joints_limits_friction_and_notes(tmp_path: Path) -> None:
    robot = read_urdf(write(tmp_path, ARM_URDF))
    assert robot.name == "arm"
    # siblings stand in the order of their names, as Pinocchio has them
    assert robot.joint_names == ("turn", "spin", "other_slide", "slide")
    assert robot.links == ("upper", "fore", "other_finger", "finger")
    assert [joint.kind for joint in robot.joints] == ["revolute", "continuous", "prismatic", "prismatic"]
    turn, spin, other, slide = robot.joints
    assert (turn.q_min, turn.q_max, turn.dq_max, turn.tau_max) == (-2.0, 2.5, 3.0, 50.0)
    assert turn.nominal == {"fv": 0.4, "fc": 0.7}
    np.testing.assert_allclose(turn.screw, [0, 0, 0, 0, 0, 1])
    assert (slide.q_min, slide.q_max) == (0.0, 0.1)
    assert spin.q_max == spin.dq_max == other.dq_max == other.tau_max == np.inf
    notes = "\n".join(robot.source.notes)
    assert "moving links without mass: other_finger" in notes
    assert "no velocity limit: spin, other_slide" in notes


def test_fixed_links_are_merged_and_remembered(tmp_path: Path) -> None:
    robot = read_urdf(write(tmp_path, ARM_URDF))
    merged = {link.name: link for link in robot.merged}
    assert {name: link.body for name, link in merged.items()} == {"world": -1, "base": -1, "camera": 0}
    assert merged["base"].phi[0] == 4.0
    camera = merged["camera"]
    np.testing.assert_allclose(camera.placement[:3, 3], [0.1, 0.05, 0.0], atol=1e-15)
    assert robot.parameters["m1"] == pytest.approx(2.3)
    apart = {link.name: link.phi for link in links_of(robot)}
    assert list(apart) == ["upper", "fore", "other_finger", "finger", "world", "base", "camera"]
    carried = change_of_frame(camera.placement[:3, :3], camera.placement[:3, 3]) @ camera.phi
    np.testing.assert_allclose(apart["upper"] + carried, robot.parameters.inertials[0], atol=1e-15)
    assert apart["upper"][0] == pytest.approx(2.0)
    assert not apart["other_finger"].any()


def test_floating_joint_in_the_file(tmp_path: Path) -> None:
    text = ARM_URDF.replace('name="mount" type="fixed"', 'name="mount" type="floating"')
    robot = read_urdf(write(tmp_path, text))
    assert robot.floating
    assert robot.links[0] == "base"
    assert_same_dynamics(robot, pin.buildModelFromXML(text))
    with pytest.raises(InputError, match="already has a floating joint"):
        read_urdf(write(tmp_path, text), floating=True)


def test_revolute_joint_without_limits_is_read(tmp_path: Path) -> None:
    text = ARM_URDF.replace('<limit lower="-2" upper="2.5" effort="50" velocity="3"/>', "")
    joint = read_urdf(write(tmp_path, text)).joints[0]
    assert (joint.kind, joint.q_min, joint.q_max, joint.dq_max) == ("revolute", -np.inf, np.inf, np.inf)


def test_a_robot_without_a_name_is_called_after_its_file(tmp_path: Path) -> None:
    assert read_urdf(write(tmp_path, ARM_URDF.replace(' name="arm"', ""), "picker.urdf")).name == "picker"


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('name="spin" type="continuous"', 'name="spin" type="planar"', "unknown joint type 'planar' in joint 'spin'"),
        ('name="spin" type="continuous"', 'name="spin" type="spherical"', "unknown joint type 'spherical'"),
        ('name="spin"', 'name="turn"', "joint name 'turn' appears 2 times"),
        ('link name="fore"', 'link name="upper"', "link name 'upper' appears 2 times"),
        ('child link="fore"', 'child link="five"', "unknown child link 'five' in joint 'spin'.*available: world"),
        ('<parent link="camera"/><child link="fore"/>', '<child link="fore"/>', "joint 'spin' .* has no <parent link"),
        ('child link="fore"', 'child link="upper"', "link 'upper' .* hangs on two joints, 'turn' and 'spin'"),
        ('<parent link="base"/><child link="upper"/>', '<parent link="finger"/><child link="upper"/>', "is cyclic"),
        ('<parent link="world"/><child link="base"/>', '<parent link="base"/><child link="world"/>', None),
        ('<link name="world"/>', '<link name="world"/><link name="lost"/>', "2 links without a parent .world, lost"),
        ('<axis xyz="0 0 2"/>', '<axis xyz="0 0 0"/>', "axis of joint 'turn' .* is zero"),
        (
            '<axis xyz="0 0 2"/>',
            '<axis xyz="0 2"/>',
            "axis of joint 'turn' .* has xyz '0 2', expected 3 finite numbers",
        ),
        ('mass value="2.0"', 'mass value="two"', "mass of link 'upper' .* has value 'two', expected 1 finite number"),
        ('mass value="2.0"', 'mass value="nan"', "mass of link 'upper' .* has value 'nan'"),
        ('<mass value="2.0"/>', "", "inertial of link 'upper' .* has no <mass>"),
        ('lower="-2" upper="2.5"', 'lower="2" upper="-2"', "joint 'turn' .* has lower 2 above upper -2"),
        ('velocity="3"', 'velocity="-3"', "joint 'turn' .* has velocity -3, expected a positive number"),
        ('velocity="3"', 'velocity="fast"', "has velocity 'fast', expected a number"),
        ('link name="fore"', "link", "has a <link> without a name"),
    ],
)
def test_bad_files_get_one_sentence(tmp_path: Path, old: str, new: str, sentence: str | None) -> None:
    assert old in ARM_URDF
    file = write(tmp_path, ARM_URDF.replace(old, new))
    if sentence is None:  # the tree turned upside down is another tree, not a mistake
        assert read_urdf(file).n_joints == 4
        return
    with pytest.raises(InputError, match=sentence) as caught:
        read_urdf(file)
    assert "\n" not in str(caught.value)


def test_a_robot_of_fixed_joints_is_refused(tmp_path: Path) -> None:
    text = '<robot name="rock"><link name="rock"/></robot>'
    with pytest.raises(InputError, match="has no moving joint"):
        read_urdf(write(tmp_path, text))
    assert read_urdf(write(tmp_path, text), floating=True).n_dof == 6


XACRO = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:property name="weight" value="1.5"/>
  <xacro:macro name="arm_link" params="name"><link name="${name}"><inertial><mass value="${2 * weight}"/>
    <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link></xacro:macro>
  <link name="base"/><xacro:arm_link name="upper"/>
  <joint name="turn" type="continuous"><parent link="base"/><child link="upper"/></joint>
</robot>
"""


@pytest.mark.parametrize("name", ["arm.urdf.xacro", "arm.urdf"])
def test_xacro_is_expanded(tmp_path: Path, name: str) -> None:
    robot = read_urdf(write(tmp_path, XACRO, name))
    assert robot.parameters["m1"] == 3.0
    assert "macros of xacro were expanded, with arguments at their defaults" in robot.source.notes


def test_xacro_mistakes_get_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be expanded: name 'wait' is not defined \(in 'arm.xacro'\)") as caught:
        read_urdf(write(tmp_path, XACRO.replace("2 * weight", "2 * wait"), "arm.xacro"))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["resource", "xacro", "xml", "dynid"])
def test_modules_beside_the_description_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    mark = tmp_path / "started"
    (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    robot = read_urdf(write(tmp_path, XACRO, "arm.xacro"))
    assert robot.parameters["m1"] == 3.0
    assert not mark.exists()


def test_xacro_includes_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "part.xacro").write_text(XACRO)
    include = '<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:include filename="part.xacro"/></robot>'
    assert read_urdf(write(tmp_path, include, "arm.xacro")).parameters["m1"] == 3.0


def published() -> list[Path]:
    """The URDF files of the wheel example-robot-data."""
    try:
        files = metadata.files("example-robot-data") or []
    except metadata.PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in files if file.name.endswith(".urdf")]


# files that describe no robot by themselves
NOT_ROBOTS = {"ur3.urdf": "has no <link>"}
FLY_ONLY = {"quadrotor_base.urdf": "has no moving joint", "iris_simple.urdf": "has no moving joint"}


@pytest.mark.parametrize("floating", [False, True])
def test_every_published_robot_has_pinocchios_dynamics(floating: bool) -> None:
    files = published()
    if not files:
        pytest.skip("example-robot-data is not installed")
    for file in files:
        refusal = (NOT_ROBOTS if floating else NOT_ROBOTS | FLY_ONLY).get(file.name)
        if refusal is not None:
            with pytest.raises(InputError, match=refusal):
                read_urdf(file, floating=floating)
            continue
        root = [pin.JointModelFreeFlyer()] if floating else []
        tree = read_urdf(file, floating=floating).opened  # Pinocchio moves joints that mimic others on their own
        assert_same_dynamics(tree, pin.buildModelFromUrdf(str(file), *root), samples=2)
