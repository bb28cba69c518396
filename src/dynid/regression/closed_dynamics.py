"""Dynamics of a closed robot one state at a time, for integration: ``M_a = G^T M G`` and what else the motors feel.

    tau = M_a(q) a + c_a(q, v) + g_a(q),      c_a + g_a = G^T (tau of the tree under (G v, dG/dt v))

It is exact, needs no multipliers, and leaves no drift of the closures: passive joints are solved anew in every state, starting
from the state before.
"""

from __future__ import annotations

import numpy as np

from dynid.arrays import Array, frozen_view
from dynid.errors import InputError
from dynid.regression.closed_motion import CLEAR, closures_of
from dynid.regression.torque import compiled, present_inertials, tree_arrays
from dynid.robot.model import Robot
from dynid.robot.rotors import rotor_matrix


class ClosedDynamics:
    """Rigid bodies and rotors of a closed robot; it remembers the last position of its tree to start from."""

    def __init__(self, robot: Robot) -> None:
        if robot.loops.rubbing:
            raise InputError(
                f"passive joints {', '.join(robot.loops.rubbing)} of robot '{robot.name}' have friction, which is not simulated yet; "
                "leave it off these joints"
            )
        self._closures, self._tree, self._gravity = closures_of(robot), tree_arrays(robot), robot.gravity
        self._phi = frozen_view(np.ascontiguousarray(present_inertials(robot)))
        self._rotors = rotor_matrix(robot)
        seeds = self._closures.seeds
        self._actuated, self._whole, self._G = seeds.actuated[0], seeds.position[0], seeds.G[0]

    def inertia_and_bias(self, q: Array, v: Array) -> tuple[Array, Array]:
        """``M_a``, rotors included, and the torque that no acceleration needs."""
        from dynid.regression import kernel

        n = len(q)
        motion = self._closures.follow(self._position(q), v[None])
        G = motion.G[0]
        self._G = G
        # the bias, rest, then rest with a unit acceleration of each motor
        position = np.repeat(motion.position, n + 2, axis=0)
        velocity, acceleration = np.zeros_like(position), np.zeros_like(position)
        velocity[0], acceleration[0], acceleration[2:] = motion.velocity[0], motion.acceleration[0], G.T
        force = np.empty_like(position)
        states = (frozen_view(part) for part in (position, velocity, acceleration))
        compiled(kernel.inverse_dynamics_rows)(*states, self._gravity, self._tree, self._phi, force)
        torque = force @ G
        M = torque[2:] - torque[1]
        return 0.5 * (M + M.T) + self._rotors, torque[0]

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
