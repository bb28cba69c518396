"""The set of consistent parameters in scaled coordinates, and the convex programs over it.

With the sizes ``D = diag(m, m l, m l^2)`` of each link, ``phi = D x``, and ``T = diag(l, l, l, 1) sqrt(m)``,

    P(phi) = T P(x) T,

so the matrix inequality of every link has the same coefficients, entries of size one, and a margin that is relative to the
link:  P(x_k) - margin 1 >= 0  (4x4, full condition) or Sousa's 6x6 matrix (17) in its place (plain condition). Problem data
are assembled once, as sparse triplets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
import scipy.sparse as sparse

from dynid.adapters.clarabel import (
    Cone,
    ConicSolution,
    Verdict,
    cone_rows,
    matrix_from_rows,
    solve_conic,
    triangle_entries,
)
from dynid.arrays import Array, IntArray, freeze
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.constraints import Constraint, Rows
from dynid.estimation.convex.layout import Layout
from dynid.inertia import CONDITIONS, PLAIN_BASIS, PSEUDO_BASIS
from dynid.parameters import Parameters

Sparse: TypeAlias = Any

MARGIN = 1e-6
"""Smallest eigenvalue asked for, relative to the link's own size, or in SI units where that is not known."""
ON_BOUNDARY = 1e-9
"""How far outside a scaled condition a solver's answer still counts as on its boundary."""
REACH = 1e4
"""Norm of scaled parameters, in sizes of a link (SI units without a prior), up to which what multipliers prove holds.

Those of a solver satisfy their equations to some 1e-10; what is missing counts in full at this distance."""
ALTERNATIONS = 100
"""Most rounds of projecting multipliers in turns."""
CLEARLY = 5.0
"""Standard deviations from a bound at which a parameter counts as far from it."""
_BASES = {"full": PSEUDO_BASIS, "plain": PLAIN_BASIS}


