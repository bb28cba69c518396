"""Facial reduction: the closure of the feasible base values as the image of a cone over which the nearest point is attained.

A point mass on the axis of the first joint, or at the intersection of the first two, changes no base value: ``K n = 0`` with a
body ``n`` inside the cone. Such bodies can be added without end, and with them the first moments about that point can be
anything: the feasible base values are not closed, and the nearest ones are approached only as that mass grows. The closure is
the image of a larger cone,

    U^T P(x) U >= 0,     U the directions in which n has nothing,

over which the nearest point is attained, and multipliers that prove it exist. Null bodies are looked for link by link: if
bodies of several links had no kinetic energy together, each would have none. A quadratic system for each link,

    K_k vec(v v^T) = 0        point masses and lines (v in R^4), or moments about one axis (plain condition),

has a subspace for its solution, found by Gauss-Newton steps from several starts.

Links with null bodies keep only what their face asks for. Of such a link's parameters those that the face sees stay in the cone;
those that only the base values see are free, since enough of a null body pays for them; what nothing sees is left out. Free
parameters can make more bodies null, so this is done in rounds, two or three at most.

    x = T xi,     xi = (in cones, free)

Multipliers of the reduced form are multipliers of the set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, IntArray
from dynid.estimation.consistency.block_program import BlockProgram, arrow_blocks, link_blocks
from dynid.estimation.consistency.consistent_set import ConsistentSet, LinearRows, unit_body
from dynid.model.inertia import phi_from_pseudo_inertia
from dynid.regression.channels import triangle_of

SEEN = 1e-11
"""Relative size below which a combination of parameters counts as without effect."""
CLEARLY_SEEN = 1e-6
"""The same for parameters that are free: null bodies are known to some 1e-8, and what that leaves must not count."""
ROUNDS = 4
STARTS = 5
"""Random starts without a solution after which there is none."""
PROJECTIONS = 40
STEPS = 40
EXACT = 1e-9
"""Norm of what a unit body shows, relative to what the link's parameters can show, below which it counts as nothing: the base
parameters of robots in general position are themselves known to some 1e-11."""
TOGETHER = 1e-6
"""The same for two bodies together: where a root is double, a body is known to the square root of what it may show."""


@dataclass(frozen=True, eq=False)
class Face:
    """What is left of one link's inequality: ``U^T A(x) U >= 0``."""

    U: Array
    """``(side, r)``"""
    coordinates: Array
    """``(10, count)``: the combinations of the link's parameters that the face sees."""
    rest: Array
    """``(10, 10 - count)``: the others."""
    body: Array | None
    """The null body, scaled; None where the whole inequality is left."""
    apart: int = 0
    """How many of the link's first parameters are coordinates of their own."""


@dataclass(frozen=True, eq=False)
class ReducedForm:
    """``x = T xi``, up to null bodies."""

    consistent: ConsistentSet
    program: BlockProgram
    T: Array
    """``(n, n_reduced)``"""
    faces: tuple[Face, ...]
    """Of every link."""
    rows: LinearRows
    """Those of the whole set."""
    kept_bounds: IntArray
    """Bounds that are left as bounds; of the others, those in ``kept_rows`` became inequalities."""
    kept_rows: IntArray
    """Which of the bounds and inequalities, in this order, are the inequalities of the program."""

    def row_multipliers(self, z: Array) -> Array:
        """Multipliers of all bounds and inequalities of the set from those of the program."""
        full = np.zeros(len(self.rows.bounded) + len(self.rows.g))
        full[self.kept_bounds] = z[: len(self.kept_bounds)]
        full[self.kept_rows] = z[len(self.kept_bounds) :]
        return full


