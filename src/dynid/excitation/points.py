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
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.adapters.blas import one_blas_thread
from dynid.arrays import Array, check_shape, freeze
from dynid.engine import Engine, engine_from
from dynid.errors import InputError, UnknownNameError
from dynid.excitation.criteria import condition_number
from dynid.excitation.design import DEFAULT_SECONDS
from dynid.excitation.gradient import refuse_floating
from dynid.excitation.judged import EnergyModel, Excitation, finished_excitation
from dynid.excitation.limits import FINE, Limits, limits_of, margins_of
from dynid.excitation.points_problem import (
    MEASURES,
    SHORT_SEARCH,
    Measure,
    PointsProblem,
    energy_rows_of,
    points_stages,
    positions_that_matter,
    scaling_of,
)
from dynid.excitation.points_trajectory import Pieces, PointsTrajectory, shortest_times
from dynid.excitation.search import Progress
from dynid.recording.steps.lowpass import EDGE_S
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.robot.effects import Armature
from dynid.robot.model import Robot, neutral_position

__all__ = [
    "PointsDesign",
    "PointsTrajectory",
    "design_points",
    "energy_rows_of",
    "points_excitation",
    "scaling_of",
    "shortest_times",
]

SHRINKS = ((1.0, 1.0), (0.6, 0.97), (0.45, 0.95), (0.36, 0.94), (0.28, 0.92), (0.2, 0.9), (0.1, 0.8))
"""Shares of the position range and of the velocity limits that points may use, tried one after another."""

ENDS_S = EDGE_S + 0.05
"""Ways from rest to the first point and back last longer than what identification drops at the ends of a log: no row is lost."""

FEWEST_ROWS = 30
"""Rows of the energy model where no number is given: Gautier and Khalil's, or more for a robot of more parameters."""

DEFAULT_LAMBDA2 = 0.02
"""Weight of the scaling ``S`` beside the condition number. Bounds by the condition number mean something only for a matrix whose entries
are of one size (section 3). On the arm of the paper with 30 rows this weight gives a condition number of 5.9 and ``S`` of 86 (printed:
11 and 175), without it 4.1 and 2e11; on the built-in 7-joint arm 67 and 1300, without it 55 and 9e11."""

DEFAULT_STARTS = 2


