"""Which feasible base values are nearest? (Sousa and Cortesao 2014, 4.3: BPFC)

    minimise || beta - K phi ||   over consistent phi, in the base metric of the paper or in torque

The nearest values often belong to no finite body: they are approached as a mass that no motion shows grows. The answer is
therefore given from both sides: bodies of finite size from above, whose base values are returned, and a lower bound that no
bodies can beat, proven by multipliers in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_shape, freeze
from dynid.dynamics.inverse_dynamics import random_states_within_limits
from dynid.dynamics.regressors import torque_regressor
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.consistency.consistent_set import MARGIN, cannot_hold
from dynid.estimation.consistency.nearest_feasible import (
    DualBound,
    NearestFeasible,
    NearestFeasibleProblem,
    nearest_feasible,
)
from dynid.estimation.consistency.solve import max_margin_point
from dynid.estimation.constraints.base import Constraint
from dynid.estimation.result import Outcome
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction

Metric = Literal["base", "torque"]
METRICS: tuple[Metric, ...] = ("base", "torque")
GAP = 1e-6
"""Relative gap up to which the nearest values count as found."""


@dataclass(frozen=True, eq=False)
class ClosestFeasible:
    """The feasible base values nearest to given ones."""

    base: Array
    distance: float
    """In the metric asked for: norm of the base values' change, or root mean square of the torque's, N m."""
    standard: Parameters | Array | None
    """Consistent parameters with the values in ``base``: they prove that these are feasible."""
    bodies: Array | None
    feasible_before: bool
    outcome: Outcome
    notes: tuple[str, ...] = ()
    lower_bound: float = 0.0
    """No feasible base values are nearer than this; see ``largest``."""
    largest: float = float("inf")
    """Size of all bodies together, in sizes of a link, up to which the lower bound is proven."""
    length: float = float("nan")
    """Of the base values given, in the metric."""

    @property
    def gap(self) -> float:
        """How much nearer the nearest values can be, relative to the length of those given, or to the distance if that is more."""
        return (self.distance - self.lower_bound) / max(self.length, self.distance) if self.distance > 0.0 else 0.0


def closest_feasible(
    base: BaseReduction,
    beta: ArrayLike,
    condition: str = "full",
    metric: Metric = "base",
    constraints: Iterable[Constraint] = (),
    margin: float = MARGIN,
    *,
    absolute: bool = False,
    prior: Parameters | None = None,
    robot: Robot | None = None,
    gram: ArrayLike | None = None,
    effects_positive: bool = True,
) -> ClosestFeasible:
    """The feasible base values nearest to ``beta`` (BPFC).

    Args:
        base: the base parameters.
        beta: their values ``(base,)``, SI units.
        condition: as for :func:`~dynid.estimation.consistency.feasibility.feasibility`; so are ``constraints``, ``margin``,
            ``absolute``, ``prior`` and ``effects_positive``.
        metric: ``base`` for the paper's Euclidean distance, which depends on the grouping, or ``torque`` for the root mean
            square torque at random states within the limits of ``robot`` (without it, at those of the reduction), which does not.
        constraints: what else is known of the links.
        margin: smallest eigenvalue asked of every link.
        absolute: take the margin in SI units.
        prior: sizes of the links.
        robot: where the torque metric is taken.
        gram: any other quadratic metric ``G``, ``distance^2 = d^T G d``, ``(base, base)``.
        effects_positive: friction and rotor inertia that cannot be negative are zero or more.

    Returns:
        the nearest values ``.base`` ``(base,)``, their ``.distance``, a ``.lower_bound`` that none is nearer than, and the outcome.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot(effects="none")
        >>> base = dynid.reduce_to_base(robot)
        >>> beta = base.base_values(robot.parameters.values)
        >>> dynid.closest_feasible(base, beta).distance < 1e-9
        True
    """
    root = metric_root(base, metric, robot, gram)
    problem = NearestFeasibleProblem.of(
        base,
        beta,
        condition=condition,
        constraints=constraints,
        margin=margin,
        absolute=absolute,
        prior=prior,
        robot=robot,
        effects_positive=effects_positive,
        R=root,
    )
    if problem.consistent.contains(problem.reference):
        return _unchanged(problem, problem.reference)
    below = DualBound.of(problem)
    if below.bound()[1] == 0.0:
        inside = below.point()
        exact = None if inside is None else problem.exact_point(inside)
        if exact is not None:
            return _unchanged(problem, exact)
    found = nearest_feasible(problem, below)
    if found.x is None:
        return _nothing_found(problem, found)
    standard, bodies = problem.parameters(found.x)
    corrected = base.base_values(standard)
    distance = float(np.linalg.norm(root @ (corrected - problem.beta)))
    result = ClosestFeasible(
        freeze(corrected),
        distance,
        standard,
        bodies,
        feasible_before=False,
        outcome=Outcome.SOLVED,
        lower_bound=min(found.lower_bound, distance),
        largest=found.largest,
        length=problem.length,
    )
    if result.gap <= GAP:
        return result
    note = f"the distance found is {distance:.6g}, proven is that none is below {result.lower_bound:.6g}"
    return replace(result, outcome=Outcome.STALLED, notes=(note,))


def _unchanged(problem: NearestFeasibleProblem, x: Array) -> ClosestFeasible:
    return ClosestFeasible(
        freeze(problem.beta),
        0.0,
        *problem.parameters(x),
        feasible_before=True,
        outcome=Outcome.SOLVED,
        length=problem.length,
    )


def _nothing_found(problem: NearestFeasibleProblem, found: NearestFeasible) -> ClosestFeasible:
    """Constraints that contradict one another, or a search that failed."""
    best = max_margin_point(problem.consistent)
    contradictory = best.verdict == "infeasible" or best.slack < 0.0
    notes = cannot_hold(problem.consistent.active_constraints(best.dual)[:4])
    return ClosestFeasible(
        freeze(problem.beta),
        float("nan"),
        None,
        None,
        feasible_before=False,
        outcome=Outcome.INFEASIBLE if contradictory else Outcome.STALLED,
        notes=notes if contradictory else (f"no consistent bodies were found; none is nearer than {found.lower_bound:.6g}",),
        lower_bound=found.lower_bound,
    )


def torque_metric(robot: Robot, base: BaseReduction, n_states: int | None = None, seed: int = 0) -> Array:
    """``R`` with ``||R beta||`` the root mean square torque of base values on random states within the robot's limits."""
    count = n_states or 3 * base.n_base // robot.n_dof + 200
    q, v, a = random_states_within_limits(robot, count, seed)
    W = torque_regressor(robot, q, v, a, np.zeros_like(a)).reshape(-1, base.n_parameters) @ base.lift
    return np.asarray(np.linalg.qr(W, mode="r") / np.sqrt(len(W)))


def metric_root(base: BaseReduction, metric: str, robot: Robot | None, gram: ArrayLike | None) -> Array:
    """``R`` with ``||R d||`` the length of a change of base values."""
    if metric not in METRICS:
        raise UnknownNameError("metric", metric, METRICS)
    if gram is not None:
        G = np.asarray(gram, dtype=np.float64)
        check_shape("gram", G, (base.n_base, base.n_base))
        eigenvalues, vectors = np.linalg.eigh(0.5 * (G + G.T))
        if eigenvalues[0] < -1e-12 * abs(eigenvalues[-1]):
            raise InputError(f"gram has the eigenvalue {eigenvalues[0]:.3g}, expected none below zero")
        return np.asarray(np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * vectors.T)
    if metric == "base":
        return np.eye(base.n_base)
    if robot is None:
        if base.gram is not None:
            return metric_root(base, metric, None, base.gram)
        raise InputError("the torque metric needs robot= (its random states) or gram= (the metric itself), neither is given")
    return torque_metric(robot, base)
