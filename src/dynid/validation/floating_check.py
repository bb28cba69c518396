"""What is wrong with a log of a floating robot: of its base against itself and gravity, of its feet against their speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations, product

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.finding import Finding
from dynid.model.robot import Robot
from dynid.regression.floating_rows import Contacts, Foot
from dynid.signals.base_motion import BaseMotion, base_motion, body_rate
from dynid.signals.samples import Samples

TURNS = 0.05
"""rad/s: a base that never turns faster shows neither the order of its quaternion nor the axes of its gyroscope."""
DISAGREES, AGREES = 0.6, 0.4
"""Relative differences of angular velocities from which on two signals disagree, and up to which another reading agrees."""
OTHER_AXES = 0.25
"""Part of the squared misfit of an IMU up to which other axes leave it: these are its own then."""
SMOOTHED_S = 0.1
"""Time over which angular velocities are averaged before they are compared."""
ALWAYS = 0.995
STILL_RAD = 1e-3


def check_base(
    made: Samples, columns: Mapping[str, slice], motion: BaseMotion, gravity: Array, imu_pose: Array | None
) -> list[Finding]:
    """Gravity in the accelerometer, axes of the IMU, the order of the quaternion, and the axes of the angular velocity."""
    found = _quaternion(made, columns)
    if any(one.code == "quaternion_order" for one in found):
        return found  # an IMU cannot be judged by it
    size = float(np.linalg.norm(gravity))
    if "imu_acceleration" in columns:
        own = made.position[:, columns["imu_acceleration"]]
        mean = float(np.mean(np.linalg.norm(own, axis=1)))
        if abs(mean - 1.0) < 0.3 and size > 5.0:
            what = f"the accelerometer reads {mean:.3g} on average: it is in g, expected m/s^2"
            found.append(Finding("error", what, "multiply its columns by 9.81", code="imu_unit", values={"mean": mean}))
        elif mean < 0.3 * size:
            what = f"the accelerometer reads {mean:.3g} m/s^2 on average: gravity was taken out of it, expected what the sensor reads"
            remedy = "log the raw accelerometer, or name the columns base_ax, base_ay, base_az beside base_qx.. base_qw"
            found.append(Finding("error", what, remedy, code="imu_without_gravity", values={"mean": mean}))
        elif motion.quaternion is not None and size > 0.0:
            other = _without_imu(made, columns, motion, gravity)
            found += _axes("accelerometer", "imu_a", own if imu_pose is None else own @ imu_pose[:3, :3].T, other.proper)
    if "imu_angular_velocity" in columns and "orientation" in columns:
        own = made.position[:, columns["imu_angular_velocity"]]
        other = _without_imu(made, columns, motion, gravity)
        found += _axes("gyroscope", "imu_w", own if imu_pose is None else own @ imu_pose[:3, :3].T, other.angular_velocity)
    return found


def _without_imu(made: Samples, columns: Mapping[str, slice], motion: BaseMotion, gravity: Array) -> BaseMotion:
    """The motion of the base as its pose or twist says; upright gravity where only its orientation is known."""
    rest = {name: place for name, place in columns.items() if not name.startswith("imu_")}
    if "orientation" in rest:
        return base_motion(made, rest, gravity)
    assert motion.rotation is not None
    return replace(motion, proper=-np.einsum("nji,j->ni", motion.rotation, gravity))


def _axes(sensor: str, stem: str, own: Array, expected: Array) -> list[Finding]:
    """Axes and signs of a sensor under which it reads what the base does elsewhere, where these are not its own."""
    readings = {
        (order, signs): float(np.sum((own[:, order] * signs - expected) ** 2))
        for order in permutations(range(3))
        for signs in product((1.0, -1.0), repeat=3)
    }
    as_read = readings[(0, 1, 2), (1.0, 1.0, 1.0)]
    order, signs = min(readings, key=readings.__getitem__)
    if not readings[order, signs] < OTHER_AXES * as_read:
        return []
    misfit = float(np.sqrt(as_read / max(float(np.sum(expected**2)), 1e-300)))
    if sensor == "accelerometer" and readings[(0, 1, 2), (-1.0, -1.0, -1.0)] < OTHER_AXES * as_read:
        what, remedy = (
            "the accelerometer points down at rest: the sign of gravity is wrong",
            "turn the signs of imu_ax, imu_ay, imu_az",
        )
        return [Finding("error", what, remedy, code="gravity_sign", values={"misfit": misfit})]
    axes = ", ".join(f"{'-' if sign < 0.0 else ''}{stem}{'xyz'[k]}" for k, sign in zip(order, signs, strict=True))
    what = f"the {sensor} agrees with the motion of the base if x, y, z are {axes}: its axes are others"
    return [
        Finding(
            "error", what, "give the pose of the IMU on the base (--imu-pose)", code="imu_axes", values={"misfit": misfit}
        )
    ]


def _smoothed(made: Samples, values: Array) -> Array:
    """Means over a short time: the rate of an orientation has the noise of its sensor times the rate of the log."""
    n = max(1, round(SMOOTHED_S * (len(made) - 1) / max(float(made.time[-1] - made.time[0]), 1e-9)))
    return np.add.reduceat(values, np.arange(0, len(values) - n + 1, n), axis=0)[:-1] / n if len(values) > 2 * n else values


def _quaternion(made: Samples, columns: Mapping[str, slice]) -> list[Finding]:
    """The rate of the orientation against the angular velocity, in the order x, y, z, w and in w, x, y, z."""
    if "orientation" not in columns or "angular_velocity" not in columns:
        return []
    w = _smoothed(made, made.position[:, columns["angular_velocity"]])
    size = float(np.sqrt(np.mean(w**2)))
    if size < TURNS:
        return []

    def misfit(order: Sequence[int]) -> float:
        q, dq = made.position[:, columns["orientation"]][:, order], made.velocity[:, columns["orientation"]][:, order]
        return float(np.sqrt(np.mean((_smoothed(made, body_rate(q, dq)) - w) ** 2)) / size)

    as_read, other = misfit((0, 1, 2, 3)), misfit((1, 2, 3, 0))
    if as_read < DISAGREES:
        return []
    if other < AGREES:
        what = "the quaternion of the base turns as its angular velocity says if its columns are w, x, y, z, expected x, y, z, w"
        return [
            Finding("error", what, "rename its columns (base_qw first)", code="quaternion_order", values={"misfit": as_read})
        ]
    what = f"the angular velocity of the base differs from the rate of its orientation by {100.0 * as_read:.3g} %"
    remedy = "base_wx.. are in the axes of the base, not of the world; look at their order and signs"
    return [Finding("warning", what, remedy, code="base_turns", values={"misfit": as_read})]


def check_feet(robot: Robot, feet: Sequence[Foot], samples: Samples, velocity: Array) -> list[Finding]:
    """Flags that are inverted, feet that slip, feet that never lift: by the speed of every foot on the ground and in the air."""
    assert samples.contact is not None
    v = np.array(samples.velocity)
    v[:, :3] = velocity
    J, found, start = Contacts(robot, tuple(feet)).jacobians(samples.position), list[Finding](), 0
    always = []
    for k, foot in enumerate(feet):
        speed = np.linalg.norm(np.einsum("nrd,nd->nr", J[:, start : start + 3], v), axis=1)
        start += foot.size
        on, name = samples.contact[:, k] > 0.0, foot.frame.name
        if on.mean() > ALWAYS:
            always.append(name)
        if not 0.02 < on.mean() < 0.98:
            continue
        down, up = float(np.median(speed[on])), float(np.median(speed[~on]))
        if down > 2.0 * up:
            what = f"foot {name} moves at {down:.3g} m/s where its flag says contact and at {up:.3g} m/s elsewhere: the flag is inverted"
            remedy = "write 1 for contact and 0 for none"
            found.append(Finding("error", what, remedy, (name,), "contact_inverted", {"down": down, "up": up}))
        elif down > 0.1 and down > 0.4 * up:
            what = f"foot {name} slips, or its flag switches late: it moves at {down:.3g} m/s while it touches the ground"
            remedy = "the fit leaves its force out and is not biased by a slip; check the flag and the frame of the foot"
            found.append(Finding("warning", what, remedy, (name,), "slipping_foot", {"down": down, "up": up}))
    if len(always) == len(feet):
        what = (
            f"all feet ({', '.join(always)}) touch the ground throughout: joints have no rows of their own, and only the six rows of the "
            "whole robot are left, so that links, friction and rotors of the legs are known less well or not at all"
        )
        found.append(
            Finding(
                "warning", what, "log steps, or lift the robot, to know the links of the legs", tuple(always), "feet_always"
            )
        )
    return found


def check_poses(robot: Robot, samples: Sequence[Samples]) -> None:
    """Refuse logs in which neither a joint nor the base moves: one pose determines nothing."""
    q = np.concatenate([one.position[:, 7:] for one in samples])
    turning = max(float(np.abs(one.velocity[:, 3:6]).max()) for one in samples)
    proper = np.concatenate([one.acceleration[:, :3] for one in samples])
    if (
        float(np.ptp(q, axis=0).max(initial=0.0)) < 10 * STILL_RAD
        and turning < TURNS
        and float(np.ptp(proper, axis=0).max()) < 0.5
    ):
        raise InputError(
            f"robot '{robot.name}' never leaves one pose, so that nothing but a few sums can be known; expected joints or a base that move"
        )
