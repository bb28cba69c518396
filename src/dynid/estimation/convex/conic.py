"""Convex programs over a consistent set, by the conic solver: the best fit, the nearest point, the point deepest inside."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sparse

from dynid.adapters.clarabel import Cone, ConicSolution, Verdict, solve_conic
from dynid.arrays import Array, IntArray, freeze
from dynid.estimation.convex.consistent_set import MARGIN, ON_BOUNDARY, ConsistentSet, onto_equalities, unit_body
from dynid.estimation.convex.entropy import EntropicPrior, entropic_divergence, entropic_hessian, with_entropy
from dynid.estimation.convex.multipliers import REACH, blamed, combined, least_distance

__all__ = [
    "MARGIN",
    "ON_BOUNDARY",
    "REACH",
    "ConicFit",
    "ConsistentSet",
    "Deepest",
    "EntropicPrior",
    "blamed",
    "combined",
    "deepest_in",
    "entropic_divergence",
    "entropic_hessian",
    "fit_in",
    "least_distance",
    "nearest_in",
    "onto_equalities",
    "unit_body",
]

CLEARLY = 5.0
"""Standard deviations from a bound at which a parameter counts as far from it."""


@dataclass(frozen=True, eq=False)
class ConicFit:
    """The best point of the set, verified."""

    verdict: Verdict
    x: Array
    """Scaled parameters."""
    value: float
    """``1/2 ||F (x - centre)||^2`` at ``x``, without pull and prior."""
    slack: float
    """Smallest slack of all cones after the push; negative only where a constraint cannot hold."""
    moved: float
    """How far the push moved the solver's answer, scaled."""
    solution: ConicSolution

    @property
    def usable(self) -> bool:
        return self.solution.usable and self.slack >= -1e-6


def fit_in(
    consistent: ConsistentSet,
    F: Array,
    centre: Array,
    *,
    pull: float | Array = 0.0,
    entropic: EntropicPrior | None = None,
    equalities: tuple[Array, Array] | None = None,
    freedom: float | None = None,
    tolerance: float = 1e-8,
) -> ConicFit:
    """``minimise 1/2 ||F (x - centre)||^2 + 1/2 pull ||x - centre||^2 + entropic prior`` over the set.

    ``equalities = (E, e)`` adds ``E x = e``. ``F`` should be scaled so that a value of one matters. ``freedom`` says that
    ``x`` is known to ``(F^T F)^-1 / freedom``: parameters far from their bound are then left out of the program.
    """
    n = consistent.n
    P = F.T @ F
    P[np.diag_indices(n)] += pull
    if freedom is not None and entropic is None and equalities is None:
        easy = _without_free_variables(consistent, P, centre, freedom, tolerance)
        if easy is not None:
            return _verified(consistent, F, centre, easy)
    # around the centre the linear term vanishes and the value is the very excess, free of cancellation
    M, k = consistent.M, consistent.M @ centre + consistent.k
    cones = list(consistent.cones)
    q = np.zeros(n)
    if equalities is not None:
        E, e = equalities
        M = sparse.vstack([sparse.csc_matrix(E), M], format="csc")
        k = np.concatenate([E @ centre - e, k])
        cones.insert(0, ("zero", len(e)))
    quadratic: Any = P
    if entropic is not None:
        M, k, q, more, extra = with_entropy(consistent, M, k, entropic, centre)
        cones += more
        quadratic = sparse.block_diag([sparse.csc_matrix(np.triu(P)), sparse.csc_matrix((extra, extra))], format="csc")
    solution = solve_conic(quadratic, q, M, k, cones, tolerance=tolerance, quick=freedom is not None and entropic is None)
    return _verified(consistent, F, centre, solution)


def _without_free_variables(
    consistent: ConsistentSet, P: Array, centre: Array, freedom: float, tolerance: float
) -> ConicSolution | None:
    """The same program with the variables eliminated that no constraint will hold; None where there are none.

    Friction and rotor inertia with a comfortable value enter no matrix inequality: ``x_u = -P_uu^-1 P_uv x_v``, and what is
    left is smaller. Their bounds are looked at afterwards, and those that do not hold are put back.
    """
    bounds = consistent.single_bounds
    if not len(bounds):
        return None
    first = consistent.first_matrix_row
    at, column = bounds[:, 0].astype(int), bounds[:, 1].astype(int)
    linear, offset = consistent.M[:first], consistent.k[:first]
    slack = (linear @ centre + offset)[at] / bounds[:, 2]
    loose = slack > CLEARLY * np.sqrt(_conditional_variances(P, column) / freedom)
    for _ in range(len(bounds)):
        found = _eliminated(consistent, P, centre, at[loose], tolerance)
        if found is None or not found.usable:
            return None
        broken = (linear @ (centre + found.x) + offset)[at] < 0.0
        if not (broken & loose).any():
            return found
        loose &= ~broken
    return None


def _conditional_variances(P: Array, columns: IntArray) -> Array:
    """Variances of these variables with all others held."""
    block = P[np.ix_(columns, columns)]
    try:
        inverse = scipy.linalg.cho_solve(scipy.linalg.cho_factor(block), np.eye(len(columns)))
    except np.linalg.LinAlgError:
        return np.full(len(columns), np.inf)  # the data do not see one of them: leave all to the solver
    return np.asarray(np.diag(inverse))


