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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, freeze, matrix
from dynid.engine import Engine, engine_from, one_blas_thread
from dynid.errors import InputError
from dynid.excitation.criteria import condition_number, scaling_of
from dynid.excitation.excitation_result import Excitation, finished_excitation
from dynid.excitation.gradient import refuse_floating
from dynid.excitation.limits import FINE, Limits, limits_of, margins_of
from dynid.excitation.points_problem import SHORT_SEARCH, SKETCH, Measure, PointsProblem, points_stages
from dynid.excitation.ramps import roomy_pose
from dynid.excitation.search import DEFAULT_SECONDS, Progress, check_budget
from dynid.excitation.shortest_pieces import Pieces, shortest_times
from dynid.excitation.trajectories import PolynomialTrajectory
from dynid.model.joint import neutral_position
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.energy_rows import energy_matrix
from dynid.signals.samples import Samples
from dynid.signals.steps.filters import EDGE_S

SHRINKS = (
    (1.0, 1.0),
    (0.6, 0.97),
    (0.45, 0.95),
    (0.36, 0.94),
    (0.28, 0.92),
    (0.2, 0.9),
    (0.1, 0.8),
    (0.2, 0.4),
    (0.1, 0.3),
    (0.05, 0.15),
)
"""Shares of the position range and of the velocity limits that points may use, tried one after another."""
ABOUT_MIDDLE = 7
"""So many of them lie about the middle of the range; where none fits, the others lie about a pose with room between the bodies."""

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


def design_points(
    robot: Robot,
    rows: int | None = None,
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
    periods: int = 1,
    engine: Engine | str | int | None = None,
    progress: Progress | None = None,
) -> Excitation:
    """The motion through points that make the energy regressor well conditioned; ``energy_rows`` of the result is that regressor.

    Args:
        robot: its rigid bodies, rotor inertias, and friction, which does work on the way between points.
        rows: number ``r`` of rows, at least as many as base parameters; None for 30, or half as many again as base parameters.
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
        periods: how often the motion is to be played.
        engine: where the starts run; None for this thread.
        progress: told after every start.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.points import design_points
        >>> robot = dynid.demo_robot(effects="none").only(["shoulder_pitch"])
        >>> design_points(robot, rows=6, starts=1, iterations=5).energy_rows.shape[0]
        6
    """
    began = monotonic()
    refuse_floating(robot)
    held = limits_of(robot) if limits is None else limits
    check_budget(seconds, starts)
    with one_blas_thread():
        base = reduce_to_base(robot)
        n_rows = checked_rows(rows, base.n_base)
        rest = _clear_home(robot, held, home)
        problem = PointsProblem.of(
            robot,
            base,
            held,
            rows=n_rows,
            stages=points_stages(lambda1, lambda2, measure),
            iterations=max(SHORT_SEARCH, 4 * n_rows) if iterations is None else iterations,
            deadline=began + min(0.9 * seconds, seconds - min(1.5, 0.5 * seconds)),
            roomy=roomy_pose(robot, held, rest),
        )
        path = _Path(robot, base, rest, tick_s)
        motions = _fitting_motions(problem, path, seed, starts, engine_from(engine))
        found, W = best_motion(motions, path, (lambda1, lambda2), n_rows + 1, 2 * starts, progress)
    drawn = [name for name, matters in zip(robot.joint_names, problem.free, strict=True) if not matters]
    cut_off = f"the time budget of {seconds:g} s cut the search off: another machine may reach another motion from this seed"
    told = {
        cut_off: monotonic() > problem.deadline,
        f"positions of {', '.join(drawn)} have no effect on the energy and were drawn at random": bool(drawn),
    }
    return finished_excitation(
        robot,
        base,
        found,
        held,
        criterion=f"{lambda1:g} cond(W) + {lambda2:g} S of the energy model, cond by {measure}",
        rest=False,
        periods=periods,
        n_times=FINE * 20 * n_rows,
        began=began,
        seed=seed,
        notes=(*held.notes, *(note for note, holds in told.items() if holds)),
        energy_rows=freeze(W),
    )


def best_motion(
    motions: Iterator[PolynomialTrajectory | str],
    path: _Path,
    weights: tuple[float, float],
    n_points: int,
    most: int,
    progress: Progress | None,
) -> tuple[PolynomialTrajectory, Array]:
    """The motion with the least ``lambda_1 cond(W) + lambda_2 S``, and its ``W``; refused where none fits."""
    found, best, least, broken = None, np.empty((0, 0)), np.inf, ""
    for done, motion in enumerate(motions, start=1):
        if isinstance(motion, str):
            broken = motion
        else:
            W = path.rows(motion)
            cost = weights[0] * condition_number(W) + weights[1] * scaling_of(W)
            if cost < least:
                found, best, least = motion, W, cost
        if progress is not None:
            progress(min(done, most), most, np.inf if found is None else condition_number(best))
    if found is None:
        raise InputError(
            f"no motion through {n_points} points stays within the limits of robot '{path.robot.name}', even for points within "
            f"{100 * SHRINKS[-1][0]:.0f} % of its ranges: the last one breaks that of {broken}; use --shape fourier or bspline, which "
            "keep each limit during the search"
        )
    return found, best


