"""The feasible base values nearest to given ones, from both sides: a body from above, multipliers from below.

    minimise  || R (E x - beta) ||   over the consistent set

From below, over the reduced form (:mod:`dynid.estimation.convex.reduced`), where the nearest point is attained. The residual
itself is the direction of the proof: ``d = R^T R (E x - beta)`` separates, and

    ||R (E x' - beta)|| >= (least d . E x' - d . beta) / ||R (E x - beta)||     for every x' of the set.

From above, over the set itself, with a price on the size of all bodies together: ``T(x)`` of the nearest ones may be infinite,
and ``price T`` keeps it where the base values computed from the bodies still have their digits. Both are solved by rows, so that
nothing is squared, and need no pull.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.arrays import Array, IntArray
from dynid.estimation.convex.block_forms import block_program
from dynid.estimation.convex.consistent_set import BASES, ConsistentSet, onto_equalities
from dynid.estimation.convex.interior_point import (
    BlockProgram,
    InteriorSolution,
    Iterate,
    centre,
    interior_point,
    start_inside,
)
from dynid.estimation.convex.newton_systems import ByRows
from dynid.estimation.convex.proof import Multipliers, Proof, proof
from dynid.estimation.convex.reduced import ReducedForm, reduced_form

TOLERANCE = 1e-10
"""Gap relative to half the squared distance at which the iteration ends; it stops earlier where digits give out."""
SMALLEST = 1e-10
"""Part of the norm of the base values below which a distance counts as nothing."""
LARGEST = 2e6
"""Size of all bodies together that a certificate may have, in units of :meth:`Question.unit`."""
PRICES = (1e-17, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11)
"""Of that size, in units of half the squared norm of the base values: the first that keeps it below ``LARGEST``."""
NEARLY, WELL_INSIDE = 1e-8, 1e-2
"""Relative gaps of the iterates whose multipliers are mixed for a proof."""
SHARES = tuple(10.0**power for power in range(-13, 0))
"""Of well-centred multipliers that are mixed in, so that they are safely inside their cones; then finer around the best."""


@dataclass(frozen=True, eq=False)
class Question:
    """Base values, the metric to measure them by, and the set."""

    consistent: ConsistentSet
    K: Array
    R: Array
    """Root of the metric."""
    beta: Array
    start: Array
    """Scaled parameters to begin from."""

    @cached_property
    def E(self) -> Array:
        """``K`` over scaled variables, hidden ones included."""
        E = np.zeros((len(self.K), self.consistent.n))
        E[:, : self.K.shape[1]] = self.K * self.consistent.scale[: self.K.shape[1]]
        return E

    @cached_property
    def length(self) -> float:
        """Of the base values, in the metric."""
        return max(float(np.linalg.norm(self.R @ self.beta)), 1e-300)

    @cached_property
    def unit(self) -> float:
        """Size of bodies with base values like these, in sizes of a link; at least one."""
        smallest = onto_equalities(self.E, self.beta, np.zeros(self.consistent.n))
        return max(float(np.abs(smallest).max(initial=0.0)), 1.0)

    def distance(self, x: Array) -> float:
        return float(np.linalg.norm(self.R @ (self.E @ x - self.beta)))


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest feasible base values, from above and from below."""

    x: Array | None
    """Scaled parameters inside the set; None where none were found."""
    distance: float
    lower_bound: float
    """No bodies up to :data:`LARGEST` units are nearer."""
    proof: Proof
    ended: tuple[str, str]
    """How the iterations from below and from above ended."""


def nearest(question: Question) -> Nearest:
    """Both sides."""
    made, lower, below = nearest_from_below(question)
    x, distance, above = nearest_from_above(question)
    return Nearest(x, distance, min(lower, distance), made, (below, above))


def nearest_from_below(question: Question) -> tuple[Proof, float, str]:
    """The best lower bound of the distance that multipliers prove, in exact arithmetic."""
    form = reduced_form(question.consistent, question.E)
    start = np.linalg.lstsq(form.T, question.start, rcond=None)[0]
    problem = _Problem.of(form.program, question, question.E @ form.T, np.zeros(form.program.n))
    found = problem.solve(start)
    inside = problem.multipliers(question, form, centre(problem.program, problem.system, found.before(WELL_INSIDE)))
    final = found.path[found.iterations][1]
    made, lower = max(
        (
            _best_mixture(question, problem.multipliers(question, form, end), inside)
            for end in (final, centre(problem.program, problem.system, found.before(NEARLY)))
        ),
        key=lambda pair: pair[1],
    )
    return made, max(lower, 0.0), found.end


def _best_mixture(question: Question, last: Weighed, inside: Weighed) -> tuple[Proof, float]:
    """The lower bound that multipliers prove with the best share of some well inside their cones."""

    def bound(share: float, exact: bool) -> tuple[Proof, float]:
        made = proof(question.consistent, question.K, last.given.mixed(inside.given, share), exact)
        length = float(np.linalg.norm((1.0 - share) * last.y + share * inside.y))
        least = made.least(LARGEST * question.unit) - float(made.direction @ question.beta)
        return made, least / max(length, 1e-300)

    def rough(share: float) -> float:
        return bound(share, exact=False)[1]

    share = max(SHARES, key=rough)
    return bound(max((0.0, *(share * factor for factor in (0.2, 0.5, 1.0, 2.0, 4.0))), key=rough), exact=True)


