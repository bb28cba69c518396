"""Laws of the dynamics that hold for every robot, motion and frame."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.regressors import energy_regressor, momentum_regressor, static_regressor, torque_regressor
from dynid.model.effects.dry_friction import Coulomb
from dynid.model.effects.linear import Armature, Offset, Viscous
from dynid.model.inertia import change_of_frame
from dynid.model.joint import Joint
from dynid.model.robot import Robot, make_robot
from dynid.regression.base import reduce_to_base
from dynid.regression.factor import build_regression, factorise
from dynid.regression.torque_rows import TorqueRows
from dynid.signals.samples import Samples
from problems import random_motion, random_pose, random_tree

ALL_EFFECTS = (Viscous(), Coulomb(), Offset(), Armature())
seeds = st.integers(0, 10_000)
# Central differences of order eight.
STENCIL = {1: 4.0 / 5.0, 2: -1.0 / 5.0, 3: 4.0 / 105.0, 4: -1.0 / 280.0}
few = settings(max_examples=15)


def close(found, expected, tolerance=1e-11):
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(np.abs(expected).max(), 1e-300))


def smooth_motion(n, seed):
    rng = np.random.default_rng(seed)
    amplitude, phase = rng.uniform(0.2, 0.8, (2, 3, n))
    rate = rng.uniform(0.5, 3.0, (3, n))

    def at(t):
        angle = t[:, None, None] * rate + 6.0 * phase
        return (
            (amplitude * np.sin(angle)).sum(axis=1),
            (amplitude * rate * np.cos(angle)).sum(axis=1),
            -(amplitude * rate**2 * np.sin(angle)).sum(axis=1),
        )

    return at


def renumbered(robot: Robot, order: list[int]) -> Robot:
    """The same robot with its joints listed in another order."""
    place = {old: new for new, old in enumerate(order)} | {-1: -1}
    joints = []
    for old in order:
        joint = robot.joints[old]
        joints.append(Joint(joint.name, joint.kind, place[joint.parent], joint.placement, joint.screw))
    return make_robot("renumbered", joints, robot.parameters.inertials[order], gravity=robot.gravity)


def reframed(robot: Robot, moves: list[np.ndarray]) -> tuple[Robot, np.ndarray]:
    """The same robot with every link frame moved, and the matrix that gives its parameters from the old ones."""
    n = robot.n_joints
    blocks = np.zeros((10 * n, 10 * n))
    joints = []
    for i, (joint, move) in enumerate(zip(robot.joints, moves, strict=True)):
        inverse = np.linalg.inv(move)
        above = np.linalg.inv(moves[joint.parent]) if joint.parent >= 0 else np.eye(4)
        R, p = inverse[:3, :3], inverse[:3, 3]
        axis = R @ joint.screw[3:]
        screw = np.concatenate([R @ joint.screw[:3] + np.cross(p, axis), axis])
        joints.append(Joint(joint.name, joint.kind, joint.parent, above @ joint.placement @ move, screw))
        blocks[10 * i : 10 * i + 10, 10 * i : 10 * i + 10] = change_of_frame(R, p)
    inertials = (blocks @ robot.parameters.values[: 10 * n]).reshape(n, 10)
    return make_robot("reframed", joints, inertials, gravity=robot.gravity), blocks


# Energy -------------------------------------------------------------------------------------------------


@few
@given(seeds)
def test_rate_of_energy_is_torque_times_velocity(seed):
    robot = random_tree(seed, 5)
    motion, t, step = smooth_motion(5, seed), np.linspace(0.0, 4.0, 8), 1e-2
    q, v, a = motion(t)
    power = np.einsum("sd,sdp->sp", v, torque_regressor(robot, q, v, a))
    rate = sum(
        weight * (energy_regressor(robot, *motion(t + k * step)[:2]) - energy_regressor(robot, *motion(t - k * step)[:2]))
        for k, weight in STENCIL.items()
    )
    close(rate / step, power, 1e-9)


def test_rate_of_energy_of_a_floating_robot():
    """The same along the flow of a constant twist, where the pose is an exponential."""
    import pinocchio as pin

    robot = random_tree(5, 4, floating=True)
    rng = np.random.default_rng(5)
    twist, v_joint, q_joint = rng.normal(size=6), rng.normal(size=3), rng.normal(size=3)
    start = pin.SE3.Random()

    def energy(t):
        pose = start * pin.exp6(pin.Motion(twist * t))
        q = np.concatenate([pin.SE3ToXYZQUAT(pose), q_joint + v_joint * t])
        return energy_regressor(robot, q, np.concatenate([twist, v_joint]))[0]

    step = 1e-2
    rate = sum(weight * (energy(k * step) - energy(-k * step)) for k, weight in STENCIL.items()) / step
    q = np.concatenate([pin.SE3ToXYZQUAT(start), q_joint])
    v = np.concatenate([twist, v_joint])
    power = v @ torque_regressor(robot, q, v, np.zeros(9))[0]
    close(rate, power, 1e-10)


@few
@given(seeds)
def test_a_free_swing_keeps_its_energy(seed):
    """Without torque the acceleration solves ``M a = -b``, and the energy stands still."""
    robot = random_tree(seed, 4)
    q, v, _ = random_motion(robot, 6, seed)
    phi = robot.parameters.values
    M = static_regressor(robot, q)[0] @ phi
    a = -np.linalg.solve(M, inverse_dynamics(robot, q, v, np.zeros_like(v))[..., None])[..., 0]
    pull = np.abs(inverse_dynamics(robot, q, v, np.zeros_like(v))).max()
    assert np.abs(inverse_dynamics(robot, q, v, a)).max() < 1e-9 * pull
    step = 1e-4

    def energy(sign):
        dt = sign * step
        return energy_regressor(robot, q + v * dt + 0.5 * a * dt**2, v + a * dt) @ phi

    rate = (energy(1.0) - energy(-1.0)) / (2.0 * step)
    assert np.abs(rate).max() < 1e-5 * np.abs(v * (M @ a[..., None])[..., 0]).sum()


# Shape of the equations -----------------------------------------------------------------------------------


@few
@given(seeds, st.booleans())
def test_acceleration_enters_linearly_and_speed_squared(seed, floating):
    robot = random_tree(seed, 5, floating)
    q, v, a = random_motion(robot, 5, seed)
    still = np.zeros_like(v)
    gravity = torque_regressor(robot, q, still, still)
    plain = torque_regressor(robot, q, v, a) - gravity
    close(torque_regressor(robot, q, 3.0 * v, 9.0 * a) - gravity, 9.0 * plain)
    close(torque_regressor(robot, q, -v, a) - gravity, plain)
    close(
        torque_regressor(robot, q, v, 2.0 * a) - torque_regressor(robot, q, v, a),
        torque_regressor(robot, q, still, a) - gravity,
    )


@few
@given(seeds)
def test_gravity_is_an_acceleration_of_the_ground(seed):
    robot = random_tree(seed, 5)
    q, v, a = random_motion(robot, 5, seed)
    weightless = torque_regressor(robot.with_gravity(np.zeros(3)), q, v, a)
    parts = [torque_regressor(robot.with_gravity(axis), q, v, a) - weightless for axis in np.eye(3)]
    close(torque_regressor(robot, q, v, a), weightless + sum(g * part for g, part in zip(robot.gravity, parts, strict=True)))


@few
@given(seeds, st.booleans())
def test_inertia_matrix_is_symmetric_and_positive(seed, floating):
    robot = random_tree(seed, 6, floating)
    q, _, _ = random_motion(robot, 5, seed)
    M = static_regressor(robot, q)[0] @ robot.parameters.values
    close(M, M.transpose(0, 2, 1), 1e-15)
    assert np.linalg.eigvalsh(M).min() > 0.0


@few
@given(seeds)
def test_momentum_rate_minus_twice_the_drift_does_no_work(seed):
    """``v . (dM/dt v - 2 dT/dq) = 0``: the kinetic energy changes by ``v . M a`` alone."""
    robot = random_tree(seed, 5).with_gravity(np.zeros(3))
    q, v, _ = random_motion(robot, 5, seed)
    coriolis = torque_regressor(robot, q, v, np.zeros_like(v))
    drift = momentum_regressor(robot, q, v)[1]
    # dA/dt - B = coriolis at a = 0, so dM/dt v - 2 B = coriolis - B
    work = np.einsum("sd,sdp->sp", v, coriolis - drift)
    assert np.abs(work).max() < 1e-12 * max(1.0, np.abs(coriolis).max())


# Frames and numbers ----------------------------------------------------------------------------------------


@few
@given(seeds)
def test_link_frames_change_columns_only(seed):
    robot = random_tree(seed, 5)
    rng = np.random.default_rng(seed + 1)
    moved, blocks = reframed(robot, [random_pose(rng) for _ in robot.joints])
    q, v, a = random_motion(robot, 6, seed)
    close(torque_regressor(moved, q, v, a) @ blocks, torque_regressor(robot, q, v, a), 1e-10)
    close(energy_regressor(moved, q, v) @ blocks, energy_regressor(robot, q, v), 1e-10)


@few
@given(seeds)
def test_numbers_of_joints_change_places_only(seed):
    robot = random_tree(seed, 6)
    rng = np.random.default_rng(seed)
    order: list[int] = []
    while len(order) < 6:
        ready = [i for i in range(6) if i not in order and robot.joints[i].parent in (-1, *order)]
        order.append(int(rng.choice(ready)))
    other = renumbered(robot, order)
    q, v, a = random_motion(robot, 5, seed)
    columns = np.concatenate([np.arange(10 * i, 10 * i + 10) for i in order])
    Y = torque_regressor(robot, q, v, a)
    close(torque_regressor(other, q[:, order], v[:, order], a[:, order]), Y[:, order][:, :, columns])
    assert reduce_to_base(other).n_base == reduce_to_base(robot).n_base


@few
@given(seeds, st.floats(-2.0, 2.0))
def test_a_locked_joint_is_a_joint_at_rest(seed, position):
    robot = random_tree(seed, 5)
    locked = robot.lock({"joint3": position})
    q, v, a = random_motion(robot, 6, seed)
    q[:, 2], v[:, 2], a[:, 2] = position, 0.0, 0.0
    kept = [0, 1, 3, 4]
    close(inverse_dynamics(locked, q[:, kept], v[:, kept], a[:, kept]), inverse_dynamics(robot, q, v, a)[:, kept], 1e-10)


# Factors ----------------------------------------------------------------------------------------------------


@few
@given(seeds, st.lists(st.integers(0, 200), min_size=0, max_size=6), st.integers(1, 300))
def test_any_cut_of_a_log_gives_the_same_triangles(seed, cuts, chunk_rows):
    robot = random_tree(seed % 3, 3, effects=ALL_EFFECTS)
    t = np.arange(200) / 50.0
    q, v, a = smooth_motion(3, seed)(t)
    rng = np.random.default_rng(seed)
    samples = Samples(t, q, v, a, torque=inverse_dynamics(robot, q, v, a) + rng.normal(size=q.shape))
    ends = [0, *sorted(cuts), 200]
    parts = [samples[i:j] for i, j in pairwise(ends) if j > i]
    whole = build_regression(robot, samples)
    merged = None
    for k in rng.permutation(len(parts)):
        part = factorise(TorqueRows(robot, (parts[k],), chunk_rows=chunk_rows))
        merged = part if merged is None else merged + part
    assert merged.n_rows == whole.n_rows
    for one, other in zip(whole.factors, merged.factors, strict=True):
        close(other.R.T @ other.R, one.R.T @ one.R, 1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_estimates_do_not_depend_on_the_grouping(seed):
    """Least squares in two groupings predicts the same torques."""
    robot = random_tree(seed, 4, effects=ALL_EFFECTS)
    t = np.arange(1500) / 100.0
    q, v, a = smooth_motion(4, seed)(t)
    noise = np.random.default_rng(seed).normal(size=q.shape)
    samples = Samples(t, q, v, a, torque=inverse_dynamics(robot, q, v, a) + noise)
    regression = build_regression(robot, samples)
    Y = torque_regressor(robot, *random_motion(robot, 20, seed))
    predictions = []
    for order in (None, robot.parameters.names):
        base = reduce_to_base(robot, order=order)
        R = regression.triangle(base)
        predictions.append(Y @ base.lift @ np.linalg.lstsq(R[:, :-1], R[:, -1])[0])
    close(predictions[1], predictions[0], 1e-8)