@dataclass(frozen=True, eq=False)
class ConsistentSet:
    """``M x + k`` in a product of cones, for scaled parameters ``x = phi / scale``."""

    layout: Layout
    condition: str
    margin: float
    scale: Array
    M: Sparse
    k: Array
    cones: tuple[Cone, ...]
    labels: tuple[str, ...]
    """What each cone stands for."""
    constrained: bool
    """Whether there is more than consistency of the links and signs of single parameters."""

    @classmethod
    def of(
        cls,
        layout: Layout,
        *,
        condition: str = "full",
        margin: float = MARGIN,
        absolute: bool = False,
        constraints: Iterable[Constraint] = (),
        prior: Parameters | None = None,
        scale: Array | None = None,
        links: Sequence[int] | None = None,
    ) -> ConsistentSet:
        """Assemble the set.

        ``margin`` is relative to each link's size in ``prior`` (or ``scale``), in SI units without one or with ``absolute``.
        ``links`` restricts consistency to some rows of the layout.
        """
        if condition not in CONDITIONS:
            raise UnknownNameError("consistency condition", condition, CONDITIONS)
        if not (np.isfinite(margin) and margin >= 0.0):
            raise InputError(f"margin is {margin}, expected zero or a positive number")
        size = layout.scale(prior) if scale is None else scale
        rows = [part for constraint in constraints for part in constraint.rows(layout)]
        order = {"zero": 0, "nonnegative": 1, "second_order": 2}
        rows.sort(key=lambda part: order[part.cone])
        pieces = [_scaled_rows(part, size, margin if absolute else 0.0) for part in rows]
        cones: list[Cone] = [(part.cone, len(part.offset)) for part in rows]
        chosen = np.arange(len(layout.links)) if links is None else np.asarray(links, dtype=np.int64)
        pieces.append(_matrix_inequalities(layout, chosen, condition, margin, size if absolute else None))
        side = _BASES[condition].shape[1]
        cones += [("semidefinite", side)] * len(chosen)
        labels = [part.label for part in rows] + [f"consistency of link {layout.links[i]}" for i in chosen]
        start = np.concatenate([[0], np.cumsum([len(offset) for *_, offset in pieces])])
        M = sparse.csc_matrix(
            (
                np.concatenate([value for _, _, value, _ in pieces]),
                (
                    np.concatenate([row + first for (row, *_), first in zip(pieces, start, strict=False)]),
                    np.concatenate([column for _, column, _, _ in pieces]),
                ),
            ),
            shape=(int(start[-1]), len(layout)),
        )
        k = np.concatenate([offset for *_, offset in pieces])
        more = any(part.cone != "nonnegative" or len(part.value) != len(part.offset) for part in rows)
        return cls(layout, condition, margin, freeze(size), M, freeze(k), tuple(cones), tuple(labels), more)

    @property
    def n(self) -> int:
        return len(self.layout)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """First row of every cone."""
        return tuple(np.concatenate([[0], np.cumsum([cone_rows(cone) for cone in self.cones])]).astype(int).tolist())

    @cached_property
    def inward(self) -> Array:
        """The unit of every cone: ones, ``(1, 0, ..)``, the identity; zero for equalities."""
        unit = np.zeros(self.starts[-1])
        for (kind, size), first in zip(self.cones, self.starts, strict=False):
            if kind == "nonnegative":
                unit[first : first + size] = 1.0
            elif kind == "second_order":
                unit[first] = 1.0
            elif kind == "semidefinite":
                row, column, _ = triangle_entries(size)
                unit[first : first + len(row)] = (row == column).astype(float)
        return unit

    @cached_property
    def matrix_rows(self) -> tuple[int, int, int]:
        """First row, number and side of the matrix inequalities, which stand last."""
        count = sum(kind == "semidefinite" for kind, _ in self.cones)
        return (self.starts[len(self.cones) - count], count, self.cones[-1][1]) if count else (self.starts[-1], 0, 4)

    @property
    def first_matrix_row(self) -> int:
        """Where the matrix inequalities begin."""
        return self.matrix_rows[0]

    def slacks(self, x: Array) -> Array:
        """How far inside every cone: smallest row, ``head - ||tail||`` or eigenvalue; minus the error of an equality."""
        return self._slacks_of(self.M @ x + self.k)

    def _slacks_of(self, rows: Array) -> Array:
        first, count, side = self.matrix_rows
        found = []
        for (kind, size), start in zip(self.cones[: len(self.cones) - count], self.starts, strict=False):
            part = rows[start : start + size]
            if kind == "zero":
                found.append(-np.abs(part).max())
            elif kind == "nonnegative":
                found.append(part.min())
            else:
                found.append(part[0] - np.linalg.norm(part[1:]))
        if count:
            found.extend(np.linalg.eigvalsh(matrix_from_rows(rows[first:].reshape(count, -1), side))[:, 0])
        return np.array(found)

    def contains(self, x: Array, tolerance: float = 0.0) -> bool:
        """Whether every cone holds, equalities to ``ON_BOUNDARY``."""
        slacks = self.slacks(x)
        allowed = np.array([max(tolerance, ON_BOUNDARY) if kind == "zero" else tolerance for kind, _ in self.cones])
        return bool((slacks >= -allowed).all())

    def pushed(self, x: Array) -> tuple[Array, float]:
        """The point with every link and sign inside its condition, and how far it had to move (scaled).

        A link outside by ``d`` gets ``d`` times the body whose matrix is the identity; single parameters below their bound
        are set on it.
        """
        new = np.array(x)
        rows = self.M @ new + self.k
        single = self.single_bounds
        if len(single):
            at, column, value = single.T
            at, column = at.astype(int), column.astype(int)
            new[column] += np.maximum(-rows[at], 0.0) / value
        first, count, side = self.matrix_rows
        if count:
            rows = self.M @ new + self.k
            eigenvalues = np.linalg.eigvalsh(matrix_from_rows(rows[first:].reshape(count, -1), side))[:, 0]
            # a little more than what is missing, so that the next look does not find round-off outside
            missing = np.where(eigenvalues < 0.0, -eigenvalues + 1e-14, 0.0)
            columns = self.layout.slots[self._links]
            new[columns] += missing[:, None] * unit_body(self.condition)
        return new, float(np.abs(new - x).max(initial=0.0))

    @cached_property
    def _links(self) -> IntArray:
        """Rows of the layout that must be consistent."""
        numbers = [int(label.rsplit(" ", 1)[1]) for label in self.labels if label.startswith("consistency of link ")]
        return np.array([self.layout.links.index(number) for number in numbers], dtype=np.int64)

    @cached_property
    def single_bounds(self) -> Array:
        """Row, column and coefficient of the inequalities on one parameter alone with a lower bound."""
        found = []
        by_row = self.M[: self.matrix_rows[0]].tocsr()
        for (kind, size), first in zip(self.cones, self.starts, strict=False):
            if kind != "nonnegative":
                continue
            for row in range(first, first + size):
                entries = slice(by_row.indptr[row], by_row.indptr[row + 1])
                if by_row.indptr[row + 1] - by_row.indptr[row] == 1 and by_row.data[entries][0] > 0.0:
                    found.append((row, by_row.indices[entries][0], by_row.data[entries][0]))
        return np.array(found).reshape(-1, 3)