def _eliminated(
    consistent: ConsistentSet, P: Array, centre: Array, dropped: IntArray, tolerance: float
) -> ConicSolution | None:
    """Solve without the dropped rows and without the variables that no other row touches."""
    kept = np.setdiff1d(np.arange(len(consistent.k)), dropped)
    rows = consistent.M.tocsr()[kept].tocsc()
    held = np.diff(rows.indptr) > 0
    if held.all():
        return None
    u, v = np.flatnonzero(~held), np.flatnonzero(held)
    try:
        factor = scipy.linalg.cho_factor(P[np.ix_(u, u)])
    except np.linalg.LinAlgError:
        return None
    follow = -scipy.linalg.cho_solve(factor, P[np.ix_(u, v)])
    smaller = P[np.ix_(v, v)] + P[np.ix_(v, u)] @ follow
    cones: list[Cone] = []
    for cone, start, stop in zip(consistent.cones, consistent.starts[:-1], consistent.starts[1:], strict=True):
        left = int(np.count_nonzero((kept >= start) & (kept < stop)))
        if left:
            cones.append(cone if left == stop - start else (cone[0], left))
    k = (consistent.M @ centre + consistent.k)[kept]
    found = solve_conic(0.5 * (smaller + smaller.T), np.zeros(len(v)), rows[:, v], k, cones, tolerance=tolerance, quick=True)
    step = np.zeros(consistent.n)
    step[v] = found.x
    step[u] = follow @ found.x
    return replace(found, x=freeze(step))


def _verified(consistent: ConsistentSet, F: Array, centre: Array, solution: ConicSolution) -> ConicFit:
    step = solution.x[: consistent.n]
    if not solution.usable or solution.verdict in ("infeasible", "unbounded"):
        return ConicFit(solution.verdict, centre, float("nan"), -np.inf, 0.0, solution)
    x, moved = consistent.pushed(centre + step)
    slack = float(consistent.slacks(x).min())
    excess = F @ (x - centre)
    return ConicFit(solution.verdict, freeze(x), 0.5 * float(excess @ excess), slack, moved, solution)


def nearest_in(consistent: ConsistentSet, G: Array, centre: Array, *, pull: float) -> ConicFit:
    """Nearest point in the metric ``||G (x - centre)||``; asked again where the first guess of its size was far off."""
    size = max(float(np.linalg.norm(G @ centre)), 1e-12)
    scale = 1e-3 * size
    best, distance = fit_in(consistent, G / scale, centre, pull=pull, tolerance=1e-9), np.inf
    fit = best
    for _ in range(8):
        found = float(np.sqrt(2.0 * fit.value)) if fit.usable else np.inf
        solved = fit.verdict == "solved"
        if (solved, -found * scale) > (best.verdict == "solved", -distance):
            best, distance = fit, found * scale
        if not np.isfinite(found) or 0.1 < found < 10.0 or distance < 1e-9 * size:
            break
        # between the guess and what it led to: a poor answer must not throw the next guess far off
        scale *= float(np.clip(found, 1e-2, 1e2))
        fit = fit_in(consistent, G / scale, centre, pull=pull, tolerance=1e-9)
    return best


@dataclass(frozen=True, eq=False)
class Deepest:
    """The point furthest inside all conditions, and the multipliers that prove there is none further."""

    verdict: Verdict
    depth: float
    """Common slack beyond what the conditions ask for, scaled; negative if they cannot hold together."""
    x: Array
    dual: Array
    """Multipliers of the cones' rows."""
    equality_dual: Array
    """Multipliers of ``E x = e``."""
    gap: float
    status: str


def deepest_in(
    consistent: ConsistentSet,
    equalities: tuple[Array, Array] | None = None,
    *,
    reference: Array | None = None,
    cap: float = 1.0,
    pull: float = 1e-13,
    tolerance: float = 1e-10,
) -> Deepest:
    """``maximise t`` subject to ``M x + k - t unit`` in the cones, ``E x = e`` and ``t <= cap``.

    Always solvable unless equalities contradict one another. A weak pull towards ``reference`` keeps parameters that nothing
    bounds from running away.
    """
    n = consistent.n
    E, e = equalities if equalities is not None else (np.zeros((0, n)), np.zeros(0))
    centre = np.zeros(n) if reference is None else reference
    unit = consistent.inward
    M = sparse.bmat(
        [
            [sparse.csc_matrix(E), None],
            [consistent.M, sparse.csc_matrix(-unit[:, None])],
            [None, sparse.csc_matrix([[-1.0]])],
        ],
        format="csc",
    )
    k = np.concatenate([E @ centre - e, consistent.M @ centre + consistent.k, [cap]])
    cones: list[Cone] = [*consistent.cones, ("nonnegative", 1)]
    if len(e):
        cones.insert(0, ("zero", len(e)))
    P = sparse.diags(np.append(np.full(n, pull), 0.0), format="csc")
    q = np.append(np.zeros(n), -1.0)
    solution = solve_conic(P, q, M, k, cones, tolerance=tolerance)
    x = centre + solution.x[:n]
    rows = len(consistent.k)
    dual = solution.dual[len(e) : len(e) + rows]
    if solution.verdict == "infeasible" or not np.isfinite(x).all():
        return Deepest("infeasible", -np.inf, centre, dual, solution.dual[: len(e)], solution.gap, solution.status)
    return Deepest(
        solution.verdict, float(solution.x[n]), freeze(x), dual, solution.dual[: len(e)], solution.gap, solution.status
    )
