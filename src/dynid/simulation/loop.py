"""The control loop: read encoders, hold a torque, integrate; tick by tick, because time is sequential."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.adapters.recursions import OfState
from dynid.arrays import Array
from dynid.errors import InputError
from dynid.progress import Tell, silent
from dynid.recording.samples import Samples
from dynid.robot.model import Robot
from dynid.robot.rotors import coupled_rotors
from dynid.simulation.controllers import ControlLaw
from dynid.simulation.friction import friction_law
from dynid.simulation.stepping import acceleration_law
from dynid.simulation.stiff import Integrator, stiff_integrator

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
    acceleration_of = _with_friction(robot)
    integrated = (
        stiff_integrator(robot, acceleration_of, tick_s) if steps is None else _explicit(acceleration_of, tick_s, steps)
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


def _with_friction(robot: Robot) -> OfState:
    dynamics, friction = with_coupled_rotors(robot, acceleration_law(robot)), friction_law(robot)
    return lambda q, v, tau: dynamics(q, v, tau - friction(q, v, tau))


def with_coupled_rotors(robot: Robot, dynamics: OfState) -> OfState:
    """Forward dynamics with the inertia ``U diag(w) U^T`` of rotors that turn with several joints beside that of its own.

    ``dynamics`` is linear in the torque, so ``M^-1 U`` is known from a few more calls, and Woodbury's identity gives
    ``(M + U diag(w) U^T)^-1`` from it.
    """
    w, vectors = np.linalg.eigh(coupled_rotors(robot))
    largest = float(np.abs(w).max())
    some = np.abs(w) > 1e-12 * largest
    if not largest > 0.0:
        return dynamics
    w, U = w[some], vectors[:, some]

    def acceleration(q: Array, v: Array, tau: Array) -> Array:
        free = dynamics(q, v, tau).copy()
        Z = np.column_stack([dynamics(q, v, tau + u) - free for u in U.T])
        if len(w) == 1:
            return np.asarray(free - Z[:, 0] * float(U[:, 0] @ free) / (1.0 / w[0] + float(U[:, 0] @ Z[:, 0])))
        return np.asarray(free - Z @ np.linalg.solve(np.diag(1.0 / w) + U.T @ Z, U.T @ free))

    return acceleration


def _explicit(acceleration_of: OfState, tick_s: float, steps: int) -> Integrator:
    """Classical Runge-Kutta steps of fourth order, so many over a tick under a constant torque."""
    h = tick_s / steps

    def integrated(q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        for _ in range(steps):
            a1 = acceleration_of(q, v, tau)
            v2 = v + 0.5 * h * a1
            a2 = acceleration_of(q + 0.5 * h * v, v2, tau)
            v3 = v + 0.5 * h * a2
            a3 = acceleration_of(q + 0.5 * h * v2, v3, tau)
            v4 = v + h * a3
            a4 = acceleration_of(q + h * v3, v4, tau)
            q = q + (h / 6.0) * (v + 2.0 * (v2 + v3) + v4)
            v = v + (h / 6.0) * (a1 + 2.0 * (a2 + a3) + a4)
        return q, v

    return integrated
