"""Shapes: bodies that realise given parameters, and bounds that a body inside a given shape obeys.

A density inside a region where a quadratic ``q(x) = [x; 1]^T A [x; 1]`` is not negative has

    int q rho dx = tr(A P) = a . phi >= 0,

one linear inequality on the ten parameters. Ellipsoids and boxes are given here as such rows ``a``, so that
semidefinite programs and penalties use the same ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, BoolArray, freeze
from dynid.errors import InconsistentModelError, InputError
from dynid.inertia import (
    PSEUDO_BASIS,
    ROUNDOFF,
    consistency,
    is_consistent,
    phi_from_principal,
    phi_from_pseudo_inertia,
    principal_form,
    proper_rotation,
    trailing,
)


@dataclass(frozen=True)
class Cuboid:
    """A uniform cuboid: mass, half lengths along the columns of ``rotation``, centre; any leading axes."""

    mass: Array
    half_lengths: Array
    center: Array
    rotation: Array


def _lengths(name: str, values: ArrayLike, zero_allowed: bool) -> Array:
    lengths = trailing(name, values, (3,))
    smallest = lengths.min(initial=np.inf)
    if smallest < 0.0 or (smallest == 0.0 and not zero_allowed):
        expected = "not negative" if zero_allowed else "positive"
        raise InputError(f"{name} has the value {smallest:.6g}, expected lengths that are {expected}")
    return lengths


def cuboid_of(phi: ArrayLike) -> Cuboid:
    """Traversaro (27): ``d = sqrt(3 L / m)``, the uniform cuboid of mass ``m`` that has these ten parameters.

    It proves full consistency; a body that is not fully consistent is refused. (The paper's unit density is
    that of unknown mass: here the density is ``m`` over the volume, so that the mass is right as well.)
    """
    verdict = np.asarray(is_consistent(phi, "full"))
    if not verdict.all():
        report = consistency(phi)
        count = int(verdict.size - np.count_nonzero(verdict))
        raise InconsistentModelError(
            f"{count} of {verdict.size} bodies cannot be realised by a cuboid: smallest mass "
            f"{report.mass.min():.3g}, smallest triangle slack {report.triangle_slack.min():.3g}"
        )
    m, c, Q, L = principal_form(phi)
    # Consistent bodies on the boundary may carry L = -roundoff.
    d = np.sqrt(3.0 * np.maximum(L, 0.0) / m[..., None])
    return Cuboid(mass=freeze(m), half_lengths=freeze(d), center=freeze(c), rotation=freeze(Q))


def phi_of_cuboid(mass: ArrayLike, half_lengths: ArrayLike, center: ArrayLike, rotation: ArrayLike) -> Array:
    """``L = m d^2 / 3``: a uniform cuboid with half lengths ``d`` along the columns of ``rotation``."""
    m = np.asarray(mass, dtype=np.float64)
    d = _lengths("half lengths", half_lengths, zero_allowed=True)
    return phi_from_principal(m, center, rotation, m[..., None] * d**2 / 3.0)


def phi_of_ellipsoid(mass: ArrayLike, semi_axes: ArrayLike, center: ArrayLike, rotation: ArrayLike) -> Array:
    """``L = m a^2 / 5``: a uniform solid ellipsoid with semi-axes ``a`` along the columns of ``rotation``."""
    m = np.asarray(mass, dtype=np.float64)
    a = _lengths("semi-axes", semi_axes, zero_allowed=True)
    return phi_from_principal(m, center, rotation, m[..., None] * a**2 / 5.0)


def phi_of_points(masses: ArrayLike, positions: ArrayLike) -> Array:
    """``P = sum_i m_i [x_i; 1] [x_i; 1]^T``: masses (..., points) at positions (..., points, 3)."""
    m = np.asarray(masses, dtype=np.float64)
    x = trailing("positions", positions, (3,))
    if m.shape[-1:] != x.shape[-2:-1]:
        raise InputError(f"masses have shape {m.shape}, positions {x.shape}: expected (..., points) and (..., points, 3)")
    y = np.concatenate([x, np.ones((*x.shape[:-1], 1))], axis=-1)
    return phi_from_pseudo_inertia(np.swapaxes(y * m[..., None], -1, -2) @ y)


def _functional(A: Array) -> Array:
    """``a_k = tr(A B_k)`` for the basis ``B`` of the pseudo-inertia."""
    rows: Array = np.einsum("...ij,kij->...k", A, PSEUDO_BASIS)
    return rows


def ellipsoid_functional(center: ArrayLike, rotation: ArrayLike, semi_axes: ArrayLike) -> Array:
    """Wensing, Kim and Slotine 2018: ``a . phi = tr(P Q) >= 0`` for densities inside an ellipsoid; (..., 10).

    ``Q = [[-E, E c], [c^T E, 1 - c^T E c]]`` with ``E = R diag(1/a^2) R^T``. With full consistency it is also
    sufficient.
    """
    c = trailing("center", center, (3,))
    R = proper_rotation("rotation", rotation)
    a = _lengths("semi-axes", semi_axes, zero_allowed=False)
    E = (R / a[..., None, :] ** 2) @ np.swapaxes(R, -1, -2)
    Ec = (E @ c[..., None])[..., 0]
    Q = np.empty((*Ec.shape[:-1], 4, 4))
    Q[..., :3, :3] = -E
    Q[..., :3, 3] = Ec
    Q[..., 3, :3] = Ec
    Q[..., 3, 3] = 1.0 - (c * Ec).sum(axis=-1)
    return _functional(Q)


def box_functionals(lo: ArrayLike, hi: ArrayLike, products: bool = True) -> Array:
    """Rows ``a . phi >= 0`` that every density inside the box ``lo <= x <= hi`` obeys.

    With the faces ``u_i = x_i - lo_i >= 0`` and ``v_i = hi_i - x_i >= 0``: three rows ``int u_i rho``, three
    ``int v_i rho`` (centre of mass in the box), three ``int u_i v_i rho`` (second moments), and with
    ``products`` the twelve of two different axes, ``u_i u_j, u_i v_j, v_i u_j, v_i v_j`` for ``ij = xy, xz,
    yz``: (..., 21, 10), without them (..., 9, 10).
    """
    low, high = np.broadcast_arrays(trailing("lo", lo, (3,)), trailing("hi", hi, (3,)))
    if not (low <= high).all():
        raise InputError(f"box has lo {low.tolist()} and hi {high.tolist()}, expected lo <= hi on every axis")
    ones = np.broadcast_to(np.eye(3, 4), (*low.shape[:-1], 3, 4)).copy()
    u, v = ones.copy(), -ones
    u[..., 3] -= low
    v[..., 3] += high
    one = np.broadcast_to(np.array([0.0, 0.0, 0.0, 1.0]), u.shape)
    first, second = [u, v, u], [one, one, v]
    if products:
        i, j = np.array([0, 0, 1]), np.array([1, 2, 2])
        first += [u[..., i, :], u[..., i, :], v[..., i, :], v[..., i, :]]
        second += [u[..., j, :], v[..., j, :], u[..., j, :], v[..., j, :]]
    left, right = np.concatenate(first, axis=-2), np.concatenate(second, axis=-2)
    # The basis is symmetric, so the outer product need not be.
    return _functional(left[..., :, None] * right[..., None, :])


def _not_negative(rows: Array, phi: Array, boundary: float) -> BoolArray:
    """``a . phi >= 0`` up to what rounds off in the sum."""
    terms = rows * phi
    verdict: BoolArray = terms.sum(axis=-1) >= -boundary * np.abs(terms).sum(axis=-1)
    return verdict


def _verdict(values: BoolArray) -> bool | BoolArray:
    return bool(values) if values.ndim == 0 else values


def realisable_in_ellipsoid(
    phi: ArrayLike, center: ArrayLike, rotation: ArrayLike, semi_axes: ArrayLike, boundary: float = ROUNDOFF
) -> bool | BoolArray:
    """Whether some density inside the ellipsoid generates ``phi``; necessary and sufficient."""
    row = ellipsoid_functional(center, rotation, semi_axes)
    inside = _not_negative(row, np.asarray(phi, dtype=np.float64), boundary)
    return _verdict(np.asarray(inside & is_consistent(phi, "full", boundary=boundary)))


def realisable_in_box(phi: ArrayLike, lo: ArrayLike, hi: ArrayLike, boundary: float = ROUNDOFF) -> bool | BoolArray:
    """Whether ``phi`` obeys every row of :func:`box_functionals` and full consistency.

    Necessary for a density inside the box: False is a proof that there is none; True is not quite a proof
    that there is one, because in three dimensions these conditions are a little wider than the bodies a box
    can hold.
    """
    rows = box_functionals(lo, hi)
    inside = _not_negative(rows, np.asarray(phi, dtype=np.float64)[..., None, :], boundary).all(axis=-1)
    return _verdict(np.asarray(inside & is_consistent(phi, "full", boundary=boundary)))
