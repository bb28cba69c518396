"""The search for an exciting motion: the best of several starts, each strictly inside every limit.

A third of the starts draw a random motion within the limits and improve it in stages: log-determinant with a ridge first, because it is
smooth and finite even for a motion that excites few parameters; then the condition number with growing power and shrinking barrier. The
other starts set out between the best motion so far and a random one, a few at a time: near a good motion there often is a better one.
The best are taken further and proven on a fine grid. The work is fixed by the options and
the seed, so a seed gives the same motion again; the time budget only cuts work off, and the result says when it did. The first start has
a least number of steps, however short the budget, and a motion that was cut off is compared with random ones. Part of the
budget is kept for the proof, whose cost is measured before the search; first-use compilation is waited for before the clock starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from math import ceil
from time import monotonic

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, freeze
from dynid.dynamics.regressors import torque_regressor
from dynid.engine import Engine, Threads, engine_from, one_blas_thread
from dynid.errors import InputError
from dynid.excitation.barrier import Point, minimise
from dynid.excitation.criteria import Criterion, SpectralCriterion, criterion_from
from dynid.excitation.design_problem import DesignProblem, with_smooth_sign
from dynid.excitation.excitation_result import Excitation, finished_excitation
from dynid.excitation.gradient import refuse_floating, torque_gradient
from dynid.excitation.limits import Limits, margins_of, pose_limits
from dynid.excitation.shapes import FourierShape, LinearShape
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction, reduce_to_base

DEFAULT_SECONDS = 60.0
DEFAULT_STARTS = 36

COMPILED_S = 3.0
"""A first call that takes so much longer than the second was compiling; loading what is compiled takes less."""

RANDOM_SHARE = 0.35
"""Share of the starts that begin with a random motion; the others begin between the best motion so far and a random one."""

DRAWN, MIXED, PROVEN = slice(0, 3), slice(2, 4), slice(4, 6)
"""Stages of a random start, of one between the best motion and a random one, and of the motions that are proven at the end."""

SHARES = (0.4, 0.8, 0.95)
"""Share of the time budget that these three parts of the search may reach."""

AT_A_TIME = 4
"""Starts between the best motion and a random one that begin together: a fixed number, so that a seed gives the same motion on any
number of cores."""

AWAY = (0.1, 0.5)
"""Shares of the way from the best motion to a random one."""

FINALISTS = 2
"""Motions that are proven at the end."""

LEAST_STEPS, LEAST_S = 10, 2.0
"""Steps that the first start makes in each stage of the first round though its share of the time is over, as long as the budget, or so
many seconds, are not: a motion that was only drawn at random may have a condition number a hundred times that of one after so many
steps."""

WORSE = 1.5
"""Growth of the condition number beyond which a motion that was made smaller to keep its limits is improved again."""

RANDOM_MOTIONS = 5
"""Random motions within the same limits to which one is compared whose search was cut off."""

ATTEMPTS = 4
"""How often a motion that breaks limits between the times of the design is sought again, with these looked at more closely."""

PROOFS = 4.0
"""Proofs on the fine grid for which time is kept at the end: of two motions side by side, of one made smaller because neither held,
and of what will be played."""

SINGULAR = 1e10
"""Condition number beyond which columns are lost in rounding: the motion does not show some parameter."""

PROOF_SPARE = 1e-5
"""Share of each limit that a proof leaves: what is played is looked at on another grid, with ramps and repeats."""

Progress = Callable[[int, int, float], None]
"""Told after every piece of work: how many are done, of how many, and the best condition number so far."""


def search_excitation(
    robot: Robot,
    base: BaseReduction | None = None,
    shape: LinearShape | None = None,
    *,
    limits: Limits,
    criterion: str | Criterion = "condition",
    scaled: bool = False,
    torque_noise: ArrayLike | None = None,
    rest: bool = True,
    periods: int = 1,
    seconds: float = DEFAULT_SECONDS,
    seed: int = 0,
    starts: int = DEFAULT_STARTS,
    engine: Engine | str | int | None = None,
    progress: Progress | None = None,
) -> Excitation:
    """The best motion of a family within given limits; :func:`dynid.design_excitation` makes the usual limits and calls this.

    Args:
        robot: with the effects whose values the motion must determine.
        base: its base parameters; None to find them.
        shape: family of motions; None for a Fourier series of 20 s with 5 harmonics.
        criterion: ``condition``, ``logdet``, ``smallest``, ``trace``, ``frobenius``, a mix such as ``condition+0.5*logdet``, or a
            :class:`Criterion`.
        scaled: judge the regressor with its columns scaled to length one.
        torque_noise: expected standard deviation of each joint's torque; rows count by its inverse.
        limits: as made by :func:`limits_of`; bodies are kept apart only where these hold a clearance.
        rest: put ramps from and to rest around the motion.
        periods: how often the motion is to be played.
        seconds: time budget; compilation at first use is announced and not counted.
        seed: of the random starts.
        starts: a third of them at random, the others between the best motion so far and a random one.
        engine: where the starts run; None for one thread per core.
        progress: told after every piece of work.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.search import search_excitation
        >>> from dynid.excitation.shapes import FourierShape
        >>> robot = dynid.demo_robot(effects="none").only(["shoulder_pitch"])
        >>> shape = FourierShape(period_s=5.0, harmonics=2)
        >>> limits = dynid.limits_of(robot)
        >>> found = search_excitation(robot, None, shape, limits=limits, seconds=1.0, starts=1, engine="serial")
        >>> found.margins.smallest >= 0.0
        True
    """
    began = monotonic()
    refuse_floating(robot)
    check_budget(seconds, starts)
    chosen = FourierShape() if shape is None else shape
    notes = list(limits.notes)
    with one_blas_thread():  # the starts are the parallelism
        compiling_s = _compiling_seconds(robot, limits)
        if compiling_s > 0.0:
            began += compiling_s
            notes.append(f"{compiling_s:.0f} s of first-use compilation, once on this machine, are not counted")
        found = reduce_to_base(robot) if base is None else base
        problem = DesignProblem.of(robot, found, chosen, limits, scaled, torque_noise)
        runner = Threads() if engine is None else engine_from(engine)
        results, cut_off = run_rounds(problem, stages_for(criterion), starts, seed, (began, seconds), runner, progress)
        winner = _winner(results[-1], robot, found)
        if cut_off:
            notes.append(
                f"the time budget of {seconds:g} s cut the search off: another machine may reach another motion from this seed"
            )
            if told := beside_random(problem, seed, winner.condition, began + seconds):
                notes.append(told)
        trajectory = problem.trajectory(winner.x)
        return finished_excitation(
            robot,
            found,
            trajectory,
            limits,
            criterion=criterion if isinstance(criterion, str) else repr(criterion),
            rest=rest,
            periods=periods,
            n_times=problem.n_proof_times,
            began=began,
            seed=seed,
            starts=tuple(candidate.condition for candidate in results[0]),
            notes=notes,
        )


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
    return [Stage(SpectralCriterion("logdet", ridge=1e-6), 3e-2, 300, 1e-3), *later]


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


def run_rounds(
    problem: DesignProblem,
    stages: list[Stage],
    starts: int,
    seed: int,
    budget: tuple[float, float],
    engine: Engine,
    progress: Progress | None,
) -> tuple[list[list[Candidate]], bool]:
    """All candidates and those of the end that are proven, and whether time cut anything off."""
    began, seconds = budget
    reserve = min(max(min(1.0, 0.5 * seconds), 0.5 + PROOFS * problem.proof_seconds()), 0.6 * seconds)
    deadlines = [began + min(share * seconds, share / SHARES[-1] * (seconds - reserve)) for share in SHARES]
    first = ceil(RANDOM_SHARE * starts)
    further, finalists = min(AT_A_TIME, first), min(FINALISTS, starts)
    total, n_done, best = starts + further + finalists, 0, np.inf

    def run(part: Round, items: Iterable[tuple[int, Candidate | None]]) -> list[Candidate]:
        nonlocal n_done, best
        results = []
        for result in engine.map(part, list(items)):
            n_done += 1
            if result is not None:
                results.append(result)
                best = min(best, result.condition)
            if progress is not None:
                progress(n_done, total, best)
        return results

    drawing = Round(problem, stages[DRAWN], seed, deadlines[0], latest=max(deadlines[-1], began + LEAST_S))
    drawn = run(drawing, ((index, None) for index in range(first)))
    pool = run(Round(problem, stages[MIXED][-1:], seed, deadlines[1]), enumerate(_ranked(drawn)[:further]))
    mixing = Round(problem, stages[MIXED], seed, deadlines[1], mix=True)
    for begin in range(first, starts, AT_A_TIME):
        nearest = _ranked(pool)[0]
        pool += run(mixing, ((index, nearest) for index in range(begin, min(begin + AT_A_TIME, starts))))
    last = run(Round(problem, stages[PROVEN], seed, deadlines[2], prove=True), enumerate(_ranked(pool)[:finalists]))
    begun = len(drawn) + len(pool) - min(len(drawn), further)
    cut_off = begun < starts or any(candidate.cut_off for candidate in (*drawn, *pool, *last))
    return [[*drawn, *pool[min(len(drawn), further) :]], _proven_or_saved(problem, _ranked(last), stages)], cut_off


def _winner(finished: list[Candidate], robot: Robot, base: BaseReduction) -> Candidate:
    """The best of the motions that are proven; refused where there is none, or it shows not all parameters."""
    if not finished:
        raise InputError(
            f"no motion of robot '{robot.name}' was found that keeps every limit between the times of the design; "
            "try more starts, another seed, or wider limits"
        )
    best = _ranked(finished)[0]
    if not best.condition < SINGULAR:
        raise InputError(
            f"no motion of robot '{robot.name}' within these limits shows all {base.n_base} base parameters: the best has the "
            f"condition number {best.condition:.2g}; give wider limits or a longer --period"
        )
    return best


def _ranked(candidates: list[Candidate]) -> list[Candidate]:
    """The best first."""
    return sorted(candidates, key=lambda candidate: (candidate.value, candidate.index))


def _proven_or_saved(problem: DesignProblem, finished: list[Candidate], stages: list[Stage]) -> list[Candidate]:
    """Those that are proven; where neither time nor attempts were enough for a proof, the first that can be saved."""
    proven = [candidate for candidate in finished if candidate.failing is not None and not candidate.failing]
    if proven:
        return proven
    for candidate in finished:
        failing = _failing(problem, candidate.x) if candidate.failing is None else candidate.failing
        closer = problem.looking_closer(failing) if failing else problem
        for factor in (1.0, 0.98, *0.9 ** np.arange(1, 30)):  # smaller until the fine grid finds nothing
            x = problem.contracted(candidate.x, factor)
            if closer.inside(x) and not _failing(problem, x):  # a closer look, which is cheap, comes before each proof
                condition, value = problem.measured_condition(x), problem.value(x, stages[-1].criterion)
                saved = replace(candidate, x=freeze(x), value=value, condition=condition, curvature=None, failing={})
                return [saved if condition < WORSE * candidate.condition else _grown(closer, saved, stages)]
    return []


def _grown(closer: DesignProblem, saved: Candidate, stages: list[Stage]) -> Candidate:
    """A motion that had to be made much smaller, after some steps within limits that are looked at more closely; proven, else as it was."""
    first = [replace(stage, iterations=LEAST_STEPS) for stage in stages[DRAWN]]
    better = _improved(closer, saved, first, np.inf)
    if better.condition < saved.condition and not _failing(closer, better.x):
        return replace(better, value=closer.value(better.x, stages[-1].criterion), failing={})
    return saved


def beside_random(problem: DesignProblem, seed: int, condition: float, deadline: float = np.inf) -> str | None:
    """What to say of a motion that is no better than random ones within the same limits, one or more; None where it is better."""
    others: list[float] = []
    for number in range(RANDOM_MOTIONS):
        if others and monotonic() > deadline:
            break
        try:
            x = problem.random_start(np.random.default_rng([seed, number, 1]))
        except InputError:  # no motion from these draws: nothing to compare with
            continue
        others.append(problem.measured_condition(x))
    if not others or condition < np.median(others):
        return None
    return (
        f"the motion is no better than a random one: its condition number is {condition:.4g}, those of {len(others)} random motions "
        f"within the same limits are {min(others):.4g} to {max(others):.4g}; give the design more --seconds"
    )


@dataclass(frozen=True, eq=False)
class Round:
    """One round of the search: takes a start or a candidate, with its rank, through the next stages.

    After the deadline no start but the first is begun, and in the last round only the best candidate is still proven, once.
    """

    problem: DesignProblem
    stages: Sequence[Stage]
    seed: int
    deadline: float
    latest: float = -np.inf
    """Until when the first start goes on after the deadline, for the least number of its steps."""
    mix: bool = False
    """Whether a candidate is where a start begins that is led away from it, towards a random motion."""
    prove: bool = False
    """Whether motions are held against the fine grid; limits that the design's grid missed are then tightened and held once more."""

    def __call__(self, ranked: tuple[int, Candidate | None]) -> Candidate | None:
        rank, entry = ranked
        late = rank > 0 and monotonic() > self.deadline
        if late and (entry is None or self.mix):
            return None
        if entry is None:
            x = self.problem.random_start(np.random.default_rng([self.seed, rank]))
            entry = Candidate(rank, x, np.inf, np.inf, None)
        elif self.mix:
            led = self.problem.led_away(entry.x, np.random.default_rng([self.seed, rank]), AWAY)
            if led is None:
                return None
            entry = Candidate(rank, led, np.inf, np.inf, entry.curvature)
        if not self.prove:
            return _improved(self.problem, entry, self.stages, self.deadline, self.latest if rank == 0 else -np.inf)
        if late:
            return replace(entry, cut_off=True)
        problem, start = self.problem, entry
        for _ in range(ATTEMPTS):
            candidate = _improved(problem, start, self.stages, self.deadline)
            failing = _failing(self.problem, candidate.x)
            if not failing or monotonic() > self.deadline:
                return replace(candidate, failing=failing, cut_off=candidate.cut_off or bool(failing))
            problem = problem.looking_closer(failing)
            # back towards the motion that kept farther from limits, then smaller and smaller ones about its mean pose
            back = (candidate.x + share * (entry.x - candidate.x) for share in (0.0, 0.1, 0.3, 0.6, 1.0))
            smaller = (problem.contracted(entry.x, 0.9**power) for power in range(1, 30))
            nearest = next(filter(problem.inside, chain(back, smaller)), None)
            if nearest is None:
                break
            start = replace(entry, x=freeze(nearest), curvature=None, cut_off=candidate.cut_off)
        return entry