def reduced_form(consistent: ConsistentSet, E: Array, rounds: int = ROUNDS) -> ReducedForm:
    """The set as far as the base values ``E x`` see it; as it is, with every link's whole inequality, without any rounds."""
    slots, basis, constant = link_blocks(consistent)
    arrows = arrow_blocks(consistent, basis.shape[2])
    rows = consistent.linear
    # Bounds and inequalities as one dense matrix.
    bounds = np.zeros((len(rows.bounded), consistent.n))
    bounds[np.arange(len(bounds)), rows.bounded] = rows.slope
    inequalities, offsets = np.vstack([bounds, rows.G]), np.concatenate([rows.offset, rows.g])
    links = list(slots)
    faces = [Face(np.eye(basis.shape[2]), np.eye(10), np.zeros((10, 0)), None)] * len(links)  # whole inequalities
    seen = np.vstack([E, rows.A])
    fixed = set(arrows[0][arrows[0] >= 0].tolist())
    left = seen
    for number in range(rounds):
        new = list(faces)
        for k, at in enumerate(links):
            in_arrow = bool(fixed & set(at.tolist()))
            if number and (in_arrow or np.abs(inequalities[:, at]).max(initial=0.0) > 0.0):
                continue
            size = float(np.abs(seen[:, at]).max(initial=0.0))
            body, massless = _growing_body(consistent, (left[:, at], size), inequalities[:, at], arrows, at, in_arrow)
            if body is not None:
                face = _face(basis[k], body / np.abs(body).max(), 4 if massless and in_arrow else 0)
                new[k] = min(faces[k], face, key=lambda one: one.U.shape[1])
        if all(now is before for now, before in zip(new, faces, strict=True)):
            break
        faces = new
        # the rows with what free parameters can make of them taken out
        Q = np.linalg.qr(seen @ _free_columns(seen, faces, links, consistent.n))[0]
        left = np.asarray(seen - Q @ (Q.T @ seen))
    T, program, kept = _program(consistent, faces, links, (basis, constant), arrows, rows, (inequalities, offsets), seen)
    return ReducedForm(consistent, program, T, tuple(faces), rows, *kept)


def _growing_body(
    consistent: ConsistentSet,
    shown: tuple[Array, float],
    inequalities: Array,
    arrows: tuple[IntArray, Array, Array],
    at: IntArray,
    in_arrow: bool,
) -> tuple[Array | None, bool]:
    """A null body of a link that its constraints let grow, and whether it is without mass.

    Where they let none with mass grow, perhaps one without, which most do not see.
    """
    rows, size = shown
    for seen, massless in ((rows, False), (np.vstack([rows, size * np.eye(4, 10)]), True)):
        body = null_body(seen, consistent.condition, size)
        if body is None or (inequalities @ body < -SEEN).any():
            continue
        if massless or not in_arrow or _deep_inside(arrows, at, body):
            return body, massless
    return None, False


def lifted(form: ReducedForm, x: Array, widened: float = 0.0) -> Array:
    """A point of the reduced form with as much of each link's null body as brings the link inside its cone.

    The mass it takes is ``C^T S^-1 C`` with ``S`` on the face and ``C`` between face and null body. ``S`` is first widened by
    ``widened (C C^T)^(1/2)``: that much less mass for the least change of the base values.
    """
    slots, basis, constant = link_blocks(form.consistent)
    new = np.array(x)
    for k, face in enumerate(form.faces):
        if face.body is not None:
            at = slots[k]
            if widened > 0.0 and face.U.shape[1]:
                new[at] += widened * _wider(face.U, np.einsum("a,aij->ij", new[at], basis[k]))
            block = np.einsum("a,aij->ij", new[at], basis[k]) + constant[k]
            new[at] += _enough(block, np.einsum("a,aij->ij", face.body, basis[k])) * face.body
    return new


def _wider(U: Array, matrix: Array) -> Array:
    """Ten parameters with ``(C C^T)^(1/2)`` on the face; under the plain condition equal moments about all axes as large."""
    out, singular, _ = np.linalg.svd(U.T @ matrix @ (np.eye(len(matrix)) - U @ U.T))
    if len(matrix) == 6:
        return np.array([0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0]) * float(singular.max(initial=0.0))
    out = U @ out
    return phi_from_pseudo_inertia((out * singular[: out.shape[1]]) @ out.T)


