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

from collections.abc import Callable
from dataclasses import dataclass
from time import monotonic
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.adapters.blas import one_blas_thread
from dynid.arrays import Array, BoolArray, check_finite, check_shape, freeze, matrix
from dynid.engine import Engine, engine_from
from dynid.errors import InputError, UnknownNameError
from dynid.excitation.criteria import (
    ConditionNumber,
    Criterion,
    FrobeniusCondition,
    LogDet,
    PivotedCondition,
    Scaling,
    SumOfRatios,
    condition_number,
)
from dynid.excitation.design import DEFAULT_SECONDS, Excitation, finished_excitation
from dynid.excitation.gradient import energy_gradient, refuse_floating
from dynid.excitation.limits import FINE, Limits, limits_of, margins_of
from dynid.excitation.shape import Trajectory, times
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.energy import energy_regressor
from dynid.regression.random_states import random_states
from dynid.robot.effects import Armature
from dynid.robot.model import Robot, neutral_position

Measure: TypeAlias = Literal["singular", "pivoted", "frobenius"]
MEASURES: tuple[Measure, ...] = ("singular", "pivoted", "frobenius")

SHRINKS = ((1.0, 1.0), (0.6, 0.97), (0.45, 0.95), (0.36, 0.94), (0.28, 0.92), (0.2, 0.9), (0.1, 0.8))
"""Shares of the position range and of the velocity limits that points may use, tried one after another."""

FEWEST_ROWS = 30
"""Rows of the energy model where nobody asks for a number: Gautier and Khalil's, or more for a robot of more parameters."""

SHORT_SEARCH = 150
"""Steps of each stage that are enough for short sequences, and for a sketch of long ones."""

_POINTS_PER_PIECE = 80
"""Times per piece on which positions are looked at during the search."""


@dataclass(frozen=True, eq=False)
class PointsTrajectory(Trajectory):
    """Polynomials of degree 5 through points ``(q, v)`` with no acceleration at them."""

    knots_s: Array
    """When the motion is at each point; the first is zero."""
    position: Array
    velocity: Array
    """``(points, joints)`` each."""

    def __post_init__(self) -> None:
        knots = freeze(self.knots_s)
        check_shape("times of the points", knots, (None,))
        check_finite("times of the points", knots)
        if len(knots) < 2 or knots[0] != 0.0 or not (np.diff(knots) > 0.0).all():
            raise InputError(f"times of {len(knots)} points do not rise from zero, expected at least 2 that do")
        object.__setattr__(self, "knots_s", knots)
        position = matrix("positions of the points", self.position, (len(knots), None))
        object.__setattr__(self, "position", position)
        object.__setattr__(self, "velocity", matrix("velocities of the points", self.velocity, position.shape))

    @property
    def n_joints(self) -> int:
        return int(self.position.shape[1])

    @property
    def duration_s(self) -> float:
        return float(self.knots_s[-1])

    def derivative(self, time: ArrayLike, order: int) -> Array:
        t = times(time)
        piece = np.clip(np.searchsorted(self.knots_s, t, side="right") - 1, 0, len(self.knots_s) - 2)
        u_f = np.diff(self.knots_s)[piece][:, None]
        u = (t - self.knots_s[piece])[:, None]
        a = _polynomials(self.position, self.velocity, np.diff(self.knots_s))
        out = np.zeros((len(t), self.n_joints))
        for k in range(order, 6):
            out += float(np.prod(np.arange(k - order + 1, k + 1))) * a[k][piece] * u ** (k - order)
        last = t >= self.knots_s[-1]  # the end point itself, without rounding of the last polynomial
        if order < 2 and last.any():
            out[last & (u[:, 0] == u_f[:, 0])] = (self.position if order == 0 else self.velocity)[-1]
        return out

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": "points",
            "knots_s": self.knots_s.tolist(),
            "position": self.position.tolist(),
            "velocity": self.velocity.tolist(),
        }


