"""``simulate``: a robot follows a reference, and the log of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_finite, freeze
from dynid.errors import InputError
from dynid.progress import Tell, silent
from dynid.recording.recording import Recording, RecordingSource
from dynid.recording.samples import Samples
from dynid.regression.torque import inverse_dynamics
from dynid.robot.checks import require_simulatable
from dynid.robot.model import Robot
from dynid.simulation.controllers import ComputedTorque, Controller
from dynid.simulation.friction import other_effects
from dynid.simulation.loop import TickMotion, track
from dynid.simulation.stepping import stable_steps

SLOWEST_CONTROL_HZ = 1000.0
"""Control runs at the log's rate or the smallest multiple of it that is not slower than this."""

MOST_TICKS = 10_000_000
"""Control ticks of a simulation, nearly three hours at 1000 Hz: each is computed and kept."""

DEFAULT_RELATIVE_NOISE = 0.01


@dataclass(frozen=True, eq=False)
class SimulatedRecording:
    """A log and what really happened.

    ``robot`` is the robot that moved: its Coulomb friction is smoothed as the integration had it, so that
    ``truth.torque = Y(truth) phi`` holds for it to rounding. ``tracking_error`` is the root mean square per joint.
    """

    recording: Recording
    truth: Samples
    robot: Robot
    tracking_error: Array
    notes: tuple[str, ...] = ()


def simulate(
    robot: Robot,
    trajectory: Samples,
    *,
    controller: Controller | None = None,
    rate_hz: float = 1000.0,
    torque_noise: ArrayLike | None = None,
    encoder_counts: ArrayLike | None = 2**20,
    velocity_noise: ArrayLike | None = None,
    seed: int = 0,
    substeps: int | None = None,
    tell: Tell = silent,
) -> SimulatedRecording:
    """Let the robot follow a reference under a controller, and log it.

    Args:
        robot: moves with its own parameters and effects.
        trajectory: reference motion; between its rows it is the polynomial of degree 5 through position, velocity and
            acceleration.
        controller: None for :class:`ComputedTorque` with its default gains.
        rate_hz: rate of the log.
        torque_noise: standard deviation of the torque sensor, N m or N, one or one per joint; None for 1 % of each
            joint's root mean square torque.
        encoder_counts: counts per turn (per metre for prismatic joints) at the joint side; None for no quantisation.
        velocity_noise: standard deviation of a velocity sensor; None logs the encoder's difference over one control
            tick, as most controllers do.
        seed: of the noise and of the controller's wrong model.
        substeps: explicit integration steps per control tick; None for as many as friction needs, or for implicit steps
            where these would be many.
        tell: called with a short text about every hundredth of the motion.

    Torque is limited to the robot's ``tau_max``; joint stops are not simulated.

    Examples:
        >>> import dynid
        >>> simulated = dynid.simulate(dynid.demo_robot(), dynid.demo_samples()[:50], rate_hz=100.0)
        >>> simulated.recording.quantities
        ('position', 'velocity', 'torque', 'reference_position')
    """
    _check_job(robot, trajectory, rate_hz, substeps)
    model_rng, noise_rng = np.random.default_rng(seed).spawn(2)
    n_ticks_per_row = max(1, int(np.ceil(SLOWEST_CONTROL_HZ / rate_hz - 1e-9)))
    tick_s = 1.0 / (rate_hz * n_ticks_per_row)
    reference = _resampled(trajectory, tick_s, n_ticks_per_row)
    moving, steps = stable_steps(robot, reference, tick_s, substeps)
    law = (controller or ComputedTorque()).law(moving, reference.position.mean(axis=0), model_rng)
    motion = track(moving, reference, law, tick_s, steps, _encoder_count(robot, encoder_counts), tell, n_ticks_per_row)
    notes: tuple[str, ...] = ()
    if motion.n_saturated:
        notes = (f"torque was at its limit in {motion.n_saturated} of {len(reference)} control ticks",)
    rows = slice(None, None, n_ticks_per_row)
    truth = Samples(
        reference.time[rows],
        motion.position[rows],
        motion.velocity[rows],
        motion.acceleration[rows],
        motion.torque[rows],
        load=motion.torque[rows] if other_effects(moving) else None,
    )
    torque, velocity = _sensed(robot, truth, motion, rows, torque_noise, velocity_noise, noise_rng)
    recording = Recording(
        time=truth.time,
        position=motion.encoder_position[rows],
        joint_names=robot.joint_names,
        velocity=velocity,
        torque=torque,
        reference_position=reference.position[rows],
        source=RecordingSource(format="simulated", notes=notes, n_rows_in_file=len(truth)),
    )
    error = np.sqrt(np.mean((reference.position - motion.position) ** 2, axis=0))
    return SimulatedRecording(recording, truth, moving, freeze(error), notes)


def exact_motion(robot: Robot, trajectory: Samples) -> Samples:
    """The reference itself with the torque that inverse dynamics gives for it: no noise, no controller."""
    tau = inverse_dynamics(robot, trajectory.position, trajectory.velocity, trajectory.acceleration, trajectory.load)
    return trajectory.with_torque(tau)


