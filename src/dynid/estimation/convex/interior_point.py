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

from dataclasses import dataclass, field, replace
from functools import cached_property
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

    @cached_property
    def _offsets(self) -> Array:
        return np.concatenate([self.bound_offset, self.g])

    @cached_property
    def _nothing(self) -> Array:
        return np.zeros_like(self.constant)

    @property
    def degree(self) -> int:
        """Of the barrier: what the gap is divided by."""
        return int(self.slots.shape[0] * self.basis.shape[2]) + len(self.bounded) + len(self.g)

    def blocks(self, x: Array, homogeneous: bool = False) -> Array:
        """``S_b(x)``, without the constant if ``homogeneous``."""
        out = np.empty_like(self.constant)
        block_values(x, self.slots, self.basis, self._nothing if homogeneous else self.constant, out)
        return out

    def adjoint(self, matrices: Array, linear: Array) -> Array:
        """``S^*(M) + (bounds, G)^T linear``: the gradient of what multipliers weigh."""
        bounds = len(self.bounded)
        out = self.G.T @ linear[bounds:] if len(self.g) else np.zeros(self.n)
        add_adjoint(matrices, self.slots, self.basis, 1.0, out)
        np.add.at(out, self.bounded, self.bound_slope * linear[:bounds])
        return out

    def linear(self, x: Array, homogeneous: bool = False) -> Array:
        """Bounds and inequalities, one after the other."""
        bounds = self.bound_slope * x[self.bounded]
        at = np.concatenate([bounds, self.G @ x]) if len(self.g) else bounds
        return at if homogeneous else at + self._offsets


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

    def moved(self, move: Iterate, reach: float) -> Iterate:
        """This point after ``reach`` times a step."""
        return Iterate(
            self.x + reach * move.x,
            self.S + reach * move.S,
            self.Z + reach * move.Z,
            self.s + reach * move.s,
            self.z + reach * move.z,
            self.nu + reach * move.nu,
        )


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
    path: tuple[tuple[float, Iterate], ...]
    """Every iterate with its gap relative to its value."""

    def before(self, gap: float) -> Iterate:
        """The iterate before the relative gap first fell below ``gap``: nearer to the centre of the cones."""
        below = [i for i, (relative, _) in enumerate(self.path) if relative <= gap]
        return self.path[max(below[0] - 1, 0) if below else self.iterations][1]


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
) -> InteriorSolution:
    """Iterate until the gap is below ``tolerance`` times the value and the residuals are below ``feasibility``.

    A value below ``floor`` counts as nothing, and ends it too.
    """
    now, best, largest = start, None, 0.0
    path: list[tuple[float, Iterate]] = []
    for count in range(iterations + 1):
        left = _Residuals.of(program, system, now)
        largest = max(left.scale, largest)
        gap, value = now.complementarity, abs(system.value(now.x))
        path.append((gap / max(value, 1e-300), now))
        dual = float(np.abs(left.dual).max(initial=0.0)) / max(left.scale, 1e-10 * largest)
        found = InteriorSolution("solved", now.x, now.Z, now.z, now.nu, gap, dual, left.primal, count, ())
        if left.primal <= feasibility and (value <= floor or (dual <= feasibility and gap <= tolerance * value)):
            return replace(found, path=tuple(path))
        if best is None or _merit(found) < _merit(best):
            best = found
        step = _step(program, system, now, left) if count < iterations else None
        if step is None:
            break
        now = step
    assert best is not None
    return replace(best, end="stalled", path=tuple(path))


def centre(program: BlockProgram, system: NewtonSystem, start: Iterate, steps: int = 8) -> Iterate:
    """A point near the central path with the gap of ``start``, with the least dual residual on the way: round-off if all is well."""
    now = best = start
    mu = now.complementarity / max(program.degree, 1)
    least = np.inf
    for _ in range(steps):
        left = _Residuals.of(program, system, now)
        error = float(np.abs(left.dual).max(initial=0.0)) + left.primal * left.scale
        if error < least:
            best, least = now, error
        newton = _Newton.at(program, system, now, left)
        if newton is None:
            break
        move = newton.direction(mu)
        reach = min(1.0, 0.9 * _reach(now, move, 1.2))
        if not (np.isfinite(move.x).all() and reach > 1e-3):
            break
        now = now.moved(move, reach)
    return best


def _merit(found: InteriorSolution) -> float:
    return found.gap * (1.0 + 1e6 * (found.dual_residual + found.primal_residual))


