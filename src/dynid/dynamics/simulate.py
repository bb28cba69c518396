"""Motion of a robot under a tracking controller, and the log an instrumented robot would have written of it.

    M(q) a = tau - c(q, v) - g(q) - friction(v),      tau = control(encoder readings, reference)

Forward dynamics is Pinocchio's articulated-body algorithm with rotor inertia, independent of the regressor that later
explains the log. The controller knows the robot only roughly and sees quantised encoders, so tracking is imperfect.
Its torque is held between control ticks; the motion between them is integrated by classical Runge-Kutta steps of
fourth order, as many per tick as the steepest friction needs, or by implicit ones (:mod:`dynid.dynamics.integrators`) where these
would be many. On the demonstration arm that is 2 steps of 0.5 ms, and
the motion over 10 s differs from that with eight times as many by 6e-9 rad and 1.1e-5 rad/s, far below what encoders
resolve.

At a tick the held torque jumps. A row of the log has the mean of both values, ``(tau_before + tau_after) / 2``, and
the true acceleration belongs to that torque, so ``tau = Y(q, v, a) phi`` holds exactly and with no delay of half a
tick.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_finite, freeze
from dynid.dynamics.forward_dynamics import forward_dynamics, require_simulatable
from dynid.dynamics.friction import friction_torque, other_effects
from dynid.dynamics.integrators import runge_kutta, stable_steps, stiff_integrator
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.engine import Tell, silent
from dynid.errors import InputError
from dynid.model.effects.linear import Offset
from dynid.model.robot import Robot
from dynid.signals.recording import Recording, RecordingSource
from dynid.signals.samples import Samples


def with_effect(robot: Robot, name: str, values: ArrayLike) -> Robot:
    """The robot with these values of one of its effects, one for every joint or one per joint."""
    places = _places(robot)
    if name not in places:
        raise InputError(
            f"values of {name} were given, but the robot's effects are {', '.join(places) or 'none'}; add it to them (--effects)"
        )
    array = np.asarray(values, dtype=np.float64)
    check_finite(name, array)
    n = places[name].stop - places[name].start
    if array.shape not in ((), (1,), (n,)):
        raise InputError(f"{name} has {array.size} values, expected 1, or {n}: one per joint")
    if name != Offset.name and (array < 0.0).any():
        raise InputError(f"{name} is {array.min():g}, expected zero or more")
    new = robot.parameters.values.copy()
    new[places[name]] = array
    return robot.with_parameters(robot.parameters.with_values(new))


def effect_values(robot: Robot) -> dict[str, Array]:
    """Values of every effect of the robot, by the effect's name."""
    return {name: robot.parameters.values[place] for name, place in _places(robot).items()}


def told_effects(robot: Robot) -> str:
    """What of friction and rotor inertia a simulation of this robot has, for a person to read."""
    told: dict[str, list[str]] = {"friction": [], "actuator": [], "spring": []}
    for name, place in _places(robot).items():
        values, columns = robot.parameters.values[place], robot.parameters.columns[place]
        if not values.any():
            continue
        low, high = f"{values.min():.3g}", f"{values.max():.3g}"
        units = " or ".join(dict.fromkeys(column.unit for column in columns))
        told[columns[0].kind].append(f"{name} {low if low == high else f'{low} to {high}'} {units}")
    sentence = ", ".join(told["friction"]) or "none"
    springs = f"; springs: {', '.join(told['spring'])}" if told["spring"] else ""
    return f"{sentence}; rotor inertia: {', '.join(told['actuator']) or 'none'}{springs}"


def _places(robot: Robot) -> dict[str, slice]:
    """Where the values of each effect stand among the parameters."""
    places, first = {}, robot.parameters.n_inertial
    for effect in robot.effects:
        n = effect.incidence(len(robot.effect_joints)).shape[1]
        places[effect.label] = slice(first, first + n)
        first += n
    return places


ControlLaw: TypeAlias = Callable[[Array, Array, Array, Array, Array], Array]
"""``tau = law(q, v, q_ref, v_ref, a_ref)``."""


class Controller(ABC):
    """Options of a tracking controller."""

    @abstractmethod
    def law(self, robot: Robot, middle: Array, rng: np.random.Generator) -> ControlLaw:
        """The law for this robot, which moves about the pose ``middle``."""


