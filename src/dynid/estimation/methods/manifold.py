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
from typing import ClassVar, TypeAlias

import numpy as np

from dynid.arrays import Array
from dynid.estimation.methods.descent import ConsistentDescent
from dynid.model.inertia import phi_from_principal, principal_form, principal_jacobian

EQUAL_MOMENTS = 1e-9
"""Principal second moments closer than this, scaled, share their axes."""
LEAST_MASS = 1e-9
"""Scaled; the centre of mass of nothing is nowhere."""


PrincipalForm: TypeAlias = tuple[Array, Array, Array, Array]
"""Scaled masses, centres, axes and second moments of all links above the margin."""


@dataclass(frozen=True)
class Manifold(ConsistentDescent):
    """The consistent parameters that fit best, by Newton steps on the manifold of bodies; every iterate is consistent.

    Args:
        margin: smallest eigenvalue of every link, relative to its size in the prior.
        effects_positive: keep friction and rotor inertia that cannot be negative at zero or above.
        weighted: weight joints by their own noise.
        prior: regularisation towards the prior parameters: ``none``, ``euclidean``, ``scaled`` or ``entropic``.
        strength: weight of the prior in units of the noise; 1 takes it to be as uncertain as each parameter's size.
        regularization: weight of a small pull to the prior along directions that the data do not determine.
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

    def state(self, bodies: Array) -> PrincipalForm:
        m, c, Q, L = principal_form(bodies)
        return np.maximum(m, LEAST_MASS), c, Q, np.maximum(L, 0.0)

    def bodies(self, state: PrincipalForm) -> Array:
        return phi_from_principal(*state)

    def aligned(self, state: PrincipalForm, gradient: Array) -> PrincipalForm:
        """Turn axes of equal moments so that the gradient is diagonal on them."""
        mass, com, axes, moments = state
        axes, moments = axes.copy(), moments.copy()
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
        return mass, com, axes, moments

    def jacobian(self, state: PrincipalForm) -> Array:
        return principal_jacobian(*state)

    def curvature(self, state: PrincipalForm, gradient: Array) -> Array:
        """What cutting off costs, to second order, by the multipliers ``A_vv = q_v^T G q_v`` of the moments.

        A turn ``w`` of axis ``v`` towards ``u`` leaves ``L_v - w^2 L_u``, a shift ``dc`` of the centre
        ``-m (q_v . dc)^2``: both are cut off where ``L_v`` is at its bound. Elsewhere ``A_vv`` vanishes at the optimum,
        and so does the term.
        """
        mass, _, axes, moments = state
        A = np.maximum(np.einsum("lai,lab,lbi->li", axes, gradient[:, :3, :3], axes), 0.0)
        H = np.zeros((len(mass), 10, 10))
        H[:, 1:4, 1:4] = 2.0 * mass[:, None, None] * (axes * A[:, None, :]) @ np.swapaxes(axes, -1, -2)
        for k, (u, v) in enumerate(((1, 2), (2, 0), (0, 1))):
            H[:, 4 + k, 4 + k] = 2.0 * (moments[:, u] * A[:, v] + moments[:, v] * A[:, u])
        return H

    def lower(self, state: PrincipalForm) -> Array:
        mass, _, _, moments = state
        bound = np.full((len(mass), 10), -np.inf)
        bound[:, 0] = LEAST_MASS - mass
        bound[:, 7:] = -moments
        return bound

    def moved(self, state: PrincipalForm, step: Array) -> PrincipalForm:
        return self.state(self.bodies(state) + np.einsum("lij,lj->li", self.jacobian(state), step))
