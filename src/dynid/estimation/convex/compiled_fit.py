"""The semidefinite estimate by the compiled fits, where nothing but consistency and bounds of effects constrains it.

Other inequalities are looked at afterwards: where they hold, as friction that is passive by itself does, the answer is the same.

Variables that no constraint will hold (offsets, and friction and rotor inertia far from zero) are eliminated first:
``x_u = -P_uu^-1 P_uv x_v``; what is left has ten variables a link. Their bounds are looked at afterwards, and those that do not
hold are put back.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from dynid.adapters.clarabel import ConicSolution, matrix_from_rows
from dynid.arrays import Array, BoolArray, IntArray, freeze
from dynid.estimation.convex.consistent_set import BASES, ConsistentSet, unit_body
from dynid.estimation.convex.entropy import EntropicPrior
from dynid.estimation.convex.fit_kernels import SOLVED, entropic_fit, interior_fit
from dynid.inertia import PSEUDO_BASIS

CLEARLY = 5.0
"""Standard deviations from a bound at which a parameter counts as far from it."""
TOLERANCE = 1e-9
"""Gap, relative to the whole cost, at which the fits end."""
MOST = 60


def compiled_fit(
    consistent: ConsistentSet, P: Array, centre: Array, freedom: float, entropic: EntropicPrior | None
) -> ConicSolution | None:
    """The minimiser as a step from ``centre``; None where the form does not fit or the iteration did not end well."""
    if not _applies(consistent):
        return None
    began = time.perf_counter()
    rows = consistent.linear
    loose = np.zeros(len(rows.bounded), dtype=bool)
    room = rows.slope * centre[rows.bounded] + rows.offset
    if len(loose):
        loose = room / rows.slope > CLEARLY * np.sqrt(_conditional_variances(P, rows.bounded) / freedom)
    for _ in range(len(loose) + 1):
        part = _Part.of(consistent, P, loose)
        if part is None:
            return None
        found = _solved(consistent, part, centre, entropic)
        if found is None:
            return None
        step, iterations, gap, value = found
        broken = room + rows.slope * step[rows.bounded] < 0.0
        if not (broken & loose).any():
            if (rows.G @ (centre + step) + rows.g < 0.0).any():
                return None
            seconds = time.perf_counter() - began
            return ConicSolution("solved", freeze(step), np.zeros(0), value, gap, iterations, seconds, "Solved")
        loose &= ~broken
    return None


def _applies(consistent: ConsistentSet) -> bool:
    """Whether there is nothing but links, lower bounds of other variables, one each, and inequalities."""
    rows = consistent.linear
    alone = len(np.unique(rows.bounded)) == len(rows.bounded) and not np.isin(rows.bounded, consistent.layout.slots).any()
    no_more = not len(rows.a) and not any(kind == "second_order" for kind, _ in consistent.cones)
    every_link = len(consistent.link_rows) == len(consistent.layout.links)
    return bool(alone and no_more and every_link and (rows.slope > 0.0).all())


def _conditional_variances(P: Array, columns: IntArray) -> Array:
    """Variances of these variables with all others held."""
    block = P[np.ix_(columns, columns)]
    try:
        inverse = scipy.linalg.cho_solve(scipy.linalg.cho_factor(block), np.eye(len(columns)))
    except np.linalg.LinAlgError:
        return np.full(len(columns), np.inf)  # the data do not see one of them: leave all to the iteration
    return np.asarray(np.diag(inverse))


@dataclass(frozen=True, eq=False)
class _Part:
    """The quadratic form over the variables that are left, and how the others follow."""

    P: Array
    kept: IntArray
    gone: IntArray
    follow: Array
    """``x_gone = follow x_kept``, as steps from the centre."""
    slots: IntArray
    bounds: IntArray
    """Which of the bounds are left."""
    bounded: IntArray

    @classmethod
    def of(cls, consistent: ConsistentSet, P: Array, loose: BoolArray) -> _Part | None:
        rows = consistent.linear
        held = np.zeros(consistent.n, dtype=bool)
        held[consistent.layout.slots] = True
        held[rows.bounded[~loose]] = True
        kept, gone = np.flatnonzero(held), np.flatnonzero(~held)
        place = np.full(consistent.n, -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        follow, smaller = np.zeros((0, len(kept))), P[np.ix_(kept, kept)]
        if len(gone):
            try:
                factor = scipy.linalg.cho_factor(P[np.ix_(gone, gone)])
            except np.linalg.LinAlgError:
                return None
            across = P[np.ix_(gone, kept)]
            follow = -scipy.linalg.cho_solve(factor, across)
            smaller = smaller + across.T @ follow
        bounds = np.flatnonzero(~loose)
        slots = np.ascontiguousarray(place[consistent.layout.slots[consistent.link_rows]])
        smaller = np.ascontiguousarray(0.5 * (smaller + smaller.T))
        return cls(smaller, kept, gone, follow, slots, bounds, place[rows.bounded[bounds]])


def _solved(
    consistent: ConsistentSet, part: _Part, centre: Array, entropic: EntropicPrior | None
) -> tuple[Array, int, float, float] | None:
    """The step, iterations, gap and value; None where the iteration broke off."""
    rows = consistent.linear
    here = centre[part.kept]
    bounds = (rows.offset / rows.slope)[part.bounds] + here[part.bounded]
    try:
        if entropic is None:
            basis = np.tile(BASES[consistent.condition], (len(part.slots), 1, 1, 1))
            first, count, side = consistent.matrix_rows
            constant = matrix_from_rows((consistent.M[first:] @ centre + consistent.k[first:]).reshape(count, -1), side)
            start = np.zeros(len(here))
            low = np.linalg.eigvalsh(constant)[:, 0]
            start[part.slots] = (np.maximum(-low, 0.0) + 0.5)[:, None] * unit_body(consistent.condition)
            start[part.bounded] = np.maximum(0.1 - bounds, 0.0)
            x, end, iterations, gap = interior_fit(
                part.P, part.slots, basis, constant, part.bounded, bounds, start, TOLERANCE, MOST
            )
        else:
            basis = np.tile(PSEUDO_BASIS, (len(part.slots), 1, 1, 1))
            x0 = entropic.x0[consistent.layout.slots]
            constant = np.einsum("lk,kij->lij", centre[consistent.layout.slots], PSEUDO_BASIS)
            prior = np.linalg.inv(np.einsum("lk,kij->lij", x0, PSEUDO_BASIS))
            linear, start = np.zeros(len(here)), np.zeros(len(here))
            linear[part.slots] = np.einsum("lij,kij->lk", prior, PSEUDO_BASIS)
            start[part.slots] = x0 - centre[consistent.layout.slots]
            start[part.bounded] = np.maximum(0.01 - bounds, 0.0)
            x, end, iterations, gap = entropic_fit(
                part.P, part.slots, basis, constant, linear, entropic.weight, part.bounded, bounds, start, TOLERANCE, MOST
            )
    except np.linalg.LinAlgError:
        return None
    if end != SOLVED or not np.isfinite(x).all():
        return None
    step = np.zeros(consistent.n)
    step[part.kept] = x
    step[part.gone] = part.follow @ x
    return step, int(iterations), float(gap), float(0.5 * x @ (part.P @ x))
