"""The effects of a whole robot as arrays: gains from column signals to torques, stored energy, momentum, rotor inertia."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.model.effects.effect import Effect, Motion
from dynid.model.effects.wrapped import Coupled
from dynid.model.robot import Robot


def effect_gains(robot: Robot) -> list[tuple[Effect, Array]]:
    """Every effect with the matrix from its signals to the torques of the driven joints, ``(joints, columns)``."""
    gains: list[tuple[Effect, Array]] = []
    start = robot.parameters.n_inertial
    for effect in robot.effects:
        incidence = effect.incidence(len(robot.effect_joints))
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


def effect_energy(robot: Robot, q: Array, v: Array, motion: Motion | None = None) -> tuple[Array, BoolArray]:
    """Energy per unit of every effect column, ``(samples, columns)``, and which columns have one; zero where there is none.

    Differences of it are the exact work of rotor inertia, offsets and springs, without an integral over samples. ``motion`` is that
    of all joints that effects act on, where passive ones rub.
    """
    return _stored(robot, q, v, lambda effect, own: effect.energy_signals(own), motion)


def effect_momentum(robot: Robot, q: Array, v: Array, motion: Motion | None = None) -> tuple[Array, BoolArray]:
    """Momentum per unit of every effect column, ``(samples, columns)``, and which columns are its rate; zero elsewhere.

    ``motion`` is that of all joints that effects act on, where passive ones rub.
    """
    return _stored(robot, q, v, lambda effect, own: effect.momentum_signals(own), motion)


def _stored(
    robot: Robot,
    q: Array,
    v: Array,
    quantity: Callable[[Effect, Motion], Array | None],
    motion: Motion | None = None,
) -> tuple[Array, BoolArray]:
    motion = driven_motion(robot, q, v, np.zeros_like(v)) if motion is None else motion
    values = np.zeros((len(q), robot.effect_incidence.shape[1]))
    has = np.zeros(values.shape[1], dtype=bool)
    column = 0
    for effect in robot.effects:
        first, column = column, column + effect.incidence(len(robot.effect_joints)).shape[1]
        own = quantity(effect, motion)
        if own is not None:
            values[:, first:column], has[first:column] = own, True
    return values, has


def is_rotor(effect: Effect) -> bool:
    """Whether an effect is inertia: a rate of a momentum, which the mass matrix holds."""
    still = np.zeros((1, 1 if not isinstance(effect, Coupled) else len(effect.coupling)))
    return effect.momentum_signals(Motion(still, still, still, still)) is not None


def coupled_rotors(robot: Robot) -> Array:
    """The part of :func:`rotor_matrix` that is not the rotor inertia of joints one by one."""
    values = zip(robot.parameters.columns, robot.parameters.values.tolist(), strict=True)
    of_joint = {column.joint: value for column, value in values if column.symbol == "Ia"}
    own = np.array([of_joint.get(name, 0.0) for name in robot.dof_names])
    rest = rotor_matrix(robot) - np.diag(own)
    rest[np.abs(rest) <= 1e-12 * max(float(own.max(initial=0.0)), 1e-300)] = 0.0
    return rest


def rotor_matrix(robot: Robot) -> Array:
    """What rotors of driven joints add to the inertia matrix, ``(dof, dof)``: the momentum of effects at unit velocities."""
    n, n_effects = len(robot.driven), len(robot.effect_joints)  # passive joints that rub stand behind the driven ones
    still = np.zeros((n, n_effects))
    added = np.zeros((robot.n_dof, robot.n_dof))
    for effect, gain in effect_gains(robot):
        momentum = effect.momentum_signals(Motion(still, np.eye(n_effects)[:n], still, still))
        if momentum is not None:
            added[np.ix_(robot.driven, robot.driven)] += (gain @ momentum.T)[:n]
    return added
