"""Algorithm 1 of Gaz and others (2019): penalties, simulated annealing, a local solver, step by step with a growing weight.

    p_0 = LB + (UB - LB) u,    xi_1 = 0
    p_k = argmin || pi(p) - pi_hat ||^2 + xi_k sum_i g(h_i(p)),    LB <= p <= UB,    started from p_(k-1)

over ``p = (m, c, I)`` of every link, the inertia about the centre of mass (26, 27). The penalties ``g`` are distances
``-min(0, h)``: ``tr(I)/2 - lambda_max(I)`` of every link (16), the total mass (30), and whatever else is known. Annealing is
SciPy's; each step ends with a local solver that takes the penalties as constraints.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.arrays import Array, IntArray
from dynid.estimation.conditions import Condition, NameAtMost
from dynid.estimation.layout import Layout
from dynid.estimation.retrieval_problem import RetrievalProblem
from dynid.inertia import PSEUDO_BASIS

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


def phi_from_box(layout: Layout, p: Array) -> tuple[Array, Array]:
    """``phi`` from ``(m, c, I)`` in the order of ``phi`` (26), and the 10x10 Jacobian of every link."""
    rows = p[layout.slots]
    m, c, inertia = rows[:, 0], rows[:, 1:4], rows[:, 4:]
    Qc = np.einsum("aij,lj->lai", _PARALLEL, c)
    square = np.einsum("lai,li->la", Qc, c)
    J = np.zeros((len(rows), 10, 10))
    J[:, 0, 0] = 1.0
    J[:, 1:4, 0] = c
    J[:, 4:, 0] = square
    J[:, [1, 2, 3], [1, 2, 3]] = m[:, None]
    J[:, 4:, 1:4] = 2.0 * m[:, None, None] * Qc
    J[:, np.arange(4, 10), np.arange(4, 10)] = 1.0
    phi = np.array(p)
    phi[layout.slots] = np.column_stack([m, m[:, None] * c, inertia + m[:, None] * square])
    return phi, J


def box_from_phi(layout: Layout, phi: Array) -> Array:
    """The inverse: ``(m, c, I)`` from ``phi``."""
    rows = phi[layout.slots]
    m = rows[:, :1]
    c = rows[:, 1:4] / m
    p = np.array(phi)
    p[layout.slots] = np.hstack([m, c, rows[:, 4:] - m * np.einsum("aij,li,lj->la", _PARALLEL, c, c)])
    return p


def triangle_slacks(layout: Layout, p: Array) -> tuple[Array, Array]:
    """``tr(I)/2 - lambda_max(I)`` of every link (16) and its derivative by the six entries of the tensor."""
    entries = p[layout.slots][:, 4:]
    tensors = np.empty((len(entries), 3, 3))
    tensors[:, _ROW, _COLUMN] = entries
    tensors[:, _COLUMN, _ROW] = entries
    values, vectors = np.linalg.eigh(tensors)
    v = vectors[:, :, 2]
    slope = 0.5 * np.eye(3) - v[:, :, None] * v[:, None, :]
    twice = np.where(_ROW == _COLUMN, 1.0, 2.0)
    return 0.5 * values.sum(axis=1) - values[:, 2], slope[:, _ROW, _COLUMN] * twice


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
        return tuple(c for c in self.problem.conditions if not isinstance(c.violation, NameAtMost))

    @cached_property
    def _linear(self) -> tuple[Array, Array, IntArray]:
        """Rows of the inequalities and equalities, dense, and which of them are equalities."""
        consistent = self.problem.consistent
        kinds = np.repeat(
            [kind for kind, _ in consistent.cones if kind != "semidefinite"],
            [size for kind, size in consistent.cones if kind != "semidefinite"],
        )
        first = np.flatnonzero(np.isin(kinds, ["zero", "nonnegative"]))
        return consistent.M[first].toarray(), consistent.k[first], np.flatnonzero(kinds[first] == "zero")

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

    def point(self, u: Array) -> tuple[Array, Array, Array]:
        """``p``, scaled ``x`` and the Jacobian of ``phi`` by links."""
        p = self.lower + self.width * u
        phi, J = phi_from_box(self.problem.consistent.layout, p)
        return p, phi / self.problem.consistent.scale, J

    def _to_box(self, gradient_x: Array, J: Array) -> Array:
        """Gradient over ``u`` from one over scaled ``x``."""
        layout, D = self.problem.consistent.layout, self.problem.consistent.scale
        g = gradient_x / D
        out = np.array(g)
        out[layout.slots] = np.einsum("lij,li->lj", J, g[layout.slots])
        return np.asarray(out * self.width)

    def cost(self, u: Array) -> tuple[float, Array]:
        """``phi(p)`` and its gradient."""
        _, x, J = self.point(u)
        residual = self.problem.G @ (x - self.problem.centre)
        return self.problem.floor + float(residual @ residual), self._to_box(2.0 * self.problem.G.T @ residual, J)

    def slacks(self, u: Array) -> tuple[Array, Array]:
        """``h_i(p)``, negative where violated, and their Jacobian over ``u``; equalities as ``-|r|``."""
        p, x, J = self.point(u)
        layout = self.problem.consistent.layout
        triangle, slope = triangle_slacks(layout, p)
        gradients = np.zeros((len(triangle), len(p)))
        np.put_along_axis(gradients, layout.slots[:, 4:], slope * self.width[layout.slots[:, 4:]], axis=1)
        values, rows = [triangle - self._room], [gradients]
        M, k, equal = self._linear
        r = M @ x + k
        sign = np.ones(len(r))
        sign[equal] = -np.sign(r[equal])
        values.append(sign * r)
        rows.append(np.array([self._to_box(row, J) for row in sign[:, None] * M]).reshape(len(r), len(p)))
        for A, b in self._discs:
            y = A @ x + b
            length = max(float(np.linalg.norm(y[1:])), 1e-300)
            values.append(np.array([y[0] - length]))
            rows.append(self._to_box(A[0] - (y[1:] / length) @ A[1:], J)[None])
        phi, D = self.problem.phi(x), self.problem.consistent.scale
        for condition in self._conditions:
            h, slopes, _ = condition.derivative(layout, phi, D)
            values.append(-h)
            rows.append(np.array([self._to_box(-row * D, J) for row in slopes]))
        return np.concatenate(values), np.vstack(rows)

    def penalty(self, u: Array) -> float:
        """``sum_i g(h_i(p))`` without derivatives, which annealing does not need."""
        p, x, _ = self.point(u)
        layout = self.problem.consistent.layout
        total = float(np.minimum(triangle_slacks(layout, p)[0] - self._room, 0.0).sum())
        M, k, equal = self._linear
        r = M @ x + k
        total += float(np.minimum(np.delete(r, equal), 0.0).sum()) - float(np.abs(r[equal]).sum())
        for A, b in self._discs:
            y = A @ x + b
            total += min(0.0, float(y[0] - np.linalg.norm(y[1:])))
        phi = self.problem.phi(x)
        for condition in self._conditions:
            total -= float(np.maximum(condition.values(layout, phi), 0.0).sum())
        return -total

    def value(self, u: Array) -> float:
        """``f(p)`` of (29)."""
        _, x, _ = self.point(u)
        cost = self.problem.cost(x)
        return cost + self.xi * self.penalty(u) if self.xi else cost

    def gradient(self, u: Array) -> Array:
        """Of ``f(p)``, a subgradient at the kinks."""
        _, slope = self.cost(u)
        if self.xi:
            h, rows = self.slacks(u)
            slope = slope - self.xi * rows[h < 0.0].sum(axis=0)
        return np.asarray(slope)


@dataclass(frozen=True, eq=False)
class Annealed:
    """One start of Algorithm 1."""

    x: Array
    cost: float
    violations: dict[str, float]
    steps: tuple[tuple[float, float], ...]
    """Cost and sum of penalties after each of the kappa steps."""

    @property
    def holds(self) -> bool:
        return not self.violations


def anneal(problem: RetrievalProblem, rng: np.random.Generator, *, steps: int, growth: float, iterations: int) -> Annealed:
    """Algorithm 1 from one random start."""
    from scipy.optimize import dual_annealing

    lower, upper = problem.bounds.box(problem.consistent.layout, problem.consistent.scale)
    width = upper - lower
    u = rng.uniform(size=len(lower))
    best: Annealed | None = None
    trace: list[tuple[float, float]] = []
    for k in range(1, steps + 1):
        f = Penalised(problem, lower, width, growth * (k - 1))
        searched = dual_annealing(
            f.value,
            [(0.0, 1.0)] * len(u),
            maxiter=iterations,
            x0=u,
            rng=rng,
            minimizer_kwargs={
                "method": "L-BFGS-B", "jac": f.gradient, "bounds": [(0.0, 1.0)] * len(u), "options": {"maxiter": 500}
            },
        )  # fmt: skip
        u = _local(f, np.asarray(searched.x))
        x = problem.settled(f.point(u)[1])
        trace.append((problem.cost(x), f.penalty(u)))
        found = Annealed(x, problem.cost(x), problem.violations(x), tuple(trace))
        if best is None or (not found.holds, found.cost) < (not best.holds, best.cost):
            best = found
    assert best is not None
    return Annealed(best.x, best.cost, best.violations, tuple(trace))


def _local(f: Penalised, u: Array) -> Array:
    """The local solver: the cost under the penalties as constraints, inside the box; what it was given if it got no better."""
    from scipy.optimize import minimize

    unit = 1.0 / max(f.cost(u)[0] - f.problem.floor, 1e-12)
    found = minimize(
        lambda v: unit * (f.cost(v)[0] - f.problem.floor),
        u,
        jac=lambda v: unit * f.cost(v)[1],
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(u),
        constraints={"type": "ineq", "fun": lambda v: f.slacks(v)[0], "jac": lambda v: f.slacks(v)[1]},
        options={"maxiter": 300, "ftol": 1e-9},
    )
    new = np.clip(np.asarray(found.x), 0.0, 1.0)
    if not np.isfinite(new).all():
        return u
    before, after = f.penalty(u), f.penalty(new)
    better = f.cost(new)[0] < f.cost(u)[0] if after <= max(before, 1e-9) else after < before
    return new if better or after < 1e-9 <= before else u


def pseudo_eigenvalues(layout: Layout, phi: Array) -> Array:
    """Smallest eigenvalue of every link's pseudo-inertia."""
    return np.asarray(np.linalg.eigvalsh(np.einsum("lk,kij->lij", phi[layout.slots], PSEUDO_BASIS))[:, 0])
