"""The robot that comes with dynid: a seven-joint arm to try everything on.

A short motion of the demonstration arm, to try a function on without a log.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np

from dynid.dynamics.simulate import exact_motion
from dynid.io.robots.description import Description
from dynid.io.robots.dh import robot_from_dh
from dynid.io.robots.read import chosen_effects
from dynid.model.effects.effect import Effect
from dynid.model.robot import Robot
from dynid.signals.recording import Recording, RecordingSource
from dynid.signals.samples import Samples

DEMO_ARM = "demo_arm.toml"


def demo_robot(effects: Sequence[Effect] | Sequence[str] | str | None = None) -> Robot:
    """The demonstration arm, with seven joints and true inertials, friction and rotor inertias.

    Args:
        effects: effects or their names; None for viscous, coulomb, offset and armature; "none" for rigid bodies only.

    Returns:
        the arm.

    Examples:
        >>> import dynid
        >>> dynid.demo_robot(effects="none").joint_names[0]
        'shoulder_yaw'
    """
    description = Description(Path(DEMO_ARM), demo_description().encode())
    return robot_from_dh(description).with_effects(chosen_effects(effects))


def demo_description() -> str:
    """The demonstration arm's DH TOML text, for those who want it as a file."""
    return resources.files("dynid.io").joinpath("data", DEMO_ARM).read_text(encoding="utf-8")


HARMONICS = 5
SHARE_OF_LIMITS = 0.8
UNLIMITED = 2.0
"""Range, speed and acceleration of joints whose description has no limit, rad, rad/s, rad/s^2."""


def demo_samples(robot: Robot | None = None, *, seconds: float = 10.0, rate_hz: float = 100.0, seed: int = 0) -> Samples:
    """Samples of a random periodic motion within the limits of a robot, with the exact torque of that robot.

    Args:
        robot: a robot on a fixed base; None for the demonstration arm.
        seconds: length of the motion, one period of its Fourier series.
        rate_hz: samples per second.
        seed: of the random coefficients.

    Returns:
        position, velocity, acceleration and torque, each ``(seconds * rate_hz, joints)``, rad, s and N m.

    Examples:
        >>> import dynid
        >>> samples = dynid.demo_samples(seconds=2.0)
        >>> samples.position.shape, samples.torque.shape
        ((200, 7), (200, 7))
    """
    robot = demo_robot() if robot is None else robot
    rng = np.random.default_rng(seed)
    time = np.arange(round(seconds * rate_hz)) / rate_hz
    w = 2.0 * np.pi * np.arange(1, HARMONICS + 1) / seconds
    a, b = rng.normal(size=(2, HARMONICS, robot.n_joints)) / np.arange(1, HARMONICS + 1)[:, None]
    sine, cosine = np.sin(np.outer(time, w)), np.cos(np.outer(time, w))
    q, v, acceleration = sine @ a + cosine @ b, cosine * w @ a - sine * w @ b, -(sine * w**2 @ a + cosine * w**2 @ b)
    low, high, *limits = (
        np.array([getattr(joint, name) for joint in robot.moving_joints]) for name in ("q_min", "q_max", "dq_max", "ddq_max")
    )
    bounded = np.isfinite(low) & np.isfinite(high)
    with np.errstate(invalid="ignore"):
        middle, reach = np.where(bounded, 0.5 * (low + high), 0.0), np.where(bounded, 0.5 * (high - low), UNLIMITED)
    allowed = [reach, *(np.where(np.isfinite(limit), limit, UNLIMITED) for limit in limits)]
    scale = SHARE_OF_LIMITS * np.min(
        [most / abs(x).max(0) for most, x in zip(allowed, (q, v, acceleration), strict=True)], 0
    )
    return exact_motion(robot, Samples(time, middle + scale * q, scale * v, scale * acceleration))


def demo_recording(
    robot: Robot | None = None, *, seconds: float = 10.0, rate_hz: float = 100.0, torque_noise: float = 0.0, seed: int = 0
) -> Recording:
    """The motion of :func:`demo_samples` as a log: position, velocity and torque.

    Args:
        robot: a robot on a fixed base; None for the demonstration arm.
        seconds: length of the log.
        rate_hz: samples per second.
        torque_noise: standard deviation of white noise on torque, as a share of each joint's root mean square torque.
        seed: of the motion and of the noise.

    Returns:
        the log: position in rad, velocity in rad/s, torque in N m.

    Examples:
        >>> import dynid
        >>> dynid.demo_recording(seconds=2.0, torque_noise=0.01).quantities
        ('position', 'velocity', 'torque')
    """
    robot = demo_robot() if robot is None else robot
    samples = demo_samples(robot, seconds=seconds, rate_hz=rate_hz, seed=seed)
    assert samples.torque is not None
    sigma = torque_noise * np.sqrt(np.mean(samples.torque**2, axis=0))
    torque = samples.torque + sigma * np.random.default_rng(seed).normal(size=samples.torque.shape)
    return Recording(
        samples.time,
        samples.position,
        robot.joint_names,
        velocity=samples.velocity,
        torque=torque,
        source=RecordingSource(format="simulated", n_rows_in_file=len(samples)),
    )
