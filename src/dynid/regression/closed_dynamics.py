"""Dynamics of a closed robot one state at a time, for integration: ``M_a = G^T M G`` and what else the motors feel.

    tau = M_a(q) a + c_a(q, v) + g_a(q),      c_a + g_a = G^T (tau of the tree under (G v, dG/dt v))

It is exact, needs no multipliers, and leaves no drift of the closures: passive joints are solved anew in every state, starting
from the state before.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynid.arrays import Array, frozen_view
from dynid.regression.closed_motion import CLEAR, TreeMotion, closures_of
from dynid.regression.passive import PassiveEffects
from dynid.regression.torque import compiled, present_inertials, tree_arrays
from dynid.robot.model import Robot
from dynid.robot.rotors import rotor_matrix


def inertia_and_bias(robot: Robot, q: Array, v: Array) -> tuple[Array, Array]:
    """``M_a`` of rigid bodies and passive rotors and the torque that no acceleration needs, of a closed robot in many states."""
    closures = closures_of(robot)
    motion = closures.follow(closures.positions(np.ascontiguousarray(q)), v)
    phi = frozen_view(np.ascontiguousarray(present_inertials(robot)))
    M, bias = _projected(motion, robot.gravity, tree_arrays(robot), phi)
    more, rest = PassiveEffects(robot).inertia(motion)
    return M + more, bias + rest


def _projected(motion: TreeMotion, gravity: Array, tree: tuple[Any, ...], phi: Array) -> tuple[Array, Array]:
    """Inertia and bias from three kinds of states of the tree: the motion itself, rest, and rest under unit accelerations."""
    from dynid.regression import kernel

    (n, n_tree), n_actuated = motion.position.shape, motion.G.shape[2]
    position = np.repeat(motion.position, n_actuated + 2, axis=0)
    velocity, acceleration = np.zeros((2, n, n_actuated + 2, n_tree))
    velocity[:, 0], acceleration[:, 0], acceleration[:, 2:] = motion.velocity, motion.acceleration, motion.G.swapaxes(1, 2)
    force = np.empty_like(position)
    states = (frozen_view(part.reshape(position.shape)) for part in (position, velocity, acceleration))
    compiled(kernel.inverse_dynamics_rows)(*states, gravity, tree, phi, force)
    torque = np.matmul(force.reshape(n, n_actuated + 2, n_tree), motion.G)
    M = torque[:, 2:] - torque[:, 1:2]
    return 0.5 * (M + M.swapaxes(1, 2)), torque[:, 0]


class ClosedDynamics:
    """Rigid bodies and rotors of a closed robot, without friction; it remembers the last position of its tree to start from."""

    def __init__(self, robot: Robot) -> None:
        self._passive = PassiveEffects(robot)
        self._closures, self._tree, self._gravity = closures_of(robot), tree_arrays(robot), robot.gravity
        self._phi = frozen_view(np.ascontiguousarray(present_inertials(robot)))
        self._rotors = rotor_matrix(robot)
        seeds = self._closures.seeds
        self._actuated, self._whole, self._G = seeds.actuated[0], seeds.position[0], seeds.G[0]

    def inertia_and_bias(self, q: Array, v: Array) -> tuple[Array, Array]:
        """``M_a``, rotors included, and the torque that no acceleration needs."""
        motion = self._closures.follow(self._position(q), v[None])
        self._G = motion.G[0]
        M, bias = _projected(motion, self._gravity, self._tree, self._phi)
        more, rest = self._passive.inertia(motion)
        return M[0] + more[0] + self._rotors, bias[0] + rest[0]

    def acceleration(self, q: Array, v: Array, tau: Array) -> Array:
        """``a(q, v, tau)``."""
        M, bias = self.inertia_and_bias(q, v)
        return np.asarray(np.linalg.solve(M, tau - bias))

    def torque(self, q: Array, v: Array, a: Array) -> Array:
        """``tau(q, v, a)``."""
        M, bias = self.inertia_and_bias(q, v)
        return np.asarray(M @ a + bias)

    def gravity(self, q: Array) -> Array:
        """``g_a(q)``."""
        return self.inertia_and_bias(q, np.zeros_like(q))[1]

    def mobility(self, q: Array) -> Array:
        """``M_a^-1``, not a number where it does not exist."""
        M = self.inertia_and_bias(q, np.zeros_like(q))[0]
        return np.asarray(np.linalg.inv(M)) if np.linalg.matrix_rank(M) == len(M) else np.full_like(M, np.nan)

    def _position(self, q: Array) -> Array:
        """The tree's position, from the last one where that is near."""
        whole: Array = (self._whole + self._G @ (q - self._actuated))[None]
        whole[0, self._closures.actuated] = q
        near = np.abs(q - self._actuated).max() < CLEAR
        predicted = whole.copy()
        if not near or self._closures.close(whole)[0][0] != 0 or np.abs(whole - predicted).max() > CLEAR:
            whole = self._closures.positions(np.ascontiguousarray(q[None]))
        self._actuated, self._whole = q.copy(), whole[0]
        return whole
