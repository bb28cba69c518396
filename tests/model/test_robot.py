"""Robots as values: what construction refuses, what locking and cutting keep."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

from dynid.arrays import Array
from dynid.dynamics import inverse_dynamics as kernels
from dynid.dynamics.kernels import rigid_body_rows
from dynid.dynamics.pinocchio_model import inverse_dynamics, pinocchio_model, to_pinocchio_position
from dynid.errors import InputError, UnknownNameError
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Viscous
from dynid.model.joint import Joint, MergedLink, neutral_position
from dynid.model.robot import Robot, make_robot
from messages import facts
from problems import demo_arm, planar_2r, random_motion, random_phi, random_pose, random_tree

Z = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])


def torque(robot: Robot, q: Array, v: Array, a: Array) -> Array:
    return inverse_dynamics(pinocchio_model(robot), to_pinocchio_position(robot, q), v, a)


@pytest.mark.parametrize("floating", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_a_locked_robot_moves_as_the_whole_one_with_those_joints_at_rest(seed: int, floating: bool) -> None:
    robot = random_tree(seed, 8, floating, effects=[Armature()])
    held = {"joint3": 0.4, "joint5": -0.3, "joint6": 1.1}
    cut = robot.lock(held)
    assert cut.joint_names == tuple(name for name in robot.joint_names if name not in held)
    q, v, a = random_motion(robot, 6, seed)
    moving = [i for i, name in enumerate(robot.dof_names) if name not in held]
    shift = 1 if floating else 0
    for i, name in enumerate(robot.dof_names):
        if name in held:
            q[:, i + shift], v[:, i], a[:, i] = held[name], 0.0, 0.0
    positions = [*range(shift), *(i + shift for i in moving)]
    np.testing.assert_allclose(
        torque(cut, q[:, positions], v[:, moving], a[:, moving]), torque(robot, q, v, a)[:, moving], atol=1e-10
    )
    assert cut.parameters[f"Ia{cut.n_joints}"] == robot.parameters[f"Ia{robot.n_joints}"]


def test_locking_in_two_steps_is_locking_at_once() -> None:
    robot = random_tree(4, 8)
    once = robot.lock({"joint2": 0.1, "joint4": 0.2, "joint7": 0.3})
    twice = robot.lock({"joint4": 0.2}).lock({"joint7": 0.3, "joint2": 0.1})
    np.testing.assert_allclose(twice.parameters.inertials, once.parameters.inertials, atol=1e-12)
    poses = {link.name: (link.body, link.placement, link.phi) for link in once.merged}
    assert set(poses) == {"link2", "link4", "link7"} == {link.name for link in twice.merged}
    for link in twice.merged:
        body, placement, phi = poses[link.name]
        assert link.body == body
        np.testing.assert_allclose(link.placement, placement, atol=1e-12)
        np.testing.assert_allclose(link.phi, phi, atol=1e-12)


def test_a_locked_first_joint_is_part_of_the_ground() -> None:
    robot = planar_2r().lock({"shoulder": np.pi / 2})
    (upper,) = robot.merged
    assert (upper.name, upper.body) == ("upper", -1)
    np.testing.assert_allclose(robot.joints[0].placement[:3, 3], [0.0, 0.0, -1.0], atol=1e-15)


def test_values_of_effects_follow_their_joint() -> None:
    robot = demo_arm([Viscous(), Coulomb()]).with_parameters({"fv7": 9.0})
    cut = robot.lock({"shoulder_pitch": 0.2})
    assert cut.parameters["fv6"] == 9.0
    assert cut.parameters["fc2"] == robot.parameters["fc3"]
    assert cut.source.notes[-1] == "locked and merged: shoulder_pitch = 0.2"


def test_only_keeps_the_named_joints_and_locks_the_rest_at_neutral() -> None:
    robot = demo_arm("none")
    kept = ["shoulder_yaw", "elbow"]
    cut = robot.only(kept, {"wrist_roll": 1.0})
    assert cut.joint_names == tuple(kept)
    assert "wrist_roll = 1" in cut.source.notes[-1]
    assert "forearm_roll = 0" in cut.source.notes[-1]
    assert robot.only(robot.joint_names) is robot
    with pytest.raises(InputError, match="joint 'elbow' is both kept and locked"):
        robot.only(kept, {"elbow": 0.0})
    with pytest.raises(UnknownNameError, match="unknown joint 'knee'"):
        robot.only(["knee"])
    with pytest.raises(UnknownNameError, match="unknown joint 'knee'"):
        robot.only(kept, {"knee": 0.0})


@pytest.mark.parametrize(
    ("low", "high", "neutral"),
    [
        (-1.0, 1.0, 0.0),
        (0.5, 1.5, 1.0),
        (-3.0, -1.0, -2.0),
        (-np.inf, np.inf, 0.0),
        (2.0, np.inf, 2.0),
        (-np.inf, -1.0, -1.0),
    ],
)
def test_neutral_is_zero_or_the_middle(low: float, high: float, neutral: float) -> None:
    assert neutral_position(Joint("j", "revolute", -1, np.eye(4), Z, q_min=low, q_max=high)) == neutral


def test_merged_links_ride_along_when_their_body_is_locked() -> None:
    rng = np.random.default_rng(0)
    robot = random_tree(2, 3, kinds=("revolute",))
    camera = MergedLink("camera", 2, random_pose(rng), random_phi(rng))
    robot = replace(robot, merged=(camera,))
    (moved, _) = robot.lock({"joint3": 0.6}).merged
    joint = robot.joints[2]
    assert moved.body == joint.parent
    np.testing.assert_allclose(moved.placement, joint.pose(0.6) @ camera.placement, atol=1e-14)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"kind": "ball"}, "unknown joint type 'ball' in joint 'j'"),
        ({"screw": 2 * Z}, facts("'j'", "2", "1", "joint")),
        ({"screw": Z, "kind": "prismatic"}, facts("'j'", "joint", "screw")),
        ({"screw": Z[:5]}, r"screw of joint 'j' has shape \(5,\)"),
        ({"placement": np.full((4, 4), np.nan)}, facts("'j'", "16", "NaN", "joint")),
        ({"q_min": 1.0, "q_max": 0.0}, "q_min 1 above q_max 0"),
        ({"tau_max": 0.0}, "tau_max 0, expected a positive number"),
    ],
)
def test_bad_joints_are_refused(options: dict[str, object], sentence: str) -> None:
    given: dict[str, object] = {"kind": "revolute", "placement": np.eye(4), "screw": Z} | options
    with pytest.raises(InputError, match=sentence):
        Joint("j", parent=-1, **given)  # type: ignore[arg-type]


def joint(name: str, parent: int = -1, kind: str = "revolute") -> Joint:
    return Joint(name, kind, parent, np.eye(4), Z)  # type: ignore[arg-type]


def test_bad_robots_are_refused() -> None:
    phi = np.zeros((2, 10))
    with pytest.raises(InputError, match="has no moving joint"):
        make_robot("r", [], np.zeros((0, 10)))
    with pytest.raises(InputError, match=facts("'a'", "'r'", "2", "joint")):
        make_robot("r", [joint("a"), joint("a", 0)], phi)
    with pytest.raises(InputError, match="link name 'x' appears 2 times"):
        make_robot("r", [joint("a"), joint("b", 0)], phi, links=["x", "x"])
    with pytest.raises(InputError, match="has 1 links for 2 joints"):
        make_robot("r", [joint("a"), joint("b", 0)], phi, links=["x"])
    with pytest.raises(InputError, match="parent of joint 'a' must come before it"):
        make_robot("r", [joint("a", 1), joint("b", 0)], phi)
    with pytest.raises(InputError, match="joint 'b' floats inside the tree"):
        make_robot("r", [joint("a"), joint("b", 0, "floating")], phi)
    with pytest.raises(InputError, match=facts("'r'", "(1, 10)", "(2, 10)", "inertia")):
        make_robot("r", [joint("a"), joint("b", 0)], phi[:1])
    robot = make_robot("r", [joint("a"), joint("b", 0)], phi)
    with pytest.raises(InputError, match=facts("'r'", "joint")):
        robot.lock({"a": 0.0, "b": 0.0})
    with pytest.raises(InputError, match=facts("base", "floating", "joint")):
        make_robot("r", [joint("base", -1, "floating"), joint("b", 0)], phi).lock({"base": 0.0})
    with pytest.raises(InputError, match=facts("parameter", "column")):
        robot.with_parameters(planar_2r([Viscous()]).parameters)
    with pytest.raises(UnknownNameError, match="unknown parameter 'm9'"):
        robot.with_parameters({"m9": 1.0})


def test_robots_are_values() -> None:
    robot = planar_2r([Viscous()])
    for array in (robot.gravity, robot.parameters.values, robot.joints[0].screw, robot.joints[0].placement):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    changed = robot.with_parameters({"m1": 5.0, "fv2": 0.5})
    assert (robot.parameters["m1"], changed.parameters["m1"]) == (2.0, 5.0)
    again = changed.with_effects([Coulomb(), Viscous()])
    assert (again.parameters["fv2"], again.parameters["m1"], again.parameters["fc1"]) == (0.5, 5.0, 0.0)


def test_names_and_counts_of_a_floating_robot() -> None:
    robot = random_tree(0, 3, floating=True, effects=[Viscous()])
    assert (robot.n_joints, robot.n_dof, robot.n_position) == (3, 8, 9)
    assert robot.dof_names[:2] == ("joint1.x", "joint1.y")
    assert robot.dof_names[-1] == "joint3"
    assert robot.parameters.names[-2:] == ("fv2", "fv3")
    np.testing.assert_array_equal(robot.driven, [6, 7])
    assert robot.effect_incidence.shape == (8, 2)
    assert not robot.effect_incidence[:6].any()
    assert robot.position_limits.shape == (2, 2)


def test_a_robot_that_was_sent_to_another_process_uses_the_same_compiled_kernels() -> None:
    robot, q = demo_arm(), np.full((3, 7), 0.3)
    expected, signatures = kernels.inverse_dynamics(robot, q, q, q), len(rigid_body_rows.signatures)
    sent = pickle.loads(pickle.dumps(robot))  # noqa: S301
    np.testing.assert_array_equal(kernels.inverse_dynamics(sent, q, q, q), expected)
    assert len(rigid_body_rows.signatures) == signatures
    assert sent.joint_names == robot.joint_names
    assert not sent.gravity.flags.writeable
