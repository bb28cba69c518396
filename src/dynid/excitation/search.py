"""The search of a design: many random starts, of which the better ones are taken further, the last ones proven on a fine grid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from time import monotonic
from typing import Any

import numpy as np

from dynid.arrays import Array, freeze
from dynid.engine import Engine
from dynid.excitation.barrier import Point, minimise
from dynid.excitation.criteria import Criterion, LogDet, criterion_from
from dynid.excitation.limits import margins_of
from dynid.excitation.problem import DesignProblem

ROUNDS = ((3, 0.5, 1.0), (1, 0.75, 0.4), (2, 0.95, 0.4))
"""Rounds of the search: how many stages each takes, which share of the time budget it may reach, and which share of the
candidates of the round before enters it. What a start is worth shows after the third stage (correlation 0.8 with the end)."""

PROOFS = 4.0
"""Proofs on the fine grid for which time is kept at the end: of two motions side by side, of one made smaller because neither held,
and of what will be played."""

Progress = Callable[[int, int, float], None]
"""Told after every piece of work: how many are done, of how many, and the best condition number so far."""


@dataclass(frozen=True)
class Stage:
    """A criterion, how strongly limits repel, for how many steps at most, and what a step must promise."""

    criterion: Criterion
    mu: float
    iterations: int
    enough: float = 1e-6


def stages_for(criterion: str | Criterion) -> list[Stage]:
    """Log-determinant with a ridge first, then the criterion itself, ever sharper."""
    plan = [(2.0, 1e-2, 1e-3), (4.0, 3e-3, 3e-4), (8.0, 1e-3, 1e-4), (32.0, 1e-4, 1e-5), (128.0, 1e-5, 1e-6)]
    later = [Stage(criterion_from(criterion, power=power), mu, 300, enough) for power, mu, enough in plan]
    return [Stage(LogDet(ridge=1e-6), 3e-2, 300, 1e-3), *later]


@dataclass(frozen=True, eq=False)
class Candidate:
    """One start and how far it came."""

    index: int
    x: Array
    value: float
    """The criterion, with its last power."""
    condition: float
    curvature: Array | None
    cut_off: bool = False
    failing: Mapping[str, float] | None = None
    """Limits that it violates on the fine grid, and by how much; None before the fine grid was looked at."""

    @property
    def proven(self) -> bool:
        return self.failing is not None and not self.failing


def search(
    problem: DesignProblem,
    stages: list[Stage],
    starts: int,
    seed: int,
    budget: tuple[float, float],
    engine: Engine,
    progress: Progress | None,
) -> tuple[list[list[Candidate]], bool]:
    """Candidates of every round, of the last one those that are proven, and whether time cut anything off."""
    began, seconds = budget
    reserve = min(max(min(1.0, 0.5 * seconds), 0.5 + PROOFS * problem.proof_seconds()), 0.6 * seconds)
    counts = _entering(starts)
    total, done, best = sum(counts), 0, np.inf
    rounds: list[list[Candidate]] = []
    items: Sequence[Any] = range(starts)
    first = 0
    for number, ((n_stages, share, _), count) in enumerate(zip(ROUNDS, counts, strict=True)):
        part = stages[first : first + n_stages]
        deadline = began + min(share * seconds, share / ROUNDS[-1][1] * (seconds - reserve))
        first += n_stages
        task: Callable[[Any], Candidate | None]
        if number == 0:
            task = _Begin(problem, part, seed, deadline)
        else:
            items = list(enumerate(_ranked(rounds[-1])[:count]))
            task = (_Finish if number == len(ROUNDS) - 1 else _Continue)(problem, part, deadline)
        results: list[Candidate] = []
        for result in engine.map(task, items):
            done += 1
            if result is not None:
                results.append(result)
                best = min(best, result.condition)
            if progress is not None:
                progress(done, total, best)
        rounds.append(results)
    cut_off = len(rounds[0]) < starts or any(candidate.cut_off for results in rounds for candidate in results)
    rounds[-1] = _proven_or_saved(problem, _ranked(rounds[-1]), stages[-1])
    return rounds, cut_off


def _entering(starts: int) -> list[int]:
    """How many candidates enter every round."""
    counts = []
    for _, _, share in ROUNDS:
        starts = max(1, int(np.ceil(share * starts)))
        counts.append(starts)
    return counts


def _ranked(candidates: list[Candidate]) -> list[Candidate]:
    """The best first."""
    return sorted(candidates, key=lambda candidate: (candidate.value, candidate.index))


def _proven_or_saved(problem: DesignProblem, finished: list[Candidate], last: Stage) -> list[Candidate]:
    """Those that are proven; where neither time nor attempts were enough for a proof, the first that can be saved."""
    proven = [candidate for candidate in finished if candidate.proven]
    if proven:
        return proven
    rescued = (_rescued(problem, candidate, last.criterion) for candidate in finished)
    return list(islice((candidate for candidate in rescued if candidate is not None), 1))


@dataclass(frozen=True, eq=False)
class _Begin:
    """From a random motion through the first stages; only the first start is begun after the deadline."""

    problem: DesignProblem
    stages: list[Stage]
    seed: int
    deadline: float

    def __call__(self, index: int) -> Candidate | None:
        if index > 0 and monotonic() > self.deadline:
            return None
        x = self.problem.random_start(np.random.default_rng([self.seed, index]))
        return _improved(self.problem, Candidate(index, x, np.inf, np.inf, None), self.stages, self.deadline)


@dataclass(frozen=True, eq=False)
class _Continue:
    """Through the next stages; takes the rank of a candidate beside it."""

    problem: DesignProblem
    stages: list[Stage]
    deadline: float

    def __call__(self, ranked: tuple[int, Candidate]) -> Candidate:
        return _improved(self.problem, ranked[1], self.stages, self.deadline)


@dataclass(frozen=True, eq=False)
class _Finish:
    """The last stages, and the proof on a fine grid; limits that the design's grid missed are tightened and held once more.

    After the deadline only the best candidate is still proven, once.
    """

    problem: DesignProblem
    stages: list[Stage]
    deadline: float
    attempts: int = 4

    def __call__(self, ranked: tuple[int, Candidate]) -> Candidate:
        rank, entry = ranked
        if rank > 0 and monotonic() > self.deadline:
            return replace(entry, cut_off=True)
        problem, start = self.problem, entry
        for _ in range(self.attempts):
            candidate = _improved(problem, start, self.stages, self.deadline)
            failing = _failing(self.problem, candidate.x)
            if not failing:
                return replace(candidate, failing=failing)
            if monotonic() > self.deadline:
                return replace(candidate, failing=failing, cut_off=True)
            problem = problem.looking_closer(failing)
            x = _first(_on_the_way(problem, candidate.x, entry.x), problem.inside)
            if x is None:
                break
            start = replace(entry, x=freeze(x), curvature=None, cut_off=candidate.cut_off)
        return entry


def _failing(problem: DesignProblem, x: Array) -> dict[str, float]:
    """Limits that are violated on the fine grid, and by how much."""
    found = margins_of(problem.measured, problem.trajectory(x), problem.limits, problem.n_proof_times)
    return {name: -margin.value for name, margin in found.items() if margin.value < 0.0}


def _on_the_way(problem: DesignProblem, x: Array, back: Array) -> Iterator[Array]:
    """Motions from ``x`` back to one that kept farther from limits, then smaller and smaller ones about its mean pose."""
    for share in (0.0, 0.1, 0.3, 0.6, 1.0):
        yield x + share * (back - x)
    for power in range(1, 30):
        yield problem.contracted(back, 0.9**power)


def _rescued(problem: DesignProblem, candidate: Candidate, criterion: Criterion) -> Candidate | None:
    """The candidate made smaller until the fine grid finds nothing; a closer look, which is cheap, comes before each proof."""
    failing = _failing(problem, candidate.x) if candidate.failing is None else candidate.failing
    closer = problem.looking_closer(failing) if failing else problem
    for factor in (1.0, 0.98, *0.9 ** np.arange(1, 30)):
        x = problem.contracted(candidate.x, factor)
        if closer.inside(x) and not _failing(problem, x):
            condition, value = problem.measured_condition(x), problem.value(x, criterion)
            return replace(candidate, x=freeze(x), value=value, condition=condition, failing={})
    return None


def _first(motions: Iterable[Array], fits: Callable[[Array], bool]) -> Array | None:
    """The first motion that fits."""
    return next((x for x in motions if fits(x)), None)


def _improved(
    problem: DesignProblem,
    candidate: Candidate,
    stages: Sequence[Stage],
    deadline: float,
) -> Candidate:
    """The candidate after these stages, judged by the last one's criterion without barriers."""
    point = Point(candidate.x, candidate.value, candidate.curvature)
    cut_off = candidate.cut_off
    for stage in stages:
        if monotonic() > deadline:
            cut_off = True
            break
        function = partial(problem.function, criterion=stage.criterion, mu=stage.mu)
        point = minimise(function, problem.linear, point, stage.mu, stage.iterations, deadline, stage.enough)
        if point.out_of_time:
            cut_off = True
            break
    moved = point.x is not candidate.x or not np.isfinite(candidate.condition)
    condition = problem.measured_condition(point.x) if moved else candidate.condition
    value = problem.value(point.x, stages[-1].criterion)
    return Candidate(candidate.index, point.x, value, condition, point.curvature, cut_off)
