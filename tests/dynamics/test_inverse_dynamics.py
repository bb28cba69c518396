"""The torque regressor against Pinocchio and MuJoCo, and what its columns mean."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from dynid.dynamics.inverse_dynamics import inverse_dynamics, mass_matrix
from dynid.dynamics.pinocchio_model import pinocchio_model, to_pinocchio_position
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError
from dynid.io.robots import mujoco_model as mujoco_adapter
from dynid.io.robots.mjcf_new import mujoco_model
from dynid.model.effects.dry_friction import Coulomb, LoadCoulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from messages import facts
from problems import planar_2r, random_motion, random_tree

ALL_EFFECTS = (Viscous(), Coulomb(), Offset(), Armature())


def arrays(states):
    return (np.array(part) for part in zip(*states, strict=True))


def test_regressor_is_pinocchios(peer):
    states = peer.states(20)
    ours = torque_regressor(peer.robot, *arrays(states))
    data = peer.model.createData()
    for Y, (q, v, a) in zip(ours, states, strict=True):
        theirs = pin.computeJointTorqueRegressor(peer.model, data, peer.position(q), peer.velocity(v), peer.velocity(a))
        expected = theirs[peer.dofs] @ peer.columns
        assert np.abs(Y - expected).max() <= 1e-10 * np.abs(expected).max()


def test_inverse_dynamics_is_pinocchios(peer):
    states = peer.states(20, seed=1)
    ours = inverse_dynamics(peer.robot, *arrays(states))
    data = peer.model.createData()
    theirs = np.array(
        [pin.rnea(peer.model, data, peer.position(q), peer.velocity(v), peer.velocity(a))[peer.dofs] for q, v, a in states]
    )
    assert np.abs(ours - theirs).max() <= 1e-10 * np.abs(theirs).max()


def test_inverse_dynamics_is_the_regressor_times_parameters(peer):
    robot = peer.robot.with_effects(ALL_EFFECTS)
    robot = robot.with_parameters(dict.fromkeys(robot.parameters.names[robot.parameters.n_inertial :], 0.3))
    q, v, a = arrays(peer.states(30, seed=2))
    tau = torque_regressor(robot, q, v, a) @ robot.parameters.values
    np.testing.assert_allclose(inverse_dynamics(robot, q, v, a), tau, rtol=0, atol=1e-12 * np.abs(tau).max())


@pytest.mark.parametrize(("seed", "floating"), [(0, False), (1, False), (2, False), (3, True), (4, True)])
def test_inverse_dynamics_is_mujocos(branches, seed, floating):
    robot = branches(seed, 7, floating, effects=(Viscous(), Armature()))
    model = mujoco_model(robot, limits=False)
    q, v, a = random_motion(robot, 25, seed)
    theirs = mujoco_adapter.inverse_dynamics(model, *mujoco_adapter.to_mujoco_motion(robot, q, v, a))
    theirs = mujoco_adapter.from_mujoco_force(robot, q, theirs)
    ours = inverse_dynamics(robot, q, v, a)
    assert np.abs(ours - theirs).max() <= 1e-10 * np.abs(theirs).max()


def test_effect_columns_are_their_signals():
    robot = random_tree(8, 4, effects=ALL_EFFECTS)
    q, v, a = random_motion(robot, 12)
    Y = torque_regressor(robot, q, v, a)
    signals = {"fv": v, "fc": np.sign(v), "fo": np.ones_like(v), "Ia": a}
    for symbol, signal in signals.items():
        for j in range(4):
            column = Y[:, :, robot.parameters.index(f"{symbol}{j + 1}")]
            np.testing.assert_array_equal(column[:, j], signal[:, j])
            assert not np.delete(column, j, axis=1).any()


def test_effects_act_on_driven_joints_of_a_floating_robot():
    robot = random_tree(9, 4, floating=True, effects=ALL_EFFECTS)
    assert "fv1" not in robot.parameters.names
    q, v, a = random_motion(robot, 9)
    Y = torque_regressor(robot, q, v, a)
    column = Y[:, :, robot.parameters.index("Ia3")]
    np.testing.assert_array_equal(column[:, 7], a[:, 7])  # six of the base, then joints 2, 3, 4
    assert not np.delete(column, 7, axis=1).any()
    rigid = inverse_dynamics(robot, q, v, a, effects=False)
    np.testing.assert_allclose(rigid, inverse_dynamics(robot.with_effects(()), q, v, a), rtol=0, atol=1e-12)


def test_a_joint_sees_only_links_it_carries():
    robot = random_tree(10, 9)
    Y = torque_regressor(robot, *random_motion(robot, 5))
    for j in range(robot.n_joints):
        carried = set()
        for i, joint in enumerate(robot.joints):
            if i == j or joint.parent in carried:
                carried.add(i)
        for i in range(robot.n_joints):
            block = Y[:, j, 10 * i : 10 * i + 10]
            assert block.any() == (i in carried)


def test_full_turns_change_nothing():
    robot = random_tree(11, 5, kinds=("continuous", "revolute"))
    q, v, a = random_motion(robot, 8)
    near = torque_regressor(robot, q, v, a)
    far = torque_regressor(robot, q + 2.0 * np.pi * np.arange(5), v, a)
    np.testing.assert_allclose(far, near, rtol=0, atol=1e-12 * np.abs(near).max())


def test_a_quaternion_need_not_have_length_one():
    robot = random_tree(12, 3, floating=True)
    q, v, a = random_motion(robot, 8)
    longer = q.copy()
    longer[:, 3:7] *= -3.7
    near = torque_regressor(robot, q, v, a)
    np.testing.assert_allclose(torque_regressor(robot, longer, v, a), near, rtol=0, atol=1e-12 * np.abs(near).max())


def test_planar_arm_by_hand():
    """The textbook two-link arm, whose torques fit on four lines."""
    robot = planar_2r()
    phi = robot.parameters
    q, v, a = random_motion(robot, 50)
    # the arm turns about +y, so positive angles lower it: height of a point at r is -r sin
    g, l1 = 9.81, 1.0
    c2, s2 = np.cos(q[:, 1]), np.sin(q[:, 1])
    c1, c12 = np.cos(q[:, 0]), np.cos(q.sum(axis=1))
    mx1, mx2, m2 = phi["mx1"], phi["mx2"], phi["m2"]
    cross = mx2 * l1
    tau2 = phi["Iyy2"] * a.sum(axis=1) + cross * c2 * a[:, 0] + cross * s2 * v[:, 0] ** 2 - g * mx2 * c12
    tau1 = (
        tau2
        + (phi["Iyy1"] + m2 * l1**2 + cross * c2) * a[:, 0]
        + cross * c2 * a[:, 1]
        - cross * s2 * (v[:, 0] + v[:, 1]) ** 2
        - g * (mx1 + m2 * l1) * c1
    )
    np.testing.assert_allclose(inverse_dynamics(robot, q, v, a), np.column_stack([tau1, tau2]), atol=1e-12)


def test_one_sample_may_come_without_its_axis_and_none_gives_none():
    robot = random_tree(13, 4)
    q, v, a = random_motion(robot, 1)
    np.testing.assert_array_equal(torque_regressor(robot, q[0], v[0], a[0]), torque_regressor(robot, q, v, a))
    empty = np.zeros((0, 4))
    assert torque_regressor(robot, empty, empty, empty).shape == (0, 4, 40)
    assert inverse_dynamics(robot, empty, empty, empty).shape == (0, 4)


def test_arrays_of_any_layout_are_taken():
    robot = random_tree(14, 4)
    q, v, a = random_motion(robot, 10)
    expected = torque_regressor(robot, q[::2], v[::2], a[::2])
    strided = [np.asfortranarray(x)[::2] for x in (q, v, a)]
    np.testing.assert_array_equal(torque_regressor(robot, *strided), expected)
    as_lists = [x[::2].tolist() for x in (q, v, a)]
    np.testing.assert_array_equal(torque_regressor(robot, *as_lists), expected)


def test_bad_motion_is_refused_with_both_numbers():
    robot = random_tree(15, 4)
    q, v, a = random_motion(robot, 6)
    with pytest.raises(InputError, match=facts("(6, 3)", "(any, 4)", "position")):
        torque_regressor(robot, q[:, :3], v, a)
    with pytest.raises(InputError, match=facts("(5, 4)", "(6, 4)", "velocity")):
        torque_regressor(robot, q, v[:5], a)
    a[2, 1] = np.nan
    with pytest.raises(InputError, match=facts("1", "NaN", "acceleration")):
        inverse_dynamics(robot, q, v, a)


def test_inverse_dynamics_makes_the_load_it_was_not_given():
    robot = random_tree(1, n_joints=4, effects=[LoadCoulomb(), Armature()])
    robot = robot.with_parameters(robot.parameters.with_values(np.linspace(0.5, 1.5, len(robot.parameters))))
    q, v, a = random_motion(robot, 3)
    load = inverse_dynamics(robot.with_effects([]), q, v, a)  # rotors turn before the gears
    np.testing.assert_array_equal(inverse_dynamics(robot, q, v, a), inverse_dynamics(robot, q, v, a, load))


def test_the_mass_matrix_is_that_of_pinocchio() -> None:
    robot = random_tree(4, n_joints=5)
    model = pinocchio_model(robot)
    data, q = model.createData(), random_motion(robot, 6, 2)[0]
    for pose, found in zip(q, mass_matrix(robot, q), strict=True):
        expected = np.triu(pin.crba(model, data, to_pinocchio_position(robot, pose)))
        np.testing.assert_allclose(np.triu(found), expected, atol=1e-10)
        np.testing.assert_allclose(found, found.T, atol=1e-10)