def _failing(problem: DesignProblem, x: Array) -> dict[str, float]:
    """Limits that are violated on the fine grid, and by how much."""
    found = margins_of(problem.measured, problem.trajectory(x), problem.limits, problem.n_proof_times)
    return {name: PROOF_SPARE - margin for name, margin in found.items() if margin < PROOF_SPARE}


def _improved(
    problem: DesignProblem,
    candidate: Candidate,
    stages: Sequence[Stage],
    deadline: float,
    latest: float = -np.inf,
) -> Candidate:
    """The candidate after these stages, judged by the last one's criterion without barriers; a few steps of each go on to ``latest``."""
    point = Point(candidate.x, candidate.value, candidate.curvature)
    cut_off = candidate.cut_off
    for stage in stages:
        function = partial(problem.function, criterion=stage.criterion, mu=stage.mu)
        for iterations, until in ((LEAST_STEPS, latest), (stage.iterations, deadline)):
            point = replace(point, out_of_time=True)
            if monotonic() < until:
                point = minimise(function, problem.linear, point, stage.mu, iterations, until, stage.enough)
        cut_off = cut_off or point.out_of_time
    moved = point.x is not candidate.x or not np.isfinite(candidate.condition)
    condition = problem.measured_condition(point.x) if moved else candidate.condition
    value = problem.value(point.x, stages[-1].criterion)
    return Candidate(candidate.index, point.x, value, condition, point.curvature, cut_off)


def check_budget(seconds: float, starts: int) -> None:
    """Refuse a time budget or a number of starts with which nothing can be found."""
    if not (np.isfinite(seconds) and seconds > 0.0):
        raise InputError(f"time budget is {seconds:g} s, expected a positive number")
    if starts < 1:
        raise InputError(f"{starts} starts asked for, expected at least 1")


def _compiling_seconds(robot: Robot, limits: Limits) -> float:
    """How long the kernels of a design took to compile at their first use; zero where they were ready."""

    def once() -> float:
        began = monotonic()
        smooth = with_smooth_sign(robot, limits)
        q, v = np.tile(limits.centre, (2, 1)), np.zeros((2, robot.n_joints))
        torque_gradient(smooth, q, v, v, np.zeros_like(torque_regressor(smooth, q, v, v)))
        for limit in pose_limits(robot, limits).values():
            slack, pullback = limit.slacks(q, v, v)
            pullback(np.zeros_like(slack))
        return monotonic() - began

    first = once()
    if first < COMPILED_S:
        return 0.0
    spent = first - once()
    return spent if spent > COMPILED_S else 0.0
