"""The set of consistent parameters in scaled coordinates.

With the sizes ``D = diag(m, m l, m l^2)`` of each link, ``phi = D x``, and ``T = diag(l, l, l, 1) sqrt(m)``,

    P(phi) = T P(x) T,

so the matrix inequality of every link has the same coefficients, entries of size one, and a margin that is relative to the
link:  P(x_k) - margin 1 >= 0  (4x4, full condition) or Sousa's 6x6 matrix (17) in its place (plain condition). Problem data
are assembled once, as sparse triplets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import scipy.linalg
import scipy.sparse as sparse

from dynid.arrays import Array, IntArray, check_positive, freeze
from dynid.errors import UnknownNameError
from dynid.estimation.consistency.conic_solver import Cone, cone_rows, matrix_from_rows, triangle_entries
from dynid.estimation.constraints.base import ConeRows, Constraint, Layout
from dynid.model.inertia import CONDITIONS, PLAIN_BASIS, PSEUDO_BASIS
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot

Sparse: TypeAlias = Any

MARGIN = 1e-6
"""Smallest eigenvalue asked for, relative to the link's own size, or in SI units where that is not known."""
ON_BOUNDARY = 1e-9
"""How far outside a scaled condition a solver's answer still counts as on its boundary."""
KEPT = 1e-6
"""How far outside, relative to a link's size, still counts as kept: files state some six digits."""
BASES = {"full": PSEUDO_BASIS, "plain": PLAIN_BASIS}
"""Matrices of the ten parameters by condition."""


@dataclass(frozen=True, eq=False)
class LinearRows:
    """The linear rows of a set, dense, with where they stand among the rows of its cones."""

    bounded: IntArray
    """Variables ``x`` with a bound ``slope x + offset >= 0``."""
    slope: Array
    offset: Array
    bound_at: IntArray
    G: Array
    """``G x + g >= 0``"""
    g: Array
    inequality_at: IntArray
    A: Array
    """``A x = a``"""
    a: Array
    equality_at: IntArray

    @property
    def lower_bounded(self) -> IntArray:
        """Variables with a lower bound of their own, ``slope > 0``."""
        return self.bounded[self.slope > 0.0]


