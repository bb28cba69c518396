"""Local refinement under conditions that are not convex: a sequence of convex programs with exact Jacobians.

    minimise  1/2 || F (x + d - x_c) ||^2 + mu sum_i s_i     over  (d, s >= 0)
    subject to  x + d in the consistent set,   h_i + grad h_i . d + eps <= s_i,   || d || <= radius

Consistency and every convex constraint hold at each step; the conditions are linearised in a trust region and enter by an
exact penalty, whose weight grows until they hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sparse

from dynid.adapters.clarabel import Cone, solve_conic
from dynid.arrays import Array
from dynid.estimation.convex.conic import fit_in, onto_equalities
from dynid.estimation.retrieval.annealing import phi_from_box
from dynid.estimation.retrieval.problem import Interrupted, RetrievalProblem

INSIDE = 1e-7
"""How far inside its conditions a step aims, so that they hold exactly afterwards."""
MOST_WEIGHT = 1e8
SMALLEST_RADIUS = 1e-10
NEARLY_ACTIVE = 1e-2
"""How far inside a condition its linearisation is still worth remembering."""
MOST_CUTS = 40
KEPT_CUTS = 2
"""Linearisations of each condition that serve from however far."""
ITERATIONS = 60
"""Most steps of each descent."""


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
    """The local optimum near a start inside the convex set; with ``equalities`` the nearest point to it that has them.

    First the nearest point where the conditions hold, whose cost says what a change of one is; from there the optimum. An
    interrupt on that way carries the nearest point.
    """
    n = problem.consistent.n
    cuts = _Cuts()
    nearest = _descend(problem, _Objective(np.zeros((0, n)), np.array(start), 1.0), start, cuts, equalities)
    if equalities is not None:
        x = onto_equalities(*equalities, nearest.x)
        return Refined(x, problem.cost(x), problem.violations(x), nearest.iterations, nearest.exact)
    first = _settled(problem, nearest)
    size = max(first.cost - problem.floor, 1e-12 * float(np.sum((problem.G @ problem.centre) ** 2)), 1e-300)
    objective = _Objective(problem.G / np.sqrt(size), problem.centre, problem.pulls[-1])
    try:
        best = _settled(problem, _descend(problem, objective, nearest.x, cuts))
    except KeyboardInterrupt:
        raise Interrupted(first) from None
    chosen = min(first, best, key=lambda found: (bool(found.violations), sum(found.violations.values()), found.cost))
    return replace(chosen, iterations=first.iterations + best.iterations, exact=first.exact and best.exact)


@dataclass(frozen=True, eq=False)
class _Objective:
    """``1/2 ||F (x - centre)||^2 + 1/2 pull ||x - centre||^2``."""

    F: Array
    centre: Array
    pull: float

    def __call__(self, x: Array) -> float:
        residual, step = self.F @ (x - self.centre), x - self.centre
        return 0.5 * float(residual @ residual) + 0.5 * self.pull * float(step @ step)


@dataclass(frozen=True, eq=False)
class _Descended:
    x: Array
    iterations: int
    exact: bool


def _settled(problem: RetrievalProblem, found: _Descended) -> Refined:
    x = problem.settled(found.x)
    return Refined(x, problem.cost(x), problem.violations(x), found.iterations, found.exact)


class _Cuts:
    """Linear models of the conditions: at the point itself, and those met nearby.

    A condition that only says how far it is violated, ``-min(0, alpha)``, is flat where it holds and tells nothing of its
    boundary, and one with an ``if`` has another slope across the kink: there linearisations of nearby points serve on.
    """

    def __init__(self) -> None:
        self._known: list[tuple[Array, int, float, Array]] = []

    def learn(self, x: Array, h: Array, J: Array) -> None:
        sloped = np.flatnonzero(np.abs(J).max(axis=1, initial=0.0) > 0.0)
        self._known += [(x, int(i), float(h[i]), J[i]) for i in sloped if h[i] > -NEARLY_ACTIVE]
        self._known = self._known[-MOST_CUTS:]

    def model(self, x: Array, h: Array, J: Array, radius: float) -> tuple[Array, Array]:
        """Values and slopes of all models; those of other points never say that a condition is violated here."""
        sloped = np.abs(J).max(axis=1, initial=0.0) > 0.0
        values, slopes = list(h[sloped]), list(J[sloped])
        seen = dict.fromkeys(range(len(h)), 0)
        nearest = sorted(self._known, key=lambda cut: float(np.linalg.norm(x - cut[0])))
        for point, i, value, slope in nearest:
            distance = float(np.linalg.norm(x - point))
            seen[i] += distance > 0.0
            if distance > 0.0 and (distance <= 2.0 * radius or seen[i] <= KEPT_CUTS):
                values.append(min(value + float(slope @ (x - point)), h[i], -INSIDE))
                slopes.append(slope)
        return np.array(values), np.array(slopes).reshape(-1, len(x))


def _descend(
    problem: RetrievalProblem,
    objective: _Objective,
    start: Array,
    cuts: _Cuts,
    equalities: tuple[Array, Array] | None = None,
) -> _Descended:
    """Trust-region steps on ``objective + weight * violations``."""
    x, weight, radius, exact = np.array(start), 1e2, 1.0, True
    h, J, exactly = problem.linearised(x)
    cuts.learn(x, h, J)
    iterations = 0
    while iterations < ITERATIONS:
        iterations += 1
        exact = exact and all(exactly)
        now = objective(x) + weight * _violation(h)
        h_model, J_model = cuts.model(x, h, J, radius)
        step = _step(problem, objective, x, h_model, J_model, weight, radius, equalities)
        if step is None:
            radius *= 0.25
            if radius < SMALLEST_RADIUS:
                break
            continue
        moved = x + step
        predicted = now - objective(moved) - weight * _violation(h_model + J_model @ step)
        if predicted <= 1e-8 * max(now, 1e-3):
            if h.max(initial=-1.0) <= 0.0 or weight >= MOST_WEIGHT:
                break
            weight *= 10.0
            continue
        h_moved, J_moved, exactly = problem.linearised(moved)
        cuts.learn(moved, h_moved, J_moved)
        gained = now - objective(moved) - weight * _violation(h_moved)
        if gained > 0.1 * predicted:
            x, h, J = moved, h_moved, J_moved
            if gained > 0.7 * predicted:
                radius = min(2.0 * max(radius, float(np.linalg.norm(step))), 1e3)
        else:
            radius = 0.25 * min(radius, float(np.linalg.norm(step)))
            if radius < SMALLEST_RADIUS:
                break
    return _Descended(x, iterations, exact)


def _violation(h: Array) -> float:
    return float(np.maximum(h + INSIDE, 0.0).sum())


def _step(
    problem: RetrievalProblem,
    objective: _Objective,
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
    near = np.flatnonzero(h + INSIDE + radius * np.linalg.norm(J, axis=1) > 0.0) if len(h) else np.zeros(0, dtype=np.int64)
    m = len(near)
    P = np.zeros((n + m, n + m))
    P[:n, :n] = objective.F.T @ objective.F
    P[np.arange(n), np.arange(n)] += objective.pull
    q = np.concatenate([P[:n, :n] @ (x - objective.centre), np.full(m, weight)])
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
        offsets.append(-(h[near] + INSIDE) / norms)
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
    lower, upper = problem.bounds.box(problem.consistent.layout, problem.consistent.scale)
    p = rng.uniform(lower, upper)
    x = phi_from_box(problem.consistent.layout, p) / problem.consistent.scale
    fit = fit_in(problem.consistent, np.eye(problem.consistent.n), x)
    return np.asarray(fit.x) if fit.usable else None
