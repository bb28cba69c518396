"""Bodies with known ten parameters: uniform cuboids and ellipsoids, point masses; and which bodies a shape can hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, BoolArray, freeze
from dynid.errors import InconsistentModelError, InputError
from dynid.estimation.constraints.shapes import box_functionals, ellipsoid_functional
from dynid.model.inertia import (
    ROUNDOFF,
    consistency,
    is_consistent,
    phi_from_principal,
    phi_from_pseudo_inertia,
    principal_form,
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


LOAD = phi_of_cuboid(2.0, [0.06, 0.05, 0.08], [0.02, -0.03, 0.12], np.eye(3))
"""A load of 2 kg."""
