"""Torque of a motion, ``tau = Y(q, v, a) phi``, for all samples at once, and what rows of it are made from.

Motion is checked here once, before kernels see it. Effects add their signals; friction that grows with the transmitted torque takes as
its load what the joints transmit, which is neither friction nor the inertia of rotors before the gears. Random states excite
everything that a robot's equations can show.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, check_finite, check_shape, freeze, frozen_view
from dynid.dynamics.closed_chains import TreeMotion, feasible_positions, tree_motion
from dynid.dynamics.joint_effects import driven_motion, is_rotor
from dynid.dynamics.structure import structure_of
from dynid.errors import InputError
from dynid.model.effects.effect import Motion
from dynid.model.robot import Robot
from dynid.signals.samples import Samples


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
        travel: signed distance since the last reversal and ways since those before, ``(samples, joints, reversals)``, for effects that
            remember them; without it joints count as sliding.
        effects: whether friction and rotor inertia are included.

    Returns:
        torque ``(samples, torques)``, N m or N.

    Examples:
        >>> import dynid, numpy as np
        >>> robot, q = dynid.demo_robot(), np.full((1, 7), 0.5)
        >>> dynid.inverse_dynamics(robot, q, 0 * q, 0 * q, effects=False).shape
        (1, 7)
    """
    from dynid.dynamics import kernels as kernel

    q, v, a = checked_motion(robot, q, v, a)
    phi = frozen_view(np.ascontiguousarray(present_inertials(robot)))
    tree = tree_motion(robot, q, v, a) if robot.loops else None
    if tree is None:
        tau = np.empty((len(q), robot.n_dof))
        kernel.inverse_dynamics_rows(q, v, a, robot.gravity, tree_arrays(robot), phi, tau)
    else:
        of_tree = np.empty((len(q), robot.n_bodies))
        whole = frozen_view(tree.position), frozen_view(tree.velocity), frozen_view(tree.acceleration)
        kernel.inverse_dynamics_rows(*whole, robot.gravity, tree_arrays(robot), phi, of_tree)
        tau = np.matmul(of_tree[:, None], tree.G)[:, 0]
    if effects and robot.effects:
        if load is None and any(effect.loaded for effect in robot.effects):
            load = inverse_dynamics(transmitting(robot), q, v, a)
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
        motion = tree_effect_motion(robot, tree)
    else:
        motion = driven_motion(robot, q, v, a, carried, travel)
    # in rows, so that kernels are compiled for one layout only: hstack keeps columns where all its parts have them
    return np.ascontiguousarray(np.hstack([effect.signals(motion) for effect in robot.effects]))


def friction_part(robot: Robot, q: Array, v: Array, load: Array | None = None, *, travel: Array | None = None) -> Array:
    """Torque of friction alone over a motion, ``(samples, torques)``; zero where the robot has none."""
    rubbing = robot.with_effects([effect for effect in robot.effects if effect.is_friction])
    if not rubbing.effects:
        return np.zeros_like(v)
    signals = effect_signals(rubbing, q, v, np.zeros_like(v), load, travel=travel)
    return np.asarray((signals * rubbing.parameters.values[rubbing.parameters.n_inertial :]) @ rubbing.effect_incidence.T)


def fill_torque_rows(robot: Robot, q: Array, v: Array, a: Array, targets: IntArray, step: int, out: Array) -> None:
    """Inertial coefficients of motion that was checked into a flat array.

    ``targets`` names a place for each of the ten parameters of every body and torque in ``robot.tree``'s support list, for
    the first sample; each further sample is ``step`` away. Negative targets are left out.
    """
    from dynid.dynamics import kernels as kernel

    kernel.torque_rows(q, v, a, robot.gravity, tree_arrays(robot), targets, step, out)


def fill_projected_rows(robot: Robot, tree: TreeMotion, part: slice, targets: IntArray, step: int, out: Array) -> None:
    """Inertial coefficients of a closed robot's actuated torques into a flat array.

    ``targets`` names a place for the ten parameters of every body and actuated torque, bodies first.
    """
    from dynid.compiled import announced
    from dynid.dynamics import kernels as kernel
    from dynid.dynamics.tree_walk import workspace

    motion = (frozen_view(values[part]) for values in (tree.position, tree.velocity, tree.acceleration, tree.G))
    arrays = tree_arrays(robot)
    x = workspace(arrays, robot.gravity, 7)
    announced(kernel.projected_torque_rows)(*motion, arrays, x, targets, step, out)


