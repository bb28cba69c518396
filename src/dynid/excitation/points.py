"""Motion through optimal points: Gautier and Khalil 1992.

A row of the energy model is the difference of two states, ``W_i = h(q, v)_{i+1} - h(q, v)_i``, so a sequence of ``r + 1`` points gives
``r`` rows and every point is used twice. The points minimise

    f = lambda_1 cond(W) + lambda_2 S,        S = max |W_ij| / min |W_ij|                                  (18, 19)

free of constraints after the change of variables ``q = q_I + (q_F - q_I) sin^2 x``, ``v = v_M sin x`` (4.2), started from normal random
numbers. Between points each joint moves as a polynomial of degree 5 with no acceleration at the points (24-28), in the shortest
time that saturates one joint's velocity or acceleration (5.2). Positions may then overshoot; the points are found again within
smaller position and velocity limits until they do not. Starting and end points at rest are added.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, BoolArray, freeze, matrix
from dynid.engine import Engine, engine_from, one_blas_thread
from dynid.errors import InputError, UnknownNameError
from dynid.excitation.criteria import condition_number, scaling_of
from dynid.excitation.design_problem import with_smooth_sign
from dynid.excitation.excitation_result import Excitation, finished_excitation
from dynid.excitation.gradient import refuse_floating
from dynid.excitation.limits import FINE, Limits, limits_of, margins_of
from dynid.excitation.points_problem import (
    MEASURES,
    SHORT_SEARCH,
    Measure,
    PointsProblem,
    energy_rows_of,
    points_stages,
    positions_that_matter,
)
from dynid.excitation.search import DEFAULT_SECONDS, Progress, check_budget
from dynid.excitation.trajectories import PolynomialTrajectory, quintic_terms
from dynid.model.effects.linear import Armature
from dynid.model.joint import neutral_position
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.energy_rows import energy_matrix
from dynid.signals.samples import Samples
from dynid.signals.steps.filters import EDGE_S

SHRINKS = ((1.0, 1.0), (0.6, 0.97), (0.45, 0.95), (0.36, 0.94), (0.28, 0.92), (0.2, 0.9), (0.1, 0.8))
"""Shares of the position range and of the velocity limits that points may use, tried one after another."""

WORK_HZ = 200.0
"""Rate at which the work of friction along a motion is integrated, Hz."""

ENDS_S = EDGE_S + 0.05
"""Ways from rest to the first point and back last longer than what identification drops at the ends of a log: no row is lost."""

FEWEST_ROWS = 30
"""Rows of the energy model where no number is given: Gautier and Khalil's, or more for a robot of more parameters."""

DEFAULT_LAMBDA2 = 0.02
"""Weight of the scaling ``S`` beside the condition number. Bounds by the condition number mean something only for a matrix whose entries
are of one size (section 3). On the arm of the paper with 30 rows this weight gives a condition number of 5.9 and ``S`` of 86 (printed:
11 and 175), without it 4.1 and 2e11; on the built-in 7-joint arm 67 and 1300, without it 55 and 9e11."""

DEFAULT_STARTS = 2

_POINTS_PER_PIECE = 80
"""Times per piece on which positions are looked at during the search."""


@dataclass(frozen=True, eq=False)
class PointsDesign:
    """Optimal points, the energy regressor they give, and the motion through them.

    Args:
        position: of the points, ``(points, joints)``.
        velocity: of the points.
        W: the energy regressor, ``(rows, base parameters)``.
        trajectory: the motion through the points, from and to rest.
        seconds: time spent on the search, s.
        cut_off: whether the time budget ended the search.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.points import PointsDesign, design_points
        >>> robot = dynid.demo_robot(effects="none").only(["shoulder_pitch"])
        >>> found = design_points(robot, rows=6, starts=1, iterations=5)
        >>> isinstance(found, PointsDesign), found.W.shape[0]
        (True, 6)
    """

    position: Array
    velocity: Array
    W: Array
    trajectory: PolynomialTrajectory
    share: tuple[float, float]
    """Of the position range and of the velocity limits that the points use."""
    indifferent: tuple[str, ...]
    """Joints whose position has no effect on the energy; it was drawn at random."""
    seconds: float
    cut_off: bool = False

    @cached_property
    def condition_number(self) -> float:
        """Of ``W``."""
        return condition_number(self.W)

    @cached_property
    def scaling(self) -> float:
        """``S``: largest over smallest entry of ``W`` that is not zero."""
        return scaling_of(self.W)

    def rows(self) -> slice:
        """Which breaks of the trajectory are the optimal points: all but the rest points at both ends."""
        return slice(1, len(self.trajectory.breaks_s) - 1)