@dataclass(frozen=True, eq=False)
class PointsDesign:
    """Optimal points, the energy regressor they give, and the motion through them."""

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
    lambda2: float = 0.0,
    measure: Measure = "singular",
    limits: Limits | None = None,
    home: ArrayLike | None = None,
    tick_s: float | None = None,
    starts: int = 2,
    iterations: int | None = None,
    seconds: float = DEFAULT_SECONDS,
    seed: int = 0,
    engine: Engine | str | int | None = None,
    progress: Callable[[int, int, float], None] | None = None,
) -> PointsDesign:
    """Points that make the energy regressor well conditioned, and the motion through them.

    Args:
        robot: its rigid bodies and, if it has them, rotor inertias; friction does work on the way and is left out.
        rows: number ``r`` of rows, at least as many as base parameters; None for 30, or half as many again as base parameters.
        base: base parameters of the energy model; None to find them.
        lambda1: weight of the condition number.
        lambda2: weight of the scaling ``S``.
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
    """
    began = monotonic()
    refuse_floating(robot)
    if measure not in MEASURES:
        raise UnknownNameError("measure of condition", measure, MEASURES)
    if not (lambda1 >= 0.0 and lambda2 >= 0.0 and lambda1 + lambda2 > 0.0):
        raise InputError(
            f"weights are lambda1 = {lambda1:g} and lambda2 = {lambda2:g}, expected zero or more and not both zero"
        )
    energetic = robot.with_effects([effect for effect in robot.effects if isinstance(effect, Armature)])
    with one_blas_thread():
        found = reduce_to_base(energetic) if base is None else base
    if rows is None:
        rows = max(FEWEST_ROWS, int(np.ceil(1.5 * found.n_base)))
    if rows < found.n_base:
        raise InputError(
            f"{rows} rows of the energy model asked for (--rows), expected at least one per base parameter: {found.n_base}"
        )
    held = limits_of(robot) if limits is None else limits
    if not np.isfinite(held.acceleration).all():
        raise InputError(
            f"robot '{robot.name}' has no acceleration limit on every joint; a motion through points needs one (--acceleration)"
        )
    resting = (
        np.array([neutral_position(joint) for joint in robot.joints]) if home is None else np.asarray(home, dtype=np.float64)
    )
    check_shape("home", resting, (robot.n_joints,))
    free = _positions_that_matter(energetic)
    stages = _stages(lambda1, lambda2, measure)
    runner = engine_from(engine)
    most = max(SHORT_SEARCH, 4 * rows) if iterations is None else iterations
    deadline = began + min(0.9 * seconds, seconds - min(1.5, 0.5 * seconds))
    best: PointsDesign | None = None
    with one_blas_thread():
        for level, share in enumerate(SHRINKS):
            problem = _Points(energetic, found, held, free, rows, share, stages, most, seed, deadline)
            fitted = best is not None

            def tried(item: tuple[int, int], x: Array, problem: _Points = problem) -> PointsDesign | None:
                rng = np.random.default_rng([seed, *item, 1])
                return _interpolated(robot, problem, *problem.points(x), resting, tick_s, rng, began)

            if not fitted:  # a rough sequence shows whether motions within these limits have a chance to fit
                rough = tried((level, 0), problem.sketch((level, 0)))
                if rough is None:
                    continue
                if monotonic() > deadline:
                    best = rough
                    break
            items = [(level, start) for start in range(starts)]
            for number, (item, x) in enumerate(zip(items, runner.map(problem, items), strict=True)):
                design = tried(item, x)
                if design is not None and _smaller(design, best, lambda1, lambda2):
                    best = design
                if progress is not None:
                    progress(number + 1, starts, np.inf if best is None else best.condition_number)
                if monotonic() > deadline:
                    break
            # one more after the first limits that fit, for the points within smaller ones are often better still
            if fitted or (best is not None and monotonic() > deadline):
                break
    if best is None:
        raise InputError(
            f"no motion through {rows + 1} points stays within the limits of robot '{robot.name}', even for points within "
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
        notes.append("points were chosen for rigid bodies and rotor inertia; friction does work on the way and had no say")
    with one_blas_thread():
        judged_by = reduce_to_base(robot) if base is None else base
    return finished_excitation(
        robot,
        judged_by,
        design.trajectory,
        held,
        criterion=f"energy model, {n_rows} rows, condition by {options.get('measure', 'singular')}",
        rest=False,
        periods=periods,
        n_times=FINE * 20 * n_rows,
        began=began,
        seed=seed,
        notes=notes,
        model="energy",
        energy_condition_number=design.condition_number,
        scaling=design.scaling,
    )


def energy_rows_of(robot: Robot, base: BaseReduction, q: ArrayLike, v: ArrayLike) -> Array:
    """``W``: differences of the base energy regressor between successive points."""
    h = _energy_columns(robot, np.asarray(q, dtype=np.float64), np.asarray(v, dtype=np.float64))
    b = h[:, base.independent] if base.independent is not None else h @ base.lift
    return np.diff(b, axis=0)


def scaling_of(W: Array) -> float:
    """``S = max |W_ij| / min |W_ij|`` over entries that are not zero."""
    return float(np.exp(Scaling().value(W)))


def shortest_times(position: Array, velocity: Array, limits: Limits, tick_s: float | None = None) -> Array:
    """Shortest time between successive points within velocity and acceleration limits; NaN where there is none.

    With ``tick_s`` times are rounded up to multiples of it that fit.
    """
    pieces = _Pieces(position[:-1], position[1:], velocity[:-1], velocity[1:])
    u_f = pieces.shortest(limits)
    if tick_s is None:
        return u_f
    ticks = np.ceil(np.nan_to_num(u_f, nan=1.0) / tick_s - 1e-9) + np.arange(400)[:, None]
    good = pieces.fit(np.asarray(ticks * tick_s, dtype=np.float64), limits)
    rounded = np.take_along_axis(ticks, good.argmax(axis=0)[None], axis=0)[0] * tick_s
    return np.where(np.isnan(u_f) | ~good.any(axis=0), np.nan, rounded)


# The search ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Points:
    """Criterion of ``r + 1`` points as a function of unconstrained variables."""

    robot: Robot
    base: BaseReduction
    limits: Limits
    free: BoolArray
    """Joints whose position matters."""
    rows: int
    share: tuple[float, float]
    stages: tuple[Criterion, ...]
    iterations: int
    seed: int
    deadline: float

    def __call__(self, item: tuple[int, int]) -> Array:
        """Optimal variables of one start."""
        return self._through(item, self.stages, self.iterations)

    def sketch(self, item: tuple[int, int]) -> Array:
        """The same start after its first stages only."""
        return self._through(item, self.stages[:2], min(self.iterations, SHORT_SEARCH))

    def _through(self, item: tuple[int, int], stages: tuple[Criterion, ...], iterations: int) -> Array:
        from scipy.optimize import minimize

        n_variables = (self.rows + 1) * (int(self.free.sum()) + self.robot.n_joints)
        x = np.random.default_rng([self.seed, *item, 0]).normal(size=n_variables)
        for number, criterion in enumerate(stages):
            if number > 0 and monotonic() > self.deadline:
                break
            found = minimize(
                self.function,
                x,
                (criterion,),
                jac=True,
                method="L-BFGS-B",
                callback=self._stop_at_the_deadline,
                options={"maxiter": iterations, "maxcor": 40, "ftol": 1e-7, "gtol": 1e-6},
            )
            x = found.x
        return np.asarray(x)

    def _stop_at_the_deadline(self, intermediate_result: Any) -> None:
        """SciPy calls this after every step, and returns where it stands when it stops."""
        if monotonic() > self.deadline:
            raise StopIteration

    def points(self, x: Array) -> tuple[Array, Array]:
        """``q = q_I + (q_F - q_I) sin^2 x`` and ``v = v_M sin x``."""
        X = x.reshape(self.rows + 1, -1)
        k = int(self.free.sum())
        q = np.tile(self.limits.centre, (self.rows + 1, 1))
        q[:, self.free] += self.share[0] * self.limits.reach[self.free] * (2.0 * np.sin(X[:, :k]) ** 2 - 1.0)
        return q, self.share[1] * self.limits.velocity * np.sin(X[:, k:])

    def function(self, x: Array, criterion: Criterion) -> tuple[float, Array]:
        q, v = self.points(x)
        h = _energy_columns(self.robot, q, v)
        columns = self.base.independent
        b = h[:, columns] if columns is not None else h @ self.base.lift
        value, slope = criterion.of_regressor(np.diff(b, axis=0))
        by_base = np.zeros_like(b)
        by_base[1:] += slope
        by_base[:-1] -= slope
        G = by_base @ self.base.lift.T if columns is None else np.zeros_like(h)
        if columns is not None:
            G[:, columns] = by_base
        n = self.robot.parameters.n_inertial
        q_bar, v_bar = energy_gradient(self.robot, q, v, G[:, :n])
        if G.shape[1] > n:
            v_bar += G[:, n:] * v
        X = x.reshape(self.rows + 1, -1)
        k = int(self.free.sum())
        gradient = np.empty_like(X)
        gradient[:, :k] = q_bar[:, self.free] * (2.0 * self.share[0] * self.limits.reach[self.free]) * np.sin(2.0 * X[:, :k])
        gradient[:, k:] = v_bar * self.share[1] * self.limits.velocity * np.cos(X[:, k:])
        return value, gradient.ravel()


def _stages(lambda1: float, lambda2: float, measure: Measure) -> tuple[Criterion, ...]:
    """Log-determinant with a ridge, then ``lambda_1 cond + lambda_2 S``, ever sharper."""
    powers = (2.0, 8.0, 64.0)
    conditions: list[Criterion]
    if measure == "singular":
        conditions = [ConditionNumber(power) for power in powers]
    elif measure == "frobenius":
        conditions = [FrobeniusCondition()] * len(powers)
    else:
        conditions = [FrobeniusCondition(), *[PivotedCondition()] * (len(powers) - 1)]
    stages: list[Criterion] = [LogDet(ridge=1e-8)]
    for number, (condition, power) in enumerate(zip(conditions, powers, strict=True)):
        parts: list[tuple[float, Criterion]] = [(lambda1, condition)] if lambda1 > 0.0 else []
        if lambda2 > 0.0 and (number > 0 or lambda1 == 0.0):  # entries pass through zero while the condition is found
            parts.append((lambda2, Scaling(power)))
        stages.append(SumOfRatios(tuple(parts)))
    return tuple(stages)


def _energy_columns(robot: Robot, q: Array, v: Array) -> Array:
    """Energy regressor with the columns ``v^2 / 2`` of rotor inertias."""
    h = energy_regressor(robot, q, v)
    return np.hstack([h, 0.5 * v**2]) if robot.effects else h


def _positions_that_matter(robot: Robot) -> BoolArray:
    """Joints whose position changes the energy of some state."""
    q, v, _, _ = random_states(robot, 40)
    rng = np.random.default_rng(0)
    change, _ = energy_gradient(robot, q, v, rng.normal(size=(len(q), robot.parameters.n_inertial)))
    size = np.abs(change).max(axis=0)
    return np.asarray(size > 1e-9 * size.max())


# The motion ---------------------------------------------------------------------------------------


def _interpolated(
    robot: Robot,
    problem: _Points,
    q: Array,
    v: Array,
    home: Array,
    tick_s: float | None,
    rng: np.random.Generator,
    began: float,
) -> PointsDesign | None:
    """The motion through points, if it stays within all limits."""
    limits = problem.limits
    still = np.zeros((1, robot.n_joints))
    path_v = np.vstack([still, v, still])
    path_q = _draw_positions(np.vstack([home, q, home]), path_v, problem, rng)
    u_f = shortest_times(path_q, path_v, limits, tick_s)
    if np.isnan(u_f).any():
        return None
    trajectory = PointsTrajectory(np.concatenate([[0.0], np.cumsum(u_f)]), path_q, path_v)
    for n_times in (20 * problem.rows, FINE * 20 * problem.rows):  # most that do not fit show it on a few times
        if margins_of(robot, trajectory, limits, n_times).smallest < -1e-9:
            return None
    W = energy_rows_of(problem.robot, problem.base, path_q[1:-1], v)
    return PointsDesign(
        position=freeze(path_q[1:-1]),
        velocity=freeze(v),
        W=freeze(W),
        condition_number=condition_number(W),
        scaling=scaling_of(W),
        trajectory=trajectory,
        share=problem.share,
        indifferent=tuple(name for name, matters in zip(robot.joint_names, problem.free, strict=True) if not matters),
        seconds=monotonic() - began,
        cut_off=monotonic() > problem.deadline,
    )


def _draw_positions(q: Array, v: Array, problem: _Points, rng: np.random.Generator, draws: int = 8) -> Array:
    """Positions without effect drawn point after point: the first random one whose piece stays within range."""
    free, limits = problem.free, problem.limits
    if free.all():
        return q
    q = q.copy()
    span = problem.share[0] * limits.reach[~free]
    for i in range(1, len(q) - 1):
        trial = np.tile(q[i], (draws, 1))
        trial[:, ~free] = limits.centre[~free] + rng.uniform(-1.0, 1.0, (draws, len(span))) * span
        worst = _Pieces(*np.broadcast_arrays(q[i - 1], trial, v[i - 1], v[i])).overshoot(limits)
        if i + 2 == len(q):  # the piece back to rest is the last point's to think of too
            worst = np.maximum(worst, _Pieces(*np.broadcast_arrays(trial, q[i + 1], v[i], v[i + 1])).overshoot(limits))
        good = np.flatnonzero(worst <= 0.0)
        q[i] = trial[good[0] if len(good) else int(np.argmin(worst))]
    return q


@dataclass(frozen=True, eq=False)
class _Pieces:
    """Polynomials between pairs of points, ``(pieces, joints)`` each, in the time ``s = u / u_f`` from 0 to 1."""

    start: Array
    end: Array
    v_start: Array
    v_end: Array

    def coefficients(self, u_f: Array) -> tuple[Array, Array, Array]:
        """Of ``s^3, s^4, s^5`` (28); ``u_f`` is ``(.., pieces)``."""
        A, v_a, v_b, u = self.end - self.start, self.v_start, self.v_end, u_f[..., None]
        return (
            10.0 * A - (6.0 * v_a + 4.0 * v_b) * u,
            -15.0 * A + (8.0 * v_a + 7.0 * v_b) * u,
            6.0 * A - 3.0 * (v_a + v_b) * u,
        )

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


def _polynomials(q: Array, v: Array, u_f: Array) -> tuple[Array, ...]:
    """``a_0 .. a_5`` of every piece and joint (28)."""
    c3, c4, c5 = _Pieces(q[:-1], q[1:], v[:-1], v[1:]).coefficients(u_f)
    u = u_f[:, None]
    return q[:-1], v[:-1], np.zeros_like(c3), c3 / u**3, c4 / u**4, c5 / u**5


def _roots_inside(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """Roots of ``a s^2 + b s + c`` cut to [0, 1]; where there is none, any place in it, which does no harm."""
    root = np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0))
    t = -0.5 * (b + np.where(b >= 0.0, 1.0, -1.0) * root)
    first = np.divide(t, a, out=np.zeros_like(t), where=a != 0.0)
    second = np.divide(c, t, out=np.zeros_like(t), where=t != 0.0)
    return np.clip(first, 0.0, 1.0), np.clip(second, 0.0, 1.0)


def _smaller(design: PointsDesign, best: PointsDesign | None, lambda1: float, lambda2: float) -> bool:
    if best is None:
        return True

    def cost(one: PointsDesign) -> float:
        return lambda1 * one.condition_number + lambda2 * one.scaling

    return cost(design) < cost(best)
