"""Retrieval of feasible parameters with any constraint (Gaz, Cognetti, Oliva, Robuffo Giordano, De Luca 2019).

    minimise  || pi(p) - pi_hat ||^2   or   || Y pi(p) - tau ||^2     over  p  with  h_i(p) <= 0

Two ways. ``refine`` starts at the optimum of the convex relaxation, which is a lower bound of the cost, and goes from there
by convex programs with exact Jacobians; where nothing but convex constraints is given, the relaxation is the answer.
``annealing`` is the paper's Algorithm 1. Both say how far from the best possible they ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, BoolArray, check_finite, check_shape, freeze
from dynid.engine import Engine, Progress
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.bounds import Bounds, read_bounds
from dynid.estimation.constraints.conditions import Condition, Violation, as_conditions, check_names
from dynid.estimation.constraints.constraints import Constraint, PositiveEffects, constraints_from_table
from dynid.estimation.constraints.expression import conditions_from_tables
from dynid.estimation.convex.conic import ConsistentSet, onto_equalities
from dynid.estimation.convex.layout import Layout
from dynid.estimation.linear import LinearProblem
from dynid.estimation.methods.registry import options_given
from dynid.estimation.outcome import Outcome
from dynid.estimation.result import Estimate
from dynid.estimation.retrieval.joint_wrench import joint_wrenches, largest_joint_wrench, motions_of, why_no_wrench
from dynid.estimation.retrieval.problem import PULLS, PULLS_OF_DATA, PULLS_TO_PRIOR, RetrievalProblem
from dynid.estimation.retrieval.search import Found, Optimiser, Search
from dynid.estimation.seen import DATA_TOLERANCE
from dynid.estimation.uncertainty import CovarianceKind, check_kind, uncertainty
from dynid.parameters import Parameters
from dynid.progress import Tell, silent
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression
from dynid.regression.independence import triangle_of
from dynid.robot.model import Robot

Cost: TypeAlias = Literal["torque", "coefficients"]

MARGIN = 1e-7
"""Smallest eigenvalue of every link, relative to its size, in SI units without a prior."""


@dataclass(frozen=True, eq=False)
class Retrieval:
    """Feasible parameters, what they cost and how far that is from the best possible."""

    base: BaseReduction
    standard: Parameters | Array
    """All parameters; without a prior as plain numbers in the order of the grouping's names."""
    bodies: Array
    """One row of ten per link, parameters that the grouping leaves out included."""
    cost: float
    lower_bound: float
    """No parameter set that meets the convex constraints costs less."""
    violated: Mapping[str, float]
    """Constraints that do not hold, by name, with how far each is outside; empty when all hold."""
    outcome: Outcome
    notes: tuple[str, ...]
    details: Mapping[str, Any]

    @property
    def gap(self) -> float:
        """``cost - lower_bound``."""
        return self.cost - self.lower_bound

    @property
    def base_values(self) -> Array:
        return self.base.base_values(self.standard)

    def joint_wrenches(self, robot: Robot, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Wrench ``(samples, joints, 6)`` of every joint along a motion with these parameters."""
        return joint_wrenches(robot.with_parameters(self._parameters(robot)), q, v, a)

    def _parameters(self, robot: Robot) -> Parameters:
        if self.bodies.shape != robot.parameters.inertials.shape:
            raise InputError(f"{len(self.bodies)} links were retrieved, robot '{robot.name}' has {robot.n_bodies}")
        values = robot.parameters.values.copy()
        values[: robot.parameters.n_inertial] = self.bodies.ravel()
        return robot.parameters.with_values(values)


@dataclass(frozen=True)
class PenaltyRetrieval:
    """Feasible parameters under any constraint.

    ``constraints`` are those every constrained method knows, ``bounds`` a bounds file or its content, ``conditions`` any
    functions of the parameters that are positive where violated (see :mod:`dynid.estimation.constraints.conditions`). The cost is the
    torque error on the triangle (one step) or the distance of the coefficients, ``weighted`` by their covariance or not;
    from coefficients alone, with :meth:`retrieve`, it is always the latter.

    ``starts`` is the paper's Q: with ``refine`` the first is the relaxation and random ones follow only where a gap remains.
    ``steps`` is its kappa, ``growth`` what the penalty weight gains per step, ``iterations`` those of each annealing.
    """

    name: ClassVar[str] = "retrieve"
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "row_order"})
    condition: str = "full"
    margin: float = MARGIN
    absolute: bool = False
    constraints: tuple[Constraint, ...] = ()
    bounds: Bounds | str | None = None
    conditions: tuple[Condition | Violation, ...] = ()
    effects_positive: bool = True
    cost: Cost = "torque"
    weighted: bool = False
    optimiser: Optimiser = "refine"
    starts: int = 2
    steps: int = 10
    growth: float = 10.0
    iterations: int = 100
    seed: int = 0
    engine: str | int | Engine | None = None
    progress: Progress | None = field(default=None, compare=False, repr=False)
    covariance: CovarianceKind = "corrected"
    tolerance: float = DATA_TOLERANCE

    def __post_init__(self) -> None:
        object.__setattr__(self, "constraints", tuple(self.constraints))
        object.__setattr__(self, "conditions", as_conditions(self.conditions))
        check_kind(self.covariance)
        for name, value, known in (
            ("optimiser", self.optimiser, get_args(Optimiser)),
            ("cost of a retrieval", self.cost, get_args(Cost)),
        ):
            if value not in known:
                raise UnknownNameError(name, value, known)
        for name in ("starts", "steps", "iterations"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}, expected at least 1")
        if not (np.isfinite(self.growth) and self.growth > 0.0):
            raise InputError(f"growth of the penalty is {self.growth:g}, expected a positive number")

    @classmethod
    def from_options(cls, options: Mapping[str, Any], robot: Robot, tell: Tell = silent) -> PenaltyRetrieval:
        """The method of a run."""
        bounds = options["bounds"]
        if bounds is not None:
            read_bounds(bounds).check(robot.parameters, f"bounds of '{bounds}'")
        annealing = options["optimiser"] == "annealing"
        return cls(
            **options_given(options, ("condition", "margin")),
            constraints=constraints_from_table(options["constraints"]),
            bounds=bounds,
            conditions=conditions_from_tables(options["conditions"], robot.parameters),
            optimiser=options["optimiser"],
            starts=options["starts"],
            steps=options["steps"],
            growth=options["growth"],
            iterations=options["iterations"],
            seed=options["seed"],
            engine=_engine(options.get("engine", "serial"), annealing and options["starts"] > 1),
            progress=lambda done, total: tell(f"estimating by retrieve: {done} of {total} starts done"),
        )

    # Two steps: from coefficients ---------------------------------------------------------------

    def retrieve(
        self,
        base: BaseReduction,
        beta: ArrayLike,
        *,
        covariance: ArrayLike | None = None,
        prior: Parameters | None = None,
        robot: Robot | None = None,
    ) -> Retrieval:
        """Parameters whose coefficients are nearest to ``beta``, in the metric of their covariance if ``weighted``."""
        start = prior if prior is not None or robot is None else robot.parameters
        if start is not None and start.names != base.parameter_names:
            raise InputError(
                f"the prior has {len(start)} parameters, the base reduction {base.n_parameters}, or other names"
            )
        values = np.asarray(beta, dtype=np.float64)
        check_shape("base values", values, (base.n_base,))
        check_finite("base values", values)
        if self.weighted and covariance is None:
            raise InputError("weighted retrieval needs the covariance of the coefficients, none is given")
        root = np.eye(base.n_base)
        if self.weighted:
            root = _whitening(np.asarray(covariance, dtype=np.float64), base.n_base)
        layout = (
            Layout.of(base.parameter_names)
            if start is None
            else Layout.of_parameters(start, robot.links if robot is not None else ())
        )
        problem = self._problem(layout, base, root, values, 0.0, start, PULLS if start is None else PULLS_TO_PRIOR)
        found = self._solve(problem)
        phi = problem.phi(found.x)
        named = phi[: layout.n_named]
        return Retrieval(
            base=base,
            standard=freeze(named) if start is None else start.with_values(named),
            bodies=freeze(layout.inertials(phi)),
            cost=found.cost,
            lower_bound=found.lower_bound,
            violated=found.violated,
            outcome=found.outcome,
            notes=found.notes,
            details=found.details,
        )

    # One step: from the regression --------------------------------------------------------------

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        if self.weighted and self.cost == "torque":
            raise InputError("weighted retrieval weighs coefficients, the cost is 'torque'; choose the cost 'coefficients'")
        linear = LinearProblem.of(regression, base, prior, self.tolerance)
        weights = np.ones(len(linear.channels))
        triangle = triangle_of(np.vstack(linear.channels))
        beta = linear.solve(weights)
        sigma = linear.noise_sigma(beta, pooled=True)
        spread = uncertainty(linear, beta, weights, sigma, self.covariance)
        root, floor = self._root_and_floor(triangle, beta, linear.seen.mask, spread.covariance)
        robot = regression.robot if regression.has_robot else None
        layout = Layout.of_parameters(prior, robot.links if robot is not None else ())
        problem = self._problem(layout, base, root, beta, floor, prior, PULLS_OF_DATA)
        found = self._solve(problem)
        usable = found.outcome.usable
        standard = prior.with_values(problem.phi(found.x)) if usable else None
        details = {**spread.details, **found.details, "noise_sigma": sigma.tolist()}
        details |= {"cost": found.cost, "lower_bound": found.lower_bound, "gap": found.cost - found.lower_bound}
        details["violated"] = dict(found.violated)
        notes = [*spread.notes, *found.notes]
        if standard is not None:
            motions = motions_of(regression)
            if robot is not None and motions and not robot.floating and not robot.loops:
                details["largest_joint_wrench"] = largest_joint_wrench(robot.with_parameters(standard), motions)
            else:
                details["largest_joint_wrench"] = []
                notes.append(f"what the joints carry is not stated: {why_no_wrench(robot)}")
        outcome = None if found.outcome is Outcome.SOLVED else found.outcome
        new = beta if standard is None or found.details.get("unconstrained_base") else base.base_values(standard)
        return linear.finish(
            self.name,
            new,
            spread.covariance,
            outcome=outcome,
            standard=standard,
            notes=tuple(notes),
            details=details,
        )

    def _root_and_floor(self, triangle: Array, beta: Array, seen: BoolArray, covariance: Array) -> tuple[Array, float]:
        """Root of the cost over the base parameters, and the cost that the linear estimate leaves."""
        if self.cost == "torque":
            return triangle[: len(beta), :-1], float(np.sum((triangle[:, -1] - triangle[:, :-1] @ beta) ** 2))
        root = np.eye(len(beta))[seen]
        if self.weighted:
            root = _whitening(covariance[np.ix_(seen, seen)], int(seen.sum())) @ root
        return root, 0.0

    # Both ---------------------------------------------------------------------------------------

    def _problem(
        self,
        layout: Layout,
        base: BaseReduction,
        root: Array,
        beta: Array,
        floor: float,
        prior: Parameters | None,
        pulls: tuple[float, ...] = PULLS,
    ) -> RetrievalProblem:
        bounds = read_bounds(self.bounds) if isinstance(self.bounds, str) else self.bounds or Bounds({})
        layout = replace(layout, aliases=dict(layout.aliases))  # a plain one, which may travel to another process
        own = (PositiveEffects(),) if self.effects_positive else ()
        conditions = as_conditions((*bounds.conditions(), *self.conditions))
        check_names(conditions, layout)
        consistent = ConsistentSet.of(
            layout,
            condition=self.condition,
            margin=self.margin,
            absolute=self.absolute,
            constraints=(*own, *bounds.convex(), *self.constraints),
            prior=prior,
        )
        E = np.zeros((base.n_base, consistent.n))
        E[:, : base.n_parameters] = base.K * consistent.scale[: base.n_parameters]
        start = np.zeros(consistent.n) if prior is None else layout.extended(prior.values) / consistent.scale
        centre = onto_equalities(E, beta, start)
        return RetrievalProblem(consistent, root @ E, freeze(centre), floor, E, conditions, bounds, pulls)

    def _solve(self, problem: RetrievalProblem) -> Found:
        search = Search(
            optimiser=self.optimiser,
            starts=self.starts,
            steps=self.steps,
            growth=self.growth,
            iterations=self.iterations,
            seed=self.seed,
            engine=self.engine,
            progress=self.progress,
        )
        return search.solve(problem)


def _engine(asked: str, several: bool) -> str | None:
    """Where starts run: as asked for; without, annealing of several starts takes all cores."""
    if asked != "serial":
        return asked
    return "processes" if several else None


def _whitening(covariance: Array, n: int) -> Array:
    """``S`` with ``S^T S`` the inverse of the covariance."""
    check_shape("covariance", covariance, (n, n))
    check_finite("covariance", covariance)
    eigenvalues, vectors = np.linalg.eigh(0.5 * (covariance + covariance.T))
    if not n or eigenvalues[0] <= 0.0:
        smallest = float(eigenvalues[0]) if n else float("nan")
        raise InputError(f"covariance of the coefficients has the eigenvalue {smallest:.3g}, expected positive ones")
    return np.asarray(vectors.T / np.sqrt(eigenvalues)[:, None])
