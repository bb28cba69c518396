"""Estimation in log-Cholesky coordinates, where any ten numbers are a consistent body (Rucker and Wensing 2022).

    P(theta) = U U^T,   U = exp(alpha) [[exp(d1), s12, s13, t1], [0, exp(d2), s23, t2], [0, 0, exp(d3), t3], [0, 0, 0, 1]]

Nothing is constrained, but the boundary of consistency, where the optimum without a prior usually lies, is infinitely
far: the iteration approaches it by a constant factor per step. With an entropic prior the optimum is inside and is
reached quadratically.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.estimation.methods.consistent_descent import ConsistentDescent
from dynid.log_cholesky import log_cholesky, log_cholesky_jacobian, phi_from_log_cholesky

# theta = [alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3]: where each sits in U
_ROW = np.array([0, 1, 2, 0, 1, 0, 0, 1, 2])
_COLUMN = np.array([0, 1, 2, 1, 2, 2, 3, 3, 3])
LARGEST_STEP = 5.0
"""Of a logarithm, in one step: a factor of 150."""


@dataclass(frozen=True, eq=False)
class Logarithms:
    """``theta`` of every link above the margin, and the effects."""

    theta: Array
    effects: Array


@dataclass(frozen=True, eq=False)
class LogCholeskyChart:
    """Coordinates ``theta`` of every link."""

    margin_body: Array
    effect_lower: Array

    def state(self, x: Array, n_links: int) -> Logarithms:
        theta = log_cholesky(x[: 10 * n_links].reshape(n_links, 10) - self.margin_body)
        return Logarithms(theta, np.maximum(x[10 * n_links :], self.effect_lower))

    def parameters(self, state: Logarithms) -> Array:
        return np.concatenate([(phi_from_log_cholesky(state.theta) + self.margin_body).ravel(), state.effects])

    def aligned(self, state: Logarithms, gradient: Array) -> Logarithms:
        """Nothing to turn: the coordinates have no singular point."""
        return state

    def jacobian(self, state: Logarithms) -> Array:
        return log_cholesky_jacobian(state.theta)

    def curvature(self, state: Logarithms, gradient: Array) -> Array:
        """``<G, d^2 (U U^T)> = 2 <G dU_i, dU_j> + 2 <G U, d^2 U_ij>``."""
        U, dU = upper_factor(state.theta)
        GU = gradient @ U
        H: Array = 2.0 * np.einsum("lab,liac,ljbc->lij", gradient, dU, dU)
        # d^2 U is dU_j with respect to (alpha, j), and dU_i again with respect to (d_i, d_i)
        first = 2.0 * np.einsum("lab,liab->li", GU, dU)
        H[:, 0, :] += first
        H[:, 1:, 0] += first[:, 1:]
        index = np.arange(1, 4)
        H[:, index, index] += first[:, 1:4]
        return H

    def lower(self, state: Logarithms) -> Array:
        bound = np.full(state.theta.shape, -np.inf)
        bound[:, :4] = -LARGEST_STEP
        return np.concatenate([bound.ravel(), self.effect_lower - state.effects])

    def moved(self, state: Logarithms, step: Array) -> Logarithms:
        size = state.theta.size
        change = step[:size].reshape(state.theta.shape).copy()
        change[:, :4] = np.clip(change[:, :4], -LARGEST_STEP, LARGEST_STEP)
        return Logarithms(state.theta + change, np.maximum(state.effects + step[size:], self.effect_lower))


def upper_factor(theta: Array) -> tuple[Array, Array]:
    """``U`` and ``dU / d theta``, ``(links, 4, 4)`` and ``(links, 10, 4, 4)``."""
    n = len(theta)
    scale = np.exp(theta[:, 0])
    dU = np.zeros((n, 10, 4, 4))
    entry = np.ones((n, 9))
    entry[:, :3] = np.exp(theta[:, 1:4])
    dU[:, np.arange(1, 10), _ROW, _COLUMN] = scale[:, None] * entry
    value = entry.copy()
    value[:, 3:] = theta[:, 4:]
    U = np.zeros((n, 4, 4))
    U[:, _ROW, _COLUMN] = scale[:, None] * value
    U[:, 3, 3] = scale
    dU[:, 0] = U
    return U, dU


@dataclass(frozen=True)
class LogCholesky(ConsistentDescent):
    """The consistent parameters that fit best, by Newton steps on log-Cholesky parameters.

    Without an entropic prior the answer lies a little above the optimum.

    Args:
        margin: smallest eigenvalue of every link, relative to its size in the prior.
        effects_positive: keep friction and rotor inertia that cannot be negative at zero or above.
        weighted: weight joints by their own noise.
        prior: regularisation towards the prior parameters: ``none``, ``euclidean``, ``scaled`` or ``entropic``.
        strength: weight of the prior in units of the noise; 1 takes it to be as uncertain as each parameter's size.
        pull: weight of a small pull to the prior along directions that the data do not determine.
        iterations: limit of the iterations.
        seconds: time limit, s.
        settle: relative decrease of the cost at which the iteration stops.
        watch: called with the parameters after every iteration; returning True stops.
        covariance: ``corrected`` for the autocorrelation of each joint's residual, ``classical`` (independent rows) or
            ``bootstrap`` of time blocks.
        tolerance: singular values below this fraction of the largest count as not determined by the data.

    Examples:
        >>> import dynid
        >>> robot, samples = dynid.demo_robot(), dynid.demo_samples()
        >>> data, base = dynid.build_regression(robot, samples), dynid.reduce_to_base(robot)
        >>> result = dynid.estimate(data, base, dynid.LogCholesky(prior="entropic"))
        >>> result.feasible
        True
    """

    name: ClassVar[str] = "logcholesky"
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "row_order"})

    def chart(self, margin_body: Array, effect_lower: Array) -> LogCholeskyChart:
        return LogCholeskyChart(margin_body, effect_lower)