Triplets: TypeAlias = tuple[IntArray, IntArray, Array, Array]
"""Rows, columns, values and offsets."""


def _scaled_rows(part: Rows, size: Array, margin: float) -> Triplets:
    """Triplets over scaled variables; rows are normalised, those of a second-order cone together."""
    value = part.value * size[part.column]
    n = len(part.offset)
    norms = np.sqrt(np.bincount(part.row, value**2, minlength=n))
    if part.cone == "second_order":
        norms[:] = norms.max()
    norms[norms == 0.0] = 1.0
    offset = part.offset - (margin if part.strict else 0.0)
    return part.row, part.column, value / norms[part.row], offset / norms


def _matrix_inequalities(
    layout: Layout, links: IntArray, condition: str, margin: float, absolute_size: Array | None
) -> Triplets:
    """``P(x_k) - margin 1`` of every link as triplets, with ``margin / T^2`` for an absolute margin."""
    basis = _BASES[condition]
    side = basis.shape[1]
    row, column, weight = triangle_entries(side)
    coefficients = (basis[:, row, column] * weight).T  # (rows, 10)
    i, j = np.nonzero(coefficients)
    count = len(row)
    blocks = np.arange(len(links))[:, None] * count
    diagonal = (row == column).astype(float)
    offset = np.tile(-margin * diagonal, (len(links), 1))
    if absolute_size is not None:
        sizes = absolute_size[layout.slots[links]]
        # second moments or moments of inertia take three rows of the diagonal, the mass the others
        squares = np.column_stack([np.repeat(sizes[:, 9:10], 3, axis=1), np.repeat(sizes[:, :1], side - 3, axis=1)])
        offset = -margin * diagonal / squares[:, row]
    return (
        (blocks + i).ravel(),
        layout.slots[links][:, j].ravel(),
        np.tile(coefficients[i, j], len(links)),
        offset.ravel(),
    )


def unit_body(condition: str) -> Array:
    """The scaled parameters whose matrix is the identity."""
    moment = 2.0 if condition == "full" else 1.0
    return np.array([1.0, 0.0, 0.0, 0.0, moment, 0.0, moment, 0.0, 0.0, moment])


# Programs -----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class EntropicPrior:
    """``weight sum_k [tr(P0^-1 P) - log det(P0^-1 P) - 4]`` around consistent scaled bodies ``x0``."""

    weight: float
    x0: Array


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
        M, k, q, more, extra = _with_entropy(consistent, M, k, entropic, centre)
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


