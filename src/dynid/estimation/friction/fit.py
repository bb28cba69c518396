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
from functools import cached_property

import numpy as np
import scipy.linalg
from scipy.sparse.csgraph import connected_components

from dynid.arrays import Array, IntArray, freeze
from dynid.errors import InputError
from dynid.estimation.completion import complete
from dynid.estimation.friction.variable_projection import Block, Search, Solution, curvature, search, solve_blocks
from dynid.parameters import Parameters
from dynid.recording.samples import Samples
from dynid.regression.base import BaseReduction, reduce_to_base
from dynid.regression.channels import torque_channels
from dynid.regression.torque import inverse_dynamics, torque_regressor
from dynid.robot.effects import Effect, Motion, NonlinearOption
from dynid.robot.friction import without_friction
from dynid.robot.model import Robot

MOST_ROWS = 6_000
"""Samples used to search for nonlinear numbers; they are few, and a low-passed signal repeats itself."""
SETTLED = 5e-3
"""Relative change of loads and weights below which they count as settled."""


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """What a search for friction found."""

    robot: Robot
    """With the options found in its effects and all parameters at their estimate."""
    residual_rms: Array
    """Per joint, over the samples used."""
    relative_error: float
    rounds: int
    """How often weights and loads were renewed."""
    evaluations: int
    converged: bool

    @property
    def effects(self) -> tuple[Effect, ...]:
        return self.robot.effects


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
    weighted: bool = True,
    rounds: int = 10,
    most_rows: int = MOST_ROWS,
) -> FrictionFit:
    """Rigid bodies, friction and the numbers inside it, all joints together.

    Options that are searched for start at their value in the robot's effects. ``weighted`` counts each joint by its
    own noise.
    """
    rows = _Rows.of(robot, samples, most_rows)
    return _fit(rows, weighted, rounds, fixed=None)


def fit_residual_friction(
    robot: Robot, samples: Samples | Sequence[Samples], *, rounds: int = 10, most_rows: int = MOST_ROWS
) -> FrictionFit:
    """Friction alone, joint by joint, on ``tau - tau_hat`` of rigid bodies taken as known (Gaz and others 2019, IV-B).

    The rigid bodies are those of the robot's own parameters and stay as they are, so only this step is repeated when the
    lubrication changed or another robot of the same make is at hand.
    """
    rows = _Rows.of(robot, samples, most_rows)
    return _fit(rows, False, rounds, fixed=robot.parameters)


def _fit(rows: _Rows, weighted: bool, rounds: int, fixed: Parameters | None) -> FrictionFit:
    theta, load, weights = rows.start, None, np.ones(rows.n_joints)
    evaluations, done, converged = 0, 0, False
    prior = fixed or rows.robot.parameters
    if rows.loaded:
        load = rows.rigid_torque(prior) if fixed is not None else rows.first_load()
    problem = _Problem(rows, weights, load, fixed is not None)
    for done in range(1, rounds + 1):
        found = problem.search(theta)
        evaluations += found.evaluations
        moved = float(np.abs(found.place - theta).max(initial=0.0))
        theta, solution = found.place, problem.solve(found.place)
        residual = problem.residual(solution, theta)
        new_weights = _weights(residual, rows.torque) if weighted else weights
        new_load = rows.rigid_torque(problem.parameters(solution)) if rows.loaded and fixed is None else load
        change = float(np.abs(np.log(new_weights / weights)).max())
        if load is not None and new_load is not None:
            change = max(change, _relative(new_load - load, load))
        converged = found.converged and (moved < 0.05 or done == 1) and change < SETTLED
        if converged:
            break
        weights, load = new_weights, new_load
        problem = _Problem(rows, weights, load, fixed is not None)
    solution = problem.solve(theta)
    residual = problem.residual(solution, theta)
    return FrictionFit(
        robot=rows.robot_at(theta).with_parameters(problem.parameters(solution)),
        residual_rms=freeze(np.sqrt((residual**2).mean(axis=0))),
        relative_error=_relative(residual, rows.torque),
        rounds=done,
        evaluations=evaluations,
        converged=converged,
    )


def _relative(error: Array, reference: Array) -> float:
    return float(np.linalg.norm(error)) / max(float(np.linalg.norm(reference)), 1e-300)


def _weights(residual: Array, torque: Array) -> Array:
    """One over the noise of each joint, of geometric mean one."""
    floor = 1e-10 * max(float(np.sqrt((torque**2).mean())), 1e-300)
    weights = 1.0 / np.maximum(np.sqrt((residual**2).mean(axis=0)), floor)
    return np.asarray(weights / np.exp(np.log(weights).mean()))


