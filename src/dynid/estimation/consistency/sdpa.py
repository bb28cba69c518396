"""The semidefinite programs of Sousa and Cortesao as SDPA sparse files, for any other solver.

    minimise c . y   subject to   y_1 F_1 + ... + y_m F_m - F_0 >= 0   (block diagonal)

    FBPE, BPFC   y = (u, x - centre): u bounds twice the objective by the block [[u, (F (x - centre))^T], [.., 1]]  (73, 61)
    BPFT         y = (-t, x - centre): t is the slack that all conditions have in common; feasible if it can be zero  (58)

and ``phi = scale x``. Inequalities and equalities (both signs) share one diagonal block; a second-order cone is an arrow matrix.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray
from dynid.errors import InputError
from dynid.estimation.consistency.conic_solver import cone_rows, triangle_entries
from dynid.estimation.consistency.consistent_set import MARGIN, ConsistentSet
from dynid.estimation.consistency.correction import Metric, metric_root
from dynid.estimation.consistency.fit_problem import ConsistentFit
from dynid.estimation.consistency.nearest_feasible import NearestFeasibleProblem
from dynid.estimation.constraints.base import Constraint
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot
from dynid.regression.base import BaseReduction

Entry = tuple[int, int, int, int, float]
"""Matrix, block, row, column (from 1, upper triangle) and value."""
LinearRow = tuple[IntArray, Array, float]
"""Columns, values and offset."""


@dataclass(frozen=True, eq=False)
class SdpaProgram:
    """One of the three programs: ``rows`` of the objective, or none where the common slack is maximised."""

    consistent: ConsistentSet
    centre: Array
    rows: Array | None
    equalities: Array
    """``E (x - centre) = 0``"""
    title: str


def feasibility_program(
    base: BaseReduction,
    beta: ArrayLike,
    condition: str = "full",
    constraints: Iterable[Constraint] = (),
    margin: float = MARGIN,
    *,
    absolute: bool = False,
    prior: Parameters | None = None,
    robot: Robot | None = None,
    effects_positive: bool = True,
) -> SdpaProgram:
    """BPFT of :func:`~dynid.estimation.consistency.feasibility.feasibility`, for :func:`write_sdpa`."""
    problem = NearestFeasibleProblem.of(
        base,
        beta,
        condition=condition,
        constraints=constraints,
        margin=margin,
        absolute=absolute,
        prior=prior,
        robot=robot,
        effects_positive=effects_positive,
    )
    title = "minimise y1; -y1 is the slack that all conditions have in common, feasible if it is not negative"
    return SdpaProgram(problem.consistent, problem.reference, None, problem.E, title)


def correction_program(
    base: BaseReduction,
    beta: ArrayLike,
    condition: str = "full",
    metric: Metric = "base",
    constraints: Iterable[Constraint] = (),
    margin: float = MARGIN,
    *,
    absolute: bool = False,
    prior: Parameters | None = None,
    robot: Robot | None = None,
    gram: ArrayLike | None = None,
    effects_positive: bool = True,
) -> SdpaProgram:
    """BPFC of :func:`~dynid.estimation.consistency.correction.closest_feasible`, for :func:`write_sdpa`."""
    problem = NearestFeasibleProblem.of(
        base,
        beta,
        condition=condition,
        constraints=constraints,
        margin=margin,
        absolute=absolute,
        prior=prior,
        robot=robot,
        effects_positive=effects_positive,
        R=metric_root(base, metric, robot, gram),
    )
    nothing = np.zeros((0, problem.consistent.n))
    title = "minimise y1; y1 is the squared distance"
    return SdpaProgram(problem.consistent, problem.reference, problem.R @ problem.E, nothing, title)


def estimation_program(fit: ConsistentFit) -> SdpaProgram:
    """FBPE of a fit (:meth:`dynid.estimation.methods.sdp.FeasibleSDP.whiten`)."""
    if fit.entropic is not None:
        raise InputError("a log-determinant has no place in an SDPA file; choose a prior other than 'entropic'")
    rows = fit.F if not fit.pull.any() else np.vstack([fit.F, np.diag(np.sqrt(fit.pull))[fit.pull > 0.0]])
    nothing = np.zeros((0, fit.consistent.n))
    return SdpaProgram(fit.consistent, fit.centre, rows, nothing, "minimise y1; y1 is twice the objective")


def write_sdpa(program: SdpaProgram | ConsistentFit, path: Path | str) -> Path:
    """Write a semidefinite program in SDPA format, for other solvers; the header says how its variables become parameters.

    Args:
        program: of :func:`feasibility_program` (BPFT), :func:`correction_program` (BPFC), or the fit of an estimate (FBPE).
        path: file to write.

    Returns:
        the file.

    Examples:
        >>> import dynid
        >>> from dynid.estimation.linear import LinearProblem
        >>> robot = dynid.demo_robot(effects="none")
        >>> base = dynid.reduce_to_base(robot)
        >>> data = dynid.build_regression(robot, dynid.demo_samples(robot))
        >>> fit = dynid.FeasibleSDP().whiten(LinearProblem.of(data, base, robot.parameters))
        >>> dynid.write_sdpa(fit, "fbpe.dat-s").name
        'fbpe.dat-s'
        >>> beta = base.base_values(robot.parameters.values)
        >>> dynid.write_sdpa(feasibility_program(base, beta), "bpft.dat-s").name
        'bpft.dat-s'
        >>> dynid.write_sdpa(correction_program(base, -beta), "bpfc.dat-s").name
        'bpfc.dat-s'
    """
    target = Path(path)
    target.write_text(sdpa_text(program), encoding="ascii")
    return target


def sdpa_text(program: SdpaProgram | ConsistentFit) -> str:
    """The program as text."""
    given = estimation_program(program) if isinstance(program, ConsistentFit) else program
    consistent = given.consistent
    linear, blocks = _constraints(given)
    sizes: list[int] = []
    entries: list[Entry] = []
    if given.rows is not None:
        # ``[[u, (F y)^T], [F y, 1]]``
        n, (at, column) = len(given.rows), np.nonzero(given.rows)
        sizes.append(n + 1)
        values = zip(at, column, given.rows[at, column], strict=True)
        products: list[Entry] = [(int(c) + 2, 1, 1, int(r) + 2, float(v)) for r, c, v in values]
        entries += sorted([(1, 1, 1, 1, 1.0), *((0, 1, i + 2, i + 2, -1.0) for i in range(n)), *products])
    if linear:
        sizes.append(-len(linear))
        found = _matrix_entries(linear, [[(i, i)] for i in range(len(linear))], np.ones(len(linear)))
        entries += [(m, len(sizes), r, c, v) for m, _, r, c, v in found]
    for size, found in blocks:
        sizes.append(size)
        entries += [(m, len(sizes), r, c, v) for m, _, r, c, v in found]
    lines = [
        f'"{given.title}; parameter = scale * (centre + y)',
        *(
            f'"y{i + 2} {name} scale {consistent.scale[i]:.17g} centre {given.centre[i]:.17g}'
            for i, name in enumerate(consistent.layout.names)
        ),
        f"{consistent.n + 1}",
        f"{len(sizes)}",
        " ".join(str(size) for size in sizes),
        " ".join(["1", *["0"] * consistent.n]),
        *(f"{m} {b} {r} {c} {v:.17g}" for m, b, r, c, v in entries),
    ]
    return "\n".join(lines) + "\n"


def _constraints(program: SdpaProgram) -> tuple[list[LinearRow], list[tuple[int, list[Entry]]]]:
    """Rows of the diagonal block and the entries of the others, over ``y = (.., x - centre)``; column -1 is ``y_1``."""
    consistent = program.consistent
    M = consistent.M.tocsr()
    k = consistent.M @ program.centre + consistent.k
    # with y1 = -t every condition gets +y1 times its unit
    unit = consistent.inward if program.rows is None else np.zeros(len(k))

    def row(r: int) -> LinearRow:
        columns, values = M.indices[M.indptr[r] : M.indptr[r + 1]], M.data[M.indptr[r] : M.indptr[r + 1]]
        if unit[r] != 0.0:
            columns, values = np.append(columns, -1), np.append(values, unit[r])
        return columns, values, float(k[r])

    linear: list[LinearRow] = []
    blocks: list[tuple[int, list[Entry]]] = []
    for E in program.equalities:
        columns = np.flatnonzero(E)
        linear += [(columns, E[columns], 0.0), (columns, -E[columns], 0.0)]
    for cone, first in zip(consistent.cones, consistent.starts, strict=False):
        kind, size = cone
        part = [row(r) for r in range(first, first + cone_rows(cone))]
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
    return linear, blocks


def _matrix_entries(part: list[LinearRow], places: list[list[tuple[int, int]]], weight: Array) -> list[Entry]:
    """Entries of one block whose places hold the rows over their weights."""
    entries: list[Entry] = []
    for (columns, values, offset), where, w in zip(part, places, weight, strict=True):
        for i, j in where:
            if offset != 0.0:
                entries.append((0, 0, i + 1, j + 1, -offset / float(w)))
            entries += [(int(c) + 2, 0, i + 1, j + 1, float(v / w)) for c, v in zip(columns, values, strict=True)]
    return sorted(entries)
