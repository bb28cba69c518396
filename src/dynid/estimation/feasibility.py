"""Could any robot have these base parameters, and which feasible ones are nearest? (Sousa and Cortesao 2014, 4.3)

    BPFT   is there phi with   K phi = beta   and every link consistent?
    BPFC   minimise || beta - K phi ||   over consistent phi, in the base metric of the paper or in torque

Both work on a published grouping alone: parameters that the grouping leaves out are free. The maps between ``phi`` and
``(beta, phi_d)`` are the paper's (46) and (49).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from dynid.adapters.clarabel import matrix_from_rows, triangle_entries
from dynid.arrays import Array, IntArray, check_finite, check_shape, freeze
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.conic import (
    MARGIN,
    ON_BOUNDARY,
    ConsistentSet,
    blamed,
    deepest_in,
    fit_in,
    nearest_in,
    onto_equalities,
)
from dynid.estimation.constraints import Constraint, PositiveEffects
from dynid.estimation.layout import Layout
from dynid.estimation.outcome import Outcome
from dynid.parameters import Parameters
from dynid.regression.base import BaseReduction
from dynid.regression.random_states import random_states_within_limits
from dynid.regression.torque import torque_regressor
from dynid.robot.model import Robot

Metric = Literal["base", "torque"]
METRICS: tuple[Metric, ...] = ("base", "torque")
PULL = 1e-13
"""Weight of the pull that keeps parameters nothing bounds near their start.

