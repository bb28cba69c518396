"""What multipliers of a consistent set prove, whoever found them and however well."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg

from dynid.adapters.clarabel import matrix_from_rows, triangle_entries
from dynid.arrays import Array, freeze
from dynid.estimation.convex.consistent_set import ConsistentSet

REACH = 1e4
"""Norm of scaled parameters, in sizes of a link, up to which :func:`least_distance` holds.

Multipliers of a solver satisfy their equations to some 1e-10; what is missing counts in full at this distance."""
ALTERNATIONS = 100
"""Most rounds of projecting multipliers in turns."""


@dataclass(frozen=True, eq=False)
class Combination:
    """Multipliers ``z`` in the dual cones, and ``y`` with ``M^T z = A^T y`` up to ``missing``, the norm of the difference.

    Since ``z . (M x + k) >= 0`` for every ``x`` of the set, ``y . A x >= -z . k - missing ||x||``: whatever multipliers a
    solver gave and however well, this holds.
    """

    multipliers: Array
    coefficients: Array
    missing: float


def combined(consistent: ConsistentSet, A: Array, dual: Array) -> Combination | None:
    """What multipliers prove of ``A x``; None for multipliers that are none.

    They are projected in turns on those that combine to rows of ``A`` and into the cones, where they stay: what a pull or
    the solver's tolerance left out of the equation goes.
    """
    size = float(np.linalg.norm(dual))
    if not (np.isfinite(size) and size > 0.0):
        return None
    outside = consistent.M @ scipy.linalg.null_space(A)
    U, singular, _ = np.linalg.svd(outside, full_matrices=False)
    U = U[:, singular > 1e-12 * singular.max(initial=1e-300)]
    z = _in_dual_cones(consistent, np.asarray(dual) / size)
    best, least = z, np.inf
    for _ in range(ALTERNATIONS):
        missing = float(np.linalg.norm(outside.T @ z))
        if missing < least:
            best, least = z, missing
        if missing < 1e-16:
            break
        z = _in_dual_cones(consistent, z - U @ (U.T @ z))
    functional = consistent.M.T @ best
    coefficients = scipy.linalg.lstsq(A.T, functional, lapack_driver="gelsy")[0]
    return Combination(freeze(best), freeze(coefficients), float(np.linalg.norm(functional - A.T @ coefficients)))


def _in_dual_cones(consistent: ConsistentSet, dual: Array) -> Array:
    """Multipliers with what lies outside the dual cones cut off."""
    z = np.array(dual)
    for (kind, size), first in zip(consistent.cones, consistent.starts, strict=False):
        if kind == "nonnegative":
            z[first : first + size] = np.maximum(z[first : first + size], 0.0)
        elif kind == "second_order":
            z[first] = max(z[first], float(np.linalg.norm(z[first + 1 : first + size])))
    first, count, side = consistent.matrix_rows
    if count:
        row, column, weight = triangle_entries(side)
        eigenvalues, vectors = np.linalg.eigh(matrix_from_rows(z[first:].reshape(count, -1), side))
        inside = (vectors * np.maximum(eigenvalues, 0.0)[:, None, :]) @ np.swapaxes(vectors, -1, -2)
        z[first:] = (inside[:, row, column] * weight).ravel()
    return z


def least_distance(consistent: ConsistentSet, G: Array, centre: Array, dual: Array) -> float:
    """A bound from below of ``||G (x - centre)||^2`` over the set up to ``REACH`` around the centre, from any multipliers.

    With ``M^T z = G^T y + r`` every ``x = centre + d`` of the set has ``y . G d >= s``, ``s = -z . (M centre + k) - |r| REACH``,
    and ``||y|| ||G d|| >= y . G d``.
    """
    found = combined(consistent, G, dual)
    if found is None:
        return 0.0
    offset = consistent.M @ centre + consistent.k
    z, y = found.multipliers, found.coefficients
    round_off = 1e-15 * float(np.abs(z) @ (np.abs(consistent.k) + abs(consistent.M) @ np.abs(centre)))
    s = float(-z @ offset) - found.missing * REACH - round_off
    return max(s, 0.0) ** 2 / max(float(y @ y), 1e-300)


def blamed(consistent: ConsistentSet, dual: Array, share: float = 0.01) -> tuple[str, ...]:
    """Labels of the conditions that carry an infeasibility: constraints before consistency, the heaviest first."""
    weights = np.array(
        [np.linalg.norm(dual[a:b]) for a, b in zip(consistent.starts[:-1], consistent.starts[1:], strict=True)]
    )
    if not weights.size or weights.max() == 0.0:
        return ()
    natural = np.array([kind == "semidefinite" for kind, _ in consistent.cones])
    order = np.lexsort((-weights, natural))
    least = share * weights.max()
    return tuple(dict.fromkeys(_label(consistent, int(i), dual, least) for i in order if weights[i] > least))


def _label(consistent: ConsistentSet, cone: int, dual: Array, least: float) -> str:
    """What a cone stands for; of signs of several effects those that count."""
    label, ending = consistent.labels[cone], " not negative"
    if not label.endswith(ending):
        return label
    first, last = consistent.starts[cone], consistent.starts[cone + 1]
    rows = first + np.flatnonzero(dual[first:last] > least)
    columns = consistent.M[rows].tocsr().indices
    names = [consistent.layout.names[column] for column in columns]
    return f"{', '.join(names)}{ending}" if names else label
