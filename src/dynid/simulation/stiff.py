"""Integration of friction that is much faster than the motion: light links with dry friction.

    (1 + g h M^-1 D) k1 = a(q, v),   (1 + g h M^-1 D) k2 = a(q + h kq1, v + h k1) - 2 k1,   v += h (3 k1 + k2) / 2

is Verwer's ROS2: of second order whatever ``D`` is, and it damps what is stiff where ``D`` is the slope of friction. One step and
two of half its length give the error and the step that keeps it (and, extrapolated, the third order). A reversal is then followed
by short steps and the motion between reversals by long ones, where an explicit method takes its shortest step everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dynid.adapters.recursions import OfState
from dynid.arrays import Array
from dynid.errors import InputError
from dynid.robot.model import Robot
from dynid.robot.rotors import coupled_rotors
from dynid.simulation.friction import friction_slopes
from dynid.simulation.stepping import mobility_law

TOLERANCE = 1e-5
"""rad/s or m/s: error of a step in velocity. Positions then differ from those of explicit steps of 1 us by less than 1e-6 rad."""

SHORTEST = 1e-6
"""A step below this share of a control tick means that no step is short enough."""

_DAMPING = 1.0 - math.sqrt(0.5)

Integrator = Callable[[Array, Array, Array], tuple[Array, Array]]
"""``q, v`` after a control tick under a constant torque."""


def stiff_integrator(robot: Robot, acceleration_of: OfState, tick_s: float) -> Integrator:
    """An integrator over control ticks that finds its steps by itself and remembers the last one."""
    slope, mobility = friction_slopes(robot), _with_rotors(robot, mobility_law(robot))
    unit = np.eye(robot.n_dof)
    last = tick_s

    def step(q: Array, v: Array, tau: Array, a: Array, stiffness: Array, h: float) -> tuple[Array, Array]:
        damped = np.linalg.inv(unit + _DAMPING * h * stiffness)
        k1 = damped @ a
        kq1 = v + _DAMPING * h * k1
        v2 = v + h * k1
        k2 = damped @ (acceleration_of(q + h * kq1, v2, tau) - 2.0 * k1)
        kq2 = v2 - 2.0 * kq1 + _DAMPING * h * k2
        return q + 0.5 * h * (3.0 * kq1 + kq2), v + 0.5 * h * (3.0 * k1 + k2)

    def integrated(q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        nonlocal last
        left, h = tick_s, last
        inverse = mobility(q)  # a tick hardly changes the pose, and any slope would do for accuracy
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


def _with_rotors(robot: Robot, mobility: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """``M^-1`` with the inertia of rotors that turn with several joints."""
    rotors = coupled_rotors(robot)
    if not rotors.any():
        return mobility
    return lambda q: np.asarray(np.linalg.inv(np.linalg.inv(mobility(q)) + rotors), dtype=np.float64)
