"""A friction model over filtered rows: its columns, their change with the numbers inside, and the linear solve between them.

Variable projection (Golub and Pereyra 1973): at given inner numbers ``theta`` base parameters and friction values follow from
one small linear solve; the residual changes with ``theta`` as the changes of the columns outside the span of all columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast, overload

import numpy as np
import scipy.linalg

from dynid.arrays import Array, BoolArray, IntArray
from dynid.errors import InputError
from dynid.estimation.completion import complete
from dynid.estimation.friction.data import Basis, FrictionData
from dynid.estimation.friction.passive import Passive, passive_solution
from dynid.estimation.friction.search import Search, search, search_parts
from dynid.parameters import Parameters
from dynid.regression.independence import SPANNED, orthonormal_basis
from dynid.robot.effects import Effect, JointwiseEffect, NonlinearOption
from dynid.robot.friction import is_searched
from dynid.robot.model import Robot
from dynid.robot.passivity import FrictionColumns, FrictionReach, passivity_rows

COARSE_GAIN, COARSE_STEP = 1e-4, 1e-2
"""Part of the cost, and step of any number, at which a search on fewer samples ends."""


@dataclass(frozen=True)
class Variable:
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
class Columns:
    """Friction columns over rows at some inner numbers, and their changes, ``(rows, columns)`` each."""

    values: Array
    changes: tuple[Array, ...]
    """One per variable, per unit of its place; zero for columns that do not change with it."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Base parameters (as a correction of the nominal ones) and friction values at some inner numbers."""

    shared: Array
    own: Array
    cost: float
    residual: tuple[Array, ...]
    """Weighted, in the coordinates of each joint."""


_KEPT_PLACES = 3


@dataclass(frozen=True, eq=False)
class _Place:
    """Coordinates of the columns and limits of the values at some inner numbers and loads."""

    theta: Array
    loads: Sequence[Array] | None
    coarse: bool
    asked: BoolArray
    """Joints whose coordinates can be asked for."""
    coordinates: Sequence[Array]
    passive: Array


class _Lazy(Sequence[Array]):
    """Coordinates of every joint, each made when it is first asked for: a search asks for few joints at most places."""

    def __init__(self, make: Callable[[int], Array], n_joints: int) -> None:
        self._make, self._made = make, cast("list[Array | None]", [None] * n_joints)

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, place: int) -> Array: ...
    @overload
    def __getitem__(self, place: slice) -> list[Array]: ...
    def __getitem__(self, place: int | slice) -> Array | list[Array]:
        if isinstance(place, slice):
            return [self[d] for d in range(*place.indices(len(self)))]
        found = self._made[place]
        if found is None:
            found = self._made[place] = self._make(place)
        return found