@dataclass(frozen=True, eq=False)
class _Residuals:
    """What is left of the optimality conditions."""

    dual: Array
    blocks: Array
    linear: Array
    equalities: Array
    scale: float
    """Largest entry of the gradient and of what the multipliers make of it."""
    primal: float
    """Largest entry of the others, relative to the slacks."""

    @classmethod
    def of(cls, program: BlockProgram, system: NewtonSystem, now: Iterate) -> _Residuals:
        gradient = system.gradient(now.x)
        pulled = program.adjoint(now.Z, now.z)
        dual = gradient - pulled
        if len(program.a):
            dual -= program.A.T @ now.nu
        blocks = program.blocks(now.x) - now.S
        linear = program.linear(now.x) - now.s
        equalities = program.a - program.A @ now.x if len(program.a) else program.a
        size = max(1.0, float(now.S.max(initial=0.0)), float(now.s.max(initial=0.0)))
        primal = max(float(np.abs(part).max(initial=0.0)) for part in (blocks, linear, equalities)) / size
        scale = max(float(np.abs(gradient).max(initial=0.0)), float(np.abs(pulled).max(initial=0.0)), 1e-300)
        return cls(dual, blocks, linear, equalities, scale, primal)


@dataclass(frozen=True, eq=False)
class _Newton:
    """The linear system at an iterate, factored."""

    program: BlockProgram
    system: NewtonSystem
    now: Iterate
    left: _Residuals
    inverse: Array
    shift: Array
    """``sym(S^-1 R Z)`` of the blocks' residual ``R``."""
    weights: Array

    @classmethod
    def at(cls, program: BlockProgram, system: NewtonSystem, now: Iterate, left: _Residuals) -> _Newton | None:
        inverse = np.empty_like(now.S)
        if not inverses(now.S, inverse) or not system.factor(now, inverse):
            return None
        shift = np.empty_like(now.S)
        symmetric_products(inverse, left.blocks, now.Z, shift)
        return cls(program, system, now, left, inverse, shift, now.z / now.s)

    def direction(self, target: float, after: Iterate | None = None) -> Iterate:
        """The step to complementarity ``target``, with the second-order terms of a step ``after`` it taken off."""
        now, left = self.now, self.left
        wanted = target * self.inverse - now.Z - self.shift
        linear = target / now.s - now.z - self.weights * left.linear
        if after is not None:
            product = np.empty_like(wanted)
            symmetric_products(self.inverse, after.S, after.Z, product)
            wanted -= product
            linear -= after.s * after.z / now.s
        dx, dnu = self.system.solve(self.program.adjoint(wanted, linear) - left.dual, left.equalities)
        dS = self.program.blocks(dx, homogeneous=True) + left.blocks
        ds = self.program.linear(dx, homogeneous=True) + left.linear
        product = np.empty_like(dS)
        symmetric_products(self.inverse, dS, now.Z, product)
        dZ = wanted + self.shift - product
        dz = linear + self.weights * (left.linear - ds)
        return Iterate(dx, dS, dZ, ds, dz, dnu)


def _step(program: BlockProgram, system: NewtonSystem, now: Iterate, left: _Residuals) -> Iterate | None:
    """Mehrotra's predictor and corrector; None where the arithmetic gives out."""
    newton = _Newton.at(program, system, now, left)
    if newton is None:
        return None
    degree = max(program.degree, 1)
    mu = now.complementarity / degree
    ahead = newton.direction(0.0)
    if not np.isfinite(ahead.x).all():
        return None
    reach = _reach(now, ahead, 1.0)
    ratio = max(now.moved(ahead, reach).complementarity, 0.0) / degree / max(mu, 1e-300)
    centring = min(max(ratio**3, 1e-6), 1.0) if reach > 0.1 else max(ratio, 0.5)
    move = newton.direction(centring * mu, ahead)
    if not np.isfinite(move.x).all():
        return None
    reach = min(1.0, TO_THE_BOUNDARY * _reach(now, move, 1.0 / TO_THE_BOUNDARY))
    return now.moved(move, reach) if reach > 1e-9 else None


def _reach(now: Iterate, move: Iterate, most: float) -> float:
    """The longest common step that stays inside all cones."""
    reach = longest_step(now.S, move.S, longest_step(now.Z, move.Z, most))
    for value, change in ((now.s, move.s), (now.z, move.z)):
        falling = change < 0.0
        if falling.any():
            reach = min(reach, float((-value[falling] / change[falling]).min()))
    return reach