@dataclass(frozen=True, eq=False)
class PointsDesign:
    """Optimal points, the energy regressor they give, and the motion through them.

    Args:
        position: of the points, ``(points, joints)``.
        velocity: of the points.
        W: the energy regressor, ``(rows, base parameters)``.
        condition_number: of ``W``.
        trajectory: the motion through the points, from and to rest.
        seconds: time spent on the search, s.
        cut_off: whether the time budget ended the search.

    Examples:
        >>> import dynid
        >>> robot = dynid.demo_robot(effects="none").only(["shoulder_pitch"])
        >>> found = dynid.design_points(robot, rows=6, starts=1, iterations=5)
        >>> isinstance(found, dynid.excitation.PointsDesign), found.W.shape[0]
        (True, 6)
    """

    position: Array
    velocity: Array
    W: Array
    condition_number: float
    scaling: float
    """``S``: largest over smallest entry of ``W`` that is not zero."""
    trajectory: PointsTrajectory
    share: tuple[float, float]
    """Of the position range and of the velocity limits that the points use."""
    indifferent: tuple[str, ...]
    """Joints whose position has no effect on the energy; it was drawn at random."""
    seconds: float
    cut_off: bool = False

    def rows(self) -> slice:
        """Which knots of the trajectory are the optimal points: all but the rest points at both ends."""
        return slice(1, len(self.trajectory.knots_s) - 1)


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
        robot: its rigid bodies and, if it has them, rotor inertias; friction does work on the way and is left out.
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
        >>> robot = dynid.demo_robot(effects="none").only(["shoulder_pitch"])
        >>> dynid.design_points(robot, rows=6, starts=1, iterations=5).W.shape[0]
        6
    """
    began = monotonic()
    refuse_floating(robot)
    _check_options(lambda1, lambda2, measure, starts, seconds)
    energetic = robot.with_effects([effect for effect in robot.effects if isinstance(effect, Armature)])
    with one_blas_thread():
        found = reduce_to_base(energetic) if base is None else base
    n_rows = _number_of_rows(rows, found.n_base)
    held = _with_acceleration_limits(robot, limits)
    search = _Search(
        robot=robot,
        problem=PointsProblem(
            robot=energetic,
            base=found,
            limits=held,
            free=positions_that_matter(energetic),
            rows=n_rows,
            share=SHRINKS[0],
            stages=points_stages(lambda1, lambda2, measure),
            iterations=max(SHORT_SEARCH, 4 * n_rows) if iterations is None else iterations,
            seed=seed,
            deadline=began + min(0.9 * seconds, seconds - min(1.5, 0.5 * seconds)),
        ),
        home=_home(robot, home),
        tick_s=tick_s,
        weights=(lambda1, lambda2),
        starts=starts,
        began=began,
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
    if len(robot.effects) > sum(isinstance(effect, Armature) for effect in robot.effects):
        notes.append("points were chosen for rigid bodies and rotor inertia alone; friction is not part of the criterion")
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
        model="energy",
        energy=EnergyModel(design.condition_number, design.scaling, *design.W.shape),
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
        trajectory = PointsTrajectory(np.concatenate([[0.0], np.cumsum(u_f)]), path_q, path_v)
        for n_times in (20 * problem.rows, FINE * 20 * problem.rows):  # most that do not fit show it on a few times
            if margins_of(self.robot, trajectory, limits, n_times).smallest < -1e-9:
                return None
        W = energy_rows_of(problem.robot, problem.base, path_q[1:-1], v)
        names = zip(self.robot.joint_names, problem.free, strict=True)
        return PointsDesign(
            position=freeze(path_q[1:-1]),
            velocity=freeze(v),
            W=freeze(W),
            condition_number=condition_number(W),
            scaling=scaling_of(W),
            trajectory=trajectory,
            share=problem.share,
            indifferent=tuple(name for name, matters in names if not matters),
            seconds=monotonic() - self.began,
            cut_off=self._late(),
        )

    def _cost(self, design: PointsDesign) -> float:
        return self.weights[0] * design.condition_number + self.weights[1] * design.scaling

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


def _check_options(lambda1: float, lambda2: float, measure: Measure, starts: int, seconds: float) -> None:
    if measure not in MEASURES:
        raise UnknownNameError("measure of condition", measure, MEASURES)
    weights_fit = np.isfinite(lambda1) and np.isfinite(lambda2) and lambda1 >= 0.0 and lambda2 >= 0.0
    if not (weights_fit and lambda1 + lambda2 > 0.0):
        raise InputError(
            f"weights are lambda1 = {lambda1:g} and lambda2 = {lambda2:g}, expected zero or more and not both zero"
        )
    if starts < 1:
        raise InputError(f"{starts} starts asked for, expected at least 1")
    if not (np.isfinite(seconds) and seconds > 0.0):
        raise InputError(f"time budget is {seconds:g} s, expected a positive number")


def _number_of_rows(rows: int | None, n_base: int) -> int:
    chosen = max(FEWEST_ROWS, int(np.ceil(1.5 * n_base))) if rows is None else rows
    if chosen < n_base:
        raise InputError(
            f"{chosen} rows of the energy model asked for (--rows), expected at least one per base parameter: {n_base}"
        )
    return chosen


def _with_acceleration_limits(robot: Robot, limits: Limits | None) -> Limits:
    held = limits_of(robot) if limits is None else limits
    if not np.isfinite(held.acceleration).all():
        raise InputError(
            f"robot '{robot.name}' has no acceleration limit on every joint; a motion through points needs one (--acceleration)"
        )
    return held


def _home(robot: Robot, home: ArrayLike | None) -> Array:
    if home is None:
        return np.array([neutral_position(joint) for joint in robot.moving_joints])
    resting = np.asarray(home, dtype=np.float64)
    check_shape("home", resting, (robot.n_joints,))
    return resting
