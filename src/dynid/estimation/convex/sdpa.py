"""The semidefinite program of a consistent fit as an SDPA sparse file, for any other solver.

    minimise c . y   subject to   y_1 F_1 + ... + y_m F_m - F_0 >= 0   (block diagonal)

with ``y = (u, x - centre)``: ``u`` bounds twice the objective by the block ``[[u, (F (x - centre))^T], [.., 1]]``
(Sousa 73), and ``phi = scale x``. Inequalities and equalities (both signs) share one diagonal block; a second-order cone
is an arrow matrix.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dynid.adapters.clarabel import cone_rows, triangle_entries
from dynid.arrays import Array
from dynid.errors import InputError
from dynid.estimation.convex.whitened import WhitenedFit

Entry = tuple[int, int, int, int, float]
"""Matrix, block, row, column (from 1, upper triangle) and value."""


def write_sdpa(fit: WhitenedFit, path: Path | str) -> Path:
    """Write the program; the header says how its variables become parameters."""
    target = Path(path)
    target.write_text(sdpa_text(fit), encoding="ascii")
    return target


def sdpa_text(fit: WhitenedFit) -> str:
    """The program as text."""
    if fit.entropic is not None:
        raise InputError("a log-determinant has no place in an SDPA file; choose a prior other than 'entropic'")
    consistent = fit.consistent
    rows = fit.F if not fit.pull.any() else np.vstack([fit.F, np.diag(np.sqrt(fit.pull))[fit.pull > 0.0]])
    sizes, entries = [len(rows) + 1], _objective_entries(rows)
    M = consistent.M.tocsr()
    k = consistent.M @ fit.centre + consistent.k
    linear: list[tuple[Array, Array, float]] = []
    blocks: list[tuple[int, list[Entry]]] = []
    for cone, first in zip(consistent.cones, consistent.starts, strict=False):
        kind, size = cone
        part = [
            (M.indices[M.indptr[r] : M.indptr[r + 1]], M.data[M.indptr[r] : M.indptr[r + 1]], float(k[r]))
            for r in range(first, first + cone_rows(cone))
        ]
        if kind in ("zero", "nonnegative"):
            linear += part
            if kind == "zero":
                linear += [(columns, -values, -offset) for columns, values, offset in part]
        elif kind == "second_order":
            places = [[(i, i) for i in range(size)], *([(0, i)] for i in range(1, size))]
            blocks.append((size, _matrix_entries(part, places, np.ones(size))))
        else:
            i, j, weight = triangle_entries(size)
            places = [[(int(a), int(b))] for a, b in zip(i, j, strict=True)]
            blocks.append((size, _matrix_entries(part, places, weight)))
    if linear:
        places = [[(i, i)] for i in range(len(linear))]
        sizes.append(-len(linear))
        entries += [(m, 2, r, c, v) for m, _, r, c, v in _matrix_entries(linear, places, np.ones(len(linear)))]
    for size, found in blocks:
        sizes.append(size)
        entries += [(m, len(sizes), r, c, v) for m, _, r, c, v in found]
    cost = " ".join(["1", *["0"] * consistent.n])
    lines = [
        *_header(fit),
        f"{consistent.n + 1}",
        f"{len(sizes)}",
        " ".join(str(size) for size in sizes),
        cost,
        *(f"{m} {b} {r} {c} {v:.17g}" for m, b, r, c, v in entries),
    ]
    return "\n".join(lines) + "\n"


def _header(fit: WhitenedFit) -> list[str]:
    """Comments: which variable is which parameter."""
    consistent = fit.consistent
    lines = ['"minimise y1; y1 is twice the objective; parameter = scale * (centre + y)']
    for i, name in enumerate(consistent.layout.names):
        lines.append(f'"y{i + 2} {name} scale {consistent.scale[i]:.17g} centre {fit.centre[i]:.17g}')
    return lines


def _objective_entries(rows: Array) -> list[Entry]:
    """``[[u, (F y)^T], [F y, 1]]``."""
    entries: list[Entry] = [(0, 1, i + 2, i + 2, -1.0) for i in range(len(rows))]
    entries.append((1, 1, 1, 1, 1.0))
    at, column = np.nonzero(rows)
    entries += [(int(c) + 2, 1, 1, int(r) + 2, float(v)) for r, c, v in zip(at, column, rows[at, column], strict=True)]
    return sorted(entries)


def _matrix_entries(
    part: list[tuple[Array, Array, float]], places: list[list[tuple[int, int]]], weight: Array
) -> list[Entry]:
    """Entries of one block whose places hold the rows over their weights."""
    entries: list[Entry] = []
    for (columns, values, offset), where, w in zip(part, places, weight, strict=True):
        for i, j in where:
            if offset != 0.0:
                entries.append((0, 0, i + 1, j + 1, -offset / float(w)))
            entries += [(int(c) + 2, 0, i + 1, j + 1, float(v / w)) for c, v in zip(columns, values, strict=True)]
    return sorted(entries)
