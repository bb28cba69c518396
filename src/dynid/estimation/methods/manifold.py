"""Estimation on the manifold of consistent bodies, ``R+ x R3 x SO(3) x R3+`` (Traversaro and others 2016).

    theta = (m, c, Q, L):    P(theta) = m [c; 1][c; 1]^T + [[Q diag(L) Q^T, 0], [0, 0]],    m >= 0, L >= 0

Each step is made in the tangent space, ``(dm, dc, w, dL)`` with ``Q <- Q exp(S(w))`` to first order, and retracted:
the parameters move along the tangent, and second moments that came out negative are cut off. So every iterate is a body
that can exist, and stopping at any time leaves a valid answer; inside the set, where the objective is quadratic in the
parameters, nothing is bent. (Following the coordinates themselves instead makes valleys of the objective curved, and
steps short.) Bounds on ``m`` and ``L`` are active where the optimum lies on the boundary. Principal axes with equal
moments may be chosen freely; they are turned so that the gradient is diagonal, without which a moment at its bound could
not tell in which direction to grow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dynid.arrays import Array
from dynid.estimation.methods.consistent_descent import ConsistentDescent
from dynid.inertia import phi_from_principal, principal_form, principal_jacobian

EQUAL_MOMENTS = 1e-9
"""Principal second moments closer than this, scaled, share their axes."""
LEAST_MASS = 1e-9
"""Scaled; the centre of mass of nothing is nowhere."""


@dataclass(frozen=True, eq=False)
class Bodies:
    """Scaled ``(m, c, Q, L)`` of every link above the margin, and the effects."""

    mass: Array
    com: Array
    axes: Array
    moments: Array
    effects: Array


@dataclass(frozen=True, eq=False)
class PrincipalChart:
    """Local coordinates ``(dm, dc, w, dL)`` of every link."""

    margin_body: Array
    """The ten parameters whose pseudo-inertia is the margin; what lies above it is on the manifold."""
    effect_lower: Array

    def state(self, x: Array, n_links: int) -> Bodies:
        bodies = x[: 10 * n_links].reshape(n_links, 10) - self.margin_body
        m, c, Q, L = principal_form(bodies)
        return Bodies(np.maximum(m, LEAST_MASS), c, Q, np.maximum(L, 0.0), np.maximum(x[10 * n_links :], self.effect_lower))

    def parameters(self, state: Bodies) -> Array:
        bodies = phi_from_principal(state.mass, state.com, state.axes, state.moments) + self.margin_body
        return np.concatenate([bodies.ravel(), state.effects])

    def aligned(self, state: Bodies, gradient: Array) -> Bodies:
        """Turn axes of equal moments so that the gradient is diagonal on them."""
        axes, moments = state.axes.copy(), state.moments.copy()
        for k in range(len(axes)):
            order = np.argsort(moments[k])
            L, Q = moments[k][order], axes[k][:, order]
            if np.linalg.det(Q) < 0.0:
                Q[:, 0] *= -1.0
            first = 0
            for last in range(1, 4):
                if last < 3 and L[last] - L[first] <= EQUAL_MOMENTS:
                    continue
                if last - first > 1:
                    block = Q[:, first:last]
                    _, turn = np.linalg.eigh(block.T @ gradient[k, :3, :3] @ block)
                    turn[:, 0] *= np.sign(np.linalg.det(turn))
                    Q[:, first:last] = block @ turn
                first = last
            axes[k], moments[k] = Q, L
        return Bodies(state.mass, state.com, axes, moments, state.effects)

    def jacobian(self, state: Bodies) -> Array:
        return principal_jacobian(state.mass, state.com, state.axes, state.moments)

    def curvature(self, state: Bodies, gradient: Array) -> Array:
        """What cutting off costs, to second order, by the multipliers ``A_vv = q_v^T G q_v`` of the moments.

        A turn ``w`` of axis ``v`` towards ``u`` leaves ``L_v - w^2 L_u``, a shift ``dc`` of the centre
        ``-m (q_v . dc)^2``: both are cut off where ``L_v`` is at its bound. Elsewhere ``A_vv`` vanishes at the optimum,
        and so does the term.
        """
        n = len(state.mass)
        A = np.einsum("lai,lab,lbi->li", state.axes, gradient[:, :3, :3], state.axes)
        A = np.maximum(A, 0.0)
        H = np.zeros((n, 10, 10))
        H[:, 1:4, 1:4] = 2.0 * state.mass[:, None, None] * (state.axes * A[:, None, :]) @ np.swapaxes(state.axes, -1, -2)
        for k, (u, v) in enumerate(((1, 2), (2, 0), (0, 1))):
            H[:, 4 + k, 4 + k] = 2.0 * (state.moments[:, u] * A[:, v] + state.moments[:, v] * A[:, u])
        return H

    def lower(self, state: Bodies) -> Array:
        n = len(state.mass)
        bound = np.full((n, 10), -np.inf)
        bound[:, 0] = LEAST_MASS - state.mass
        bound[:, 7:] = -state.moments
        return np.concatenate([bound.ravel(), self.effect_lower - state.effects])

    def moved(self, state: Bodies, step: Array) -> Bodies:
        n = len(state.mass)
        z = step[: 10 * n].reshape(n, 10)
        bodies = phi_from_principal(state.mass, state.com, state.axes, state.moments)
        m, c, Q, L = principal_form(bodies + np.einsum("lij,lj->li", self.jacobian(state), z))
        return Bodies(
            np.maximum(m, LEAST_MASS),
            c,
            Q,
            np.maximum(L, 0.0),
            np.maximum(state.effects + step[10 * n :], self.effect_lower),
        )


@dataclass(frozen=True)
class Manifold(ConsistentDescent):
    """The consistent parameters that fit best, by Newton steps on the manifold of bodies; every iterate is consistent.

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
        >>> result = dynid.estimate(data, base, dynid.Manifold())
        >>> result.feasible
        True
    """

    name: ClassVar[str] = "manifold"
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "row_order"})

    def chart(self, margin_body: Array, effect_lower: Array) -> PrincipalChart:
        return PrincipalChart(margin_body, effect_lower)
