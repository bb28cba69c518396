"""Logs to identify from, exact or noisy: a three-joint arm with friction, a planar arm and the demonstration arm."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import signal

from dynid.arrays import Array
from dynid.dynamics.simulate import exact_motion
from dynid.excitation.shapes import random_fourier
from dynid.io.demo import demo_robot
from dynid.model.robot import Robot
from dynid.signals.samples import Samples


@lru_cache(maxsize=1)
def short_arm() -> Robot:
    """The first three joints of the demonstration arm: 42 parameters, 25 base parameters."""
    arm = demo_robot()
    return arm.only(arm.joint_names[:3])


def exact_log(robot: Robot | None = None, seconds: float = 5.0, rate_hz: float = 100.0, seed: int = 2) -> Samples:
    """A random exciting motion with the torque that the robot's own parameters need; the short arm's are kept."""
    return _short_arm_log(seconds, rate_hz, seed) if robot is None else _log_of(robot, seconds, rate_hz, seed)


@lru_cache(maxsize=16)
def _short_arm_log(seconds: float, rate_hz: float, seed: int) -> Samples:
    return _log_of(short_arm(), seconds, rate_hz, seed)


def _log_of(robot: Robot, seconds: float, rate_hz: float, seed: int) -> Samples:
    return exact_motion(robot, random_fourier(robot, seconds, 5, seed).samples(rate_hz))


def noise(samples: Samples, sigma: float | Array, seed: int, cutoff_nyquist: float | None = None) -> Array:
    """Torque noise; with a cut-off, white noise after the zero-phase filter that a user would apply to the log."""
    assert samples.torque is not None
    white = np.random.default_rng(seed).normal(size=samples.torque.shape) * sigma
    if cutoff_nyquist is None:
        return white
    sections = signal.butter(4, cutoff_nyquist, output="sos")
    return np.asarray(signal.sosfiltfilt(sections, white, axis=0))


def noisy_log(samples: Samples, sigma: float | Array, seed: int, cutoff_nyquist: float | None = None) -> Samples:
    """The same motion with noise on the torque."""
    assert samples.torque is not None
    return samples.with_torque(samples.torque + noise(samples, sigma, seed, cutoff_nyquist))


def reordered(samples: Samples, order: Array) -> Samples:
    """The same rows in another order, on the same clock."""
    assert samples.torque is not None
    return Samples(
        samples.time,
        samples.position[order],
        samples.velocity[order],
        samples.acceleration[order],
        samples.torque[order],
    )


def locked(samples: Samples, joint: int, robot: Robot, position: float = 0.3) -> Samples:
    """The same motion with one joint held still, with the torque that this needs."""
    q, v, a = samples.position.copy(), samples.velocity.copy(), samples.acceleration.copy()
    q[:, joint], v[:, joint], a[:, joint] = position, 0.0, 0.0
    return exact_motion(robot, Samples(samples.time, q, v, a))