def passive_columns(robot: Robot, tree: TreeMotion, signals: Array) -> Array:
    """What effects of passive joints add to the actuated torques, ``(samples, torques, effect columns)``: ``G^T C s``."""
    rubbing = list(robot.effect_joints[len(robot.driven) :])
    return np.asarray(np.einsum("srk,rc,sc->skc", tree.G[:, rubbing], robot.passive_incidence, signals, optimize=True))


def tree_effect_motion(robot: Robot, tree: TreeMotion) -> Motion:
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
    from dynid.dynamics import tree_walk

    return tree_walk.tree_arrays(robot.tree)


def random_states(robot: Robot, n: int, seed: int = 0) -> tuple[Array, Array, Array, Array]:
    """Positions, velocities, accelerations and loads of ``n`` states, without regard to limits.

    Structure does not depend on limits; wide states show it best. A closed robot keeps within them, where its loops close.
    Half of the speeds keep away from zero, where signs are
    dead; the other half come from all orders of magnitude, down to those where friction peaks.
    """
    rng = np.random.default_rng(seed)
    q = feasible_positions(robot, n, rng) if robot.loops else rng.uniform(-np.pi, np.pi, (n, robot.n_position))
    if robot.floating:
        q[:, 3:7] = rng.normal(size=(n, 4))
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    v = rng.uniform(0.5, 3.0, (n, robot.n_dof)) * rng.choice([-1.0, 1.0], (n, robot.n_dof))
    v[1::2] *= np.exp(rng.uniform(np.log(1e-3), 0.0, v[1::2].shape))
    a = rng.uniform(-10.0, 10.0, (n, robot.n_dof))
    load = rng.uniform(-10.0, 10.0, (n, robot.n_dof))
    return q, v, a, load


def random_states_within_limits(robot: Robot, n: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations inside the robot's limits, where it has any, else of ordinary size."""
    rng = np.random.default_rng(seed)
    q, v, a, _ = random_states(robot, n, seed)
    first = robot.n_dof - len(robot.driven)
    low, high = robot.position_limits.T
    low, high = np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi)
    if not robot.loops:
        q[:, first + robot.floating :] = rng.uniform(low, high, (n, len(low)))
    for array, quantity, ordinary in ((v, "dq_max", 2.0), (a, "ddq_max", 10.0)):
        bound = robot.limits(quantity)  # type: ignore[arg-type]
        bound = np.where(np.isfinite(bound), bound, ordinary)
        array[:, first:] = rng.uniform(-bound, bound, (n, len(bound)))
    return q, v, a


def mass_matrix(robot: Robot, q: ArrayLike) -> Array:
    """``M(q)`` of bodies and rotors, column by column ``tau(q, 0, e_j) - tau(q, 0, 0)``, ``(poses, n, n)``."""
    poses, n = np.atleast_2d(np.asarray(q, dtype=np.float64)), robot.n_dof
    accelerations = np.tile(np.vstack([np.eye(n), np.zeros((1, n))]), (len(poses), 1))
    still = np.zeros_like(accelerations)
    tau = inverse_dynamics(robot, np.repeat(poses, n + 1, axis=0), still, accelerations, still)
    columns = tau.reshape(len(poses), n + 1, n)
    return np.swapaxes(columns[:, :n] - columns[:, n:], 1, 2)


def transmitting(robot: Robot) -> Robot:
    """The robot with what its joints transmit: neither friction nor inertia of rotors, which motors overcome before the gears.

    Where that of a rotor cannot be told from that of a link, the robot's own values part them.
    """
    return robot.with_effects([effect for effect in robot.effects if not effect.is_friction and not is_rotor(effect)])


def needs_load(robot: Robot) -> bool:
    """Whether any effect of the robot depends on the transmitted torque."""
    return any(effect.loaded for effect in robot.effects)


def transmitted_load(robot: Robot, samples: Samples) -> Array:
    """What gears and bearings carry, with the robot's own parameters."""
    return inverse_dynamics(transmitting(robot), samples.position, samples.velocity, samples.acceleration)


def with_transmitted_load(robot: Robot, samples: Samples) -> Samples:
    """Samples that carry the transmitted torque of this robot, where one of its effects needs it; otherwise the samples.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects import LoadCoulomb
        >>> loaded = dynid.demo_robot(effects=[dynid.Viscous(), LoadCoulomb()])
        >>> with_transmitted_load(loaded, dynid.demo_samples(dynid.demo_robot())).load.shape
        (1000, 7)
    """
    return samples.with_load(transmitted_load(robot, samples)) if needs_load(robot) else samples
