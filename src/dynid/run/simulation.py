"""A simulated log of a motion, from file to file."""

from __future__ import annotations

from pathlib import Path

from dynid.errors import InputError
from dynid.excitation.fourier import read_trajectory
from dynid.recording.recording import Recording, write_recording
from dynid.robot.model import Robot
from dynid.simulation import exact_motion, simulate


def simulate_log(
    robot: Robot,
    trajectory: str | Path,
    output: str | Path,
    *,
    rate_hz: float = 1000.0,
    torque_noise: float = 0.01,
    encoder_bits: int = 19,
    seed: int = 0,
) -> tuple[Path, Recording]:
    """Simulate a trajectory file into a log file; ``torque_noise`` is a share of each joint's root mean square torque."""
    if not torque_noise >= 0.0:
        raise InputError(f"torque noise is {torque_noise:g}, expected zero or a positive share")
    if not 0 <= encoder_bits <= 40:
        raise InputError(f"encoder has {encoder_bits} bits, expected 0 (exact) to 40")
    reference = read_trajectory(trajectory, robot)
    torque = exact_motion(robot, reference).torque
    assert torque is not None
    result = simulate(
        robot,
        reference,
        rate_hz=rate_hz,
        torque_noise=torque_noise * (torque**2).mean(axis=0) ** 0.5,
        encoder_counts=2**encoder_bits if encoder_bits else None,
        seed=seed,
    )
    return Path(write_recording(result.recording, output)), result.recording
