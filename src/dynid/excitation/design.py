"""An exciting motion for the robot in front of you: the best of several searches, each strictly inside every limit.

Each start draws a random motion within the limits and improves it in stages: log-determinant with a ridge first, because it is
smooth and finite even for a motion that sees little; then the condition number with growing power and shrinking barrier. In
three rounds the better starts are taken further; the last ones are proven on a fine grid. The work is fixed by the options and
the seed, so a seed gives the same motion again; the time budget only cuts work off, and the result says when it did. Part of the
budget is kept for the proof, whose cost is measured before the search; first-use compilation is waited for before the clock starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.adapters.blas import one_blas_thread
from dynid.arrays import Array, IntArray, freeze
from dynid.engine import Engine, Threads, engine_from
from dynid.errors import InputError
from dynid.excitation.barrier import LinearLimits, Point, minimise
from dynid.excitation.criteria import Criterion, LogDet, ScaledColumns, condition_number, criterion_from
from dynid.excitation.fourier import FourierShape
from dynid.excitation.gradient import effect_gradient, refuse_floating, smooth_effect, torque_gradient
from dynid.excitation.limits import FINE, Limits, Margins, PoseLimit, limits_of, margins_of, pose_limits
from dynid.excitation.ramps import rest_to_rest
from dynid.excitation.shape import LinearShape, SequenceTrajectory, Trajectory
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.torque import torque_regressor
from dynid.robot.effects import Motion
from dynid.robot.model import Robot

DEFAULT_SECONDS = 60.0
DEFAULT_STARTS = 36

ROUNDS = ((3, 0.5, 1.0), (1, 0.75, 0.4), (2, 0.95, 0.4))
"""Rounds of the search: how many stages each takes, which share of the time budget it may reach, and which share of the
candidates of the round before enters it. What a start is worth shows after the third stage (correlation 0.8 with the end)."""

MEASURE_HZ = 100.0
"""Rate at which a finished motion is judged."""

SMOOTH_SIGN = 0.03
"""Width of the smooth sign that stands for Coulomb's during the search, as a share of each joint's speed limit."""

POSE_FINENESS = 2.0
"""Limits that depend on the pose are looked at so many times as often as the regressor."""

COMPILED_S = 3.0
"""A first call that takes so much longer than the second was compiling; loading what is compiled takes less."""

PROOFS = 4.0
"""Proofs on the fine grid for which time is kept at the end: of two motions side by side, of one made smaller because neither held,
and of what will be played."""

BROKEN = 1e-6
"""Share of a limit by which a finished motion may exceed it: rounding."""

Progress = Callable[[int, int, float], None]
"""Told after every piece of work: how many are done, of how many, and the best condition number so far."""


@dataclass(frozen=True)
class Stage:
    """A criterion, how strongly limits repel, for how many steps at most, and what a step must promise."""

    criterion: Criterion
    mu: float
    iterations: int
    enough: float = 1e-6


@dataclass(frozen=True, eq=False)
class Excitation:
    """A designed motion and what is known of it."""

    robot: Robot
    base: BaseReduction
    trajectory: Trajectory
    """The motion that is judged: one period where it repeats."""
    playable: Trajectory
    """What is to be played: the same with ramps from and to rest, if they were asked for."""
    limits: Limits
    criterion: str
    condition_number: float
    """2-norm, of the base regressor in the default grouping, unscaled, at 100 Hz."""
    condition_number_scaled: float
    singular_values: Array
    trace_of_inverse: float
    """``sqrt(trace((W^T W)^-1))``: standard error of all base parameters together per unit of torque noise."""
    margins: Margins
    seconds: float
    seed: int
    starts: tuple[float, ...] = ()
    """Condition number that each start reached before the best were finished."""
    model: str = "torque"
    energy_condition_number: float | None = None
    scaling: float | None = None
    """Largest over smallest entry of the energy regressor, for motions through optimal points."""
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """What scripts rely on."""
        judged, more = self.condition_number, {}
        if self.energy_condition_number is not None:  # what was designed is the energy model's matrix
            judged = self.energy_condition_number
            more = {"torque_condition_number": self.condition_number, "scaling": self.scaling}
        return {
            "condition_number": judged,
            "condition_number_scaled": self.condition_number_scaled,
            "criterion": self.criterion,
            "model": self.model,
            "seconds": self.seconds,
            "margins": self.margins.as_json(),
            "n_base": self.base.n_base,
            "duration_s": self.playable.duration_s,
            "seed": self.seed,
            "notes": list(self.notes),
            **more,
        }


def design_excitation(
    robot: Robot,
    base: BaseReduction | None = None,
    shape: LinearShape | None = None,
    *,
    criterion: str | Criterion = "condition",
    scaled: bool = False,
    torque_noise: ArrayLike | None = None,
    limits: Limits | None = None,
    rest: bool = False,
    periods: int = 1,
    seconds: float = DEFAULT_SECONDS,
    seed: int = 0,
    starts: int = DEFAULT_STARTS,
    engine: Engine | str | int | None = None,
    progress: Progress | None = None,
) -> Excitation:
    """Design an exciting motion.

    Args:
        robot: with the effects whose values the motion shall show.
        base: its base parameters; None to find them.
        shape: family of motions; None for a Fourier series of 20 s with 5 harmonics.
        criterion: ``condition``, ``logdet``, ``smallest``, ``trace``, ``frobenius``, a mix such as ``condition+0.5*logdet``, or a
            :class:`Criterion`.
        scaled: judge the regressor with its columns scaled to length one.
        torque_noise: expected standard deviation of each joint's torque; rows count by its inverse.
        limits: None for those of the robot.
        rest: put ramps from and to rest around the motion.
        periods: how often the motion is to be played.
        seconds: time budget; compilation at first use is announced and not counted.
        seed: of the random starts.
        starts: number of random starts; the better ones are taken further.
        engine: where the starts run; None for one thread per core.
        progress: told after every piece of work.
    """
    began = monotonic()
    refuse_floating(robot)
    if not (np.isfinite(seconds) and seconds > 0.0):
        raise InputError(f"time budget is {seconds:g} s, expected a positive number")
    if starts < 1:
        raise InputError(f"{starts} starts asked for, expected at least 1")
    chosen = FourierShape() if shape is None else shape
    held = limits_of(robot) if limits is None else limits
    notes = list(held.notes)
    with one_blas_thread():  # the starts are the parallelism
        compiling_s = _compiling_seconds(robot, held)
        if compiling_s > 0.0:
            began += compiling_s
            notes.append(f"{compiling_s:.0f} s of first-use compilation, once on this machine, are not counted")
        found = reduce_to_base(robot) if base is None else base
        problem = DesignProblem.of(robot, found, chosen, held, scaled, torque_noise)
        runner = Threads() if engine is None else engine_from(engine)
        results, cut_off = _search(problem, stages_for(criterion), starts, seed, (began, seconds), runner, progress)
        if not results[-1]:
            raise InputError(
                f"no motion of robot '{robot.name}' was found that keeps every limit between the times of the design; "
                "try more starts, another seed, or wider limits"
            )
        winner = min(results[-1], key=lambda candidate: (candidate.value, candidate.index))
        if cut_off:
            notes.append(
                f"the time budget of {seconds:g} s cut the search off: another machine may reach another motion from this seed"
            )
        trajectory = problem.trajectory(winner.x)
        return finished_excitation(
            robot,
            found,
            trajectory,
            held,
            criterion=criterion if isinstance(criterion, str) else repr(criterion),
            rest=rest,
            periods=periods,
            n_times=problem.n_proof_times,
            began=began,
            seed=seed,
            starts=tuple(candidate.condition for candidate in results[0]),
            notes=notes,
        )


def finished_excitation(
    robot: Robot,
    base: BaseReduction,
    trajectory: Trajectory,
    limits: Limits,
    *,
    criterion: str,
    rest: bool,
    periods: int,
    n_times: int,
    began: float,
    seed: int,
    starts: tuple[float, ...] = (),
    notes: Sequence[str] = (),
    **more: Any,
) -> Excitation:
    """A motion judged: singular values of its base regressor and margins of all that will be played."""
    playable: Trajectory = trajectory
    if rest:
        playable = rest_to_rest(robot, trajectory, limits, periods)
        trajectory = next(piece for piece in playable.pieces if isinstance(piece, type(trajectory)))  # begun elsewhere
    elif periods > 1:
        if not trajectory.closed:
            raise InputError(
                f"a motion that ends elsewhere than it starts cannot be played {periods} times without a way back"
            )
        playable = SequenceTrajectory((trajectory,) * periods)
    with one_blas_thread():
        R = np.asarray(np.linalg.qr(base_regressor(robot, base, trajectory), mode="r"))
        singular = np.linalg.svd(R, compute_uv=False)
        condition_scaled = condition_number(R, scaled=True)  # columns of R are as long as those of W
    share = playable.duration_s / trajectory.duration_s
    margins = margins_of(robot, playable, limits, int(np.ceil(n_times * share)))
    if margins.smallest < -BROKEN:
        name, worst = min(margins.items(), key=lambda item: item[1].value)
        raise InputError(
            f"the motion breaks the limit of {name.replace('_', ' ')} by {-100.0 * worst.value:.2g} % at {worst.time_s:.3f} s "
            f"({worst.where}); no such motion is written"
        )
    return Excitation(
        robot=robot,
        base=base,
        trajectory=trajectory,
        playable=playable,
        limits=limits,
        criterion=criterion,
        condition_number=float(singular[0] / singular[-1]) if singular[-1] > 0.0 else np.inf,
        condition_number_scaled=condition_scaled,
        singular_values=freeze(singular),
        trace_of_inverse=float(np.sqrt((1.0 / singular**2).sum())) if singular[-1] > 0.0 else np.inf,
        margins=margins,
        seconds=monotonic() - began,
        seed=seed,
        starts=starts,
        notes=tuple(notes),
        **more,
    )


def base_regressor(robot: Robot, base: BaseReduction, trajectory: Trajectory, rate_hz: float = MEASURE_HZ) -> Array:
    """``W``: the base regressor of one run through a motion, its end left out so that a period is counted once."""
    n = max(round(trajectory.duration_s * rate_hz), 200)
    time = np.arange(n) * (trajectory.duration_s / n)
    Y = torque_regressor(robot, *trajectory.evaluate(time))
    flat = Y.reshape(-1, Y.shape[2])
    return flat[:, base.independent] if base.independent is not None else flat @ base.lift


def stages_for(criterion: str | Criterion) -> list[Stage]:
    """Log-determinant with a ridge first, then the criterion itself, ever sharper."""
    plan = [(2.0, 1e-2, 1e-3), (4.0, 3e-3, 3e-4), (8.0, 1e-3, 1e-4), (32.0, 1e-4, 1e-5), (128.0, 1e-5, 1e-6)]
    later = [Stage(criterion_from(criterion, power=power), mu, 300, enough) for power, mu, enough in plan]
    return [Stage(LogDet(ridge=1e-6), 3e-2, 300, 1e-3), *later]


# The problem --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DesignProblem:
    """Criterion and limits as functions of the coefficients ``x`` of a motion, all joints one after another."""

    robot: Robot
    """With a smooth sign in its Coulomb friction."""
    measured: Robot
    """The robot as it is, by which a finished motion is judged."""
    base: BaseReduction
    shape: LinearShape
    limits: Limits
    linear: LinearLimits
    pose: dict[str, PoseLimit]
    bases: tuple[Array, Array, Array]
    """Position, velocity and acceleration of every coefficient at the design's times."""
    pose_bases: tuple[Array, Array, Array]
    """The same at the times at which limits that depend on the pose are looked at."""
    pose_fineness: float
    row_weights: Array
    scaled: bool = False
    columns: IntArray | None = field(default=None)

    @classmethod
    def of(
        cls,
        robot: Robot,
        base: BaseReduction,
        shape: LinearShape,
        limits: Limits,
        scaled: bool = False,
        torque_noise: ArrayLike | None = None,
        fineness: float = 1.0,
    ) -> DesignProblem:
        if base.parameter_names != robot.parameters.names:
            raise InputError(
                f"base parameters were found for {base.n_parameters} columns, robot '{robot.name}' has {len(robot.parameters)}; "
                "they must be of the same robot and effects"
            )
        time = shape.design_times(fineness)
        smooth = _smooth(robot, limits)
        still = Motion(*(np.zeros((1, robot.n_joints)),) * 3)
        for effect in smooth.effects:  # say now which effect a design cannot take, not in the middle of it
            effect_gradient(effect, still, np.zeros((1, effect.incidence(robot.n_joints).shape[1])))
        weights = np.ones(robot.n_joints)
        if torque_noise is not None:
            noise = np.broadcast_to(np.asarray(torque_noise, dtype=np.float64), (robot.n_joints,))
            if not (np.isfinite(noise).all() and (noise > 0.0).all()):
                raise InputError(f"expected torque noise is {noise.min():g}, expected positive numbers")
            weights = 1.0 / noise
        return cls(
            robot=smooth,
            measured=robot,
            base=base,
            shape=shape,
            limits=limits,
            linear=linear_limits(shape, limits),
            pose=pose_limits(robot, limits),
            bases=_bases(shape, time),
            pose_bases=_bases(shape, shape.design_times(POSE_FINENESS)),
            pose_fineness=POSE_FINENESS,
            row_weights=freeze(weights / np.sqrt(len(time))),
            scaled=scaled,
            columns=base.independent,
        )

    def motion(self, x: Array) -> tuple[Array, Array, Array]:
        """Position, velocity and acceleration at the design's times."""
        X = x.reshape(self.robot.n_joints, -1).T
        q, v, a = (B @ X for B in self.bases)
        return q, v, a

    def function(self, x: Array, criterion: Criterion, mu: float) -> tuple[float, Array]:
        """Criterion and barriers of limits that depend on the pose; infinite where one of these is violated."""
        wall, gradient = self._pose_barriers(x, mu)
        if not np.isfinite(wall):
            return np.inf, np.zeros_like(x)
        q, v, a = self.motion(x)
        Y = torque_regressor(self.robot, q, v, a)
        value, slope = self._judged(Y, criterion)
        G = self._all_columns(slope, Y.shape)
        gradient += _by_coefficients(torque_gradient(self.robot, q, v, a, G), self.bases)
        return value + wall, gradient.ravel()

    def value(self, x: Array, criterion: Criterion) -> float:
        """The criterion alone, for a motion that is known to keep the limits."""
        return self._judged(torque_regressor(self.robot, *self.motion(x)), criterion)[0]

    def _judged(self, Y: Array, criterion: Criterion) -> tuple[float, Array]:
        return (ScaledColumns(criterion) if self.scaled else criterion).of_regressor(self.base_columns(Y))

    def base_columns(self, Y: Array) -> Array:
        """``W`` of the design's times, rows weighted."""
        rows = Y * self.row_weights[:, None]
        flat = rows.reshape(-1, Y.shape[2])
        return flat[:, self.columns] if self.columns is not None else flat @ self.base.lift

    def _all_columns(self, slope: Array, shape: tuple[int, ...]) -> Array:
        """The derivative by ``W`` as one by the whole regressor."""
        if self.columns is None:
            G = (slope @ self.base.lift.T).reshape(shape)
        else:
            G = np.zeros(shape)
            G.reshape(-1, shape[2])[:, self.columns] = slope
        return G * self.row_weights[:, None]

    def _pose_barriers(self, x: Array, mu: float) -> tuple[float, Array]:
        """``mu`` times the mean over times of ``-log s + s - 1`` for slacks below one, which fades out without a kink."""
        X = x.reshape(self.robot.n_joints, -1)
        total, gradient = 0.0, np.zeros_like(X)
        if not self.pose:
            return total, gradient
        q, v, a = (B @ X.T for B in self.pose_bases)
        for limit in self.pose.values():
            s, pullback = limit.slacks(q, v, a)
            if not (s > 0.0).all():
                return np.inf, gradient
            near = np.minimum(s, 1.0)
            total += mu / len(q) * float((near - 1.0 - np.log(near)).sum())
            if mu > 0.0:
                gradient += _by_coefficients(pullback(mu / len(q) * (1.0 - 1.0 / near)), self.pose_bases)
        return total, gradient

    def inside(self, x: Array) -> bool:
        """Whether every limit is kept at the design's times."""
        return self.linear.inside(x) and bool(np.isfinite(self._pose_barriers(x, 0.0)[0]))

    def looking_closer(self, failing: Mapping[str, float]) -> DesignProblem:
        """The same problem with limits that were violated in between looked at more often, and held a little tighter."""
        pose = dict(self.pose)
        for name, excess in failing.items():
            if name in pose:
                pose[name] = pose[name].tightened(min(excess, 0.05) + 0.002)
        fineness = 2.0 * self.pose_fineness
        bases = _bases(self.shape, self.shape.design_times(fineness))
        return replace(self, pose=pose, pose_bases=bases, pose_fineness=fineness)

    def contracted(self, x: Array, factor: float) -> Array:
        """Oscillations about the mean pose made smaller; all linear limits that were kept stay kept."""
        X = x.reshape(self.robot.n_joints, -1)
        middle = np.outer((self.bases[0] @ X.T).mean(axis=0), self.shape.still())
        return np.asarray((middle + factor * (X - middle)).ravel())

    def random_start(self, rng: np.random.Generator, draws: int = 100) -> Array:
        """A random motion strictly inside every limit."""
        n = self.robot.n_joints
        for _ in range(draws):
            X = self.shape.random(rng, n)
            use = np.abs((self.linear.C @ X.T) / self.linear.half).max(axis=0)
            X = X * (rng.uniform(0.5, 0.8, n) / use)[:, None]
            q = self.linear.C[: len(self.shape.limit_times()[0])] @ X.T
            low, high = q.min(axis=0), q.max(axis=0)
            room = np.maximum(0.95 * self.limits.reach - 0.5 * (high - low), 0.0)
            offset = self.limits.centre - 0.5 * (low + high) + rng.uniform(-0.8, 0.8, n) * room
            X = X + np.outer(offset, self.shape.still())
            for factor in (1.0, 0.6, 0.36, 0.2):  # smaller about the same pose, then another pose
                x = self.contracted(X.ravel(), factor)
                if self.inside(x):
                    return x
        raise InputError(
            f"no motion within all limits of robot '{self.robot.name}' was found in {draws} random draws: "
            f"limits looked at are position, velocity, acceleration{''.join(', ' + name for name in self.pose)}"
        )

    def trajectory(self, x: Array) -> Trajectory:
        """The motion of these coefficients."""
        return self.shape.trajectory(x.reshape(self.robot.n_joints, -1))

    def measured_condition(self, x: Array) -> float:
        """Condition number of the finished motion, with the effects as they are."""
        return condition_number(base_regressor(self.measured, self.base, self.trajectory(x)))

    @property
    def n_proof_times(self) -> int:
        """Times at which a finished motion is held against all limits."""
        return FINE * len(self.shape.limit_times()[0])

    def proof_seconds(self) -> float:
        """What a proof will take, from a small part of one: fewer times of a motion as much smaller, so that steps are alike."""
        share = max(80, self.n_proof_times // 20) / self.n_proof_times
        X = self.shape.random(np.random.default_rng(0), self.robot.n_joints)
        X *= 0.5 * share / np.abs((self.linear.C @ X.T) / self.linear.half).max()
        X += np.outer(self.limits.centre, self.shape.still())
        began = monotonic()
        margins_of(self.measured, self.trajectory(X.ravel()), self.limits, round(share * self.n_proof_times))
        return (monotonic() - began) / share


def _compiling_seconds(robot: Robot, limits: Limits) -> float:
    """How long the kernels of a design took to compile at their first use; zero where they were ready."""

    def once() -> float:
        began = monotonic()
        smooth = _smooth(robot, limits)
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


def _bases(shape: LinearShape, time: Array) -> tuple[Array, Array, Array]:
    return shape.basis(time, 0), shape.basis(time, 1), shape.basis(time, 2)


def _by_coefficients(bars: tuple[Array, Array, Array], bases: tuple[Array, Array, Array]) -> Array:
    """Derivatives by position, velocity and acceleration at all times as one by the coefficients, ``(joints, coefficients)``."""
    return np.asarray(bars[0].T @ bases[0] + bars[1].T @ bases[1] + bars[2].T @ bases[2])


def linear_limits(shape: LinearShape, limits: Limits) -> LinearLimits:
    """Position, velocity, acceleration and jerk as limits on coefficients, tight enough for all times in between."""
    time, beyond = shape.limit_times()
    blocks, centres, halves = [], [], []
    still = np.zeros_like(limits.velocity)
    for order, (centre, half) in enumerate(
        (
            (limits.centre, limits.reach),
            (still, limits.velocity),
            (still, limits.acceleration),
            (still, limits.jerk),
        )
    ):
        if not np.isfinite(half).any():
            continue
        blocks.append(shape.basis(time, order))
        centres.append(np.tile(centre, (len(time), 1)))
        halves.append(np.tile(half / beyond, (len(time), 1)))
    return LinearLimits(freeze(np.vstack(blocks)), freeze(np.vstack(centres)), freeze(np.vstack(halves)), 1.0 / len(time))


def _smooth(robot: Robot, limits: Limits) -> Robot:
    """The robot with a sign that has a derivative; its column tells motions apart as the sharp one does."""
    speeds = robot.limits("dq_max")
    widths = SMOOTH_SIGN * np.where(np.isfinite(speeds), speeds, limits.velocity)
    return robot.with_effects([smooth_effect(effect, widths) for effect in robot.effects])


# The search ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Candidate:
    """One start and how far it came."""

    index: int
    x: Array
    value: float
    """The criterion, with its last power."""
    condition: float
    curvature: Array | None
    cut_off: bool = False
    failing: Mapping[str, float] | None = None
    """Limits that it violates on the fine grid, and by how much; None where nobody has looked."""

    @property
    def proven(self) -> bool:
        return self.failing is not None and not self.failing


def _search(
    problem: DesignProblem,
    stages: list[Stage],
    starts: int,
    seed: int,
    budget: tuple[float, float],
    engine: Engine,
    progress: Progress | None,
) -> tuple[list[list[_Candidate]], bool]:
    """Candidates of every round, of the last one those that are proven, and whether time cut anything off."""
    began, seconds = budget
    reserve = min(max(min(1.0, 0.5 * seconds), 0.5 + PROOFS * problem.proof_seconds()), 0.6 * seconds)
    counts, entering = [], starts
    for _, _, share in ROUNDS:
        entering = max(1, int(np.ceil(share * entering)))
        counts.append(entering)
    total, done, best = sum(counts), 0, np.inf
    rounds: list[list[_Candidate]] = []
    items: Sequence[Any] = range(starts)
    first = 0
    for number, ((n_stages, share, _), count) in enumerate(zip(ROUNDS, counts, strict=True)):
        part = stages[first : first + n_stages]
        deadline = began + min(share * seconds, share / ROUNDS[-1][1] * (seconds - reserve))
        first += n_stages
        task: Callable[[Any], _Candidate | None]
        if number == 0:
            task = _Begin(problem, part, seed, deadline)
        else:
            ranked = sorted(rounds[-1], key=lambda candidate: (candidate.value, candidate.index))
            items = list(enumerate(ranked[:count]))
            task = (_Finish if number == len(ROUNDS) - 1 else _Continue)(problem, part, deadline)
        results: list[_Candidate] = []
        for result in engine.map(task, items):
            done += 1
            if result is not None:
                results.append(result)
                best = min(best, result.condition)
            if progress is not None:
                progress(done, total, best)
        rounds.append(results)
    cut_off = len(rounds[0]) < starts or any(candidate.cut_off for results in rounds for candidate in results)
    finished = sorted(rounds[-1], key=lambda candidate: (candidate.value, candidate.index))
    rounds[-1] = [candidate for candidate in finished if candidate.proven]
    if not rounds[-1]:  # neither time nor attempts were enough for a proof: the first that can be saved
        rescued = (_rescued(problem, candidate, stages[-1].criterion) for candidate in finished)
        rounds[-1] = list(islice((candidate for candidate in rescued if candidate is not None), 1))
    return rounds, cut_off


@dataclass(frozen=True, eq=False)
class _Begin:
    """From a random motion through the first stages; only the first start is begun after the deadline."""

    problem: DesignProblem
    stages: list[Stage]
    seed: int
    deadline: float

    def __call__(self, index: int) -> _Candidate | None:
        if index > 0 and monotonic() > self.deadline:
            return None
        x = self.problem.random_start(np.random.default_rng([self.seed, index]))
        return _improved(self.problem, _Candidate(index, x, np.inf, np.inf, None), self.stages, self.deadline)


@dataclass(frozen=True, eq=False)
class _Continue:
    """Through the next stages; takes the rank of a candidate beside it."""

    problem: DesignProblem
    stages: list[Stage]
    deadline: float

    def __call__(self, ranked: tuple[int, _Candidate]) -> _Candidate:
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

    def __call__(self, ranked: tuple[int, _Candidate]) -> _Candidate:
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


def _rescued(problem: DesignProblem, candidate: _Candidate, criterion: Criterion) -> _Candidate | None:
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
    candidate: _Candidate,
    stages: Sequence[Stage],
    deadline: float,
) -> _Candidate:
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
    return _Candidate(candidate.index, point.x, value, condition, point.curvature, cut_off)
