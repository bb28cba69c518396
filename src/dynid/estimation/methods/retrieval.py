"""Retrieval of feasible parameters with any constraint (Gaz, Cognetti, Oliva, Robuffo Giordano, De Luca 2019).

    minimise  || pi(p) - pi_hat ||^2   or   || Y pi(p) - tau ||^2     over  p  with  h_i(p) <= 0

Two ways. ``refine`` starts at the optimum of the convex relaxation, which is a lower bound of the cost, and goes from there
by convex programs with exact Jacobians; where nothing but convex constraints is given, the relaxation is the answer.
``annealing`` is the paper's Algorithm 1. Both say how far from the best possible they ended.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any, ClassVar, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from dynid.engine import Engine, Progress, Tell, Threads, engine_from, silent
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.base import Constraint
from dynid.estimation.constraints.bounds import Bounds, conditions_from_tables, constraints_from_table, read_bounds
from dynid.estimation.constraints.conditions import Condition, Violation, as_conditions
from dynid.estimation.linear import DATA_TOLERANCE, LinearProblem
from dynid.estimation.methods.annealing import anneal
from dynid.estimation.methods.retrieval_search import (
    PULL,
    PULL_OF_DATA,
    PULL_TO_PRIOR,
    Candidate,
    Interrupted,
    Retrieval,
    RetrievalProblem,
    exact_base,
    refine,
    refine_from_random,
    whitening,
)
from dynid.estimation.result import Estimate, Outcome
from dynid.estimation.uncertainty import CovarianceKind, check_kind, uncertainty
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction
from dynid.regression.factor import Regression

Optimiser: TypeAlias = Literal["refine", "annealing"]
Cost: TypeAlias = Literal["torque", "coefficients"]

MARGIN = 1e-7
"""Smallest eigenvalue of every link, relative to its size, in SI units without a prior."""
SMALL_GAP = 1e-3
"""Gap, relative to the cost, below which no further start is worth its time."""


@dataclass(frozen=True)
class PenaltyRetrieval:
    """Feasible parameters under any constraint, by penalties (Gaz and others 2019).

    The cost is the torque error on the triangle (one step) or the distance of the coefficients; from coefficients alone, with
    :meth:`retrieve`, it is always the latter.

    Args:
        condition: ``full`` or ``plain``, as for :class:`~dynid.estimation.methods.sdp.FeasibleSDP`.
        margin: smallest eigenvalue of every link, relative to its size in the prior.
        absolute: take the margin in SI units.
        constraints: those that every constrained method knows.
        bounds: bounds of parameters, or the path of a file of them.
        conditions: functions of the parameters that are positive where violated, see
            :mod:`dynid.estimation.constraints.conditions`.
        effects_positive: friction and rotor inertia that cannot be negative are zero or more.
        cost: ``torque``, or ``coefficients`` for the distance of base values.
        weighted: count joints, or coefficients, by their own noise.
        optimiser: ``refine`` (from the convex relaxation; random starts follow only where a gap remains) or ``annealing``.
        starts: the paper's Q.
        steps: its kappa, each with a larger penalty.
        growth: what the weight of the penalty gains per step.
        iterations: those of each annealing.
        seed: of everything random.
        engine: where starts run.
        progress: called after each start.
        covariance: ``corrected`` for rows that belong together in time, or ``classical``.
        tolerance: relative size below which a singular value counts as zero.

    Examples:
        >>> import dynid
        >>> from dynid.estimation.constraints.bounds import Bounds
        >>> robot = dynid.demo_robot(effects="none")
        >>> data, base = dynid.build_regression(robot, dynid.demo_samples(robot)), dynid.reduce_to_base(robot)
        >>> result = dynid.estimate(data, base, dynid.PenaltyRetrieval(bounds=Bounds({"m7": (0.1, 5.0)}), starts=1))
        >>> result.feasible, 0.1 <= result.standard["m7"] <= 5.0
        (True, True)
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
        engine = options.get("engine", "serial")
        if engine == "serial":  # not asked for: annealing of several starts takes all cores
            engine = "processes" if options["optimiser"] == "annealing" and options["starts"] > 1 else None
        chosen = ("condition", "margin", "optimiser", "starts", "steps", "growth", "iterations", "seed")
        return cls(
            **{name: options[name] for name in chosen if options.get(name) is not None},
            constraints=constraints_from_table(options["constraints"]),
            bounds=bounds,
            conditions=conditions_from_tables(options["conditions"], robot.parameters),
            engine=engine,
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
        if self.weighted and covariance is None:
            raise InputError("weighted retrieval needs the covariance of the coefficients, none is given")
        root = whitening(covariance, base.n_base) if self.weighted else np.eye(base.n_base)
        pull = PULL if prior is None and robot is None else PULL_TO_PRIOR
        return self.solve(self.problem(base, beta, root, prior=prior, robot=robot, pull=pull))

    # One step: from the regression --------------------------------------------------------------

    def estimate(self, regression: Regression, base: BaseReduction, prior: Parameters) -> Estimate:
        if self.weighted and self.cost == "torque":
            raise InputError("weighted retrieval weighs coefficients, the cost is 'torque'; choose the cost 'coefficients'")
        linear = LinearProblem.of(regression, base, prior, self.tolerance)
        weights = np.ones(len(linear.channels))
        triangle, seen = linear.triangle(weights), linear.seen.mask
        beta = linear.solve(weights)
        sigma = linear.noise_sigma(beta, pooled=True)
        covariance, spread = uncertainty(linear, beta, weights, sigma, self.covariance)
        root, floor = triangle[: len(beta), :-1], float(np.sum((triangle[:, -1] - triangle[:, :-1] @ beta) ** 2))
        if self.cost == "coefficients":
            root, floor = np.eye(len(beta))[seen], 0.0
            if self.weighted:
                root = whitening(covariance[np.ix_(seen, seen)], int(seen.sum())) @ root
        robot = regression.robot if regression.has_robot else None
        found = self.solve(self.problem(base, beta, root, prior=prior, robot=robot, floor=floor, pull=PULL_OF_DATA))
        standard = prior.with_values(found.problem.phi(found.x)) if found.outcome.usable else None
        details = {**spread, **found.details, "noise_sigma": sigma.tolist()}
        details |= {"cost": found.cost, "lower_bound": found.lower_bound, "gap": found.gap, "gap_share": found.gap_share}
        details["violated"] = dict(found.violated)
        notes = found.notes
        if standard is not None:
            samples = (one for source in regression.sources for one in source.samples)
            details["largest_joint_wrench"], unknown = found.largest_joint_wrench(robot, samples)
            notes += (f"what the joints carry is not stated: {unknown}",) if unknown else ()
        return linear.finish(
            self.name,
            beta if standard is None or found.details.get("unconstrained_base") else base.base_values(standard),
            covariance,
            outcome=None if found.outcome is Outcome.SOLVED else found.outcome,
            standard=standard,
            notes=notes,
            details=details,
        )

    # Both ---------------------------------------------------------------------------------------

    def problem(
        self,
        base: BaseReduction,
        beta: ArrayLike,
        root: ArrayLike,
        *,
        prior: Parameters | None,
        robot: Robot | None,
        floor: float = 0.0,
        pull: float = PULL,
    ) -> RetrievalProblem:
        """The problem of given base values with the cost ``|| root (K phi - beta) ||^2 + floor``."""
        return RetrievalProblem.of(
            base,
            beta,
            read_bounds(self.bounds) if isinstance(self.bounds, str) else self.bounds or Bounds({}),
            self.conditions,
            self.constraints,
            R=np.asarray(root),
            condition=self.condition,
            margin=self.margin,
            absolute=self.absolute,
            effects_positive=self.effects_positive,
            prior=prior,
            robot=robot,
            floor=floor,
            pull=pull,
        )

    def solve(self, problem: RetrievalProblem) -> Retrieval:
        """The cheapest point that was found; that of least violations where none meets every condition."""
        began = time.perf_counter()
        start, lower_bound, verdict = problem.relaxed()
        if start is None:
            return problem.without_answer(verdict)
        tried: dict[int, Candidate | None] = {}
        details: dict[str, Any] = {"optimiser": self.optimiser, "relaxation": verdict}
        notes: list[str] = []
        relaxation = problem.candidate(problem.settled(start))
        size = max(float(np.sum((problem.G @ problem.centre) ** 2)), 1e-300)
        try:  # the exact base values, the relaxation itself, the refinement from it, random starts: the first that does
            if self.optimiser == "annealing":
                stop = Event() if isinstance(engine_from(self.engine), Threads) else None
                work = partial(anneal, problem, steps=self.steps, growth=self.growth, iterations=self.iterations, stop=stop)
                self._run_starts(work, self.starts, tried, stop)
            elif problem.cost(start) - problem.floor < 1e-6 * size and (same := exact_base(problem, start)) is not None:
                tried[0] = same
                details |= {"unconstrained_base": True, "iterations": same.iterations, "exact_jacobians": same.exact}
            elif relaxation.holds:
                tried[0] = relaxation
                details["iterations"] = 0
            else:
                first = tried[0] = refine(problem, start)
                details |= {"iterations": first.iterations, "exact_jacobians": first.exact}
                if not first.holds or first.cost - lower_bound > SMALL_GAP * max(first.cost, 1e-300):
                    self._run_starts(partial(refine_from_random, problem), self.starts - 1, tried)
            best = min(_found(tried), key=lambda one: one.rank, default=problem.candidate(start))
        except KeyboardInterrupt as interrupt:
            best, note = self._so_far(interrupt, tried, relaxation)
            details["interrupted"] = True
            notes.append(note)
        costs = [one.cost for one in _found(tried)]
        details |= {"starts": len(costs), "start_costs": costs, "seconds": time.perf_counter() - began}
        outcome = Outcome.SOLVED
        if best.violations:
            outcome = Outcome.STALLED
            notes += [f"not met: {name}, by {outside:.3g}" for name, outside in best.violations.items()]
        elif details.get("interrupted"):
            outcome = Outcome.NOT_CONVERGED
        return Retrieval(problem, best.x, best.cost, lower_bound, best.violations, outcome, tuple(notes), details)

    def _run_starts(self, work: Any, count: int, tried: dict[int, Candidate | None], stop: Event | None = None) -> None:
        """``count`` starts through the engine, each taken as it is done; each has its seed, so the order does not matter."""
        seeds = np.random.SeedSequence(self.seed).spawn(count) if count else []
        first = len(tried)
        for index, found in engine_from(self.engine).completed(work, seeds, self.progress, stop):
            tried[first + index] = found

    def _so_far(
        self, interrupt: KeyboardInterrupt, tried: Mapping[int, Candidate | None], relaxation: Candidate
    ) -> tuple[Candidate, str]:
        """The best that an interrupted search has, and what it is; the interrupt itself goes on where it has nothing."""
        candidates = [(one, "the best of these is the result") for one in _found(tried)]
        if relaxation.holds:
            candidates.append(
                (relaxation, "the result is the optimum of the convex relaxation, which meets every condition")
            )
        if isinstance(interrupt, Interrupted):
            candidates.append((interrupt.best, "the result is the best point of the start that was under way"))
        if not candidates:
            raise interrupt
        best, words = min(candidates, key=lambda candidate: candidate[0].rank)
        return best, f"interrupted after {len(tried)} of {self.starts} starts; {words}"


def _found(tried: Mapping[int, Candidate | None]) -> list[Candidate]:
    """What the starts found, in the order of their numbers: however they come in, the answer is the same."""
    return [found for _, found in sorted(tried.items()) if found is not None]