@dataclass(frozen=True, eq=False)
class ConsistentSet:
    """``M x + k`` in a product of cones, for scaled parameters ``x = phi / scale``."""

    layout: Layout
    condition: str
    margin: float
    scale: Array
    M: Sparse
    k: Array
    cones: tuple[Cone, ...]
    labels: tuple[str, ...]
    """What each cone stands for."""
    constrained: bool
    """Whether there is more than consistency of the links and signs of single parameters."""

    @classmethod
    def of(
        cls,
        layout: Layout,
        *,
        condition: str = "full",
        margin: float = MARGIN,
        absolute: bool = False,
        constraints: Iterable[Constraint] = (),
        prior: Parameters | None = None,
        scale: Array | None = None,
        links: Sequence[int] | None = None,
    ) -> ConsistentSet:
        """Assemble the set.

        ``margin`` is relative to each link's size in ``prior`` (or ``scale``), in SI units without one or with ``absolute``.
        ``links`` restricts consistency to some rows of the layout.
        """
        _check(condition, margin)
        size = layout.scale(prior) if scale is None else scale
        rows = [part for constraint in constraints for part in constraint.rows(layout)]
        order = {"zero": 0, "nonnegative": 1, "second_order": 2}
        rows.sort(key=lambda part: order[part.cone])
        pieces = [_scaled_rows(part, size, margin if absolute else 0.0) for part in rows]
        cones: list[Cone] = [(part.cone, len(part.offset)) for part in rows]
        chosen = np.arange(len(layout.links)) if links is None else np.asarray(links, dtype=np.int64)
        pieces.append(_matrix_inequalities(layout, chosen, condition, margin, size if absolute else None))
        side = BASES[condition].shape[1]
        cones += [("semidefinite", side)] * len(chosen)
        labels = [part.label for part in rows] + [f"consistency of link {layout.links[i]}" for i in chosen]
        # ``M`` and ``k`` of all rows, one piece below the other.
        start = np.concatenate([[0], np.cumsum([len(offset) for *_, offset in pieces])])
        M = sparse.csc_matrix(
            (
                np.concatenate([value for _, _, value, _ in pieces]),
                (
                    np.concatenate([row + first for (row, *_), first in zip(pieces, start, strict=False)]),
                    np.concatenate([column for _, column, _, _ in pieces]),
                ),
            ),
            shape=(int(start[-1]), len(layout)),
        )
        k = np.concatenate([offset for *_, offset in pieces])
        more = any(part.cone != "nonnegative" or len(part.value) != len(part.offset) for part in rows)
        return cls(layout, condition, margin, freeze(size), M, freeze(k), tuple(cones), tuple(labels), more)

    @property
    def n(self) -> int:
        return len(self.layout)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """First row of every cone."""
        return tuple(np.concatenate([[0], np.cumsum([cone_rows(cone) for cone in self.cones])]).astype(int).tolist())

    @cached_property
    def inward(self) -> Array:
        """The unit of every cone: ones, ``(1, 0, ..)``, the identity; zero for equalities."""
        unit = np.zeros(self.starts[-1])
        for (kind, size), first in zip(self.cones, self.starts, strict=False):
            if kind == "nonnegative":
                unit[first : first + size] = 1.0
            elif kind == "second_order":
                unit[first] = 1.0
            elif kind == "semidefinite":
                row, column, _ = triangle_entries(size)
                unit[first : first + len(row)] = (row == column).astype(float)
        return unit

    @cached_property
    def matrix_rows(self) -> tuple[int, int, int]:
        """First row, number and side of the matrix inequalities, which stand last."""
        count = sum(kind == "semidefinite" for kind, _ in self.cones)
        return (self.starts[len(self.cones) - count], count, self.cones[-1][1]) if count else (self.starts[-1], 0, 4)

    @property
    def first_matrix_row(self) -> int:
        """Where the matrix inequalities begin."""
        return self.matrix_rows[0]

    def slacks(self, x: Array) -> Array:
        """How far inside every cone: smallest row, ``head - ||tail||`` or eigenvalue; minus the error of an equality."""
        rows = self.M @ x + self.k
        first, count, side = self.matrix_rows
        found = []
        for (kind, size), start in zip(self.cones[: len(self.cones) - count], self.starts, strict=False):
            part = rows[start : start + size]
            if kind == "zero":
                found.append(-np.abs(part).max())
            elif kind == "nonnegative":
                found.append(part.min())
            else:
                found.append(part[0] - np.linalg.norm(part[1:]))
        if count:
            found.extend(np.linalg.eigvalsh(matrix_from_rows(rows[first:].reshape(count, -1), side))[:, 0])
        return np.array(found)

    @cached_property
    def linear(self) -> LinearRows:
        """Bounds of single variables, inequalities, equalities."""
        first = self.first_matrix_row
        dense = self.M[:first].toarray() if first else np.zeros((0, self.n))
        bounded: list[int] = []
        at: dict[str, list[int]] = {"bound": [], "nonnegative": [], "zero": []}
        for (kind, size), start in zip(self.cones, self.starts, strict=False):
            for row in range(start, start + size) if kind in at else ():
                entries = np.flatnonzero(dense[row])
                single = kind == "nonnegative" and len(entries) == 1
                at["bound" if single else kind].append(row)
                bounded += entries.tolist() if single else []
        bound, more, equal = (np.array(at[kind], dtype=np.int64) for kind in ("bound", "nonnegative", "zero"))
        column = np.array(bounded, dtype=np.int64)
        slope, offset = dense[bound, column], self.k[bound]
        return LinearRows(column, slope, offset, bound, dense[more], self.k[more], more, dense[equal], -self.k[equal], equal)

    def size(self, x: Array) -> float:
        """All bodies together, in sizes of a link: the sum of the traces of their matrices."""
        trace = np.trace(BASES[self.condition], axis1=1, axis2=2)
        return float((x[self.layout.slots] @ trace).sum())

    def contains(self, x: Array, tolerance: float = 0.0) -> bool:
        """Whether every cone holds, equalities to ``ON_BOUNDARY``."""
        slacks = self.slacks(x)
        allowed = np.array([max(tolerance, ON_BOUNDARY) if kind == "zero" else tolerance for kind, _ in self.cones])
        return bool((slacks >= -allowed).all())

    def pushed(self, x: Array) -> tuple[Array, float]:
        """The point with every link and sign inside its condition, and how far it had to move (scaled).

        A link outside by ``d`` gets ``d`` times the body whose matrix is the identity; single parameters below their bound
        are set on it.
        """
        new = np.array(x)
        rows = self.M @ new + self.k
        linear, low = self.linear, self.linear.slope > 0.0
        new[linear.lower_bounded] += np.maximum(-rows[linear.bound_at[low]], 0.0) / linear.slope[low]
        first, count, side = self.matrix_rows
        if count:
            rows = self.M @ new + self.k
            eigenvalues = np.linalg.eigvalsh(matrix_from_rows(rows[first:].reshape(count, -1), side))[:, 0]
            # a little more than what is missing, so that the next look does not find round-off outside
            missing = np.where(eigenvalues < 0.0, -eigenvalues + 1e-14, 0.0)
            columns = self.layout.slots[self.link_rows]
            new[columns] += missing[:, None] * unit_body(self.condition)
        return new, float(np.abs(new - x).max(initial=0.0))

    def active_constraints(self, dual: Array, share: float = 0.01) -> tuple[str, ...]:
        """Labels of the conditions that carry an infeasibility, by its multipliers: constraints before consistency, heaviest first."""
        weights = np.array([np.linalg.norm(dual[a:b]) for a, b in zip(self.starts[:-1], self.starts[1:], strict=True)])
        if not weights.size or weights.max() == 0.0:
            return ()
        natural = np.array([kind == "semidefinite" for kind, _ in self.cones])
        order = np.lexsort((-weights, natural))
        least = share * weights.max()
        return tuple(dict.fromkeys(self._label(int(i), dual, least) for i in order if weights[i] > least))

    def _label(self, cone: int, dual: Array, least: float) -> str:
        """What a cone stands for; of signs of several effects those that count."""
        label, ending = self.labels[cone], " not negative"
        if not label.endswith(ending):
            return label
        first, last = self.starts[cone], self.starts[cone + 1]
        rows = first + np.flatnonzero(dual[first:last] > least)
        names = [self.layout.names[column] for column in self.M[rows].tocsr().indices]
        return f"{', '.join(names)}{ending}" if names else label

    @cached_property
    def link_rows(self) -> IntArray:
        """ConeRows of the layout that must be consistent."""
        numbers = [int(label.rsplit(" ", 1)[1]) for label in self.labels if label.startswith("consistency of link ")]
        return np.array([self.layout.links.index(number) for number in numbers], dtype=np.int64)


