"""The closure of the feasible base values as the image of a cone over which the nearest point is attained.

Links with null bodies (:mod:`dynid.estimation.convex.faces`) keep only what their face asks for. Of such a link's parameters
those that the face sees stay in the cone; those that only the base values see are free, since enough of a null body pays for
them; what nothing sees is left out. Free parameters can make more bodies null, so this is done in rounds, two or three at most.

    x = T xi,     xi = (in cones, free)

Multipliers of the reduced form are multipliers of the set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array, IntArray
from dynid.estimation.convex.block_forms import arrow_blocks, link_blocks
from dynid.estimation.convex.consistent_set import ConsistentSet, LinearRows
from dynid.estimation.convex.faces import null_body
from dynid.estimation.convex.interior_point import BlockProgram
from dynid.inertia import phi_from_pseudo_inertia

SEEN = 1e-11
"""Relative size below which a combination of parameters counts as without effect."""
CLEARLY_SEEN = 1e-6
"""The same for parameters that are free: null bodies are known to some 1e-8, and what that leaves must not count."""
ROUNDS = 4


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


def _whole(side: int) -> Face:
    """A link's whole inequality."""
    return Face(np.eye(side), np.eye(10), np.zeros((10, 0)), None)


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


def reduced_form(consistent: ConsistentSet, E: Array) -> ReducedForm:
    """The set as far as the base values ``E x`` see it."""
    slots, basis, constant = link_blocks(consistent)
    arrows = arrow_blocks(consistent, basis.shape[2])
    rows = consistent.linear
    inequalities, offsets = _inequalities(rows, consistent.n)
    links = list(slots)
    faces = [_whole(basis.shape[2])] * len(links)
    seen = np.vstack([E, rows.A])
    fixed = set(arrows[0][arrows[0] >= 0].tolist())
    left = seen
    for number in range(ROUNDS):
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
        left = _without_free(seen, faces, links, consistent)
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


def whole_form(consistent: ConsistentSet, E: Array) -> ReducedForm:
    """The set as it is, with every link's whole inequality."""
    slots, basis, constant = link_blocks(consistent)
    arrows = arrow_blocks(consistent, basis.shape[2])
    rows = consistent.linear
    faces = [_whole(basis.shape[2])] * len(slots)
    seen = np.vstack([E, rows.A])
    inequalities = _inequalities(rows, consistent.n)
    T, program, kept = _program(consistent, faces, list(slots), (basis, constant), arrows, rows, inequalities, seen)
    return ReducedForm(consistent, program, T, tuple(faces), rows, *kept)


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


def _inequalities(rows: LinearRows, n: int) -> tuple[Array, Array]:
    """Bounds and inequalities as one dense matrix."""
    bounds = np.zeros((len(rows.bounded), n))
    bounds[np.arange(len(bounds)), rows.bounded] = rows.slope
    return np.vstack([bounds, rows.G]), np.concatenate([rows.offset, rows.g])


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


def _without_free(seen: Array, faces: list[Face], links: list[IntArray], consistent: ConsistentSet) -> Array:
    """The rows with what free parameters can make of them taken out."""
    shown = seen @ _free_columns(seen, faces, links, consistent.n)
    if not shown.shape[1]:
        return seen
    Q = np.linalg.qr(shown)[0]
    return np.asarray(seen - Q @ (Q.T @ seen))


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
    n, (basis, constant) = consistent.n, blocks
    side = basis.shape[2]
    parts: list[Array] = []
    width = 0
    moved = np.full(n, -1, dtype=np.int64)
    slots = np.full((len(links), 10), -1, dtype=np.int64)
    new_basis, new_constant = np.array(basis), np.array(constant)
    gone = np.zeros(len(inequalities[1]), dtype=bool)
    for k, (face, at) in enumerate(zip(faces, links, strict=True)):
        count = face.coordinates.shape[1]
        part = np.zeros((n, count))
        part[at] = face.coordinates
        slots[k, :count] = width + np.arange(count)
        if face.body is None:
            moved[at] = width + np.arange(10)
        else:
            moved[at[: face.apart]] = width + np.arange(face.apart)
            r = face.U.shape[1]
            new_basis[k], new_constant[k] = 0.0, np.eye(side)
            new_basis[k, :count, :r, :r] = np.einsum("ac,aij->cij", face.coordinates, face.U.T @ basis[k] @ face.U)
            new_constant[k, :r, :r] = face.U.T @ constant[k] @ face.U
            gone |= inequalities[0][:, at] @ face.body > SEEN
        parts.append(part)
        width += count
    others = np.setdiff1d(np.arange(n), np.concatenate(links))
    bounded = np.intersect1d(others, rows.bounded)
    alone = np.setdiff1d(others, bounded)
    for i in bounded:
        part = np.zeros((n, 1))
        part[i] = 1.0
        moved[i] = width
        parts.append(part)
        width += 1
    single = np.zeros((n, len(alone)))
    single[alone, np.arange(len(alone))] = 1.0
    free = np.hstack([_free_columns(np.vstack([seen, inequalities[0]]), faces, links, n), single])
    T = np.hstack([*parts, free])
    whole = moved[rows.bounded] >= 0
    kept_bounds = np.flatnonzero(whole)
    left = np.concatenate([~whole, np.ones(len(rows.g), dtype=bool)]) & ~gone
    kept_rows = np.flatnonzero(left)
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
    )
    return T, program, (kept_bounds, kept_rows)
