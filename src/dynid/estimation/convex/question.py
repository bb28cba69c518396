"""The question which feasible base values are nearest, and its least-squares form for the interior-point method."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.arrays import Array, IntArray
from dynid.estimation.convex.consistent_set import ConsistentSet, onto_equalities
from dynid.estimation.convex.interior_point import BlockProgram, InteriorSolution, interior_point, start_inside
from dynid.estimation.convex.newton_systems import ByRows

TOLERANCE = 1e-10
"""Gap relative to half the squared distance at which the iteration ends; it stops earlier where digits give out."""
SMALLEST = 1e-10
"""Part of the norm of the base values below which a distance counts as nothing."""


@dataclass(frozen=True, eq=False)
class Question:
    """Base values, the metric to measure them by, and the set."""

    consistent: ConsistentSet
    K: Array
    R: Array
    """Root of the metric."""
    beta: Array
    start: Array
    """Scaled parameters to begin from."""

    @cached_property
    def E(self) -> Array:
        """``K`` over scaled variables, hidden ones included."""
        E = np.zeros((len(self.K), self.consistent.n))
        E[:, : self.K.shape[1]] = self.K * self.consistent.scale[: self.K.shape[1]]
        return E

    @cached_property
    def length(self) -> float:
        """Of the base values, in the metric."""
        return max(float(np.linalg.norm(self.R @ self.beta)), 1e-300)

    @cached_property
    def unit(self) -> float:
        """Size of bodies with base values like these, in sizes of a link; at least what the constraints ask for."""
        smallest = onto_equalities(self.E, self.beta, np.zeros(self.consistent.n))
        return max(float(np.abs(smallest).max(initial=0.0)), float(np.abs(self.consistent.k).max(initial=0.0)), 1e-300)

    def distance(self, x: Array) -> float:
        return float(np.linalg.norm(self.R @ (self.E @ x - self.beta)))


@dataclass(frozen=True, eq=False)
class Projected:
    """``1/2 ||F x - f||^2 + q . x`` in units of bodies and base values, without variables in no cone and no constraint.

    Those follow the others by least squares: the rows are projected on what they cannot reach.
    """

    program: BlockProgram
    system: ByRows
    kept: IntArray
    free: IntArray
    F: Array
    f: Array
    reached: tuple[Array, Array, Array]
    """Singular vectors and values of the free columns."""
    across: Array
    """``(left, rows)``: orthonormal rows normal to them."""
    unit: float

    @classmethod
    def of(cls, program: BlockProgram, question: Question, rows: Array, q: Array) -> Projected:
        unit = question.unit
        program = replace(
            program,
            constant=program.constant / unit,
            bound_offset=program.bound_offset / unit,
            g=program.g / unit,
            a=program.a / unit,
        )
        F, f = question.R @ rows * (unit / question.length), question.R @ question.beta / question.length
        held = np.zeros(program.n, dtype=bool)
        held[program.slots[program.slots >= 0]] = True
        held[program.bounded] = True
        held |= (program.G != 0.0).any(axis=0) | (program.A != 0.0).any(axis=0)
        kept, free = np.flatnonzero(held), np.flatnonzero(~held)
        place = np.full(program.n, -1, dtype=np.int64)
        place[kept] = np.arange(len(kept))
        U, singular, right = np.linalg.svd(F[:, free], full_matrices=True)
        rank = int((singular > 1e-12 * singular.max(initial=0.0)).sum())
        smaller = replace(
            program,
            n=len(kept),
            slots=np.where(program.slots >= 0, place[program.slots], -1),
            bounded=place[program.bounded],
            G=program.G[:, kept],
            A=program.A[:, kept],
        )
        across = U[:, rank:].T
        system = ByRows(smaller, across @ F[:, kept], across @ f, q[kept])
        return cls(smaller, system, kept, free, F, f, (U[:, :rank], singular[:rank], right[:rank]), across, unit)

    def solve(self, start: Array) -> InteriorSolution:
        return interior_point(
            self.program,
            self.system,
            start_inside(self.program, start[self.kept] / self.unit, 1.0),
            tolerance=TOLERANCE,
            feasibility=1e-8,
            floor=0.5 * SMALLEST**2,
            iterations=100,
        )

    def whole(self, x: Array) -> Array:
        """All variables of the program given, in its own units."""
        full = np.zeros(len(self.kept) + len(self.free))
        full[self.kept] = x
        U, singular, right = self.reached
        full[self.free] = right.T @ ((U.T @ (self.f - self.F[:, self.kept] @ x)) / singular)
        return np.asarray(self.unit * full)

    def residual(self, x: Array) -> Array:
        """``F x - f`` over all rows, exactly normal to the free columns."""
        return np.asarray(self.across.T @ (self.across @ (self.F[:, self.kept] @ x - self.f)))
