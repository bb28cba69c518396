"""Compiled rows of a robot on feet: the unknown forces of contacts leave the rows sample by sample.

    Y phi = tau + J^T f     and with rows z of unit length, z J^T = 0:     z Y phi = z tau

Velocities that no foot in contact sees keep their own row. Of the others an orthonormal basis of the null space of ``J`` is taken, by
Gram and Schmidt in a fixed order: the six rows of the base first, then joints. So a row of the base becomes that of the base carried
by the legs that stand; a joint of a leg that stands has no row left unless its leg has more joints than its foot holds. Independent noise
of unit variance stays so.
"""

from __future__ import annotations

import numpy as np

from dynid.compiled import njit, njit_helper

_DEPENDENT = 1e-9
"""Part of a row of ``J`` that is left by others where it says nothing new."""
_SPENT = 1e-10
"""Square of the part of a unit vector that is left where the null space has no more of it."""


@njit_helper(nogil=True)
def _walk(q, parent, dof_start, rotation, translation, R, p) -> None:  # type: ignore[no-untyped-def]
    """Rotations and positions of all bodies in the frame of the first, whose own pose is left out."""
    for i in range(len(parent)):
        for r in range(3):
            p[i, r] = 0.0
            for c in range(3):
                R[i, r, c] = 1.0 if r == c else 0.0
        if i == 0:
            continue
        k = parent[i]
        angle = q[dof_start[i] + 1]
        co, si = np.cos(angle), np.sin(angle)
        for r in range(3):
            p[i, r] = p[k, r]
            for m in range(3):
                shift = (
                    translation[i, 0, m]
                    + co * translation[i, 1, m]
                    + si * translation[i, 2, m]
                    + angle * translation[i, 3, m]
                )
                p[i, r] += R[k, r, m] * shift
            for c in range(3):
                total = 0.0
                for m in range(3):
                    total += R[k, r, m] * (rotation[i, 0, m, c] + co * rotation[i, 1, m, c] + si * rotation[i, 2, m, c])
                R[i, r, c] = total


@njit_helper(nogil=True)
def _touched_point(q, R, p, i, place, radius, x) -> None:  # type: ignore[no-untyped-def]
    """Where a round foot touches level ground: a radius below its centre, in the axes of the base."""
    a, b, c, d = q[3], q[4], q[5], q[6]  # x, y, z, w
    up0, up1, up2 = 2.0 * (a * c - b * d), 2.0 * (b * c + a * d), 1.0 - 2.0 * (a * a + b * b)
    for r in range(3):
        x[r] = p[i, r] + R[i, r, 0] * place[0] + R[i, r, 1] * place[1] + R[i, r, 2] * place[2]
    x[0] -= radius * up0
    x[1] -= radius * up1
    x[2] -= radius * up2


@njit_helper(nogil=True)
def _foot_rows(J, first, size, body, x, R, p, parent, dof_start, screw) -> None:  # type: ignore[no-untyped-def]
    """Jacobian of a point ``x`` fixed to a body, in the axes of the base; of a flat foot its rotation too."""
    J[first : first + size] = 0.0
    for r in range(3):
        J[first + r, r] = 1.0
        if size == 6:
            J[first + 3 + r, 3 + r] = 1.0
    J[first, 4], J[first, 5] = x[2], -x[1]
    J[first + 1, 3], J[first + 1, 5] = -x[2], x[0]
    J[first + 2, 3], J[first + 2, 4] = x[1], -x[0]
    i = body
    while i > 0:
        d = dof_start[i]
        w, v, arm = np.zeros(3), np.zeros(3), np.zeros(3)
        for r in range(3):
            arm[r] = x[r] - p[i, r]
            for m in range(3):
                v[r] += R[i, r, m] * screw[d, m]
                w[r] += R[i, r, m] * screw[d, 3 + m]
        J[first, d] = v[0] + w[1] * arm[2] - w[2] * arm[1]
        J[first + 1, d] = v[1] + w[2] * arm[0] - w[0] * arm[2]
        J[first + 2, d] = v[2] + w[0] * arm[1] - w[1] * arm[0]
        if size == 6:
            for r in range(3):
                J[first + 3 + r, d] = w[r]
        i = parent[i]


