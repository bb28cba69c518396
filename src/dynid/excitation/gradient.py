"""Derivatives of regressors by the motion, contracted with weights: what a gradient-based design needs.

For ``g = sum_{s, d, c} G[s, d, c] Y[s, d, c](q, v, a)`` these functions give ``dg/dq``, ``dg/dv``, ``dg/da`` of every sample, exactly:
the rigid bodies by the reverse sweep of :mod:`dynid.excitation.adjoint_kernel`, joint effects by their own derivatives. Closed robots
are differentiated numerically, see :func:`_differences`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_shape, frozen_view
from dynid.dynamics.inverse_dynamics import checked_motion
from dynid.dynamics.regressors import energy_regressor, torque_regressor
from dynid.errors import InputError
from dynid.model.effects.effect import Effect, Motion
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction

_STEP = 5e-6


def torque_gradient(
    robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, weights: ArrayLike
) -> tuple[Array, Array, Array]:
    """``dg/dq, dg/dv, dg/da`` for weights of the shape of :func:`dynid.torque_regressor`, effect columns included."""
    from dynid.excitation import adjoint_kernel

    refuse_floating(robot)
    q, v, a = checked_motion(robot, q, v, a)
    G = np.ascontiguousarray(weights, dtype=np.float64)
    check_shape("weights", G, (len(q), robot.n_dof, len(robot.parameters)))
    if robot.loops:
        by = _differences(lambda *motion: np.einsum("sdc,sdc->s", G, torque_regressor(robot, *motion)), (q, v, a))
        return by[0], by[1], by[2]
    q_bar, v_bar, a_bar = (np.empty(v.shape) for _ in range(3))
    adjoint_kernel.torque_adjoint(q, v, a, robot.gravity, tree_tuple(robot), frozen_view(G), q_bar, v_bar, a_bar)
    motion, column = Motion(q, v, a), robot.parameters.n_inertial
    for effect in robot.effects:
        C = effect.incidence(robot.n_joints)
        first, column = column, column + C.shape[1]
        acts, signal = np.nonzero(C.T)[::-1]
        alone = len(signal) == C.shape[1]  # every signal acts on one joint
        per_signal = G[:, acts, first + signal] * C[acts, signal] if alone else (G[:, :, first:column] * C).sum(axis=1)
        for bar, extra in zip((q_bar, v_bar, a_bar), effect_gradient(effect, motion, per_signal), strict=True):
            if extra is not None:
                bar += extra
    return q_bar, v_bar, a_bar


def inverse_dynamics_gradient(
    robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, weights: ArrayLike
) -> tuple[Array, Array, Array]:
    """The same of ``sum_{s, d} weights[s, d] tau[s, d]``, the torque with the robot's own parameters."""
    per_torque = np.asarray(weights, dtype=np.float64)
    return torque_gradient(robot, q, v, a, per_torque[:, :, None] * robot.parameters.values)


def by_parameters(base: BaseReduction, slope: Array) -> Array:
    """``df/dY``, ``(rows, parameters)``, of a function of the base regressor ``W = Y lift`` with the derivative ``df/dW``."""
    if base.independent is None:
        return np.asarray(slope @ base.lift.T)
    G = np.zeros((len(slope), base.n_parameters))
    G[:, base.independent] = slope
    return G


def energy_gradient(robot: Robot, q: ArrayLike, v: ArrayLike, weights: ArrayLike) -> tuple[Array, Array]:
    """``dg/dq, dg/dv`` of ``g = sum_{s, c} weights[s, c] h[s, c]``, ``h`` that of :func:`dynid.energy_regressor`."""
    return _energy_gradient(robot, q, v, weights, robot.gravity)


def point_speeds(robot: Robot, q: Array, v: Array, body: int, point: ArrayLike) -> tuple[Array, Array]:
    """Squared speed of a point fixed to a body, and the weights that make it an energy: twice a unit mass's kinetic one."""
    from dynid.dynamics.regressors import kinetic_and_potential

    weights = np.zeros(robot.parameters.n_inertial)
    weights[10 * body : 10 * body + 10] = 2.0 * point_mass(point)
    kinetic, _ = kinetic_and_potential(robot, q, v)
    return kinetic @ weights, weights


