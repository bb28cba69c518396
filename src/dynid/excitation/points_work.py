"""Work of friction and other effects between points that a motion joins by polynomials of degree 5, and its derivative by the points.

Between two points ``q0, v0`` and ``q1, v1`` a joint moves in the time ``u`` as

    q(s) = q0 (1 - p) + q1 p + u v0 r0 + u v1 r1,    p = 10 s^3 - 15 s^4 + 6 s^5,  r0 = s - 6 s^3 + 8 s^4 - 3 s^5,
    r1 = -4 s^3 + 7 s^4 - 3 s^5

An effect with the signal ``e(q, v, a)`` per unit of its value does the work ``u int_0^1 e v ds``, here by Gauss's rule: exact for viscous
friction, offset and rotor inertia, whose powers are polynomials.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Polynomial

from dynid.arrays import Array
from dynid.dynamics.inverse_dynamics import effect_signals
from dynid.excitation.gradient import effect_gradient
from dynid.model.effects.effect import Motion
from dynid.model.robot import Robot

NODES = 8
"""Times at which the power between two points is looked at."""

_P, _R0, _R1 = Polynomial([0, 0, 0, 10, -15, 6]), Polynomial([0, 1, 0, -6, 8, -3]), Polynomial([0, 0, 0, -4, 7, -3])
_SHARES = (1.0 - _P, _P, _R0, _R1)
_X, _WEIGHTS = np.polynomial.legendre.leggauss(NODES)
_BASES = tuple(np.array([(one.deriv(k) if k else one)(0.5 * (_X + 1.0)) for one in _SHARES]) for k in range(3))
"""Share of each end in position, velocity and acceleration by ``s``, ``(4, nodes)``."""


@dataclass(frozen=True, eq=False)
class PointsWork:
    """Work of every effect between successive points, per unit of its value.

    Args:
        robot: with effects that have derivatives.
        lengths_s: time between successive points, ``(rows,)``.
    """

    robot: Robot
    lengths_s: Array

    def columns(self, q: Array, v: Array) -> Array:
        """``(rows, effect columns)`` for points ``(rows + 1, joints)``."""
        power = np.prod(self._powers(*self._motion(q, v)), axis=0)
        return np.asarray((self._weights[:, None] * power).reshape(len(self.lengths_s), NODES, -1).sum(axis=1))

    def gradient(self, q: Array, v: Array, weights: Array) -> tuple[Array, Array]:
        """``dg/dq, dg/dv`` of ``g = sum weights columns(q, v)``, the time between points held."""
        motion = self._motion(q, v)
        signals, speed = self._powers(*motion)
        bar = np.repeat(weights, NODES, axis=0) * self._weights[:, None]
        bars = [np.zeros_like(motion[0]), (bar * signals) @ self.robot.effect_incidence.T, np.zeros_like(motion[0])]
        first = 0
        for effect in self.robot.effects:
            last = first + effect.incidence(self.robot.n_joints).shape[1]
            by = effect_gradient(effect, Motion(*motion), (bar * speed)[:, first:last])
            bars = [one if more is None else one + more for one, more in zip(bars, by, strict=True)]
            first = last
        ends = np.zeros((4, len(self.lengths_s), q.shape[1]))
        for k, one in enumerate(bars):
            scaled = one.reshape(len(self.lengths_s), NODES, -1) / self.lengths_s[:, None, None] ** k
            ends += np.einsum("en,rnj->erj", _BASES[k], scaled)
        ends[2:] *= self.lengths_s[:, None]
        q_bar, v_bar = np.zeros_like(q), np.zeros_like(v)
        for whole, (before, after) in ((q_bar, ends[:2]), (v_bar, ends[2:])):
            whole[:-1] += before
            whole[1:] += after
        return q_bar, v_bar

    @property
    def _weights(self) -> Array:
        """``u`` times the weights of Gauss's rule on [0, 1], ``(rows x nodes,)``."""
        return np.asarray(np.outer(self.lengths_s, 0.5 * _WEIGHTS).ravel())

    def _motion(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at all nodes, row after row."""
        u = self.lengths_s[:, None]
        ends = np.stack([q[:-1], q[1:], u * v[:-1], u * v[1:]])
        found = [np.einsum("en,erj->rnj", _BASES[k], ends) / u[:, None] ** k for k in range(3)]
        position, velocity, acceleration = (part.reshape(-1, q.shape[1]) for part in found)
        return position, velocity, acceleration

    def _powers(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        """Signal of every effect column and the speed that it acts on."""
        return effect_signals(self.robot, q, v, a), v @ self.robot.effect_incidence
