"""The effects of a whole robot as arrays: gains from column signals to torques, stored energy, momentum, rotor inertia."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.robot.effects import Effect, Motion
from dynid.robot.model import Robot


def effect_gains(robot: Robot) -> list[tuple[Effect, Array]]:
    """Every effect with the matrix from its signals to the torques of the driven joints, ``(joints, columns)``."""
    gains: list[tuple[Effect, Array]] = []
    start = robot.parameters.n_inertial
    for effect in robot.effects:
        incidence = effect.incidence(len(robot.driven))
        gains.append((effect, incidence * robot.parameters.values[start : start + incidence.shape[1]]))
        start += incidence.shape[1]
    return gains


def driven_motion(
    robot: Robot, q: Array, v: Array, a: Array, load: Array | None = None, travel: Array | None = None
) -> Motion:
    """Motion of the joints that effects act on, out of that of the whole robot."""
    first = robot.n_dof - len(robot.driven)
    load, travel = (None if extra is None else extra[:, first:] for extra in (load, travel))
    return Motion(q[:, first + robot.floating :], v[:, first:], a[:, first:], load, travel)


def effect_energy(robot: Robot, q: Array, v: Array) -> tuple[Array, BoolArray]:
    """Energy per unit of every effect column, ``(samples, columns)``, and which columns have one; zero where there is none.

    Differences of it are the exact work of rotor inertia, offsets and springs, without an integral over samples.
    """
    return _stored(robot, q, v, lambda effect, motion: effect.energy_signals(motion))


def effect_momentum(robot: Robot, q: Array, v: Array) -> tuple[Array, BoolArray]:
    """Momentum per unit of every effect column, ``(samples, columns)``, and which columns are its rate; zero elsewhere."""
    return _stored(robot, q, v, lambda effect, motion: effect.momentum_signals(motion))


def _stored(robot: Robot, q: Array, v: Array, quantity: Callable[[Effect, Motion], Array | None]) -> tuple[Array, BoolArray]:
    motion = driven_motion(robot, q, v, np.zeros_like(v))
    values = np.zeros((len(q), robot.effect_incidence.shape[1]))
    has = np.zeros(values.shape[1], dtype=bool)
    column = 0
    for effect in robot.effects:
        first, column = column, column + effect.incidence(len(robot.driven)).shape[1]
        own = quantity(effect, motion)
        if own is not None:
            values[:, first:column], has[first:column] = own, True
    return values, has


def rotor_matrix(robot: Robot) -> Array:
    """What rotors add to the inertia matrix, ``(dof, dof)``: the momentum of effects at unit velocities."""
    n = len(robot.driven)
    still = np.zeros((n, n))
    added = np.zeros((robot.n_dof, robot.n_dof))
    for effect, gain in effect_gains(robot):
        momentum = effect.momentum_signals(Motion(still, np.eye(n), still, still))
        if momentum is not None:
            added[np.ix_(robot.driven, robot.driven)] += gain @ momentum.T
    return added
