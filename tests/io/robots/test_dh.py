"""DH TOML: both conventions, both joint types, trees, and every sentence for a bad file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.dynamics.pinocchio_model import inverse_dynamics, pinocchio_model
from dynid.errors import InputError
from dynid.io.robots.description import read_description
from dynid.io.robots.dh import dh_pose, robot_from_dh
from dynid.model.inertia import change_of_frame, mass_com_inertia
from messages import facts
from published import robot_file


def read_dh(path):
    return robot_from_dh(read_description(path))


JOINT = """
[[joint]]
name = "{name}"
type = "{type}"
a = {a}
alpha = {alpha}
d = {d}
theta_offset = {theta}
"""
HEAD = 'name = "arm"\ngravity = [0.0, 0.0, -9.81]\ndh_convention = "{convention}"\n'
ROWS = [(0.1, 0.7, 0.3, 0.2), (0.4, -1.1, 0.05, -0.4), (-0.05, 1.5707963267948966, 0.2, 0.9), (0.2, 0.3, 0.1, 0.0)]


def write(folder: Path, text: str) -> Path:
    file = folder / "arm.toml"
    file.write_text(text)
    return file


def table(convention: str, rows: list[tuple[float, float, float, float]], types: list[str], **extra: str) -> str:
    text = HEAD.format(convention=convention)
    for i, ((a, alpha, d, theta), kind) in enumerate(zip(rows, types, strict=True), start=1):
        name = f"joint{i}"
        text += JOINT.format(name=name, type=kind, a=a, alpha=alpha, d=d, theta=theta) + extra.get(name, "")
    return text


def elementary(axis: str, angle: float = 0.0, shift: float = 0.0) -> np.ndarray:
    pose = np.eye(4)
    i = "xyz".index(axis)
    j, k = (i + 1) % 3, (i + 2) % 3
    pose[j, j] = pose[k, k] = np.cos(angle)
    pose[k, j], pose[j, k] = np.sin(angle), -np.sin(angle)
    pose[i, 3] = shift
    return pose


@pytest.mark.parametrize("convention", ["standard", "modified"])
@pytest.mark.parametrize("types", [["revolute"] * 4, ["revolute", "prismatic", "prismatic", "continuous"]])
def test_body_poses_are_the_products_of_the_convention(tmp_path: Path, convention: str, types: list[str]) -> None:
    robot = read_dh(write(tmp_path, table(convention, ROWS, types)))
    for joint, kind, (a, alpha, d, theta), q in zip(robot.joints, types, ROWS, (0.3, -0.7, 1.9, 0.4), strict=True):
        theta_q, d_q = (theta, d + q) if kind == "prismatic" else (theta + q, d)
        turn = elementary("z", theta_q) @ elementary("z", shift=d_q)
        twist = elementary("x", alpha) @ elementary("x", shift=a)
        expected = turn @ twist if convention == "standard" else twist @ turn
        np.testing.assert_allclose(joint.pose(q), expected, atol=1e-14)


def inertial(phi: np.ndarray) -> str:
    mass, com, tensor = mass_com_inertia(phi)
    names = (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2))
    entries = ", ".join(f"{key} = {float(tensor[i, j])!r}" for key, i, j in names)
    return f"inertial = {{ mass = {float(mass)!r}, com = {com.tolist()}, inertia = {{ {entries} }} }}\n"


def test_the_same_arm_in_both_conventions_has_the_same_torques(tmp_path: Path) -> None:
    """Modified frame i is standard frame i-1's joint with the x part of row i moved before it."""
    from problems import random_phi

    rng = np.random.default_rng(3)
    types = ["revolute", "revolute", "prismatic", "revolute"]
    phi_standard = [random_phi(rng) for _ in ROWS]
    # standard: Rz Tz (a_i alpha_i)  ->  modified row i carries (a, alpha) of standard row i - 1
    shifted = [(0.0, 0.0, *ROWS[0][2:])] + [(*ROWS[i - 1][:2], *ROWS[i][2:]) for i in range(1, len(ROWS))]
    phi_modified = []
    for (a, alpha, _, _), phi in zip(ROWS, phi_standard, strict=True):
        pose = dh_pose("standard", a, alpha, 0.0, 0.0)  # the standard link frame seen from the modified one
        phi_modified.append(change_of_frame(pose[:3, :3], pose[:3, 3]) @ phi)
    standard = read_dh(
        write(
            tmp_path,
            table("standard", ROWS, types, **{f"joint{i + 1}": inertial(p) for i, p in enumerate(phi_standard)}),
        )
    )
    modified = read_dh(
        write(
            tmp_path,
            table("modified", shifted, types, **{f"joint{i + 1}": inertial(p) for i, p in enumerate(phi_modified)}),
        )
    )
    q, v, a = rng.normal(size=(3, 20, 4))
    torque = inverse_dynamics(pinocchio_model(standard), q, v, a)
    np.testing.assert_allclose(inverse_dynamics(pinocchio_model(modified), q, v, a), torque, rtol=1e-11, atol=1e-11)
    assert np.abs(torque).max() > 1.0


