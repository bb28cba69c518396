"""Steps of integration: explicit ones, and implicit ones for friction that is much faster than the motion.

    (1 + g h M^-1 D) k1 = a(q, v),   (1 + g h M^-1 D) k2 = a(q + h kq1, v + h k1) - 2 k1,   v += h (3 k1 + k2) / 2

is Verwer's ROS2: of second order whatever ``D`` is, and it damps what is stiff where ``D`` is the slope of friction. One step and
two of half its length give the error and the step that keeps it (and, extrapolated, the third order). A reversal of light links with
dry friction is then followed by short steps and the motion between reversals by long ones, where an explicit method takes its
shortest step everywhere. Friction alone decays as ``M v' = -D v``; an explicit step must resolve the largest eigenvalue of ``M^-1 D``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.dynamics.forward_dynamics import forward_dynamics, mobilities
from dynid.dynamics.friction import (
    COULOMB_WIDTH,
    friction_torque,
    friction_with_slope,
    refuse_acceleration_effects,
    smooth_friction,
    steepest_friction,
)
from dynid.errors import InputError
from dynid.model.robot import Robot
from dynid.signals.samples import Samples

TOLERANCE = 1e-5
"""rad/s or m/s: error of a step in velocity. Positions then differ from those of explicit steps of 1 us by less than 1e-6 rad."""
SHORTEST = 1e-6
"""A step below this share of a control tick means that no step is short enough."""
DAMPING = 1.0 - math.sqrt(0.5)
"""``g`` of ROS2."""
OfState: TypeAlias = Callable[[Array, Array, Array], Array]
Integrator: TypeAlias = Callable[[Array, Array, Array], tuple[Array, Array]]
"""``q, v`` after a control tick under a constant torque."""


def runge_kutta(acceleration_of: OfState, tick_s: float, steps: int) -> Integrator:
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


def rosenbrock(
    q: Array,
    v: Array,
    k1: Array,
    acceleration: Callable[[Array, Array], Array],
    damped: Callable[[Array], Array],
    h: float,
) -> tuple[Array, Array]:
    """``q, v`` after a step ``h`` of ROS2, for one state or rows of states.

    Args:
        q: positions.
        v: velocities.
        k1: ``damped(a(q, v))``.
        acceleration: ``a(q, v)`` at the end of the step.
        damped: ``(1 + g h M^-1 D)^-1 x`` of an acceleration.
        h: length of the step, s.
    """
    kq1 = v + DAMPING * h * k1
    v2 = v + h * k1
    k2 = damped(acceleration(q + h * kq1, v2) - 2.0 * k1)
    kq2 = v2 - 2.0 * kq1 + DAMPING * h * k2
    return q + 0.5 * h * (3.0 * kq1 + kq2), v + 0.5 * h * (3.0 * k1 + k2)


def stiff_integrator(robot: Robot, acceleration_of: OfState, tick_s: float) -> Integrator:
    """An integrator over control ticks that finds its steps by itself and remembers the last one."""
    friction, dynamics = friction_torque(robot), forward_dynamics(robot)
    unit = np.eye(robot.n_dof)
    last = tick_s

    def step(q: Array, v: Array, tau: Array, a: Array, stiffness: Array, h: float) -> tuple[Array, Array]:
        damped = np.linalg.inv(unit + DAMPING * h * stiffness)
        return rosenbrock(q, v, damped @ a, lambda q, v: acceleration_of(q, v, tau), lambda x: np.asarray(damped @ x), h)

    def slope(q: Array, v: Array, tau: Array) -> Array:
        return np.asarray(friction_with_slope(friction, q[None], v[None], tau[None])[1][0])

    def integrated(q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        nonlocal last
        left, h = tick_s, last
        inverse = dynamics.mobility(q)  # a tick hardly changes the pose, and any slope would do for accuracy
        while left > 1e-9 * tick_s:
            h = min(h, left)
            a = acceleration_of(q, v, tau).copy()
            stiffness = inverse @ slope(q, v, tau)
            whole_q, whole_v = step(q, v, tau, a, stiffness, h)
            half_q, half_v = step(q, v, tau, a, stiffness, 0.5 * h)
            a = acceleration_of(half_q, half_v, tau).copy()
            half_q, half_v = step(half_q, half_v, tau, a, inverse @ slope(half_q, half_v, tau), 0.5 * h)
            errors = np.abs(half_v - whole_v) / 3.0
            error = float(errors.max())
            if error <= TOLERANCE:
                left -= h
                q, v = half_q + (half_q - whole_q) / 3.0, half_v + (half_v - whole_v) / 3.0
                last = h
            elif not h > SHORTEST * tick_s:
                joint = robot.moving_joints[int(np.argmax(np.nan_to_num(errors, nan=np.inf)))]
                raise InputError(
                    f"simulation of robot '{robot.name}' cannot follow joint '{joint.name}': its friction changes faster than "
                    f"steps of {h:.1g} s resolve; give it less friction, or rotor inertia with --armature"
                )
            h *= min(4.0, max(0.2, 0.85 * (TOLERANCE / error) ** (1.0 / 3.0))) if 0.0 < error < np.inf else 0.2
        return q, v

    return integrated


POSES = 32
"""Poses of the reference at which the inertia matrix is looked at."""
LARGEST_STEP = 0.75
"""Largest product of friction rate and step; Runge-Kutta of fourth order is stable up to 2.78."""
MOST_STEPS = 8
"""Where friction would need more steps per tick than that, an implicit method with steps of its own is faster."""


def stable_steps(robot: Robot, reference: Samples, tick_s: float, substeps: int | None) -> tuple[Robot, int | None]:
    """The robot with smooth Coulomb friction, and the explicit steps per tick; None where these would be too many."""
    refuse_acceleration_effects(robot)
    inverses = mobilities(robot, reference.position[:: max(1, len(reference) // POSES)])
    moving = smooth_friction(robot, COULOMB_WIDTH)
    if substeps is not None:
        return moving, substeps
    root = np.sqrt(steepest_friction(moving))
    rate = float(np.linalg.eigvalsh(root[:, None] * inverses * root).max())  # at which friction slows the joints down, 1/s
    steps = max(1, int(np.ceil(rate * tick_s / LARGEST_STEP)))
    return moving, steps if steps <= MOST_STEPS else None