def _enough(block: Array, more: Array) -> float:
    """A little over the least ``t`` with ``block + t more >= 0``; not a number where there is none."""
    low, high = 0.0, 1e-9
    while np.linalg.eigvalsh(block + high * more)[0] < 0.0:
        low, high = high, 4.0 * high
        if high > 1e15:
            return float("nan")
    for _ in range(8):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if np.linalg.eigvalsh(block + middle * more)[0] >= 0.0 else (middle, high)
    return 2.0 * high


def _face(basis: Array, body: Array, apart: int) -> Face:
    """What is left of a link's inequality on the directions in which the null body has nothing.

    The first ``apart`` parameters (mass and moments that a second-order cone sees, too) stay coordinates of their own.
    """
    eigenvalues, vectors = np.linalg.eigh(np.einsum("a,aij->ij", body, basis))
    U = vectors[:, eigenvalues < 1e-7 * eigenvalues[-1]]
    _, singular, right = np.linalg.svd((U.T @ basis[apart:] @ U).reshape(10 - apart, -1).T)
    rank = int((singular > 1e-10 * singular[0]).sum()) if U.shape[1] else 0
    coordinates, rest = np.zeros((10, apart + rank)), np.zeros((10, 10 - apart - rank))
    coordinates[:apart, :apart] = np.eye(apart)
    coordinates[apart:, apart:] = right[:rank].T
    rest[apart:] = right[rank:].T
    return Face(U, coordinates, rest, body, apart)


def _deep_inside(arrows: tuple[IntArray, Array, Array], at: IntArray, body: Array) -> bool:
    """Whether a body of this link is strictly inside every second-order cone that sees it."""
    values = dict(zip(at.tolist(), body.tolist(), strict=True))
    for slots, basis in zip(arrows[0], arrows[1], strict=True):
        if values.keys() & set(slots.tolist()):
            matrix = sum(values.get(int(slot), 0.0) * B for slot, B in zip(slots, basis, strict=True) if slot >= 0)
            used = np.flatnonzero(np.abs(basis).max(axis=(0, 1)) > 0.0)
            if np.linalg.eigvalsh(np.asarray(matrix)[np.ix_(used, used)])[0] < 1e-3 * np.abs(body).max():
                return False
    return True


def _free_columns(seen: Array, faces: list[Face], links: list[IntArray], n: int) -> Array:
    """``(n, free)``: directions of the links' parameters that their faces do not see but some row does."""
    parts = [np.zeros((n, 0))]
    for face, at in zip(faces, links, strict=True):
        if face.rest.shape[1]:
            part = np.zeros((n, face.rest.shape[1]))
            part[at] = face.rest
            parts.append(part)
    rest = np.hstack(parts)
    if not rest.shape[1]:
        return rest
    _, singular, right = np.linalg.svd(seen @ rest, full_matrices=False)
    return np.asarray(rest @ right[singular > CLEARLY_SEEN * np.abs(seen).max(initial=0.0)].T)


