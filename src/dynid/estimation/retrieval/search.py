"""The search for the cheapest point that meets every condition: relaxation, refinement, random starts."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from threading import Event
from typing import Any, Literal, TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.engine import Engine, Progress, Threads, engine_from
from dynid.estimation.convex.conic import ON_BOUNDARY, blamed, deepest_in
from dynid.estimation.outcome import Outcome
from dynid.estimation.retrieval.annealing import Annealed, anneal
from dynid.estimation.retrieval.problem import Interrupted, RetrievalProblem
from dynid.estimation.retrieval.refinement import Refined, exact_base, random_start, refine

Optimiser: TypeAlias = Literal["refine", "annealing"]
SMALL_GAP = 1e-3
"""Gap, relative to the cost, below which no further start is worth its time."""


@dataclass(frozen=True)
class Search:
    """How a problem is solved, with the options of :class:`~dynid.estimation.retrieval.retrieve.PenaltyRetrieval`."""

    optimiser: Optimiser
    starts: int
    steps: int
    growth: float
    iterations: int
    seed: int
    engine: str | int | Engine | None
    progress: Progress | None

    def solve(self, problem: RetrievalProblem) -> Found:
        """The cheapest point that was found; that of least violations where none meets every condition."""
        began = time.perf_counter()
        start, lower_bound, verdict = problem.relaxed()
        if start is None:
            return _nothing(problem, verdict)
        tried, notes = _Tried(), []
        details: dict[str, Any] = {"optimiser": self.optimiser, "relaxation": verdict}
        settled = problem.settled(start)
        relaxation = Refined(settled, problem.cost(settled), problem.violations(settled), 0, True)
        try:
            if self.optimiser == "refine":
                self._refine(problem, start, relaxation, lower_bound, tried, details)
            else:
                stop = Event() if isinstance(engine_from(self.engine), Threads) else None
                work = partial(_annealed, problem, self.steps, self.growth, self.iterations, stop)
                self._run_starts(work, self.starts, tried, stop)
            best = tried.best or Refined(start, problem.cost(start), problem.violations(start), 0, True)
        except KeyboardInterrupt as interrupt:
            best, note = self._so_far(interrupt, tried, relaxation)
            details["interrupted"] = True
            notes.append(note)
        details |= {"starts": len(tried.costs), "start_costs": tried.costs, "seconds": time.perf_counter() - began}
        outcome = Outcome.SOLVED
        if best.violations:
            outcome = Outcome.STALLED
            notes += [f"not met: {name}, by {outside:.3g}" for name, outside in best.violations.items()]
        elif details.get("interrupted"):
            outcome = Outcome.NOT_CONVERGED
        return Found(best.x, best.cost, lower_bound, best.violations, outcome, tuple(notes), details)

    def _refine(
        self,
        problem: RetrievalProblem,
        start: Array,
        relaxation: Refined,
        lower_bound: float,
        tried: _Tried,
        details: dict[str, Any],
    ) -> None:
        """The relaxation itself, the exact base values, the refinement from the relaxation, random starts: the first that does."""
        size = max(float(np.sum((problem.G @ problem.centre) ** 2)), 1e-300)
        if problem.cost(start) - problem.floor < 1e-6 * size:
            same = exact_base(problem, start)
            if same is not None:
                tried.add(same)
                details |= {"unconstrained_base": True, "iterations": same.iterations, "exact_jacobians": same.exact}
                return
        if relaxation.holds:
            tried.add(relaxation)
            details["iterations"] = 0
            return
        first = refine(problem, start)
        tried.add(first)
        details |= {"iterations": first.iterations, "exact_jacobians": first.exact}
        if first.holds and first.cost - lower_bound <= SMALL_GAP * max(first.cost, 1e-300):
            return
        self._run_starts(partial(_refined, problem), self.starts - 1, tried)

    def _run_starts(self, work: Any, count: int, tried: _Tried, stop: Event | None = None) -> None:
        """``count`` starts through the engine, each taken as it is done; each has its seed, so the order does not matter."""
        seeds = np.random.SeedSequence(self.seed).spawn(count) if count else []
        first = len(tried.costs)
        for index, found in engine_from(self.engine).completed(work, seeds, self.progress, stop):
            tried.add(found, first + index)

    def _so_far(self, interrupt: KeyboardInterrupt, tried: _Tried, relaxation: Refined) -> tuple[Refined | Annealed, str]:
        """The best that an interrupted search has, and what it is; the interrupt itself goes on where it has nothing."""
        candidates: list[tuple[Refined | Annealed, str]] = []
        if tried.best is not None:
            candidates.append((tried.best, "the best of these is the result"))
        if relaxation.holds:
            candidates.append(
                (relaxation, "the result is the optimum of the convex relaxation, which meets every condition")
            )
        if isinstance(interrupt, Interrupted):
            candidates.append((interrupt.best, "the result is the best point of the start that was under way"))
        if not candidates:
            raise interrupt
        best, words = min(candidates, key=lambda candidate: _order(candidate[0]))
        return best, f"interrupted after {tried.done} of {self.starts} starts; {words}"


@dataclass(frozen=True, eq=False)
class Found:
    """What solving a problem gave."""

    x: Array
    cost: float
    lower_bound: float
    violated: Mapping[str, float]
    outcome: Outcome
    notes: tuple[str, ...]
    details: dict[str, Any]


class _Tried:
    """What the starts found, by their number: however they come in, the answer is the same."""

    def __init__(self) -> None:
        self._found: dict[int, Refined | Annealed] = {}
        self.done = 0
        """Starts that ended, those that found nothing included."""

    def add(self, found: Refined | Annealed | None, number: int = 0) -> None:
        self.done += 1
        if found is not None:
            self._found[number] = found

    @property
    def costs(self) -> list[float]:
        return [self._found[number].cost for number in sorted(self._found)]

    @property
    def best(self) -> Refined | Annealed | None:
        """Whatever holds comes before whatever does not, then the cheapest, then the first."""
        return min((self._found[number] for number in sorted(self._found)), key=_order, default=None)


def _order(found: Refined | Annealed) -> tuple[bool, float, float]:
    return bool(found.violations), sum(found.violations.values()), found.cost


def _annealed(
    problem: RetrievalProblem,
    steps: int,
    growth: float,
    iterations: int,
    stop: Event | None,
    seed: np.random.SeedSequence,
) -> Annealed:
    """One start of Algorithm 1; a function of its own so that another process can run it."""
    return anneal(problem, np.random.default_rng(seed), steps=steps, growth=growth, iterations=iterations, stop=stop)


def _refined(problem: RetrievalProblem, seed: np.random.SeedSequence) -> Refined | None:
    """One random start of the refinement; None where the start could not be brought into the convex set."""
    start = random_start(problem, np.random.default_rng(seed))
    return None if start is None else refine(problem, start)


def _nothing(problem: RetrievalProblem, verdict: str) -> Found:
    """No point meets the convex constraints: say which of them cannot hold together."""
    best = deepest_in(problem.consistent, reference=problem.centre)
    x, outcome = problem.centre, Outcome.STALLED
    notes: Iterable[str] = (f"the solver ended with '{verdict}'",)
    if best.depth < -ON_BOUNDARY:
        labels = blamed(problem.consistent, best.dual)
        notes = (f"cannot hold together with the rest: {label}" for label in labels[:4])
        x, outcome = best.x, Outcome.INFEASIBLE
    details = {"relaxation": verdict, "starts": 0}
    return Found(x, problem.cost(x), problem.floor, problem.violations(x), outcome, tuple(notes), details)
