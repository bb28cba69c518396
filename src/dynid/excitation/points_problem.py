"""Criterion of points of the energy model as a function of unconstrained variables: Gautier and Khalil 1992, section 4.

A row of the energy model is the difference of two states, ``W_i = h(q, v)_{i+1} - h(q, v)_i``, so a sequence of ``r + 1`` points gives
``r`` rows and every point is used twice. The points minimise

    f = lambda_1 cond(W) + lambda_2 S,        S = max |W_ij| / min |W_ij|                                  (18, 19)

free of constraints after the change of variables ``q = q_I + (q_F - q_I) sin^2 x``, ``v = v_M sin x`` (4.2), started from normal random
numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize

from dynid.arrays import Array, BoolArray
from dynid.dynamics.inverse_dynamics import random_states
from dynid.dynamics.regressors import energy_regressor
from dynid.excitation.criteria import Criterion, Mix, PivotedCondition, Scaling, SpectralCriterion
from dynid.excitation.gradient import energy_gradient
from dynid.excitation.limits import Limits
from dynid.excitation.points_work import PointsWork
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction

Measure: TypeAlias = Literal["singular", "pivoted", "frobenius"]
MEASURES: tuple[Measure, ...] = ("singular", "pivoted", "frobenius")

POWERS = (2.0, 8.0, 64.0)
"""Powers of the norms that stand for the largest and smallest of many values, ever sharper."""

SHARE_OF_SCALING = 0.3
"""Weight of ``log S`` beside ``log cond``: about that of ``0.02 S`` beside ``cond`` at the published optimum, 0.02 x 175 / 11."""

SHORT_SEARCH = 150
"""Steps of each stage that are enough for short sequences, and for a sketch of long ones."""


def energy_rows_of(robot: Robot, base: BaseReduction, q: ArrayLike, v: ArrayLike) -> Array:
    """``W``: differences of the base energy regressor between successive points."""
    h = _energy_columns(robot, np.asarray(q, dtype=np.float64), np.asarray(v, dtype=np.float64))
    b = h[:, base.independent] if base.independent is not None else h @ base.lift
    return np.diff(b, axis=0)


@dataclass(frozen=True, eq=False)
class PointsProblem:
    """Criterion of ``r + 1`` points as a function of unconstrained variables."""

    robot: Robot
    base: BaseReduction
    limits: Limits
    free: BoolArray
    """Joints whose position matters."""
    rows: int
    share: tuple[float, float]
    stages: tuple[Criterion, ...]
    iterations: int
    seed: int
    deadline: float
    times: Callable[[Array, Array], Array] | None = None
    """Time between successive points, s, where effects do work on the way; None where energy says all."""
    work: PointsWork | None = None
    """The work of effects at the times of a stage."""

    def __call__(self, item: tuple[int, int]) -> Array:
        """Optimal variables of one start."""
        return self._through(item, self.stages, self.iterations)

    def sketch(self, item: tuple[int, int]) -> Array:
        """The same start after its first stages only."""
        return self._through(item, self.stages[:2], min(self.iterations, SHORT_SEARCH))

    def _through(self, item: tuple[int, int], stages: tuple[Criterion, ...], iterations: int) -> Array:
        n_variables = (self.rows + 1) * (int(self.free.sum()) + self.robot.n_joints)
        x = np.random.default_rng([self.seed, *item, 0]).normal(size=n_variables)
        for number, criterion in enumerate(stages):
            if number > 0 and monotonic() > self.deadline:
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
        q = np.tile(self.limits.centre, (self.rows + 1, 1))
        q[:, self.free] += self.share[0] * self.limits.reach[self.free] * (2.0 * np.sin(X[:, :k]) ** 2 - 1.0)
        return q, self.share[1] * self.limits.velocity * np.sin(X[:, k:])

    def timed(self, x: Array) -> PointsProblem:
        """The same problem with the times between these points held: they change with the points too, but from stage to stage."""
        if self.times is None:
            return self
        u = self.times(*self.points(x))
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
        gradient[:, k:] = v_bar * self.share[1] * self.limits.velocity * np.cos(X[:, k:])
        return value, gradient.ravel()

    def _judged(self, q: Array, v: Array, criterion: Criterion) -> tuple[float, Array, Array]:
        """Criterion of points and its derivatives by their positions and velocities."""
        n, columns = self.robot.parameters.n_inertial, self.base.independent
        if self.work is not None:
            h = np.diff(energy_regressor(self.robot, q, v), axis=0)
            W = np.hstack([h, self.work.columns(q, v)])
            value, slope = criterion.of_regressor(W[:, columns] if columns is not None else W @ self.base.lift)
            G = slope @ self.base.lift.T if columns is None else np.zeros_like(W)
            if columns is not None:
                G[:, columns] = slope
            by_h = np.zeros((len(q), n))
            by_h[1:] += G[:, :n]
            by_h[:-1] -= G[:, :n]
            q_bar, v_bar = energy_gradient(self.robot, q, v, by_h)
            more = self.work.gradient(q, v, G[:, n:])
            return value, q_bar + more[0], v_bar + more[1]
        h = _energy_columns(self.robot, q, v)
        b = h[:, columns] if columns is not None else h @ self.base.lift
        value, slope = criterion.of_regressor(np.diff(b, axis=0))
        by_base = np.zeros_like(b)
        by_base[1:] += slope
        by_base[:-1] -= slope
        G = by_base @ self.base.lift.T if columns is None else np.zeros_like(h)
        if columns is not None:
            G[:, columns] = by_base
        q_bar, v_bar = energy_gradient(self.robot, q, v, G[:, :n])
        if G.shape[1] > n:
            v_bar += G[:, n:] * v
        return value, q_bar, v_bar


def points_stages(lambda1: float, lambda2: float, measure: Measure) -> tuple[Criterion, ...]:
    """Criteria of a search one after another: log-determinant with a ridge, the condition number ever sharper, then with the scaling.

    The last one is ``lambda_1 cond + lambda_2 S``. ``S`` is as large as 1e12 where the condition number alone was made small, because
    some entries pass through zero; logarithms of both bring it down before the sum itself is minimised.
    """
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


def _energy_columns(robot: Robot, q: Array, v: Array) -> Array:
    """Energy regressor with the columns ``v^2 / 2`` of rotor inertias."""
    h = energy_regressor(robot, q, v)
    return np.hstack([h, 0.5 * v**2]) if robot.effects else h


def positions_that_matter(robot: Robot) -> BoolArray:
    """Joints whose position changes the energy of some state."""
    q, v, _, _ = random_states(robot, 40)
    rng = np.random.default_rng(0)
    change, _ = energy_gradient(robot, q, v, rng.normal(size=(len(q), robot.parameters.n_inertial)))
    size = np.abs(change).max(axis=0)
    return np.asarray(size > 1e-9 * size.max())
