"""Log-Cholesky parameters of one body: ten real numbers, each set of which is a physically consistent body (Rucker and Wensing 2022)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array
from dynid.errors import InconsistentModelError
from dynid.inertia import phi_from_pseudo_inertia, pseudo_inertia, trailing

# theta = [alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3]: where s and t sit in U.
_UPPER_ROW = np.array([0, 1, 0, 0, 1, 2])
_UPPER_COLUMN = np.array([1, 2, 2, 3, 3, 3])


def _upper_factor(theta: Array) -> Array:
    U = np.zeros((*theta.shape[:-1], 4, 4))
    diagonal = np.arange(3)
    U[..., diagonal, diagonal] = np.exp(theta[..., 1:4])
    U[..., _UPPER_ROW, _UPPER_COLUMN] = theta[..., 4:]
    U[..., 3, 3] = 1.0
    return np.exp(theta[..., 0])[..., None, None] * U


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
    theta[..., 4:] = U[..., _UPPER_ROW, _UPPER_COLUMN] / scale[..., None]
    return theta


def phi_from_log_cholesky(theta: ArrayLike) -> Array:
    """Inverse of :func:`log_cholesky`; any ten real numbers give a fully consistent body."""
    U = _upper_factor(trailing("log-Cholesky parameters", theta, (10,)))
    return phi_from_pseudo_inertia(U @ np.swapaxes(U, -1, -2))


def log_cholesky_jacobian(theta: ArrayLike) -> Array:
    """``d phi / d theta`` from ``dP = dU U^T + U dU^T``; (..., 10, 10), a column per parameter."""
    values = trailing("log-Cholesky parameters", theta, (10,))
    U = _upper_factor(values)
    scale = np.exp(values[..., 0])[..., None]
    dU = np.zeros((*values.shape[:-1], 10, 4, 4))
    index = np.arange(3)
    dU[..., 0, :, :] = U
    dU[..., 1 + index, index, index] = np.diagonal(U, axis1=-2, axis2=-1)[..., :3]
    dU[..., 4 + np.arange(6), _UPPER_ROW, _UPPER_COLUMN] = scale
    # phi_from_pseudo_inertia takes the symmetric part, so twice dU U^T is dP.
    dP = 2.0 * dU @ np.swapaxes(U, -1, -2)[..., None, :, :]
    return np.swapaxes(phi_from_pseudo_inertia(dP), -1, -2)
