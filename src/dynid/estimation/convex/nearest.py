"""The feasible base values nearest to given ones, from both sides: a body from above, multipliers from below.

    minimise  || R (E x - beta) ||   over the consistent set

From below, over the reduced form (:mod:`dynid.estimation.convex.reduced`), where the nearest point is attained. The residual
itself is the direction of the proof: ``d = R^T R (E x - beta)`` separates, and

    ||R (E x' - beta)|| >= (least d . E x' - d . beta) / ||R (E x - beta)||     for every x' of the set.

From above, over the set itself, with a price on the size of all bodies together: ``T(x)`` of the nearest ones may be infinite,
and ``price T`` keeps it where the base values computed from the bodies still have their digits. Both are solved by rows, so that
nothing is squared, and need no pull.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from dynid.arrays import Array, IntArray
from dynid.estimation.convex.block_forms import block_program
from dynid.estimation.convex.consistent_set import BASES, ConsistentSet
from dynid.estimation.convex.interior_point import BlockProgram, InteriorSolution, interior_point, start_inside
from dynid.estimation.convex.newton_systems import ByRows
from dynid.estimation.convex.proof import Multipliers, Proof, proof
from dynid.estimation.convex.reduced import ReducedForm, reduced_form

Back: TypeAlias = Callable[[Array], Array]

TOLERANCE = 1e-10
"""Gap relative to half the squared distance at which the iteration ends; it stops earlier where digits give out."""
SMALLEST = 1e-10
"""Part of the norm of the base values below which a distance counts as nothing."""
LARGEST = 1e7
"""Size of all bodies together, in sizes of a link, that a certificate may have."""
PRICES = (1e-17, 1e-15, 1e-13, 1e-11)
"""Of the size of all bodies, in units of half the squared norm of the base values: the first that keeps it below ``LARGEST``."""
SHARES = tuple(10.0**power for power in range(-13, 0))
"""Of well-centred multipliers that are mixed in, so that they are safely inside their cones; then finer around the best."""


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest feasible base values, from above and from below."""

    form: ReducedForm
    x: Array | None
    """Scaled parameters inside the set; None where the constraints have no common point."""
    distance: float
    """``||R (E x - beta)||``"""
    lower_bound: float
    """No parameters up to :data:`LARGEST` sizes of a link are nearer."""
    proof: Proof
    ended: str
    """How the two iterations ended."""


def nearest(consistent: ConsistentSet, K: Array, R: Array, beta: Array, start: Array) -> Nearest:
    """Solve over the reduced form from around ``start`` (scaled parameters), then find a body and a proof."""
    E = np.zeros((len(K), consistent.n))
    E[:, : K.shape[1]] = K * consistent.scale[: K.shape[1]]
    form = reduced_form(consistent, E)
    size = max(float(np.linalg.norm(R @ beta)), 1e-300)
    F, f = R @ (E @ form.T) / size, R @ beta / size
    found, back = _solve(form.program, F, f, np.zeros(form.program.n), np.linalg.lstsq(form.T, start, rcond=None)[0])
    last, middle = back(found.x), back(found.centred.x)

    def multipliers(point: Array, Z: Array, z: Array, nu: Array) -> tuple[Multipliers, Array]:
        y = (F @ point - f) / size
        return _multipliers(form, R.T @ y, Z, z, nu), y

    proven, lower = _best_bound(
        consistent,
        K,
        beta,
        multipliers(last, found.Z, found.z, found.nu),
        multipliers(middle, found.centred.Z, found.centred.z, found.centred.nu),
    )
    x, distance, ended = _body(consistent, E, R, beta, start)
    return Nearest(form, x, distance, min(lower, distance), proven, f"{found.end}, {ended}")


def _solve(program: BlockProgram, F: Array, f: Array, q: Array, start: Array) -> tuple[InteriorSolution, Back]:
    """Minimise ``1/2 ||F x - f||^2 + q . x``; and how the variables in no cone follow from the others."""
    kept, smaller, projected, back = _without_free(program, F, f)
    found = interior_point(
        smaller,
        ByRows(smaller, *projected, q[kept]),
        start_inside(smaller, start[kept], 1.0),
        tolerance=TOLERANCE,
        feasibility=1e-8,
        floor=0.5 * SMALLEST**2,
        iterations=100,
    )
    return found, back


