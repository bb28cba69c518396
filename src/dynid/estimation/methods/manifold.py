"""Estimation on the manifold of consistent bodies, ``R+ x R3 x SO(3) x R3+`` (Traversaro and others 2016).

    theta = (m, c, Q, L):    P(theta) = m [c; 1][c; 1]^T + [[Q diag(L) Q^T, 0], [0, 0]],    m >= 0, L >= 0

Each step is made in the tangent space, ``(dm, dc, w, dL)`` with ``Q <- Q exp(S(w))`` to first order, and retracted:
the parameters move along the tangent, and second moments that came out negative are cut off. So every iterate is a body
that can exist, and stopping at any time leaves a valid answer; inside the set, where the objective is quadratic in the
parameters, nothing is bent. (Following the coordinates themselves instead makes valleys of the objective curved, and
steps short.) Bounds on ``m`` and ``L`` are active where the optimum lies on the boundary. Principal axes with equal
moments may be chosen freely; they are turned so that the gradient is diagonal, without which a moment at its bound could
not tell in which direction to grow.

Estimation in log-Cholesky coordinates, where any ten numbers are a consistent body (Rucker and Wensing 2022).

    P(theta) = U U^T,   U = exp(alpha) [[exp(d1), s12, s13, t1], [0, exp(d2), s23, t2], [0, 0, exp(d3), t3], [0, 0, 0, 1]]

Nothing is constrained, but the boundary of consistency, where the optimum without a prior usually lies, is infinitely
far: the iteration approaches it by a constant factor per step. With an entropic prior the optimum is inside and is
reached quadratically.
"""

from __future__ import annotations

from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import InconsistentModelError
from dynid.estimation.methods.descent import ConsistentDescent
from dynid.model.inertia import (
    phi_from_principal,
    phi_from_pseudo_inertia,
    principal_form,
    principal_jacobian,
    pseudo_inertia,
    trailing,
)

EQUAL_MOMENTS = 1e-9
"""Principal second moments closer than this, scaled, share their axes."""
LEAST_MASS = 1e-9
"""Scaled; the centre of mass of nothing is nowhere."""


PrincipalForm: TypeAlias = tuple[Array, Array, Array, Array]
"""Scaled masses, centres, axes and second moments of all links above the margin."""


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


# theta = [alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3]: where each sits in U
_ROW = np.array([0, 1, 2, 0, 1, 0, 0, 1, 2])
_COLUMN = np.array([0, 1, 2, 1, 2, 2, 3, 3, 3])
LARGEST_STEP = 5.0
"""Of a logarithm, in one step: a factor of 150."""


def log_cholesky(phi: ArrayLike) -> Array:
    """``P = U U^T``: ``theta = [alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3]`` of Rucker and Wensing 2022.

        U = exp(alpha) [[exp(d1), s12, s13, t1],
                        [0, exp(d2), s23, t2],
                        [0, 0, exp(d3), t3],
                        [0, 0, 0, 1]]

    It exists only strictly inside the full condition; a body on the boundary or outside is refused.
    """
    P = pseudo_inertia(phi)
    try:
        # Reversing rows and columns turns the upper factor into the lower one that LAPACK computes.
        U = np.linalg.cholesky(P[..., ::-1, ::-1])[..., ::-1, ::-1]
    except np.linalg.LinAlgError as error:
        eigenvalues = np.linalg.eigvalsh(P)[..., 0]
        raise InconsistentModelError(
            "log-Cholesky parameters need a positive definite pseudo-inertia; its smallest eigenvalue is "
            f"{eigenvalues.min():.3g}, at body {int(eigenvalues.argmin())} of {eigenvalues.size}"
        ) from error
    scale = U[..., 3, 3]
    theta = np.empty((*P.shape[:-2], 10))
    theta[..., 0] = np.log(scale)
    theta[..., 1:4] = np.log(np.diagonal(U, axis1=-2, axis2=-1)[..., :3] / scale[..., None])
    theta[..., 4:] = U[..., _ROW[3:], _COLUMN[3:]] / scale[..., None]
    return theta


