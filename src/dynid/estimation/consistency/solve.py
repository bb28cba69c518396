"""Convex programs over a consistent set: the best fit, and the point furthest inside.

Which solver a fit takes is decided in :func:`fit_in` alone:

1. The compiled fits, where nothing but consistency and bounds of effects constrains it. Other inequalities are looked at afterwards:
   where they hold, as friction that is passive by itself does, the answer is the same. Variables that no constraint will hold
   (offsets, and friction and rotor inertia far from zero) are eliminated first: ``x_u = -P_uu^-1 P_uv x_v``; what is left has ten
   variables a link. Their bounds are looked at afterwards, and those that do not hold are put back.
2. The conic solver, for everything else without the entropic prior.
3. The interior-point method by rows, which does not square their condition number: with that prior, and where the conic solver fails.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np
import scipy.linalg
import scipy.sparse as sparse

from dynid.arrays import Array, BoolArray, freeze
from dynid.estimation.consistency.block_program import BlockProgram, RowSystem
from dynid.estimation.consistency.conic_solver import Cone, ConicSolution, matrix_from_rows, solve_conic
from dynid.estimation.consistency.consistent_set import BASES, ConsistentSet, unit_body
from dynid.estimation.consistency.fit_kernels import SOLVED, entropic_fit, interior_fit
from dynid.estimation.consistency.interior_point import InteriorSolution, interior_point, start_inside
from dynid.estimation.constraints.base import Layout
from dynid.model.inertia import PSEUDO_BASIS

CLEARLY = 5.0
"""Standard deviations from a bound at which a parameter counts as far from it."""
TOLERANCE = 1e-9
"""Gap, relative to the whole cost, at which the compiled fits end."""
MOST = 60
"""Iterations of a compiled fit."""
STARTS = (1.0, 10.0, 0.01)
"""Sizes of the first multipliers of the fit by rows, tried one after the other until it ends well."""
LEAST_GAP = 1e-3
"""Gap in units of chi-square that no data can tell from none, where data without noise leave hardly any cost to compare it with."""


@dataclass(frozen=True, eq=False)
class EntropicPrior:
    """``weight sum_k [tr(P0^-1 P) - log det(P0^-1 P) - 4]`` around consistent scaled bodies ``x0``."""

    weight: float
    x0: Array


def entropic_divergence(layout: Layout, x: Array, x0: Array) -> float:
    """``sum_k [tr(P0^-1 P) - log det(P0^-1 P) - 4]``; infinite outside the full condition."""
    P = np.einsum("lk,kij->lij", x[layout.slots], PSEUDO_BASIS)
    P0 = np.einsum("lk,kij->lij", x0[layout.slots], PSEUDO_BASIS)
    C = np.linalg.cholesky(P0)
    inverse = np.linalg.inv(C)
    eigenvalues = np.linalg.eigvalsh(inverse @ P @ np.swapaxes(inverse, -1, -2))
    if (eigenvalues <= 0.0).any():
        return float("inf")
    return float((eigenvalues - np.log(eigenvalues) - 1.0).sum())


def entropic_hessian(layout: Layout, x: Array) -> Array:
    """``tr(P^-1 B_a P^-1 B_b)`` of every link, ``(links, 10, 10)``: the second derivative of the divergence."""
    inverse = np.linalg.inv(np.einsum("lk,kij->lij", x[layout.slots], PSEUDO_BASIS))
    half = inverse[:, None] @ PSEUDO_BASIS  # (links, 10, 4, 4)
    return np.asarray(np.einsum("laij,lbji->lab", half, half))


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
) -> ConicSolution:
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
            found = _verified(consistent, centre, quick)
            # a log-determinant keeps links from the boundary, not by a margin
            if entropic is None or found.moved == 0.0:
                return found
    if entropic is not None:
        return _verified(consistent, centre, fit_by_rows(consistent, F, centre, pull, entropic, freedom))
    # around the centre the linear term vanishes and the value is the very excess, free of cancellation
    M, k = consistent.M, consistent.M @ centre + consistent.k
    cones = list(consistent.cones)
    if equalities is not None:
        E, e = equalities
        M = sparse.vstack([sparse.csc_matrix(E), M], format="csc")
        k = np.concatenate([E @ centre - e, k])
        cones.insert(0, ("zero", len(e)))
    solution = solve_conic(P, np.zeros(n), M, k, cones, tolerance=tolerance, quick=freedom is not None)
    if equalities is not None:
        solution = replace(solution, dual=solution.dual[len(e) :])
    elif solution.verdict not in ("solved", "infeasible") and freedom is not None:
        by_rows = fit_by_rows(consistent, F, centre, pull, freedom=freedom)
        solution = by_rows if by_rows.verdict == "solved" else solution
    return _verified(consistent, centre, solution)


def fit_by_rows(
    consistent: ConsistentSet,
    F: Array,
    centre: Array,
    pull: float | Array,
    entropic: EntropicPrior | None = None,
    freedom: float | None = None,
) -> ConicSolution:
    """The same program solved by its rows, which does not square their condition number."""
    began = time.perf_counter()
    program, q, start = BlockProgram.of(consistent), np.zeros(consistent.n), np.zeros(consistent.n)
    if entropic is not None:
        slots = consistent.layout.slots
        program = program.with_log_det(slots, PSEUDO_BASIS, entropic.weight)
        q[slots] = entropic.weight * _prior_slopes(consistent.layout, entropic)
        start[slots] = entropic.x0[slots] - centre[slots]
    program = program.around(centre)
    pulls = np.broadcast_to(pull, (consistent.n,))
    rows = np.vstack([F, np.diag(np.sqrt(pulls))[pulls > 0.0]])
    system = RowSystem(program, rows, np.zeros(len(rows)), q)
    # where rows this large meet, what is left of the gradient is their round-off: the gap decides
    least_gap = 0.0 if freedom is None else LEAST_GAP / freedom
    ends: list[InteriorSolution] = []
    while len(ends) < len(STARTS) and not (ends and ends[-1].end == "solved"):
        inside = start_inside(program, start, STARTS[len(ends)])
        ends.append(interior_point(system, inside, tolerance=1e-8, feasibility=1e-2, least_gap=least_gap))
    found = min(ends, key=lambda one: (one.end != "solved", one.gap))
    seconds, value = time.perf_counter() - began, system.value(found.x)
    status = "Solved" if found.end == "solved" else "NumericalError"
    return ConicSolution(found.end, freeze(found.x), np.zeros(0), value, found.gap, found.iterations, seconds, status)


def _prior_slopes(layout: Layout, entropic: EntropicPrior) -> Array:
    """``tr(P0^-1 B_a)`` of every link, ``(links, 10)``."""
    prior = np.linalg.inv(np.einsum("lk,kij->lij", entropic.x0[layout.slots], PSEUDO_BASIS))
    return np.asarray(np.einsum("lij,kij->lk", prior, PSEUDO_BASIS))


def _verified(consistent: ConsistentSet, centre: Array, solution: ConicSolution) -> ConicSolution:
    """The solver's step from ``centre`` as a point of the set, pushed inside."""
    if not solution.usable:
        return replace(solution, x=centre, slack=-np.inf)
    x, moved = consistent.pushed(centre + solution.x[: consistent.n])
    return replace(solution, x=freeze(x), slack=float(consistent.slacks(x).min()), moved=moved)