def _with_entropy(
    consistent: ConsistentSet, M: Sparse, k: Array, entropic: EntropicPrior, centre: Array
) -> tuple[Sparse, Array, Array, list[Cone], int]:
    """Rows and variables that represent the log-determinants.

        log det X >= sum_i u_i   if   [[X, Z], [Z^T, diag(Z)]] >= 0,  Z lower triangular,  u_i <= log Z_ii

    with ``X = C^-1 P C^-T`` and ``P0 = C C^T``, which is the identity at the prior.
    """
    layout = consistent.layout
    n, links = consistent.n, len(layout.links)
    C = np.linalg.cholesky(np.einsum("lk,kij->lij", entropic.x0[layout.slots], PSEUDO_BASIS))
    inverse = np.linalg.inv(C)
    X = inverse[:, None] @ PSEUDO_BASIS @ np.swapaxes(inverse, -1, -2)[:, None]  # (links, 10, 4, 4)
    row, column, weight = triangle_entries(8)
    below = {(int(i), int(j)): z for z, (i, j) in enumerate(zip(*np.tril_indices(4), strict=True))}
    n_extra = 14  # ten entries of Z, four u
    height = len(row)
    # what Z contributes to the 8x8 matrix: Z in the upper right block, its diagonal in the lower right one
    z_part = np.zeros((height, n_extra))
    for place, (i, j, w) in enumerate(zip(row, column, weight, strict=True)):
        if i < 4 <= j and (int(i), int(j - 4)) in below:
            z_part[place, below[int(i), int(j - 4)]] = w
        elif i == j and i >= 4:
            z_part[place, below[int(i - 4), int(i - 4)]] = 1.0
    x_part = np.zeros((links, height, 10))
    corner = np.flatnonzero(column < 4)
    x_part[:, corner] = np.swapaxes(X[:, :, row[corner], column[corner]], 1, 2) * weight[corner, None]
    # exponential cones (u_i, 1, Z_ii)
    exponential = np.zeros((12, n_extra))
    constant = np.zeros(12)
    for i in range(4):
        exponential[3 * i, 10 + i] = 1.0
        exponential[3 * i + 2, below[i, i]] = 1.0
        constant[3 * i + 1] = 1.0
    selectors = [
        sparse.csc_matrix((part.ravel(), _entries(slots, height)), shape=(height, n))
        for part, slots in zip(x_part, layout.slots, strict=True)
    ]
    first = sparse.hstack([sparse.vstack(selectors), sparse.kron(sparse.eye(links), sparse.csc_matrix(z_part))])
    cone_part = sparse.kron(sparse.eye(links), sparse.csc_matrix(exponential))
    second = sparse.hstack([sparse.csc_matrix((12 * links, n)), cone_part])
    old = sparse.hstack([M, sparse.csc_matrix((M.shape[0], n_extra * links))])
    rows = sparse.vstack([old, first, second], format="csc")
    shift = sparse.vstack(selectors) @ centre
    offset = np.concatenate([k, shift, np.tile(constant, links)])
    q = np.zeros(n + n_extra * links)
    np.add.at(q, layout.slots, entropic.weight * np.trace(X, axis1=-2, axis2=-1))
    u = n + n_extra * np.arange(links)[:, None] + np.arange(10, 14)
    q[u] = -entropic.weight
    cones: list[Cone] = [*(("semidefinite", 8) for _ in range(links)), *(("exponential", 3) for _ in range(4 * links))]
    return rows, offset, q, cones, n_extra * links


def _entries(columns: IntArray, height: int) -> tuple[IntArray, IntArray]:
    return np.repeat(np.arange(height), len(columns)), np.tile(columns, height)


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


@dataclass(frozen=True, eq=False)
class Combination:
    """Multipliers ``z`` in the dual cones, and ``y`` with ``M^T z = A^T y`` up to ``missing``, the norm of the difference.

    Since ``z . (M x + k) >= 0`` for every ``x`` of the set, ``y . A x >= -z . k - missing ||x||``: whatever multipliers a
    solver gave and however well, this holds.
    """

    multipliers: Array
    coefficients: Array
    missing: float


