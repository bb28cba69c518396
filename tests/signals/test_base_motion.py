"""Motion of a base from its pose, twist and IMU, on one smooth motion of Pinocchio's."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.signals.base_motion import base_motion, continuous_quaternions
from dynid.signals.samples import Samples

G = np.array([0.0, 0.0, -9.81])
H = 1e-4


def pose(t: float) -> pin.SE3:
    return pin.SE3(
        pin.exp3(np.array([0.4 * np.sin(t), 0.3 * np.cos(1.3 * t), 0.7 * t])), np.array([np.sin(t), t * t, np.cos(2 * t)])
    )


def twist(t: float) -> Array:
    return np.asarray(pin.log6(pose(t - H).inverse() * pose(t + H)).vector) / (2 * H)


def log(t: Array, place: pin.SE3) -> tuple[Samples, dict[str, slice]]:
    """Everything that can be logged of a base with an IMU at ``place``, with rates by differences of exact values."""

    def row(s: float) -> Array:
        at = pose(s)
        v = twist(s)
        imu = (pose(s + H) * place).translation - 2 * (at * place).translation + (pose(s - H) * place).translation
        proper = (at * place).rotation.T @ (imu / H**2 - G)
        q = pin.Quaternion(at.rotation).coeffs()
        return np.r_[
            at.translation,
            q if q[3] > 0 else -q,
            v,
            (twist(s + H) - twist(s - H)) / (2 * H),
            proper,
            place.rotation.T @ v[3:],
        ]

    names = {"position": 3, "orientation": 4, "velocity": 3, "angular_velocity": 3, "acceleration": 3}
    names |= {"angular_acceleration": 3, "imu_acceleration": 3, "imu_angular_velocity": 3}
    ends = np.cumsum([0, *names.values()])
    columns = {name: slice(int(a), int(b)) for name, a, b in zip(names, ends[:-1], ends[1:], strict=True)}
    step = 1e-3
    x, after, before = (np.array([row(s + d) for s in t]) for d in (0.0, step, -step))
    return Samples(t, x, (after - before) / (2 * step), (after - 2 * x + before) / step**2), columns


@pytest.mark.parametrize(
    ("used", "source"),
    [
        (("orientation", "velocity", "angular_velocity", "acceleration", "angular_acceleration"), "logged acceleration"),
        (("orientation", "velocity", "angular_velocity"), "twist"),
        (("orientation", "position"), "pose"),
        (("imu_acceleration", "imu_angular_velocity"), "accelerometer"),
    ],
)
def test_every_source_gives_the_same_motion(used: tuple[str, ...], source: str) -> None:
    t = np.linspace(0.2, 0.8, 5)
    place = pin.SE3(pin.rpy.rpyToMatrix(0.3, -0.2, 0.5), np.array([0.1, -0.05, 0.02]))
    made, columns = log(t, place)
    whole = base_motion(made, {name: columns[name] for name in ("orientation", "velocity", "angular_velocity")}, G)
    found = base_motion(made, {name: columns[name] for name in used}, G, place.homogeneous)
    assert source in found.source
    for name in ("angular_velocity", "proper", "angular_acceleration"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), atol=2e-3)
    for k, s in enumerate(t):  # what an accelerometer at the origin reads, by differences of the position alone
        second = (pose(s + H).translation - 2 * pose(s).translation + pose(s - H).translation) / H**2
        np.testing.assert_allclose(found.proper[k], pose(s).rotation.T @ (second - G), atol=2e-3)


def test_orientation_alone_is_a_base_that_does_not_accelerate() -> None:
    made, columns = log(np.array([0.3]), pin.SE3.Identity())
    found = base_motion(made, {"orientation": columns["orientation"]}, G)
    np.testing.assert_allclose(found.proper[0], pose(0.3).rotation.T @ -G, atol=1e-9)
    assert "did not accelerate" in found.source


def test_a_base_without_turning_or_gravity_is_refused() -> None:
    made, columns = log(np.array([0.3]), pin.SE3.Identity())
    with pytest.raises(InputError, match="how the base turns"):
        base_motion(made, {"velocity": columns["velocity"]}, G)
    with pytest.raises(InputError, match="neither an accelerometer"):
        base_motion(made, {"angular_velocity": columns["angular_velocity"]}, G)


def test_quaternions_keep_their_sign_and_have_unit_length() -> None:
    one = np.array([[0.0, 0.0, 0.6, 0.8], [0.0, 0.0, -0.61, -0.79], [0.0, 0.0, 0.62, 0.78]])
    found = continuous_quaternions("log", one)
    assert (np.einsum("ni,ni->n", found[1:], found[:-1]) > 0.99).all()
    with pytest.raises(InputError, match="row 2"):
        continuous_quaternions("log", one * [[1.0], [1.5], [1.0]])
