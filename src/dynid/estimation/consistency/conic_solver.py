"""Clarabel: conic programs given as sparse matrices.

    minimise 1/2 x^T P x + q^T x   subject to   M x + k in K,   K a product of cones

Rows of a positive semidefinite cone hold the upper triangle column by column, with off-diagonal entries times
``sqrt(2)``, so that inner products are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.sparse as sparse

from dynid.arrays import Array, IntArray, freeze

Cone: TypeAlias = tuple[Literal["zero", "nonnegative", "second_order", "semidefinite"], int]
"""A kind and its size: rows, or the side of a semidefinite matrix."""

SolverVerdict: TypeAlias = Literal["solved", "almost", "infeasible", "unbounded", "stalled"]

_VERDICTS: dict[str, SolverVerdict] = {
    "Solved": "solved",
    "AlmostSolved": "almost",
    "PrimalInfeasible": "infeasible",
    "AlmostPrimalInfeasible": "infeasible",
    "DualInfeasible": "unbounded",
    "AlmostDualInfeasible": "unbounded",
}
ACCURATE = 1e-7
"""Relative gap and residuals up to which an answer counts as solved though the solver stopped short of its tolerance."""
PANICKED = "Panicked"
"""Status where the solver broke off by an error of its own, which it prints; there is no answer then."""
SUPERNODAL_FROM = 150
"""Variables from which the supernodal factorisation is faster than the simple one."""


@dataclass(frozen=True, eq=False)
class ConicSolution:
    """What the solver found and how it says it ended; over a consistent set, verified, see :mod:`dynid.estimation.consistency.solve`."""

    verdict: SolverVerdict
    x: Array
    dual: Array
    """Multipliers of the rows, in the dual cone; a certificate of infeasibility when that is the verdict."""
    objective: float
    gap: float
    """Primal less dual objective."""
    iterations: int
    seconds: float
    status: str
    """The solver's own word."""
    slack: float = np.inf
    """Smallest slack of all cones at ``x``; of the point furthest inside the slack that they have in common. Negative where the
    conditions cannot hold together."""
    moved: float = 0.0
    """How far the solver's answer was pushed to be inside, scaled."""

    @property
    def usable(self) -> bool:
        ended = self.verdict in ("solved", "almost") or (self.verdict == "stalled" and bool(np.isfinite(self.x).all()))
        return ended and self.slack >= -1e-6


def cone_rows(cone: Cone) -> int:
    """How many rows a cone takes."""
    kind, size = cone
    return size * (size + 1) // 2 if kind == "semidefinite" else size


@cache
def triangle_entries(side: int) -> tuple[IntArray, IntArray, Array]:
    """Row, column and weight of the entries of a symmetric matrix in the order of a semidefinite cone's rows."""
    column, row = np.tril_indices(side)
    weight = np.where(row == column, 1.0, np.sqrt(2.0))
    return freeze(row, np.int64), freeze(column, np.int64), freeze(weight)


def matrix_from_rows(rows: Array, side: int) -> Array:
    """Symmetric matrices of a semidefinite cone's rows, ``(..., rows)`` to ``(..., side, side)``."""
    row, column, weight = triangle_entries(side)
    matrix = np.empty((*rows.shape[:-1], side, side))
    matrix[..., row, column] = rows / weight
    matrix[..., column, row] = rows / weight
    return matrix


def upper_triangle(P: Array) -> Any:
    """Upper triangle of a dense symmetric matrix as a sparse one by columns, all entries kept."""
    n = len(P)
    column, row = np.tril_indices(n)
    start = np.concatenate([[0], np.cumsum(np.arange(1, n + 1))])
    return sparse.csc_matrix((P[row, column], row, start), shape=(n, n))


def solve_conic(
    P: Array | Any,
    q: Array,
    M: Any,
    k: Array,
    cones: Sequence[Cone],
    *,
    tolerance: float = 1e-9,
    max_iterations: int = 200,
    quick: bool = False,
) -> ConicSolution:
    """Solve; ``P`` dense symmetric, or sparse with its upper triangle, ``M`` sparse; all entries of about the size of one.

    ``quick`` first tries without iterative refinement, which well-scaled problems do not need.
    """
    if quick:
        found = _solve(P, q, M, k, cones, tolerance, max_iterations, refine=False)
        if found.verdict == "solved":
            return found
    return _solve(P, q, M, k, cones, tolerance, max_iterations, refine=True)


def _solve(
    P: Array | Any,
    q: Array,
    M: Any,
    k: Array,
    cones: Sequence[Cone],
    tolerance: float,
    max_iterations: int,
    refine: bool,
) -> ConicSolution:
    import clarabel

    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.max_iter = max_iterations
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    settings.equilibrate_enable = False  # the problems come scaled
    if not refine:
        settings.iterative_refinement_enable = False
        settings.static_regularization_constant = 1e-10
    settings.presolve_enable = False
    # blocks are 4x4 or 6x6 and dense: there is nothing to decompose
    settings.chordal_decomposition_enable = False
    settings.direct_solve_method = "faer" if len(q) > SUPERNODAL_FROM else "qdldl"
    kinds = {
        "zero": clarabel.ZeroConeT,
        "nonnegative": clarabel.NonnegativeConeT,
        "second_order": clarabel.SecondOrderConeT,
        "semidefinite": clarabel.PSDTriangleConeT,
    }
    quadratic = upper_triangle(P) if isinstance(P, np.ndarray) else sparse.csc_matrix(P)
    solver = clarabel.DefaultSolver(
        quadratic, q, sparse.csc_matrix(-M), k, [kinds[kind](size) for kind, size in cones], settings
    )
    try:
        found = solver.solve()
    except BaseException as broken:  # the solver's panic is no Exception; it has no class that could be imported
        if type(broken).__name__ != "PanicException":
            raise
        nothing = freeze(np.full(len(q), np.nan))
        return ConicSolution("stalled", nothing, freeze(np.full(len(k), np.nan)), np.nan, np.inf, 0, 0.0, PANICKED)
    status = str(found.status)
    verdict = _VERDICTS.get(status, "stalled")
    gap = abs(float(found.obj_val) - float(found.obj_val_dual))
    if verdict in ("almost", "stalled"):
        error = max(gap / max(1.0, abs(float(found.obj_val))), float(found.r_prim), float(found.r_dual))
        verdict = "solved" if error <= ACCURATE else verdict
    return ConicSolution(
        verdict=verdict,
        x=freeze(found.x),
        dual=freeze(found.z),
        objective=float(found.obj_val),
        gap=gap,
        iterations=int(found.iterations),
        seconds=float(found.solve_time),
        status=status,
    )