def combined(consistent: ConsistentSet, A: Array, dual: Array) -> Combination | None:
    """What multipliers prove of ``A x``; None for multipliers that are none.

    They are projected in turns on those that combine to rows of ``A`` and into the cones, where they stay: what a pull or
    the solver's tolerance left out of the equation goes.
    """
    size = float(np.linalg.norm(dual))
    if not (np.isfinite(size) and size > 0.0):
        return None
    outside = consistent.M @ scipy.linalg.null_space(A)
    U, singular, _ = np.linalg.svd(outside, full_matrices=False)
    U = U[:, singular > 1e-12 * singular.max(initial=1e-300)]
    z = _in_dual_cones(consistent, np.asarray(dual) / size)
    best, least = z, np.inf
    for _ in range(ALTERNATIONS):
        missing = float(np.linalg.norm(outside.T @ z))
        if missing < least:
            best, least = z, missing
        if missing < 1e-16:
            break
        z = _in_dual_cones(consistent, z - U @ (U.T @ z))
    functional = consistent.M.T @ best
    coefficients = scipy.linalg.lstsq(A.T, functional, lapack_driver="gelsy")[0]
    return Combination(freeze(best), freeze(coefficients), float(np.linalg.norm(functional - A.T @ coefficients)))


def _in_dual_cones(consistent: ConsistentSet, dual: Array) -> Array:
    """Multipliers with what lies outside the dual cones cut off."""
    z = np.array(dual)
    for (kind, size), first in zip(consistent.cones, consistent.starts, strict=False):
        if kind == "nonnegative":
            z[first : first + size] = np.maximum(z[first : first + size], 0.0)
        elif kind == "second_order":
            z[first] = max(z[first], float(np.linalg.norm(z[first + 1 : first + size])))
    first, count, side = consistent.matrix_rows
    if count:
        row, column, weight = triangle_entries(side)
        eigenvalues, vectors = np.linalg.eigh(matrix_from_rows(z[first:].reshape(count, -1), side))
        inside = (vectors * np.maximum(eigenvalues, 0.0)[:, None, :]) @ np.swapaxes(vectors, -1, -2)
        z[first:] = (inside[:, row, column] * weight).ravel()
    return z


def least_distance(consistent: ConsistentSet, G: Array, centre: Array, dual: Array) -> float:
    """A bound from below of ``||G (x - centre)||^2`` over the set up to ``REACH`` around the centre, from any multipliers.

    With ``M^T z = G^T y + r`` every ``x = centre + d`` of the set has ``y . G d >= s``, ``s = -z . (M centre + k) - |r| REACH``,
    and ``||y|| ||G d|| >= y . G d``.
    """
    found = combined(consistent, G, dual)
    if found is None:
        return 0.0
    offset = consistent.M @ centre + consistent.k
    z, y = found.multipliers, found.coefficients
    round_off = 1e-15 * float(np.abs(z) @ (np.abs(consistent.k) + abs(consistent.M) @ np.abs(centre)))
    s = float(-z @ offset) - found.missing * REACH - round_off
    return max(s, 0.0) ** 2 / max(float(y @ y), 1e-300)


def blamed(consistent: ConsistentSet, dual: Array, share: float = 0.01) -> tuple[str, ...]:
    """Labels of the conditions that carry an infeasibility: constraints before consistency, the heaviest first."""
    weights = np.array(
        [np.linalg.norm(dual[a:b]) for a, b in zip(consistent.starts[:-1], consistent.starts[1:], strict=True)]
    )
    if not weights.size or weights.max() == 0.0:
        return ()
    natural = np.array([kind == "semidefinite" for kind, _ in consistent.cones])
    order = np.lexsort((-weights, natural))
    return tuple(dict.fromkeys(consistent.labels[i] for i in order if weights[i] > share * weights.max()))


def onto_equalities(E: Array, e: Array, x: Array) -> Array:
    """The point nearest to ``x`` with ``E x = e``."""
    step = scipy.linalg.lstsq(E, e - E @ x, lapack_driver="gelsy")[0]
    x = x + step
    # once more, so that the equalities hold to round-off
    return np.asarray(x + scipy.linalg.lstsq(E, e - E @ x, lapack_driver="gelsy")[0])
