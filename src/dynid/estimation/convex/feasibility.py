"""Could any robot have these base parameters, and which feasible ones are nearest? (Sousa and Cortesao 2014, 4.3)

    BPFT   is there phi with   K phi = beta   and every link consistent?
    BPFC   minimise || beta - K phi ||   over consistent phi, in the base metric of the paper or in torque

The test answers "no" only with a proof: a direction ``d`` and a bound with ``d . K phi >= bound > d . beta`` for all
consistent ``phi``, the numerical error of ``d`` already taken off the bound. It answers "yes" with parameters. Between the
two lies the boundary, as thin as a solver's tolerance: there the answer is the nearest consistent parameters and how far
their base values are from those given.

Both work on a published grouping alone: parameters that the grouping leaves out are free. The maps between ``phi`` and
``(beta, phi_d)`` are the paper's (46) and (49).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, check_finite, check_shape, freeze
from dynid.errors import InputError, UnknownNameError
from dynid.estimation.constraints.constraints import Constraint, PositiveEffects
from dynid.estimation.convex.conic import (
    MARGIN,
    ON_BOUNDARY,
    REACH,
    ConsistentSet,
    Deepest,
    blamed,
    combined,
    deepest_in,
    fit_in,
    nearest_in,
    onto_equalities,
)
from dynid.estimation.convex.layout import Layout
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
SAFETY = 2.0
"""How many times its own error a violation must be to count as proven."""
ROUND_OFF = 1e-12
"""Part of the base values' norm that arithmetic alone may leave."""
TOLERANCE = 1e-5
"""Part of the base values' norm by which consistent parameters may miss them and still count as on the boundary."""

Decision: TypeAlias = Literal["feasible", "boundary", "infeasible", "undecided"]


@dataclass(frozen=True)
class MassMatrixCheck:
    """Inertia matrices ``M(q)`` at random positions under the given base values."""

    positive_share: float
    smallest_eigenvalue: float
    n_positions: int