def max_margin_point(
    consistent: ConsistentSet,
    equalities: tuple[Array, Array] | None = None,
    *,
    reference: Array | None = None,
    cap: float = 1.0,
    pull: float = 1e-13,
    tolerance: float = 1e-10,
) -> ConicSolution:
    """The point furthest inside all conditions: ``maximise t`` subject to ``M x + k - t unit`` in the cones, ``E x = e`` and ``t <= cap``.

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
    solution = replace(solution, dual=solution.dual[len(e) : len(e) + len(consistent.k)])
    if solution.verdict == "infeasible" or not np.isfinite(x).all():
        return replace(solution, verdict="infeasible", x=centre, slack=-np.inf)
    return replace(solution, x=freeze(x), slack=float(solution.x[n]))


def compiled_fit(
    consistent: ConsistentSet, P: Array, centre: Array, freedom: float, entropic: EntropicPrior | None
) -> ConicSolution | None:
    """The minimiser as a step from ``centre``; None where the form does not fit or the iteration did not end well.

    The form is that of links, lower bounds of other variables, one each, and inequalities that turn out to hold.
    """
    rows, slots = consistent.linear, consistent.layout.slots
    alone = len(np.unique(rows.bounded)) == len(rows.bounded) and not np.isin(rows.bounded, slots).any()
    no_more = not len(rows.a) and not any(kind == "second_order" for kind, _ in consistent.cones)
    if not (alone and no_more and len(consistent.link_rows) == len(slots) and (rows.slope > 0.0).all()):
        return None
    began = time.perf_counter()
    loose = np.zeros(len(rows.bounded), dtype=bool)
    room = rows.slope * centre[rows.bounded] + rows.offset
    if len(loose):
        block = P[np.ix_(rows.bounded, rows.bounded)]
        try:  # variances with all others held
            inverse = scipy.linalg.cho_solve(scipy.linalg.cho_factor(block), np.eye(len(loose)))
            loose = room / rows.slope > CLEARLY * np.sqrt(np.diag(inverse) / freedom)
        except np.linalg.LinAlgError:
            pass  # the data do not see one of them: leave all to the iteration
    for _ in range(len(loose) + 1):
        try:
            found = _fit_over_held(consistent, P, ~loose, centre, entropic)
        except np.linalg.LinAlgError:
            return None
        if found is None:
            return None
        broken = room + rows.slope * found.x[rows.bounded] < 0.0
        if not (broken & loose).any():
            kept = not (rows.G @ (centre + found.x) + rows.g < 0.0).any()
            return replace(found, seconds=time.perf_counter() - began) if kept else None
        loose &= ~broken
    return None


def _fit_over_held(
    consistent: ConsistentSet, P: Array, tight: BoolArray, centre: Array, entropic: EntropicPrior | None
) -> ConicSolution | None:
    """The fit over what links and the tight bounds hold, ``x_gone = follow x_kept``; None where the iteration broke off."""
    rows, slots = consistent.linear, consistent.layout.slots
    held = np.zeros(consistent.n, dtype=bool)
    held[slots] = True
    held[rows.bounded[tight]] = True
    kept, gone = np.flatnonzero(held), np.flatnonzero(~held)
    place = np.full(consistent.n, -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    follow, smaller = np.zeros((0, len(kept))), P[np.ix_(kept, kept)]
    if len(gone):
        across = P[np.ix_(gone, kept)]
        follow = -scipy.linalg.cho_solve(scipy.linalg.cho_factor(P[np.ix_(gone, gone)]), across)
        smaller = smaller + across.T @ follow
    smaller = np.ascontiguousarray(0.5 * (smaller + smaller.T))
    links = np.ascontiguousarray(place[slots[consistent.link_rows]])
    bounded = place[rows.bounded[tight]]
    bounds = (rows.offset / rows.slope)[tight] + centre[kept][bounded]
    linear, start = np.zeros(len(kept)), np.zeros(len(kept))
    if entropic is None:
        basis = np.tile(BASES[consistent.condition], (len(links), 1, 1, 1))
        first, count, side = consistent.matrix_rows
        constant = matrix_from_rows((consistent.M[first:] @ centre + consistent.k[first:]).reshape(count, -1), side)
        low = np.linalg.eigvalsh(constant)[:, 0]
        start[links] = (np.maximum(-low, 0.0) + 0.5)[:, None] * unit_body(consistent.condition)
        start[bounded] = np.maximum(0.1 - bounds, 0.0)
        x, end, iterations, gap = interior_fit(smaller, links, basis, constant, bounded, bounds, start, TOLERANCE, MOST)
    else:
        basis = np.tile(PSEUDO_BASIS, (len(links), 1, 1, 1))
        constant = np.einsum("lk,kij->lij", centre[slots], PSEUDO_BASIS)
        linear[links] = _prior_slopes(consistent.layout, entropic)
        start[links] = entropic.x0[slots] - centre[slots]
        start[bounded] = np.maximum(0.01 - bounds, 0.0)
        x, end, iterations, gap = entropic_fit(
            smaller, links, basis, constant, linear, entropic.weight, bounded, bounds, start, TOLERANCE, MOST
        )
    if end != SOLVED or not np.isfinite(x).all():
        return None
    step = np.zeros(consistent.n)
    step[kept], step[gone] = x, follow @ x
    value = float(0.5 * x @ (smaller @ x))
    return ConicSolution("solved", freeze(step), np.zeros(0), value, float(gap), int(iterations), 0.0, "Solved")
