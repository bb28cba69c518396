"""The wrench regressor of one body, as a force/torque sensor sees it."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from dynid.dynamics.regressors import body_regressor, torque_regressor
from dynid.errors import InputError
from dynid.model.inertia import spatial_inertia
from messages import facts
from problems import random_motion, random_phi, random_tree


def test_is_pinocchios():
    a, v = np.random.default_rng(0).normal(size=(2, 30, 6))
    expected = np.array([pin.bodyRegressor(pin.Motion(y), pin.Motion(x)) for x, y in zip(a, v, strict=True)])
    np.testing.assert_allclose(body_regressor(a, v), expected, rtol=0, atol=1e-10 * np.abs(expected).max())


def test_is_newton_and_euler():
    rng = np.random.default_rng(1)
    phi = random_phi(rng)
    a, v = rng.normal(size=(2, 6))
    inertia = spatial_inertia(phi)
    momentum = inertia @ v
    force, moment = momentum[:3], momentum[3:]
    gyroscopic = np.concatenate([np.cross(v[3:], force), np.cross(v[3:], moment) + np.cross(v[:3], force)])
    np.testing.assert_allclose(body_regressor(a, v) @ phi, inertia @ a + gyroscopic, atol=1e-13)


def test_is_the_torque_regressor_of_a_free_body():
    robot = random_tree(2, 1, floating=True)
    q, v, a = random_motion(robot, 15)
    placed = robot.joints[0].placement[:3, :3]
    proper = a.copy()
    for i, (x, y, z, w) in enumerate(q[:, 3:7]):
        rotation = placed @ pin.Quaternion(w, x, y, z).toRotationMatrix()
        proper[i, :3] -= rotation.T @ robot.gravity
    Y = torque_regressor(robot, q, v, a)
    np.testing.assert_allclose(body_regressor(proper, v), Y, rtol=0, atol=1e-12 * np.abs(Y).max())


def test_any_leading_axes():
    a, v = np.random.default_rng(3).normal(size=(2, 4, 5, 6))
    Y = body_regressor(a, v)
    assert Y.shape == (4, 5, 6, 10)
    np.testing.assert_array_equal(Y[2, 3], body_regressor(a[2, 3], v[2, 3]))
    np.testing.assert_array_equal(body_regressor(a, v[0, 0])[1, 2], body_regressor(a[1, 2], v[0, 0]))
    np.testing.assert_array_equal(body_regressor(a[0, 0], v)[1, 2], body_regressor(a[0, 0], v[1, 2]))


def test_bad_motion_is_refused():
    with pytest.raises(InputError, match=facts("(4, 3)", "(..., 6)", "velocity")):
        body_regressor(np.zeros((4, 6)), np.zeros((4, 3)))
    with pytest.raises(InputError, match=r"acceleration has shape \(\), expected"):
        body_regressor(1.0, np.zeros(6))
    with pytest.raises(InputError, match=facts("(4, 6)", "(5, 6)", "acceleration")):
        body_regressor(np.zeros((4, 6)), np.zeros((5, 6)))
    with pytest.raises(InputError, match="acceleration holds 6 values"):
        body_regressor(np.full(6, np.inf), np.zeros(6))
