"""Joints that follow others: ``mimic`` of URDF, ``equality joint`` of MJCF, ``[[loop]]`` with a polynomial."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np
import pytest

from dynid.dynamics.closed_chains import tree_motion
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.io.robots.mjcf_write import write_mjcf
from dynid.io.robots.read import read_robot
from dynid.io.robots.sdf_write import write_sdf
from dynid.io.robots.urdf_write import write_urdf
from dynid.model.loops import JointTie
from dynid.model.robot import Robot
from dynid.pipeline.robot_json import robot_from_sidecar, write_parameters
from messages import facts

LINK = (
    '<link name="{}"><inertial><origin xyz="0.1 0.02 0.03"/><mass value="{}"/>'
    '<inertia ixx="0.02" iyy="0.03" izz="0.025" ixy="0.001" ixz="0" iyz="0.002"/></inertial></link>'
)
LIMIT = '<limit lower="-1.5" upper="1.5" velocity="5" effort="100"/>'


def urdf(folder: Path, mimic: str = '<mimic joint="lower" multiplier="-1" offset="0.2"/>') -> Path:
    """Turntable, lower arm, an upper arm that is kept level by a rod, and a wrist."""
    links = "".join(LINK.format(name, mass) for name, mass in (("base", 1), ("a", 3), ("b", 4), ("c", 2), ("d", 1)))
    joints = "".join(
        f'<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{child}"/><origin xyz="{at}"/>'
        f'<axis xyz="{axis}"/>{LIMIT}{extra}</joint>'
        for name, parent, child, at, axis, extra in (
            ("turn", "base", "a", "0 0 0.3", "0 0 1", ""),
            ("lower", "a", "b", "0.1 0 0.2", "0 1 0", ""),
            ("rod", "b", "c", "0 0 0.6", "0 1 0", mimic),
            ("wrist", "c", "d", "0.5 0 0", "0 0 1", ""),
        )
    )
    path = folder / "palletiser.urdf"
    path.write_text(f'<robot name="palletiser">{links}{joints}</robot>')
    return path


def polynomial_side_file(path: Path, coefficients: list[float]) -> None:
    text = f'[[loop]]\nname = "cam"\njoint = "rod"\nfollows = "lower"\npolynomial = {coefficients}\n'
    path.with_name(path.stem + ".loops.toml").write_text(text)


def states(robot: Robot, n: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.uniform(-1.2, 1.2, (n, robot.n_joints)), *rng.normal(size=(2, n, robot.n_joints))


def expected_torque(robot: Robot, coefficients: tuple[float, ...]) -> np.ndarray:
    """``G^T tau`` of the open tree, with the follower's motion by the chain rule."""
    q, v, a = states(robot)
    p = np.polynomial.Polynomial(coefficients)
    slope, bend = p.deriv()(q[:, 1]), p.deriv(2)(q[:, 1])
    whole = [np.insert(q, 2, p(q[:, 1]), axis=1), np.insert(v, 2, slope * v[:, 1], axis=1)]
    whole.append(np.insert(a, 2, slope * a[:, 1] + bend * v[:, 1] ** 2, axis=1))
    tau = inverse_dynamics(robot.opened, *whole)
    return np.column_stack([tau[:, 0], tau[:, 1] + slope * tau[:, 2], tau[:, 3]])


def test_mimic_is_a_closure(tmp_path: Path) -> None:
    robot = read_robot(urdf(tmp_path), "none")
    assert robot.joint_names == ("turn", "lower", "wrist")
    assert any("'rod' follows 'lower' (multiplier -1, offset 0.2)" in note for note in robot.source.notes)
    np.testing.assert_allclose(inverse_dynamics(robot, *states(robot)), expected_torque(robot, (0.2, -1.0)), atol=1e-9)


def test_polynomial_of_a_side_file(tmp_path: Path) -> None:
    """The side file's own statement of a joint takes the place of the file's mimic."""
    path = urdf(tmp_path)
    coefficients = [0.1, 0.7, -0.3, 0.2, 0.05]
    polynomial_side_file(path, coefficients)
    robot = read_robot(path, "none")
    assert [tie.name for tie in robot.loops.ties] == ["cam"]
    np.testing.assert_allclose(
        inverse_dynamics(robot, *states(robot)), expected_torque(robot, tuple(coefficients)), atol=1e-9
    )


