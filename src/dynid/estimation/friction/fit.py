"""Friction with nonlinear parameters (widths, slopes, speeds), found by variable projection, loads by iteration.

    tau = Y(q, v, a) beta + sum_c s_c(v, a, load; theta) c

``theta`` (a few numbers per joint) is searched for over all joints together, with base parameters and linear friction solved
inside. Friction that grows with the transmitted torque takes as its load what the current estimate says of everything but
friction, and is iterated until the load settles. Gaz and others (2019, IV-B) instead fit each joint for itself on the torque
that known rigid bodies leave unexplained: :func:`fit_residual_friction`.

How well ``theta`` is known adds to the uncertainty of everything else. At given ``theta`` base and friction values ``x`` follow from
one linear solve with columns ``A``; with ``T`` the change of the prediction with ``theta`` and ``J`` its part outside the span of ``A``,

    cov(theta) = noise^2 (J^T J)^-1,      cov(x) = cov(x | theta) + (A^+ T) cov(theta) (A^+ T)^T.

An estimate at fixed ``theta`` knows the first term of ``cov(x)`` alone, and is too sure of Coulomb friction and rotor inertia.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dynid.arrays import Array, BoolArray, freeze
from dynid.estimation.friction.model import FrictionModel, Solution
from dynid.estimation.friction.rows import MOST_ROWS, FrictionData
from dynid.estimation.friction.search import Solver, outside, passive_solution
from dynid.estimation.linear import used_alone
from dynid.estimation.result import Estimate
from dynid.model.effects.effect import Effect
from dynid.model.effects.wrapped import MOTOR
from dynid.model.robot import Robot
from dynid.regression.base import LONG_CHAIN
from dynid.regression.row_filter import RowFilter
from dynid.signals.samples import Samples

AT_BOUND = 1e-3
"""Distance from the end of its range at which an inner number counts as held there."""
WITHIN = 1.96


@dataclass(frozen=True)
class FrictionParameter:
    """A nonlinear parameter of the friction of one joint, such as a Stribeck velocity, with its 95 % interval."""

    name: str
    joint: str
    value: float
    lower: float | None
    upper: float | None
    """An end is None where the value is held at that end of its range; both are where the rows do not say how far it is from there."""


@dataclass(frozen=True, eq=False)
class Linearised:
    """A finished fit and all that is linear around it."""

    coordinates: list[Array]
    """Of every joint's columns, see :meth:`~dynid.estimation.friction.model.FrictionModel.coordinates`."""
    weights: Array
    solver: Solver
    tangents: Array
    """Weighted, along the nonlinear parameters."""
    free: BoolArray
    """Which nonlinear parameters may move: those that rows show, not at the end of their range."""
    covariance: Array
    """Of these."""
    noise: float
    """Variance of a weighted row."""

    @classmethod
    def of(cls, fit: FrictionFit, beside: Array | None = None) -> Linearised:
        """``beside`` are further functions, ``(rows, functions, joints)``, whose coordinates stand before those of the torque."""
        model, weights, data = fit.model, fit.weights, fit.model.data
        left = residual_norms(fit.solution, weights)
        if data.held:  # such a fit needs no weights, but what it leaves of one joint is not the noise of another
            weights = joint_weights(left, data.measured)
        coordinates = model.coordinates(fit.columns, beside=beside)[1]
        solver = model.solver(coordinates, weights)
        low, high = model.bounds()
        tangents = model.tangents(coordinates, fit.solution.own, weights)
        shown = np.linalg.norm(tangents, axis=0) > 0.0
        free = shown & (fit.theta > low + AT_BOUND) & (fit.theta < high - AT_BOUND)
        J = outside(solver.span, tangents[:, free])
        spent = solver.n_columns + int(free.sum())
        noise = max(float(((weights * left) ** 2).sum()) / max(data.torque.size - spent, 1), 1e-300)
        information = J.T @ J / noise
        # what the rows do not show is known to be within its range, and no better
        information[np.diag_indices(len(J.T))] += (2.0 / (high - low)[free]) ** 2
        return cls(coordinates, weights, solver, tangents, free, np.asarray(np.linalg.inv(information)), noise)