@njit_helper(nogil=True)
def _without(x, basis, count, n) -> float:  # type: ignore[no-untyped-def]
    """Take from ``x`` what lies along some orthonormal rows, twice; the square of what is left."""
    for _ in range(2):
        for k in range(count):
            along = 0.0
            for d in range(n):
                along += basis[k, d] * x[d]
            for d in range(n):
                x[d] -= along * basis[k, d]
    left = 0.0
    for d in range(n):
        left += x[d] * x[d]
    return left


@njit(nogil=True)
def foot_jacobians(q, parent, dof_start, rotation, translation, screw, body, place, size, radius, out) -> None:  # type: ignore[no-untyped-def]
    """Jacobians of feet over samples, ``(samples, rows of all feet, velocities)``, in the axes of the base."""
    R, p, x = np.empty((len(parent), 3, 3)), np.empty((len(parent), 3)), np.empty(3)
    for s in range(len(q)):
        _walk(q[s], parent, dof_start, rotation, translation, R, p)
        first = 0
        for f in range(len(body)):
            i = body[f]
            _touched_point(q[s], R, p, i, place[f], radius[f], x)
            _foot_rows(out[s], first, size[f], i, x, R, p, parent, dof_start, screw)
            first += size[f]


@njit(nogil=True)
def project_rows(q, parent, dof_start, rotation, translation, screw, body, place, size, radius, contact, rows) -> None:  # type: ignore[no-untyped-def]
    """Rows ``(samples, velocities, columns)`` without the forces of feet whose ``contact`` is positive, in their place.

    A velocity that has no row left gets zeros.
    """
    n_dof, width = rows.shape[1], rows.shape[2]
    R, p, x = np.empty((len(parent), 3, 3)), np.empty((len(parent), 3)), np.empty(3)
    J = np.zeros((size.sum(), n_dof))
    basis = np.zeros((n_dof, n_dof))
    made = np.zeros((n_dof, width))
    seen, own = np.zeros(n_dof, dtype=np.bool_), np.empty(n_dof)
    for s in range(len(q)):
        _walk(q[s], parent, dof_start, rotation, translation, R, p)
        count, touching = 0, 0
        for f in range(len(body)):
            if contact[s, f] <= 0.0:
                continue
            i = body[f]
            _touched_point(q[s], R, p, i, place[f], radius[f], x)
            _foot_rows(J, touching, size[f], i, x, R, p, parent, dof_start, screw)
            touching += size[f]
        if touching == 0:
            continue
        for d in range(n_dof):
            seen[d] = False
            for k in range(touching):
                seen[d] = seen[d] or J[k, d] != 0.0
        for k in range(touching):
            length = 0.0
            for d in range(n_dof):
                own[d] = J[k, d]
                length += own[d] * own[d]
            left = _without(own, basis, count, n_dof)
            if left > _DEPENDENT * _DEPENDENT * length:
                for d in range(n_dof):
                    basis[count, d] = own[d] / np.sqrt(left)
                count += 1
        for d in range(n_dof):
            if not seen[d]:
                continue
            for k in range(n_dof):
                own[k] = 1.0 if k == d else 0.0
            left = _without(own, basis, count, n_dof)
            made[d] = 0.0
            if left <= _SPENT:
                continue
            for k in range(n_dof):
                basis[count, k] = own[k] / np.sqrt(left)
            for k in range(n_dof):
                z = basis[count, k]
                if z != 0.0:
                    for c in range(width):
                        made[d, c] += z * rows[s, k, c]
            count += 1
        for d in range(n_dof):
            if seen[d]:
                rows[s, d] = made[d]
