"""Friction with numbers inside it: widths, slopes and speeds found by variable projection, loads by iteration.

    tau = Y(q, v, a) beta + sum_c s_c(v, a, load; theta) c

``theta`` (a few numbers per joint) is searched for over all joints together, with base parameters and linear friction solved
inside. Friction that grows with the transmitted torque takes as its load what the current estimate says of everything but
friction, and is iterated until the load settles. Gaz and others (2019, IV-B) instead fit each joint for itself on the torque
that known rigid bodies leave unexplained: :func:`fit_residual_friction`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dynid.arrays import Array, freeze
from dynid.estimation.friction.data import MOST_ROWS, FrictionData
from dynid.estimation.friction.model import Columns, FrictionModel, Solution
from dynid.estimation.friction.passive import passive_solution
from dynid.recording.samples import Samples
from dynid.regression.row_filter import RowFilter
from dynid.regression.torque import inverse_dynamics
from dynid.robot.effects import Effect
from dynid.robot.friction import without_friction
from dynid.robot.model import Robot

ROUNDS = 10
"""How often weights and loads are renewed at most."""
_RIDGE = 1e-11  # of unit columns, for directions that the rows do not show
SETTLED = 5e-3
"""Relative change of loads and weights below which they count as settled."""


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """What a search for friction found."""

    robot: Robot
    """With the options found in its effects and all parameters at their estimate."""
    residual_rms: Array
    """Per joint, over the rows used."""
    relative_error: float
    rounds: int
    """How often weights and loads were renewed."""
    evaluations: int
    converged: bool

    @property
    def effects(self) -> tuple[Effect, ...]:
        return self.robot.effects


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model at its best inner numbers, with everything that leads further from there."""

    model: FrictionModel
    theta: Array
    loads: list[Array] | None
    weights: Array
    columns: Columns
    solution: Solution
    rounds: int
    evaluations: int
    converged: bool

    @property
    def robot(self) -> Robot:
        """The robot with the inner numbers found; its parameters are as they were, the estimator's business."""
        return self.model.robot_at(self.theta)

    def places(self) -> dict[str, Array]:
        """Where each inner number was found, by its key: where another model may start."""
        n = self.model.data.n_joints
        return {v.option.key: place for v, place in zip(self.model.variables, self.theta.reshape(-1, n), strict=True)}

    def result(self) -> FrictionFit:
        """The fit as a robot and its errors."""
        left = residual_norms(self.solution, self.weights)
        torque = self.model.data.measured
        return FrictionFit(
            robot=self.model.robot_at(self.theta).with_parameters(self.model.parameters(self.solution)),
            residual_rms=freeze(left / np.sqrt(len(torque))),
            relative_error=float(np.linalg.norm(left)) / max(float(np.linalg.norm(torque)), 1e-300),
            rounds=self.rounds,
            evaluations=self.evaluations,
            converged=self.converged,
        )


def needs_load(robot: Robot) -> bool:
    """Whether any effect of the robot depends on the transmitted torque."""
    return any(effect.loaded for effect in robot.effects)


def transmitted_load(robot: Robot, samples: Samples) -> Array:
    """Torque of everything but friction, with the robot's own parameters: what gears and bearings carry.

    Rotor inertia is counted in, because it cannot always be told from that of the links.
    """
    return inverse_dynamics(without_friction(robot), samples.position, samples.velocity, samples.acceleration)