def nonlinear_parameters(fit: FrictionFit) -> tuple[tuple[FrictionParameter, ...], dict[str, Array]]:
    """The nonlinear parameters of a finished fit, and what one standard deviation of each moves in the linear ones.

    The second is the row of ``A^+ T cov(theta)^1/2`` of every linear parameter that the rows show.
    """
    model, theta = fit.model, fit.theta
    if not len(theta):
        return (), {}
    around = Linearised.of(fit)
    low, high = model.bounds()
    at_low, at_high = theta <= low + AT_BOUND, theta >= high - AT_BOUND
    sigma = high - low  # no row shows it: anywhere
    sigma[around.free] = np.sqrt(np.diag(around.covariance))
    # at an end of its range a number is known on one side alone, by the cost of leaving that end
    for at in np.flatnonzero(at_low | at_high):
        own = outside(around.solver.span, around.tangents[:, [at]])
        sigma[at] = 1.0 / np.sqrt(float((own**2).sum()) / around.noise + sigma[at] ** -2)
    lower, upper = np.maximum(theta - WITHIN * sigma, low), np.minimum(theta + WITHIN * sigma, high)
    open_low, open_high = at_low | (at_high & (lower <= low)), at_high | (at_low & (upper >= high))
    found = tuple(_parameters(model, theta, np.where(open_low, np.nan, lower), np.where(open_high, np.nan, upper)))
    if not around.free.any():
        return found, {}
    root = np.linalg.cholesky(around.covariance)
    return found, linear_moves(model, -around.solver.solve(around.tangents[:, around.free]) @ root)


def linear_moves(model: FrictionModel, change: Array) -> dict[str, Array]:
    """Changes of base parameters and friction values, ``(values, changes)``, by the names of the robot's linear parameters."""
    data = model.data
    moves = dict(zip(model.names, change[data.n_shared :], strict=True))
    if not data.held:
        moves |= dict(zip(data.rigid.parameters.names, data.base.lift @ change[: data.n_shared], strict=True))
    return moves


def _parameters(model: FrictionModel, theta: Array, lower: Array, upper: Array) -> Iterator[FrictionParameter]:
    """Every one that a joint or motor has, by the name under which its effect lists it."""
    joints = model.robot.driven_joints
    for k, (option, sharing) in enumerate(model.variables):
        listed = [model.effects[i].nonlinear_values(joints) for i in sharing]
        for d, joint in enumerate(joints):
            at = k * len(joints) + d
            value, *ends = (float(option.from_search(np.array(x[at]))) for x in (theta, lower, upper))
            limits = [None if np.isnan(end) else end for end in ends]
            named = {one.name for own in listed for one in own[d] if one.name in (option.name, f"{option.name}{MOTOR}")}
            for name in named:
                yield FrictionParameter(name, joint.name, value, *limits)


def widen_covariance(estimate: Estimate, moves: Mapping[str, Array], misfit: Mapping[str, Array]) -> Estimate:
    """The estimate with the uncertainty of the nonlinear parameters in its covariance, coloured as its own is, and that of the model.

    ``moves`` are those of :func:`nonlinear_parameters`, ``misfit`` those of :func:`~dynid.estimation.friction.misfit.misfit_moves`.
    """
    shown = np.diag(estimate.covariance) > 0.0
    classical = np.asarray(estimate.details.get("classical_sigma", estimate.sigma))
    colour = float(np.median(estimate.sigma[shown] / classical[shown])) if shown.any() else 1.0
    covariance = estimate.covariance
    for moved, scale in ((moves, max(colour, 1.0)), (misfit, 1.0)):
        if moved:
            covariance = covariance + covariance_of_moves(estimate, moved, scale)
    return replace(estimate, covariance=covariance)