def _checked_rows(rows: int | None, n_base: int) -> int:
    """Rows asked for, or the usual number of them; refused where they are fewer than base parameters."""
    n_rows = max(FEWEST_ROWS, int(np.ceil(1.5 * n_base))) if rows is None else rows
    if n_rows < n_base:
        raise InputError(
            f"{n_rows} rows of the energy model asked for (--points), expected at least one per base parameter: {n_base}"
        )
    return n_rows


def _clear_home(robot: Robot, limits: Limits, home: ArrayLike | None) -> Array:
    """The pose at rest; one in which bodies are nearer than they may be is refused."""
    neutral = [neutral_position(joint) for joint in robot.moving_joints]
    pose = matrix("home", neutral if home is None else home, (robot.n_joints,))
    if limits.clearance is None:
        return pose
    spare, _, pair = limits.clearance.worst(pose[None], pose[None], pose[None])
    if spare < 0.0:
        raise InputError(
            f"the start pose {np.array2string(pose, precision=3)} of robot '{robot.name}' is in collision, or nearer than its "
            f"clearance: {pair}; move that obstacle, or use --shape fourier, which chooses its start"
        )
    return pose


def _require_acceleration_limits(robot: Robot, limits: Limits) -> None:
    if not np.isfinite(limits.acceleration).all():
        raise InputError(
            f"robot '{robot.name}' has no acceleration limit on every joint; a motion through points needs one (--acceleration)"
        )


def design_points(
    robot: Robot,
    rows: int | None = None,
    base: BaseReduction | None = None,
    *,
    lambda1: float = 1.0,
    lambda2: float = DEFAULT_LAMBDA2,
    measure: Measure = "singular",
    limits: Limits | None = None,
    home: ArrayLike | None = None,
    tick_s: float | None = None,
    starts: int = DEFAULT_STARTS,
    iterations: int | None = None,
    seconds: float = DEFAULT_SECONDS,
    seed: int = 0,
    engine: Engine | str | int | None = None,
    progress: Progress | None = None,
) -> PointsDesign:
    """Points that make the energy regressor well conditioned, and the motion through them.

    Args:
        robot: its rigid bodies, rotor inertias, and friction, which does work on the way between points.
        rows: number ``r`` of rows, at least as many as base parameters; None for 30, or half as many again as base parameters.
        base: base parameters of the energy model; None to find them.
        lambda1: weight of the condition number.
        lambda2: weight of the scaling ``S``; zero for the condition number alone.
        measure: of the condition: ``singular`` values, QR with column pivoting (``pivoted``), ``frobenius`` norms.
        limits: None for those of the robot; acceleration limits are needed.
        home: pose at rest before and after; None for zero, or the middle of ranges that do not hold zero.
        tick_s: makes the times of all points multiples of it, so that a sampled log has them.
        starts: random starts within the largest limits that let a motion fit.
        iterations: most steps of each stage of a search; None for 150, and for long sequences four per row.
        seconds: time budget.
        seed: of everything random.
        engine: where the starts run; None for this thread.
        progress: told after every start.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.points import design_points
        >>> robot = dynid.demo_robot(effects="none").only(["shoulder_pitch"])
        >>> design_points(robot, rows=6, starts=1, iterations=5).W.shape[0]
        6
    """
    began = monotonic()
    refuse_floating(robot)
    _check_options(lambda1, lambda2, measure, starts, seconds)
    energetic = robot.with_effects([effect for effect in robot.effects if isinstance(effect, Armature)])
    rubs = len(energetic.effects) < len(robot.effects) and not robot.loops.rubbing
    with one_blas_thread():
        whole = reduce_to_base(robot) if len(energetic.effects) < len(robot.effects) else None
        found = (reduce_to_base(energetic) if whole is None or not rubs else whole) if base is None else base
    n_rows = _checked_rows(rows, found.n_base)
    held = limits_of(robot) if limits is None else limits
    _require_acceleration_limits(robot, held)
    resting = _clear_home(robot, held, home)
    search = _Search(
        robot=robot,
        problem=PointsProblem(
            robot=with_smooth_sign(robot, held) if rubs else energetic,
            base=found,
            limits=held,
            free=np.ones(robot.n_joints, dtype=bool) if rubs else positions_that_matter(energetic),
            rows=n_rows,
            share=SHRINKS[0],
            stages=points_stages(lambda1, lambda2, measure),
            iterations=max(SHORT_SEARCH, 4 * n_rows) if iterations is None else iterations,
            seed=seed,
            deadline=began + min(0.9 * seconds, seconds - min(1.5, 0.5 * seconds)),
            times=partial(shortest_times, limits=held) if rubs else None,
        ),
        home=resting,
        tick_s=tick_s,
        weights=(lambda1, lambda2),
        starts=starts,
        began=began,
        whole=whole,
    )
    with one_blas_thread():
        best = search.best(engine_from(engine), progress)
    if best is None:
        raise InputError(
            f"no motion through {n_rows + 1} points stays within the limits of robot '{robot.name}', even for points within "
            f"{100 * SHRINKS[-1][0]:.0f} % of its ranges; try another seed or more starts"
        )
    return best


