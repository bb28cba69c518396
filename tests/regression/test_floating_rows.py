"""Rows of robots on a floating base against Pinocchio's regressor and a null space of NumPy's."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin
import pytest
from scipy.linalg import null_space

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.errors import InputError
from dynid.io.robots.read import read_robot
from dynid.model.frames import frame_named
from dynid.regression.floating_rows import Contacts, FloatingRows, Foot, base_states
from dynid.regression.row_filter import BandLimit, FilteredRows
from dynid.signals.base_motion import BaseMotion
from dynid.signals.samples import Samples
from legged_robots import QUADRUPED, QUADRUPED_FEET, robot_file


@cache
def peer() -> tuple[Any, Any]:
    model = pin.buildModelFromUrdf(str(robot_file(QUADRUPED)), pin.JointModelFreeFlyer())
    return model, model.createData()


def states(n: int, seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """World pose, twist and its rate, joints, torque, and which feet touch the ground."""
    model, _ = peer()
    rng = np.random.default_rng(seed)
    q = rng.uniform(-1.0, 1.0, (n, model.nq))
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1)[:, None]
    v, a = rng.normal(size=(2, n, model.nv))
    return q, v, a, rng.normal(size=(n, model.nv)) * np.r_[np.zeros(6), np.ones(model.nv - 6)]


def proper_of(q: Array, v: Array, a: Array) -> Array:
    """What an accelerometer at the base reads."""
    up = np.array([pin.Quaternion(*one[[6, 3, 4, 5]]).toRotationMatrix().T @ [0.0, 0.0, 9.81] for one in q])
    return a[:, :3] + np.cross(v[:, 3:6], v[:, :3]) + up


def samples_of(robot: Any, q: Array, v: Array, a: Array, tau: Array, contact: Array, turned: bool = False) -> Samples:
    base = BaseMotion(v[:, 3:6], proper_of(q, v, a), a[:, 3:6], quaternion=q[:, 3:7] if turned else None)
    moved = base_states(robot, base, q[:, 7:], v[:, 6:], a[:, 6:])
    return Samples(np.arange(len(q)) / 100.0, *moved, torque=tau, contact=contact)


def expanded(rows: FloatingRows) -> list[Array]:
    """``[W y]`` over all parameters, ``(samples, columns + 1)`` of every channel."""
    blocks = [np.concatenate(parts) for parts in zip(*([b.copy() for b in c.blocks] for c in rows.passes()), strict=True)]
    return [
        np.column_stack([block[:, :-1] @ channel.expansion, block[:, -1]])
        for block, channel in zip(blocks, rows.channels, strict=True)
    ]


@pytest.mark.parametrize("flat", [False, True])
def test_projected_rows_span_those_of_pinocchio_in_the_null_space(flat: bool) -> None:
    model, data = peer()
    robot = read_robot(robot_file(QUADRUPED), "none", floating=True)
    names = QUADRUPED_FEET[:1] if flat else QUADRUPED_FEET
    feet = tuple(Foot(frame_named(robot, name), flat) for name in names)
    q, v, a, tau = states(24)
    contact = np.array([[(k >> f) & 1 for f in range(len(feet))] for k in range(24)], dtype=float)
    ours = expanded(FloatingRows(robot, (samples_of(robot, q, v, a, tau, contact, turned=flat),), feet))
    for k in range(len(q)):
        pin.computeJointJacobians(model, data, q[k])
        pin.updateFramePlacements(model, data)
        ids = [model.getFrameId(name) for name, on in zip(names, contact[k], strict=True) if on]
        J = [pin.getFrameJacobian(model, data, i, pin.LOCAL_WORLD_ALIGNED)[: 6 if flat else 3] for i in ids]
        Y = np.column_stack([pin.computeJointTorqueRegressor(model, data, q[k], v[k], a[k]), tau[k]])
        N = null_space(np.vstack(J)) if J else np.eye(model.nv)
        theirs = N.T @ Y
        own = np.array([block[k] for block in ours])
        assert np.count_nonzero(own.any(axis=1)) == N.shape[1]
        # an orthonormal basis of the same space: the same squares, whatever the parameters
        scale = np.abs(theirs.T @ theirs).max()
        np.testing.assert_allclose(own.T @ own, theirs.T @ theirs, atol=1e-10 * scale)


def test_jacobians_are_pinocchios() -> None:
    model, data = peer()
    robot = read_robot(robot_file(QUADRUPED), "none", floating=True)
    feet = tuple(Foot(frame_named(robot, name), True) for name in QUADRUPED_FEET)
    q = states(5)[0]
    q[:, :7] = [0, 0, 0, 0, 0, 0, 1]
    ours = Contacts(robot, feet).jacobians(q)
    for k in range(len(q)):
        pin.computeJointJacobians(model, data, q[k])
        pin.updateFramePlacements(model, data)
        ids = [model.getFrameId(name) for name in QUADRUPED_FEET]
        J = np.vstack([pin.getFrameJacobian(model, data, i, pin.LOCAL_WORLD_ALIGNED) for i in ids])
        np.testing.assert_allclose(ours[k], J, atol=1e-12)


def walked(robot: Any, feet: tuple[Foot, ...], n: int = 400) -> tuple[Samples, Array]:
    """A smooth motion under forces of feet that change fast, and the torque that it takes; forces are in the torque alone."""
    rng = np.random.default_rng(3)
    t = np.arange(n) / 100.0

    def smooth(width: int) -> tuple[Array, Array, Array]:
        f, phase = rng.uniform(0.3, 1.5, width), rng.uniform(0.0, 6.0, width)
        x = 2.0 * np.pi * f * t[:, None] + phase
        return 0.4 * np.sin(x), 0.8 * np.pi * f * np.cos(x), -0.4 * (2.0 * np.pi * f) ** 2 * np.sin(x)

    joints, turning = smooth(12), smooth(3)
    moved = base_states(robot, BaseMotion(turning[1], [0.0, 0.0, 9.81] + turning[0], turning[2]), *joints)
    contact = (np.sin(2.0 * np.pi * 1.3 * t[:, None] + np.arange(4)) > 0.0).astype(float)
    force = contact.repeat(3, axis=1) * rng.normal(size=(n, 12)) * 20.0
    pushed = np.einsum("nrd,nr->nd", Contacts(robot, feet).jacobians(moved[0]), force)
    tau = inverse_dynamics(robot, *moved) - pushed
    return Samples(t, *moved, torque=tau, contact=contact), force


def test_a_filter_acts_behind_the_projection_and_not_before_it() -> None:
    robot = read_robot(robot_file(QUADRUPED), "none", floating=True)
    feet = tuple(Foot(frame_named(robot, name)) for name in QUADRUPED_FEET)
    samples, _ = walked(robot, feet)
    phi = robot.parameters.values

    def residual(rows: Any) -> float:
        left, size = 0.0, 0.0
        for chunk in rows.passes():
            for block, channel in zip(chunk.blocks, rows.channels, strict=True):
                left += float(((block[:, -1] - block[:, :-1] @ channel.values(phi)) ** 2).sum())
                size += float((block[:, -1] ** 2).sum())
        return float(np.sqrt(left / size))

    assert residual(FilteredRows(FloatingRows(robot, (samples,), feet), BandLimit(5.0))) < 1e-10
    # the same filter before: what it smears of a force lies outside of the null space of a later sample
    taps = BandLimit(5.0).plan(0.01)[0]
    smeared = np.column_stack([np.convolve(column, taps, "same") for column in samples.torque.T])
    motion = np.column_stack(
        [
            np.convolve(column, taps, "same")
            for column in inverse_dynamics(robot, samples.position, samples.velocity, samples.acceleration).T
        ]
    )
    left = (motion - smeared)[:, :, None].copy()
    Contacts(robot, feet).project(samples, left)
    assert np.linalg.norm(left) > 0.05 * np.linalg.norm(motion)


def test_a_foot_in_the_air_that_counts_as_touching_costs_rows_and_nothing_else() -> None:
    robot = read_robot(robot_file(QUADRUPED), "none", floating=True)
    feet = tuple(Foot(frame_named(robot, name)) for name in QUADRUPED_FEET)
    samples, _ = walked(robot, feet, 60)
    generous = Samples(
        samples.time,
        samples.position,
        samples.velocity,
        samples.acceleration,
        torque=samples.torque,
        contact=np.ones_like(samples.contact),
    )
    phi = np.append(robot.parameters.values, -1.0)
    for one in (samples, generous):
        made = np.array(expanded(FloatingRows(robot, (one,), feet)))
        assert np.abs(made @ phi).max() < 1e-9
        rows = np.count_nonzero(made.any(axis=2))
        assert rows == sum(18 - 3 * np.count_nonzero(row) for row in one.contact)


def test_the_base_as_a_flat_foot_leaves_the_rows_of_the_joints() -> None:
    robot = read_robot(robot_file(QUADRUPED), "viscous", floating=True)
    q, v, a, tau = states(6, seed=2)
    held = (Foot(frame_named(robot, robot.links[0]), flat=True),)
    carried = expanded(FloatingRows(robot, (samples_of(robot, q, v, a, tau, np.ones((6, 1))),), held))
    free = expanded(FloatingRows(robot, (samples_of(robot, q, v, a, tau, np.ones((6, 1))),)))
    assert not np.array(carried[:6]).any()
    np.testing.assert_allclose(np.array(carried[6:]), np.array(free[6:]), atol=1e-10)


def test_robots_that_stand_and_samples_without_contact_are_refused() -> None:
    fixed = read_robot(robot_file(QUADRUPED), "none")
    still = np.zeros((3, 12))
    with pytest.raises(InputError, match="stands on the ground"):
        FloatingRows(fixed, (Samples(np.arange(3.0), still, still, still, torque=still),))
    robot = read_robot(robot_file(QUADRUPED), "none", floating=True)
    feet = (Foot(frame_named(robot, QUADRUPED_FEET[0])),)
    q, v, a, tau = states(3)
    silent = samples_of(robot, q, v, a, tau, np.ones((3, 1)))
    silent = Samples(silent.time, silent.position, silent.velocity, silent.acceleration, torque=silent.torque)
    with pytest.raises(InputError, match="which feet touch"):
        list(FloatingRows(robot, (silent,), feet).passes())
