"""A primal-dual interior-point method for convex quadratic programs over many small semidefinite blocks.

    minimise  1/2 ||F x - f||^2 + 1/2 x^T P x + q . x
    subject to  S_b(x) >= 0,   lower bounds  c_i x_i + b_i >= 0,   G x + g >= 0,   A x = a

Directions are those of Helmberg, Rendl, Vanderbei, Kojima and Monteiro with Mehrotra's second-order correction: with
``dS = S(dx) + residual`` and ``dZ = mu S^-1 - Z - sym(S^-1 dS Z) - correction`` one linear system in ``dx`` is left,

    (P + F^T F + D) dx = ...,      D_b[a, c] = <B_a, sym(S^-1 B_c Z)>.

It is solved in one of two ways (:mod:`dynid.estimation.convex.newton_systems`): by the parameters, where ``P`` holds them all,
or by the rows of ``F``, which does not square the condition number and needs nothing to hold what no row sees.

What one iteration costs at least, in multiplications, for ``n`` parameters in ``L`` blocks of ten: ``n^3 / 6`` for the Cholesky
factor (by rows, ``m`` of them: ``m^2 n / 2 + m^3 / 6``), about 4,000 ``L`` for the blocks, ``4 n^2`` for two solves. At 5e9
multiplications a second and 13 iterations that is a floor of 0.3, 4 and 55 ms for 7, 20 and 50 links (``n`` 70, 200, 500).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

import numpy as np

from dynid.arrays import Array, IntArray
from dynid.estimation.convex.block_kernels import (
    add_adjoint,
    block_values,
    inverses,
    longest_step,
    symmetric_products,
)

End: TypeAlias = Literal["solved", "stalled", "infeasible"]

TO_THE_BOUNDARY = 0.98
"""Share of the longest step that is taken."""


def _none(*shape: int) -> Array:
    return np.zeros(shape)


@dataclass(frozen=True, eq=False)
class BlockProgram:
    """The constraints: blocks, lower bounds of single variables, inequalities, equalities."""

    n: int
    slots: IntArray
    """``(blocks, width)``: the variable of each basis matrix; below zero where there is none."""
    basis: Array
    """``(blocks, width, side, side)``"""
    constant: Array
    """``(blocks, side, side)``"""
    bounded: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Variables with a lower bound ``bound_slope x + bound_offset >= 0``."""
    bound_slope: Array = field(default_factory=lambda: _none(0))
    bound_offset: Array = field(default_factory=lambda: _none(0))
    G: Array = field(default_factory=lambda: _none(0, 0))
    g: Array = field(default_factory=lambda: _none(0))
    A: Array = field(default_factory=lambda: _none(0, 0))
    a: Array = field(default_factory=lambda: _none(0))

    def __post_init__(self) -> None:
        for name in ("G", "A"):
            if not len(getattr(self, name)):
                object.__setattr__(self, name, np.zeros((0, self.n)))

    @property
    def degree(self) -> int:
        """Of the barrier: what the gap is divided by."""
        return self.slots.shape[0] * self.basis.shape[2] + len(self.bounded) + len(self.g)

    def blocks(self, x: Array, homogeneous: bool = False) -> Array:
        """``S_b(x)``, without the constant if ``homogeneous``."""
        out = np.empty_like(self.constant)
        constant = np.zeros_like(self.constant) if homogeneous else self.constant
        block_values(np.ascontiguousarray(x), self.slots, self.basis, constant, out)
        return out

    def adjoint(self, matrices: Array, bounds: Array, rows: Array) -> Array:
        """``S^*(M) + bounds + G^T rows``: the gradient of what multipliers weigh."""
        out = self.G.T @ rows
        add_adjoint(np.ascontiguousarray(matrices), self.slots, self.basis, 1.0, out)
        np.add.at(out, self.bounded, self.bound_slope * bounds)
        return out

    def linear(self, x: Array, homogeneous: bool = False) -> Array:
        """Bounds and inequalities, one after the other."""
        at = np.concatenate([self.bound_slope * x[self.bounded], self.G @ x])
        return at if homogeneous else at + np.concatenate([self.bound_offset, self.g])