def points_excitation(
    robot: Robot,
    base: BaseReduction | None = None,
    rows: int | None = None,
    *,
    limits: Limits | None = None,
    periods: int = 1,
    seed: int = 0,
    **options: Any,
) -> Excitation:
    """A motion through optimal points as an excitation, judged like every other; options are those of :func:`design_points`."""
    began = monotonic()
    held = limits_of(robot) if limits is None else limits
    design = design_points(robot, rows, limits=held, seed=seed, **options)
    n_rows = len(design.W)
    notes = list(held.notes)
    if design.cut_off:
        notes.append(
            f"the time budget of {options.get('seconds', DEFAULT_SECONDS):g} s cut the search off: another machine may reach "
            "another motion from this seed"
        )
    if design.indifferent:
        notes.append(f"positions of {', '.join(design.indifferent)} have no effect on the energy and were drawn at random")
    lambda1, lambda2 = options.get("lambda1", 1.0), options.get("lambda2", DEFAULT_LAMBDA2)
    criterion = f"{lambda1:g} cond(W) + {lambda2:g} S of the energy model, cond by {options.get('measure', 'singular')}"
    with one_blas_thread():
        judged_by = reduce_to_base(robot) if base is None else base
    return finished_excitation(
        robot,
        judged_by,
        design.trajectory,
        held,
        criterion=criterion,
        rest=False,
        periods=periods,
        n_times=FINE * 20 * n_rows,
        began=began,
        seed=seed,
        notes=notes,
        energy_rows=design.W,
    )


@dataclass(frozen=True, eq=False)
class _Search:
    """Points found within ever smaller limits until a motion through them fits."""

    robot: Robot
    problem: PointsProblem
    home: Array
    tick_s: float | None
    weights: tuple[float, float]
    starts: int
    began: float
    whole: BaseReduction | None = None
    """Base parameters of the robot with its friction, where it has any."""

    def best(self, engine: Engine, progress: Progress | None) -> PointsDesign | None:
        """The best motion within the first limits that let one fit and the next smaller ones, which are often better still."""
        best: PointsDesign | None = None
        for level, share in enumerate(SHRINKS):
            problem = replace(self.problem, share=share)
            fitted = best is not None
            if not fitted:  # a rough sequence shows whether motions within these limits have a chance to fit
                rough = self._played(problem, (level, 0), problem.sketch((level, 0)))
                if rough is None:
                    continue
                if self._late():
                    return rough
            best = self._level(problem, level, best, engine, progress)
            if fitted or (best is not None and self._late()):
                break
        return best

    def _level(
        self, problem: PointsProblem, level: int, best: PointsDesign | None, engine: Engine, progress: Progress | None
    ) -> PointsDesign | None:
        """The best of ``best`` and all starts within one share of the limits."""
        items = [(level, start) for start in range(self.starts)]
        for number, (item, x) in enumerate(zip(items, engine.map(problem, items), strict=True)):
            design = self._played(problem, item, x)
            if design is not None and (best is None or self._cost(design) < self._cost(best)):
                best = design
            if progress is not None:
                progress(number + 1, self.starts, np.inf if best is None else best.condition_number)
            if self._late():
                break
        return best

    def _played(self, problem: PointsProblem, item: tuple[int, int], x: Array) -> PointsDesign | None:
        """The motion through the points of ``x``, if it stays within all limits."""
        q, v = problem.points(x)
        limits, still = problem.limits, np.zeros((1, self.robot.n_joints))
        path_v = np.vstack([still, v, still])
        rng = np.random.default_rng([problem.seed, *item, 1])
        path_q = _draw_positions(np.vstack([self.home, q, self.home]), path_v, problem, rng)
        ends = np.zeros(len(path_q) - 1)
        ends[[0, -1]] = ENDS_S
        u_f = shortest_times(path_q, path_v, limits, self.tick_s, ends)
        if np.isnan(u_f).any():
            return None
        trajectory = PolynomialTrajectory.through(np.concatenate([[0.0], np.cumsum(u_f)]), path_q, path_v)
        for n_times in (20 * problem.rows, FINE * 20 * problem.rows):  # most that do not fit show it on a few times
            if margins_of(self.robot, trajectory, limits, n_times).smallest < -1e-9:
                return None
        names = zip(self.robot.joint_names, problem.free, strict=True)
        return PointsDesign(
            position=freeze(path_q[1:-1]),
            velocity=freeze(v),
            W=freeze(
                energy_rows_of(problem.robot, problem.base, path_q[1:-1], v)
                if self.whole is None
                else self._played_rows(trajectory, self.whole)
            ),
            trajectory=trajectory,
            share=problem.share,
            indifferent=tuple(name for name, matters in names if not matters),
            seconds=monotonic() - self.began,
            cut_off=self._late(),
        )

    def _cost(self, design: PointsDesign) -> float:
        return self.weights[0] * design.condition_number + self.weights[1] * design.scaling

    def _played_rows(self, trajectory: PolynomialTrajectory, base: BaseReduction) -> Array:
        """``W`` of the energy model with every effect, their work integrated along the motion."""
        points = trajectory.breaks_s[1:-1]
        time = np.unique(np.concatenate([points, trajectory.grid(round(WORK_HZ * trajectory.duration_s))]))
        q, v, a = trajectory.evaluate(time)
        at = np.searchsorted(time, points)
        samples, pairs = Samples(time, q, v, a, np.zeros_like(q)), np.column_stack([at[:-1], at[1:]])
        rows = energy_matrix(self.robot, samples, pairs)[:, :-1]
        return rows[:, base.independent] if base.independent is not None else np.asarray(rows @ base.lift)

    def _late(self) -> bool:
        return monotonic() > self.problem.deadline


