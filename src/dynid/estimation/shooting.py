"""Multiple shooting: Gauss-Newton on unknowns and on the first states of windows that are simulated.

    minimise  sum_w sum_k |(q_sim(t_k; x, s_w) - q_k) scale|^2 + |(s_w - s_w0) / spread|^2 + |weight (x - centre)|^2    over x and s_w

A simulated motion has no noise, but it drifts, so it is simulated in windows, each with a first state of its own. First states are
eliminated window by window, so that a step solves for ``x`` alone; deviations are those of scores that depend on their neighbours in time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
import scipy.optimize

from dynid.arrays import Array, BoolArray
from dynid.regression.channels import triangle_of

SHARES = (1.0, 0.5, 0.25, 0.1, 0.03)
"""Parts of a step that are tried until the sum of squares falls."""
DAMPINGS = (0.0, 0.1, 1.0)
"""How strongly a step is held back (Levenberg-Marquardt), in sizes of the columns, where no part of the plain one lowers the sum."""
RUNAWAY = 1e3
"""Error of position that no model near the answer has, rad or m."""
FIRST_POSITION, FIRST_VELOCITY = 0.02, 0.5
"""How far a first state may be from the one that the log has, rad and rad/s: much further than it is."""
NEIGHBOURS_S = 0.25
"""Time over which residuals may depend on one another, s."""
SETTLED = 1e-4
"""Relative change of the sum of squares at which the steps end."""
STUCK = 1e-2
"""Share of the sum of squares that a step may still promise where none lowers it, for the answer to count as settled."""

WindowRows: TypeAlias = tuple[Array, Array, Array]
"""Weighted rows of one window: derivatives by unknowns, by the first state with its prior below, and the residual."""


class Shooting(ABC):
    """A point of the search: unknowns, first states, and the positions that both miss.

    Args:
        x: unknowns to start from.
        states: first states of the windows as the log has them, ``(windows, 2 joints)``, positions first.
        low: least values of the unknowns.
        high: largest values.
    """

    def __init__(self, x: Array, states: Array, low: Array, high: Array) -> None:
        self.x, self.states, self.low, self.high = x, states, low, high
        self.centre, self.weight = x, np.zeros(len(x))
        self._measured, self._n = states, states.shape[1] // 2
        self._spread = np.repeat([FIRST_POSITION, FIRST_VELOCITY], self._n)
        self.scale = np.ones(self._n)
        self.move_to(x, states)

    @abstractmethod
    def simulate(self, x: Array, states: Array) -> tuple[Sequence[Array], Any]:
        """Position errors of every window, ``(rows, joints)``, and whatever :meth:`sensitivities` needs of the motions."""

    @abstractmethod
    def sensitivities(self, motions: Any) -> Iterable[Array]:
        """How the positions of every window change, ``(rows, joints, derivatives + 2 joints)``; last with its first state."""

    @property
    def rms(self) -> Array:
        """Position error of every joint over the windows; infinite where a motion runs away."""
        error = np.sqrt(np.mean(np.concatenate(list(self.residuals)) ** 2, axis=0))
        return np.asarray(np.nan_to_num(error, nan=np.inf))

    @property
    def at_bound(self) -> BoolArray:
        """Unknowns at a bound."""
        return np.asarray((self.x <= self.low) | (self.x >= self.high))

    def move_to(self, x: Array, states: Array) -> None:
        """Take other unknowns and first states."""
        self.x, self.states = x, states
        self.residuals, self._motions = self.simulate(x, states)
        self.cost = self._cost(self.residuals, x, states)

    def draw_to(self, centre: Array, weight: Array) -> None:
        """Draw the unknowns to values, each by the inverse of its deviation."""
        self.centre, self.weight = centre, weight
        self.cost = self._cost(self.residuals, self.x, self.states)

    def weigh(self) -> None:
        """Weights of the joints from their errors as they are."""
        self.scale = 1.0 / np.maximum(self.rms, 1e-3 * self.rms.max() + 1e-9)
        self.cost = self._cost(self.residuals, self.x, self.states)

    def _cost(self, residuals: Sequence[Array], x: Array, states: Array) -> float:
        if not all(np.isfinite(r).all() and np.abs(r).max() < RUNAWAY for r in residuals):
            return np.inf
        drawn = np.concatenate([self.weight * (x - self.centre), ((states - self._measured) / self._spread).ravel()])
        return sum(float(np.sum((r * self.scale) ** 2)) for r in residuals) + float(drawn @ drawn)

    def rows(self, transform: Array | None = None) -> Iterator[WindowRows]:
        """Rows of every window; ``transform`` takes the unknowns that are asked for to those that motions are differentiated by."""
        away = (self.states - self._measured) / self._spread
        for S, residual, moved in zip(self.sensitivities(self._motions), self.residuals, away, strict=True):
            weighted = (S * self.scale[:, None]).reshape(-1, S.shape[2])
            J = weighted[:, : -2 * self._n]
            J = J if transform is None else J @ transform
            X = np.vstack([weighted[:, -2 * self._n :], np.diag(1.0 / self._spread)])
            yield (
                np.vstack([J, np.zeros((2 * self._n, J.shape[1]))]),
                X,
                np.concatenate([(residual * self.scale).ravel(), moved]),
            )

    def step(
        self, most: Array | float = np.inf, dampings: Sequence[float] = (0.0,), transform: Array | None = None
    ) -> tuple[bool, float]:
        """Take the largest part of a Gauss-Newton step that lowers the cost.

        Args:
            most: largest change of each unknown.
            dampings: how strongly a step is held back (Levenberg-Marquardt), in sizes of the columns, one tried after the other.
            transform: as for :meth:`rows`.

        Returns:
            whether such a part was found, and what the step promised of the cost.
        """
        p, m = len(self.x), 2 * self._n
        R, backs = np.zeros((0, p + 1)), []
        for J, X, r in self.rows(transform):
            T = triangle_of(np.column_stack([X, J, r]))
            backs.append((T[:m, :m], T[:m, m:-1], T[:m, -1]))
            R = triangle_of(np.vstack([R, T[m:, m:]]))
        A = np.vstack([R[:p, :p], np.diag(self.weight)])
        b = np.concatenate([R[:p, p], self.weight * (self.x - self.centre)])
        low, high, sizes = (
            np.maximum(self.low - self.x, -most),
            np.minimum(self.high - self.x, most),
            np.linalg.norm(A, axis=0),
        )
        for damping in dampings:
            held = np.vstack([A, damping * np.diag(sizes)]), np.concatenate([b, np.zeros(p)])
            move = bounded_solution(*held, low, high)
            # the best change of every first state for this change of the unknowns
            back = np.array([-scipy.linalg.solve_triangular(T, J @ move + r) for T, J, r in backs])
            for share in SHARES:
                x, states = self.x + share * move, self.states + share * back
                residuals, motions = self.simulate(x, states)
                cost = self._cost(residuals, x, states)
                if cost < self.cost:
                    self.x, self.states, self.residuals, self._motions, self.cost = x, states, residuals, motions, cost
                    return True, 0.0
        return False, float(b @ b) - float(np.sum((A @ move + b) ** 2))

    def information(self, periods_s: Iterable[float], transform: Array | None = None) -> tuple[Array, Array, Array]:
        """``J^T J`` over the unknowns, first states eliminated, and the second moments of the scores as :func:`add_scores` has them.

        Args:
            periods_s: time between rows of every window.
            transform: as for :meth:`rows`.
        """
        p = len(self.x) if transform is None else transform.shape[1]
        found, white, meat = np.zeros((3, p, p))
        for (J, X, r), residual, period_s in zip(self.rows(transform), self.residuals, periods_s, strict=True):
            J = J - X @ np.linalg.lstsq(X, J, rcond=None)[0]
            found += J.T @ J
            n_rows, lags = residual.size, max(1, round(NEIGHBOURS_S / period_s))
            add_scores(J[:n_rows].reshape(*residual.shape, p), r[:n_rows].reshape(residual.shape), lags, white, meat)
        return found, white, meat


def bounded_solution(A: Array, b: Array, low: Array, high: Array) -> Array:
    """``argmin |A x + b|`` within bounds, columns scaled to length one."""
    size = np.linalg.norm(A, axis=0)
    size[size == 0.0] = 1.0
    # a direction that nothing determines is left where it is by this much
    A, b = np.vstack([A / size, 1e-6 * np.eye(len(size))]), np.concatenate([b, np.zeros(len(size))])
    found = scipy.optimize.lsq_linear(A, -b, (np.minimum(low, 0.0) * size - 1e-12, np.maximum(high, 0.0) * size + 1e-12))
    return np.asarray(np.clip(found.x / size, np.minimum(low, 0.0), np.maximum(high, 0.0)))


def add_scores(J: Array, r: Array, lags: int, white: Array, meat: Array) -> None:
    """Add the second moments of the scores, for independent rows and for rows that depend on their neighbours (Bartlett).

    Joints are taken as independent of one another.
    """
    for j in range(r.shape[1]):
        score = J[:, j] * r[:, j, None]
        white += J[:, j].T @ J[:, j] * float(np.mean(r[:, j] ** 2))
        meat += score.T @ score
        for lag in range(1, min(lags, len(r) - 1) + 1):
            cross = score[lag:].T @ score[:-lag]
            meat += (1.0 - lag / (lags + 1.0)) * (cross + cross.T)


def scaled_inverse(precision: Array) -> Array:
    """Inverse of a normal matrix along what it shows, columns brought to length one."""
    size = np.sqrt(np.maximum(np.diag(precision), 1e-300))
    return np.asarray(np.linalg.pinv(precision / np.outer(size, size), rcond=1e-12, hermitian=True) / np.outer(size, size))


def sandwich(bread: Array, white: Array, meat: Array) -> Array:
    """Covariance ``bread meat bread`` of scores, never below that of white noise."""
    plain, robust = (bread @ middle @ bread for middle in (white, meat))
    ratio = np.sqrt(np.maximum(np.diag(robust), np.diag(plain)) / np.maximum(np.diag(plain), 1e-300))
    return np.asarray(plain * np.outer(ratio, ratio))
