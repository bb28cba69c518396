"""A primal-dual interior-point method for convex quadratic programs over many small semidefinite blocks.

    minimise  1/2 ||F x - f||^2 + q . x - sum_b w_b log det S_b(x)
    subject to  S_b(x) >= 0,   lower bounds  c_i x_i + b_i >= 0,   G x + g >= 0,   A x = a

Directions are those of Helmberg, Rendl, Vanderbei, Kojima and Monteiro with Mehrotra's second-order correction: with
``dS = S(dx) + residual`` and ``dZ = mu S^-1 - Z - sym(S^-1 dS Z) - correction`` one linear system in ``dx`` is left,

    (F^T F + D) dx = ...,      D_b[a, c] = <B_a, sym(S^-1 B_c Z)>,

where ``mu`` goes to zero, but in a block with a logarithm stays at its weight: that is its optimality condition. The
system is solved by the rows of ``F`` (:class:`dynid.estimation.consistency.block_program.RowSystem`).

What one iteration costs at least, in multiplications, for ``n`` parameters in ``L`` blocks of ten and ``m`` rows: ``m^2 n / 2 + m^3 / 6``
for the system, about 4,000 ``L`` for the blocks, ``4 n^2`` for two solves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from dynid.arrays import Array
from dynid.estimation.consistency.block_kernels import inverses, longest_step, symmetric_products
from dynid.estimation.consistency.block_program import BlockProgram, Iterate, RowSystem

TO_THE_BOUNDARY = 0.98
"""Share of the longest step that is taken."""
CENTRED = 1e-4
"""Part of its weight to which a logarithm's block is centred; the value is off by the square of it."""


@dataclass(frozen=True, eq=False)
class InteriorSolution:
    """Where the iteration ended; every point of it is strictly inside the cones."""

    end: Literal["solved", "stalled"]
    last: Iterate
    """The point and its multipliers."""
    gap: float
    """Complementarity: primal less dual value, as far as the residuals are zero."""
    dual_residual: float
    """Largest entry of the gradient of the Lagrangian, relative to the largest of its terms."""
    primal_residual: float
    iterations: int
    path: tuple[tuple[float, Iterate], ...]
    """Every iterate with its gap relative to its value."""

    @property
    def x(self) -> Array:
        return self.last.x

    @property
    def merit(self) -> float:
        """What makes one end better than another: the gap, and what is left of the optimality conditions."""
        return self.gap * (1.0 + 1e6 * (self.dual_residual + self.primal_residual))

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
    system: RowSystem,
    start: Iterate,
    *,
    tolerance: float = 1e-9,
    feasibility: float = 1e-9,
    floor: float = 0.0,
    least_gap: float = 0.0,
    iterations: int = 80,
) -> InteriorSolution:
    """Iterate until the gap is below ``tolerance`` times the value, or ``least_gap``, and the residuals are below ``feasibility``.

    A value below ``floor`` counts as nothing, and ends it too.
    """
    now, best, largest = start, None, 0.0
    path: list[tuple[float, Iterate]] = []
    for count in range(iterations + 1):
        newton = _Newton(system, now)
        largest = max(newton.scale, largest)
        gap, value = system.program.gap(now), abs(system.value(now.x))
        path.append((gap / max(value, 1e-300), now))
        dual = float(np.abs(newton.dual).max(initial=0.0)) / max(newton.scale, 1e-10 * largest)
        found = InteriorSolution("solved", now, gap, dual, newton.primal, count, ())
        near = dual <= feasibility and newton.centrality <= CENTRED and gap <= max(tolerance * value, least_gap)
        if newton.primal <= feasibility and (value <= floor or near):
            return replace(found, path=tuple(path))
        if best is None or found.merit < best.merit:
            best = found
        step = newton.step() if count < iterations else None
        if step is None:
            break
        now = step
    assert best is not None
    return replace(best, end="stalled", path=tuple(path))