@dataclass(frozen=True, eq=False)
class Iterate:
    """A point of the iteration."""

    x: Array
    S: Array
    Z: Array
    s: Array
    z: Array
    nu: Array

    @property
    def complementarity(self) -> float:
        return float(np.vdot(self.S, self.Z) + self.s @ self.z)


class NewtonSystem(Protocol):
    """The objective, and the linear system of one iteration."""

    def gradient(self, x: Array) -> Array: ...

    def value(self, x: Array) -> float: ...

    def factor(self, now: Iterate, inverse: Array) -> bool:
        """Take an iterate and the inverses of its blocks; False where the system is singular."""

    def solve(self, right: Array, equalities: Array) -> tuple[Array, Array]:
        """``dx`` and the change of the equalities' multipliers for ``H dx - A^T dnu = right``, ``A dx = equalities``."""


@dataclass(frozen=True, eq=False)
class InteriorSolution:
    """Where the iteration ended; every point of it is strictly inside the cones."""

    end: End
    x: Array
    Z: Array
    """Multipliers of the blocks."""
    z: Array
    """Multipliers of bounds and inequalities."""
    nu: Array
    gap: float
    """Complementarity: primal less dual value, as far as the residuals are zero."""
    dual_residual: float
    """Largest entry of the gradient of the Lagrangian, relative to the largest of its terms."""
    primal_residual: float
    iterations: int
    centred: Iterate
    """The last iterate whose gap was above ``keep`` times the value: nearer to the centre of the cones."""


def start_inside(program: BlockProgram, x: Array, weight: float) -> Iterate:
    """An iterate around ``x`` whose slacks are large enough to be safely inside, multipliers of the size of ``weight``."""
    side = program.basis.shape[2]
    S = program.blocks(x)
    eye = np.eye(side)
    low = np.linalg.eigvalsh(S)[:, 0] if len(S) else np.zeros(0)
    size = np.maximum(np.abs(np.trace(S, axis1=1, axis2=2)) / side, 1.0) if len(S) else np.ones(0)
    lift = np.where(low < 1e-2 * size, size - np.minimum(low, 0.0), 0.0)
    S = S + lift[:, None, None] * eye
    s = program.linear(x)
    s = np.maximum(s, np.maximum(1e-2 * np.abs(s), 1.0) if len(s) else s)
    Z = np.tile(weight * eye, (len(S), 1, 1))
    return Iterate(np.array(x), S, Z, s, np.full(len(s), weight), np.zeros(len(program.a)))


def interior_point(
    program: BlockProgram,
    system: NewtonSystem,
    start: Iterate,
    *,
    tolerance: float = 1e-9,
    feasibility: float = 1e-9,
    floor: float = 0.0,
    iterations: int = 80,
    keep: float = 1e-2,
) -> InteriorSolution:
    """Iterate until the gap is below ``tolerance`` times the value and the residuals are below ``feasibility``.

    A value below ``floor`` counts as nothing, and ends it too.
    """
    now, best = start, None
    largest = 0.0
    centred = start
    for count in range(iterations + 1):
        gradient = system.gradient(now.x)
        pulled = program.adjoint(now.Z, now.z[: len(program.bounded)], now.z[len(program.bounded) :])
        held = program.A.T @ now.nu
        r_dual = gradient - pulled - held
        R = program.blocks(now.x) - now.S
        r_lin = program.linear(now.x) - now.s
        r_eq = program.a - program.A @ now.x
        gap, value = now.complementarity, abs(system.value(now.x))
        if gap > keep * value:
            centred = now
        scale = max(np.abs(gradient).max(initial=0.0), np.abs(pulled).max(initial=0.0), 1e-300)
        largest = max(scale, largest)
        scale = max(scale, 1e-10 * largest)
        size = max(1.0, float(np.abs(now.S).max(initial=0.0)), float(np.abs(now.s).max(initial=0.0)))
        dual = float(np.abs(r_dual).max(initial=0.0)) / scale
        primal = max(np.abs(R).max(initial=0.0), np.abs(r_lin).max(initial=0.0), np.abs(r_eq).max(initial=0.0)) / size
        found = InteriorSolution("solved", now.x, now.Z, now.z, now.nu, gap, dual, primal, count, centred)
        if primal <= feasibility and (value <= floor or (dual <= feasibility and gap <= tolerance * value)):
            return found
        if best is None or _merit(found) < _merit(best):
            best = found
        step = _step(program, system, now, r_dual, R, r_lin, r_eq) if count < iterations else None
        if step is None:
            break
        now = step
    assert best is not None
    return InteriorSolution(
        "stalled",
        best.x,
        best.Z,
        best.z,
        best.nu,
        best.gap,
        best.dual_residual,
        best.primal_residual,
        best.iterations,
        best.centred,
    )


