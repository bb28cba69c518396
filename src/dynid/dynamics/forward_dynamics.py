"""Dynamics for integration: ``a(q, v, tau)``, ``tau(q, v, a)``, ``g(q)`` and ``M(q)^-1`` of rigid bodies and rotors, without friction.

An open chain takes Pinocchio's recursions, one state per call. A closed robot has ``M_a = G^T M G`` and what else the motors feel:

    tau = M_a(q) a + c_a(q, v) + g_a(q),      c_a + g_a = G^T (tau of the tree under (G v, dG/dt v))

It is exact, needs no multipliers, and leaves no drift of the closures: passive joints are solved anew in every state, starting
from the state before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.arrays import Array, frozen_view
from dynid.dynamics.closed_chains import CLEAR, TreeMotion, closures_of
from dynid.dynamics.friction import PassiveEffects
from dynid.dynamics.inverse_dynamics import inverse_dynamics, present_inertials, tree_arrays
from dynid.dynamics.joint_effects import coupled_rotors, rotor_matrix
from dynid.dynamics.pinocchio_model import pinocchio_model
from dynid.errors import InconsistentModelError, InputError
from dynid.model.inertia import is_consistent
from dynid.model.robot import Robot


def forward_dynamics(robot: Robot) -> ForwardDynamics:
    """The dynamics of a robot, open or closed, with working memory of its own."""
    return ClosedDynamics(robot) if robot.loops else ForwardDynamics(robot)


class ForwardDynamics:
    """Rigid bodies and rotors of an open chain by Pinocchio's recursions, one state per call.

    Pinocchio knows rotors that turn with their own joint. Those that turn with several add the inertia ``U diag(w) U^T``: the
    recursion is linear in the torque, so ``M^-1 U`` is known from a few more calls, and Woodbury's identity gives the inverse.
    """

    def __init__(self, robot: Robot) -> None:
        import pinocchio

        # one number per joint position, continuous joints included
        joints = tuple(replace(joint, kind="revolute") if joint.kind == "continuous" else joint for joint in robot.joints)
        self._pinocchio, self._model = pinocchio, pinocchio_model(replace(robot, joints=joints))
        self._working: Any = self._model.createData()
        self._coupled = coupled_rotors(robot)
        w, vectors = np.linalg.eigh(self._coupled)
        some = np.abs(w) > 1e-12 * np.abs(w).max()
        self._w, self._U = w[some], vectors[:, some]

    def acceleration(self, q: Array, v: Array, tau: Array) -> Array:
        """``a(q, v, tau)`` by the articulated-body algorithm; the array is written over by the next call."""
        free: Array = self._pinocchio.aba(self._model, self._working, q, v, tau)
        if not len(self._w):
            return free
        free, U = free.copy(), self._U
        Z = np.column_stack([self._pinocchio.aba(self._model, self._working, q, v, tau + u) - free for u in U.T])
        if len(self._w) == 1:
            return np.asarray(free - Z[:, 0] * float(U[:, 0] @ free) / (1.0 / self._w[0] + float(U[:, 0] @ Z[:, 0])))
        return np.asarray(free - Z @ np.linalg.solve(np.diag(1.0 / self._w) + U.T @ Z, U.T @ free))

    def torque(self, q: Array, v: Array, a: Array) -> Array:
        """``tau(q, v, a)`` by the recursive Newton-Euler algorithm."""
        tau: Array = self._pinocchio.rnea(self._model, self._working, q, v, a)
        return tau + self._coupled @ a if len(self._w) else tau

    def gravity(self, q: Array) -> Array:
        """``g(q)``."""
        return np.asarray(self._pinocchio.computeGeneralizedGravity(self._model, self._working, q))

    def mobility(self, q: Array) -> Array:
        """``M(q)^-1``, rotors included; not a number where it does not exist."""
        upper: Array = np.triu(self._pinocchio.computeMinverse(self._model, self._working, q))
        inverse: Array = upper + np.triu(upper, 1).T
        if not len(self._w) or not np.isfinite(inverse).all():
            return inverse
        return np.asarray(np.linalg.inv(np.linalg.inv(inverse) + self._coupled))


class ClosedDynamics(ForwardDynamics):
    """The same of a closed robot; it remembers the last position of its tree to start from."""

    def __init__(self, robot: Robot) -> None:
        self._robot, self._closures = robot, closures_of(robot)
        self._rotors = rotor_matrix(robot)
        self._rigid = _rigid_bodies(robot)
        seeds = self._closures.seeds
        self._actuated, self._whole, self._G = seeds.actuated[0], seeds.position[0], seeds.G[0]

    def inertia_and_bias(self, q: Array, v: Array) -> tuple[Array, Array]:
        """``M_a``, rotors included, and the torque that no acceleration needs."""
        motion = self._closures.follow(self._position(q), v[None])
        self._G = motion.G[0]
        M, bias = _projected(motion, *self._rigid)
        return M[0] + self._rotors, bias[0]

    def acceleration(self, q: Array, v: Array, tau: Array) -> Array:
        M, bias = self.inertia_and_bias(q, v)
        return np.asarray(np.linalg.solve(M, tau - bias))

    def torque(self, q: Array, v: Array, a: Array) -> Array:
        M, bias = self.inertia_and_bias(q, v)
        return np.asarray(M @ a + bias)

    def gravity(self, q: Array) -> Array:
        return self.inertia_and_bias(q, np.zeros_like(q))[1]

    def mobility(self, q: Array) -> Array:
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


def inertia_and_bias(robot: Robot, q: Array, v: Array) -> tuple[Array, Array]:
    """``M``, rotors included, and the torque that no acceleration needs, ``c + g``, in many states."""
    rotors = rotor_matrix(robot)
    if robot.loops:
        closures = closures_of(robot)
        M, bias = _projected(closures.follow(closures.positions(np.ascontiguousarray(q)), v), *_rigid_bodies(robot))
        return M + rotors, bias
    # in one call: at rest and without acceleration, with the velocity alone, and with each unit acceleration
    n = q.shape[1]
    speed, unit = np.zeros((n + 2, len(q), n)), np.zeros((n + 2, len(q), n))
    speed[1] = v
    unit[2:] = np.eye(n)[:, None]
    motion = (part.reshape(-1, n) for part in (np.broadcast_to(q, speed.shape), speed, unit))
    torques = inverse_dynamics(robot, *motion, effects=False).reshape(speed.shape)
    return (torques[2:] - torques[0]).transpose(1, 0, 2) + rotors, torques[1]


def _rigid_bodies(robot: Robot) -> tuple[Array, tuple[Any, ...], Array, PassiveEffects]:
    """What :func:`_projected` takes beside the motion."""
    phi = frozen_view(np.ascontiguousarray(present_inertials(robot)))
    return robot.gravity, tree_arrays(robot), phi, PassiveEffects(robot)


def _projected(
    motion: TreeMotion, gravity: Array, tree: tuple[Any, ...], phi: Array, passive: PassiveEffects
) -> tuple[Array, Array]:
    """Inertia and bias, passive rotors included, from three kinds of states of the tree: the motion itself, rest, and rest under
    unit accelerations."""
    from dynid.dynamics import kernels as kernel

    (n, n_tree), n_actuated = motion.position.shape, motion.G.shape[2]
    position = np.repeat(motion.position, n_actuated + 2, axis=0)
    velocity, acceleration = np.zeros((2, n, n_actuated + 2, n_tree))
    velocity[:, 0], acceleration[:, 0], acceleration[:, 2:] = motion.velocity, motion.acceleration, motion.G.swapaxes(1, 2)
    force = np.empty_like(position)
    rates = (frozen_view(part.reshape(position.shape)) for part in (velocity, acceleration))
    kernel.inverse_dynamics_rows(frozen_view(position), next(rates), next(rates), gravity, tree, phi, force)
    torque = np.matmul(force.reshape(n, n_actuated + 2, n_tree), motion.G)
    M = torque[:, 2:] - torque[:, 1:2]
    more, rest = passive.inertia(motion)
    return 0.5 * (M + M.swapaxes(1, 2)) + more, torque[:, 0] + rest


def mobilities(robot: Robot, poses: Array) -> Array:
    """``M^-1`` at poses; a robot that has none there is refused with the links at fault."""
    dynamics = forward_dynamics(robot)
    inverses = np.array([dynamics.mobility(q) for q in poses])
    if not np.isfinite(inverses).all() or np.linalg.eigvalsh(inverses).min() <= 0.0:
        fine = np.atleast_1d(is_consistent(robot.parameters.inertials, allow_empty=True))
        bad = [link for link, good in zip(robot.links, fine, strict=True) if not good]
        raise InconsistentModelError(
            f"robot '{robot.name}' cannot be simulated: its inertia matrix is not positive definite; "
            f"links that are not physically consistent: {', '.join(bad) or 'none'}"
        )
    return inverses


def require_simulatable(robot: Robot) -> None:
    """Refuse a robot with a joint that moves no mass: its acceleration under a torque would be infinite.

    A massless link that carries others, or a joint with rotor inertia, is no obstacle. In a closed robot the loops carry mass to
    joints from elsewhere; its inertia matrix itself is looked at where it is simulated.
    """
    massless = _massless_joints(robot)
    if massless:
        raise InputError(
            f"robot '{robot.name}' cannot be simulated: {_count(massless, 'link')} {', '.join(massless)} and "
            f"what {'it carries' if len(massless) == 1 else 'they carry'} have no mass, expected more"
        )


def is_simulatable(robot: Robot) -> bool:
    """Whether every joint moves some mass."""
    return not _massless_joints(robot)


def _massless_joints(robot: Robot) -> list[str]:
    """Links of joints that move no mass; none in a closed robot, where loops carry mass to joints from elsewhere."""
    if robot.loops:
        return []
    masses = carried_masses(robot)
    values = robot.parameters.as_dict()
    return [
        link
        for i, (link, joint) in enumerate(zip(robot.links, robot.joints, strict=True))
        if masses[i] <= 0.0 and (joint.kind == "floating" or values.get(f"Ia{i + 1}", 0.0) <= 0.0)
    ]


def carried_masses(robot: Robot) -> Array:
    """Mass that each joint moves: its link and all links beyond."""
    masses = robot.parameters.inertials[:, 0].copy()
    for i in range(robot.n_bodies - 1, -1, -1):
        if robot.joints[i].parent >= 0:
            masses[robot.joints[i].parent] += masses[i]
    return masses


def _count(names: Sequence[str], what: str) -> str:
    return what if len(names) == 1 else f"{what}s"