def _draw_positions(q: Array, v: Array, problem: PointsProblem, rng: np.random.Generator, draws: int = 8) -> Array:
    """Positions without effect drawn point after point: the first random one whose piece stays within range."""
    free, limits = problem.free, problem.limits
    if free.all():
        return q
    q = q.copy()
    span = problem.share[0] * limits.reach[~free]
    for i in range(1, len(q) - 1):
        trial = np.tile(q[i], (draws, 1))
        trial[:, ~free] = limits.centre[~free] + rng.uniform(-1.0, 1.0, (draws, len(span))) * span
        worst = Pieces(*np.broadcast_arrays(q[i - 1], trial, v[i - 1], v[i])).overshoot(limits)
        if i + 2 == len(q):  # the last point must also fit the piece back to rest
            worst = np.maximum(worst, Pieces(*np.broadcast_arrays(trial, q[i + 1], v[i], v[i + 1])).overshoot(limits))
        good = np.flatnonzero(worst <= 0.0)
        q[i] = trial[good[0] if len(good) else int(np.argmin(worst))]
    return q


def shortest_times(
    position: Array, velocity: Array, limits: Limits, tick_s: float | None = None, least_s: ArrayLike = 0.0
) -> Array:
    """Shortest time between successive points within velocity and acceleration limits; NaN where there is none.

    With ``tick_s`` times are rounded up to multiples of it that fit; ``least_s`` is the least for every pair.
    """
    pieces = Pieces(position[:-1], position[1:], velocity[:-1], velocity[1:])
    u_f = pieces.shortest(limits)
    longer = np.maximum(u_f, least_s)
    if tick_s is None:
        return np.where(pieces.fit(longer[None], limits)[0], longer, np.where(longer > u_f, np.nan, u_f))
    ticks = np.ceil(np.nan_to_num(longer, nan=1.0) / tick_s - 1e-9) + np.arange(400)[:, None]
    good = pieces.fit(np.asarray(ticks * tick_s, dtype=np.float64), limits)
    rounded = np.take_along_axis(ticks, good.argmax(axis=0)[None], axis=0)[0] * tick_s
    return np.where(np.isnan(u_f) | ~good.any(axis=0), np.nan, rounded)