def test_equality_joint_of_mjcf_is_that_of_mujoco(tmp_path: Path) -> None:
    """With reference positions: MuJoCo's own constraint is closed in every state that we call closed."""
    text = """<mujoco><compiler angle="radian"/><worldbody>
      <body name="a"><joint name="j1" axis="0 1 0" ref="0.3"/><inertial pos="0.1 0 0" mass="2" diaginertia="0.1 0.1 0.1"/>
      <body name="b" pos="0 0 0.5"><joint name="j2" axis="0 1 0" ref="-0.2"/><inertial pos="0.1 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>
      </body></body></worldbody>
      <equality><joint name="cam" joint1="j2" joint2="j1" polycoef="0.1 -0.8 0.3 0.05 0"/></equality></mujoco>"""
    path = tmp_path / "cam.xml"
    path.write_text(text)
    robot = read_robot(path, "none")
    assert robot.joint_names == ("j1",)
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    for q in np.linspace(-1.0, 1.0, 7):
        motion = tree_motion(robot, np.array([[q]]), np.array([[0.7]]), np.array([[0.0]]))
        data.qpos[:], data.qvel[:] = motion.position[0], motion.velocity[0]
        mujoco.mj_forward(model, data)
        assert abs(data.efc_pos[0]) < 1e-9
        assert abs(data.efc_vel[0]) < 1e-9


@pytest.mark.parametrize("coefficients", [None, [0.1, 0.7, -0.3]])
def test_files_hold_the_tie(tmp_path: Path, coefficients: list[float] | None) -> None:
    path = urdf(tmp_path)
    if coefficients is not None:
        polynomial_side_file(path, coefficients)
    robot = read_robot(path, "none")
    torque = inverse_dynamics(robot, *states(robot))
    folder = tmp_path / "out"
    folder.mkdir()
    write_urdf(robot, folder / "arm.urdf")
    write_mjcf(robot, folder / "arm.xml")
    write_parameters(robot, folder / "arm.json")
    for again in (
        read_robot(folder / "arm.urdf", "none"),
        read_robot(folder / "arm.xml", "none"),
        robot_from_sidecar(folder / "arm.json"),
    ):
        assert again.joint_names == robot.joint_names
        np.testing.assert_allclose(inverse_dynamics(again, *states(robot)), torque, atol=1e-9)
    assert "polycoef" in (folder / "arm.xml").read_text()


def test_a_locked_leader_holds_its_follower(tmp_path: Path) -> None:
    """What is left is an open chain again, the same as with the follower locked where its leader puts it."""
    path = urdf(tmp_path)
    robot = read_robot(path, "none").lock({"lower": 0.4})
    assert not robot.loops
    assert robot.locked == {"lower": 0.4, "rod": pytest.approx(-0.2)}
    path.write_text(path.read_text().replace('<mimic joint="lower" multiplier="-1" offset="0.2"/>', ""))
    other = read_robot(path, "none").lock({"lower": 0.4, "rod": -0.2})
    q, v, a = states(other)
    np.testing.assert_allclose(inverse_dynamics(robot, q, v, a), inverse_dynamics(other, q, v, a), atol=1e-12)
    cut = read_robot(urdf(tmp_path), "none").lock({"rod": 0.0})  # holding the follower cuts the tie
    assert cut.joint_names == ("turn", "lower", "wrist")
    assert not cut.loops


def test_sdf_refuses_a_tie(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=facts("rod mimics lower", "mjcf")):
        write_sdf(read_robot(urdf(tmp_path), "none"), tmp_path / "arm.sdf")
    assert not (tmp_path / "arm.sdf").exists()


@pytest.mark.parametrize("step", [1, -1])
def test_a_follower_of_a_follower_starts_where_all_before_it_put_it(step: int, tmp_path: Path) -> None:
    joints = [
        f'<joint name="j{k}" type="continuous"><parent link="l{k}"/><child link="l{k + 1}"/><axis xyz="0 0 1"/>'
        + (f'<mimic joint="j{k - 1}" offset="0.1"/>' if k else "")
        + "</joint>"
        for k in range(300)
    ]
    links = "".join(f'<link name="l{k}"/>' for k in range(301))
    (tmp_path / "chain.urdf").write_text(f'<robot name="chain">{links}{"".join(joints[::step])}</robot>')
    robot = read_robot(tmp_path / "chain.urdf", "none")
    assert robot.joint_names == ("j0",)
    start = dict(zip([joint.name for joint in robot.opened.joints], robot.loops.start, strict=True))
    np.testing.assert_allclose([start[f"j{k}"] for k in range(300)], 0.1 * np.arange(300), atol=1e-9)


def test_a_mimic_of_nothing_stays_a_joint(tmp_path: Path) -> None:
    robot = read_robot(urdf(tmp_path, '<mimic joint="nowhere"/>'), "none")
    assert robot.n_joints == 4
    assert any("joint of its own" in note and "'nowhere'" in note for note in robot.source.notes)
    floating = read_robot(urdf(tmp_path), "none", floating=True)
    assert floating.n_dof == 10


def test_bad_ties() -> None:
    with pytest.raises(InputError, match="itself"):
        JointTie("t", 1, 1, (0.0, 1.0))
    with pytest.raises(InputError, match="one to 5"):
        JointTie("t", 1, 0, (0.0,) * 6)
