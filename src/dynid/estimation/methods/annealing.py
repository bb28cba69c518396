"""Algorithm 1 of Gaz and others (2019): penalties, simulated annealing, a local solver, step by step with a growing weight.

    p_0 = LB + (UB - LB) u,    xi_1 = 0
    p_k = argmin || pi(p) - pi_hat ||^2 + xi_k sum_i g(h_i(p)),    LB <= p <= UB,    started from p_(k-1)

over ``p = (m, c, I)`` of every link, the inertia about the centre of mass (26, 27). The penalties ``g`` are distances
``-min(0, h)``: ``tr(I)/2 - lambda_max(I)`` of every link (16), the total mass (30), and whatever else is known. Annealing is
SciPy's; each step ends with a local solver that takes the penalties as constraints.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from threading import Event
from typing import Any

import numpy as np

from dynid.arrays import Array, BoolArray
from dynid.estimation.constraints.base import Layout
from dynid.estimation.constraints.bounds import phi_from_box
from dynid.estimation.constraints.conditions import Condition
from dynid.estimation.methods.retrieval_search import Candidate, Interrupted, RetrievalProblem

_ROW = np.array([0, 0, 1, 0, 1, 2])
_COLUMN = np.array([0, 1, 1, 2, 2, 2])
_PARALLEL = np.array(
    [  # I_a gains m c^T Q_a c: Q of Ixx, Ixy, Iyy, Ixz, Iyz, Izz
        np.diag([0.0, 1.0, 1.0]),
        -0.5 * (np.eye(3)[:, [1, 0, 2]] * [1.0, 1.0, 0.0]),
        np.diag([1.0, 0.0, 1.0]),
        -0.5 * (np.eye(3)[:, [2, 1, 0]] * [1.0, 0.0, 1.0]),
        -0.5 * (np.eye(3)[:, [0, 2, 1]] * [0.0, 1.0, 1.0]),
        np.diag([1.0, 1.0, 0.0]),
    ]
)
TRIANGLE_MARGIN = 1e-3
"""Room left to the triangle inequality, relative to the margin of the consistent set's own eigenvalues."""


def box_jacobian(layout: Layout, p: Array) -> Array:
    """``d phi / d (m, c, I)`` of every link, ``(links, 10, 10)``."""
    rows = p[layout.slots]
    m, c = rows[:, 0], rows[:, 1:4]
    Qc = np.einsum("aij,lj->lai", _PARALLEL, c)
    J = np.zeros((len(rows), 10, 10))
    J[:, 0, 0] = 1.0
    J[:, 1:4, 0] = c
    J[:, 4:, 0] = np.einsum("lai,li->la", Qc, c)
    J[:, [1, 2, 3], [1, 2, 3]] = m[:, None]
    J[:, 4:, 1:4] = 2.0 * m[:, None, None] * Qc
    J[:, np.arange(4, 10), np.arange(4, 10)] = 1.0
    return J


def triangle_slacks(layout: Layout, p: Array) -> tuple[Array, Array]:
    """``tr(I)/2 - lambda_max(I)`` of every link (16) and its derivative by the six entries of the tensor."""
    values, vectors = np.linalg.eigh(_tensors(layout, p))
    v = vectors[:, :, 2]
    slope = 0.5 * np.eye(3) - v[:, :, None] * v[:, None, :]
    twice = np.where(_ROW == _COLUMN, 1.0, 2.0)
    return 0.5 * values.sum(axis=1) - values[:, 2], slope[:, _ROW, _COLUMN] * twice


def _triangle(layout: Layout, p: Array) -> Array:
    """The same without the derivative."""
    values = np.linalg.eigvalsh(_tensors(layout, p))
    return np.asarray(0.5 * values.sum(axis=1) - values[:, 2])


def _tensors(layout: Layout, p: Array) -> Array:
    entries = p[layout.slots[:, 4:]]
    tensors = np.empty((len(entries), 3, 3))
    tensors[:, _ROW, _COLUMN] = entries
    tensors[:, _COLUMN, _ROW] = entries
    return tensors


