"""What the data check says of base and feet; whole logs are judged in tests/pipeline/test_identify_floating.py."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.errors import InputError
from dynid.model.frames import frame_named
from dynid.regression.floating_rows import Foot, base_states
from dynid.signals.base_motion import BaseMotion
from dynid.signals.samples import Samples
from dynid.validation.floating_check import check_base, check_feet, check_poses
from legged_robots import QUADRUPED_FEET
from legged_simulation import quadruped

G = np.array([0.0, 0.0, -9.81])
N = 200


def still(b: np.ndarray) -> BaseMotion:
    return BaseMotion(np.zeros((N, 3)), b, np.zeros((N, 3)), np.zeros((N, 3)), np.tile([0.0, 0.0, 0.0, 1.0], (N, 1)))


@pytest.mark.parametrize(
    ("reads", "code"),
    [
        ([0, 0, 9.81], None),
        ([0, 0, 1.0], "imu_unit"),
        ([0, 0, 0.1], "imu_without_gravity"),
        ([0, 0, -9.81], "gravity_sign"),
        ([9.81, 0, 0], "imu_axes"),
    ],
)
def test_an_accelerometer_at_rest_shows_gravity_upwards(reads: list[float], code: str | None) -> None:
    b = np.tile(np.array(reads, dtype=float), (N, 1))
    made = Samples(np.arange(N) / 100.0, b, 0 * b, 0 * b)
    found = check_base(made, {"imu_acceleration": slice(0, 3)}, still(b), G, None)
    assert [one.code for one in found] == ([] if code is None else [code])


def moved(speed: np.ndarray, contact: np.ndarray) -> tuple[Samples, np.ndarray]:
    """A robot whose base, and so every foot, moves at some speed."""
    robot, joints = quadruped(), np.zeros((3, N, 12))
    q, v, a = base_states(robot, still(np.tile(-G, (N, 1))), *joints)
    samples = Samples(np.arange(N) / 100.0, q, v, a, torque=0 * v, contact=contact)
    return samples, speed[:, None] * [1.0, 0.0, 0.0]


def test_feet_are_judged_by_their_speed() -> None:
    robot = quadruped()
    feet = tuple(Foot(frame_named(robot, name)) for name in QUADRUPED_FEET)
    up = np.arange(N) % 20 < 10
    fast = np.where(up, 1.0, 0.0)
    flags = np.column_stack([~up, up, np.ones(N), ~up]).astype(float)
    found = check_feet(robot, feet, *moved(fast, flags))
    assert [(one.code, one.where) for one in found] == [("contact_inverted", (QUADRUPED_FEET[1],))]
    slow = np.where(up, 1.0, 0.5)
    assert {one.code for one in check_feet(robot, feet, *moved(slow, np.column_stack([~up] * 4).astype(float)))} == {
        "slipping_foot"
    }
    always = check_feet(robot, feet, *moved(fast, np.ones((N, 4))))
    assert [one.code for one in always] == ["feet_always"]


def test_one_pose_is_refused() -> None:
    samples, _ = moved(np.zeros(N), np.ones((N, 4)))
    with pytest.raises(InputError, match="never leaves one pose"):
        check_poses(quadruped(), [samples])
