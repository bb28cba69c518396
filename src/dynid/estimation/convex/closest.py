"""Which feasible base values are nearest? (Sousa and Cortesao 2014, 4.3: BPFC)

    minimise || beta - K phi ||   over consistent phi, in the base metric of the paper or in torque

The nearest values often belong to no finite body: they are approached as a mass that no motion shows grows. The answer is
therefore given from both sides: bodies of finite size from above, whose base values are returned, and a lower bound that no
bodies can beat, proven by multipliers in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, freeze
from dynid.estimation.constraints.constraints import Constraint
from dynid.estimation.convex.asked import Asked, reference_point, with_exact_base
from dynid.estimation.convex.conic import deepest_in
from dynid.estimation.convex.consistent_set import MARGIN, ConsistentSet
from dynid.estimation.convex.metrics import Metric, metric_root
from dynid.estimation.convex.multipliers import blamed
from dynid.estimation.convex.nearest import Below, Nearest, nearest
from dynid.estimation.convex.question import Question
from dynid.estimation.outcome import Outcome
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.robot.model import Robot

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

    ``metric="base"`` is the paper's Euclidean distance, which depends on the grouping; ``metric="torque"`` the root mean
    square torque on random states within the limits of ``robot`` (without it, on those of the reduction), which does not.
    ``gram`` gives any other quadratic metric ``G`` of base values instead, ``distance^2 = d^T G d``.
    """
    asked = Asked.of(base, beta, prior, robot, condition, constraints, margin, absolute, effects_positive)
    consistent = asked.consistent()
    root = metric_root(base, metric, robot, gram)
    question = asked.question(consistent, root)
    here = reference_point(question)
    if consistent.contains(here):
        return _unchanged(asked, consistent, here, question)
    below = Below.of(question)
    if below.bound()[1] == 0.0:
        inside = below.point()
        exact = None if inside is None else with_exact_base(question, consistent, inside)
        if exact is not None:
            return _unchanged(asked, consistent, exact, question)
    found = nearest(question, below)
    if found.x is None:
        return _nothing_found(asked, consistent, found)
    standard, bodies = asked.named(consistent, found.x)
    corrected = base.base_values(standard)
    distance = float(np.linalg.norm(root @ (corrected - asked.values)))
    result = ClosestFeasible(
        freeze(corrected),
        distance,
        standard,
        bodies,
        feasible_before=False,
        outcome=Outcome.SOLVED,
        lower_bound=min(found.lower_bound, distance),
        largest=found.largest,
        length=question.length,
    )
    if result.gap <= GAP:
        return result
    note = f"the distance found is {distance:.6g}, proven is that none is below {result.lower_bound:.6g}"
    return replace(result, outcome=Outcome.STALLED, notes=(note,))


def _unchanged(asked: Asked, consistent: ConsistentSet, x: Array, question: Question) -> ClosestFeasible:
    return ClosestFeasible(
        freeze(asked.values),
        0.0,
        *asked.named(consistent, x),
        feasible_before=True,
        outcome=Outcome.SOLVED,
        length=question.length,
    )


def _nothing_found(asked: Asked, consistent: ConsistentSet, found: Nearest) -> ClosestFeasible:
    """Constraints that contradict one another, or a search that failed."""
    best = deepest_in(consistent)
    contradictory = best.verdict == "infeasible" or best.depth < 0.0
    notes = tuple(f"cannot hold together with the rest: {label}" for label in blamed(consistent, best.dual)[:4])
    return ClosestFeasible(
        freeze(asked.values),
        float("nan"),
        None,
        None,
        feasible_before=False,
        outcome=Outcome.INFEASIBLE if contradictory else Outcome.STALLED,
        notes=notes if contradictory else (f"no consistent bodies were found; none is nearer than {found.lower_bound:.6g}",),
        lower_bound=found.lower_bound,
    )