Triplets: TypeAlias = tuple[IntArray, IntArray, Array, Array]
"""ConeRows, columns, values and offsets."""


def _check(condition: str, margin: float) -> None:
    """Refuse a condition that nobody knows, and a margin that no link can have."""
    if condition not in CONDITIONS:
        raise UnknownNameError("consistency condition", condition, CONDITIONS)
    check_positive("margin", margin, or_zero=True)


def _scaled_rows(part: ConeRows, size: Array, margin: float) -> Triplets:
    """Triplets over scaled variables; rows are normalised, those of a second-order cone together."""
    value = part.value * size[part.column]
    n = len(part.offset)
    norms = np.sqrt(np.bincount(part.row, value**2, minlength=n))
    if part.cone == "second_order":
        norms[:] = norms.max()
    norms[norms == 0.0] = 1.0
    offset = part.offset - (margin if part.strict else 0.0)
    return part.row, part.column, value / norms[part.row], offset / norms


def _matrix_inequalities(
    layout: Layout, links: IntArray, condition: str, margin: float, absolute_size: Array | None
) -> Triplets:
    """``P(x_k) - margin 1`` of every link as triplets, with ``margin / T^2`` for an absolute margin."""
    basis = BASES[condition]
    side = basis.shape[1]
    row, column, weight = triangle_entries(side)
    coefficients = (basis[:, row, column] * weight).T  # (rows, 10)
    i, j = np.nonzero(coefficients)
    count = len(row)
    blocks = np.arange(len(links))[:, None] * count
    diagonal = (row == column).astype(float)
    offset = np.tile(-margin * diagonal, (len(links), 1))
    if absolute_size is not None:
        sizes = absolute_size[layout.slots[links]]
        # second moments or moments of inertia take three rows of the diagonal, the mass the others
        squares = np.column_stack([np.repeat(sizes[:, 9:10], 3, axis=1), np.repeat(sizes[:, :1], side - 3, axis=1)])
        offset = -margin * diagonal / squares[:, row]
    return (
        (blocks + i).ravel(),
        layout.slots[links][:, j].ravel(),
        np.tile(coefficients[i, j], len(links)),
        offset.ravel(),
    )


def unit_body(condition: str) -> Array:
    """The scaled parameters whose matrix is the identity."""
    moment = 2.0 if condition == "full" else 1.0
    return np.array([1.0, 0.0, 0.0, 0.0, moment, 0.0, moment, 0.0, 0.0, moment])


def onto_equalities(E: Array, e: Array, x: Array) -> Array:
    """The point nearest to ``x`` with ``E x = e``."""
    step = scipy.linalg.lstsq(E, e - E @ x, lapack_driver="gelsy")[0]
    x = x + step
    # once more, so that the equalities hold to round-off
    return np.asarray(x + scipy.linalg.lstsq(E, e - E @ x, lapack_driver="gelsy")[0])


def cannot_hold(labels: Iterable[str]) -> tuple[str, ...]:
    """Notes on the conditions that contradict one another."""
    return tuple(f"cannot hold together with the rest: {label}" for label in labels)


def violated_constraints(robot: Robot, constraints: Sequence[Constraint]) -> tuple[str, ...]:
    """Labels of the constraints that do not hold for a robot's bodies, those merged into one counted together.

    Examples:
        >>> import dynid
        >>> from dynid.estimation.consistency.consistent_set import violated_constraints
        >>> robot = dynid.demo_robot()
        >>> violated_constraints(robot, [dynid.TotalMass(upper=10.0), dynid.MassBounds("hand", upper=1.0)])
        ('total mass <= 10',)
    """
    parameters = robot.parameters
    layout = Layout.of_parameters(parameters, robot.links)
    held = ConsistentSet.of(layout, constraints=constraints, margin=0.0, links=[], prior=parameters)
    slacks = held.slacks(parameters.values / held.scale) if held.cones else np.zeros(0)
    return tuple(dict.fromkeys(label for label, slack in zip(held.labels, slacks, strict=True) if slack < -KEPT))
