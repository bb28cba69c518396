"""The joint-torque regressor: ``tau = Y(q, v, a) phi``, for all samples at once.

Columns are those of ``robot.parameters``: ten per link, then the effects. Rows of a joint see only the links it carries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, check_finite, check_shape, freeze, frozen_view
from dynid.errors import InputError
from dynid.regression.closed_motion import TreeMotion, tree_motion
from dynid.regression.structure import structure_of
from dynid.robot.effects import Motion
from dynid.robot.model import Robot
from dynid.robot.rotors import driven_motion

_SWEEP_NUMBERS = 250_000
"""Numbers per sweep over a whole regressor: two megabytes stay in the cache from the first column to the last."""

_met: set[str] = set()
"""Kernels that were used in this process, so that their compilation is not announced again."""


def torque_regressor(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    load: ArrayLike | None = None,
    *,
    travel: Array | None = None,
    reuse: Array | None = None,
) -> Array:
    """``Y`` of every sample, ``(samples, torques, parameters)``, columns named by ``robot.parameters.names``.

    For a closed robot ``q``, ``v``, ``a`` and the torques are those of its actuated joints, and ``Y = G^T Y_tree``.

    Args:
        robot: the robot, with its effects.
        q: positions, ``(samples, joints)``.
        v: velocities.
        a: accelerations.
        load: transmitted torque, for effects that depend on it.
        travel: signed distance since the last reversal, for effects that remember it; without it joints count as sliding.
        reuse: an array that an earlier call for the same robot and number of samples returned: it is filled again, and its
            structural zeros, most of it for a robot with many branches, are left as they are.

    Examples:
        >>> import dynid, numpy as np
        >>> robot, q = dynid.demo_robot(), np.zeros((5, 7))
        >>> dynid.torque_regressor(robot, q, q, q).shape == (5, 7, len(robot.parameters))
        True
    """
    from dynid.regression import kernel

    q, v, a = checked_motion(robot, q, v, a)
    shape = (len(q), robot.n_dof, len(robot.parameters))
    Y = np.zeros(shape) if reuse is None else _reusable(reuse, shape)
    targets, step = _dense_targets(robot), shape[1] * shape[2]
    tree = tree_motion(robot, q, v, a) if robot.loops else None
    signals = frozen_view(effect_signals(robot, q, v, a, load, tree, travel=travel)) if robot.effects else None
    acts, effect = (freeze(index, np.int64) for index in np.nonzero(robot.effect_incidence))
    places = freeze(acts * shape[2] + robot.parameters.n_inertial + effect, np.int64)
    coefficients = freeze(robot.effect_incidence[acts, effect])
    sweep = kernel.LANES * max(1, _SWEEP_NUMBERS // (kernel.LANES * step))
    for start in range(0, len(q), sweep):
        part = slice(start, start + sweep)
        flat = Y[part].reshape(-1)
        if tree is None:
            fill_torque_rows(robot, q[part], v[part], a[part], targets, step, flat)
        else:
            fill_projected_rows(robot, tree, part, targets, step, flat)
        if signals is not None:
            compiled(kernel.signal_rows)(signals[part], effect, coefficients, places, step, flat)
    if tree is not None and signals is not None and robot.loops.rubbing:
        Y[:, :, robot.parameters.n_inertial :] += passive_columns(robot, tree, signals)
    return Y


def inverse_dynamics(
    robot: Robot,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    load: ArrayLike | None = None,
    *,
    effects: bool = True,
    travel: Array | None = None,
) -> Array:
    """Torque with the robot's parameters, ``(samples, torques)``.

    Args:
        robot: the robot, with its effects and parameters.
        q: positions, ``(samples, joints)``.
        v: velocities.
        a: accelerations.
        load: transmitted torque, for effects that depend on it.
        travel: signed distance since the last reversal, for effects that remember it; without it joints count as sliding.
        effects: whether friction and rotor inertia are included.

    Examples:
        >>> import dynid, numpy as np
        >>> robot, q = dynid.demo_robot(), np.full((1, 7), 0.5)
        >>> dynid.inverse_dynamics(robot, q, 0 * q, 0 * q, effects=False).shape
        (1, 7)
    """
    from dynid.regression import kernel

    q, v, a = checked_motion(robot, q, v, a)
    phi = frozen_view(np.ascontiguousarray(present_inertials(robot)))
    tree = tree_motion(robot, q, v, a) if robot.loops else None
    if tree is None:
        tau = np.empty((len(q), robot.n_dof))
        compiled(kernel.inverse_dynamics_rows)(q, v, a, robot.gravity, tree_arrays(robot), phi, tau)
    else:
        of_tree = np.empty((len(q), robot.n_bodies))
        motion = (frozen_view(part) for part in (tree.position, tree.velocity, tree.acceleration))
        compiled(kernel.inverse_dynamics_rows)(*motion, robot.gravity, tree_arrays(robot), phi, of_tree)
        tau = np.matmul(of_tree[:, None], tree.G)[:, 0]
    if effects and robot.effects:
        if load is None and any(effect.loaded for effect in robot.effects):
            # what the joints transmit: the torque of everything but friction
            frictionless = robot.with_effects([effect for effect in robot.effects if not effect.is_friction])
            load = inverse_dynamics(frictionless, q, v, a)
        values = robot.parameters.values[robot.parameters.n_inertial :]
        signals = effect_signals(robot, q, v, a, load, tree, travel=travel)
        tau += (signals * values) @ robot.effect_incidence.T
        if tree is not None and robot.loops.rubbing:
            tau += passive_columns(robot, tree, signals) @ values
    return tau


def effect_signals(
    robot: Robot,
    q: Array,
    v: Array,
    a: Array,
    load: ArrayLike | None = None,
    tree: TreeMotion | None = None,
    *,
    travel: Array | None = None,
) -> Array:
    """Signals of all effect columns, ``(samples, effect columns)``; ``tree`` is the motion of a closed robot where it is known."""
    carried = None if load is None else np.asarray(load, dtype=np.float64)
    if robot.loops.rubbing:
        tree = tree_motion(robot, *checked_motion(robot, q, v, a)) if tree is None else tree
        motion = tree_effect_motion(robot, tree, carried)
    else:
        motion = driven_motion(robot, q, v, a, carried, travel)
    # in rows, so that kernels are compiled for one layout only: hstack keeps columns where all its parts have them
    return np.ascontiguousarray(np.hstack([effect.signals(motion) for effect in robot.effects]))


def fill_torque_rows(robot: Robot, q: Array, v: Array, a: Array, targets: IntArray, step: int, out: Array) -> None:
    """Inertial coefficients of motion that was checked into a flat array.

    ``targets`` names a place for each of the ten parameters of every body and torque in ``robot.tree``'s support list, for
    the first sample; each further sample is ``step`` away. Negative targets are left out.
    """
    from dynid.regression import kernel

    compiled(kernel.torque_rows)(q, v, a, robot.gravity, tree_arrays(robot), targets, step, out)


def fill_projected_rows(robot: Robot, tree: TreeMotion, part: slice, targets: IntArray, step: int, out: Array) -> None:
    """Inertial coefficients of a closed robot's actuated torques into a flat array.

    ``targets`` names a place for the ten parameters of every body and actuated torque, bodies first.
    """
    from dynid.regression import kernel

    motion = (frozen_view(values[part]) for values in (tree.position, tree.velocity, tree.acceleration, tree.G))
    compiled(kernel.projected_torque_rows)(*motion, robot.gravity, tree_arrays(robot), targets, step, out)


def passive_columns(robot: Robot, tree: TreeMotion, signals: Array) -> Array:
    """What effects of passive joints add to the actuated torques, ``(samples, torques, effect columns)``: ``G^T C s``."""
    rubbing = list(robot.effect_joints[len(robot.driven) :])
    return np.asarray(np.einsum("srk,rc,sc->skc", tree.G[:, rubbing], robot.passive_incidence, signals, optimize=True))


def tree_effect_motion(robot: Robot, tree: TreeMotion, load: Array | None) -> Motion:
    """Motion of the joints that effects of a closed robot act on, passive ones that rub included."""
    if any(effect.loaded for effect in robot.effects):
        raise InputError(
            f"friction of robot '{robot.name}' depends on the load of its joints, which is not known of passive joints "
            f"{', '.join(robot.loops.rubbing)}; choose friction of velocity, or leave it off these joints"
        )
    own = list(robot.effect_joints)
    return Motion(tree.position[:, own], tree.velocity[:, own], tree.acceleration[:, own], None)


def present_inertials(robot: Robot) -> Array:
    """Ten parameters of every body, those that the description leaves out at zero."""
    values = robot.parameters.inertials
    if not robot.absent:
        return values
    rows = values.copy()
    rows.reshape(-1)[absent_columns(robot)] = 0.0
    return rows


def absent_columns(robot: Robot) -> IntArray:
    """Columns that are no parameters of this robot."""
    return structure_of(robot).once(_find_absent)


def _find_absent(robot: Robot) -> IntArray:
    return freeze([robot.parameters.index(name) for name in robot.absent], np.int64)


def support_pairs(robot: Robot) -> tuple[IntArray, IntArray]:
    """Torque and body of every entry of the support list; the body's parameters enter that torque.

    For a closed robot every body with every actuated joint, bodies first.
    """
    tree = robot.tree
    if robot.loops:
        torque, body = np.tile(np.arange(robot.n_dof), robot.n_bodies), np.repeat(np.arange(robot.n_bodies), robot.n_dof)
        return freeze(torque, np.int64), freeze(body, np.int64)
    return tree.support, freeze(np.repeat(np.arange(len(tree.parent)), np.diff(tree.support_start)), np.int64)


def checked_motion(robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> tuple[Array, Array, Array]:
    """The three arrays, read-only and C-contiguous, in the robot's shape; one sample may come without its sample axis."""
    arrays: list[Array] = []
    for name, values, width in (
        ("position", q, robot.n_position),
        ("velocity", v, robot.n_dof),
        ("acceleration", a, robot.n_dof),
    ):
        array = np.ascontiguousarray(np.atleast_2d(np.asarray(values, dtype=np.float64)))
        check_shape(name, array, (None if not arrays else len(arrays[0]), width))
        check_finite(name, array)
        arrays.append(frozen_view(array))  # the kernels are compiled for read-only motion
    return arrays[0], arrays[1], arrays[2]