def _coordinates(faces: list[Face], links: list[IntArray], bounded: IntArray, n: int) -> tuple[Array, IntArray, IntArray]:
    """Columns of ``T`` that are in cones, which of them each parameter is that is one by itself, and those of every link."""
    slots, moved = np.full((len(links), 10), -1, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    parts, width = [np.eye(n)[:, bounded]], 0
    for k, (face, at) in enumerate(zip(faces, links, strict=True)):
        count, own = face.coordinates.shape[1], 10 if face.body is None else face.apart
        part = np.zeros((n, count))
        part[at] = face.coordinates
        slots[k, :count] = width + np.arange(count)
        moved[at[:own]] = width + np.arange(own)
        parts.insert(-1, part)
        width += count
    moved[bounded] = width + np.arange(len(bounded))
    return np.hstack(parts), moved, slots


def _program(
    consistent: ConsistentSet,
    faces: list[Face],
    links: list[IntArray],
    blocks: tuple[Array, Array],
    arrows: tuple[IntArray, Array, Array],
    rows: LinearRows,
    inequalities: tuple[Array, Array],
    seen: Array,
) -> tuple[Array, BlockProgram, tuple[IntArray, IntArray]]:
    """The program over ``xi``, in cones first, then free."""
    n, (basis, constant), side = consistent.n, blocks, blocks[0].shape[2]
    others = np.setdiff1d(np.arange(n), np.concatenate(links))
    bounded = np.intersect1d(others, rows.bounded)
    in_cones, moved, slots = _coordinates(faces, links, bounded, n)
    new_basis, new_constant = np.array(basis), np.array(constant)
    gone = np.zeros(len(inequalities[1]), dtype=bool)
    for k, (face, at) in enumerate(zip(faces, links, strict=True)):
        if face.body is not None:
            count, r = face.coordinates.shape[1], face.U.shape[1]
            new_basis[k], new_constant[k] = 0.0, np.eye(side)
            new_basis[k, :count, :r, :r] = np.einsum("ac,aij->cij", face.coordinates, face.U.T @ basis[k] @ face.U)
            new_constant[k, :r, :r] = face.U.T @ constant[k] @ face.U
            gone |= inequalities[0][:, at] @ face.body > SEEN
    free = _free_columns(np.vstack([seen, inequalities[0]]), faces, links, n)
    T = np.hstack([in_cones, free, np.eye(n)[:, np.setdiff1d(others, bounded)]])
    whole = moved[rows.bounded] >= 0
    kept_bounds = np.flatnonzero(whole)
    kept_rows = np.flatnonzero(np.concatenate([~whole, np.ones(len(rows.g), dtype=bool)]) & ~gone)
    arrow_slots = np.where(arrows[0] >= 0, moved[arrows[0]], -1)
    # a cone that a null body is strictly inside of holds for enough of that body
    met = ((arrows[0] >= 0) & (arrow_slots < 0)).any(axis=1)
    arrow_slots[met] = -1
    arrows[2][met] = np.eye(side)
    program = BlockProgram(
        T.shape[1],
        np.ascontiguousarray(np.concatenate([slots, arrow_slots])),
        np.ascontiguousarray(np.concatenate([new_basis, arrows[1]])),
        np.ascontiguousarray(np.concatenate([new_constant, arrows[2]])),
        moved[rows.bounded[kept_bounds]],
        rows.slope[kept_bounds],
        rows.offset[kept_bounds],
        inequalities[0][kept_rows] @ T,
        inequalities[1][kept_rows],
        rows.A @ T,
        rows.a,
        np.zeros(len(slots) + len(arrow_slots)),
    )
    return T, program, (kept_bounds, kept_rows)


def null_body(shown: Array, condition: str, size: float, seed: int = 0) -> Array | None:
    """A body of one link without any effect, as spread out as possible; None where there is none.

    ``shown``: ``(rows, 10)``, what the ten scaled parameters do to the base values; ``size``: what counts as much.
    """
    if float(np.linalg.norm(shown)) <= EXACT * size or size == 0.0:
        return unit_body("full")
    K = shown / size
    if np.linalg.matrix_rank(K, tol=EXACT) == K.shape[1]:
        return None
    rng = np.random.default_rng(seed)
    points = _solutions(K, 4, _of_point, rng)
    found = sum((_of_point(v, v) for v in points), start=np.zeros(10))
    if condition == "plain":
        found = found + sum((_of_axis(j, j) for j in _solutions(K, 3, _of_axis, rng)), start=np.zeros(10))
    return found if found.any() else None


def _of_point(v: Array, w: Array) -> Array:
    """Ten parameters of the pseudo-inertia ``sym(v w^T)``."""
    return phi_from_pseudo_inertia(np.outer(v, w))


def _of_axis(j: Array, k: Array) -> Array:
    """Ten parameters of the rotational inertia ``sym(j k^T)`` without mass."""
    I = 0.5 * (np.outer(j, k) + np.outer(k, j))
    return np.array([0.0, 0.0, 0.0, 0.0, I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]])


