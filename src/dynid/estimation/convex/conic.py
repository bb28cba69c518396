"""Convex programs over a consistent set, by the conic solver: the best fit, the nearest point, the point deepest inside."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sparse

from dynid.adapters.clarabel import Cone, ConicSolution, Verdict, solve_conic
from dynid.arrays import Array, freeze
from dynid.estimation.convex.block_forms import block_program
from dynid.estimation.convex.compiled_fit import compiled_fit
from dynid.estimation.convex.consistent_set import MARGIN, ON_BOUNDARY, ConsistentSet, onto_equalities, unit_body
from dynid.estimation.convex.entropy import EntropicPrior, entropic_divergence, entropic_hessian, with_entropy
from dynid.estimation.convex.interior_point import interior_point, start_inside
from dynid.estimation.convex.multipliers import REACH, blamed, combined, least_distance
from dynid.estimation.convex.newton_systems import ByRows

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
    if freedom is not None and equalities is None:
        quick = compiled_fit(consistent, P, centre, freedom, entropic)
        if quick is not None:
            found = _verified(consistent, F, centre, quick)
            # a log-determinant keeps links from the boundary, not by a margin
            if entropic is None or found.moved == 0.0:
                return found
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
    if solution.verdict not in ("solved", "infeasible") and freedom is not None and entropic is None and equalities is None:
        solution = _by_rows(consistent, F, centre, pull) or solution
    return _verified(consistent, F, centre, solution)


def _by_rows(consistent: ConsistentSet, F: Array, centre: Array, pull: float | Array) -> ConicSolution | None:
    """The same program solved by its rows, which does not square their condition number; None where that fails too."""
    began = time.perf_counter()
    whole = block_program(consistent)
    program = replace(
        whole,
        constant=whole.blocks(centre),
        bound_offset=whole.bound_offset + whole.bound_slope * centre[whole.bounded],
        g=whole.g + whole.G @ centre,
        a=whole.a - whole.A @ centre,
    )
    pulls = np.broadcast_to(pull, (consistent.n,))
    rows = np.vstack([F, np.diag(np.sqrt(pulls))[pulls > 0.0]])
    system = ByRows(program, rows, np.zeros(len(rows)))
    # where rows this large meet, what is left of the gradient is their round-off: the gap decides
    start = start_inside(program, np.zeros(consistent.n), 1.0)
    found = interior_point(program, system, start, tolerance=1e-8, feasibility=1e-2)
    if found.end != "solved":
        return None
    seconds = time.perf_counter() - began
    value = system.value(found.x)
    return ConicSolution("solved", freeze(found.x), np.zeros(0), value, found.gap, found.iterations, seconds, "Solved")


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
