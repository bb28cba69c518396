"""A motion keeps out of the ground and itself, and leaves fingers and wheels alone, unless it is told otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cli_program import dynid
from dynid.adapters.coal import Capsule, capsule_shapes
from dynid.adapters.pinocchio import pinocchio_model
from dynid.excitation.collision import usual_clearance
from dynid.excitation.hulls import hull_shapes
from dynid.excitation.idle import idle_joints, without_idle_joints
from dynid.robot.read import read_robot
from problems import inertial_urdf

LIMIT = '<limit effort="{effort}" velocity="2" lower="-2.5" upper="2.5"/>'


def arm(effort: float = 90.0, shapes: bool = False) -> str:
    """A pan and a lift joint 0.3 m above the base, a hand with a finger, a wheel, and a joint that follows the finger."""
    box = '<collision><origin xyz="0.3 0 0"/><geometry><box size="0.6 0.06 0.06"/></geometry></collision>' if shapes else ""
    body, light = inertial_urdf(2.0, "0.3 0 0", moments="0.004 0.06 0.06"), inertial_urdf(0.05, moments="1e-4 1e-4 1e-4")
    limit = LIMIT.format(effort=effort)
    return f"""<robot name="arm"><link name="base"/><link name="pan">{inertial_urdf(1.0)}</link><link name="lift">{body}{box}</link>
    <link name="f1">{light}</link><link name="f2">{light}</link><link name="w">{light}</link>
    <joint name="pan_joint" type="revolute"><origin xyz="0 0 0.3"/><parent link="base"/><child link="pan"/><axis xyz="0 0 1"/>
      {limit}</joint>
    <joint name="lift_joint" type="revolute"><parent link="pan"/><child link="lift"/><axis xyz="0 1 0"/>{limit}</joint>
    <joint name="finger_1" type="prismatic"><origin xyz="0.6 0 0"/><parent link="lift"/><child link="f1"/><axis xyz="0 1 0"/>
      <limit effort="9" velocity="1" lower="0.01" upper="0.04"/></joint>
    <joint name="claw" type="prismatic"><origin xyz="0.6 0 0"/><parent link="lift"/><child link="f2"/><axis xyz="0 1 0"/>
      <limit effort="9" velocity="1" lower="0" upper="0.04"/><mimic joint="finger_1"/></joint>
    <joint name="left_wheel" type="continuous"><origin xyz="0 0.2 0.1"/><parent link="base"/><child link="w"/><axis xyz="0 1 0"/>
      <limit effort="9" velocity="9"/></joint></robot>"""


@pytest.fixture
def urdf(tmp_path: Path) -> Path:
    path = tmp_path / "arm.urdf"
    path.write_text(arm())
    return path


def test_fingers_wheels_and_followers_are_held(urdf: Path) -> None:
    robot = read_robot(urdf, "none")
    idle = idle_joints(robot)
    assert set(idle) == {"finger_1", "left_wheel"}  # claw follows finger_1 and stands still with it
    held, told = without_idle_joints(robot)
    assert held.joint_names == ("pan_joint", "lift_joint")
    assert held.locked["claw"] == held.locked["finger_1"]
    assert not held.loops
    assert "--move" in told
    assert "left_wheel (by name: wheel); finger_1 (by name: finger)" in told
    asked = without_idle_joints(robot, ["finger_1"])[0]
    assert set(asked.joint_names) == {"pan_joint", "lift_joint", "finger_1"}
    assert without_idle_joints(robot, ["all"]) == (robot, "")


def test_distance_of_capsules_is_that_of_their_axes_less_their_radii(urdf: Path) -> None:
    model = pinocchio_model(read_robot(urdf, "none").only(["pan_joint", "lift_joint"]))
    first = Capsule("a", 0, np.array([0.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.0]), 0.1)
    second = Capsule("b", 0, np.array([0.5, 1.0, -2.0]), np.array([0.5, 1.0, 2.0]), 0.2)
    shapes = capsule_shapes(model, [first, second]).with_pairs([(0, 1)])
    assert shapes.distances(np.zeros((1, 2)))[0, 0] == pytest.approx(1.0 - 0.1 - 0.2, abs=1e-6)


def test_hulls_follow_frames_and_inertia(urdf: Path) -> None:
    robot = read_robot(urdf, "none").only(["pan_joint", "lift_joint"])
    shapes = {shape.owner: shape for shape in hull_shapes(robot).shapes}
    # the lift link reaches through its centre of mass, about 0.3 m out, as far again
    assert shapes["lift"].lever == pytest.approx(2.0 * robot.parameters.inertials[1, 1] / robot.parameters["m2"], abs=0.16)
    clearance, told = usual_clearance(robot)
    assert any("capsules" in note for note in told)
    q = np.array([[0.0, 0.0], [0.0, 1.4]])  # level, and down into the mounting plane
    level, down = (clearance.closest(one[None])[0][0] for one in q)
    assert level > 0.1
    assert down < 0.0


@pytest.mark.parametrize("shapes", [False, True])
def test_the_motion_stays_above_the_mounting_plane(tmp_path: Path, shapes: bool) -> None:
    path, out = tmp_path / "arm.urdf", tmp_path / "motion.csv"
    path.write_text(arm(shapes=shapes))
    down = ("--position", "-2.5:2.5,-1.5:2.2")  # the middle of this range lies in the plane
    quick = ("--seconds", 2, "--starts", 2, "--period", 5, "--harmonics", 2, "--effects", "none", *down, "-o", out)
    done = dynid("excite", path, *quick)
    assert done.returncode == 0, done.stderr
    assert "smallest clearance:" in done.stdout
    assert "left_wheel" in done.stdout

    def lowest() -> float:
        """Height of the far end of the lift link by trigonometry alone."""
        q = read_columns(out)
        return float((0.3 - 0.6 * np.sin(q[:, 1])).min())

    assert lowest() > 0.0
    free = json.loads(dynid("excite", path, *quick, "--no-collision", "--json").stdout)
    assert free["smallest_clearance"] is None
    assert lowest() < 0.0  # the plane was what kept it up
    none = json.loads(dynid("excite", path, *quick, "--ground", "none", "--json").stdout)
    assert none["smallest_clearance"] is None or "ground" not in none["smallest_clearance"]["pair"]


def read_columns(path: Path) -> np.ndarray:
    table = np.genfromtxt(path, delimiter=",", names=True)
    return np.column_stack([table["q1"], table["q2"]])


def test_a_robot_too_weak_for_its_weight_is_told_which_joint(tmp_path: Path) -> None:
    path = tmp_path / "arm.urdf"
    path.write_text(arm(effort=0.5))
    done = dynid("excite", path, "--seconds", 2, "--starts", 1, "--ground", "none", "-o", tmp_path / "m.csv")
    assert done.returncode == 2
    assert "torque of joint 'lift_joint' (0.5, while gravity" in done.stderr
    assert not (tmp_path / "m.csv").exists()


def test_fingers_of_a_hand_are_told_from_joints_of_an_arm():
    """As TIAGo and other hands call them; a ring or an index alone is no finger."""
    from dynid.excitation.idle import _BY_NAME

    fingers = (
        "hand_index_flex_1_joint",
        "hand_mrl_joint",
        "left_hand_little_abd_joint",
        "hand_ring_joint",
        "r_thumb_1",
        "finger1",
    )
    assert [name for name in fingers if not _BY_NAME.search(name)] == []
    arm = (
        "arm_7_joint",
        "wrist_index",
        "ring_axis",
        "hand_joint",
        "panda_hand_joint",
        "middle_joint",
        "spring_1",
        "hand_ringer",
    )
    assert [name for name in arm if _BY_NAME.search(name)] == []