def _sensed(
    robot: Robot,
    truth: Samples,
    motion: TickMotion,
    rows: slice,
    torque_noise: ArrayLike | None,
    velocity_noise: ArrayLike | None,
    rng: np.random.Generator,
) -> tuple[Array, Array]:
    """Torque and velocity as the log has them."""
    assert truth.torque is not None
    if torque_noise is None:
        torque_noise = DEFAULT_RELATIVE_NOISE * np.sqrt(np.mean(truth.torque**2, axis=0))
    sigma = _per_joint("torque_noise", torque_noise, robot)
    torque = truth.torque + sigma * rng.normal(size=truth.torque.shape)
    if velocity_noise is None:
        return torque, motion.encoder_velocity[rows]
    spread = _per_joint("velocity_noise", velocity_noise, robot)
    return torque, truth.velocity + spread * rng.normal(size=truth.velocity.shape)


def _encoder_count(robot: Robot, encoder_counts: ArrayLike | None) -> Array | None:
    """Angle or length of one count of each joint's encoder."""
    if encoder_counts is None:
        return None
    turn = np.array([1.0 if joint.kind == "prismatic" else 2.0 * np.pi for joint in robot.moving_joints])
    return turn / _per_joint("encoder_counts", encoder_counts, robot, positive=True)


def _check_job(robot: Robot, trajectory: Samples, rate_hz: float, substeps: int | None) -> None:
    if robot.floating:
        raise InputError(f"robot '{robot.name}' floats; simulation under a tracking controller needs a fixed base")
    require_simulatable(robot)
    if trajectory.velocity.shape[1] != robot.n_joints:
        raise InputError(f"trajectory has {trajectory.velocity.shape[1]} joints, robot has {robot.n_joints} joints")
    if len(trajectory) < 2:
        raise InputError(f"trajectory has {len(trajectory)} rows, expected at least 2")
    if not (np.isfinite(rate_hz) and rate_hz > 0.0):
        raise InputError(f"rate of the log is {rate_hz:g} Hz, expected a positive number")
    ticks = trajectory.duration_s * max(rate_hz, SLOWEST_CONTROL_HZ)
    if ticks > MOST_TICKS:
        raise InputError(
            f"a log of {trajectory.duration_s:.4g} s at {rate_hz:g} Hz would have {trajectory.duration_s * rate_hz:.4g} samples and take "
            f"{ticks:.4g} control ticks, at most {MOST_TICKS:,} are simulated; choose a lower rate or a shorter motion"
        )
    if substeps is not None and substeps < 1:
        raise InputError(f"{substeps} integration steps per control tick asked for, expected at least 1")


def _per_joint(name: str, values: ArrayLike, robot: Robot, *, positive: bool = False) -> Array:
    array = np.asarray(values, dtype=np.float64)
    check_finite(name, array)
    if array.shape not in ((), (1,), (robot.n_joints,)):
        raise InputError(f"{name} has {array.size} values, robot has {robot.n_joints} joints")
    if (array < 0.0).any() or (positive and (array == 0.0).any()):
        raise InputError(f"{name} is {array.min():g}, expected {'a positive number' if positive else 'zero or more'}")
    return np.broadcast_to(array, (robot.n_joints,)).copy()


def _resampled(trajectory: Samples, tick_s: float, multiple: int) -> Samples:
    """The reference at every control tick: quintic Hermite interpolation, so that position is twice differentiable."""
    start = trajectory.time[0]
    n = int(np.floor((trajectory.time[-1] - start) / (tick_s * multiple) + 1e-9)) * multiple
    if n < 1:
        raise InputError(f"trajectory lasts {trajectory.duration_s:.4g} s, shorter than one row of the log")
    time = start + tick_s * np.arange(n + 1)
    left = np.clip(np.searchsorted(trajectory.time, time, side="right") - 1, 0, len(trajectory) - 2)
    width = np.diff(trajectory.time)[left][:, None]
    s = (time - trajectory.time[left])[:, None] / width
    q0, v0, a0 = (x[left] for x in (trajectory.position, trajectory.velocity, trajectory.acceleration))
    q1, v1, a1 = (x[left + 1] for x in (trajectory.position, trajectory.velocity, trajectory.acceleration))
    # q = q0 + v0 h s + a0 h^2 s^2 / 2 + c3 s^3 + c4 s^4 + c5 s^5, the c from q1, v1, a1
    dq = q1 - q0 - width * v0 - 0.5 * width**2 * a0
    dv = width * (v1 - v0) - width**2 * a0
    da = width**2 * (a1 - a0)
    c3, c4, c5 = 10.0 * dq - 4.0 * dv + 0.5 * da, -15.0 * dq + 7.0 * dv - da, 6.0 * dq - 3.0 * dv + 0.5 * da
    q = q0 + width * v0 * s + 0.5 * width**2 * a0 * s**2 + s**3 * (c3 + s * (c4 + s * c5))
    v = v0 + width * a0 * s + s**2 * (3.0 * c3 + s * (4.0 * c4 + 5.0 * s * c5)) / width
    a = a0 + s * (6.0 * c3 + s * (12.0 * c4 + 20.0 * s * c5)) / width**2
    return Samples(time, q, v, a)