def test_inertials_friction_limits_and_names_are_kept(tmp_path: Path) -> None:
    text = table("modified", ROWS[:2], ["revolute", "revolute"]) + (
        'link = "hand"\nq_min = -1.0\nq_max = 2.0\ndq_max = 3.0\nddq_max = 4.0\ntau_max = inf\n'
        "fv = 0.1\nfc = 0.2\nfo = -0.3\narmature = 0.4\n"
        "inertial = { mass = 2.0, com = [0.1, 0.0, 0.0], inertia = { ixx = 1.0, ixy = 0.1, ixz = 0.2, iyy = 2.0,"
        " iyz = 0.3, izz = 2.5 } }\n"
    )
    robot = read_dh(write(tmp_path, text))
    joint = robot.joints[1]
    assert robot.links == ("link1", "hand")
    assert (joint.q_min, joint.q_max, joint.dq_max, joint.ddq_max, joint.tau_max) == (-1.0, 2.0, 3.0, 4.0, np.inf)
    assert joint.nominal == {"fv": 0.1, "fc": 0.2, "fo": -0.3, "Ia": 0.4}
    np.testing.assert_allclose(
        robot.parameters.inertials[1], [2.0, 0.2, 0.0, 0.0, 1.0, 0.1, 2.02, 0.2, 0.3, 2.52], atol=1e-15
    )
    assert not robot.parameters.inertials[0].any()
    assert robot.source.format == "dh"
    assert len(robot.source.sha256) == 64
    assert any("link1" in note for note in robot.source.notes)


def test_parents_make_a_tree_and_are_sorted_base_first(tmp_path: Path) -> None:
    types = ["revolute"] * 4
    parents = {"joint1": 'parent = "joint4"\n', "joint3": 'parent = "joint1"\n', "joint4": 'parent = "base"\n'}
    robot = read_dh(write(tmp_path, table("modified", ROWS, types, **parents)))
    assert robot.joint_names == ("joint4", "joint1", "joint2", "joint3")
    assert [joint.parent for joint in robot.joints] == [-1, 0, 1, 1]


def test_flange_is_a_frame_of_the_last_joint(tmp_path: Path) -> None:
    text = table("modified", ROWS, ["revolute"] * 4) + "[flange]\na = 0.0\nalpha = 0.0\nd = 0.107\n"
    (flange,) = read_dh(write(tmp_path, text)).merged
    assert (flange.name, flange.body, flange.placement[2, 3]) == ("flange", 3, 0.107)


ARM = table("standard", ROWS, ["revolute"] * 4)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (ARM.replace('name = "joint2"\n', ""), facts("name", "2", "joint")),
        (ARM.replace("alpha = 0.7\n", ""), facts("joint1", "alpha")),
        (ARM.replace("theta_offset", "theta_ofset", 1), facts("theta_ofset", "joint1")),
        (ARM.replace('"revolute"', '"ball"', 1), facts("ball", "joint1")),
        (ARM.replace('"joint2"', '"joint1"'), "joint name 'joint1' appears 2 times"),
        (ARM + 'parent = "nobody"\n', facts("nobody", "joint4")),
        (ARM.replace("theta_offset = 0.2", 'theta_offset = 0.2\nparent = "joint4"'), "is cyclic.*'joint1', 'joint2'"),
        (ARM + 'parent = "joint4"\n', "is cyclic.*'joint4'"),
        (ARM.replace("standard", "khalil"), facts("khalil", "dh_convention")),
        (ARM.replace("a = 0.1", 'a = "long"'), facts("joint1", "long")),
        (ARM.replace("a = 0.1", "a = true"), "a of joint 'joint1' in .* is True, expected a number"),
        (ARM.replace("a = 0.1", "a = inf"), "expected a finite number"),
        (ARM.replace("gravity = [0.0, 0.0, -9.81]", "gravity = [0.0, 9.81]"), "expected three numbers"),
        (ARM.replace("gravity", "gravitas"), "lacks the key 'gravity'"),
        (ARM + "q_min = 1.0\nq_max = 0.0\n", facts("joint4", "q_min", "1", "q_max", "0")),
        (ARM + "dq_max = -1.0\n", facts("joint4", "dq_max", "-1")),
        (ARM + "inertial = { mass = 1.0 }\n", facts("joint4", "com", "inertia")),
        (ARM + "inertial = 3\n", "is 3, expected a table"),
        (ARM.replace("[[joint]]", "n_joints = 5\n[[joint]]", 1), "says n_joints = 5 but has 4"),
        (HEAD.format(convention="standard"), "lacks the key 'joint'"),
        (ARM[:-4], "not valid TOML"),
        ("", "is empty"),
    ],
)
def test_bad_files_get_one_sentence(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        read_dh(write(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_bytes_that_are_not_text_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "arm.toml"
    file.write_bytes(b"name = \xff\xfe")
    with pytest.raises(InputError, match="not UTF-8 text: byte 7"):
        read_dh(file)


def test_wam_reads_with_its_inertials() -> None:
    robot = read_dh(robot_file("wam7"))
    assert robot.n_joints == 7
    assert robot.parameters.inertials[:, 0].tolist() == pytest.approx(
        [8.065261497, 4.545018307, 1.462869541, 1.324208612, 0.349910888, 0.34778834, 0.100734866], abs=1e-8
    )
    np.testing.assert_allclose(robot.joints[2].screw, [0.0, 0.0, 0.045, 0.0, -1.0, 0.0], atol=1e-15)


def test_a_table_without_inertials_has_zeros() -> None:
    assert not read_dh(robot_file("panda")).parameters.inertials.any()