def covariance_of_moves(estimate: Estimate, moved: Mapping[str, Array], scale: float = 1.0) -> Array:
    """What independent moves of the linear parameters, by name, add to the covariance of the base values that the data determine."""
    none = np.zeros(len(next(iter(moved.values()))))
    spread = scale * (estimate.base.K @ np.array([moved.get(name, none) for name in estimate.standard.names]))
    spread[np.diag(estimate.covariance) <= 0.0] = 0.0
    return np.asarray(spread @ spread.T)


ROUNDS = 10
"""How often weights and loads are renewed at most."""
TRIAL_ROUNDS = 3
"""The same where models are only compared."""
_RIDGE = 1e-11  # of unit columns, for directions that the rows do not show
SETTLED = 5e-3
"""Relative change of loads and weights below which they count as settled."""


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """A friction model at its best nonlinear parameters, with everything that leads further from there."""

    model: FrictionModel
    theta: Array
    loads: list[Array] | None
    weights: Array
    columns: Array
    solution: Solution
    rounds: int
    """How often weights and loads were renewed."""
    evaluations: int
    converged: bool

    @property
    def tuned(self) -> Robot:
        """The robot with the nonlinear parameters found; its linear ones are as they were, the estimator's business."""
        return self.model.robot_at(self.theta)

    @cached_property
    def robot(self) -> Robot:
        """The robot with all parameters at their estimate."""
        return self.tuned.with_parameters(self.model.parameters(self.solution))

    @property
    def effects(self) -> tuple[Effect, ...]:
        return self.robot.effects

    @property
    def residual_rms(self) -> Array:
        """Per joint, over the rows used."""
        return freeze(residual_norms(self.solution, self.weights) / np.sqrt(len(self.model.data.measured)))

    @property
    def relative_error(self) -> float:
        """``||tau - tau_hat|| / ||tau||`` over the rows used."""
        left, torque = residual_norms(self.solution, self.weights), self.model.data.measured
        return float(np.linalg.norm(left)) / max(float(np.linalg.norm(torque)), 1e-300)

    def places(self) -> dict[str, Array]:
        """Where each nonlinear parameter was found, by its key: where another model may start."""
        n = self.model.data.n_joints
        return {
            option.key: place for (option, _), place in zip(self.model.variables, self.theta.reshape(-1, n), strict=True)
        }


def fit_friction(
    robot: Robot,
    samples: Samples | Sequence[Samples],
    *,
    row_filter: RowFilter | None = None,
    weighted: bool = True,
    rounds: int = ROUNDS,
    most_rows: int = MOST_ROWS,
) -> FrictionFit:
    """Rigid bodies, friction and the numbers inside it, all joints together.

    Options that are searched for start at their value in the robot's effects. ``row_filter`` acts on regressor, friction
    columns and torque alike; without one, samples are thinned to ``most_rows``. ``weighted`` counts each joint by its own noise,
    ``rounds`` limits how often weights and loads are renewed.

    Examples:
        >>> import dynid
        >>> from dynid.model.effects.friction_models import friction_effects
        >>> robot = dynid.demo_robot(effects="none").only(["elbow"]).with_effects(friction_effects("smooth"))
        >>> fit_friction(robot, dynid.demo_samples(robot)).relative_error < 0.05
        True
    """
    data = FrictionData.of(robot, samples, row_filter, most_rows=most_rows)
    return fit_model(FrictionModel(robot, data), weighted=weighted, rounds=rounds)


