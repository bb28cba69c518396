"""Output error: Gauss-Newton on simulated positions, so that noise in position and the feedback through it do not bias.

    minimise  sum_j sum_k ((q_sim(t_k; theta, x_0) - q_k) / s_j)^2     over theta and the first state x_0 of every window

The first states are eliminated window by window (multiple shooting), so that the step solves for ``theta`` alone; values that are never
negative in a physical joint stay so. Deviations take the autocorrelation of the residual into account. A rollout is the same
simulation of a whole log, against what was measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import scipy.linalg

from dynid.apps.actuators.model import LOAD_SYMBOLS, ActuatorLog, ActuatorModel, ActuatorProblem, first_state
from dynid.arrays import Array, BoolArray, freeze
from dynid.dynamics.position_loop import NARROWEST, RunawayError, Unknown, position_sensitivities
from dynid.errors import InputError
from dynid.estimation.shooting import add_scores, bounded_solution
from dynid.regression.independence import triangle_of

HORIZONS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
STARTS = 40
"""Starts per log from which short horizons are rolled out, at most."""


@dataclass(frozen=True, eq=False)
class Rollout:
    """A rollout of one log: measured and simulated position at the stamps."""

    time: Array
    command: Array
    measured: Array
    simulated: Array

    @property
    def rms(self) -> Array:
        """Per joint, rad or m."""
        return np.asarray(np.sqrt(np.mean((self.simulated - self.measured) ** 2, axis=0)))


def roll_out(model: ActuatorModel, log: ActuatorLog, tick_s: float | None = None) -> Rollout:
    """Follow the commands of a whole log from its first state."""
    motion = model.simulate(log, first_state(log), tick_s)
    sent = log.command.at(log.time, np.zeros(model.robot.n_joints))
    return Rollout(log.time, sent, log.position, freeze(motion.at_stamps))


def total_rms(rollouts: Sequence[Rollout]) -> float:
    """Root mean square over joints, time and logs."""
    if not rollouts:
        raise InputError("no rollout to judge")
    errors = np.concatenate([(one.simulated - one.measured).ravel() for one in rollouts])
    return float(np.sqrt(np.mean(errors**2)))


def error_over_horizon(
    model: ActuatorModel, logs: Sequence[ActuatorLog], horizons_s: Sequence[float] = HORIZONS_S, tick_s: float | None = None
) -> list[tuple[float, float]]:
    """Root mean square error at the end of rollouts of some lengths, started all over the logs."""
    found = []
    for horizon in horizons_s:
        ends: list[Array] = []
        for log in logs:
            rows = round(horizon / log.period_s)
            if rows < 1 or rows + 1 >= len(log.time):
                continue
            for start in np.unique(np.linspace(0, len(log.time) - rows - 2, STARTS).astype(int)):
                part = log.part(start, start + rows + 1)
                motion = model.simulate(part, first_state(log, start), tick_s)
                ends.append(motion.at_stamps[-1] - part.position[-1])
        if ends:
            found.append((horizon, float(np.sqrt(np.mean(np.array(ends) ** 2)))))
    return found


State: TypeAlias = tuple[Array, Array]
"""Position and velocity of all joints."""
Window: TypeAlias = tuple[ActuatorLog, State]
"""Part of a log that is simulated in one go, and the state it starts in."""
WINDOW_S = 2.0
MOST_WINDOWS = 100
"""Windows that a fit follows at most, spread over the logs: more of them take time and tell little more."""
ITERATIONS = 12
SETTLING = 4
"""Steps after which the weights of the joints stay."""
SHARES = (1.0, 0.5, 0.25, 0.1, 0.03)
"""Parts of a step that are tried until the sum of squares falls."""
SETTLED = 1e-4
"""Relative change of the sum of squares at which the steps end."""
STUCK = 1e-2
"""Share of the sum of squares that a step may still promise where none lowers it, for the answer to count as settled."""
FIRST_POSITION, FIRST_VELOCITY = 0.02, 0.5
"""How far a first state may be from the one that the filtered log has, rad and rad/s: much further than it is."""
WIDEST = 0.1
"""Speed over which dry friction turns at most, rad/s: wider would be viscous friction under another name, and no simulator holds it."""
LONGEST_DELAY_S = 0.2
WIDTH_SPREAD = 1.5
"""Deviation of the logarithm of the width before the data speak."""
RUNAWAY = 1e3
"""Error of position that no model near the answer has, rad or m."""
NEAREST_LAGS_S = 0.25
"""Time over which residuals may depend on one another, s."""


@dataclass(frozen=True, eq=False)
class OutputError:
    """Values that let the simulated positions meet the measured ones.

    Args:
        model: with the values found.
        covariance: of the unknowns, in their order; others are given those at a bound.
        at_bound: unknowns that ended at a bound.
        rms: position error of every joint over the windows, rad or m.
        information: ``J^T J`` of the weighted residual over the unknowns, first states eliminated.
        inflation: by how much autocorrelation widens variances, median over the unknowns.
        steps: sum of squares after every step.
    """

    model: ActuatorModel
    covariance: Array
    at_bound: BoolArray
    rms: Array
    information: Array
    inflation: float
    steps: tuple[float, ...]
    converged: bool

    @property
    def sigma(self) -> Array:
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))


def windows_of(log: ActuatorLog, window_s: float = WINDOW_S) -> tuple[Window, ...]:
    """Windows of about a length, without gaps, each with a first state from the log itself."""
    period = log.period_s
    gaps = np.flatnonzero(np.diff(log.time) > 3.0 * period) + 1
    found = []
    for start, stop in zip([0, *gaps], [*gaps, len(log.time)], strict=True):
        n_rows = stop - start
        n_windows = max(1, round(n_rows * period / window_s))
        edges = np.linspace(start, stop, n_windows + 1).astype(int)
        for a, b in pairwise(edges):
            if b - a < 8:
                continue
            found.append((log.part(a, b), first_state(log, a, start, stop)))
    return tuple(found)


def output_error(
    problem: ActuatorProblem,
    start: ActuatorModel | Sequence[ActuatorModel],
    *,
    window_s: float = WINDOW_S,
    iterations: int = ITERATIONS,
    prior: tuple[Array, Array] | None = None,
) -> OutputError:
    """Refine a model by Gauss-Newton steps on simulated positions.

    Args:
        problem: logs, robot and what is asked for.
        start: a model near the answer, such as the linear one; of several the one whose motion is nearest to the log.
        window_s: length of a window, s.
        iterations: limit of the steps.
        prior: values and deviations that the unknowns are drawn to; None for none but that of the widths.
    """
    windows = tuple(w for log in problem.logs for w in windows_of(log, window_s))
    if len(windows) > MOST_WINDOWS:
        windows = tuple(windows[k] for k in np.linspace(0, len(windows) - 1, MOST_WINDOWS).astype(int))
    unknowns, p = problem.unknowns, len(problem.unknowns)
    low, high = _bounds(unknowns)
    here, x = _start([start] if isinstance(start, ActuatorModel) else start, problem, windows, low, high)
    centre, weight = _prior(unknowns, x, prior)
    scale = np.ones(problem.robot.n_joints)
    steps: list[float] = []
    converged = False
    for iteration in range(iterations):
        if iteration < SETTLING:  # weights settle with the first steps, then stay, so that one function is minimised
            scale = 1.0 / np.maximum(here.rms, 1e-3 * here.rms.max() + 1e-9)
        cost = here.cost(windows, scale, weight * (x - centre))
        R, backs = _reduced(problem, here, windows, scale)
        A = np.vstack([R[:p, :p], np.diag(weight)])
        b = np.concatenate([R[:p, p], weight * (x - centre)])
        move = bounded_solution(A, b, low - x, high - x)
        # the best change of every first state for this change of the unknowns
        back = [-scipy.linalg.solve_triangular(T, J @ move + r) for T, J, r in backs]
        for share in SHARES:
            trial = here.moved(problem, windows, x + share * move, share, back)
            new = trial.cost(windows, scale, weight * (x + share * move - centre))
            if new < cost:
                break
        else:  # settled where no step was expected to help either; otherwise the derivatives do not lead on
            converged = float(b @ b) - float(np.sum((A @ move + b) ** 2)) < STUCK * cost
            break
        x, here = x + share * move, trial
        steps.append(new)
        if iteration >= SETTLING and (cost - new) / cost < SETTLED:
            converged = True
            break
    covariance, information, inflation = _judged(problem, here, windows, scale, weight, (x <= low) | (x >= high))
    return OutputError(
        here.model,
        freeze(covariance),
        (x <= low) | (x >= high),
        freeze(here.rms),
        freeze(information),
        inflation,
        tuple(steps),
        converged,
    )


def _start(
    models: Sequence[ActuatorModel], problem: ActuatorProblem, windows: Sequence[Window], low: Array, high: Array
) -> tuple[_Point, Array]:
    """The model whose motion is nearest to the log, and its unknowns within their bounds.

    Beside the models themselves that is one which has the values of each joint from the model in which that joint fares best.
    """
    states = [first for _, first in windows]

    def tried(x: Array) -> tuple[float, _Point, Array]:
        x = np.clip(x, low, high)
        point = _Point.at(problem, windows, models[0].with_values(problem.unknowns, x), states)
        return point.cost(windows, np.ones(problem.robot.n_joints), np.zeros(0)), point, x

    values = [np.array([model.value(u) for u in problem.unknowns]) for model in models]
    found = [tried(x) for x in values]
    if len(models) > 1:
        errors = np.array(
            [point.rms if np.isfinite(cost) else np.full(problem.robot.n_joints, np.inf) for cost, point, _ in found]
        )
        best_of = np.append(
            np.argmin(errors, axis=0), int(np.argmin([cost for cost, _, _ in found]))
        )  # last: of shared values
        found.append(tried(np.array([values[best_of[u.joint]][k] for k, u in enumerate(problem.unknowns)])))
    cost, best, x = min(found, key=lambda one: one[0])
    if not np.isfinite(cost):
        raise RunawayError(problem.robot.name)
    return best, x


@dataclass(frozen=True, eq=False)
class _Point:
    """A model, the first states of the windows, and the residuals of both."""

    model: ActuatorModel
    states: Sequence[State]
    residuals: Sequence[Array]

    @classmethod
    def at(
        cls, problem: ActuatorProblem, windows: Sequence[Window], model: ActuatorModel, states: Sequence[State]
    ) -> _Point:
        residuals = [
            model.simulate(log, state, problem.tick_s, refuse=False).at_stamps - log.position
            for (log, _), state in zip(windows, states, strict=True)
        ]
        return cls(model, states, residuals)

    def moved(
        self, problem: ActuatorProblem, windows: Sequence[Window], x: Array, share: float, back: Sequence[Array]
    ) -> _Point:
        n = problem.robot.n_joints
        states = [(q + share * d[:n], v + share * d[n:]) for (q, v), d in zip(self.states, back, strict=True)]
        return _Point.at(problem, windows, self.model.with_values(problem.unknowns, x), states)

    @property
    def rms(self) -> Array:
        return np.asarray(np.sqrt(np.mean(np.concatenate(self.residuals) ** 2, axis=0)))

    def cost(self, windows: Sequence[Window], scale: Array, pulled: Array) -> float:
        """Weighted sum of squares, with what draws first states and unknowns to where they came from."""
        if not all(np.isfinite(r).all() and np.abs(r).max() < RUNAWAY for r in self.residuals):
            return np.inf
        total = sum(float(np.sum((r * scale) ** 2)) for r in self.residuals) + float(pulled @ pulled)
        for (q, v), (_, first) in zip(self.states, windows, strict=True):
            total += float(np.sum(((q - first[0]) / FIRST_POSITION) ** 2) + np.sum(((v - first[1]) / FIRST_VELOCITY) ** 2))
        return total


def _bounds(unknowns: Sequence[Unknown]) -> tuple[Array, Array]:
    low, high = np.full((2, len(unknowns)), np.inf) * [[-1.0], [1.0]]
    for k, unknown in enumerate(unknowns):
        if unknown.symbol in ("Ia", "fv", "fc", "kp", "kd", "delay", "m", *LOAD_SYMBOLS):
            low[k] = 0.0
        if unknown.symbol == "delay":
            high[k] = LONGEST_DELAY_S
        if unknown.symbol == "width":
            low[k], high[k] = NARROWEST, WIDEST
    return low, high


def _prior(unknowns: Sequence[Unknown], x: Array, given: tuple[Array, Array] | None) -> tuple[Array, Array]:
    """Centre and inverse deviation of every unknown: of widths always, of others where given."""
    centre, weight = x.copy(), np.zeros(len(x))
    if given is not None:
        centre, weight = given[0].copy(), np.where(np.isfinite(given[1]), 1.0 / given[1], 0.0)
    for k, unknown in enumerate(unknowns):
        if unknown.symbol == "width" and weight[k] == 0.0:
            centre[k], weight[k] = x[k], 1.0 / (WIDTH_SPREAD * max(x[k], 0.01))
    return centre, weight


def _window_rows(
    problem: ActuatorProblem, here: _Point, index: int, window: Window, scale: Array
) -> tuple[Array, Array, Array]:
    """Weighted rows of one window: derivatives by unknowns, by the first state with its prior below, and the residual."""
    (log, (position, velocity)), n, p = window, problem.robot.n_joints, len(problem.unknowns)
    state, residual = here.states[index], here.residuals[index]
    unknowns = [
        replace(u, scale=float(getattr(log.control, u.symbol)[u.joint])) if u.symbol in ("kp", "kd") else u
        for u in problem.unknowns
    ]
    motion = here.model.simulate(log, state, problem.tick_s, refuse=False)
    drives = here.model.drives(log.control)
    S = position_sensitivities(here.model.robot, drives, log.command, motion, unknowns, rate=log.control.rate)
    weighted = (S * scale[:, None]).reshape(-1, p + 2 * n)
    spread = np.repeat([FIRST_POSITION, FIRST_VELOCITY], n)
    first = np.concatenate([state[0] - position, state[1] - velocity]) / spread
    by_state = np.vstack([weighted[:, p:], np.diag(1.0 / spread)])
    by_unknown = np.vstack([weighted[:, :p], np.zeros((2 * n, p))])
    return by_unknown, by_state, np.concatenate([(residual * scale).ravel(), first])


def _reduced(
    problem: ActuatorProblem, here: _Point, windows: Sequence[Window], scale: Array
) -> tuple[Array, list[tuple[Array, Array, Array]]]:
    """Triangle over the unknowns and the residual, and for every window the rows ``[T, J, r]`` that give its first state."""
    R = np.zeros((0, len(problem.unknowns) + 1))
    backs = []
    for index, window in enumerate(windows):
        J, X, r = _window_rows(problem, here, index, window, scale)
        m = X.shape[1]
        T = triangle_of(np.column_stack([X, J, r]))
        backs.append((T[:m, :m], T[:m, m:-1], T[:m, -1]))
        R = triangle_of(np.vstack([R, T[m:, m:]]))
    return R, backs


def _judged(
    problem: ActuatorProblem, here: _Point, windows: Sequence[Window], scale: Array, weight: Array, at_bound: BoolArray
) -> tuple[Array, Array, float]:
    """Covariance at the answer, information, and the factor of autocorrelation on deviations.

    The covariance is the sandwich of the information and of the scores, whose rows depend on one another over some time; it is never
    below that of white noise.
    """
    p, n = len(problem.unknowns), problem.robot.n_joints
    info, meat, white = np.zeros((3, p, p))
    n_rows = 0
    for index, window in enumerate(windows):
        J, X, r = _window_rows(problem, here, index, window, scale)
        J = J - X @ np.linalg.lstsq(X, J, rcond=None)[0]
        info += J.T @ J
        rows = len(here.residuals[index])
        n_rows += rows
        lags = max(1, round(NEAREST_LAGS_S / window[0].period_s))
        add_scores(J[: rows * n].reshape(rows, n, p), r[: rows * n].reshape(rows, n), lags, white, meat)
    spent = max(1.0, n_rows * n / max(1.0, n_rows * n - p - 2 * n * len(windows)))
    precision, held = info + np.diag(weight**2), np.diag(weight**2)
    size = np.sqrt(np.diag(precision))
    size[size == 0.0] = 1.0

    def inverse(free: BoolArray) -> Array:
        found = np.zeros((p, p))
        scaled = (precision / np.outer(size, size))[np.ix_(free, free)]
        found[np.ix_(free, free)] = np.linalg.pinv(scaled, rcond=1e-13, hermitian=True) / np.outer(size[free], size[free])
        return found

    def sandwich(bread: Array) -> Array:
        plain, robust = (bread @ (middle + held) @ bread * spent for middle in (white, meat))
        ratio = np.sqrt(np.maximum(np.diag(robust), np.diag(plain)) / np.maximum(np.diag(plain), 1e-300))
        return np.asarray(plain * np.outer(ratio, ratio))

    whole = inverse(np.ones(p, dtype=np.bool_))
    covariance, every = sandwich(inverse(~at_bound)), sandwich(whole)
    covariance[at_bound] = every[at_bound]  # a value at its bound has the deviation that it would have without one
    covariance[:, at_bound] = every[:, at_bound]
    ratio = np.sqrt(np.maximum(np.diag(every), 0.0) / np.maximum(np.diag(whole), 1e-300))
    return covariance, info, max(1.0, float(np.median(ratio)))