The nearest feasible base values are often approached only as some mass grows without end; a pull of 1e-9 would move the
distance by a percent, this one by less than a thousandth."""
PULL_TO_PRIOR = 1e-9
"""The same where a prior says where to start and how large things are."""
ALTERNATIONS = 100
"""Most rounds of projecting in turns."""
NEAR = 1e-4
"""Depth (scaled) within which a negative answer is asked for again by a sharper program."""


@dataclass(frozen=True)
class MassMatrixCheck:
    """Inertia matrices ``M(q)`` at random positions under the given base values."""

    positive_share: float
    smallest_eigenvalue: float
    n_positions: int


@dataclass(frozen=True, eq=False)
class Feasibility:
    """Verdict on base values, with its proof."""

    feasible: bool
    depth: float
    """Slack that all conditions can have in common beyond what they ask for (scaled); negative if infeasible."""
    min_eigenvalue: float
    """The smallest eigenvalue that all links can have in common: ``depth + margin``."""
    standard: Parameters | Array | None
    """A consistent parameter set with these base values; None if there is none."""
    bodies: Array | None
    """The same as one row of ten per link, parameters that the grouping leaves out included."""
    direction: Array | None
    """``d`` with ``d . beta' >= bound`` for all feasible ``beta'`` but ``d . beta < bound``; None if feasible."""
    bound: float
    direction_error: float
    """How far the direction is from an exact proof, relative to its size."""
    conflicts: tuple[str, ...]
    """The conditions that cannot hold together with these base values, heaviest first."""
    mass_matrix: MassMatrixCheck | None

    @property
    def certificate(self) -> Parameters | Array:
        """The consistent parameters that prove the verdict, or the separating direction."""
        found = self.standard if self.feasible else self.direction
        assert found is not None
        return found


@dataclass(frozen=True, eq=False)
class ClosestFeasible:
    """The feasible base values nearest to given ones."""

    base: Array
    distance: float
    """In the metric asked for: norm of the base values' change, or root mean square of the torque's, N m."""
    standard: Parameters | Array | None
    bodies: Array | None
    feasible_before: bool
    outcome: Outcome
    notes: tuple[str, ...] = ()


def extended_base(base: BaseReduction, phi: ArrayLike) -> tuple[Array, Array]:
    """``phi -> (beta, phi_d)``, Sousa (46)."""
    values = np.asarray(phi, dtype=np.float64)
    check_shape("phi", values, (base.n_parameters,))
    return base.base_values(values), np.asarray(values[base.dependent])


def standard_from_extended(base: BaseReduction, beta: ArrayLike, dependent: ArrayLike) -> Array:
    """``(beta, phi_d) -> phi``, Sousa (49): ``phi_b = beta - K_d phi_d``."""
    values, rest = np.asarray(beta, dtype=np.float64), np.asarray(dependent, dtype=np.float64)
    check_shape("base values", values, (base.n_base,))
    columns: IntArray = base.dependent
    check_shape("dependent parameters", rest, (len(columns),))
    phi = np.empty(base.n_parameters)
    phi[columns] = rest
    assert base.independent is not None
    phi[base.independent] = values - base.K[:, columns] @ rest
    return phi


def feasibility(
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
) -> Feasibility:
    """Whether some consistent robot has these base values (BPFT), also under extra constraints.

    ``margin`` is the smallest eigenvalue asked of every link, relative to the link's size in ``prior`` (that of ``robot`` if
    given), in SI units without one or with ``absolute`` (the paper's 1e-6); half of it absorbs the solver's tolerance. With
    ``robot`` the verdict is corroborated by its inertia matrix at random positions.
    """
    start = _prior(base, prior, robot)
    values = _base_values(base, beta)
    known = tuple(constraints)
    consistent = _consistent_set(base, start, robot, condition, known, margin, absolute, effects_positive)
    # half of the margin is what the answer must keep, the other half is the solver's
    required = _consistent_set(base, start, robot, condition, known, 0.5 * margin, absolute, effects_positive)
    E = base_rows(base, consistent)
    reference = _reference(consistent, E, values, start)
    best = deepest_in(consistent, (E, values), reference=reference, cap=max(1.0, 10.0 * margin), pull=PULL)
    x, slack = best.x, -np.inf
    if best.verdict != "infeasible":
        x = onto_equalities(E, values, best.x)
        slack = float(required.slacks(x).min())
    if slack < 0.0 and best.depth > -NEAR:
        x, slack = _sharper(consistent, required, (E, values), reference, x, slack)
    feasible = slack >= -10.0 * ON_BOUNDARY
    check = None if robot is None else mass_matrix_check(robot, base, values)
    if feasible:
        phi = consistent.scale * x
        return Feasibility(
            feasible=True,
            depth=best.depth,
            min_eigenvalue=best.depth + margin,
            standard=_named(consistent.layout, phi, start),
            bodies=freeze(consistent.layout.inertials(phi)),
            direction=None,
            bound=float("nan"),
            direction_error=0.0,
            conflicts=(),
            mass_matrix=check,
        )
    direction, bound, error = _separation(consistent, E, best.dual)
    return Feasibility(
        feasible=False,
        depth=best.depth,
        min_eigenvalue=best.depth + margin,
        standard=None,
        bodies=None,
        direction=direction,
        bound=bound,
        direction_error=error,
        conflicts=blamed(consistent, best.dual),
        mass_matrix=check,
    )


def closest_feasible(
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
) -> ClosestFeasible:
    """The feasible base values nearest to ``beta`` (BPFC).

    ``metric="base"`` is the paper's Euclidean distance, which depends on the grouping; ``metric="torque"`` the root mean
    square torque on random states within the limits of ``robot``, which does not. ``gram`` gives any other quadratic metric
    ``G`` of base values instead, ``distance^2 = d^T G d``.
    """
    start = _prior(base, prior, robot)
    values = _base_values(base, beta)
    consistent = _consistent_set(base, start, robot, condition, constraints, margin, absolute, effects_positive)
    E = base_rows(base, consistent)
    centre = _reference(consistent, E, values, start)
    if consistent.contains(centre):
        return ClosestFeasible(
            freeze(values), 0.0, *_result(consistent, centre, start), feasible_before=True, outcome=Outcome.SOLVED
        )
    root = _metric_root(base, metric, robot, gram)
    fit = nearest_in(consistent, root @ E, centre, pull=PULL if start is None else PULL_TO_PRIOR)
    if not fit.usable:
        return ClosestFeasible(
            freeze(values),
            float("nan"),
            None,
            None,
            feasible_before=False,
            outcome=Outcome.INFEASIBLE if fit.verdict == "infeasible" else Outcome.STALLED,
            notes=_advice(consistent),
        )
    corrected = E @ fit.x
    distance = float(np.linalg.norm(root @ (corrected - values)))
    size = max(float(np.linalg.norm(root @ values)), 1e-300)
    if distance < 1e-6 * size:
        # nearly feasible: perhaps wholly so, with another phi
        x, slack = _sharper(consistent, consistent, (E, values), centre, centre, -np.inf)
        if slack >= -10.0 * ON_BOUNDARY:
            return ClosestFeasible(
                freeze(values), 0.0, *_result(consistent, x, start), feasible_before=True, outcome=Outcome.SOLVED
            )
    return ClosestFeasible(
        freeze(corrected),
        distance,
        *_result(consistent, fit.x, start),
        feasible_before=False,
        outcome=Outcome.SOLVED if fit.verdict == "solved" else Outcome.STALLED,
        notes=() if fit.verdict == "solved" else (f"the solver ended with '{fit.solution.status}'",),
    )


def mass_matrix_check(
    robot: Robot, base: BaseReduction, beta: ArrayLike, n_positions: int = 200, seed: int = 0
) -> MassMatrixCheck:
    """Eigenvalues of ``M(q)``, ``tau(q, 0, e_j) - tau(q, 0, 0)`` column by column, at random positions."""
    n = robot.n_dof
    q, _, _ = random_states_within_limits(robot, n_positions, seed)
    a = np.vstack([np.eye(n), np.zeros((1, n))])
    positions = np.repeat(q, n + 1, axis=0)
    accelerations = np.tile(a, (n_positions, 1))
    Y = torque_regressor(robot, positions, np.zeros_like(accelerations), accelerations, np.zeros_like(accelerations))
    tau = (Y @ base.lift @ np.asarray(beta, dtype=np.float64)).reshape(n_positions, n + 1, n)
    M = np.swapaxes(tau[:, :n] - tau[:, n:], 1, 2)
    eigenvalues = np.linalg.eigvalsh(0.5 * (M + np.swapaxes(M, 1, 2)))[:, 0]
    return MassMatrixCheck(float((eigenvalues > 0.0).mean()), float(eigenvalues.min()), n_positions)


def torque_metric(robot: Robot, base: BaseReduction, n_states: int | None = None, seed: int = 0) -> Array:
    """``R`` with ``||R beta||`` the root mean square torque of base values on random states within the robot's limits."""
    count = n_states or 3 * base.n_base // robot.n_dof + 200
    q, v, a = random_states_within_limits(robot, count, seed)
    W = torque_regressor(robot, q, v, a, np.zeros_like(a)).reshape(-1, base.n_parameters) @ base.lift
    return np.asarray(np.linalg.qr(W, mode="r") / np.sqrt(len(W)))


def base_rows(base: BaseReduction, consistent: ConsistentSet) -> Array:
    """``K`` over scaled variables, hidden ones included."""
    E = np.zeros((base.n_base, consistent.n))
    E[:, : base.n_parameters] = base.K * consistent.scale[: base.n_parameters]
    return E


def _sharper(
    consistent: ConsistentSet,
    required: ConsistentSet,
    equalities: tuple[Array, Array],
    reference: Array,
    x: Array,
    slack: float,
) -> tuple[Array, float]:
    """The better of ``x`` and points nearest to ``reference``: on the boundary the pull costs more depth than there is.

    Points are looked for in ``consistent`` and judged by ``required``, which asks for less.
    """
    E, values = equalities
    for pull in (1e-6, 1e-9, 1e-12):
        nearest = fit_in(consistent, np.zeros((0, consistent.n)), reference, pull=pull, equalities=equalities)
        if nearest.solution.usable and np.isfinite(nearest.slack):
            other = onto_equalities(E, values, nearest.x)
            found = float(required.slacks(other).min())
            if found > slack:
                x, slack = other, found
        if slack >= 0.0:
            return x, slack
    # project in turns on the equalities and into the set: mends what a solver's tolerance left outside
    back = np.linalg.pinv(E)
    new = np.array(x)
    for _ in range(ALTERNATIONS):
        new, _ = consistent.pushed(new)
        new = onto_equalities(E, values, new - back @ (E @ new - values))
        found = float(required.slacks(new).min())
        if found > slack:
            x, slack = new, found
        if slack >= 0.0:
            break
    return x, slack


def _consistent_set(
    base: BaseReduction,
    prior: Parameters | None,
    robot: Robot | None,
    condition: str,
    constraints: Iterable[Constraint],
    margin: float,
    absolute: bool,
    effects_positive: bool,
) -> ConsistentSet:
    layout = Layout.of(base.parameter_names) if prior is None else Layout.of_parameters(prior, robot.links if robot else ())
    known = (*((PositiveEffects(),) if effects_positive else ()), *constraints)
    return ConsistentSet.of(layout, condition=condition, margin=margin, absolute=absolute, constraints=known, prior=prior)


def _prior(base: BaseReduction, prior: Parameters | None, robot: Robot | None) -> Parameters | None:
    chosen = prior if prior is not None or robot is None else robot.parameters
    if chosen is not None and chosen.names != base.parameter_names:
        raise InputError(
            f"the prior has {len(chosen)} parameters, the base reduction {base.n_parameters}, or other names; "
            "make both from the same robot and effects"
        )
    return chosen


def _base_values(base: BaseReduction, beta: ArrayLike) -> Array:
    values = np.asarray(beta, dtype=np.float64)
    check_shape("base values", values, (base.n_base,))
    check_finite("base values", values)
    return values


def _reference(consistent: ConsistentSet, E: Array, values: Array, prior: Parameters | None) -> Array:
    """The point nearest to the prior (to zero without one) with these base values."""
    start = np.zeros(consistent.n) if prior is None else consistent.layout.extended(prior.values) / consistent.scale
    return onto_equalities(E, values, start)


def _metric_root(base: BaseReduction, metric: str, robot: Robot | None, gram: ArrayLike | None) -> Array:
    if metric not in METRICS:
        raise UnknownNameError("metric", metric, METRICS)
    if gram is not None:
        G = np.asarray(gram, dtype=np.float64)
        check_shape("gram", G, (base.n_base, base.n_base))
        eigenvalues, vectors = np.linalg.eigh(0.5 * (G + G.T))
        if eigenvalues[0] < -1e-12 * abs(eigenvalues[-1]):
            raise InputError(f"gram has the eigenvalue {eigenvalues[0]:.3g}, expected none below zero")
        return np.asarray(np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * vectors.T)
    if metric == "base":
        return np.eye(base.n_base)
    if robot is None:
        raise InputError("the torque metric needs robot= (its random states) or gram= (the metric itself), neither is given")
    return torque_metric(robot, base)


def _named(layout: Layout, phi: Array, prior: Parameters | None) -> Parameters | Array:
    named = phi[: layout.n_named]
    return freeze(named) if prior is None else prior.with_values(named)


def _result(consistent: ConsistentSet, x: Array, prior: Parameters | None) -> tuple[Parameters | Array, Array]:
    phi = consistent.scale * x
    return _named(consistent.layout, phi, prior), freeze(consistent.layout.inertials(phi))


def _separation(consistent: ConsistentSet, E: Array, dual: Array) -> tuple[Array, float, float]:
    """``d . beta' >= bound`` for every feasible ``beta'``, from multipliers ``z`` in the dual cones.

    ``z . (M x + k) >= 0`` for all feasible ``x``; with ``M^T z = E^T d`` it reads ``d . beta' >= -z . k``.
    """
    z = _in_dual_cones(consistent, dual)
    functional = consistent.M.T @ z
    direction = np.linalg.lstsq(E.T, functional, rcond=None)[0]
    size = max(float(np.linalg.norm(functional)), 1e-300)
    error = float(np.linalg.norm(E.T @ direction - functional)) / size
    length = max(float(np.linalg.norm(direction)), 1e-300)
    return freeze(direction / length), float(-z @ consistent.k) / length, error


def _in_dual_cones(consistent: ConsistentSet, dual: Array) -> Array:
    """Multipliers with what the solver left outside the dual cones cut off."""
    z = np.array(dual)
    for (kind, size), first in zip(consistent.cones, consistent.starts, strict=False):
        if kind == "nonnegative":
            z[first : first + size] = np.maximum(z[first : first + size], 0.0)
        elif kind == "second_order":
            z[first] = max(z[first], float(np.linalg.norm(z[first + 1 : first + size])))
        elif kind == "semidefinite":
            row, column, weight = triangle_entries(size)
            part = slice(first, first + len(row))
            eigenvalues, vectors = np.linalg.eigh(matrix_from_rows(z[part], size))
            z[part] = ((vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T)[row, column] * weight
    return z


def _advice(consistent: ConsistentSet) -> tuple[str, ...]:
    """Which conditions contradict one another, whatever the base values."""
    best = deepest_in(consistent)
    return tuple(f"cannot hold together with the rest: {label}" for label in blamed(consistent, best.dual)[:4])
