"""Reverse engineering: base coefficients from anything that tells ``M(q)`` and ``g(q)`` (Gaz and others 2019, IV-A).

    s(q) = (lower triangle of M(q), g(q)) = Y_s(q) beta

A controller, a table of poses, another library: whatever gives the inertia matrix and the gravity vector of a standing
robot gives its base parameters without motion, friction or derivatives. From these alone follow the Coriolis forces, by
Christoffel symbols of ``M``, and with them the inverse dynamics ``tau = M a + c(q, v) + g``.

``M`` is a trigonometric polynomial of degree two in each angle, so its derivative is exact from four more evaluations,

    dM/dq = M(q + pi/4) - M(q - pi/4) + (1 - sqrt 2)/2 (M(q + pi/2) - M(q - pi/2)),

and a polynomial of degree two in the position of a prismatic joint, where a central difference is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_finite, check_shape, freeze
from dynid.dynamics.inverse_dynamics import checked_motion, effect_signals, random_states_within_limits
from dynid.dynamics.regressors import static_regressor
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.result import Estimate, Method
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.static_rows import pose_regression
from dynid.signals.recording import StaticRecording

PoseFunction: TypeAlias = Callable[[Array], ArrayLike]
StateFunction: TypeAlias = Callable[[Array, Array], ArrayLike]
Part: TypeAlias = Literal["inertia", "gravity"]

CHUNK_POSES = 64
"""Poses per block of the regressor of ``M``, which is large."""


@dataclass(frozen=True, eq=False)
class Oracle:
    """A program that gives ``M(q)`` and ``g(q)`` pose by pose, and ``c(q, v)`` if it can; any of them may be missing.

    Each function takes one pose (and velocity) in the robot's own coordinates.

    Args:
        name: of the program, for messages.
        inertia: ``M(q)`` of the rigid bodies, without reflected rotor inertia.
        gravity: ``g(q)``.
        coriolis: ``c(q, v)``.

    Examples:
        >>> import dynid
        >>> from dynid.estimation.oracle import Oracle
        >>> robot = dynid.demo_robot()
        >>> oracle = Oracle("simulator", gravity=lambda q: dynid.inverse_dynamics(robot, [q], [0 * q], [0 * q])[0])
        >>> oracle.name
        'simulator'
    """

    name: str
    inertia: PoseFunction | None = None
    gravity: PoseFunction | None = None
    coriolis: StateFunction | None = None

    def __post_init__(self) -> None:
        if self.inertia is None and self.gravity is None:
            raise InputError(f"oracle '{self.name}' gives neither M(q) nor g(q), expected at least one")

    def inertia_at(self, q: Array) -> Array:
        """``(poses, n, n)``."""
        if self.inertia is None:
            raise InputError(f"oracle '{self.name}' does not give M(q)")
        n = q.shape[1]
        return self._asked("M(q)", [self.inertia(pose) for pose in q], (len(q), n, n))

    def gravity_at(self, q: Array) -> Array:
        """``(poses, n)``."""
        if self.gravity is None:
            raise InputError(f"oracle '{self.name}' does not give g(q)")
        return self._asked("g(q)", [self.gravity(pose) for pose in q], q.shape)

    def coriolis_at(self, q: Array, v: Array) -> Array:
        """``(states, n)``."""
        if self.coriolis is None:
            raise InputError(f"oracle '{self.name}' does not give c(q, v)")
        return self._asked("c(q, v)", [self.coriolis(*state) for state in zip(q, v, strict=True)], v.shape)

    def _asked(self, what: str, answers: list[ArrayLike], shape: tuple[int, ...]) -> Array:
        values = np.array([np.asarray(answer, dtype=np.float64) for answer in answers])
        check_shape(f"{what} of oracle '{self.name}'", values, shape)
        check_finite(f"{what} of oracle '{self.name}'", values)
        return values


@dataclass(frozen=True, eq=False)
class LagrangianModel:
    """``tau = M(q) a + C(q, v) v + g(q)`` and joint effects from base parameters alone, without masses of single links.

    ``M`` is that of the rigid bodies; rotor inertia, where the robot has it, is among the effects.

    Args:
        robot: the robot, with its effects.
        base: its base parameters.
        base_values: their values.

    Examples:
        >>> import dynid
        >>> from dynid.estimation.oracle import LagrangianModel
        >>> robot = dynid.demo_robot(effects="none")
        >>> base = dynid.reduce_to_base(robot)
        >>> model = LagrangianModel(robot, base, base.base_values(robot.parameters.values))
        >>> model.inertia([[0.0] * 7]).shape
        (1, 7, 7)
    """

    robot: Robot
    base: BaseReduction
    base_values: Array

    def __post_init__(self) -> None:
        _refuse_floating(self.robot)
        object.__setattr__(self, "base_values", freeze(self.base_values))
        check_shape("base values", self.base_values, (self.base.n_base,))
        if self.base.parameter_names != self.robot.parameters.names:
            raise InputError(
                f"base reduction is over {self.base.n_parameters} parameters, robot '{self.robot.name}' has "
                f"{len(self.robot.parameters)}, or other names"
            )

    @cached_property
    def _columns(self) -> Array:
        """Weights of the regressor's columns: those of the base parameters, zero for the columns left out."""
        return np.asarray(self.base.lift @ self.base_values)

    @property
    def _inertial(self) -> Array:
        return np.asarray(self._columns[: self.robot.parameters.n_inertial])

    def inertia(self, q: ArrayLike) -> Array:
        """``M(q)`` of every pose, ``(poses, n, n)``."""
        return self._statics(q)[0]

    def gravity(self, q: ArrayLike) -> Array:
        """``g(q)`` of every pose, ``(poses, n)``."""
        return self._statics(q)[1]

    def coriolis(self, q: ArrayLike, v: ArrayLike) -> Array:
        """``c(q, v) = C(q, v) v`` of every state, ``(states, n)``."""
        q, v, _ = checked_motion(self.robot, q, v, np.zeros_like(np.atleast_2d(np.asarray(v, dtype=np.float64))))
        return coriolis_forces(inertia_derivative(self.robot, self.inertia, q), v)

    def inverse_dynamics(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Torque of every sample, ``(samples, n)``."""
        q, v, a = checked_motion(self.robot, q, v, a)
        M, g = self._statics(q)
        tau = np.einsum("sij,sj->si", M, a) + self.coriolis(q, v) + g
        # rotors first: friction may depend on the torque that is transmitted without it
        for friction in (False, True):
            tau = tau + self._effects(q, v, a, tau, friction)
        return np.asarray(tau)

    def _effects(self, q: Array, v: Array, a: Array, load: Array, friction: bool) -> Array:
        values = dict(zip(self.robot.parameters.names, self._columns.tolist(), strict=True))
        some = self.robot.with_effects([effect for effect in self.robot.effects if effect.is_friction == friction])
        if not some.effects:
            return np.zeros_like(load)
        chosen = np.array([values[name] for name in some.parameters.names[some.parameters.n_inertial :]])
        return np.asarray((effect_signals(some, q, v, a, load) * chosen) @ some.effect_incidence.T)

    def _statics(self, q: ArrayLike) -> tuple[Array, Array]:
        poses = np.atleast_2d(np.asarray(q, dtype=np.float64))
        n = self.robot.n_dof
        M, g = np.empty((len(poses), n, n)), np.empty((len(poses), n))
        for start in range(0, len(poses), CHUNK_POSES):
            part = slice(start, start + CHUNK_POSES)
            Y_inertia, Y_gravity = static_regressor(self.robot, poses[part])
            M[part], g[part] = Y_inertia @ self._inertial, Y_gravity @ self._inertial
        return M, g


@dataclass(frozen=True, eq=False)
class ReverseEngineered:
    """Base coefficients of an oracle, and how well the equations they stand for agree with it."""

    estimate: Estimate
    model: LagrangianModel
    oracle: str
    n_poses: int
    coriolis_gap: float | None
    """Largest difference of ``c(q, v)`` from the oracle's own, relative to its largest; None where it gives none."""


def reverse_engineer(
    robot: Robot,
    source: Oracle | StaticRecording,
    *,
    parts: Sequence[Part] = ("inertia", "gravity"),
    poses: ArrayLike | int = 500,
    method: Method | None = None,
    seed: int = 0,
) -> ReverseEngineered:
    """Base coefficients from an oracle or a table of poses.

    What the chosen parts cannot determine keeps the robot's nominal value and the origin ``prior``.

    Args:
        robot: the robot.
        source: an oracle, or a table of poses.
        parts: ``inertia``, ``gravity`` or both.
        poses: poses at which to ask an oracle, or how many random ones within the robot's limits.
        method: an estimation method; None for ordinary least squares.
        seed: of the random poses.

    Returns:
        the estimate, the robot with it, and the gap between its Coriolis torque and the oracle's.

    Examples:
        >>> import dynid
        >>> from dynid.estimation.oracle import Oracle
        >>> robot = dynid.demo_robot(effects="none")
        >>> oracle = Oracle("simulator", gravity=lambda q: dynid.inverse_dynamics(robot, [q], [0 * q], [0 * q])[0])
        >>> found = dynid.reverse_engineer(robot, oracle, parts=["gravity"], poses=50)
        >>> found.estimate.relative_error < 1e-9
        True
    """
    rigid = robot.with_effects(())
    _refuse_floating(rigid)
    wanted = _checked_parts(parts)
    if isinstance(source, StaticRecording):
        q, name = np.asarray(source.position), source.source.path or "table of poses"
        M = source.inertia if "inertia" in wanted else None
        g = source.gravity if "gravity" in wanted else None
        oracle = None
    else:
        q, name, oracle = _poses(rigid, poses, seed), source.name, source
        M = source.inertia_at(q) if "inertia" in wanted and source.inertia is not None else None
        g = source.gravity_at(q) if "gravity" in wanted and source.gravity is not None else None
    if M is None and g is None:
        raise InputError(f"'{name}' gives none of what was asked for: {' and '.join(wanted)}")
    base = reduce_to_base(rigid)
    result = estimate(pose_regression(rigid, q, M, g), base, method or OrdinaryLeastSquares())
    model = LagrangianModel(rigid, base, result.base_values)
    gap = None if oracle is None or oracle.coriolis is None else coriolis_gap(model, oracle, seed=seed)
    return ReverseEngineered(result, model, name, len(q), gap)


def coriolis_gap(model: LagrangianModel, oracle: Oracle, n_states: int = 50, seed: int = 0) -> float:
    """Largest difference between ``c(q, v)`` by Christoffel symbols and the oracle's own, relative to its largest."""
    q, v, _ = random_states_within_limits(model.robot, n_states, seed)
    expected = oracle.coriolis_at(q, v)
    return float(np.abs(model.coriolis(q, v) - expected).max() / max(float(np.abs(expected).max()), 1e-300))


def inertia_derivative(robot: Robot, inertia: Callable[[Array], Array], q: Array) -> Array:
    """``dM_ij / dq_k`` of every pose, ``(poses, n, n, n)`` with ``k`` last, exact up to rounding."""
    if robot.loops:
        raise InputError(f"robot '{robot.name}' has closed loops: its inertia matrix is no polynomial of sine and cosine")
    n = robot.n_dof
    derivative = np.empty((len(q), n, n, n))
    for k, joint in enumerate(robot.joints):
        unit = np.eye(n)[k]
        if joint.kind == "prismatic":
            derivative[..., k] = 0.5 * (inertia(q + unit) - inertia(q - unit))
            continue
        if abs(float(joint.screw[:3] @ joint.screw[3:])) > 1e-12:
            raise InputError(f"joint '{joint.name}' is helical: its inertia matrix is no polynomial of sine and cosine")
        near, far = 0.25 * np.pi * unit, 0.5 * np.pi * unit
        derivative[..., k] = inertia(q + near) - inertia(q - near)
        derivative[..., k] += 0.5 * (1.0 - np.sqrt(2.0)) * (inertia(q + far) - inertia(q - far))
    return derivative


def coriolis_matrix(derivative: Array, v: Array) -> Array:
    """``C_ij = 1/2 sum_k (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) v_k``, for which ``dM/dt - 2 C`` is skew-symmetric."""
    first = np.einsum("sijk,sk->sij", derivative, v)
    second = np.einsum("sikj,sk->sij", derivative, v)
    return np.asarray(0.5 * (first + second - np.swapaxes(second, 1, 2)))


def coriolis_forces(derivative: Array, v: Array) -> Array:
    """``C(q, v) v``."""
    return np.asarray(np.einsum("sij,sj->si", coriolis_matrix(derivative, v), v))


def _poses(robot: Robot, poses: ArrayLike | int, seed: int) -> Array:
    if isinstance(poses, (int, np.integer)):
        if poses < 1:
            raise InputError(f"an oracle is asked at {poses} poses, expected at least one")
        return random_states_within_limits(robot, int(poses), seed)[0]
    q = np.atleast_2d(np.asarray(poses, dtype=np.float64))
    check_shape("poses", q, (None, robot.n_position))
    check_finite("poses", q)
    return q


def _checked_parts(parts: Sequence[Part]) -> tuple[Part, ...]:
    wanted = tuple(parts)
    for part in wanted:
        if part not in ("inertia", "gravity"):
            raise UnknownNameError("part of the dynamics", str(part), ("inertia", "gravity"))
    if not wanted:
        raise InputError("reverse engineering was asked for no part of the dynamics, expected inertia, gravity or both")
    return wanted


def _refuse_floating(robot: Robot) -> None:
    if robot.floating:
        raise InputError(f"robot '{robot.name}' has a floating base; its equations in Lagrangian form are not defined here")
