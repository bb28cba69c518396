"""Derivatives of regressors by the motion, contracted with weights: what a gradient-based design needs.

For ``g = sum_{s, d, c} G[s, d, c] Y[s, d, c](q, v, a)`` these functions give ``dg/dq``, ``dg/dv``, ``dg/da`` of every sample, exactly:
the rigid bodies by the reverse sweep of :mod:`dynid.excitation.adjoint_kernel`, joint effects by their own derivatives.
"""

from __future__ import annotations

from dataclasses import replace
from functools import singledispatch
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_shape, frozen_view
from dynid.errors import InputError
from dynid.regression.torque import checked_motion
from dynid.robot.effects import (
    Armature,
    AsymmetricCoulomb,
    Coulomb,
    Coupled,
    Effect,
    Motion,
    Offset,
    Sigmoid,
    SmoothCoulomb,
    Stribeck,
    Viscous,
    ViscousPolynomial,
)
from dynid.robot.effects.sign import SignEffect
from dynid.robot.model import Robot


def torque_gradient(
    robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, weights: ArrayLike
) -> tuple[Array, Array, Array]:
    """``dg/dq, dg/dv, dg/da`` for weights of the shape of :func:`dynid.torque_regressor`, effect columns included."""
    from dynid.excitation import adjoint_kernel

    refuse_floating(robot)
    q, v, a = checked_motion(robot, q, v, a)
    G = np.ascontiguousarray(weights, dtype=np.float64)
    check_shape("weights", G, (len(q), robot.n_dof, len(robot.parameters)))
    q_bar, v_bar, a_bar = (np.empty(v.shape) for _ in range(3))
    adjoint_kernel.torque_adjoint(q, v, a, robot.gravity, tree_tuple(robot), frozen_view(G), q_bar, v_bar, a_bar)
    if robot.effects:
        _add_effects(robot, q, v, a, G, v_bar, a_bar)
    return q_bar, v_bar, a_bar


def inverse_dynamics_gradient(
    robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, weights: ArrayLike
) -> tuple[Array, Array, Array]:
    """The same of ``sum_{s, d} weights[s, d] tau[s, d]``, the torque with the robot's own parameters."""
    per_torque = np.asarray(weights, dtype=np.float64)
    return torque_gradient(robot, q, v, a, per_torque[:, :, None] * robot.parameters.values)


def energy_gradient(robot: Robot, q: ArrayLike, v: ArrayLike, weights: ArrayLike) -> tuple[Array, Array]:
    """``dg/dq, dg/dv`` of ``g = sum_{s, c} weights[s, c] h[s, c]``, ``h`` that of :func:`dynid.energy_regressor`."""
    return _energy_gradient(robot, q, v, weights, robot.gravity)


def point_speeds(robot: Robot, q: Array, v: Array, body: int, point: ArrayLike) -> tuple[Array, Array]:
    """Squared speed of a point fixed to a body, and the weights that make it an energy: twice a unit mass's kinetic one."""
    from dynid.regression.energy import kinetic_and_potential

    weights = np.zeros(robot.parameters.n_inertial)
    weights[10 * body : 10 * body + 10] = 2.0 * point_mass(point)
    kinetic, _ = kinetic_and_potential(robot, q, v)
    return kinetic @ weights, weights


def point_speed_gradient(robot: Robot, q: Array, v: Array, weights: Array) -> tuple[Array, Array]:
    """``d/dq, d/dv`` of a weighted sum of squared speeds, weights ``(samples, parameters)`` built on :func:`point_speeds`."""
    return _energy_gradient(robot, q, v, weights, np.zeros(3))


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
    q_bar, v_bar = np.empty(v.shape), np.empty(v.shape)
    adjoint_kernel.energy_adjoint(q, v, frozen_view(gravity), tree_tuple(robot), frozen_view(G), q_bar, v_bar)
    return q_bar, v_bar


def _add_effects(robot: Robot, q: Array, v: Array, a: Array, G: Array, v_bar: Array, a_bar: Array) -> None:
    motion = Motion(q, v, a)
    column = robot.parameters.n_inertial
    for effect in robot.effects:
        C = effect.incidence(robot.n_joints)
        first, column = column, column + C.shape[1]
        acts, signal = np.nonzero(C.T)[::-1]
        alone = len(signal) == C.shape[1]  # every signal acts on one joint
        weights = G[:, acts, first + signal] * C[acts, signal] if alone else (G[:, :, first:column] * C).sum(axis=1)
        for bar, extra in zip((v_bar, a_bar), effect_gradient(effect, motion, weights), strict=True):
            if extra is not None:
                bar += extra


Slopes: TypeAlias = tuple[Array | None, Array | None]
"""By velocity and by acceleration; None for not at all. No effect depends on position."""


