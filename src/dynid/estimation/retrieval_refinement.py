"""Local refinement under conditions that are not convex: a sequence of convex programs with exact Jacobians.

    minimise  1/2 || F (x + d - x_c) ||^2 + mu sum_i s_i     over  (d, s >= 0)
    subject to  x + d in the consistent set,   h_i + grad h_i . d + eps <= s_i,   || d || <= radius

Consistency and every convex constraint hold at each step; the conditions are linearised in a trust region and enter by an
exact penalty, whose weight grows until they hold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sparse

from dynid.adapters.clarabel import Cone, solve_conic
from dynid.arrays import Array
from dynid.estimation.conic import ON_BOUNDARY, fit_in, onto_equalities
from dynid.estimation.retrieval_problem import PULL, RetrievalProblem

INSIDE = 1e-7
"""How far inside its conditions a step aims, relative to their size, so that they hold exactly afterwards."""
MOST_WEIGHT = 1e8
ITERATIONS = 80


@dataclass(frozen=True, eq=False)
class Refined:
    """Where a refinement ended."""

    x: Array
    cost: float
    violations: dict[str, float]
    iterations: int
    exact: bool
    """Whether all Jacobians were exact."""

    @property
    def holds(self) -> bool:
        return not self.violations


def refine(problem: RetrievalProblem, start: Array, *, equalities: tuple[Array, Array] | None = None) -> Refined:
    """The local optimum near a start inside the convex set; with ``equalities`` the nearest point to it that has them."""
    n = problem.consistent.n
    size = problem.cost(start) - problem.floor
    unit = float(np.sqrt(max(size, 1e-8 * float(np.sum((problem.G @ problem.centre) ** 2)), 1e-300)))
    F, centre, pull = problem.G / unit, problem.centre, PULL
    if equalities is not None:
        F, centre, pull = np.zeros((0, n)), np.array(start), 1.0
    x, weight, radius, exact = np.array(start), 10.0, 1.0, True
    h, J, _ = problem.linearised(x)
    count = 0

    def objective(point: Array) -> float:
        residual, step = F @ (point - centre), point - centre
        return 0.5 * float(residual @ residual) + 0.5 * pull * float(step @ step)

    def merit(point: Array, values: Array) -> float:
        return objective(point) + weight * float(np.maximum(values + _aim(values), 0.0).sum())

    for count in range(1, ITERATIONS + 1):
        h, J, exactly = problem.linearised(x)
        exact = exact and all(exactly)
        now = merit(x, h)
        step = _step(problem, F, centre, pull, x, h, J, weight, radius, equalities)
        if step is None:
            radius *= 0.25
            if radius < 1e-12:
                break
            continue
        moved = x + step
        predicted = now - objective(moved) - weight * float(np.maximum(h + _aim(h) + J @ step, 0.0).sum())
        if predicted <= 1e-9 * max(now, 1e-3):
            if h.max(initial=-1.0) <= 0.0 or weight >= MOST_WEIGHT:
                break
            weight *= 10.0
            continue
        values = np.concatenate([part for part in problem.condition_values(moved)] or [np.zeros(0)])
        gained = now - merit(moved, values)
        if gained > 0.1 * predicted:
            x = moved
            if gained > 0.7 * predicted:
                radius = min(2.0 * max(radius, float(np.linalg.norm(step))), 1e3)
        else:
            radius = 0.25 * min(radius, float(np.linalg.norm(step)))
            if radius < 1e-12:
                break
    if equalities is not None:
        x = onto_equalities(*equalities, x)
    x = problem.settled(x) if equalities is None else x
    return Refined(x, problem.cost(x), problem.violations(x), count, exact)


def _aim(h: Array) -> float:
    """A little more than what the conditions ask for."""
    return INSIDE * max(1.0, float(np.abs(h).max(initial=0.0)))


def _step(
    problem: RetrievalProblem,
    F: Array,
    centre: Array,
    pull: float,
    x: Array,
    h: Array,
    J: Array,
    weight: float,
    radius: float,
    equalities: tuple[Array, Array] | None,
) -> Array | None:
    """The best step of the linearised problem, None where the solver found none."""
    consistent = problem.consistent
    n = consistent.n
    # only conditions that a step of this radius can reach take part
    near = np.flatnonzero(h + _aim(h) + radius * np.linalg.norm(J, axis=1) > 0.0) if len(h) else np.zeros(0, dtype=np.int64)
    m = len(near)
    P = np.zeros((n + m, n + m))
    P[:n, :n] = F.T @ F
    P[np.arange(n), np.arange(n)] += pull
    q = np.concatenate([P[:n, :n] @ (x - centre), np.full(m, weight)])
    blocks = [sparse.hstack([consistent.M, sparse.csc_matrix((len(consistent.k), m))])]
    offsets = [consistent.M @ x + consistent.k]
    cones: list[Cone] = list(consistent.cones)
    if equalities is not None:
        E, e = equalities
        blocks.insert(0, sparse.hstack([sparse.csc_matrix(E), sparse.csc_matrix((len(e), m))]))
        offsets.insert(0, E @ x - e)
        cones.insert(0, ("zero", len(e)))
    if m:
        # rows scaled to the size of their gradients
        norms = np.maximum(np.linalg.norm(J[near], axis=1), 1e-12)
        blocks.append(sparse.hstack([sparse.csc_matrix(-J[near] / norms[:, None]), sparse.diags(1.0 / norms)]))
        offsets.append(-(h[near] + _aim(h)) / norms)
        blocks.append(sparse.hstack([sparse.csc_matrix((m, n)), sparse.eye(m)]))
        offsets.append(np.zeros(m))
        cones += [("nonnegative", 2 * m)]
    blocks.append(sparse.vstack([sparse.csc_matrix((1, n + m)), sparse.eye(n, n + m)]))
    offsets.append(np.concatenate([[radius], np.zeros(n)]))
    cones.append(("second_order", n + 1))
    found = solve_conic(P, q, sparse.vstack(blocks, format="csc"), np.concatenate(offsets), cones, tolerance=1e-9)
    return np.asarray(found.x[:n]) if found.usable else None


def exact_base(problem: RetrievalProblem, start: Array) -> Refined | None:
    """A feasible point with exactly the unconstrained base values, if one is found: then nothing is better."""
    equalities = (problem.E, problem.E @ problem.centre)
    empty = np.zeros((0, problem.consistent.n))
    near = fit_in(problem.consistent, empty, start, pull=1e-3, equalities=equalities)
    if not near.solution.usable or near.solution.verdict == "infeasible":
        return None
    x = onto_equalities(*equalities, near.x)
    found = refine(problem, x, equalities=equalities)
    if found.holds:
        return found
    return None


def random_start(problem: RetrievalProblem, rng: np.random.Generator) -> Array | None:
    """A point of the convex set nearest to a uniformly random one of the bounds' box."""
    from dynid.estimation.retrieval_annealing import phi_from_box

    lower, upper = problem.bounds.box(problem.consistent.layout, problem.consistent.scale)
    p = rng.uniform(lower, upper)
    x = phi_from_box(problem.consistent.layout, p)[0] / problem.consistent.scale
    fit = fit_in(problem.consistent, np.eye(problem.consistent.n), x)
    return np.asarray(fit.x) if fit.usable else None


__all__ = ["ON_BOUNDARY", "Refined", "exact_base", "random_start", "refine"]