def nearest_from_above(question: Question) -> tuple[Array | None, float, str]:
    """Parameters of the set whose base values are nearest, at the lowest price that keeps them from growing too large."""
    consistent = question.consistent
    program = block_program(consistent)
    trace = np.trace(BASES[consistent.condition], axis1=1, axis2=2)
    best, least, ended = None, np.inf, "stalled"
    for price in PRICES:
        q = np.zeros(program.n)
        q[consistent.layout.slots] = price * trace
        problem = _Problem.of(program, question, question.E, q)
        found = problem.solve(question.start)
        x, _ = consistent.pushed(problem.whole(found.x))
        if not (np.isfinite(x).all() and consistent.contains(x)):
            continue
        small = consistent.size(x) <= LARGEST * question.unit
        distance = question.distance(x)
        if small and distance < least:
            best, least, ended = x, distance, found.end
        if small:
            break
    return best, least, ended


@dataclass(frozen=True, eq=False)
class Weighed:
    """Multipliers, and ``y`` with ``d = R^T y``."""

    given: Multipliers
    y: Array


@dataclass(frozen=True, eq=False)
class _Problem:
    """``1/2 ||F x - f||^2 + q . x`` in units of bodies and base values, without variables in no cone and no constraint.

    Those follow the others by least squares: the rows are projected on what they cannot reach.
    """

    program: BlockProgram
    system: ByRows
    kept: IntArray
    free: IntArray
    F: Array
    f: Array
    reached: tuple[Array, Array, Array]
    """Singular vectors and values of the free columns."""
    across: Array
    """``(left, rows)``: orthonormal rows normal to them."""
    unit: float

    @classmethod
    def of(cls, program: BlockProgram, question: Question, rows: Array, q: Array) -> _Problem:
        unit = question.unit
        program = replace(
            program,
            constant=program.constant / unit,
            bound_offset=program.bound_offset / unit,
            g=program.g / unit,
            a=program.a / unit,
        )
        F, f = question.R @ rows * (unit / question.length), question.R @ question.beta / question.length
        held = np.zeros(program.n, dtype=bool)
        held[program.slots[program.slots >= 0]] = True
        held[program.bounded] = True
        held |= (program.G != 0.0).any(axis=0) | (program.A != 0.0).any(axis=0)
        kept, free = np.flatnonzero(held), np.flatnonzero(~held)
        place = np.full(program.n, -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        U, singular, right = np.linalg.svd(F[:, free], full_matrices=True)
        rank = int((singular > 1e-12 * singular.max(initial=0.0)).sum())
        smaller = replace(
            program,
            n=len(kept),
            slots=np.where(program.slots >= 0, place[program.slots], -1),
            bounded=place[program.bounded],
            G=program.G[:, kept],
            A=program.A[:, kept],
        )
        across = U[:, rank:].T
        system = ByRows(smaller, across @ F[:, kept], across @ f, q[kept])
        return cls(smaller, system, kept, free, F, f, (U[:, :rank], singular[:rank], right[:rank]), across, unit)

    def solve(self, start: Array) -> InteriorSolution:
        return interior_point(
            self.program,
            self.system,
            start_inside(self.program, start[self.kept] / self.unit, 1.0),
            tolerance=TOLERANCE,
            feasibility=1e-8,
            floor=0.5 * SMALLEST**2,
            iterations=100,
        )

    def whole(self, x: Array) -> Array:
        """All variables of the program given, in its own units."""
        full = np.zeros(len(self.kept) + len(self.free))
        full[self.kept] = x
        U, singular, right = self.reached
        full[self.free] = right.T @ ((U.T @ (self.f - self.F[:, self.kept] @ x)) / singular)
        return np.asarray(self.unit * full)

    def residual(self, x: Array) -> Array:
        """``F x - f`` over all rows, exactly normal to the free columns."""
        return np.asarray(self.across.T @ (self.across @ (self.F[:, self.kept] @ x - self.f)))

    def multipliers(self, question: Question, form: ReducedForm, at: Iterate) -> Weighed:
        """Those of an iterate over the rows of the whole set."""
        consistent, rows = form.consistent, form.rows
        y = self.residual(at.x) * (self.unit / question.length)
        w = np.zeros(consistent.first_matrix_row)
        full = form.row_multipliers(at.z)
        effects = ~np.isin(rows.bounded, consistent.layout.slots)
        w[rows.bound_at] = np.where(effects, 0.0, full[: len(rows.bounded)])
        w[rows.inequality_at] = full[len(rows.bounded) :]
        w[rows.equality_at] = at.nu
        arrows = iter(at.Z[len(form.faces) :])
        for (kind, size), first in zip(consistent.cones, consistent.starts, strict=False):
            if kind == "second_order":
                arrow = next(arrows)
                w[first] = np.trace(arrow[:size, :size])
                w[first + 1 : first + size] = 2.0 * arrow[0, 1:size]
        faces = tuple(face.U for face in form.faces)
        blocks = [U @ Z[: U.shape[1], : U.shape[1]] @ U.T for U, Z in zip(faces, at.Z, strict=False)]
        return Weighed(Multipliers(question.R.T @ y, w, np.array(blocks), faces), y)