def tree_arrays(robot: Robot) -> tuple[Any, ...]:
    """The kinematic tree as the kernels take it."""
    return structure_of(robot).once(_find_tree_arrays)


def _find_tree_arrays(robot: Robot) -> tuple[Any, ...]:
    from dynid.regression import kernel

    return kernel.tree_arrays(robot.tree)


def compiled(kernel: Any) -> Any:
    """The kernel itself, after saying on the log that its first use on this machine compiles it."""
    name = kernel.py_func.__name__
    if name not in _met:
        from dynid.adapters.numba import is_cached

        if not is_cached(kernel):
            import logging

            logging.getLogger("dynid").warning("compiling %s, once on this machine, a few seconds", name)
        _met.add(name)
    return kernel


def _dense_targets(robot: Robot) -> IntArray:
    """Places of all coefficients in one sample's ``(torques, parameters)``."""
    torque, body = support_pairs(robot)
    places = (torque * len(robot.parameters) + 10 * body)[:, None] + np.arange(10)
    absent = np.isin(10 * body[:, None] + np.arange(10), absent_columns(robot))
    return freeze(np.where(absent, -1, places), np.int64)


def _reusable(array: Array, shape: tuple[int, ...]) -> Array:
    check_shape("array to reuse", array, shape)
    if array.dtype != np.float64 or not (array.flags.c_contiguous and array.flags.writeable):
        raise InputError(
            f"array to reuse is {array.dtype} with strides {array.strides}, expected a C-ordered float64 array to write to"
        )
    return array
