"""The retrieval of feasible parameters as one problem, its convex relaxation, and the local refinement from there.

    minimise  || R (E x - beta) ||^2 + floor     over  x in the consistent set,  h_i(x) <= 0

in scaled parameters ``x = phi / D``. The cost is ``|| pi(p) - pi_hat ||^2`` (Gaz and others 2019, 29), that weighted by the
coefficients' covariance, or the one-step ``|| Y pi(p) - tau ||^2`` (supplement, II) on its triangle. Without the conditions ``h`` it
is the correction of base values in that metric, which bounds the cost from below.

Under conditions that are not convex, a sequence of convex programs with exact Jacobians:

    minimise  1/2 || F (x + d - x_c) ||^2 + mu sum_i s_i     over  (d, s >= 0)
    subject to  x + d in the consistent set,   h_i + grad h_i . d + eps <= s_i,   || d || <= radius

Consistency and every convex constraint hold at each step; the conditions are linearised in a trust region and enter by an
exact penalty, whose weight grows until they hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import ArrayLike

from dynid.arrays import Array, check_finite, check_shape
from dynid.dynamics.joint_wrench import joint_wrenches, largest_joint_wrench
from dynid.errors import InputError
from dynid.estimation.consistency.conic_solver import Cone, solve_conic
from dynid.estimation.consistency.consistent_set import ON_BOUNDARY, ConsistentSet, cannot_hold, onto_equalities
from dynid.estimation.consistency.nearest_feasible import DualBound, NearestFeasibleProblem, nearest_feasible
from dynid.estimation.consistency.solve import fit_in, max_margin_point
from dynid.estimation.constraints.base import Constraint
from dynid.estimation.constraints.bounds import Bounds, phi_from_box
from dynid.estimation.constraints.conditions import Condition, Violation, as_conditions, check_names
from dynid.estimation.result import Outcome
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction
from dynid.signals.samples import Samples

PULL = 1e-11
"""Weight of the pull that holds parameters nothing bounds."""
PULL_TO_PRIOR = 1e-9
"""The same where a prior says where to start and how large things are."""
PULL_OF_DATA = 1e-6
"""The same where the cost is a fit to noisy data, so that what noise hides does not make masses grow without end."""
STRONGER = 1e2
"""Times which the pull is taken where the conic solver does not cope with it, and in every step of a refinement."""
NEAR = 1e-3
"""Root of a change of the cost, relative to the size of what it looks at, that matters: the pull is weighed against it, or against
a part of the distance where that is more."""
SMALL_GAP = 1e-4
"""Gap, relative to the cost, at which a lower bound is good enough."""
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


class Interrupted(KeyboardInterrupt):
    """An interrupt of a search that has something to show."""

    def __init__(self, best: Candidate) -> None:
        super().__init__()
        self.best = best
        """The best it had so far."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """Where a search ended."""

    x: Array
    cost: float
    violations: dict[str, float]
    iterations: int = 0
    exact: bool = True
    """Whether all Jacobians were exact."""
    steps: tuple[tuple[float, float], ...] = ()
    """Cost and sum of penalties after each step of an annealing."""

    @property
    def holds(self) -> bool:
        return not self.violations

    @property
    def rank(self) -> tuple[bool, float, float]:
        """Whatever holds comes before whatever does not, then the cheapest."""
        return bool(self.violations), sum(self.violations.values()), self.cost


@dataclass(frozen=True, eq=False)
class RetrievalProblem:
    """Cost, convex set and conditions."""

    target: NearestFeasibleProblem
    """The base values that the cost looks at, its metric and the convex set."""
    floor: float
    """The cost of an unconstrained minimiser."""
    conditions: tuple[Condition, ...]
    bounds: Bounds
    pull: float = PULL

    @classmethod
    def of(
        cls,
        base: BaseReduction,
        beta: ArrayLike,
        bounds: Bounds,
        conditions: Iterable[Condition | Violation],
        constraints: Iterable[Constraint],
        *,
        floor: float,
        pull: float,
        **options: Any,
    ) -> RetrievalProblem:
        """The problem of given base values, checked, with the options of :meth:`NearestFeasibleProblem.of`."""
        known = as_conditions((*bounds.conditions(), *conditions))
        target = NearestFeasibleProblem.of(base, beta, constraints=(*bounds.convex(), *constraints), **options)
        check_names(known, target.consistent.layout)
        return cls(target, floor, known, bounds, pull)

    @property
    def consistent(self) -> ConsistentSet:
        return self.target.consistent

    @property
    def centre(self) -> Array:
        """An unconstrained minimiser of the cost, scaled."""
        return self.target.reference

    @cached_property
    def G(self) -> Array:
        """The cost is ``|| G (x - centre) ||^2 + floor``."""
        return np.asarray(self.target.R @ self.target.E)

    def cost(self, x: Array) -> float:
        residual = self.G @ (x - self.centre)
        return self.floor + float(residual @ residual)

    def candidate(self, x: Array, iterations: int = 0, exact: bool = True) -> Candidate:
        """A point with its cost and what does not hold there."""
        return Candidate(x, self.cost(x), self.violations(x), iterations, exact)

    def phi(self, x: Array) -> Array:
        return np.asarray(self.consistent.scale * x)

    def condition_values(self, x: Array) -> list[Array]:
        """Violations of every condition, negative where it holds."""
        phi = self.phi(x)
        return [condition.values(self.consistent.layout, phi) for condition in self.conditions]

    def linearised(self, x: Array) -> tuple[Array, Array, tuple[bool, ...]]:
        """Values and Jacobians of all conditions over scaled parameters, and which of them are exact."""
        layout, D, phi = self.consistent.layout, self.consistent.scale, self.phi(x)
        parts = [condition.derivative(layout, phi, D) for condition in self.conditions]
        h = np.concatenate([part[0] for part in parts]) if parts else np.zeros(0)
        J = np.vstack([part[1] for part in parts]) * D if parts else np.zeros((0, self.consistent.n))
        return h, J, tuple(part[2] for part in parts)

    def violations(self, x: Array) -> dict[str, float]:
        """What does not hold at ``x``, by name; equalities to round-off, everything else exactly."""
        found = {}
        cones = zip(self.consistent.labels, self.consistent.cones, self.consistent.slacks(x), strict=True)
        for label, (kind, _), slack in cones:
            if slack < (-ON_BOUNDARY if kind == "zero" else 0.0):
                found[label] = float(-slack)
        for condition, values in zip(self.conditions, self.condition_values(x), strict=True):
            if values.max(initial=-np.inf) > 0.0:
                found[condition.name] = float(values.max())
        fixed = {name for name, (lower, upper) in self.bounds.limits.items() if lower == upper}
        for name, outside in self.bounds.violated(self.consistent.layout, self.phi(x)).items():
            if name not in fixed or outside > ON_BOUNDARY:
                found.setdefault(name, outside)
        return found

    def relaxed(self) -> tuple[Array | None, float, str]:
        """The optimum without conditions, the lower bound of the cost that is proven, and how the solver ended.

        The nearest base values often belong to bodies without end: the point is that of a fit with a pull.
        """
        if self.consistent.contains(self.centre):
            return self.centre, self.floor, "solved"
        below = DualBound.of(self.target)
        scale = max(0.3 * below.distance, NEAR * float(np.linalg.norm(self.G @ self.centre)), 1e-300)
        for pull in (self.pull, STRONGER * self.pull):
            fit = fit_in(self.consistent, self.G / scale, self.centre, pull=pull, tolerance=1e-9)
            if fit.verdict in ("solved", "infeasible"):
                break
        if not fit.usable:
            return None, self.floor, "infeasible" if fit.verdict == "infeasible" else fit.status
        excess, lower = self.cost(fit.x) - self.floor, below.bound()[1]
        if excess - lower**2 > SMALL_GAP * (self.floor + excess):
            lower = max(lower, nearest_feasible(self.target, below).lower_bound)
        return fit.x, self.floor + min(lower**2, excess), fit.verdict

    def without_answer(self, verdict: str) -> Retrieval:
        """Where no point meets the convex constraints: which of them cannot hold together."""
        best = max_margin_point(self.consistent, reference=self.centre)
        x, outcome = self.centre, Outcome.STALLED
        notes: tuple[str, ...] = (f"the solver ended with '{verdict}'",)
        if best.slack < -ON_BOUNDARY:
            labels = self.consistent.active_constraints(best.dual)[:4]
            x, outcome, notes = best.x, Outcome.INFEASIBLE, cannot_hold(labels)
        details = {"relaxation": verdict, "starts": 0}
        return Retrieval(self, x, self.cost(x), self.floor, self.violations(x), outcome, notes, details)

    def settled(self, x: Array) -> Array:
        """A point next to ``x`` where everything holds exactly, if there is one: on the way to the inside of the set.

        A solver's answer lies on the boundary to its tolerance only. The set is convex, so a step of that size towards a
        point inside it mends all of its conditions together.
        """
        if not self.violations(x):
            return x
        inside = max_margin_point(self.consistent, reference=x, cap=1e-2, pull=1e-9)
        if not inside.slack > 0.0:
            return x
        for share in np.logspace(-11, -1, 21):
            moved = x + share * (inside.x - x)
            if not self.violations(moved):
                return np.asarray(moved)
        return x


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Feasible parameters, what they cost and how far that is from the best possible."""

    problem: RetrievalProblem
    x: Array
    """Scaled parameters."""
    cost: float
    lower_bound: float
    """No parameter set that meets the convex constraints costs less."""
    violated: Mapping[str, float]
    """Constraints that do not hold, by name, with how far each is outside; empty when all hold."""
    outcome: Outcome
    notes: tuple[str, ...]
    details: Mapping[str, Any]

    @cached_property
    def standard(self) -> Parameters | Array:
        """All parameters; without a prior as plain numbers in the order of the grouping's names."""
        return self.problem.target.parameters(self.x)[0]

    @cached_property
    def bodies(self) -> Array:
        """One row of ten per link, parameters that the grouping leaves out included."""
        return self.problem.target.parameters(self.x)[1]

    @property
    def gap(self) -> float:
        """``cost - lower_bound``."""
        return self.cost - self.lower_bound

    @property
    def gap_share(self) -> float:
        """Root of the gap relative to what is fitted, ``sqrt(gap) / || R beta ||``: error that a better set may not have."""
        fitted = float(np.linalg.norm(self.problem.G @ self.problem.centre))
        return float(np.sqrt(max(self.gap, 0.0))) / max(fitted, 1e-300)

    @property
    def base_values(self) -> Array:
        return self.problem.target.base.base_values(self.standard)

    def joint_wrenches(self, robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Wrench ``(samples, joints, 6)`` of every joint along a motion with these parameters."""
        if self.bodies.shape != robot.parameters.inertials.shape:
            raise InputError(f"{len(self.bodies)} links were retrieved, robot '{robot.name}' has {robot.n_bodies}")
        values = robot.parameters.values.copy()
        values[: robot.parameters.n_inertial] = self.bodies.ravel()
        return joint_wrenches(robot.with_parameters(robot.parameters.with_values(values)), q, v, a)

    def largest_joint_wrench(self, robot: Robot | None, samples: Iterable[object]) -> tuple[list[dict[str, Any]], str]:
        """What every joint carries at most along these samples, or why that is not known."""
        motions = [(one.position, one.velocity, one.acceleration) for one in samples if isinstance(one, Samples)]
        if robot is None:
            return [], "these rows (of a table of poses, say) come without the robot and its motion"
        if robot.floating:
            return [], f"robot '{robot.name}' has a floating base"
        if robot.loops:
            return [], (
                "motion and torque do not determine the wrenches of single joints in the closed loops of robot "
                f"'{robot.name}'"
            )
        if not motions:
            return [], "the samples of these rows are not kept"
        values = robot.parameters.with_values(self.problem.phi(self.x))
        return largest_joint_wrench(robot.with_parameters(values), motions), ""


def refine(problem: RetrievalProblem, start: Array, *, equalities: tuple[Array, Array] | None = None) -> Candidate:
    """The local optimum near a start inside the convex set; with ``equalities`` the nearest point to it that has them.

    First the nearest point where the conditions hold, whose cost says what a change of one is; from there the optimum. An
    interrupt on that way carries the nearest point.
    """
    n = problem.consistent.n
    cuts = _Cuts()
    nearest, count, exact = _descend(problem, np.zeros((0, n)), np.array(start), 1.0, start, cuts, equalities)
    if equalities is not None:
        return problem.candidate(onto_equalities(*equalities, nearest), count, exact)
    first = problem.candidate(problem.settled(nearest), count, exact)
    size = max(first.cost - problem.floor, 1e-12 * float(np.sum((problem.G @ problem.centre) ** 2)), 1e-300)
    F, pull = problem.G / np.sqrt(size), STRONGER * problem.pull
    try:
        x, count, exact = _descend(problem, F, problem.centre, pull, nearest, cuts)
        best = problem.candidate(problem.settled(x), count, exact)
    except KeyboardInterrupt:
        raise Interrupted(first) from None
    chosen = min(first, best, key=lambda found: found.rank)
    return replace(chosen, iterations=first.iterations + best.iterations, exact=first.exact and best.exact)


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
    F: Array,
    centre: Array,
    pull: float,
    start: Array,
    cuts: _Cuts,
    equalities: tuple[Array, Array] | None = None,
) -> tuple[Array, int, bool]:
    """Trust-region steps: where they end, how many, and whether all Jacobians were exact.

    They make ``1/2 ||F (x - centre)||^2 + 1/2 pull ||x - centre||^2 + weight * violations`` small.
    """

    def penalised(x: Array, h: Array) -> float:
        residual, step = F @ (x - centre), x - centre
        smooth = 0.5 * float(residual @ residual) + 0.5 * pull * float(step @ step)
        return smooth + weight * float(np.maximum(h + INSIDE, 0.0).sum())

    P = F.T @ F
    P[np.diag_indices(len(P))] += pull
    x, weight, radius, exact = np.array(start), 1e2, 1.0, True
    h, J, exactly = problem.linearised(x)
    cuts.learn(x, h, J)
    iterations = 0
    while iterations < ITERATIONS:
        iterations += 1
        exact = exact and all(exactly)
        now = penalised(x, h)
        h_model, J_model = cuts.model(x, h, J, radius)
        step = _step(problem, P, P @ (x - centre), x, h_model, J_model, weight, radius, equalities)
        if step is None:
            radius *= 0.25
            if radius < SMALLEST_RADIUS:
                break
            continue
        moved = x + step
        predicted = now - penalised(moved, h_model + J_model @ step)
        if predicted <= 1e-8 * max(now, 1e-3):
            if h.max(initial=-1.0) <= 0.0 or weight >= MOST_WEIGHT:
                break
            weight *= 10.0
            continue
        h_moved, J_moved, exactly = problem.linearised(moved)
        cuts.learn(moved, h_moved, J_moved)
        gained = now - penalised(moved, h_moved)
        if gained > 0.1 * predicted:
            x, h, J = moved, h_moved, J_moved
            if gained > 0.7 * predicted:
                radius = min(2.0 * max(radius, float(np.linalg.norm(step))), 1e3)
        else:
            radius = 0.25 * min(radius, float(np.linalg.norm(step)))
            if radius < SMALLEST_RADIUS:
                break
    return x, iterations, exact


def _step(
    problem: RetrievalProblem,
    curvature: Array,
    slope: Array,
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
    P[:n, :n] = curvature
    q = np.concatenate([slope, np.full(m, weight)])
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


def exact_base(problem: RetrievalProblem, start: Array) -> Candidate | None:
    """A feasible point with exactly the unconstrained base values, if one is found: then nothing is better."""
    equalities = (problem.target.E, problem.target.beta)
    empty = np.zeros((0, problem.consistent.n))
    near = fit_in(problem.consistent, empty, start, pull=1e-3, equalities=equalities)
    if not np.isfinite(near.slack):
        return None
    x = onto_equalities(*equalities, near.x)
    found = refine(problem, x, equalities=equalities)
    return found if found.holds else None


def refine_from_random(problem: RetrievalProblem, seed: np.random.SeedSequence) -> Candidate | None:
    """The refinement from the point of the convex set nearest to a random one of the bounds' box; None where there is none."""
    lower, upper = problem.bounds.box(problem.consistent.layout, problem.consistent.scale)
    p = np.random.default_rng(seed).uniform(lower, upper)
    x = phi_from_box(problem.consistent.layout, p) / problem.consistent.scale
    fit = fit_in(problem.consistent, np.eye(problem.consistent.n), x)
    return refine(problem, fit.x) if fit.usable else None


def whitening(covariance: ArrayLike | None, n: int) -> Array:
    """``S`` with ``S^T S`` the inverse of the covariance of ``n`` coefficients."""
    C = np.asarray(covariance, dtype=np.float64)
    check_shape("covariance", C, (n, n))
    check_finite("covariance", C)
    eigenvalues, vectors = np.linalg.eigh(0.5 * (C + C.T))
    if not n or eigenvalues[0] <= 0.0:
        smallest = float(eigenvalues[0]) if n else float("nan")
        raise InputError(f"covariance of the coefficients has the eigenvalue {smallest:.3g}, expected positive ones")
    return np.asarray(vectors.T / np.sqrt(eigenvalues)[:, None])