def checked_rows(rows: int | None, n_base: int) -> int:
    """Rows asked for, or the usual number of them; refused where they are fewer than base parameters."""
    n_rows = max(FEWEST_ROWS, int(np.ceil(1.5 * n_base))) if rows is None else rows
    if n_rows < n_base:
        raise InputError(
            f"{n_rows} rows of the energy model asked for (--points), expected at least one per base parameter: {n_base}"
        )
    return n_rows


def _clear_home(robot: Robot, limits: Limits, home: ArrayLike | None) -> Array:
    """The pose at rest before and after; refused where bodies are nearer than they may be, or no motion from there has a length."""
    if not np.isfinite(limits.acceleration).all():
        raise InputError(
            f"robot '{robot.name}' has no acceleration limit on every joint; a motion through points needs one (--acceleration)"
        )
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


def _fitting_motions(
    problem: PointsProblem, path: _Path, seed: int, starts: int, engine: Engine
) -> Iterator[PolynomialTrajectory | str]:
    """Motions of all starts within the first limits that let one fit and within the next smaller ones, which are often better still.

    A start that does not fit gives the limit that it breaks. A sketch of the first start shows whether motions within these limits have
    a chance to, and is where that start goes on.
    """
    fitted = False
    for level, share in enumerate(SHRINKS):
        about = problem.limits.centre if level < ABOUT_MIDDLE else problem.roomy
        at = replace(problem, share=share, roomy=about)
        drawn = [np.random.default_rng([seed, level, k, 0]).normal(size=at.n_variables) for k in range(starts)]
        items = [(x, 0) for x in drawn]
        if not fitted:
            sketch = at.sketch(drawn[0])
            rough = path.through(at, sketch, np.random.default_rng([seed, level, 0, 1]))
            if isinstance(rough, str):
                yield rough
                continue
            yield rough  # what is found from it may break a limit
            if monotonic() > problem.deadline:
                return
            items[0] = (sketch, SKETCH)
        found = False
        for k, x in enumerate(engine.map(at, items)):
            motion = path.through(at, x, np.random.default_rng([seed, level, k, 1]))
            found |= not isinstance(motion, str)
            yield motion
            if monotonic() > problem.deadline:
                return
        if fitted:
            return
        fitted = found


@dataclass(frozen=True, eq=False)
class _Path:
    """How points become a motion from and to rest."""

    robot: Robot
    base: BaseReduction
    home: Array
    tick_s: float | None

    def through(self, problem: PointsProblem, x: Array, rng: np.random.Generator) -> PolynomialTrajectory | str:
        """The motion through the points of ``x``, or the limit that it breaks."""
        q, v = problem.points(x)
        limits, still = problem.limits, np.zeros((1, self.robot.n_joints))
        path_v = np.vstack([still, v, still])
        path_q = _draw_positions(np.vstack([self.home, q, self.home]), path_v, problem, rng)
        ends = np.zeros(len(path_q) - 1)
        ends[[0, -1]] = ENDS_S
        u_f = shortest_times(path_q, path_v, limits, self.tick_s, ends)
        if np.isnan(u_f).any():
            return "velocity or acceleration between two points"
        motion = PolynomialTrajectory.through(np.concatenate([[0.0], np.cumsum(u_f)]), path_q, path_v)
        for n_times in (20 * problem.rows, FINE * 20 * problem.rows):  # most that do not fit show it on a few times
            margins = margins_of(self.robot, motion, limits, n_times)
            if margins.smallest < -1e-9:
                return f"{margins.worst.replace('_', ' ')} ({margins.places[margins.worst][0]})"
        return motion

    def rows(self, motion: PolynomialTrajectory) -> Array:
        """``W`` of the energy model with every effect, their work integrated along the motion."""
        points = motion.breaks_s[1:-1]
        grid = motion.grid(round(WORK_HZ * motion.duration_s)) if self.robot.effects else ()
        time = np.unique(np.concatenate([points, grid]))
        q, v, a = motion.evaluate(time)
        at = np.searchsorted(time, points)
        samples, pairs = Samples(time, q, v, a, np.zeros_like(q)), np.column_stack([at[:-1], at[1:]])
        return self.base.regressor(energy_matrix(self.robot, samples, pairs)[:, :-1])


def _draw_positions(q: Array, v: Array, problem: PointsProblem, rng: np.random.Generator, draws: int = 8) -> Array:
    """Positions without effect drawn point after point: the first random one whose piece stays within range."""
    free, limits = problem.free, problem.limits
    if free.all():
        return q
    q = q.copy()
    span = problem.share[0] * limits.reach[~free]
    for i in range(1, len(q) - 1):
        trial = np.tile(q[i], (draws, 1))
        trial[:, ~free] = problem.middle[~free] + rng.uniform(-1.0, 1.0, (draws, len(span))) * span
        worst = Pieces(*np.broadcast_arrays(q[i - 1], trial, v[i - 1], v[i])).overshoot(limits)
        if i + 2 == len(q):  # the last point must also fit the piece back to rest
            worst = np.maximum(worst, Pieces(*np.broadcast_arrays(trial, q[i + 1], v[i], v[i + 1])).overshoot(limits))
        good = np.flatnonzero(worst <= 0.0)
        q[i] = trial[good[0] if len(good) else int(np.argmin(worst))]
    return q