def with_transmitted_load(robot: Robot, samples: Samples) -> Samples:
    """Samples that carry the load of this robot, where one of its effects needs it; else as they are."""
    return samples.with_load(transmitted_load(robot, samples)) if needs_load(robot) else samples


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
    columns and torque alike; without one, samples are thinned to ``most_rows``. ``weighted`` counts each joint by its own noise.
    """
    data = FrictionData.of(robot, samples, row_filter, most_rows=most_rows)
    return fit_model(FrictionModel(robot, data), weighted=weighted, rounds=rounds).result()


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
    return fit_model(FrictionModel(robot, data), weighted=False, rounds=rounds).result()


def fit_model(
    model: FrictionModel,
    *,
    weighted: bool,
    rounds: int = ROUNDS,
    weights: Array | None = None,
    start: Mapping[str, Array] | None = None,
    finish: bool = True,
) -> Fitted:
    """The best inner numbers of a model; weights and loads are renewed until they settle.

    ``weights`` and ``start``, places of inner numbers by their key, are those of an earlier fit to the same rows. The search
    takes fewer samples than there are where rows are filtered, or ends early where it goes joint by joint; ``finish`` ends it with
    all of them.
    """
    data = model.data
    weights = np.ones(data.n_joints) if weights is None else weights
    theta, loads = _started(model, start or {}), first_loads(model, weights)
    evaluations, done, converged = 0, 0, False
    for done in range(1, rounds + 1):
        found = model.search(theta, loads, weights, coarse=True)
        evaluations += found.evaluations
        moved = float(np.abs(found.place - theta).max(initial=0.0))
        theta = found.place
        columns = model.columns(theta, loads, changes=done == rounds)  # only those of the last round are needed further
        coordinates = model.coordinates(data.basis, columns, data.torque)
        solution = model.solve(data.basis, coordinates, weights, model.passive_rows(theta, loads))
        new_weights = joint_weights(residual_norms(solution, weights), data.measured) if weighted else weights
        new_loads = loads
        change = float(np.abs(np.log(new_weights / weights)).max())
        if loads is not None and not data.held:
            new_loads = data.rigid_torque(model.parameters(solution))
            change = max(change, _relative_change(new_loads, loads))
        converged = found.converged and (moved < 0.05 or done == 1) and change < SETTLED
        if converged:
            break
        weights, loads = new_weights, new_loads
    model.forget_places()
    if converged and done < rounds:
        columns = model.columns(theta, loads)
    fitted = Fitted(model, theta, loads, weights, columns, solution, done, evaluations, converged)
    return finished(fitted) if finish else fitted


def finished(fitted: Fitted) -> Fitted:
    """The fit with its inner numbers searched for on all samples, from where the search on fewer of them ended."""
    model, data = fitted.model, fitted.model.data
    if not len(fitted.theta) or not model.searched_twice:
        return fitted
    found = model.search(fitted.theta, fitted.loads, fitted.weights)
    columns = model.columns(found.place, fitted.loads)
    coordinates = model.coordinates(data.basis, columns, data.torque)
    solution = model.solve(data.basis, coordinates, fitted.weights, model.passive_rows(found.place, fitted.loads))
    return replace(
        fitted, theta=found.place, columns=columns, solution=solution, evaluations=fitted.evaluations + found.evaluations
    )


def with_bodies_held(robot: Robot, data: FrictionData) -> FrictionData:
    """The rows with the rigid bodies held that fit best beside the friction of a robot at its present inner numbers."""
    model = FrictionModel(robot, data)
    weights = joint_weights(np.linalg.norm(data.measured, axis=0), data.measured)  # noise grows with torque, as a rule
    loads = first_loads(model, weights)
    columns = model.columns(model.start, loads, changes=False)
    return data.holding(model.parameters(_by_squares(model, columns, weights, model.passive_rows(model.start, loads))))


def _by_squares(model: FrictionModel, columns: Columns, weights: Array, G: Array) -> Solution:
    """:meth:`~dynid.estimation.friction.model.FrictionModel.solve` by normal equations, joint by joint over the links it carries.

    Half of the digits are lost, which is enough for bodies beside which friction is looked for.
    """
    data, n = model.data, model.data.n_shared
    H, g = np.zeros((n + len(model.names), n + len(model.names))), np.zeros(n + len(model.names))
    H[:n, :n], g[:n] = data.squares(weights)
    for d, entering in enumerate(model.entering):
        own, square = columns.values[:, entering] * model.incidence[d, entering], weights[d] ** 2
        crossed = square * (data.expansions[d].T @ (data.columns[d].T @ own))
        H[:n, n + entering] += crossed
        H[n + entering, :n] += crossed.T
        H[np.ix_(n + entering, n + entering)] += square * (own.T @ own)
        g[n + entering] += square * (own.T @ data.torque[:, d])
    size = np.sqrt(np.maximum(np.diag(H), 1e-300))
    R = np.linalg.cholesky(H / np.outer(size, size) + _RIDGE * np.eye(len(g))).T
    x = np.linalg.solve(R, np.linalg.solve(R.T, g / size))
    found = passive_solution(x, R, G / size)
    x = (x if found is None else found.x) / size
    return Solution(x[:n], x[n:], 0.0, ())


def _started(model: FrictionModel, known: Mapping[str, Array]) -> Array:
    own = model.start.reshape(-1, model.data.n_joints)
    places = [known.get(v.option.key, place) for v, place in zip(model.variables, own, strict=True)]
    return np.concatenate(places) if places else model.start


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
    coordinates = first.coordinates(data.basis, columns, data.torque)
    solution = first.solve(data.basis, coordinates, weights, first.passive_rows(first.start, None))
    return data.rigid_torque(first.parameters(solution))


def residual_norms(solution: Solution, weights: Array) -> Array:
    """Length of each joint's residual, unweighted."""
    return np.array([float(np.linalg.norm(r)) for r in solution.residual]) / weights


def joint_weights(norms: Array, torque: Array) -> Array:
    """One over the noise of each joint, of geometric mean one."""
    floor = 1e-10 * max(float(np.sqrt((torque**2).mean())), 1e-300)
    weights = 1.0 / np.maximum(norms / np.sqrt(len(torque)), floor)
    return np.asarray(weights / np.exp(np.log(weights).mean()))


def _relative_change(new: Sequence[Array], old: Sequence[Array]) -> float:
    change = np.sqrt(sum(float(((a - b) ** 2).sum()) for a, b in zip(new, old, strict=True)))
    return float(change) / max(float(np.sqrt(sum(float((b**2).sum()) for b in old))), 1e-300)