@dataclass(frozen=True)
class _Variable:
    """One nonlinear quantity, with a number for every joint, and the effects that share it."""

    option: NonlinearOption
    effects: tuple[int, ...]

    def to_search(self, values: Array) -> Array:
        kept = np.clip(values, self.option.low, self.option.high)
        return np.log(kept) if self.option.logarithmic else kept

    def from_search(self, place: Array) -> Array:
        return np.exp(place) if self.option.logarithmic else place

    def slope(self, values: Array) -> Array:
        """Change of the value with the place."""
        return values if self.option.logarithmic else np.ones_like(values)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The samples used, and everything about them that does not change during a search."""

    robot: Robot
    rigid: Robot
    position: Array
    velocity: Array
    acceleration: Array
    torque: Array
    Y: Array
    """Regressor of everything but friction."""

    @classmethod
    def of(cls, robot: Robot, samples: Samples | Sequence[Samples], most_rows: int) -> _Rows:
        if robot.floating:
            raise InputError(f"robot '{robot.name}' has a floating base: friction is fitted on robots that stand fixed")
        sets = [samples] if isinstance(samples, Samples) else list(samples)
        if not sets:
            raise InputError("fitting friction needs at least one set of samples, got none")
        if not any(effect.is_friction for effect in robot.effects):
            raise InputError(f"robot '{robot.name}' has no friction among its effects, so there is none to fit")
        every = max(1, int(np.ceil(sum(len(one) for one in sets) / most_rows)))
        thinned = [one[::every] for one in sets]
        if any(one.torque is None for one in thinned):
            raise InputError("samples hold motion but no torque, so there is nothing to fit friction to")
        q, v, a, tau = (
            np.vstack([getattr(one, name) for one in thinned]) for name in ("position", "velocity", "acceleration", "torque")
        )
        rigid = without_friction(robot)
        if len(q) * robot.n_dof < len(robot.parameters):
            raise InputError(f"{len(q)} samples of {robot.n_dof} joints are too few for {len(robot.parameters)} parameters")
        return cls(robot, rigid, q, v, a, tau, torque_regressor(rigid, q, v, a))

    @property
    def n_joints(self) -> int:
        return self.robot.n_dof

    @cached_property
    def base(self) -> BaseReduction:
        """Base parameters of everything but friction."""
        return reduce_to_base(self.rigid)

    @cached_property
    def layout(self) -> _Layout:
        return _Layout.of(self.robot, self.friction)

    @cached_property
    def unexplained(self) -> Array:
        """Torque that the prior rigid bodies leave unexplained."""
        return self.torque - self.rigid_torque(self.rigid.parameters)

    @cached_property
    def _blocks(self) -> dict[tuple[int, bool], Block]:
        return {}

    def rigid_columns(self, joint: int) -> Array:
        return self.Y[:, joint, torque_channels(self.rigid)[joint].columns]

    def expansion(self, joint: int) -> Array:
        return np.asarray(torque_channels(self.rigid)[joint].expansion @ self.base.lift)

    def plain_block(self, joint: int, fixed: bool) -> Block:
        """Block of one joint with weight one; weights only scale it, so it is factored once."""
        key = (joint, fixed)
        if key not in self._blocks:
            tau = self.unexplained[:, joint]
            self._blocks[key] = (
                Block.of(np.zeros((len(tau), 0)), tau, np.zeros((0, 0)))
                if fixed
                else Block.of(self.rigid_columns(joint), tau, self.expansion(joint))
            )
        return self._blocks[key]

    @cached_property
    def loaded(self) -> bool:
        return needs_load(self.robot)

    @cached_property
    def friction(self) -> tuple[int, ...]:
        """Which of the robot's effects are friction."""
        return tuple(i for i, effect in enumerate(self.robot.effects) if effect.is_friction)

    @cached_property
    def variables(self) -> tuple[_Variable, ...]:
        found: dict[str, tuple[NonlinearOption, list[int]]] = {}
        for i in self.friction:
            for option in self.robot.effects[i].nonlinear_options():
                found.setdefault(option.key, (option, []))[1].append(i)
        return tuple(_Variable(option, tuple(effects)) for option, effects in found.values())

    @cached_property
    def searched(self) -> tuple[int, ...]:
        """Which of the robot's effects a search changes."""
        return tuple(sorted({i for variable in self.variables for i in variable.effects}))

    @cached_property
    def start(self) -> Array:
        """Where a search starts, variable after variable, joint after joint."""
        places = [
            variable.to_search(self.robot.effects[variable.effects[0]].option_values(variable.option.name, self.n_joints))
            for variable in self.variables
        ]
        return np.concatenate(places) if places else np.zeros(0)

    def bounds(self) -> tuple[Array, Array]:
        limits = [variable.to_search(np.array([variable.option.low, variable.option.high])) for variable in self.variables]
        low, high = np.array(limits).reshape(-1, 2).T
        return np.repeat(low, self.n_joints), np.repeat(high, self.n_joints)

    def robot_at(self, theta: Array) -> Robot:
        return self.robot.with_effects(self.effects_at(theta))

    def effects_at(self, theta: Array) -> tuple[Effect, ...]:
        effects = list(self.robot.effects)
        for variable, place in zip(self.variables, theta.reshape(-1, self.n_joints), strict=True):
            for i in variable.effects:
                effects[i] = effects[i].with_option(variable.option.name, variable.from_search(place))
        return tuple(effects)

    def motion(self, load: Array | None) -> Motion:
        return Motion(self.position, self.velocity, self.acceleration, load)

    def rigid_torque(self, parameters: Parameters) -> Array:
        values = np.array([parameters[name] for name in self.rigid.parameters.names])
        return np.asarray(self.Y @ values)

    def first_load(self) -> Array:
        """The load by a first estimate without the effects that need one."""
        plain = [effect for effect in self.robot.effects if not effect.loaded]
        first = replace(self, robot=self.robot.with_effects(plain))
        if not first.friction:
            return self.torque
        problem = _Problem(first, np.ones(self.n_joints), None, False)
        return self.rigid_torque(problem.parameters(problem.solve(first.start)))