def effect_gradient(effect: Effect, motion: Motion, weights: Array) -> Slopes:
    """How ``sum weights signals`` of an effect changes with the joints' velocities and accelerations, ``(samples, joints)`` each."""
    if effect.loaded:
        raise InputError(
            f"effect '{effect.name}' depends on the torque that joints transmit, which is not known before the robot is; design with "
            "viscous, coulomb, offset and armature: their motion serves it too"
        )
    n = motion.velocity.shape[1]
    if isinstance(effect, Coupled):  # signals of motors, whose speeds are B v
        B = effect.B
        inner = Motion(motion.position @ B.T, motion.velocity @ B.T, motion.acceleration @ B.T)
        motor = np.abs(effect.effect.incidence(n)).argmax(axis=0) + 1
        chosen = np.arange(1, n + 1) if effect.motors is None else np.asarray(effect.motors)
        full = np.zeros((len(weights), len(motor)))
        full[:, np.isin(motor, chosen)] = weights
        by_velocity, by_acceleration = effect_gradient(effect.effect, inner, full)
        return (
            None if by_velocity is None else by_velocity @ B,
            None if by_acceleration is None else by_acceleration @ B,
        )

    def folded(slope: Array | None) -> Array | None:  # columns of one joint stand a whole set of joints apart
        return None if slope is None else (weights * slope).reshape(len(weights), -1, n).sum(axis=1)

    by_velocity, by_acceleration = signal_slopes(effect, motion)
    return folded(by_velocity), folded(by_acceleration)


@singledispatch
def signal_slopes(effect: Effect, motion: Motion) -> Slopes:
    """How each signal, ``(samples, columns)``, changes with the velocity and the acceleration of its own joint."""
    raise InputError(
        f"effect '{effect.name}' has no derivative for the design of a motion; design with viscous, coulomb, offset and "
        "armature: their motion serves other friction models too"
    )


@signal_slopes.register
def _(effect: Viscous, motion: Motion) -> Slopes:
    return np.ones_like(motion.velocity), None


@signal_slopes.register
def _(effect: Armature, motion: Motion) -> Slopes:
    return None, np.ones_like(motion.acceleration)


@signal_slopes.register
def _(effect: Offset, motion: Motion) -> Slopes:
    return None, None


@signal_slopes.register
def _(effect: Coulomb, motion: Motion) -> Slopes:
    """That of the smooth sign; a pure sign is flat wherever it has a derivative."""
    width = np.asarray(effect.smooth_width)
    if not np.any(width > 0.0):
        return None, None
    scale = np.where(width > 0.0, width, 1.0)
    slope = np.where(width > 0.0, (1.0 - np.tanh(motion.velocity / scale) ** 2) / scale, 0.0)
    return np.where(np.abs(motion.velocity) < np.asarray(effect.dead_zone), 0.0, slope), None


@signal_slopes.register
def _(effect: SmoothCoulomb, motion: Motion) -> Slopes:
    return _sign_slopes(effect, motion)


@signal_slopes.register
def _(effect: AsymmetricCoulomb, motion: Motion) -> Slopes:
    sign = effect.sign(motion)
    by_velocity, by_acceleration = _sign_slopes(effect, motion)
    return (
        np.hstack([np.where(sign > 0.0, by_velocity, 0.0), np.where(sign < 0.0, by_velocity, 0.0)]),
        np.hstack([np.where(sign > 0.0, by_acceleration, 0.0), np.where(sign < 0.0, by_acceleration, 0.0)]),
    )


@signal_slopes.register
def _(effect: ViscousPolynomial, motion: Motion) -> Slopes:
    return np.hstack([power * np.abs(motion.velocity) ** (power - 1) for power in effect.powers]), None


@signal_slopes.register
def _(effect: Stribeck, motion: Motion) -> Slopes:
    """``fade' sign + fade sign'``, with ``y = (|v| / vs)^n`` and ``fade = 1 / (1 + y)`` or ``exp(-y)``."""
    v, speed = motion.velocity, np.asarray(effect.stribeck_speed)
    n = np.asarray(effect.stribeck_exponent)
    y = (np.abs(v) / speed) ** n
    fade = 1.0 / (1.0 + y) if effect.form == "rational" else np.exp(-y)
    by_y = -(fade**2) if effect.form == "rational" else -fade
    y_by_v = np.where(v == 0.0, 0.0, n * y / np.where(v == 0.0, 1.0, v))
    by_velocity, by_acceleration = _sign_slopes(effect, motion)
    return by_y * y_by_v * effect.sign(motion) + fade * by_velocity, fade * by_acceleration


@signal_slopes.register
def _(effect: Sigmoid, motion: Motion) -> Slopes:
    slope, shift = np.asarray(effect.slope), np.asarray(effect.shift)
    half = 0.5 * slope * (motion.velocity + shift)
    return 0.25 * slope * (1.0 - np.tanh(half) ** 2), None


def _sign_slopes(effect: SignEffect, motion: Motion) -> tuple[Array, Array]:
    """Of ``tanh(v / W)``, ``W^2 = width^2 + (time a)^2``; zero where the sign is sharp or dead."""
    v, a = motion.velocity, motion.acceleration
    width, time = np.asarray(effect.smooth_width), np.asarray(effect.smooth_time_s)
    W = np.hypot(np.broadcast_to(width, v.shape), time * a)
    live = (W > 0.0) & (np.abs(v) >= np.asarray(effect.dead_zone))
    W = np.where(W > 0.0, W, 1.0)
    bell = np.where(live, 1.0 - np.tanh(v / W) ** 2, 0.0)
    return bell / W, -bell * v * time**2 * a / W**3


def smooth_effect(effect: Effect, widths: Array) -> Effect:
    """The same effect with a sign that has a derivative, as wide as given where it was sharp."""
    if isinstance(effect, Coupled):
        return replace(effect, effect=smooth_effect(effect.effect, np.full(len(widths), widths.mean())))
    if isinstance(effect, Coulomb | SignEffect) and not np.any(np.asarray(effect.smooth_width) > 0.0):
        return replace(effect, smooth_width=tuple(widths.tolist()), dead_zone=0.0)
    return effect