def fit_residual_friction(
    robot: Robot,
    samples: Samples | Sequence[Samples],
    *,
    row_filter: RowFilter | None = None,
    rounds: int = ROUNDS,
    most_rows: int = MOST_ROWS,
) -> FrictionFit:
    """Friction alone, joint by joint, on ``tau - tau_hat`` of rigid bodies taken as known (Gaz and others 2019, IV-B).

    The rigid bodies are those of the robot's own parameters and stay as they are, so only this step is repeated when the
    lubrication changed or another robot of the same make is at hand.
    """
    data = FrictionData.of(robot, samples, row_filter, held=True, most_rows=most_rows)
    return fit_model(FrictionModel(robot, data), weighted=False, rounds=rounds)


def fit_model(
    model: FrictionModel,
    *,
    weighted: bool,
    rounds: int = ROUNDS,
    weights: Array | None = None,
    start: Mapping[str, Array] | None = None,
    finish: bool = True,
) -> FrictionFit:
    """The best inner numbers of a model; weights and loads are renewed until they settle.

    ``weights`` and ``start``, places of inner numbers by their key, are those of an earlier fit to the same rows. The search
    takes fewer samples than there are where rows are filtered, or ends early where it goes joint by joint; ``finish`` ends it with
    all of them.
    """
    data = model.data
    weights = np.ones(data.n_joints) if weights is None else weights
    own = model.start.reshape(-1, data.n_joints)
    places = [(start or {}).get(option.key, place) for (option, _), place in zip(model.variables, own, strict=True)]
    theta, loads = np.concatenate(places) if places else model.start, first_loads(model, weights)
    evaluations, done, converged = 0, 0, False
    for done in range(1, rounds + 1):
        place, count, settled = model.search(theta, loads, weights, coarse=True)
        evaluations += count
        moved = float(np.abs(place - theta).max(initial=0.0))
        theta = place
        columns = model.columns(theta, loads, changes=done == rounds)  # only those of the last round are needed further
        solution = model.solve(columns, weights, model.passive_rows(theta, loads))
        new_weights = joint_weights(residual_norms(solution, weights), data.measured) if weighted else weights
        new_loads = loads
        change = float(np.abs(np.log(new_weights / weights)).max())
        if loads is not None and not data.held:
            new_loads = data.rigid_torque(model.parameters(solution))
            size = max(float(np.linalg.norm(np.concatenate(loads))), 1e-300)
            change = max(change, float(np.linalg.norm(np.concatenate(new_loads) - np.concatenate(loads))) / size)
        converged = settled and (moved < 0.05 or done == 1) and change < SETTLED
        if converged:
            break
        weights, loads = new_weights, new_loads
    model.forget_places()
    if converged and done < rounds:
        columns = model.columns(theta, loads)
    fitted = FrictionFit(model, theta, loads, weights, columns, solution, done, evaluations, converged)
    return finished(fitted) if finish else fitted


def finished(fitted: FrictionFit) -> FrictionFit:
    """The fit with its inner numbers searched for on all samples, from where the search on fewer of them ended."""
    model = fitted.model
    if not len(fitted.theta) or not model.searched_twice:
        return fitted
    theta, count, _ = model.search(fitted.theta, fitted.loads, fitted.weights)
    columns = model.columns(theta, fitted.loads)
    solution = model.solve(columns, fitted.weights, model.passive_rows(theta, fitted.loads))
    return replace(fitted, theta=theta, columns=columns, solution=solution, evaluations=fitted.evaluations + count)


def fit_nonlinear_friction(
    robot: Robot, samples: Sequence[Samples], row_filter: RowFilter | None = None, *, finish: bool = True
) -> Robot:
    """The robot with the nonlinear parameters of its friction, such as a Stribeck velocity, searched for on the samples.

    Without ``finish`` they are as exact as comparisons need: see :func:`fit_model`.
    """
    if not has_nonlinear_parameters(robot):
        return robot
    data = FrictionData.of(robot, samples, row_filter)
    rounds = ROUNDS if finish else TRIAL_ROUNDS
    if not is_fitted_in_turn(data):
        return fit_model(FrictionModel(robot, data), weighted=True, rounds=rounds, finish=finish).tuned
    for _ in range(2 if finish else 1):
        robot = fit_model(FrictionModel(robot, with_bodies_held(robot, data)), weighted=False, finish=finish).tuned
    return robot