def _solutions(K: Array, size: int, body: Callable[[Array, Array], Array], rng: np.random.Generator) -> Array:
    """An orthonormal basis of the ``v`` with ``K body(v, v) = 0``, one a row."""
    basis = np.eye(size)
    table = np.array([[K @ body(a, b) for b in basis] for a in basis])  # (size, size, rows)
    table = 0.5 * (table + np.swapaxes(table, 0, 1))
    rows = table.reshape(size * size, -1).T
    if len(rows) > size * size:  # only its triangle matters
        table = triangle_of(rows).T.reshape(size, size, -1)
    found = np.zeros((0, size))
    allowed = basis
    starts = _likely(table, size)
    failed = 0
    while (starts or failed < STARTS) and len(allowed):
        start = starts.pop() if starts else rng.normal(size=size)
        v = _solution(table, allowed, allowed.T @ (allowed @ start))
        if v is None:
            failed += 1
            continue
        found = np.vstack([found, v])
        # what is found with it must have no effect together with it either, and be normal to it
        together = np.vstack([*(np.einsum("abr,b->ra", table, w) for w in found), found])
        _, singular, right = np.linalg.svd(together)
        allowed = right[int((singular > TOGETHER).sum()) :]
        failed = 0
    return found


def _likely(table: Array, size: int) -> list[Array]:
    """Eigenvectors of a null body, those of its largest eigenvalues last, by projections in turns from the identity."""
    rows = table.reshape(size * size, -1).T
    _, singular, right = np.linalg.svd(rows)
    shown = right[: int((singular > EXACT).sum())]
    P = np.eye(size)
    vectors = np.eye(size)
    for _ in range(PROJECTIONS):
        flat = P.ravel()
        flat = flat - shown.T @ (shown @ flat)
        eigenvalues, vectors = np.linalg.eigh(flat.reshape(size, size))
        eigenvalues = np.maximum(eigenvalues, 0.0)
        if eigenvalues.sum() < 1e-3 * np.trace(P):
            return []
        P = (vectors * (eigenvalues / eigenvalues.sum())) @ vectors.T
    return [vectors[:, i] for i in range(size) if eigenvalues[i] > 1e-3 * eigenvalues[-1]]


def _solution(table: Array, allowed: Array, start: Array) -> Array | None:
    """One ``v`` in the span of ``allowed``; steps of once and twice the length, since such roots are often double."""
    length = float(np.linalg.norm(start))
    if length < 1e-6:
        return None
    v = start / length
    J = np.einsum("abr,b->ra", table, v)
    least = float(np.linalg.norm(J @ v))
    for _ in range(STEPS):
        if least < 1e-18:
            break
        across = allowed - np.outer(allowed @ v, v)  # v = 0 is a solution too, and none
        damped = np.vstack([2.0 * J @ across.T, 1e-9 * np.eye(len(across))])
        step = np.linalg.lstsq(damped, np.concatenate([-(J @ v), np.zeros(len(across))]))[0] @ across
        better = False
        for factor in (2.0, 1.0, 0.25):
            w = v + factor * step
            w /= np.linalg.norm(w)
            G = np.einsum("abr,b->ra", table, w)
            size = float(np.linalg.norm(G @ w))
            if size < 0.9 * least:
                v, J, least, better = w, G, size, True
                break
        if not better:
            break
    if least >= EXACT:
        return None
    # without entries that are next to nothing, if it is as good: axes of most robots are aligned with their frames
    w = np.where(np.abs(v) > TOGETHER * np.abs(v).max(), v, 0.0)
    w /= np.linalg.norm(w)
    size = float(np.linalg.norm(np.einsum("abr,a,b->r", table, w, w)))
    return w if size <= max(least, 1e-15) else v
