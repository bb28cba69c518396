"""The three-dimensional view: boxes with the inertia of their links, on the kinematics of the robot."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.report.scene import inertia_boxes, make_scene, scene_record
from dynid.signals.samples import Samples
from problems import random_phi, random_tree
from uniform_bodies import cuboid_of, phi_of_cuboid


def test_boxes_have_the_inertia_of_their_links() -> None:
    rng = np.random.default_rng(0)
    phi = np.array([random_phi(rng) for _ in range(20)])
    expected = cuboid_of(phi)
    for i, box in enumerate(inertia_boxes(phi)):
        assert box is not None
        assert box.real
        np.testing.assert_allclose(box.half_lengths, expected.half_lengths[i], rtol=1e-12)
        found = phi_of_cuboid(box.mass, box.half_lengths, box.center, box.rotation)
        np.testing.assert_allclose(found, phi[i], rtol=1e-9, atol=1e-12)


def test_what_is_no_body_is_marked() -> None:
    phi = random_phi(np.random.default_rng(1))
    broken = phi.copy()
    broken[4] = 10.0 * phi[4:].max()  # one moment larger than the other two together
    massless = phi.copy()
    massless[0] = -1.0
    good, bad, none = inertia_boxes(np.array([phi, broken, massless]))
    assert good is not None
    assert good.real
    assert bad is not None
    assert not bad.real
    assert np.isfinite(bad.half_lengths).all()
    assert none is None


@pytest.mark.parametrize("seed", range(3))
def test_record_carries_the_kinematics(seed: int) -> None:
    robot = random_tree(seed)
    record = scene_record(make_scene(robot, robot, None))
    for joint, body, q in zip(robot.joints, record["bodies"], (0.3, -1.1, 2.0, 0.0, 0.7, -0.2), strict=True):
        M, P = np.reshape(body["rotation"], (3, 3, 3)), np.reshape(body["translation"], (4, 3))
        c, s = np.cos(q), np.sin(q)
        pose = joint.pose(q)
        np.testing.assert_allclose(M[0] + c * M[1] + s * M[2], pose[:3, :3], atol=1e-6)
        np.testing.assert_allclose(P[0] + c * P[1] + s * P[2] + q * P[3], pose[:3, 3], atol=1e-6)
        if joint.kind != "prismatic":  # a point of the axis stays where it is when the joint turns
            pivot = np.append(body["pivot"], 1.0)
            np.testing.assert_allclose(joint.pose(0.0) @ pivot, pose @ pivot, atol=1e-6)


def test_frames_follow_the_samples() -> None:
    robot = random_tree(4)
    t = np.linspace(10.0, 14.0, 2_001)
    q = np.sin(np.outer(t, np.arange(1.0, 7.0)))
    scene = make_scene(robot, robot, Samples(t, q, q, q))
    assert len(scene.frames) == 80
    assert scene.frame_s * (len(scene.frames) - 1) == pytest.approx(4.0)
    np.testing.assert_allclose(scene.frames[0], q[0])
    np.testing.assert_allclose(scene.frames[-1], q[-1])


def test_without_samples_the_robot_stands_within_its_limits() -> None:
    robot = random_tree(5)
    scene = make_scene(robot, robot, None)
    assert scene.frames.shape == (1, robot.n_joints)
    low, high = robot.position_limits.T
    assert ((scene.frames[0] >= low) & (scene.frames[0] <= high)).all()
