"""Rotations and poses, against Pinocchio and each other."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from dynid.errors import InputError
from dynid.model.poses import (
    frame_with_z,
    inverse_pose,
    make_pose,
    pose_from_numbers,
    quaternion_from_rotation,
    rotation_from_quaternion,
    rotation_from_rpy,
    rpy_from_rotation,
)

ANGLES = [(0.3, -1.2, 2.5), (-3.0, 0.0, 0.1), (0.4, np.pi / 2, 0.7), (0.4, -np.pi / 2, 0.7), (np.pi, 0.0, np.pi)]


@pytest.mark.parametrize("rpy", ANGLES)
def test_rpy_is_pinocchios_and_comes_back(rpy: tuple[float, float, float]) -> None:
    R = rotation_from_rpy(*rpy)
    np.testing.assert_allclose(R, pin.rpy.rpyToMatrix(*rpy), atol=1e-15)
    np.testing.assert_allclose(rotation_from_rpy(*rpy_from_rotation(R)), R, atol=1e-15)


def test_right_angles_are_exact() -> None:
    np.testing.assert_array_equal(rotation_from_rpy(np.pi / 2, 0.0, np.pi), [[-1, 0, 0], [0, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize("rpy", [*ANGLES, (np.pi, 0.0, 0.0), (0.0, np.pi, 0.0), (0.0, 0.0, np.pi)])
def test_quaternion_of_a_rotation_comes_back(rpy: tuple[float, float, float]) -> None:
    R = rotation_from_rpy(*rpy)
    quaternion = quaternion_from_rotation(R)
    assert quaternion[0] >= 0.0
    assert np.linalg.norm(quaternion) == pytest.approx(1.0)
    np.testing.assert_allclose(rotation_from_quaternion(quaternion), R, atol=1e-14)


def test_quaternions_of_many_samples_need_no_unit_length() -> None:
    quaternions = np.random.default_rng(0).normal(size=(5, 4))
    for R, (w, x, y, z) in zip(rotation_from_quaternion(quaternions), quaternions, strict=True):
        np.testing.assert_allclose(R, pin.Quaternion(w, x, y, z).normalized().matrix(), atol=1e-14)


def test_inverse_pose() -> None:
    pose = pose_from_numbers([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    np.testing.assert_allclose(inverse_pose(pose) @ pose, np.eye(4), atol=1e-15)
    np.testing.assert_array_equal(make_pose(), np.eye(4))


@pytest.mark.parametrize("numbers", [[1.0, 2.0], [1.0, 2.0, 3.0, 4.0], [0.0, 0.0, np.nan]])
def test_pose_of_other_numbers_is_refused(numbers: list[float]) -> None:
    with pytest.raises(InputError, match="expected 3"):
        pose_from_numbers(numbers)


@pytest.mark.parametrize("axis", [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [0.6, 0.0, 0.8], [1.0, 0.0, 0.0]])
def test_frame_with_z(axis: list[float]) -> None:
    R = frame_with_z(np.array(axis))
    np.testing.assert_allclose(R[:, 2], axis)
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-15)
    assert np.linalg.det(R) == pytest.approx(1.0)
