"""Output error: Gauss-Newton on simulated positions, so that noise in position and the feedback through it do not bias.

    minimise  sum_j sum_k ((q_sim(t_k; theta, x_0) - q_k) / s_j)^2     over theta and the first state x_0 of every window

by multiple shooting; values that are never negative in a physical joint stay so. Deviations take the autocorrelation of the residual into
account.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from dynid.apps.actuators.model import FURTHER_SYMBOLS, ActuatorLog, ActuatorModel, ActuatorProblem, first_state
from dynid.arrays import Array, BoolArray, freeze
from dynid.dynamics.position_loop import NARROWEST, RunawayError, Unknown, position_sensitivities
from dynid.estimation.shooting import DAMPINGS, SETTLED, STUCK, Shooting, sandwich, scaled_inverse

Window: TypeAlias = tuple[ActuatorLog, tuple[Array, Array]]
"""Part of a log that is simulated in one go, and the position and velocity it starts with."""
WINDOW_S = 2.0
MOST_WINDOWS = 100
"""Windows that a fit follows at most, spread over the logs: more of them take time and tell little more."""
ITERATIONS = 12
SETTLING = 4
"""Steps after which the weights of the joints stay."""
WIDEST = 0.1
"""Speed over which dry friction turns at most, rad/s: wider would be viscous friction under another name, and no simulator holds it."""
LONGEST_DELAY_S = 0.2
FADES = (0.02, 3.0)
"""Speeds over which friction may fall from its value at rest, rad/s."""
WIDTH_SPREAD = 1.5
"""Deviation of the logarithm of the width before the data speak."""


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
    search = _start([start] if isinstance(start, ActuatorModel) else start, problem, windows)
    search.draw_to(*_prior(problem.unknowns, search.x, prior))
    steps: list[float] = []
    converged = False
    for iteration in range(iterations):
        if iteration < SETTLING:  # weights settle with the first steps, then stay, so that one function is minimised
            search.weigh()
        cost = search.cost
        moved, promised = search.step(dampings=DAMPINGS)
        if not moved:  # settled where no step was expected to help either; otherwise the derivatives do not lead on
            converged = promised < STUCK * cost
            break
        steps.append(search.cost)
        if iteration >= SETTLING and (cost - search.cost) / cost < SETTLED:
            converged = True
            break
    covariance, information, inflation = search.judge()
    return OutputError(
        search.model(search.x),
        freeze(covariance),
        search.at_bound,
        freeze(search.rms),
        freeze(information),
        inflation,
        tuple(steps),
        converged,
    )


def _start(models: Sequence[ActuatorModel], problem: ActuatorProblem, windows: Sequence[Window]) -> _Search:
    """The search from the model whose motion is nearest to the log.

    Beside the models themselves that is one which has the values of each joint from the model in which that joint fares best.
    """
    values = [np.array([model.value(u) for u in problem.unknowns]) for model in models]
    found = [_Search(problem, windows, models[0], x) for x in values]
    if len(models) > 1:
        errors = np.array([one.rms if np.isfinite(one.cost) else np.full(len(one.rms), np.inf) for one in found])
        best_of = np.append(np.argmin(errors, axis=0), int(np.argmin([one.cost for one in found])))  # last: of shared values
        mixed = np.array([values[best_of[u.joint]][k] for k, u in enumerate(problem.unknowns)])
        found.append(_Search(problem, windows, models[0], mixed))
    best = min(found, key=lambda one: one.cost)
    if not np.isfinite(best.cost):
        raise RunawayError(problem.robot.name)
    return best


class _Search(Shooting):
    """Unknowns of a problem, within their bounds."""

    def __init__(self, problem: ActuatorProblem, windows: Sequence[Window], model: ActuatorModel, x: Array) -> None:
        self._problem, self._windows, self._near = problem, windows, model
        low, high = _bounds(problem.unknowns)
        super().__init__(np.clip(x, low, high), np.array([np.concatenate(first) for _, first in windows]), low, high)

    def model(self, x: Array) -> ActuatorModel:
        """The model with the unknowns at these values."""
        return self._near.with_values(self._problem.unknowns, x)

    def weigh(self) -> None:
        """Weights of the joints from their errors; joints with values in common have one.

        By weights of their own the fit would follow the joint that it meets better, and leave the other.
        """
        super().weigh()
        for joints in {tuple(j for j, _ in u.shared) for u in self._problem.unknowns if u.tied}:
            self.scale[list(joints)] = 1.0 / np.sqrt(np.mean(self.scale[list(joints)] ** -2.0))
        self.cost = self._cost(self.residuals, self.x, self.states)

    def simulate(self, x: Array, states: Array) -> tuple[Sequence[Array], Array]:
        model, n = self.model(x), self._problem.robot.n_joints
        return [
            model.simulate(log, (state[:n], state[n:]), self._problem.tick_s, refuse=False).at_stamps - log.position
            for (log, _), state in zip(self._windows, states, strict=True)
        ], states

    def sensitivities(self, motions: Array) -> Iterator[Array]:
        """Motions are made again from their first states: all steps of all windows would take much memory."""
        model, n = self.model(self.x), self._problem.robot.n_joints
        for (log, _), state in zip(self._windows, motions, strict=True):
            unknowns = [
                replace(u, scale=float(getattr(log.control, u.symbol)[u.joint])) if u.symbol in ("kp", "kd") else u
                for u in self._problem.unknowns
            ]
            motion = model.simulate(log, (state[:n], state[n:]), self._problem.tick_s, refuse=False)
            drives = model.drives(log.control)
            yield position_sensitivities(model.robot, drives, log.command, motion, unknowns, rate=log.control.rate)

    def judge(self) -> tuple[Array, Array, float]:
        """Covariance at the answer, information, and the factor of autocorrelation on deviations."""
        found, white, meat = self.information([log.period_s for log, _ in self._windows])
        n_rows, p = sum(r.size for r in self.residuals), len(self.x)
        spent = max(1.0, n_rows / max(1.0, n_rows - p - self.states.size))
        held = np.diag(self.weight**2)
        whole, free = scaled_inverse(found + held), ~self.at_bound
        bread = np.zeros((p, p))
        bread[np.ix_(free, free)] = scaled_inverse((found + held)[np.ix_(free, free)])
        covariance, every = (spent * sandwich(one, white + held, meat + held) for one in (bread, whole))
        covariance[~free] = every[~free]  # a value at its bound has the deviation that it would have without one
        covariance[:, ~free] = every[:, ~free]
        ratio = np.sqrt(np.maximum(np.diag(every), 0.0) / np.maximum(np.diag(whole), 1e-300))
        return covariance, found, max(1.0, float(np.median(ratio)))


def _bounds(unknowns: Sequence[Unknown]) -> tuple[Array, Array]:
    low, high = np.full((2, len(unknowns)), np.inf) * [[-1.0], [1.0]]
    for k, unknown in enumerate(unknowns):
        if unknown.symbol in ("Ia", "fv", "fc", "kp", "kd", "delay", "m", *FURTHER_SYMBOLS):
            low[k] = 0.0
        if unknown.symbol == "delay":
            high[k] = LONGEST_DELAY_S
        if unknown.symbol == "width":
            low[k], high[k] = NARROWEST, WIDEST
        if unknown.symbol == "fading":
            low[k], high[k] = FADES
    return low, high


def _prior(unknowns: Sequence[Unknown], x: Array, given: tuple[Array, Array] | None) -> tuple[Array, Array]:
    """Centre and inverse deviation of every unknown: of speeds inside friction always, of others where given."""
    centre, weight = x.copy(), np.zeros(len(x))
    if given is not None:
        centre, weight = given[0].copy(), np.where(np.isfinite(given[1]), 1.0 / given[1], 0.0)
    for k, unknown in enumerate(unknowns):
        if unknown.symbol in ("width", "fading") and weight[k] == 0.0:
            centre[k], weight[k] = x[k], 1.0 / (WIDTH_SPREAD * max(x[k], 0.01))
    return centre, weight
