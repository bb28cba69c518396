"""The feasible base values nearest to given ones, from both sides: a body from above, multipliers from below.

    minimise  || R (E x - beta) ||   over the consistent set

From below, over the reduced form (:mod:`dynid.estimation.consistency.facial_reduction`), where the nearest point is attained. The
residual itself is the direction of the proof: ``d = R^T R (E x - beta)`` separates, and

    ||R (E x' - beta)|| >= (least d . E x' - d . beta) / ||R (E x - beta)||     for every x' of the set.

From above, over the set itself, with a price on the size of all bodies together: ``T(x)`` of the nearest ones may be infinite,
and ``price T`` keeps it where the base values computed from the bodies still have their digits. Both are solved by rows, so that
nothing is squared, and need no pull.

Where the multipliers of the reduced form prove too little (constraints may leave it without a nearest point of its own), those of
the priced program prove more of bodies up to a size: they miss their equation by the price, which counts times that size. Of bodies
as large as its own nearest ones, such a program proves nearly all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, check_finite, check_shape, freeze
from dynid.errors import InputError
from dynid.estimation.consistency.block_program import BlockProgram, Iterate, RowSystem
from dynid.estimation.consistency.certificate import Certificate, Multipliers, certify
from dynid.estimation.consistency.consistent_set import BASES, ON_BOUNDARY, ConsistentSet, onto_equalities
from dynid.estimation.consistency.facial_reduction import ReducedForm, lifted, reduced_form
from dynid.estimation.consistency.interior_point import InteriorSolution, centre, interior_point, start_inside
from dynid.estimation.constraints.base import Constraint, Layout, PositiveEffects
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction

TOLERANCE = 1e-10
"""Gap relative to half the squared distance at which the iteration ends; it stops earlier where digits give out."""
SMALLEST = 1e-10
"""Part of the norm of the base values below which a distance counts as nothing."""
LARGEST = (2e6, 3e5, 5e4, 1e7, 5e7)
"""Size of all bodies together that a certificate may have, in units of ``NearestFeasibleProblem.unit``; the others where the
first leaves a gap: larger bodies come nearer, of smaller ones more is proven where a defect is left."""
PRICES = (1e-17, 1e-16, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11)
"""Of that size, in units of half the squared norm of the base values: the first that keeps it below ``LARGEST``."""
NEARLY, WELL_INSIDE = 1e-8, 1e-2
"""Relative gaps of the iterates whose multipliers are mixed for a proof."""
EARLIER = (1e-5, 1e-3)
"""Relative gaps of iterates that are asked where those at the end prove nothing: rounding has spoilt them less."""
SHARES = tuple(10.0**power for power in range(-13, 0, 2))
"""Of a point well inside its cones that are mixed in, so that the mixture is safely inside; then finer around the best."""
FINER = (0.1, 0.2, 0.4, 0.55, 0.75, 1.0, 1.3, 2.0, 4.0)
BOUNDED = (5e4, 2e3)
"""Sizes of which priced programs are asked for a proof, where the reduced form proves too little."""
AS_LARGE = 2.0
"""The last of them, in sizes of the bodies that such a program found itself."""
GAP, ENOUGH = 1e-7, 5e-7
"""Gaps relative to the length of the base values above which more is tried: other bodies, larger ones."""


@dataclass(frozen=True, eq=False)
class NearestFeasibleProblem:
    """Base values, the set of bodies they are held against, and the metric that their distance is measured by."""

    base: BaseReduction
    beta: Array
    R: Array
    """Root of the metric: ``||R d||``."""
    consistent: ConsistentSet
    start: Array
    """Scaled parameters to begin from."""
    prior: Parameters | None = None

    @classmethod
    def of(
        cls,
        base: BaseReduction,
        beta: ArrayLike,
        *,
        condition: str,
        constraints: Iterable[Constraint],
        margin: float,
        absolute: bool,
        prior: Parameters | None,
        robot: Robot | None,
        effects_positive: bool,
        R: Array | None = None,
    ) -> NearestFeasibleProblem:
        """The problem of given base values, checked; in the Euclidean metric unless ``R`` is given."""
        values = np.asarray(beta, dtype=np.float64)
        check_shape("base values", values, (base.n_base,))
        check_finite("base values", values)
        prior = prior if prior is not None or robot is None else robot.parameters
        if prior is not None and prior.names != base.parameter_names:
            raise InputError(
                f"the prior has {len(prior)} parameters, the base reduction {base.n_parameters}, or other names; "
                "make both from the same robot and effects"
            )
        links = robot.links if robot else ()
        layout = Layout.of(base.parameter_names) if prior is None else Layout.of_parameters(prior, links)
        consistent = ConsistentSet.of(
            layout,
            condition=condition,
            margin=margin,
            absolute=absolute,
            constraints=(*((PositiveEffects(),) if effects_positive else ()), *constraints),
            prior=prior,
        )
        start = np.zeros(consistent.n) if prior is None else layout.extended(prior.values) / consistent.scale
        return cls(base, values, np.eye(base.n_base) if R is None else R, consistent, start, prior)

    @cached_property
    def E(self) -> Array:
        """``K`` over scaled variables, hidden ones included."""
        K = self.base.K
        E = np.zeros((len(K), self.consistent.n))
        E[:, : K.shape[1]] = K * self.consistent.scale[: K.shape[1]]
        return E

    @cached_property
    def length(self) -> float:
        """Of the base values, in the metric."""
        return max(float(np.linalg.norm(self.R @ self.beta)), 1e-300)

    @cached_property
    def unit(self) -> float:
        """Size of bodies with base values like these, in sizes of a link; at least what the constraints ask for."""
        smallest = onto_equalities(self.E, self.beta, np.zeros(self.consistent.n))
        return max(float(np.abs(smallest).max(initial=0.0)), float(np.abs(self.consistent.k).max(initial=0.0)), 1e-300)

    @cached_property
    def reference(self) -> Array:
        """The point nearest to the start with these base values."""
        return onto_equalities(self.E, self.beta, self.start)

    def distance(self, x: Array) -> float:
        return float(np.linalg.norm(self.R @ (self.E @ x - self.beta)))

    def exact_point(self, x: Array) -> Array | None:
        """The point nearest to ``x`` with these very base values, if it is inside the set."""
        rows = self.consistent.linear
        E, e = self.E, self.beta
        if len(rows.a):
            E, e = np.vstack([E, rows.A]), np.concatenate([e, rows.a])
        exact = onto_equalities(E, e, x)
        slacks = self.consistent.slacks(exact)
        equal = np.array([kind == "zero" for kind, _ in self.consistent.cones])
        slacks[equal & (slacks >= -ON_BOUNDARY)] = 0.0
        return exact if float(slacks.min()) >= 0.0 else None

    def parameters(self, x: Array) -> tuple[Parameters | Array, Array]:
        """All named parameters, and one row of ten per link with those that the grouping leaves out."""
        phi = self.consistent.scale * x
        named = phi[: self.consistent.layout.n_named]
        standard = freeze(named) if self.prior is None else self.prior.with_values(named)
        return standard, freeze(self.consistent.layout.inertials(phi))


@dataclass(frozen=True, eq=False)
class NearestFeasible:
    """The nearest feasible base values, from above and from below."""

    x: Array | None
    """Scaled parameters inside the set; None where none were found."""
    distance: float
    lower_bound: float
    """No bodies up to ``largest`` are nearer."""
    certificate: Certificate
    largest: float
    """Size of all bodies together, in sizes of a link."""


def nearest_feasible(problem: NearestFeasibleProblem, below: DualBound | None = None) -> NearestFeasible:
    """Both sides, for bodies up to the first size that closes the gap."""
    below = below or DualBound.of(problem)
    found: list[NearestFeasible] = []
    bodies = _Bodies(problem)
    for largest in LARGEST:
        made, lower = below.bound(largest)
        x, distance = bodies.nearest(largest)
        if not distance - lower <= GAP * max(problem.length, lower):
            other, nearer = below.body(largest)
            x, distance = (other, nearer) if nearer < distance else (x, distance)
        found.append(NearestFeasible(x, distance, min(lower, distance), made, largest * problem.unit))
        if distance - lower <= ENOUGH * max(problem.length, lower):
            return found[-1]
    for price, largest in bodies.sizes(found[0].distance / problem.length):
        made, lower = bodies.bound(price, largest)
        (x, distance), (other, nearer) = bodies.nearest(largest), below.body(largest)
        x, distance = (other, nearer) if nearer < distance else (x, distance)
        found.append(NearestFeasible(x, distance, min(lower, distance), made, largest * problem.unit))
        if distance - lower <= ENOUGH * max(problem.length, lower):
            break
    return min(found, key=lambda one: one.distance - one.lower_bound if one.x is not None else np.inf)


@dataclass(frozen=True, eq=False)
class DualBound:
    """The nearest point over a form of the set, the reduced one or the whole, and what its multipliers prove."""

    problem: NearestFeasibleProblem
    form: ReducedForm
    program: _ProjectedProgram
    found: InteriorSolution

    @classmethod
    def of(cls, problem: NearestFeasibleProblem) -> DualBound:
        """Over the reduced form."""
        return cls.over(reduced_form(problem.consistent, problem.E), problem)

    @classmethod
    def over(cls, form: ReducedForm, problem: NearestFeasibleProblem, price: float = 0.0) -> DualBound:
        """Over a form, with a price on the size of the bodies."""
        consistent = problem.consistent
        cost = np.zeros(consistent.n)
        cost[consistent.layout.slots] = price * np.trace(BASES[consistent.condition], axis1=1, axis2=2)
        program = _ProjectedProgram.of(form.program, problem, problem.E @ form.T, form.T.T @ cost)
        found = program.solve(np.asarray(np.linalg.lstsq(form.T, problem.start, rcond=None)[0], dtype=np.float64))
        return cls(problem, form, program, found)

    @property
    def distance(self) -> float:
        """Of the nearest point over the form, however large its bodies."""
        return float(np.linalg.norm(self.program.residual(self.found.x))) * self.problem.length

    @cached_property
    def inside(self) -> Iterate:
        """A point of the central path well inside."""
        return centre(self.program.system, self.found.before(WELL_INSIDE))

    @cached_property
    def nearly(self) -> Iterate:
        """A point of the central path close to the end."""
        return centre(self.program.system, self.found.before(NEARLY))

    @cached_property
    def earlier(self) -> tuple[Iterate, ...]:
        """Points of the central path further from the end."""
        return tuple(centre(self.program.system, self.found.before(gap)) for gap in EARLIER)

    def bound(self, largest: float = LARGEST[0]) -> tuple[Certificate, float]:
        """The best lower bound of the distance that multipliers prove, in exact arithmetic, for bodies up to a size."""
        inside = self.multipliers(self.inside)
        ends = (self.found.last, self.nearly)
        found = [self._best_mixture(self.multipliers(end), inside, largest) for end in ends]
        if max(lower for _, lower in found) <= 0.0:
            found += [self._best_mixture(self.multipliers(end), inside, largest) for end in self.earlier]
        made, lower = max(found, key=lambda pair: pair[1])
        return made, max(lower, 0.0)

    def _best_mixture(self, last: Multipliers, inside: Multipliers, largest: float) -> tuple[Certificate, float]:
        """What multipliers prove with the best share of some well inside their cones."""
        problem = self.problem

        def bound(share: float, exact: bool) -> tuple[Certificate, float]:
            mixed = last.mixed(inside, share)
            made = certify(problem.consistent, problem.base.K, mixed, exact)
            length = float(np.linalg.norm(mixed.residual))
            least = made.least(largest * problem.unit) - float(made.direction @ problem.beta)
            return made, least / max(length, 1e-300)

        def rough(share: float) -> float:
            return bound(share, exact=False)[1]

        share = max(SHARES, key=rough)
        return bound(max((0.0, *(share * factor for factor in FINER)), key=rough), exact=True)

    def body(self, largest: float) -> tuple[Array | None, float]:
        """Parameters of the set between the nearest reduced point and one well inside, with the null bodies they need."""
        problem, consistent = self.problem, self.problem.consistent
        ends = [self.form.T @ self.program.whole(end.x) for end in (self.found, self.inside)]

        def at(share: float, widened: float) -> tuple[float, Array | None]:
            x = lifted(self.form, (1.0 - share) * ends[0] + share * ends[1], widened)
            if not np.isfinite(x).all() or consistent.size(x) > largest * problem.unit:
                return np.inf, None
            x, _ = consistent.pushed(x)
            return (problem.distance(x), x) if consistent.contains(x) else (np.inf, None)

        grid = [(widened, 0.0) for widened in SHARES]
        grid += [(share, factor * wide) for share in (1e-9, 1e-12) for wide in SHARES for factor in (1.0, 3.0, 10.0, 30.0)]
        tried = {pair: at(*pair) for pair in grid}
        best = min(tried, key=lambda pair: tried[pair][0])
        tried |= {pair: at(*pair) for factor in FINER for pair in [(factor * best[0], best[1]), (best[0], factor * best[1])]}
        distance, x = min(tried.values(), key=lambda found: found[0])
        return x, distance

    def point(self) -> Array | None:
        """A point of the set with the very base values asked for; None where they are not reached."""
        shown = self.problem.E @ self.form.T
        xi = onto_equalities(shown, self.problem.beta, self.program.whole(self.found.x))
        x = lifted(self.form, self.form.T @ xi)
        return x if np.isfinite(x).all() and self.problem.distance(x) <= 1e-8 * self.problem.length else None

    def multipliers(self, at: Iterate) -> Multipliers:
        """Those of an iterate over the rows of the whole set."""
        problem, form = self.problem, self.form
        consistent, rows = form.consistent, form.rows
        y = self.program.residual(at.x) * (self.program.unit / problem.length)
        w = np.zeros(consistent.first_matrix_row)
        full = form.row_multipliers(at.z)
        effects = ~np.isin(rows.bounded, consistent.layout.slots)
        w[rows.bound_at] = np.where(effects, 0.0, full[: len(rows.bounded)])
        w[rows.inequality_at] = full[len(rows.bounded) :]
        w[rows.equality_at] = at.nu
        arrows = iter(zip(at.Z[len(form.faces) :], form.program.slots[len(form.faces) :], strict=True))
        for (kind, size), first in zip(consistent.cones, consistent.starts, strict=False):
            if kind == "second_order":
                arrow, slots = next(arrows)
                if (slots < 0).all():  # met by null bodies alone
                    continue
                w[first] = np.trace(arrow[:size, :size])
                w[first + 1 : first + size] = 2.0 * arrow[0, 1:size]
        faces = tuple(face.U for face in form.faces)
        blocks = [U @ Z[: U.shape[1], : U.shape[1]] @ U.T for U, Z in zip(faces, at.Z, strict=False)]
        return Multipliers(problem.R.T @ y, w, np.array(blocks), y, faces)


class _Bodies:
    """Parameters of the set whose base values are nearest, by the price of their size: each solved for once, when asked for."""

    def __init__(self, problem: NearestFeasibleProblem) -> None:
        self._problem = problem
        self._form = reduced_form(problem.consistent, problem.E, rounds=0)
        self._solved: dict[float, DualBound] = {}

    def nearest(self, largest: float) -> tuple[Array | None, float]:
        """At the lowest price that keeps them from growing larger than this, in units of the problem."""
        problem = self._problem
        for price in PRICES:
            x = self._at(price)
            if x is not None and problem.consistent.size(x) <= largest * problem.unit:
                return x, problem.distance(x)
        return None, np.inf

    def bound(self, price: float, largest: float) -> tuple[Certificate, float]:
        """What the multipliers at a price prove of bodies up to a size."""
        return self._priced(price).bound(largest)

    def sizes(self, share: float) -> list[tuple[float, float]]:
        """Prices, and sizes up to which more may be proven at each; the larger ones first, since of those more is said.

        A price costs the bound ``price size / share`` of the length, with the distance as a ``share`` of it.
        """
        own = {price: AS_LARGE * self._size(price) for price in PRICES}
        pairs = [(price, size) for price, smallest in own.items() for size in (*BOUNDED, smallest) if smallest <= size]
        useful = [(price, size) for price, size in pairs if np.isfinite(size) and price * size <= 2.0 * ENOUGH * share]
        return sorted(useful, key=lambda pair: (-pair[1], pair[0]))

    def _size(self, price: float) -> float:
        """Of the nearest bodies at a price, in units of the problem; infinite where none were found."""
        x = self._at(price)
        return np.inf if x is None else self._problem.consistent.size(x) / self._problem.unit

    def _priced(self, price: float) -> DualBound:
        if price not in self._solved:
            self._solved[price] = DualBound.over(self._form, self._problem, price)
        return self._solved[price]

    def _at(self, price: float) -> Array | None:
        consistent, below = self._problem.consistent, self._priced(price)
        x, _ = consistent.pushed(below.form.T @ below.program.whole(below.found.x))
        return x if np.isfinite(x).all() and consistent.contains(x) else None


@dataclass(frozen=True, eq=False)
class _ProjectedProgram:
    """``1/2 ||F x - f||^2 + q . x`` in units of bodies and base values, without variables in no cone and no constraint.

    Those follow the others by least squares: the rows are projected on what they cannot reach.
    """

    system: RowSystem
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
    def of(cls, program: BlockProgram, problem: NearestFeasibleProblem, rows: Array, q: Array) -> _ProjectedProgram:
        unit = problem.unit
        program = replace(
            program,
            constant=program.constant / unit,
            bound_offset=program.bound_offset / unit,
            g=program.g / unit,
            a=program.a / unit,
        )
        F, f = problem.R @ rows * (unit / problem.length), problem.R @ problem.beta / problem.length
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
        system = RowSystem(smaller, across @ F[:, kept], across @ f, q[kept])
        return cls(system, kept, free, F, f, (U[:, :rank], singular[:rank], right[:rank]), across, unit)

    def solve(self, start: Array) -> InteriorSolution:
        return interior_point(
            self.system,
            start_inside(self.system.program, start[self.kept] / self.unit, 1.0),
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