class _Problem:
    """Blocks of the variable projection at given weights and loads."""

    def __init__(self, rows: _Rows, weights: Array, load: Array | None, fixed: bool) -> None:
        self._rows, self._weights, self._motion, self._fixed = rows, weights, rows.motion(load), fixed
        self._layout = rows.layout
        self._blocks = [self._block(k) for k in range(len(self._layout.groups))]

    def search(self, theta: Array) -> Search:
        if not len(theta):
            return Search(theta, 0.0, 1, True)
        low, high = self._rows.bounds()
        return search(self._model, theta, low, high)

    def solve(self, theta: Array) -> Solution:
        return solve_blocks(self._blocks, self._own_columns(self._signals(theta)))

    def parameters(self, solution: Solution) -> Parameters:
        """All parameters of the robot at a solution: what rows do not show stays as it was."""
        rows = self._rows
        known = rows.robot.parameters
        if not self._fixed:
            beta = rows.base.base_values(rows.rigid.parameters) + solution.shared
            known = known.updated(complete(rows.base, beta, rows.rigid.parameters).as_dict())
        return known.updated(dict(zip(self._layout.names, self._values(solution).tolist(), strict=True)))

    def residual(self, solution: Solution, theta: Array) -> Array:
        """``tau - tau_hat``, unweighted."""
        friction = (self._signals(theta) * self._values(solution)) @ self._layout.incidence.T
        return self._rows.torque - self._rows.rigid_torque(self.parameters(solution)) - friction

    def _values(self, solution: Solution) -> Array:
        values = np.zeros(len(self._layout.names))
        for columns, own in zip(self._layout.columns, solution.own, strict=True):
            values[columns] = own
        return values

    def _block(self, k: int) -> Block:
        group, rows = self._layout.groups[k], self._rows
        if len(group) == 1:
            plain = rows.plain_block(int(group[0]), self._fixed)
            return Block(plain.Q, self._weights[group[0]] * plain.R, plain.expansion)
        tau = np.concatenate([self._weights[d] * rows.unexplained[:, d] for d in group])
        if self._fixed:
            return Block.of(np.zeros((len(tau), 0)), tau, np.zeros((0, 0)))
        A = scipy.linalg.block_diag(*(self._weights[d] * rows.rigid_columns(int(d)) for d in group))
        return Block.of(A, tau, np.vstack([rows.expansion(int(d)) for d in group]))

    def _signals(self, theta: Array) -> Array:
        effects = self._rows.effects_at(theta)
        signals = self._given_signals.copy()
        for i in self._rows.searched:
            signals[:, self._layout.parts[i]] = effects[i].signals(self._motion)
        return signals

    @cached_property
    def _given_signals(self) -> Array:
        """Signals of the effects that no search changes; the columns of the others are to be filled in."""
        rows, layout = self._rows, self._layout
        signals = np.empty((len(rows.torque), len(layout.names)))
        for i in set(rows.friction) - set(rows.searched):
            signals[:, layout.parts[i]] = rows.robot.effects[i].signals(self._motion)
        return signals

    def _signals_and_derivatives(self, theta: Array) -> tuple[Array, dict[tuple[int, str], Array]]:
        """All signals, and by effect and option how those of a searched effect change: what they share is computed once."""
        rows = self._rows
        effects, signals = rows.effects_at(theta), self._given_signals.copy()
        derivatives: dict[tuple[int, str], Array] = {}
        for i in rows.searched:
            options = [variable.option.name for variable in rows.variables if i in variable.effects]
            own, slopes = effects[i].signals_and_derivatives(self._motion, options)
            signals[:, self._layout.parts[i]] = own
            derivatives |= {(i, option): slope for option, slope in slopes.items()}
        return signals, derivatives

    def _own_columns(self, signals: Array) -> list[Array]:
        """Rows of each group, joint after joint, over the columns that enter it."""
        layout = self._layout
        return [
            np.vstack([self._weights[d] * layout.incidence[d, columns] * signals[:, columns] for d in group])
            for group, columns in zip(layout.groups, layout.columns, strict=True)
        ]

    def _model(self, theta: Array) -> tuple[float, Array, Array]:
        signals, derivatives = self._signals_and_derivatives(theta)
        columns = self._own_columns(signals)
        solution = solve_blocks(self._blocks, columns)
        changes = self._changes(theta, self._values(solution), derivatives)
        gradient, hessian = curvature(self._blocks, columns, changes)
        n, layout = self._rows.n_joints, self._layout
        place = np.concatenate(
            [k * n + owner for group in range(len(layout.groups)) for k in range(len(theta) // n)
             for owner in [layout.owners(group)]]
        )  # fmt: skip
        full_gradient, full_hessian = np.zeros(len(theta)), np.zeros((len(theta), len(theta)))
        full_gradient[place] = gradient
        full_hessian[np.ix_(place, place)] = hessian
        return solution.cost, full_gradient, full_hessian

    def _changes(self, theta: Array, values: Array, derivatives: Mapping[tuple[int, str], Array]) -> list[Array]:
        """Change of the rows of each group with its numbers: variable after variable, owner after owner."""
        rows, layout = self._rows, self._layout
        moved = []
        for variable, place in zip(rows.variables, theta.reshape(-1, rows.n_joints), strict=True):
            slope = variable.slope(variable.from_search(place))
            change = np.zeros((len(rows.torque), len(layout.names)))
            for i in variable.effects:
                part = layout.parts[i]
                change[:, part] = derivatives[i, variable.option.name]
            moved.append(change * (values * slope[layout.owner]))
        changes = []
        for group, columns in enumerate(layout.columns):
            owners = layout.owners(group)
            sums = np.equal.outer(layout.owner[columns], owners).astype(np.float64)  # columns to their owners
            stacked = [
                np.vstack([
                    self._weights[d] * (change[:, columns] @ (layout.incidence[d, columns, None] * sums))
                    for d in layout.groups[group]
                ])
                for change in moved
            ]  # fmt: skip
            changes.append(np.hstack(stacked))
        return changes


@dataclass(frozen=True, eq=False)
class _Layout:
    """Which friction columns there are, whose they are and which joints share them."""

    names: tuple[str, ...]
    owner: IntArray
    """Joint, or motor, of every column."""
    incidence: Array
    parts: dict[int, slice]
    """Columns of each friction effect, by its place among the robot's effects."""
    groups: tuple[IntArray, ...]
    """Joints that share friction columns, directly or through others."""
    columns: tuple[IntArray, ...]
    """Columns that enter each group."""

    @classmethod
    def of(cls, robot: Robot, friction: Sequence[int]) -> _Layout:
        n = robot.n_dof
        blocks = {i: robot.effects[i].columns(range(1, n + 1), robot.joints) for i in friction}
        ends = np.cumsum([0, *(len(block) for block in blocks.values())])
        incidence = np.hstack([robot.effects[i].incidence(n) for i in friction])
        groups = _connected(incidence)
        return cls(
            names=tuple(column.name for block in blocks.values() for column in block),
            owner=freeze([column.number - 1 for block in blocks.values() for column in block], np.int64),
            incidence=freeze(incidence),
            parts={i: slice(int(ends[k]), int(ends[k + 1])) for k, i in enumerate(blocks)},
            groups=groups,
            columns=tuple(np.flatnonzero(np.abs(incidence[group]).max(axis=0) > 0.0) for group in groups),
        )

    def owners(self, group: int) -> IntArray:
        """Joints (or motors) whose numbers act in a group."""
        return np.unique(self.owner[self.columns[group]])


def _connected(incidence: Array) -> tuple[IntArray, ...]:
    touched = (np.abs(incidence) > 0.0).astype(np.float64)
    n, labels = connected_components(touched @ touched.T + np.eye(len(incidence)), directed=False)
    return tuple(np.flatnonzero(labels == k) for k in range(n))
