"""Many short motions of one robot at once under given torques, and how they change with every parameter and first state.

    M(q) v' + h(q, v) = tau,      h: weight, Coriolis, friction and other effects

Windows run side by side, so one call of the compiled kernels serves all of them. Integrated by Verwer's ROS2 with the slope of friction
(second order, stiff friction is stable); sensitivities follow the same motion by the trapezoidal rule:

    M dSv/dt = -Y - C Sv - G Sq,    dSq/dt = Sv,      Y regressor, C and G slopes of inverse dynamics
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.dynamics.forward_dynamics import inertia_and_bias
from dynid.dynamics.inverse_dynamics import inverse_dynamics
from dynid.dynamics.regressors import torque_regressor
from dynid.model.robot import Robot

GAMMA = 1.0 - 1.0 / np.sqrt(2.0)
"""Of ROS2: stable however stiff."""
SLOPE = 1e-5
FASTEST = 1e3
"""Speed beyond which a motion has run away, rad/s or m/s."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of one length: torque of every step and measured position at its ends.

    Args:
        torque: ``(windows, steps, joints)``, mean over each step.
        position: ``(windows, steps + 1, joints)``, measured.
        velocity: the same, for first states.
        step_s: length of a step.
    """

    torque: Array
    position: Array
    velocity: Array
    step_s: float

    def __len__(self) -> int:
        return len(self.torque)

    def part(self, which: slice | BoolArray) -> Windows:
        """Some of the windows."""
        return replace(self, torque=self.torque[which], position=self.position[which], velocity=self.velocity[which])

    @property
    def first(self) -> tuple[Array, Array]:
        """Position and velocity at the start of every window."""
        return self.position[:, 0], self.velocity[:, 0]


def simulate_windows(robot: Robot, windows: Windows, first: tuple[Array, Array]) -> tuple[Array, Array]:
    """Positions and velocities at the ends of all steps, ``(windows, steps + 1, joints)``; not a number where a motion runs away."""
    h, g = windows.step_s, GAMMA * windows.step_s
    q, v = np.array(first[0]), np.array(first[1])
    positions, velocities = np.empty((2, *windows.position.shape))
    positions[:, 0], velocities[:, 0] = q, v
    for k in range(windows.torque.shape[1]):
        tau = windows.torque[:, k]
        M, need, D = _dynamics(robot, q, v)
        stiff = M + g * D[:, :, None] * np.eye(q.shape[1])
        k1 = _solved(stiff, tau - need)
        q2, v2 = q + h * (v + g * k1), v + h * k1
        M2, need2, _ = _dynamics(robot, q2, v2)
        k2 = _solved(stiff, np.einsum("bij,bj->bi", M, _solved(M2, tau - need2) - 2.0 * k1))
        middle = v + g * k1
        q = q + 0.5 * h * (3.0 * middle + v2 - 2.0 * middle + g * k2)
        v = v + 0.5 * h * (3.0 * k1 + k2)
        lost = ~(np.abs(v) < FASTEST).all(axis=1)
        if lost.any():  # the others go on; these are judged by what they are
            q[lost], v[lost] = np.nan, 0.0
        positions[:, k + 1], velocities[:, k + 1] = q, v
        q = np.where(np.isfinite(q), q, 0.0)
    return positions, velocities


def _dynamics(robot: Robot, q: Array, v: Array) -> tuple[Array, Array, Array]:
    """Inertia, torque that no acceleration needs, and the slope of each joint's friction with its own speed."""
    M, bias = inertia_and_bias(robot, q, v)
    if not robot.effects:
        return M, bias, np.zeros_like(q)
    still = np.zeros((2 * len(q), q.shape[1]))
    both, fast = np.concatenate([q, q]), np.concatenate([v, v + SLOPE])
    friction = inverse_dynamics(robot, both, fast, still) - inverse_dynamics(robot, both, fast, still, effects=False)
    now, later = friction[: len(q)], friction[len(q) :]
    return M, bias + now, np.maximum((later - now) / SLOPE, 0.0)


def _solved(A: Array, b: Array) -> Array:
    return np.asarray(np.linalg.solve(A, b[..., None])[..., 0])


def window_sensitivities(robot: Robot, windows: Windows, motion: tuple[Array, Array]) -> Array:
    """Changes of the positions, ``(windows, steps + 1, joints, parameters + 2 joints)``: by parameters, then by the first state."""
    (q, v), h = motion, windows.step_s
    n_windows, n_nodes, n = q.shape
    shape = (n_windows, n_nodes - 1, n)
    qm, vm = (0.5 * (x[:, 1:] + x[:, :-1]).reshape(-1, n) for x in (q, v))
    am = (np.diff(v, axis=1) / h).reshape(-1, n)
    Y = torque_regressor(robot, qm, vm, am)
    p = Y.shape[2]
    Y = Y.reshape(*shape, p)
    M, C, G = (x.reshape(*shape, n) for x in _slopes(robot, qm, vm, am))
    Sq, Sv = np.zeros((2, n_windows, n, p + 2 * n))
    Sq[:, :, p : p + n] = Sv[:, :, p + n :] = np.eye(n)
    found = np.empty((n_windows, n_nodes, n, p + 2 * n))
    found[:, 0] = Sq
    for k in range(n_nodes - 1):
        right = -C[:, k] @ Sv - G[:, k] @ (Sq + 0.5 * h * Sv)
        right[:, :, :p] -= Y[:, k]
        change = np.linalg.solve(M[:, k] + 0.5 * h * C[:, k] + 0.25 * h * h * G[:, k], h * right)
        Sq = Sq + h * (Sv + 0.5 * change)
        Sv = Sv + change
        found[:, k + 1] = Sq
    return found


def _slopes(robot: Robot, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
    """Slopes of inverse dynamics with acceleration (the inertia), velocity and position, ``(rows, n, n)`` each."""
    n = q.shape[1]
    M = inertia_and_bias(robot, q, v)[0]
    C, G = np.empty((2, len(q), n, n))
    for j in range(n):
        small = SLOPE * np.eye(n)[j]
        C[:, :, j] = (inverse_dynamics(robot, q, v + small, a) - inverse_dynamics(robot, q, v - small, a)) / (2.0 * SLOPE)
        G[:, :, j] = (inverse_dynamics(robot, q + small, v, a) - inverse_dynamics(robot, q - small, v, a)) / (2.0 * SLOPE)
    return M, C, G
