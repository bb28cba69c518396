"""Criterion of points of the energy model as a function of unconstrained variables: Gautier and Khalil 1992, section 4.

A row of the energy model is the difference of two states, ``W_i = h(q, v)_{i+1} - h(q, v)_i``, so a sequence of ``r + 1`` points gives
``r`` rows and every point is used twice. The points minimise

    f = lambda_1 cond(W) + lambda_2 S,        S = max |W_ij| / min |W_ij|                                  (18, 19)

free of constraints after the change of variables ``q = q_I + (q_F - q_I) sin^2 x``, ``v = v_M sin x`` (4.2), started from normal random
numbers. Friction and other effects do work on the way. Between two points ``q0, v0`` and ``q1, v1`` a joint moves in the time ``u`` as

    q(s) = q0 (1 - p) + q1 p + u v0 r0 + u v1 r1,    p = 10 s^3 - 15 s^4 + 6 s^5,  r0 = s - 6 s^3 + 8 s^4 - 3 s^5,
    r1 = -4 s^3 + 7 s^4 - 3 s^5

and an effect with the signal ``e(q, v, a)`` per unit of its value does the work ``u int_0^1 e v ds``, here by Gauss's rule: exact for
viscous friction, offset and rotor inertia, whose powers are polynomials.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from dynid.arrays import Array, BoolArray
from dynid.dynamics.inverse_dynamics import effect_signals, random_states
from dynid.dynamics.regressors import energy_regressor
from dynid.errors import InputError, UnknownNameError
from dynid.excitation.criteria import Criterion, Mix, PivotedCondition, Scaling, SpectralCriterion
from dynid.excitation.design_problem import with_smooth_sign
from dynid.excitation.gradient import by_parameters, effect_gradient, energy_gradient
from dynid.excitation.limits import Limits
from dynid.excitation.shortest_pieces import shortest_times
from dynid.model.effects.effect import Motion
from dynid.model.effects.linear import Armature
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction, reduce_to_base

Measure: TypeAlias = Literal["singular", "pivoted", "frobenius"]
MEASURES: tuple[Measure, ...] = ("singular", "pivoted", "frobenius")

POWERS = (2.0, 8.0, 64.0)
"""Powers of the norms that stand for the largest and smallest of many values, ever sharper."""

SHARE_OF_SCALING = 0.3
"""Weight of ``log S`` beside ``log cond``: about that of ``0.02 S`` beside ``cond`` at the published optimum, 0.02 x 175 / 11."""

SHORT_SEARCH = 150
"""Steps of each stage that are enough for short sequences, and for a sketch of long ones."""

SKETCH = 2
"""Stages of a sketch."""

NODES = 8
"""Times at which the power between two points is looked at."""

_P, _R0, _R1 = Polynomial([0, 0, 0, 10, -15, 6]), Polynomial([0, 1, 0, -6, 8, -3]), Polynomial([0, 0, 0, -4, 7, -3])
_SHARES = (1.0 - _P, _P, _R0, _R1)
_X, _WEIGHTS = np.polynomial.legendre.leggauss(NODES)
_BASES = tuple(np.array([(one.deriv(k) if k else one)(0.5 * (_X + 1.0)) for one in _SHARES]) for k in range(3))
"""Share of each end in position, velocity and acceleration by ``s``, ``(4, nodes)``."""


def energy_rows_of(robot: Robot, base: BaseReduction, q: ArrayLike, v: ArrayLike) -> Array:
    """``W`` of a robot without effects: differences of the base energy regressor between successive points."""
    return np.diff(base.regressor(energy_regressor(robot, q, v)), axis=0)


@dataclass(frozen=True, eq=False)
class PointsWork:
    """Work of every effect between successive points, per unit of its value.

    Args:
        robot: with effects that have derivatives.
        lengths_s: time between successive points, ``(rows,)``.
    """

    robot: Robot
    lengths_s: Array

    def columns(self, q: Array, v: Array) -> Array:
        """``(rows, effect columns)`` for points ``(rows + 1, joints)``."""
        power = np.prod(self._powers(*self._motion(q, v)), axis=0)
        return np.asarray((self._weights[:, None] * power).reshape(len(self.lengths_s), NODES, -1).sum(axis=1))

    def gradient(self, q: Array, v: Array, weights: Array) -> tuple[Array, Array]:
        """``dg/dq, dg/dv`` of ``g = sum weights columns(q, v)``, the time between points held."""
        motion = self._motion(q, v)
        signals, speed = self._powers(*motion)
        bar = np.repeat(weights, NODES, axis=0) * self._weights[:, None]
        bars = [np.zeros_like(motion[0]), (bar * signals) @ self.robot.effect_incidence.T, np.zeros_like(motion[0])]
        first = 0
        for effect in self.robot.effects:
            last = first + effect.incidence(self.robot.n_joints).shape[1]
            by = effect_gradient(effect, Motion(*motion), (bar * speed)[:, first:last])
            bars = [one if more is None else one + more for one, more in zip(bars, by, strict=True)]
            first = last
        ends = np.zeros((4, len(self.lengths_s), q.shape[1]))
        for k, one in enumerate(bars):
            scaled = one.reshape(len(self.lengths_s), NODES, -1) / self.lengths_s[:, None, None] ** k
            ends += np.einsum("en,rnj->erj", _BASES[k], scaled)
        ends[2:] *= self.lengths_s[:, None]
        q_bar, v_bar = np.zeros_like(q), np.zeros_like(v)
        for whole, (before, after) in ((q_bar, ends[:2]), (v_bar, ends[2:])):
            whole[:-1] += before
            whole[1:] += after
        return q_bar, v_bar

    @property
    def _weights(self) -> Array:
        """``u`` times the weights of Gauss's rule on [0, 1], ``(rows x nodes,)``."""
        return np.asarray(np.outer(self.lengths_s, 0.5 * _WEIGHTS).ravel())

    def _motion(self, q: Array, v: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at all nodes, row after row."""
        u = self.lengths_s[:, None]
        ends = np.stack([q[:-1], q[1:], u * v[:-1], u * v[1:]])
        found = [np.einsum("en,erj->rnj", _BASES[k], ends) / u[:, None] ** k for k in range(3)]
        position, velocity, acceleration = (part.reshape(-1, q.shape[1]) for part in found)
        return position, velocity, acceleration

    def _powers(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        """Signal of every effect column and the speed that it acts on."""
        return effect_signals(self.robot, q, v, a), v @ self.robot.effect_incidence


@dataclass(frozen=True, eq=False)
class PointsProblem:
    """Criterion of ``r + 1`` points as a function of unconstrained variables."""

    robot: Robot
    """With effects that have derivatives."""
    base: BaseReduction
    free: BoolArray
    """Joints whose position matters."""
    limits: Limits
    rows: int
    share: tuple[float, float]
    """Of the position range and of the velocity limits that points may use."""
    stages: tuple[Criterion, ...]
    iterations: int
    deadline: float
    roomy: Array
    """A pose with much room around the bodies, near which points of a small share of the range lie."""
    work: PointsWork | None = None
    """The work of effects at the times of a stage; None for a robot without effects."""

    @classmethod
    def of(
        cls,
        robot: Robot,
        base: BaseReduction,
        limits: Limits,
        *,
        rows: int,
        stages: tuple[Criterion, ...],
        iterations: int,
        deadline: float,
        roomy: Array,
    ) -> PointsProblem:
        """The problem of a robot and its base parameters.

        Friction does work on the way, which depends on all positions; that of passive joints of a closed robot has no derivative, so
        such a robot is searched without friction and judged with it.
        """
        kinetic = [effect for effect in robot.effects if isinstance(effect, Armature)]
        if len(kinetic) < len(robot.effects) and robot.loops.rubbing:
            robot = robot.with_effects(kinetic)
            base = reduce_to_base(robot)
        if len(kinetic) == len(robot.effects):
            free = positions_that_matter(robot)
        else:
            robot, free = with_smooth_sign(robot, limits), np.ones(robot.n_joints, dtype=bool)
        return cls(robot, base, free, limits, rows, (1.0, 1.0), stages, iterations, deadline, roomy)

    @property
    def n_variables(self) -> int:
        """One per point for each joint's velocity, and for its position where that matters."""
        return (self.rows + 1) * (int(self.free.sum()) + self.robot.n_joints)

    def __call__(self, item: tuple[Array, int]) -> Array:
        """Optimal variables of one start, from where it stands after so many stages."""
        x, done = item
        return self._through(x, self.stages[done:], self.iterations, done > 0)

    def sketch(self, x: Array) -> Array:
        """A start after its first stages only."""
        return self._through(x, self.stages[:SKETCH], min(self.iterations, SHORT_SEARCH), False)

    def _through(self, x: Array, stages: tuple[Criterion, ...], iterations: int, begun: bool) -> Array:
        for number, criterion in enumerate(stages):
            if (begun or number > 0) and monotonic() > self.deadline:
                break
            found = minimize(
                self.timed(x).function,
                x,
                (criterion,),
                jac=True,
                method="L-BFGS-B",
                callback=self._stop_at_the_deadline,
                options={"maxiter": iterations, "maxcor": 40, "ftol": 1e-7, "gtol": 1e-6},
            )
            x = found.x
        return np.asarray(x)

    def _stop_at_the_deadline(self, intermediate_result: Any) -> None:
        """SciPy calls this after every step, and returns where it stands when it stops."""
        if monotonic() > self.deadline:
            raise StopIteration

    def points(self, x: Array) -> tuple[Array, Array]:
        """``q = q_I + (q_F - q_I) sin^2 x`` and ``v = v_M sin x``."""
        X = x.reshape(self.rows + 1, -1)
        k = int(self.free.sum())
        q = np.tile(self.middle, (self.rows + 1, 1))
        q[:, self.free] += self.share[0] * self.limits.reach[self.free] * (2.0 * np.sin(X[:, :k]) ** 2 - 1.0)
        return q, self.speed * np.sin(X[:, k:])

    @property
    def middle(self) -> Array:
        """Middle of the positions that points may have: of the range for all of it, nearer to the roomy pose for a smaller share."""
        return np.asarray(self.limits.centre + (1.0 - self.share[0]) * (self.roomy - self.limits.centre))

    @property
    def speed(self) -> Array:
        """Largest speed of points: a share of the limit, or of the speed that half the range is enough to stop from."""
        stopped = np.sqrt(self.limits.acceleration * self.limits.reach)
        return np.asarray(self.share[1] * np.minimum(self.limits.velocity, stopped))

    def timed(self, x: Array) -> PointsProblem:
        """The same problem with the times between these points held: they change with the points too, but from stage to stage."""
        if not self.robot.effects:
            return self
        u = shortest_times(*self.points(x), self.limits)
        usual = float(np.nanmedian(u)) if np.isfinite(u).any() else 1.0
        return replace(self, work=PointsWork(self.robot, np.where(np.isfinite(u), u, usual)))

    def function(self, x: Array, criterion: Criterion) -> tuple[float, Array]:
        """Criterion and its gradient."""
        q, v = self.points(x)
        value, q_bar, v_bar = self._judged(q, v, criterion)
        X = x.reshape(self.rows + 1, -1)
        k = int(self.free.sum())
        gradient = np.empty_like(X)
        gradient[:, :k] = q_bar[:, self.free] * (2.0 * self.share[0] * self.limits.reach[self.free]) * np.sin(2.0 * X[:, :k])
        gradient[:, k:] = v_bar * self.speed * np.cos(X[:, k:])
        return value, gradient.ravel()

    def _judged(self, q: Array, v: Array, criterion: Criterion) -> tuple[float, Array, Array]:
        """Criterion of points and its derivatives by their positions and velocities."""
        W = np.diff(energy_regressor(self.robot, q, v), axis=0)
        n = W.shape[1]
        if self.work is not None:
            W = np.hstack([W, self.work.columns(q, v)])
        value, slope = criterion.of_regressor(self.base.regressor(W))
        G = by_parameters(self.base, slope)
        by_h = np.zeros((len(q), n))
        by_h[1:] += G[:, :n]
        by_h[:-1] -= G[:, :n]
        q_bar, v_bar = energy_gradient(self.robot, q, v, by_h)
        if self.work is not None:
            more = self.work.gradient(q, v, G[:, n:])
            q_bar, v_bar = q_bar + more[0], v_bar + more[1]
        return value, q_bar, v_bar


def points_stages(lambda1: float, lambda2: float, measure: Measure) -> tuple[Criterion, ...]:
    """Criteria of a search one after another: log-determinant with a ridge, the condition number ever sharper, then with the scaling.

    The last one is ``lambda_1 cond + lambda_2 S``. ``S`` is as large as 1e12 where the condition number alone was made small, because
    some entries pass through zero; logarithms of both bring it down before the sum itself is minimised.
    """
    if measure not in MEASURES:
        raise UnknownNameError("measure of condition", measure, MEASURES)
    weights_fit = np.isfinite(lambda1) and np.isfinite(lambda2) and lambda1 >= 0.0 and lambda2 >= 0.0
    if not (weights_fit and lambda1 + lambda2 > 0.0):
        raise InputError(
            f"weights are lambda1 = {lambda1:g} and lambda2 = {lambda2:g}, expected zero or more and not both zero"
        )
    ridge = SpectralCriterion("logdet", ridge=1e-8)
    frobenius = SpectralCriterion("condition", 2.0)
    soft, firm, sharp = {
        "singular": tuple(SpectralCriterion("condition", power) for power in POWERS),
        "frobenius": (frobenius, frobenius, frobenius),
        "pivoted": (frobenius, PivotedCondition(), PivotedCondition()),
    }[measure]
    if lambda1 == 0.0:
        return (ridge, *(Mix(((lambda2, Scaling(power)),), ratios=True) for power in POWERS))
    if lambda2 == 0.0:
        return (ridge, *(Mix(((lambda1, condition),), ratios=True) for condition in (soft, firm, sharp)))
    return (
        ridge,
        Mix(((lambda1, soft),), ratios=True),
        Mix(((lambda1, firm),), ratios=True),
        Mix(((1.0, firm), (SHARE_OF_SCALING, Scaling(POWERS[0])))),
        Mix(((1.0, firm), (SHARE_OF_SCALING, Scaling(POWERS[1])))),
        Mix(((lambda1, sharp), (lambda2, Scaling(POWERS[2]))), ratios=True),
    )


def positions_that_matter(robot: Robot) -> BoolArray:
    """Joints whose position changes the energy of some state."""
    q, v, _, _ = random_states(robot, 40)
    rng = np.random.default_rng(0)
    change, _ = energy_gradient(robot, q, v, rng.normal(size=(len(q), robot.parameters.n_inertial)))
    size = np.abs(change).max(axis=0)
    return np.asarray(size > 1e-9 * size.max())
