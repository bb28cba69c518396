"""Momentum and drift of a robot with its effects, column by column: ``tau = d/dt (A phi) - B phi``.

``A`` and ``B`` of the bodies are those of :mod:`dynid.dynamics.regressors`. An effect that is a rate, rotor inertia ``Ia a = d/dt (Ia v)``,
is a column of ``A``; friction and offsets ``s(q, v)`` are columns ``-s`` of ``B``.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dynid.arrays import Array, IntArray, freeze
from dynid.dynamics.closed_chains import gain_rate, tree_motion
from dynid.dynamics.inverse_dynamics import effect_signals, passive_columns, tree_effect_motion
from dynid.dynamics.joint_effects import effect_momentum
from dynid.dynamics.regressors import momentum_regressor
from dynid.model.effects.effect import Motion
from dynid.model.robot import Robot
from dynid.regression.channels import torque_channels


class MomentumColumns:
    """``A`` and ``B`` of all channels side by side, each over its own columns, and their effects."""

    def __init__(self, robot: Robot) -> None:
        self.robot, self.channels = robot, torque_channels(robot)
        n_inertial = robot.parameters.n_inertial
        self._n_dense = robot.n_dof * n_inertial
        self._ends = np.cumsum([channel.width for channel in self.channels])
        self.width = int(self._ends[-1])
        torque = np.repeat(np.arange(robot.n_dof), [channel.width for channel in self.channels])
        column = np.concatenate([channel.columns for channel in self.channels])
        inertial = np.flatnonzero(column < n_inertial)
        self._inertial: IntArray = freeze(inertial, np.int64)
        self._inertial_from: IntArray = freeze(torque[inertial] * n_inertial + column[inertial], np.int64)
        self._effect: IntArray = freeze(np.flatnonzero(column >= n_inertial), np.int64)
        self._signal: IntArray = freeze(column[self._effect] - n_inertial, np.int64)
        self._coefficient = freeze(robot.effect_incidence[torque[self._effect], self._signal])
        self._torque: IntArray = freeze(torque[self._effect], np.int64)
        still = np.zeros((1, len(robot.effect_joints)))
        self._is_rate = effect_momentum(robot, still[:, : robot.n_dof], still, Motion(still, still, still, None))[1]
        self._rubs = bool(robot.loops.rubbing and robot.effects)

    def momentum(self, q: Array, v: Array) -> Array:
        """``A(q, v)``, ``(samples, columns)``; linear in ``v``."""
        if self._rubs:
            return self.both(q, v, None)[0]
        return self._columns(momentum_regressor(self.robot, q, v)[0], self._momentum_signals(v))

    def drift(self, q: Array, v: Array, load: Array | None) -> Array:
        """``B(q, v)``, ``(samples, columns)``."""
        if self._rubs:
            return self.both(q, v, load)[1]
        return self._columns(momentum_regressor(self.robot, q, v)[1], self._drift_signals(q, v, load))

    def both(self, q: Array, v: Array, load: Array | None) -> tuple[Array, Array]:
        A, B = momentum_regressor(self.robot, q, v)
        if self._rubs:
            # With effects of passive joints: ``G^T s`` of their momentum in ``A``, ``dG/dt^T s`` of it and ``-G^T s``
            # of the rest in ``B``.
            robot = self.robot
            tree = tree_motion(robot, q, v, np.zeros_like(v))
            motion = tree_effect_motion(robot, tree)
            stored = effect_momentum(robot, q, v, motion)[0]
            rest = np.where(self._is_rate, 0.0, -effect_signals(robot, q, v, np.zeros_like(v), tree=tree))
            turning = replace(tree, G=gain_rate(robot, tree.position, v))
            first = self._columns(A, stored)
            first[:, self._effect] += passive_columns(robot, tree, stored)[:, self._torque, self._signal]
            second = self._columns(B, rest)
            carried = passive_columns(robot, turning, stored) + passive_columns(robot, tree, rest)
            second[:, self._effect] += carried[:, self._torque, self._signal]
            return first, second
        return self._columns(A, self._momentum_signals(v)), self._columns(B, self._drift_signals(q, v, load))

    def blocks(self, W: Array, tau: Array) -> list[Array]:
        """``[W tau]`` of every channel."""
        parts = np.split(W, self._ends[:-1], axis=1)
        return [np.asfortranarray(np.column_stack([part, tau[:, d]])) for d, part in enumerate(parts)]

    def _columns(self, inertial: Array, signals: Array | None) -> Array:
        out = np.empty((len(inertial), self.width))
        out[:, self._inertial] = inertial.reshape(len(inertial), self._n_dense)[:, self._inertial_from]
        if signals is not None:
            out[:, self._effect] = signals[:, self._signal] * self._coefficient
        return out

    def _momentum_signals(self, v: Array) -> Array | None:
        """``Ia a = d/dt (Ia v)``: velocity where an effect is a rate, nothing elsewhere."""
        if not self.robot.effects:
            return None
        return effect_momentum(self.robot, np.zeros_like(v), v)[0]

    def _drift_signals(self, q: Array, v: Array, load: Array | None) -> Array | None:
        if not self.robot.effects:
            return None
        return np.where(self._is_rate, 0.0, -effect_signals(self.robot, q, v, np.zeros_like(v), load))