class FrictionModel:
    """The friction of one robot over the rows of a fit."""

    def __init__(self, robot: Robot, data: FrictionData) -> None:
        if not any(is_searched(effect) for effect in robot.effects):
            raise InputError(f"robot '{robot.name}' has no friction among its effects, so there is none to fit")
        self.robot, self.data = robot, data
        self.effects = tuple(effect for effect in robot.effects if is_searched(effect))
        n = data.n_joints
        self.incidence = np.hstack([effect.incidence(n) for effect in self.effects])
        widths = [effect.incidence(n).shape[1] for effect in self.effects]
        ends = np.cumsum(widths)
        self._parts = [slice(int(end - width), int(end)) for end, width in zip(ends, widths, strict=True)]
        numbers = list(robot.driven_numbers)
        named = [column for effect in self.effects for column in effect.columns(numbers, robot.driven_joints)]
        self.names = tuple(column.name for column in named)
        self.owner: IntArray = np.array(
            [numbers.index(column.number) for column in named]
        )  # joint or motor whose inner numbers they have
        self.entering = [np.flatnonzero(self.incidence[d]) for d in range(n)]
        self.loaded = any(effect.loaded for effect in self.effects)
        self._fixed: dict[int, Array] = {}
        self._places: list[_Place] = []
        self._loaded_reach: tuple[Sequence[Array], FrictionReach] | None = None
        self._signs: Array | None = None
        self._reach: FrictionReach | None = None
        self._fixed_odd: tuple[FrictionReach | None, dict[tuple[int, int], Array]] = None, {}
        self._effects: tuple[Array, tuple[Effect, ...]] | None = None

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        found: dict[str, tuple[NonlinearOption, list[int]]] = {}
        for i, effect in enumerate(self.effects):
            for option in effect.nonlinear_options():
                found.setdefault(option.key, (option, []))[1].append(i)
        return tuple(Variable(option, tuple(effects)) for option, effects in found.values())

    @cached_property
    def start(self) -> Array:
        """Where a search starts, variable after variable, joint after joint."""
        n = self.data.n_joints
        places = [
            variable.to_search(self.effects[variable.effects[0]].option_values(variable.option.name, n))
            for variable in self.variables
        ]
        return np.concatenate(places) if places else np.zeros(0)

    def bounds(self) -> tuple[Array, Array]:
        """Lowest and highest place of every number."""
        n = self.data.n_joints
        limits = [variable.to_search(np.array([variable.option.low, variable.option.high])) for variable in self.variables]
        low, high = np.array(limits).reshape(-1, 2).T
        return np.repeat(low, n), np.repeat(high, n)

    def effects_at(self, theta: Array) -> tuple[Effect, ...]:
        """The friction effects with these inner numbers."""
        if self._effects is not None and np.array_equal(self._effects[0], theta):  # asked for several times at a place
            return self._effects[1]
        effects = list(self.effects)
        for variable, place in zip(self.variables, theta.reshape(-1, self.data.n_joints), strict=True):
            for i in variable.effects:
                effects[i] = effects[i].with_option(variable.option.name, variable.from_search(place))
        self._effects = np.array(theta), tuple(effects)
        return self._effects[1]

    def robot_at(self, theta: Array) -> Robot:
        """The robot with these inner numbers."""
        found = iter(self.effects_at(theta))
        return self.robot.with_effects([next(found) if is_searched(effect) else effect for effect in self.robot.effects])

    def columns(
        self,
        theta: Array,
        loads: Sequence[Array] | None,
        *,
        changes: bool = True,
        coarse: bool = False,
        asked: BoolArray | None = None,
    ) -> Columns:
        """Columns at some inner numbers; those without inner numbers and load are made once.

        ``coarse`` makes the others from fewer samples, see :attr:`~dynid.estimation.friction.data.Log.coarse`. Columns of joints that
        are not asked for may be zero.
        """
        effects = self.effects_at(theta)
        wanted: list[list[str]] = [[] for _ in effects]
        for variable in self.variables if changes else ():
            for i in variable.effects:
                wanted[i].append(variable.option.name)
        moving = [i for i, effect in enumerate(effects) if effect.nonlinear_options() or effect.loaded]
        for i in range(len(effects)):
            if i not in moving and i not in self._fixed:
                self._fixed[i] = np.concatenate([log.rows([effects[i].signals(m)]) for log, m in self.data.motions(None)])
        stacked = np.zeros((len(self.data.torque), 0))
        if moving:
            made, few = [], self._few(asked, moving)
            own = [effects[i] if few is None else effects[i].kept(few) for i in moving]
            for log, m in self.data.motions(loads, coarse=coarse):
                part = m if few is None else m.of_joints(few)
                found = [
                    effect.signals_and_derivatives(part, wanted[i])  # type: ignore[union-attr]
                    for effect, i in zip(own, moving, strict=True)
                ]
                made.append(log.rows([part for signals, slopes in found for part in (signals, *slopes.values())]))
            stacked = np.concatenate(made)
            if few is not None:
                whole = np.zeros((len(stacked), stacked.shape[1] // len(few), self.data.n_joints))
                whole[:, :, few] = stacked.reshape(len(stacked), -1, len(few))
                stacked = whole.reshape(len(stacked), -1)
        return self._arranged(stacked, moving, wanted, theta, changes)

    def _few(self, asked: BoolArray | None, moving: list[int]) -> list[int] | None:
        """The joints asked for, where making their columns alone saves work; None for all."""
        alone = all(isinstance(self.effects[i], JointwiseEffect) for i in moving)
        if asked is None or not alone or not 0 < 2 * np.count_nonzero(asked) <= len(asked):
            return None
        return [int(joint) for joint in np.flatnonzero(asked)]

    def _arranged(self, stacked: Array, moving: list[int], wanted: list[list[str]], theta: Array, changes: bool) -> Columns:
        n_rows, n_columns = len(self.data.torque), len(self.names)
        values = np.empty((n_rows, n_columns))
        slopes: dict[tuple[int, str], Array] = {}
        first = 0
        for i in moving:
            part = self._parts[i]
            width = part.stop - part.start
            values[:, part] = stacked[:, first : first + width]
            first += width
            for name in wanted[i]:
                slopes[i, name] = stacked[:, first : first + width]
                first += width
        for i, fixed in self._fixed.items():
            values[:, self._parts[i]] = fixed
        if not changes:
            return Columns(values, ())
        moved = []
        for variable, place in zip(self.variables, theta.reshape(-1, self.data.n_joints), strict=True):
            slope = variable.slope(variable.from_search(place))
            change = np.zeros((n_rows, n_columns))
            for i in variable.effects:
                part = self._parts[i]
                change[:, part] = slopes[i, variable.option.name] * slope[self.owner[part]]
            moved.append(change)
        return Columns(values, tuple(moved))

    # Linear solve -----------------------------------------------------------------------------

    def passive_rows(self, theta: Array, loads: Sequence[Array] | None) -> Array:
        """``G x >= 0`` over base parameters and friction values: signs, and friction that drives no joint at its speeds."""
        if self._signs is None:
            signed = [
                column.symbol in effect.nonnegative
                for effect in self.effects
                for column in effect.columns(list(self.robot.driven_numbers), self.robot.driven_joints)
            ]
            self._signs = np.eye(len(self.names))[np.array(signed, dtype=bool)]
            self._reach = FrictionReach.of(self.robot, [log.samples for log in self.data.logs])
        assert self._reach is not None
        reach = self._reach
        if loads is not None:
            if self._loaded_reach is None or self._loaded_reach[0] is not loads:  # a search keeps its loads
                most = np.max([np.abs(load).max(axis=0) for load in loads], axis=0)
                self._loaded_reach = loads, FrictionReach(reach.speed, most)
            reach = self._loaded_reach[1]
        numbers, joints = self.robot.driven_numbers, self.robot.driven_joints
        if self._fixed_odd[0] is not reach:
            self._fixed_odd = reach, {}
        rows = passivity_rows(
            self.effects_at(theta), numbers, joints, reach, implied=False, columns=self._rubbing, fixed=self._fixed_odd[1]
        )
        whole = np.zeros((len(rows), len(self.names)))
        whole[:, self._rubbing_places] = rows.G
        own = np.vstack([self._signs, whole])
        return np.hstack([np.zeros((len(own), self.data.n_shared)), own])

    @cached_property
    def _rubbing(self) -> FrictionColumns:
        return FrictionColumns.of(self.effects, self.robot.driven_numbers, self.robot.driven_joints)

    @cached_property
    def _rubbing_places(self) -> list[int]:
        place = {name: i for i, name in enumerate(self.names)}
        return [place[name] for name in self._rubbing.names]

    def coordinates(self, basis: Basis, columns: Columns, torque: Array) -> Sequence[Array]:
        """For every joint the coordinates of ``[own columns | their changes | torque]``."""

        def made(d: int) -> Array:
            entering = self.entering[d]
            gain = self.incidence[d, entering]
            parts = [columns.values[:, entering] * gain, *(change[:, entering] * gain for change in columns.changes)]
            return basis.coordinates(d, np.hstack([*parts, torque[:, d : d + 1]]))

        return _Lazy(made, len(self.entering))

    @cached_property
    def apart(self) -> bool:
        """Whether every joint is a problem of its own: bodies are held and no column enters two joints."""
        alone = (np.count_nonzero(self.incidence, axis=0) == 1).all()
        return bool(self.data.held and alone and all((self.owner[e] == d).all() for d, e in enumerate(self.entering)))

    @property
    def searched_twice(self) -> bool:
        """Whether a rough search goes before the exact one: on fewer samples, or for many joints whose models are compared first."""
        return self.data.has_coarse or self.apart

    def places_of(self, joint: int) -> IntArray:
        """Numbers inside the friction of one joint, where joints are problems of their own."""
        return np.arange(len(self.variables)) * self.data.n_joints + joint

    def solve(self, basis: Basis, coordinates: Sequence[Array], weights: Array, G: Array) -> Solution:
        """Base parameters and passive friction values that fit best, joints counted by their weights.

        ``G`` are the :meth:`passive_rows`.
        """
        if self.apart:
            each = [self._of_joint(d, c, weights[d], G)[0] for d, c in enumerate(coordinates)]
            return self._joined(each)
        return self._solution(Solver(self.system(basis, coordinates, weights)), coordinates, weights, G)[0]

    def _solution(self, solver: Solver, coordinates: Sequence[Array], weights: Array, G: Array) -> tuple[Solution, Span]:
        """The solution, and the span of what is left to move where friction is held at its limits."""
        y = np.concatenate([w * c[:, -1] for w, c in zip(weights, coordinates, strict=True)])
        x, held = solver.solve(y), solver.span
        found = solver.passive(x, G)
        if found is not None:
            x, held = found.x, solver.within(scipy.linalg.null_space(G[found.active]))
        left = y - solver.A @ x
        ends = np.cumsum([len(c) for c in coordinates])[:-1]
        n = self.data.n_shared
        return Solution(x[:n], x[n:], float(left @ left), tuple(np.split(left, ends))), held

    def _of_joint(self, joint: int, c: Array, weight: float, G: Array) -> tuple[Solution, Solver, Passive | None]:
        """The solution of a joint that is a problem of its own."""
        own = self.entering[joint]
        mine = G[:, own]
        solver, y = Solver(weight * c[:, : len(own)]), weight * c[:, -1]
        x = solver.solve(y)
        found = solver.passive(x, mine[mine.any(axis=1)])
        x = x if found is None else found.x
        left = y - solver.A @ x
        return Solution(x[:0], x, float(left @ left), (left,)), solver, found

    def _joined(self, each: Sequence[Solution]) -> Solution:
        own = np.zeros(len(self.names))
        for entering, one in zip(self.entering, each, strict=True):
            own[entering] = one.own
        return Solution(own[:0], own, sum(one.cost for one in each), tuple(one.residual[0] for one in each))

    def _steps_apart(self, here: _Place, weights: Array, asked: BoolArray) -> tuple[Array, Array, Array]:
        """Cost, gradient and Gauss-Newton matrices of the joints asked for, where every joint is a problem of its own."""
        n, n_joints = len(self.variables), self.data.n_joints
        cost, gradient, hessian = np.zeros(n_joints), np.zeros(n * n_joints), np.zeros((n_joints, n, n))
        for d in np.flatnonzero(asked).tolist():
            c, entering = here.coordinates[d], self.entering[d]
            solution, solver, limited = self._of_joint(d, c, weights[d], here.passive)
            m, places = len(entering), self.places_of(d)
            changes = [c[:, m * (k + 1) : m * (k + 2)] @ solution.own for k in range(len(self.variables))]
            span = solver.span
            if limited is not None:
                mine = here.passive[:, entering]
                span = solver.within(scipy.linalg.null_space(mine[mine.any(axis=1)][limited.active]))
            J = span.outside(weights[d] * np.column_stack(changes))
            cost[d] = solution.cost
            gradient[places] = -2.0 * J.T @ solution.residual[0]
            hessian[d] = 2.0 * J.T @ J
        return cost, gradient, hessian

    def system(self, basis: Basis, coordinates: Sequence[Array], weights: Array) -> Array:
        """Weighted rows of all joints over base parameters and friction values."""
        n_shared = self.data.n_shared
        rows = []
        for d, (c, entering) in enumerate(zip(coordinates, self.entering, strict=True)):
            block = np.zeros((len(c), n_shared + len(self.names)))
            block[:, :n_shared] = basis.shared_rows(d, len(c))
            block[:, n_shared + entering] = c[:, : len(entering)]
            rows.append(weights[d] * block)
        return np.vstack(rows)

    def tangents(self, coordinates: Sequence[Array], own: Array, weights: Array) -> Array:
        """Weighted rows of all joints over the places of the inner numbers: how the prediction changes with them."""
        n, n_variables = self.data.n_joints, len(self.variables)
        rows = []
        for d, (c, entering) in enumerate(zip(coordinates, self.entering, strict=True)):
            block = np.zeros((len(c), n_variables * n))
            for k in range(n_variables):
                change = c[:, len(entering) * (k + 1) : len(entering) * (k + 2)] * own[entering]
                np.add.at(block.T, k * n + self.owner[entering], change.T)
            rows.append(weights[d] * block)
        return np.vstack(rows)

    def search(
        self, start: Array, loads: Sequence[Array] | None, weights: Array, most: int = 40, *, coarse: bool = False
    ) -> Search:
        """The inner numbers that fit best; ``coarse`` ends where all samples would tell more than a further step."""
        if not len(start):
            return Search(start, 0.0, 0, True)
        low, high = self.bounds()

        def at(theta: Array) -> tuple[float, Array, Array]:
            here = self._at(theta, loads, coarse)
            coordinates = here.coordinates
            solver = Solver(self.system(self.data.basis, coordinates, weights))
            solution, held = self._solution(solver, coordinates, weights, here.passive)
            J = held.outside(self.tangents(coordinates, solution.own, weights))
            return solution.cost, -2.0 * J.T @ np.concatenate(solution.residual), 2.0 * J.T @ J

        limits = {"tolerance": COARSE_GAIN, "settle": COARSE_STEP} if coarse and self.searched_twice else {}
        if self.apart:

            def apart(theta: Array, asked: BoolArray) -> tuple[Array, Array, Array]:
                return self._steps_apart(self._at(theta, loads, coarse, asked), weights, asked)

            return search_parts(apart, self.data.n_joints, start, low, high, most=most, **limits)
        return search(at, start, low, high, most=most, **limits)

    def _at(self, theta: Array, loads: Sequence[Array] | None, coarse: bool, asked: BoolArray | None = None) -> _Place:
        """What does not depend on weights at some inner numbers, of all joints or those asked for.

        It is kept for the last places: the next search starts at one.
        """
        wanted = np.ones(self.data.n_joints, dtype=bool) if asked is None else asked
        for place in self._places:
            same = place.loads is loads and place.coarse == coarse and np.array_equal(place.theta, theta)
            if same and not (wanted & ~place.asked).any():
                return place
        columns = self.columns(theta, loads, coarse=coarse, asked=asked)
        found = self.coordinates(self.data.basis, columns, self.data.torque)
        made = _Place(theta, loads, coarse, wanted.copy(), found, self.passive_rows(theta, loads))
        self._places = [made, *self._places[: _KEPT_PLACES - 1]]
        return made

    def forget_places(self) -> None:
        """Let go of what is kept between the searches of one fit: many fits are held beside each other."""
        self._places = []

    def parameters(self, solution: Solution) -> Parameters:
        """All parameters of the robot at a solution: what rows do not show stays as it was."""
        known = self.robot.parameters
        if not self.data.held:
            beta = self.data.base.base_values(self.data.rigid.parameters) + solution.shared
            known = known.updated(complete(self.data.base, beta, self.data.rigid.parameters).as_dict())
        return known.updated(dict(zip(self.names, solution.own.tolist(), strict=True)))


class Solver:
    """Least squares over unit columns, factored once; directions that the rows do not show stay at zero."""

    def __init__(self, A: Array) -> None:
        self.A = A
        size = np.linalg.norm(A, axis=0)
        self._size = np.where(size > 0.0, size, 1.0)
        self._Q, self._R = np.linalg.qr(A / self._size)
        diagonal = np.abs(np.diag(self._R))
        self._regular = bool(diagonal.size) and diagonal.min() > SPANNED * diagonal.max()

    def solve(self, right: Array) -> Array:
        if not self.A.shape[1]:
            return np.zeros((0, *right.shape[1:]))
        inside = self._Q.T @ right
        if self._regular:
            # small: the checks around it would take longer; by rows, as R lies in memory
            found, _ = scipy.linalg.lapack.dtrtrs(self._R.T, inside, lower=1, trans=1)
        else:
            found = np.linalg.lstsq(self._R, inside, rcond=SPANNED)[0]
        return np.asarray(found / (self._size if right.ndim == 1 else self._size[:, None]))

    def passive(self, x: Array, G: Array) -> Passive | None:
        """The best solution with ``G x >= 0``; None where the unconstrained one, ``x``, has it."""
        if not self.A.shape[1]:
            return None
        R = self._R
        if not self._regular:  # what the rows do not show moves at next to no cost
            R = np.asarray(np.linalg.qr(np.vstack([R, 1e-7 * np.abs(R).max() * np.eye(R.shape[1])]), mode="r"))
        found = passive_solution(x * self._size, R, G / self._size)
        return None if found is None else Passive(found.x / self._size, found.active)

    @property
    def span(self) -> Span:
        """Of all columns."""
        return Span(self._Q) if self._regular else Span(self._Q @ orthonormal_basis(self._R))

    def within(self, N: Array) -> Span:
        """Of the columns ``A N``."""
        return Span(self._Q @ orthonormal_basis(self._R @ (self._size[:, None] * N)))

    def outside(self, columns: Array) -> Array:
        """What the columns cannot make up for."""
        return self.span.outside(columns)


@dataclass(frozen=True, eq=False)
class Span:
    """What some columns can make up for, by an orthonormal basis."""

    basis: Array

    def outside(self, columns: Array) -> Array:
        """What is left of other columns."""
        return columns - self.basis @ (self.basis.T @ columns)