def point_speed_gradient(robot: Robot, q: Array, v: Array, weights: Array) -> tuple[Array, Array]:
    """``d/dq, d/dv`` of a weighted sum of squared speeds, weights ``(samples, parameters)`` built on :func:`point_speeds`."""
    return _energy_gradient(robot, q, v, weights, np.zeros(3))


def point_place_gradient(robot: Robot, q: Array, body: int, point: ArrayLike, weights: Array) -> Array:
    """``d/dq`` of ``sum_{s, k} weights[s, k] p_k``, the places of a point of a body: each is a unit mass's height along its axis."""
    by_q = np.zeros_like(q)
    for axis in range(3):
        masses = np.zeros((len(q), robot.parameters.n_inertial))
        masses[:, 10 * body : 10 * body + 10] = weights[:, axis : axis + 1] * point_mass(point)
        by_q += _energy_gradient(robot, q, np.zeros_like(q), masses, -np.eye(3)[axis])[0]
    return by_q


def point_mass(point: ArrayLike) -> Array:
    """Ten parameters of a unit mass at a point of a body."""
    x, y, z = np.asarray(point, dtype=np.float64)
    return np.array([1.0, x, y, z, y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y])


def refuse_floating(robot: Robot) -> None:
    """Excitation is motion of driven joints."""
    if robot.floating:
        raise InputError(f"robot '{robot.name}' floats; an exciting motion is defined for driven joints on a fixed base")


def tree_tuple(robot: Robot) -> tuple[Any, ...]:
    """The tree as the reverse sweep takes it."""
    tree = robot.tree
    return tree.parent, tree.rotation, tree.translation, tree.screw, tree.support_start, tree.support


def _energy_gradient(robot: Robot, q: ArrayLike, v: ArrayLike, weights: ArrayLike, gravity: Array) -> tuple[Array, Array]:
    from dynid.excitation import adjoint_kernel

    refuse_floating(robot)
    q, v, _ = checked_motion(robot, q, v, v)
    G = np.ascontiguousarray(weights, dtype=np.float64)
    check_shape("weights", G, (len(q), robot.parameters.n_inertial))
    if robot.loops:
        fallen = robot.with_gravity(gravity)
        by = _differences(lambda q, v: np.einsum("sc,sc->s", G, energy_regressor(fallen, q, v)), (q, v))
        return by[0], by[1]
    q_bar, v_bar = np.empty(v.shape), np.empty(v.shape)
    adjoint_kernel.energy_adjoint(q, v, frozen_view(gravity), tree_tuple(robot), frozen_view(G), q_bar, v_bar)
    return q_bar, v_bar


def _differences(value: Callable[..., Array], motion: tuple[Array, ...]) -> list[Array]:
    """Derivatives of a value per sample by every number of that sample's motion, by central differences.

    A row of a closed robot depends on its own sample alone, so all samples are moved at once; the step is near the cube root of
    rounding, which leaves about ten digits.
    """
    slopes = []
    for k, part in enumerate(motion):
        slope = np.empty(part.shape)
        for j in range(part.shape[1]):
            step = _STEP * max(1.0, float(np.abs(part[:, j]).max(initial=0.0)))
            ends = []
            for sign in (1.0, -1.0):
                moved = part.copy()
                moved[:, j] += sign * step
                ends.append(value(*motion[:k], moved, *motion[k + 1 :]))
            slope[:, j] = (ends[0] - ends[1]) / (2.0 * step)
        slopes.append(slope)
    return slopes


def effect_gradient(effect: Effect, motion: Motion, weights: Array) -> tuple[Array | None, Array | None, Array | None]:
    """How ``sum weights signals`` of an effect changes with the joints' position, velocity and acceleration."""
    if effect.loaded:
        raise InputError(
            f"effect '{effect.name}' depends on the torque that joints transmit, which is not known before the robot is; "
            "design with viscous, coulomb, offset and armature: their motion serves it too"
        )
    return effect.motion_gradient(motion, weights)
