"""Reverse engineering: base coefficients from anything that tells ``M(q)`` and ``g(q)`` (Gaz and others 2019, IV-A).

    s(q) = (lower triangle of M(q), g(q)) = Y_s(q) beta

A controller, a table of poses, another library: whatever gives the inertia matrix and the gravity vector of a standing
robot gives its base parameters without motion, friction or derivatives. These decide the whole inverse dynamics
``tau = M a + c(q, v) + g``: any parameters that have them give the same torque.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_finite, check_shape
from dynid.dynamics.inverse_dynamics import inverse_dynamics, random_states_within_limits
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.estimate import estimate
from dynid.estimation.methods.least_squares import OrdinaryLeastSquares
from dynid.estimation.result import Estimate, Method
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from dynid.regression.static_rows import pose_regression
from dynid.signals.recording import StaticRecording

PoseFunction: TypeAlias = Callable[[Array], ArrayLike]
StateFunction: TypeAlias = Callable[[Array, Array], ArrayLike]
Part: TypeAlias = Literal["inertia", "gravity"]


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

    def statics_at(self, q: Array, parts: Sequence[Part]) -> dict[str, Array | None]:
        """Inertia and gravity by their names, None where one is not given or not among the parts."""
        asks = {"inertia": (self.inertia, self.inertia_at), "gravity": (self.gravity, self.gravity_at)}
        return {part: ask(q) if given is not None and part in parts else None for part, (given, ask) in asks.items()}

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
class ReverseEngineered:
    """Base coefficients of an oracle, and how well the equations they stand for agree with it."""

    estimate: Estimate
    model: Robot
    """A robot with these base values and without effects; only sums of its links mean something, see :attr:`BaseReduction.lift`."""
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
    if robot.floating:
        raise InputError(f"robot '{robot.name}' has a floating base; its equations in Lagrangian form are not defined here")
    wanted = tuple(parts)
    if unknown := [part for part in wanted if part not in get_args(Part)]:
        raise UnknownNameError("part of the dynamics", str(unknown[0]), get_args(Part))
    if not wanted:
        raise InputError("reverse engineering was asked for no part of the dynamics, expected inertia, gravity or both")
    if isinstance(source, StaticRecording):
        q, name, oracle = np.asarray(source.position), source.source.path or "table of poses", None
        known = {"inertia": source.inertia, "gravity": source.gravity}
    else:
        q, name, oracle = _poses(rigid, poses, seed), source.name, source
        known = source.statics_at(q, wanted)
    M, g = (known[part] if part in wanted else None for part in get_args(Part))
    if M is None and g is None:
        raise InputError(f"'{name}' gives none of what was asked for: {' and '.join(wanted)}")
    base = reduce_to_base(rigid)
    result = estimate(pose_regression(rigid, q, M, g), base, method or OrdinaryLeastSquares())
    model = rigid.with_parameters(rigid.parameters.with_values(base.lift @ result.base_values))
    gap = None if oracle is None or oracle.coriolis is None else coriolis_gap(model, oracle, seed=seed)
    return ReverseEngineered(result, model, name, len(q), gap)


def coriolis_gap(model: Robot, oracle: Oracle, n_states: int = 50, seed: int = 0) -> float:
    """Largest difference between ``c(q, v)`` of the model and the oracle's own, relative to its largest."""
    q, v, _ = random_states_within_limits(model, n_states, seed)
    still = np.zeros_like(v)
    found = inverse_dynamics(model, q, v, still) - inverse_dynamics(model, q, still, still)
    expected = oracle.coriolis_at(q, v)
    return float(np.abs(found - expected).max() / max(float(np.abs(expected).max()), 1e-300))


def _poses(robot: Robot, poses: ArrayLike | int, seed: int) -> Array:
    if isinstance(poses, (int, np.integer)):
        if poses < 1:
            raise InputError(f"an oracle is asked at {poses} poses, expected at least one")
        return random_states_within_limits(robot, int(poses), seed)[0]
    q = np.atleast_2d(np.asarray(poses, dtype=np.float64))
    check_shape("poses", q, (None, robot.n_position))
    check_finite("poses", q)
    return q
