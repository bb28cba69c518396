"""The feasible base values nearest to given ones, from both sides: a body from above, multipliers from below.

    minimise  || R (E x - beta) ||   over the consistent set

From below, over the reduced form (:mod:`dynid.estimation.convex.reduced`), where the nearest point is attained. The residual
itself is the direction of the proof: ``d = R^T R (E x - beta)`` separates, and

    ||R (E x' - beta)|| >= (least d . E x' - d . beta) / ||R (E x - beta)||     for every x' of the set.

From above, over the set itself, with a price on the size of all bodies together: ``T(x)`` of the nearest ones may be infinite,
and ``price T`` keeps it where the base values computed from the bodies still have their digits. Both are solved by rows, so that
nothing is squared, and need no pull.

Where the multipliers of the reduced form prove too little (constraints may leave it without a nearest point of its own), those of
the priced program prove more of bodies up to a size: they miss their equation by the price, which counts times that size. Of bodies
as large as its own nearest ones, such a program proves nearly all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.arrays import Array
from dynid.estimation.convex.consistent_set import BASES, onto_equalities
from dynid.estimation.convex.interior_point import InteriorSolution, Iterate, centre
from dynid.estimation.convex.proof import Multipliers, Proof, proof
from dynid.estimation.convex.question import Projected, Question
from dynid.estimation.convex.reduced import ReducedForm, lifted, reduced_form, whole_form

LARGEST = (2e6, 3e5, 5e4, 1e7, 5e7)
"""Size of all bodies together that a certificate may have, in units of :meth:`Question.unit`; the others where the first leaves a
gap: larger bodies come nearer, of smaller ones more is proven where a defect is left."""
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
class Nearest:
    """The nearest feasible base values, from above and from below."""

    x: Array | None
    """Scaled parameters inside the set; None where none were found."""
    distance: float
    lower_bound: float
    """No bodies up to ``largest`` are nearer."""
    proof: Proof
    largest: float
    """Size of all bodies together, in sizes of a link."""


def nearest(question: Question, below: Below | None = None) -> Nearest:
    """Both sides, for bodies up to the first size that closes the gap."""
    below = below or Below.of(question)
    found: list[Nearest] = []
    bodies = _Bodies(question)
    for largest in LARGEST:
        made, lower = below.bound(largest)
        x, distance = bodies.nearest(largest)
        if not distance - lower <= GAP * max(question.length, lower):
            other, nearer = below.body(largest)
            x, distance = (other, nearer) if nearer < distance else (x, distance)
        found.append(Nearest(x, distance, min(lower, distance), made, largest * question.unit))
        if distance - lower <= ENOUGH * max(question.length, lower):
            return found[-1]
    for price, largest in bodies.sizes(found[0].distance / question.length):
        made, lower = bodies.bound(price, largest)
        (x, distance), (other, nearer) = bodies.nearest(largest), below.body(largest)
        x, distance = (other, nearer) if nearer < distance else (x, distance)
        found.append(Nearest(x, distance, min(lower, distance), made, largest * question.unit))
        if distance - lower <= ENOUGH * max(question.length, lower):
            break
    return min(found, key=lambda one: one.distance - one.lower_bound if one.x is not None else np.inf)


@dataclass(frozen=True, eq=False)
class Weighed:
    """Multipliers, and ``y`` with ``d = R^T y``."""

    given: Multipliers
    y: Array


@dataclass(frozen=True, eq=False)
class Below:
    """The solution over a form of the set, the reduced one or the whole."""

    question: Question
    form: ReducedForm
    problem: Projected
    found: InteriorSolution

    @classmethod
    def of(cls, question: Question) -> Below:
        """Over the reduced form."""
        return cls.over(reduced_form(question.consistent, question.E), question)

    @classmethod
    def over(cls, form: ReducedForm, question: Question, price: float = 0.0) -> Below:
        """Over a form, with a price on the size of the bodies."""
        consistent = question.consistent
        cost = np.zeros(consistent.n)
        cost[consistent.layout.slots] = price * np.trace(BASES[consistent.condition], axis1=1, axis2=2)
        problem = Projected.of(form.program, question, question.E @ form.T, form.T.T @ cost)
        found = problem.solve(np.asarray(np.linalg.lstsq(form.T, question.start, rcond=None)[0], dtype=np.float64))
        return cls(question, form, problem, found)

    @cached_property
    def inside(self) -> Iterate:
        """A point of the central path well inside."""
        return centre(self.problem.program, self.problem.system, self.found.before(WELL_INSIDE))

    @cached_property
    def nearly(self) -> Iterate:
        """A point of the central path close to the end."""
        return centre(self.problem.program, self.problem.system, self.found.before(NEARLY))

    @cached_property
    def earlier(self) -> tuple[Iterate, ...]:
        """Points of the central path further from the end."""
        return tuple(centre(self.problem.program, self.problem.system, self.found.before(gap)) for gap in EARLIER)

    def bound(self, largest: float = LARGEST[0]) -> tuple[Proof, float]:
        """The best lower bound of the distance that multipliers prove, in exact arithmetic, for bodies up to a size."""
        inside = self.multipliers(self.inside)
        ends = (self.found.path[self.found.iterations][1], self.nearly)
        found = [self._best_mixture(self.multipliers(end), inside, largest) for end in ends]
        if max(lower for _, lower in found) <= 0.0:
            found += [self._best_mixture(self.multipliers(end), inside, largest) for end in self.earlier]
        made, lower = max(found, key=lambda pair: pair[1])
        return made, max(lower, 0.0)

    def _best_mixture(self, last: Weighed, inside: Weighed, largest: float) -> tuple[Proof, float]:
        """What multipliers prove with the best share of some well inside their cones."""
        question = self.question

        def bound(share: float, exact: bool) -> tuple[Proof, float]:
            made = proof(question.consistent, question.K, last.given.mixed(inside.given, share), exact)
            length = float(np.linalg.norm((1.0 - share) * last.y + share * inside.y))
            least = made.least(largest * question.unit) - float(made.direction @ question.beta)
            return made, least / max(length, 1e-300)

        def rough(share: float) -> float:
            return bound(share, exact=False)[1]

        share = max(SHARES, key=rough)
        return bound(max((0.0, *(share * factor for factor in FINER)), key=rough), exact=True)

    def body(self, largest: float) -> tuple[Array | None, float]:
        """Parameters of the set between the nearest reduced point and one well inside, with the null bodies they need."""
        question, consistent = self.question, self.question.consistent
        ends = [self.form.T @ self.problem.whole(end.x) for end in (self.found, self.inside)]

        def at(share: float, widened: float) -> tuple[float, Array | None]:
            x = lifted(self.form, (1.0 - share) * ends[0] + share * ends[1], widened)
            if not np.isfinite(x).all() or consistent.size(x) > largest * question.unit:
                return np.inf, None
            x, _ = consistent.pushed(x)
            return (question.distance(x), x) if consistent.contains(x) else (np.inf, None)

        grid = [(widened, 0.0) for widened in SHARES]
        grid += [(share, factor * wide) for share in (1e-9, 1e-12) for wide in SHARES for factor in (1.0, 3.0, 10.0, 30.0)]
        tried = {pair: at(*pair) for pair in grid}
        best = min(tried, key=lambda pair: tried[pair][0])
        tried |= {pair: at(*pair) for factor in FINER for pair in [(factor * best[0], best[1]), (best[0], factor * best[1])]}
        distance, x = min(tried.values(), key=lambda found: found[0])
        return x, distance

    def point(self) -> Array | None:
        """A point of the set with the very base values asked for; None where they are not reached."""
        shown = self.question.E @ self.form.T
        xi = onto_equalities(shown, self.question.beta, self.problem.whole(self.found.x))
        x = lifted(self.form, self.form.T @ xi)
        return x if np.isfinite(x).all() and self.question.distance(x) <= 1e-8 * self.question.length else None

    def multipliers(self, at: Iterate) -> Weighed:
        """Those of an iterate over the rows of the whole set."""
        question, form = self.question, self.form
        consistent, rows = form.consistent, form.rows
        y = self.problem.residual(at.x) * (self.problem.unit / question.length)
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
        return Weighed(Multipliers(question.R.T @ y, w, np.array(blocks), faces), y)


class _Bodies:
    """Parameters of the set whose base values are nearest, by the price of their size: each solved for once, when asked for."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._form = whole_form(question.consistent, question.E)
        self._solved: dict[float, Below] = {}

    def nearest(self, largest: float) -> tuple[Array | None, float]:
        """At the lowest price that keeps them from growing larger than this, in units of the question."""
        question = self._question
        for price in PRICES:
            x = self._at(price)
            if x is not None and question.consistent.size(x) <= largest * question.unit:
                return x, question.distance(x)
        return None, np.inf

    def bound(self, price: float, largest: float) -> tuple[Proof, float]:
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
        """Of the nearest bodies at a price, in units of the question; infinite where none were found."""
        x = self._at(price)
        return np.inf if x is None else self._question.consistent.size(x) / self._question.unit

    def _priced(self, price: float) -> Below:
        if price not in self._solved:
            self._solved[price] = Below.over(self._form, self._question, price)
        return self._solved[price]

    def _at(self, price: float) -> Array | None:
        consistent, below = self._question.consistent, self._priced(price)
        x, _ = consistent.pushed(below.form.T @ below.problem.whole(below.found.x))
        return x if np.isfinite(x).all() and consistent.contains(x) else None