def centre(system: RowSystem, start: Iterate, steps: int = 8) -> Iterate:
    """A point near the central path with the gap of ``start``, with the least dual residual on the way: round-off if all is well."""
    now = best = start
    mu = system.program.gap(now) / system.program.degree
    least = np.inf
    for _ in range(steps):
        newton = _Newton(system, now)
        error = float(np.abs(newton.dual).max(initial=0.0)) + newton.primal * newton.scale
        if error < least:
            best, least = now, error
        if not newton.factor():
            break
        move = newton.direction(mu)
        reach = min(1.0, 0.9 * _reach(now, move, 1.2))
        if not (np.isfinite(move.x).all() and reach > 1e-3):
            break
        now = now.moved(move, reach)
    return best


class _Newton:
    """What is left of the optimality conditions at an iterate, and the linear system of the step that takes it away."""

    def __init__(self, system: RowSystem, now: Iterate) -> None:
        self.system, self.now, program = system, now, system.program
        gradient = system.gradient(now.x)
        pulled = program.adjoint(now.Z, now.z)
        self.dual = gradient - pulled
        if len(program.a):
            self.dual -= program.A.T @ now.nu
        self.blocks = program.blocks(now.x) - now.S
        self.linear = program.linear(now.x) - now.s
        self.equalities = program.a - program.A @ now.x if len(program.a) else program.a
        # the largest entry of the gradient and of what the multipliers make of it
        self.scale = max(float(np.abs(gradient).max(initial=0.0)), float(np.abs(pulled).max(initial=0.0)), 1e-300)
        size = max(1.0, float(now.S.max(initial=0.0)), float(now.s.max(initial=0.0)))
        left = (self.blocks, self.linear, self.equalities)
        # blocks with a logarithm: what S Z misses of w 1
        weight = program.log_weight[:, None, None]
        missed = np.where(weight > 0.0, now.S @ now.Z - weight * np.eye(now.S.shape[1]), 0.0)
        self.centrality = float(np.abs(missed).max(initial=0.0)) / max(float(weight.max(initial=0.0)), 1e-300)
        self.primal = max(float(np.abs(part).max(initial=0.0)) for part in left) / size

    def factor(self) -> bool:
        """Factor the system; False where the arithmetic gives out."""
        now = self.now
        self._inverse = np.empty_like(now.S)
        if not inverses(now.S, self._inverse) or not self.system.factor(now):
            return False
        self._shift = np.empty_like(now.S)  # sym(S^-1 R Z) of the blocks' residual R
        symmetric_products(self._inverse, self.blocks, now.Z, self._shift)
        self._weights = now.z / now.s
        return True

    def direction(self, target: float, after: Iterate | None = None) -> Iterate:
        """The step to complementarity ``target``, with the second-order terms of a step ``after`` it taken off."""
        now, program = self.now, self.system.program
        targets = np.maximum(program.log_weight, target)
        wanted = targets[:, None, None] * self._inverse - now.Z - self._shift
        linear = target / now.s - now.z - self._weights * self.linear
        if after is not None:
            product = np.empty_like(wanted)
            symmetric_products(self._inverse, after.S, after.Z, product)
            wanted -= product
            linear -= after.s * after.z / now.s
        dx, dnu = self.system.solve(program.adjoint(wanted, linear) - self.dual, self.equalities)
        dS = program.blocks(dx, homogeneous=True) + self.blocks
        ds = program.linear(dx, homogeneous=True) + self.linear
        product = np.empty_like(dS)
        symmetric_products(self._inverse, dS, now.Z, product)
        dZ = wanted + self._shift - product
        dz = linear + self._weights * (self.linear - ds)
        return Iterate(dx, dS, dZ, ds, dz, dnu)

    def step(self) -> Iterate | None:
        """The next iterate by Mehrotra's predictor and corrector; None where the arithmetic gives out."""
        if not self.factor():
            return None
        now, program = self.now, self.system.program
        mu = program.gap(now) / program.degree
        ahead = self.direction(0.0)
        if not np.isfinite(ahead.x).all():
            return None
        reach = _reach(now, ahead, 1.0)
        ratio = max(program.gap(now.moved(ahead, reach)), 0.0) / program.degree / max(mu, 1e-300)
        centring = min(max(ratio**3, 1e-6), 1.0) if reach > 0.1 else max(ratio, 0.5)
        move = self.direction(centring * mu, ahead)
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