def has_nonlinear_parameters(robot: Robot) -> bool:
    """Whether something inside the friction of a robot is to be searched for."""
    return any(effect.searched_parameters() for effect in robot.effects)


def is_fitted_in_turn(data: FrictionData) -> bool:
    """Whether bodies and friction are fitted in turn: together they would be one large solve at every step."""
    return data.n_shared > LONG_CHAIN


def with_bodies_held(robot: Robot, data: FrictionData) -> FrictionData:
    """The rows with the rigid bodies held that fit best beside the friction of a robot at its present inner numbers."""
    model = FrictionModel(robot, data)
    weights = joint_weights(np.linalg.norm(data.measured, axis=0), data.measured)  # noise grows with torque, as a rule
    loads = first_loads(model, weights)
    columns = model.columns(model.start, loads, changes=False)
    return data.holding(model.parameters(_by_squares(model, columns, weights, model.passive_rows(model.start, loads))))


def _by_squares(model: FrictionModel, columns: Array, weights: Array, G: Array) -> Solution:
    """:meth:`~dynid.estimation.friction.model.FrictionModel.solve` by normal equations, joint by joint over the links it carries.

    Half of the digits are lost, which is enough for bodies beside which friction is looked for.
    """
    data, n = model.data, model.data.n_shared
    H, g = np.zeros((n + len(model.names), n + len(model.names))), np.zeros(n + len(model.names))
    H[:n, :n], g[:n] = data.squares(weights)
    for d, entering in enumerate(model.entering):
        own, square = columns[0][:, entering] * model.incidence[d, entering], weights[d] ** 2
        crossed = square * (data.expansions[d].T @ (data.columns[d].T @ own))
        H[:n, n + entering] += crossed
        H[n + entering, :n] += crossed.T
        H[np.ix_(n + entering, n + entering)] += square * (own.T @ own)
        g[n + entering] += square * (own.T @ data.torque[:, d])
    size = np.sqrt(np.maximum(np.diag(H), 1e-300))
    R = np.linalg.cholesky(H / np.outer(size, size) + _RIDGE * np.eye(len(g))).T
    x = np.linalg.solve(R, np.linalg.solve(R.T, g / size))
    found = passive_solution(x, R, G / size)
    x = (x if found is None else found[0]) / size
    return Solution(x[:n], x[n:], 0.0, ())


def first_loads(model: FrictionModel, weights: Array) -> list[Array] | None:
    """The loads by a first estimate without the effects that need them; None where no effect does."""
    if not model.loaded:
        return None
    data = model.data
    if data.held:
        return data.held_torque
    plain = [effect for effect in model.robot.effects if not effect.loaded]
    if not any(effect.is_friction for effect in plain):
        return [np.asarray(log.samples.torque) for log in data.logs]
    first = FrictionModel(model.robot.with_effects(plain), data)
    columns = first.columns(first.start, None, changes=False)
    solution = first.solve(columns, weights, first.passive_rows(first.start, None))
    return data.rigid_torque(first.parameters(solution))


def residual_norms(solution: Solution, weights: Array) -> Array:
    """Length of each joint's residual, unweighted."""
    return np.array([float(np.linalg.norm(r)) for r in solution.residual]) / weights


def joint_weights(norms: Array, torque: Array) -> Array:
    """One over the noise of each joint, of geometric mean one."""
    floor = 1e-10 * max(float(np.sqrt((torque**2).mean())), 1e-300)
    noise = np.maximum(norms / np.sqrt(np.maximum(np.count_nonzero(torque, axis=0), 1)), floor)
    weights = 1.0 / used_alone(noise, np.asarray(torque.any(axis=0)))
    return np.asarray(weights / np.exp(np.log(weights).mean()))