def _merit(found: InteriorSolution) -> float:
    return found.gap * (1.0 + 1e6 * (found.dual_residual + found.primal_residual))


def _step(
    program: BlockProgram, system: NewtonSystem, now: Iterate, r_dual: Array, R: Array, r_lin: Array, r_eq: Array
) -> Iterate | None:
    """The next iterate; None where the arithmetic gives out."""
    n_bounds = len(program.bounded)
    inverse = np.empty_like(now.S)
    if not inverses(now.S, inverse):
        return None
    if not system.factor(now, inverse):
        return None
    weights = now.z / now.s
    mu = now.complementarity / max(program.degree, 1)
    shift = np.empty_like(now.S)
    symmetric_products(inverse, np.ascontiguousarray(R), now.Z, shift)

    def direction(target: float, correction: Array | None, linear_correction: Array | None) -> tuple[Array, ...]:
        wanted = target * inverse - now.Z - shift
        linear = target / now.s - now.z - weights * r_lin
        if correction is not None and linear_correction is not None:
            wanted = wanted - correction
            linear = linear - linear_correction / now.s
        right = program.adjoint(wanted, linear[:n_bounds], linear[n_bounds:]) - r_dual
        dx, dnu = system.solve(right, r_eq)
        dS = program.blocks(dx, homogeneous=True) + R
        ds = program.linear(dx, homogeneous=True) + r_lin
        product = np.empty_like(dS)
        symmetric_products(inverse, dS, now.Z, product)
        dZ = wanted + shift - product
        dz = linear + weights * r_lin - weights * ds
        return dx, dS, dZ, ds, dz, dnu

    dx, dS, dZ, ds, dz, dnu = direction(0.0, None, None)
    if not np.isfinite(dx).all():
        return None
    reach = _reach(now, dS, dZ, ds, dz, 1.0)
    after = float(np.vdot(now.S + reach * dS, now.Z + reach * dZ) + (now.s + reach * ds) @ (now.z + reach * dz))
    ratio = max(after, 0.0) / max(program.degree, 1) / max(mu, 1e-300)
    centring = min(max(ratio**3, 1e-6), 1.0) if reach > 0.1 else max(ratio, 0.5)
    correction = np.empty_like(now.S)
    symmetric_products(inverse, dS, dZ, correction)
    dx, dS, dZ, ds, dz, dnu = direction(centring * mu, correction, ds * dz)
    if not np.isfinite(dx).all():
        return None
    reach = min(1.0, TO_THE_BOUNDARY * _reach(now, dS, dZ, ds, dz, 1.0 / TO_THE_BOUNDARY))
    if reach < 1e-9:
        return None
    return Iterate(
        now.x + reach * dx,
        now.S + reach * dS,
        now.Z + reach * dZ,
        now.s + reach * ds,
        now.z + reach * dz,
        now.nu + reach * dnu,
    )


def _reach(now: Iterate, dS: Array, dZ: Array, ds: Array, dz: Array, most: float) -> float:
    """The longest common step that stays inside all cones."""
    reach = longest_step(now.S, dS, longest_step(now.Z, dZ, most))
    for value, change in ((now.s, ds), (now.z, dz)):
        falling = change < 0.0
        if falling.any():
            reach = min(reach, float((-value[falling] / change[falling]).min()))
    return reach