@dataclass(frozen=True, eq=False)
class Penalised:
    """The penalised cost over the unit box ``u = (p - LB) / (UB - LB)``."""

    problem: RetrievalProblem
    lower: Array
    width: Array
    xi: float

    @cached_property
    def _conditions(self) -> tuple[Condition, ...]:
        """Conditions that the box itself does not guarantee."""
        bounds = {condition.name for condition in self.problem.bounds.conditions()}
        return tuple(condition for condition in self.problem.conditions if condition.name not in bounds)

    @cached_property
    def _linear(self) -> tuple[Array, Array, BoolArray]:
        """Rows of the inequalities and equalities that the box does not guarantee, dense, and which are equalities."""
        consistent = self.problem.consistent
        known = self.problem.bounds.guaranteed_by_box(consistent.layout)
        chosen = [
            np.arange(start, start + size)
            for (kind, size), start, label in zip(consistent.cones, consistent.starts, consistent.labels, strict=False)
            if kind in ("zero", "nonnegative") and label not in known
        ]
        rows = np.concatenate(chosen) if chosen else np.zeros(0, dtype=np.int64)
        equalities = sum(size for kind, size in consistent.cones if kind == "zero")
        return consistent.M[rows].toarray(), consistent.k[rows], rows < equalities  # equalities stand first

    @cached_property
    def _discs(self) -> tuple[tuple[Array, Array], ...]:
        """Second-order cones, dense."""
        consistent = self.problem.consistent
        return tuple(
            (consistent.M[start : start + size].toarray(), consistent.k[start : start + size])
            for (kind, size), start in zip(consistent.cones, consistent.starts, strict=False)
            if kind == "second_order"
        )

    @cached_property
    def _room(self) -> Array:
        """Slack asked of each link's triangle: the margin on its pseudo-inertia, in SI units, and a little more."""
        consistent = self.problem.consistent
        sizes = consistent.scale[consistent.layout.slots]
        return np.asarray((1.0 + TRIANGLE_MARGIN) * consistent.margin * sizes[:, 9])

    def point(self, u: Array) -> tuple[Array, Array]:
        """``p`` and scaled ``x``."""
        p = self.lower + self.width * u
        return p, phi_from_box(self.problem.consistent.layout, p) / self.problem.consistent.scale

    def _to_box(self, rows: Array, p: Array) -> Array:
        """Gradients over ``u``, one per row, from such over scaled ``x``."""
        layout = self.problem.consistent.layout
        out = rows / self.problem.consistent.scale
        out[:, layout.slots] = np.einsum("lij,rli->rlj", box_jacobian(layout, p), out[:, layout.slots])
        return np.asarray(out * self.width)

    def cost(self, u: Array) -> tuple[float, Array]:
        """``phi(p)`` and its gradient."""
        p, x = self.point(u)
        residual = self.problem.G @ (x - self.problem.centre)
        value = self.problem.floor + float(residual @ residual)
        return value, np.asarray(self._to_box(2.0 * (self.problem.G.T @ residual)[None], p)[0])

    def slacks(self, u: Array) -> tuple[Array, Array]:
        """``h_i(p)``, negative where violated, and their Jacobian over ``u``; equalities as ``-|r|``."""
        p, x = self.point(u)
        layout = self.problem.consistent.layout
        triangle, slope = triangle_slacks(layout, p)
        gradients = np.zeros((len(triangle), len(p)))
        np.put_along_axis(gradients, layout.slots[:, 4:], slope * self.width[layout.slots[:, 4:]], axis=1)
        M, k, equal = self._linear
        r = M @ x + k
        sign = np.where(equal, -np.sign(r), 1.0)
        values, rows = [sign * r], [sign[:, None] * M]
        for A, b in self._discs:
            y = A @ x + b
            length = max(float(np.linalg.norm(y[1:])), 1e-300)
            values.append(np.array([y[0] - length]))
            rows.append((A[0] - (y[1:] / length) @ A[1:])[None])
        phi, D = self.problem.phi(x), self.problem.consistent.scale
        for condition in self._conditions:
            h, slopes, _ = condition.derivative(layout, phi, D)
            values.append(-h)
            rows.append(-slopes * D)
        over_box = self._to_box(np.vstack(rows), p)
        return np.concatenate([triangle - self._room, *values]), np.vstack([gradients, over_box])

    def _penalty_at(self, p: Array, x: Array) -> float:
        layout = self.problem.consistent.layout
        total = float(np.minimum(_triangle(layout, p) - self._room, 0.0).sum())
        M, k, equal = self._linear
        r = M @ x + k
        total += float(np.where(equal, -np.abs(r), np.minimum(r, 0.0)).sum())
        for A, b in self._discs:
            y = A @ x + b
            total += min(0.0, float(y[0] - np.linalg.norm(y[1:])))
        phi = self.problem.phi(x)
        for condition in self._conditions:
            total -= float(np.maximum(condition.values(layout, phi), 0.0).sum())
        return -total

    def penalty(self, u: Array) -> float:
        """``sum_i g(h_i(p))``."""
        return self._penalty_at(*self.point(u))

    def value(self, u: Array) -> float:
        """``f(p)`` of (29)."""
        p, x = self.point(u)
        cost = self.problem.cost(x)
        return cost + self.xi * self._penalty_at(p, x) if self.xi else cost

    def gradient(self, u: Array) -> Array:
        """Of ``f(p)``, a subgradient at the kinks."""
        _, slope = self.cost(u)
        if self.xi:
            h, rows = self.slacks(u)
            slope = slope - self.xi * rows[h < 0.0].sum(axis=0)
        return np.asarray(slope)


