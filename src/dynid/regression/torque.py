"""The joint-torque regressor: ``tau = Y(q, v, a) phi``, for all samples at once.

Columns are those of ``robot.parameters``: ten per link, then the effects. Rows of a joint see only the links it carries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, check_finite, check_shape
from dynid.robot.effects import Motion
from dynid.robot.model import Robot


def torque_regressor(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, load: ArrayLike | None = None) -> Array:
    """``Y`` of every sample, ``(samples, torques, parameters)``; ``load`` is the transmitted torque, where effects use it."""
    q, v, a = checked_motion(robot, q, v, a)
    n_inertial = robot.parameters.n_inertial
    Y = np.zeros((len(q), robot.n_dof, len(robot.parameters)))
    target = np.tile(np.arange(n_inertial), (robot.n_dof, 1))
    fill_torque_rows(robot, q, v, a, target, Y.transpose(1, 2, 0))
    if robot.effects:
        Y[:, :, n_inertial:] = effect_signals(robot, q, v, a, load)[:, None, :] * robot.effect_incidence
    return Y


def inverse_dynamics(
    robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike, load: ArrayLike | None = None, *, effects: bool = True
) -> Array:
    """Torque of every sample with the robot's own parameters, ``(samples, torques)``; ``effects=False`` for rigid bodies only."""
    from dynid.regression import kernel

    q, v, a = checked_motion(robot, q, v, a)
    tau = np.empty((len(q), robot.n_dof))
    phi = np.ascontiguousarray(robot.parameters.inertials)
    compiled(kernel.inverse_dynamics_rows)(q, v, a, robot.gravity, tree_arrays(robot), phi, tau)
    if effects and robot.effects:
        values = robot.parameters.values[robot.parameters.n_inertial :]
        tau += (effect_signals(robot, q, v, a, load) * values) @ robot.effect_incidence.T
    return tau


def effect_signals(robot: Robot, q: Array, v: Array, a: Array, load: ArrayLike | None = None) -> Array:
    """Signals of all effect columns, ``(samples, effect columns)``."""
    first = robot.n_dof - len(robot.driven)
    carried = None if load is None else np.asarray(load, dtype=np.float64)[:, first:]
    motion = Motion(q[:, first + robot.floating :], v[:, first:], a[:, first:], carried)
    return np.hstack([effect.signals(motion) for effect in robot.effects])


def fill_torque_rows(robot: Robot, q: Array, v: Array, a: Array, target: IntArray, out: Array) -> None:
    """Inertial coefficients into ``out[torque, target[torque, parameter], sample]``; negative targets are left out."""
    from dynid.regression import kernel

    compiled(kernel.torque_rows)(q, v, a, robot.gravity, tree_arrays(robot), target, out)


def checked_motion(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> tuple[Array, Array, Array]:
    """The three arrays as C-contiguous floats of the robot's shape; one sample may be given without its sample axis."""
    arrays: list[Array] = []
    for name, values, width in (
        ("position", q, robot.n_position),
        ("velocity", v, robot.n_dof),
        ("acceleration", a, robot.n_dof),
    ):
        array = np.ascontiguousarray(np.atleast_2d(np.asarray(values, dtype=np.float64)))
        check_shape(name, array, (None if not arrays else len(arrays[0]), width))
        check_finite(name, array)
        arrays.append(array)
    return arrays[0], arrays[1], arrays[2]


def tree_arrays(robot: Robot) -> tuple[Any, ...]:
    """The kinematic tree as the flat tuple that the kernels take."""
    tree = robot.tree
    n = len(tree.parent)
    return (
        tree.parent,
        tree.dof_start,
        tree.dof_count,
        tree.rotation.reshape(n, 3, 9),
        tree.translation,
        tree.screw,
        tree.support_start,
        tree.support,
        tree.floating,
    )


def compiled(kernel: Any) -> Any:
    """The kernel itself, after saying on the log that its first use on this machine compiles it."""
    from dynid.regression.kernel import is_cached

    if not is_cached(kernel):
        import logging

        logging.getLogger("dynid").warning("compiling %s, once on this machine, a few seconds", kernel.py_func.__name__)
    return kernel