def phi_from_log_cholesky(theta: ArrayLike) -> Array:
    """Inverse of :func:`log_cholesky`; any ten real numbers give a fully consistent body."""
    U = upper_factor(trailing("log-Cholesky parameters", theta, (10,)))
    return phi_from_pseudo_inertia(U @ np.swapaxes(U, -1, -2))


def log_cholesky_jacobian(theta: ArrayLike) -> Array:
    """``d phi / d theta`` from ``dP = dU U^T + U dU^T``; (..., 10, 10), a column per parameter."""
    values = trailing("log-Cholesky parameters", theta, (10,))
    U = upper_factor(values)
    # phi_from_pseudo_inertia takes the symmetric part, so twice dU U^T is dP.
    dP = 2.0 * _factor_slopes(values, U) @ np.swapaxes(U, -1, -2)[..., None, :, :]
    return np.swapaxes(phi_from_pseudo_inertia(dP), -1, -2)


def upper_factor(theta: Array) -> Array:
    """``U`` of ``P = U U^T``, ``(..., 4, 4)``."""
    U = np.zeros((*theta.shape[:-1], 4, 4))
    U[..., _ROW, _COLUMN] = theta[..., 1:]
    U[..., _ROW[:3], _COLUMN[:3]] = np.exp(theta[..., 1:4])
    U[..., 3, 3] = 1.0
    return np.exp(theta[..., 0])[..., None, None] * U


def _factor_slopes(theta: Array, U: Array) -> Array:
    """``dU / d theta``, ``(..., 10, 4, 4)``."""
    dU = np.zeros((*theta.shape[:-1], 10, 4, 4))
    dU[..., 0, :, :] = U
    dU[..., np.arange(1, 4), _ROW[:3], _COLUMN[:3]] = U[..., _ROW[:3], _COLUMN[:3]]
    dU[..., np.arange(4, 10), _ROW[3:], _COLUMN[3:]] = np.exp(theta[..., 0])[..., None]
    return dU


class LogCholesky(ConsistentDescent):
    """The consistent parameters that fit best, by Newton steps on log-Cholesky parameters.

    Without an entropic prior the answer lies a little above the optimum.

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
        >>> result = dynid.estimate(data, base, dynid.LogCholesky(prior="entropic"))
        >>> result.feasible
        True
    """

    name: ClassVar[str] = "logcholesky"
    laws: ClassVar[frozenset[str]] = frozenset({"exact", "row_order"})

    def state(self, bodies: Array) -> Array:
        return log_cholesky(bodies)

    def bodies(self, state: Array) -> Array:
        return phi_from_log_cholesky(state)

    def jacobian(self, state: Array) -> Array:
        return log_cholesky_jacobian(state)

    def curvature(self, state: Array, gradient: Array) -> Array:
        """``<G, d^2 (U U^T)> = 2 <G dU_i, dU_j> + 2 <G U, d^2 U_ij>``."""
        U = upper_factor(state)
        dU = _factor_slopes(state, U)
        GU = gradient @ U
        H: Array = 2.0 * np.einsum("lab,liac,ljbc->lij", gradient, dU, dU)
        # d^2 U is dU_j with respect to (alpha, j), and dU_i again with respect to (d_i, d_i)
        first = 2.0 * np.einsum("lab,liab->li", GU, dU)
        H[:, 0, :] += first
        H[:, 1:, 0] += first[:, 1:]
        index = np.arange(1, 4)
        H[:, index, index] += first[:, 1:4]
        return H

    def lower(self, state: Array) -> Array:
        bound = np.full(state.shape, -np.inf)
        bound[:, :4] = -LARGEST_STEP
        return bound

    def moved(self, state: Array, step: Array) -> Array:
        change = step.copy()
        change[:, :4] = np.clip(change[:, :4], -LARGEST_STEP, LARGEST_STEP)
        return np.asarray(state + change)