def _multipliers(form: ReducedForm, direction: Array, Z: Array, z: Array, nu: Array) -> Multipliers:
    """Those of the iteration, over the rows of the whole set."""
    consistent, rows = form.consistent, form.rows
    w = np.zeros(consistent.first_matrix_row)
    full = form.row_multipliers(z)
    effects = ~np.isin(rows.bounded, consistent.layout.slots)
    w[rows.bound_at] = np.where(effects, 0.0, full[: len(rows.bounded)])
    w[rows.inequality_at] = full[len(rows.bounded) :]
    w[rows.equality_at] = nu
    arrows = iter(Z[len(form.faces) :])
    for (kind, size), first in zip(consistent.cones, consistent.starts, strict=False):
        if kind == "second_order":
            arrow = next(arrows)
            w[first] = np.trace(arrow[:size, :size])
            w[first + 1 : first + size] = 2.0 * arrow[0, 1:size]
    blocks = [
        face.U @ block[: face.U.shape[1], : face.U.shape[1]] @ face.U.T for face, block in zip(form.faces, Z, strict=False)
    ]
    return Multipliers(direction, w, np.array(blocks), tuple(face.U for face in form.faces))


def _best_bound(
    consistent: ConsistentSet,
    K: Array,
    beta: Array,
    last: tuple[Multipliers, Array],
    middle: tuple[Multipliers, Array],
) -> tuple[Proof, float]:
    """The best lower bound that mixtures of the last multipliers and well-centred ones prove, exactly."""

    def bound(share: float, exact: bool) -> tuple[Proof, float]:
        made = proof(consistent, K, last[0].mixed(middle[0], share), exact)
        length = float(np.linalg.norm((1.0 - share) * last[1] + share * middle[1]))
        return made, (made.least(LARGEST) - float(made.direction @ beta)) / max(length, 1e-300)

    best = max(
        (0.0, *_finer(max(SHARES, key=lambda share: bound(share, exact=False)[1]))), key=lambda s: bound(s, exact=False)[1]
    )
    made, lower = bound(best, exact=True)
    return made, max(lower, 0.0)


def _finer(share: float) -> tuple[float, ...]:
    return tuple(share * factor for factor in (0.2, 0.5, 1.0, 2.0, 4.0))


def _body(consistent: ConsistentSet, E: Array, R: Array, beta: Array, start: Array) -> tuple[Array | None, float, str]:
    """Parameters of the set whose base values are nearest, at the lowest price that keeps them from growing too large."""
    size = max(float(np.linalg.norm(R @ beta)), 1e-300)
    program = block_program(consistent)
    trace = np.trace(BASES[consistent.condition], axis1=1, axis2=2)
    best, least, ended = None, np.inf, "stalled"
    for price in PRICES:
        q = np.zeros(program.n)
        q[consistent.layout.slots] = price * trace
        found, back = _solve(program, R @ E / size, R @ beta / size, q, start)
        x, _ = consistent.pushed(back(found.x))
        distance = float(np.linalg.norm(R @ (E @ x - beta)))
        inside = bool(np.isfinite(x).all()) and consistent.contains(x)
        if inside and distance < least:
            best, least, ended = x, distance, found.end
        if inside and consistent.size(x) <= LARGEST:
            break
    return best, least, ended


def _without_free(program: BlockProgram, F: Array, f: Array) -> tuple[IntArray, BlockProgram, tuple[Array, Array], Back]:
    """The program without the variables in no cone and no constraint, which follow the others by least squares."""
    held = np.zeros(program.n, dtype=bool)
    held[program.slots[program.slots >= 0]] = True
    held[program.bounded] = True
    touched = (program.G != 0.0).any(axis=0) | (program.A != 0.0).any(axis=0)
    free = np.flatnonzero(~held & ~touched)
    if not len(free):
        return np.arange(program.n), program, (F, f), lambda x: x
    kept = np.setdiff1d(np.arange(program.n), free)
    place = np.full(program.n, -1, dtype=np.int64)
    place[kept] = np.arange(len(kept))
    U, singular, right = np.linalg.svd(F[:, free], full_matrices=True)
    rank = int((singular > 1e-12 * singular[0]).sum())
    across = U[:, rank:].T
    smaller = replace(
        program,
        n=len(kept),
        slots=np.where(program.slots >= 0, place[program.slots], -1),
        bounded=place[program.bounded],
        G=program.G[:, kept],
        A=program.A[:, kept],
    )

    def back(x: Array) -> Array:
        full = np.zeros(program.n)
        full[kept] = x
        full[free] = right[:rank].T @ ((U[:, :rank].T @ (f - F[:, kept] @ x)) / singular[:rank])
        return full

    return kept, smaller, (across @ F[:, kept], across @ f), back
