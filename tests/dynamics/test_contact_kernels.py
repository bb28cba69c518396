"""Kernels of contacts against plain NumPy; against Pinocchio in tests/regression/test_floating_rows.py."""

from __future__ import annotations

import numpy as np

from dynid.model.frames import frame_named, frame_poses
from dynid.regression.floating_rows import Contacts, Foot
from dynid.signals.samples import Samples
from legged_robots import QUADRUPED_FEET
from legged_simulation import quadruped


def test_a_round_foot_touches_the_ground_below_its_centre() -> None:
    robot = quadruped()
    rng = np.random.default_rng(0)
    q = np.hstack([np.zeros((4, 3)), rng.normal(size=(4, 4)), rng.uniform(-1, 1, (4, 12))])
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1)[:, None]
    frame = frame_named(robot, QUADRUPED_FEET[0])
    J = Contacts(robot, (Foot(frame, radius=0.02),)).jacobians(q)
    world, _ = frame_poses(robot, q, 0, np.eye(4))
    level = q.copy()
    level[:, :7] = [0, 0, 0, 0, 0, 0, 1]
    _, centre = frame_poses(robot, level, frame.body, frame.placement)
    x = centre - 0.02 * world[:, 2]  # the vertical of the world in the axes of the base
    for k in range(4):
        cross = np.array([[0, x[k, 2], -x[k, 1]], [-x[k, 2], 0, x[k, 0]], [x[k, 1], -x[k, 0], 0]])
        np.testing.assert_allclose(J[k, :, :6], np.hstack([np.eye(3), cross]), atol=1e-12)


def test_rows_that_are_left_are_orthonormal_and_feel_no_force() -> None:
    robot = quadruped()
    rng = np.random.default_rng(1)
    q = np.hstack([np.zeros((16, 6)), np.ones((16, 1)), rng.uniform(-1, 1, (16, 12))])
    feet = tuple(Foot(frame_named(robot, name)) for name in QUADRUPED_FEET)
    contact = np.array([[(k >> f) & 1 for f in range(4)] for k in range(16)], dtype=float)
    contacts = Contacts(robot, feet)
    rows = np.tile(np.eye(18), (16, 1, 1))
    still = np.zeros((16, 18))
    contacts.project(Samples(np.arange(16.0), q, still, still, contact=contact), rows)
    J = contacts.jacobians(q)
    for k in range(16):
        z = rows[k][rows[k].any(axis=1)]
        on = np.repeat(contact[k] > 0, 3)
        assert len(z) == 18 - on.sum()
        np.testing.assert_allclose(z @ z.T, np.eye(len(z)), atol=1e-12)
        np.testing.assert_allclose(z @ J[k][on].T, 0.0, atol=1e-12)