class _Watched:
    """``f(p)`` that remembers the best point of a step and ends with an interrupt where it is told to stop."""

    def __init__(self, f: Penalised, stop: Event | None) -> None:
        self.f, self.stop = f, stop
        self.u: Array | None = None
        self.value = np.inf

    def __call__(self, u: Array) -> float:
        if self.stop is not None and self.stop.is_set():
            raise KeyboardInterrupt
        value = self.f.value(u)
        if value < self.value:
            self.u, self.value = np.array(u), value
        return value


def anneal(
    problem: RetrievalProblem,
    seed: np.random.SeedSequence,
    *,
    steps: int,
    growth: float,
    iterations: int,
    stop: Event | None = None,
) -> Candidate:
    """Algorithm 1 from one random start; an interrupt carries the best so far."""
    from scipy.optimize import dual_annealing

    rng = np.random.default_rng(seed)
    lower, upper = problem.bounds.box(problem.consistent.layout, problem.consistent.scale)
    width = upper - lower
    u = rng.uniform(size=len(lower))
    best: Candidate | None = None
    trace: list[tuple[float, float]] = []
    for k in range(1, steps + 1):
        f = Penalised(problem, lower, width, growth * (k - 1))
        watched = _Watched(f, stop)
        box = [(0.0, 1.0)] * len(u)
        local: Any = {"method": "L-BFGS-B", "jac": f.gradient, "bounds": box, "options": {"maxiter": 500}}
        try:
            searched = dual_annealing(watched, box, maxiter=iterations, x0=u, rng=rng, minimizer_kwargs=local)
            u = np.asarray(searched.x)
            if f.xi:  # without penalties the search has its own local solver
                u = _local(f, u)
        except KeyboardInterrupt:
            u = u if watched.u is None else watched.u
            raise Interrupted(_better(best, _at(problem, f, u, trace))) from None
        best = _better(best, _at(problem, f, u, trace))
    assert best is not None
    return replace(best, steps=tuple(trace))


def _at(problem: RetrievalProblem, f: Penalised, u: Array, trace: list[tuple[float, float]]) -> Candidate:
    """What a step ended with; the trace gains its cost and penalty."""
    x = problem.settled(f.point(u)[1])
    found = problem.candidate(x)
    trace.append((found.cost, f.penalty(u)))
    return replace(found, steps=tuple(trace))


def _better(best: Candidate | None, found: Candidate) -> Candidate:
    if best is None or (not found.holds, found.cost) < (not best.holds, best.cost):
        return found
    return best


def _local(f: Penalised, u: Array) -> Array:
    """The local solver: the cost under the penalties as constraints, inside the box; what it was given if (29) gets no better."""
    from scipy.optimize import minimize

    unit = 1.0 / max(f.cost(u)[0] - f.problem.floor, 1e-12)

    def scaled_cost(v: Array) -> float:
        return unit * (f.cost(v)[0] - f.problem.floor)

    def scaled_gradient(v: Array) -> Array:
        return unit * f.cost(v)[1]

    solver: Any = minimize
    constraints = {"type": "ineq", "fun": lambda v: f.slacks(v)[0], "jac": lambda v: f.slacks(v)[1]}
    found = solver(
        scaled_cost,
        u,
        jac=scaled_gradient,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(u),
        constraints=constraints,
        options={"maxiter": 300, "ftol": 1e-9},
    )
    new = np.clip(np.asarray(found.x), 0.0, 1.0)
    return new if np.isfinite(new).all() and f.value(new) < f.value(u) else u
