"""The retrieval of feasible parameters as one problem: a cost, a convex set, conditions that are not convex.

    minimise  || G (x - x_c) ||^2 + floor     over  x in the consistent set,  h_i(x) <= 0

in scaled parameters ``x = phi / D``. The cost is ``|| pi(p) - pi_hat ||^2`` (Gaz and others 2019, 29), that weighted by the
coefficients' covariance, or the one-step ``|| Y pi(p) - tau ||^2`` (supplement, II) on its triangle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array
from dynid.estimation.constraints.bounds import Bounds
from dynid.estimation.constraints.conditions import Condition
from dynid.estimation.convex.conic import ON_BOUNDARY, ConsistentSet, deepest_in, least_distance, nearest_in

PULLS = (1e-13, 1e-11, 1e-9)
"""Weights of the pull that holds parameters nothing bounds, the weakest first that the solver copes with."""
PULLS_TO_PRIOR = (1e-9, 1e-8, 1e-7)
"""The same where a prior says where to start and how large things are."""
PULLS_OF_DATA = (1e-6, 1e-5, 1e-4)
"""The same where the cost is a fit to noisy data, so that what noise hides does not make masses grow without end."""
WEAKER_PULLS = (1e-8, 1e-10, 1e-12)
"""Pulls whose multipliers are asked for a better lower bound where the first leave a gap."""
SMALL_GAP = 1e-4
"""Gap, relative to the cost, at which a lower bound is good enough."""


class Interrupted(KeyboardInterrupt):
    """An interrupt of a search that has something to show."""

    def __init__(self, best: Any) -> None:
        super().__init__()
        self.best = best
        """The best it had so far, of the kind that it would have returned."""


@dataclass(frozen=True, eq=False)
class RetrievalProblem:
    """Cost, convex set and conditions."""

    consistent: ConsistentSet
    G: Array
    centre: Array
    """An unconstrained minimiser of the cost, scaled."""
    floor: float
    """The cost there."""
    E: Array
    """``E x``: the base values that the cost looks at."""
    conditions: tuple[Condition, ...]
    bounds: Bounds
    pulls: tuple[float, ...] = PULLS

    def cost(self, x: Array) -> float:
        residual = self.G @ (x - self.centre)
        return self.floor + float(residual @ residual)

    def phi(self, x: Array) -> Array:
        return np.asarray(self.consistent.scale * x)

    def condition_values(self, x: Array) -> list[Array]:
        """Violations of every condition, negative where it holds."""
        phi = self.phi(x)
        return [condition.values(self.consistent.layout, phi) for condition in self.conditions]

    def linearised(self, x: Array) -> tuple[Array, Array, tuple[bool, ...]]:
        """Values and Jacobians of all conditions over scaled parameters, and which of them are exact."""
        layout, D, phi = self.consistent.layout, self.consistent.scale, self.phi(x)
        parts = [condition.derivative(layout, phi, D) for condition in self.conditions]
        h = np.concatenate([part[0] for part in parts]) if parts else np.zeros(0)
        J = np.vstack([part[1] for part in parts]) * D if parts else np.zeros((0, self.consistent.n))
        return h, J, tuple(part[2] for part in parts)

    def violations(self, x: Array) -> dict[str, float]:
        """What does not hold at ``x``, by name; equalities to round-off, everything else exactly."""
        found = {}
        cones = zip(self.consistent.labels, self.consistent.cones, self.consistent.slacks(x), strict=True)
        for label, (kind, _), slack in cones:
            if slack < (-ON_BOUNDARY if kind == "zero" else 0.0):
                found[label] = float(-slack)
        for condition, values in zip(self.conditions, self.condition_values(x), strict=True):
            if values.max(initial=-np.inf) > 0.0:
                found[condition.name] = float(values.max())
        fixed = {name for name, (lower, upper) in self.bounds.limits.items() if lower == upper}
        for name, outside in self.bounds.violated(self.consistent.layout, self.phi(x)).items():
            if name not in fixed or outside > ON_BOUNDARY:
                found.setdefault(name, outside)
        return found

    def relaxed(self) -> tuple[Array | None, float, str]:
        """The optimum without conditions, the lower bound it proves, and how the solver ended."""
        if self.consistent.contains(self.centre):
            return self.centre, self.floor, "solved"
        for pull in self.pulls:
            fit = nearest_in(self.consistent, self.G, self.centre, pull=pull)
            if fit.verdict in ("solved", "infeasible"):
                break
        if not fit.usable:
            return None, self.floor, "infeasible" if fit.verdict == "infeasible" else fit.solution.status
        cost = self.cost(fit.x)
        proven = least_distance(self.consistent, self.G, self.centre, fit.solution.dual)
        # the pull is no part of the cost: the weaker it is, the nearer are its multipliers to those of the cost alone
        for weaker in WEAKER_PULLS:
            if cost - self.floor - proven <= SMALL_GAP * cost:
                break
            if weaker < pull:
                other = nearest_in(self.consistent, self.G, self.centre, pull=weaker)
                proven = max(proven, least_distance(self.consistent, self.G, self.centre, other.solution.dual))
        return fit.x, self.floor + min(proven, cost - self.floor), fit.verdict

    def settled(self, x: Array) -> Array:
        """A point next to ``x`` where everything holds exactly, if there is one: on the way to the inside of the set.

        A solver's answer lies on the boundary to its tolerance only. The set is convex, so a step of that size towards a
        point inside it mends all of its conditions together.
        """
        if not self.violations(x):
            return x
        inside = deepest_in(self.consistent, reference=x, cap=1e-2, pull=1e-9)
        if not inside.depth > 0.0:
            return x
        for share in np.logspace(-11, -1, 21):
            moved = x + share * (inside.x - x)
            if not self.violations(moved):
                return np.asarray(moved)
        return x