@dataclass(frozen=True, eq=False)
class Feasibility:
    """Verdict on base values, with its proof."""

    decision: Decision
    """``boundary``: feasible within ``base_error``; ``undecided``: the solver found neither parameters nor a proof."""
    depth: float
    """Slack that all conditions can have in common beyond what they ask for (scaled); negative if infeasible, zero to the
    solver's tolerance on the boundary."""
    min_eigenvalue: float
    """The smallest eigenvalue that all links can have in common: ``depth + margin``."""
    standard: Parameters | Array | None
    """A consistent parameter set with these base values, to ``base_error``; None unless feasible."""
    bodies: Array | None
    """The same as one row of ten per link, parameters that the grouping leaves out included."""
    base_error: float
    """``|| K standard - beta ||``: round-off where the values are feasible, at most ``TOLERANCE`` of their norm on the
    boundary; of the nearest parameters found where nothing is decided, not a number where infeasible."""
    direction: Array | None
    """Unit ``d`` with ``d . beta' >= bound`` for all feasible ``beta'`` but ``d . beta < bound``; None unless infeasible."""
    bound: float
    """With the error of the direction taken off: holds for all parameters up to ``REACH`` times the size of a link."""
    bound_error: float
    """How much was taken off; the violation ``bound - d . beta`` is no smaller."""
    direction_error: float
    """How far the direction is from an exact proof, relative to its size."""
    conflicts: tuple[str, ...]
    """The conditions that cannot hold together with these base values, heaviest first."""
    mass_matrix: MassMatrixCheck | None

    @property
    def feasible(self) -> bool:
        """Whether there are consistent parameters with these base values, the boundary included."""
        return self.decision in ("feasible", "boundary")

    @property
    def on_boundary(self) -> bool:
        """Whether the values are feasible only within ``base_error``."""
        return self.decision == "boundary"

    @property
    def certificate(self) -> Parameters | Array:
        """The consistent parameters that prove the verdict, or the separating direction."""
        found = self.standard if self.feasible else self.direction
        if found is None:
            raise InputError(
                f"nothing is proven of these base values: the nearest consistent ones found are {self.base_error:.3g} away"
            )
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
    x, proof = _decided(consistent, required, (E, values), reference, best)
    decision: Decision = "infeasible"
    base_error = float("nan")
    if proof is None:
        base_error = float(np.linalg.norm(E @ x - values))
        size = max(float(np.linalg.norm(values)), 1e-300)
        decision = (
            "feasible" if base_error <= ROUND_OFF * size else ("boundary" if base_error <= TOLERANCE * size else "undecided")
        )
    feasible = decision in ("feasible", "boundary")
    phi = consistent.scale * x
    return Feasibility(
        decision=decision,
        depth=best.depth,
        min_eigenvalue=best.depth + margin,
        standard=_named(consistent.layout, phi, start) if feasible else None,
        bodies=freeze(consistent.layout.inertials(phi)) if feasible else None,
        base_error=base_error,
        direction=None if proof is None else proof.direction,
        bound=float("nan") if proof is None else proof.bound,
        bound_error=0.0 if proof is None else proof.bound_error,
        direction_error=0.0 if proof is None else proof.direction_error,
        conflicts=() if proof is None else blamed(consistent, proof.multipliers),
        mass_matrix=None if robot is None else mass_matrix_check(robot, base, values),
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
    square torque on random states within the limits of ``robot`` (without it, on those of the reduction), which does not.
    ``gram`` gives any other quadratic metric ``G`` of base values instead, ``distance^2 = d^T G d``.
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
        if slack >= 0.0:
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


def _decided(
    consistent: ConsistentSet,
    required: ConsistentSet,
    equalities: tuple[Array, Array],
    reference: Array,
    best: Deepest,
) -> tuple[Array, _Proof | None]:
    """Parameters inside ``required`` whose base values come nearest to those asked for, or a proof that none have them."""
    E, values = equalities
    x, slack = best.x, -np.inf
    if best.verdict != "infeasible":
        x = onto_equalities(*_all_equalities(required, equalities), best.x)
        slack = _slack(required, x)
    if slack >= 0.0:
        return x, None
    proof = _proof(consistent, E, values, best.dual)
    if proof is not None:
        return x, proof
    # near the boundary the pull to the reference costs more depth than there is: look again from nearer points
    x, slack = _sharper(consistent, required, equalities, reference, x, slack)
    if slack >= 0.0:
        return x, None
    points = [best.x, x]
    for start, pull in ((reference, PULL), (x, PULL_TO_PRIOR)):
        nearest = nearest_in(consistent, E, start, pull=pull)
        if nearest.usable:
            proof = _proof(consistent, E, values, nearest.solution.dual)
            if proof is not None:
                return x, proof
            points.append(nearest.x)
    inside = [point for point in (_brought_inside(required, point) for point in points) if point is not None]
    return min(inside, key=lambda point: float(np.linalg.norm(E @ point - values)), default=reference), None


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
    E, e = _all_equalities(required, equalities)
    for pull in (1e-6, 1e-9, 1e-12):
        nearest = fit_in(consistent, np.zeros((0, consistent.n)), reference, pull=pull, equalities=equalities)
        if nearest.solution.usable and np.isfinite(nearest.slack):
            other = onto_equalities(E, e, nearest.x)
            found = _slack(required, other)
            if found > slack:
                x, slack = other, found
        if slack >= 0.0:
            return x, slack
    # project in turns on the equalities and into the set: mends what a solver's tolerance left outside
    back = np.linalg.pinv(E)
    new = np.array(x)
    for _ in range(ALTERNATIONS):
        new, _ = consistent.pushed(new)
        new = onto_equalities(E, e, new - back @ (E @ new - e))
        found = _slack(required, new)
        if found > slack:
            x, slack = new, found
        if slack >= 0.0:
            break
    return x, slack


def _slack(consistent: ConsistentSet, x: Array) -> float:
    """Smallest slack of all conditions, where equalities count as met to ``ON_BOUNDARY``."""
    slacks = consistent.slacks(x)
    equal = np.array([kind == "zero" for kind, _ in consistent.cones])
    slacks[equal & (slacks >= -ON_BOUNDARY)] = 0.0
    return float(slacks.min())


def _all_equalities(consistent: ConsistentSet, equalities: tuple[Array, Array]) -> tuple[Array, Array]:
    """The base values, and what constraints fix."""
    E, values = equalities
    count = sum(size for kind, size in consistent.cones if kind == "zero")  # they stand first
    if not count:
        return E, values
    return np.vstack([E, consistent.M[:count].toarray()]), np.concatenate([values, -consistent.k[:count]])


def _brought_inside(required: ConsistentSet, x: Array) -> Array | None:
    """A point of the set next to ``x``: pushed in link by link or, where constraints tie links, towards its inside."""
    pushed, _ = required.pushed(x)
    if required.contains(pushed):
        return pushed
    inside = deepest_in(required, reference=x, cap=1e-2, pull=1e-9)
    if inside.depth > 0.0:
        for share in np.logspace(-12, -3, 28):
            moved = x + share * (inside.x - x)
            if required.contains(moved):
                return np.asarray(moved)
    return None


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
        if base.gram is not None:
            return _metric_root(base, metric, None, base.gram)
        raise InputError("the torque metric needs robot= (its random states) or gram= (the metric itself), neither is given")
    return torque_metric(robot, base)


def _named(layout: Layout, phi: Array, prior: Parameters | None) -> Parameters | Array:
    named = phi[: layout.n_named]
    return freeze(named) if prior is None else prior.with_values(named)


def _result(consistent: ConsistentSet, x: Array, prior: Parameters | None) -> tuple[Parameters | Array, Array]:
    phi = consistent.scale * x
    return _named(consistent.layout, phi, prior), freeze(consistent.layout.inertials(phi))


@dataclass(frozen=True, eq=False)
class _Proof:
    """``d . beta' >= bound`` for every feasible ``beta'``."""

    direction: Array
    bound: float
    bound_error: float
    direction_error: float
    multipliers: Array


def _proof(consistent: ConsistentSet, E: Array, values: Array, dual: Array) -> _Proof | None:
    """A direction that separates the values from all feasible ones, from multipliers ``z``; None where it proves nothing.

    ``M^T z = E^T d + r`` and ``z . (M x + k) >= 0`` give ``d . beta' >= -z . k - r . x``, and ``|r . x| <= |r| REACH``.
    """
    found = combined(consistent, E, dual)
    if found is None:
        return None
    z, d = found.multipliers, found.coefficients
    length = max(float(np.linalg.norm(d)), 1e-300)
    # what arithmetic alone may have got wrong of the sums
    round_off = 1e-15 * float(np.abs(z) @ np.abs(consistent.k) + np.abs(d) @ np.abs(values))
    error = (found.missing * REACH + round_off) / length
    bound = float(-z @ consistent.k) / length
    violation = bound - float(d @ values) / length
    if not violation > SAFETY * error:
        return None
    relative = found.missing / max(float(np.linalg.norm(consistent.M.T @ z)), 1e-300)
    return _Proof(freeze(d / length), bound - error, error, relative, z)


def _advice(consistent: ConsistentSet) -> tuple[str, ...]:
    """Which conditions contradict one another, whatever the base values."""
    best = deepest_in(consistent)
    return tuple(f"cannot hold together with the rest: {label}" for label in blamed(consistent, best.dual)[:4])