@dataclass(frozen=True, eq=False)
class Pieces:
    """Polynomials between pairs of points, ``(pieces, joints)`` each, in the time ``s = u / u_f`` from 0 to 1."""

    start: Array
    end: Array
    v_start: Array
    v_end: Array

    def coefficients(self, u_f: Array) -> tuple[Array, Array, Array]:
        """Of ``s^3, s^4, s^5``; ``u_f`` is ``(.., pieces)``."""
        return quintic_terms(self.start, self.end, self.v_start, self.v_end, u_f[..., None])

    def fit(self, u_f: Array, limits: Limits) -> BoolArray:
        """Whether pieces of these lengths, ``(trials, pieces)``, keep velocity, acceleration and jerk limits; peaks are exact."""
        c3, c4, c5 = self.coefficients(u_f)
        u = u_f[..., None]

        def speed(s: Array) -> Array:
            return np.abs(self.v_start + s**2 * (3.0 * c3 + s * (4.0 * c4 + s * 5.0 * c5)) / u)

        def rate(s: Array) -> Array:
            return np.abs(s * (6.0 * c3 + s * (12.0 * c4 + s * 20.0 * c5)) / u**2)

        peak_speed = np.maximum.reduce([speed(s) for s in _roots_inside(20.0 * c5, 12.0 * c4, 6.0 * c3)])
        peak_rate = np.maximum.reduce([rate(s) for s in _roots_inside(60.0 * c5, 24.0 * c4, 6.0 * c3)])
        slack = 1.0 + 1e-12  # points may lie on the limit itself
        ends = np.maximum(np.abs(self.v_start), np.abs(self.v_end))
        good = (np.maximum(peak_speed, ends) <= slack * limits.velocity) & (peak_rate <= slack * limits.acceleration)
        if np.isfinite(limits.jerk).any():  # a parabola in s: largest at an end or at its vertex
            vertex = np.clip(np.divide(-24.0 * c4, 120.0 * c5, out=np.zeros_like(c4), where=c5 != 0.0), 0.0, 1.0)
            sharp = [np.abs(6.0 * c3 + s * (24.0 * c4 + s * 60.0 * c5)) / u**3 for s in (0.0, 1.0, vertex)]
            good &= np.maximum.reduce(sharp) <= slack * limits.jerk
        return np.asarray(good.all(axis=-1))

    def shortest(self, limits: Limits, n_candidates: int = 120, n_halvings: int = 42) -> Array:
        """Shortest time of every piece, NaN where none was found: the first of rising candidates that fits, then bisection."""
        candidates = np.geomspace(0.02, 120.0, n_candidates)
        fits = self.fit(np.outer(candidates, np.ones(len(self.start))), limits)
        first = fits.argmax(axis=0)
        high, low = candidates[first], candidates[np.maximum(first - 1, 0)]
        for _ in range(n_halvings):
            middle = 0.5 * (low + high)
            good = self.fit(middle[None], limits)[0]
            high, low = np.where(good, middle, high), np.where(good, low, middle)
        return np.where(fits.any(axis=0), high, np.nan)

    def overshoot(self, limits: Limits) -> Array:
        """By how much of its half range some joint leaves its range; infinite for a piece without a time."""
        u = self.shortest(limits, 40, 6)
        length = np.nan_to_num(u, nan=1.0)
        c3, c4, c5 = self.coefficients(length)
        s = np.linspace(0.0, 1.0, _POINTS_PER_PIECE)[:, None, None]
        q = self.start + self.v_start * length[:, None] * s + s**3 * (c3 + s * (c4 + s * c5))
        beyond = (np.abs(q - limits.centre) / limits.reach).max(axis=(0, 2)) - 1.0
        return np.where(np.isnan(u), np.inf, beyond)


def _check_options(lambda1: float, lambda2: float, measure: Measure, starts: int, seconds: float) -> None:
    if measure not in MEASURES:
        raise UnknownNameError("measure of condition", measure, MEASURES)
    weights_fit = np.isfinite(lambda1) and np.isfinite(lambda2) and lambda1 >= 0.0 and lambda2 >= 0.0
    if not (weights_fit and lambda1 + lambda2 > 0.0):
        raise InputError(
            f"weights are lambda1 = {lambda1:g} and lambda2 = {lambda2:g}, expected zero or more and not both zero"
        )
    check_budget(seconds, starts)


def _roots_inside(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """Roots of ``a s^2 + b s + c`` cut to [0, 1]; where there is none, any place in it, which changes no maximum."""
    root = np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0))
    t = -0.5 * (b + np.where(b >= 0.0, 1.0, -1.0) * root)
    first = np.divide(t, a, out=np.zeros_like(t), where=a != 0.0)
    second = np.divide(c, t, out=np.zeros_like(t), where=t != 0.0)
    return np.clip(first, 0.0, 1.0), np.clip(second, 0.0, 1.0)