@dataclass(frozen=True)
class ComputedTorque(Controller):
    """``tau = ID(q, v, a_ref + 2 z w (v_ref - v) + w^2 (q_ref - q)) + s f(v_ref)`` with a model that is wrong.

    ``ID`` has every link's parameters and every rotor inertia off by up to ``model_error`` (relative, at random); ``s
    = friction_compensation`` is the share of true friction that is fed forward. ``w = 2 pi bandwidth_hz``, ``z =
    damping``.
    """

    bandwidth_hz: float = 4.0
    damping: float = 1.0
    model_error: float = 0.1
    friction_compensation: float = 0.7

    def __post_init__(self) -> None:
        if not (0.0 < self.bandwidth_hz < np.inf and 0.0 < self.damping < np.inf):
            raise InputError(
                f"controller has bandwidth {self.bandwidth_hz:g} Hz and damping {self.damping:g}, expected positive numbers"
            )
        if not 0.0 <= self.model_error < 1.0:
            raise InputError(f"model error of the controller is {self.model_error:g}, expected a number in [0, 1)")

    def law(self, robot: Robot, middle: Array, rng: np.random.Generator) -> ControlLaw:
        model_torque = forward_dynamics(_misjudged(robot, self.model_error, rng)).torque
        friction = friction_torque(robot)
        w = 2.0 * np.pi * self.bandwidth_hz
        stiffness, damping, share = w * w, 2.0 * self.damping * w, self.friction_compensation

        def law(q: Array, v: Array, q_ref: Array, v_ref: Array, a_ref: Array) -> Array:
            wanted = a_ref + damping * (v_ref - v) + stiffness * (q_ref - q)
            tau = model_torque(q, v, wanted)
            return tau + share * friction(q, v_ref, tau)

        return law


def _misjudged(robot: Robot, error: float, rng: np.random.Generator) -> Robot:
    """The robot as its controller believes it to be; scaling all ten parameters of a link keeps it consistent."""
    factor = 1.0 + error * rng.uniform(-1.0, 1.0, robot.n_bodies)
    values = robot.parameters.values.copy()
    for i, column in enumerate(robot.parameters.columns):
        if column.kind != "friction":
            values[i] *= factor[column.number - 1]
    return robot.with_parameters(robot.parameters.with_values(values))


VELOCITY_CUTOFF_HZ = 80.0
"""First-order low-pass on the encoder's difference that the feedback uses."""
FASTEST = 1e4
"""rad/s or m/s: a joint that is faster is out of control."""


@dataclass(frozen=True, eq=False)
class TickMotion:
    """What happened at every control tick; acceleration is known at those alone that are logged, and zero at the others."""

    position: Array
    velocity: Array
    acceleration: Array
    torque: Array
    encoder_position: Array
    encoder_velocity: Array
    n_saturated: int


def track(
    robot: Robot,
    reference: Samples,
    law: ControlLaw,
    tick_s: float,
    steps: int | None,
    count: Array | None,
    tell: Tell = silent,
    logged_every: int = 1,
) -> TickMotion:
    """The motion under a control law, by so many explicit steps per tick, or by implicit ones where ``steps`` is None.

    ``count`` is what one encoder count stands for, None for exact encoders; of ``logged_every`` ticks the first is logged.
    """
    dynamics, friction = forward_dynamics(robot), friction_torque(robot)

    def acceleration_of(q: Array, v: Array, tau: Array) -> Array:
        return dynamics.acceleration(q, v, tau - friction(q, v, tau))

    integrated = (
        stiff_integrator(robot, acceleration_of, tick_s) if steps is None else runge_kutta(acceleration_of, tick_s, steps)
    )
    limit = robot.limits("tau_max")
    each = max(1, len(reference) // 100)
    position, velocity, acceleration, torque, read, rate, asked = np.zeros((7, len(reference), robot.n_dof))
    q, v = reference.position[0].copy(), reference.velocity[0].copy()
    blend = 1.0 - np.exp(-2.0 * np.pi * VELOCITY_CUTOFF_HZ * tick_s)
    smooth, before = v.copy(), q - tick_s * v
    if count is not None:
        before = np.round(before / count) * count
    held: Array | None = None
    references = zip(reference.position, reference.velocity, reference.acceleration, strict=True)
    for k, (q_ref, v_ref, a_ref) in enumerate(references):
        if k % each == 0:
            tell(f"simulating: {k * tick_s:.1f} of {len(reference) * tick_s:.1f} s")
        seen = q if count is None else np.round(q / count) * count
        slope = (seen - before) / tick_s
        smooth = smooth + blend * (slope - smooth)
        before = seen
        wanted = law(seen, smooth, q_ref, v_ref, a_ref)
        tau = np.minimum(np.maximum(wanted, -limit), limit)
        logged = tau if held is None else 0.5 * (held + tau)
        position[k], velocity[k], torque[k], read[k], rate[k], asked[k] = q, v, logged, seen, slope, wanted
        if k % logged_every == 0:
            acceleration[k] = acceleration_of(q, v, logged)
        held = tau
        q, v = integrated(q, v, tau)
        if not np.abs(v).max() < FASTEST:
            joint = robot.moving_joints[int(np.argmax(np.nan_to_num(np.abs(v), nan=np.inf)))]
            raise InputError(
                f"simulation of robot '{robot.name}' diverged at {reference.time[k]:.4g} s in joint '{joint.name}'; "
                "choose a slower trajectory or another controller bandwidth"
            )
    n_saturated = int((np.abs(asked) > limit).any(axis=1).sum())
    return TickMotion(position, velocity, acceleration, torque, read, rate, n_saturated)


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

    Returns:
        the log, the true motion behind it, and how far the robot was from its reference, rad.

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
