"""A friction model over filtered rows: its columns, their change with the numbers inside, and the linear solve between them.

Variable projection (Golub and Pereyra 1973): at given inner numbers ``theta`` base parameters and friction values follow from
one small linear solve; the residual changes with ``theta`` as the changes of the columns outside the span of all columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynid.arrays import Array, BoolArray, IntArray
from dynid.errors import InputError
from dynid.estimation.friction.passivity import FrictionReach, Passivity
from dynid.estimation.friction.rows import Basis, FrictionData
from dynid.estimation.friction.search import Search, Solver, outside, search
from dynid.estimation.linear import base_to_standard
from dynid.model.effects.effect import Effect, NonlinearParameter
from dynid.model.effects.jointwise import JointwiseEffect
from dynid.model.friction import is_searched
from dynid.model.parameters import Parameters
from dynid.model.robot import Robot

COARSE_GAIN, COARSE_STEP = 1e-4, 1e-2
"""Part of the cost, and step of any number, at which a search on fewer samples ends."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Base parameters (as a correction of the nominal ones) and friction values at some inner numbers."""

    shared: Array
    own: Array
    cost: float
    residual: tuple[Array, ...]
    """Weighted, in the coordinates of each joint."""


_KEPT_PLACES = 3


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
        self._places: list[tuple[Array, Sequence[Array] | None, bool, BoolArray, list[Array], Array]] = []
        self._loaded_reach: tuple[Sequence[Array], FrictionReach] | None = None
        self._effects: tuple[Array, tuple[Effect, ...]] | None = None
        # columns that no search changes are factored once, beside those of the bodies where these are estimated
        moves = [np.full(width, data.held or _moves(effect)) for width, effect in zip(widths, self.effects, strict=True)]
        self._still, self._moving = np.flatnonzero(~np.concatenate(moves)), np.flatnonzero(np.concatenate(moves))
        self._factored: tuple[Array, Array, Array] | None = None
        self._active: BoolArray | None = None

    @cached_property
    def variables(self) -> tuple[tuple[NonlinearParameter, tuple[int, ...]], ...]:
        """Every nonlinear parameter, which has a number for every joint, and the effects that share it."""
        found: dict[str, tuple[NonlinearParameter, list[int]]] = {}
        for i, effect in enumerate(self.effects):
            for option in effect.searched_parameters():
                found.setdefault(option.key, (option, []))[1].append(i)
        return tuple((option, tuple(effects)) for option, effects in found.values())

    @cached_property
    def start(self) -> Array:
        """Where a search starts, variable after variable, joint after joint."""
        n = self.data.n_joints
        places = [
            option.to_search(self.effects[sharing[0]].option_values(option.name, n)) for option, sharing in self.variables
        ]
        return np.concatenate(places) if places else np.zeros(0)

    def bounds(self) -> tuple[Array, Array]:
        """Lowest and highest place of every number."""
        n = self.data.n_joints
        limits = [option.to_search(np.array([option.low, option.high])) for option, _ in self.variables]
        low, high = np.array(limits).reshape(-1, 2).T
        return np.repeat(low, n), np.repeat(high, n)

    def effects_at(self, theta: Array) -> tuple[Effect, ...]:
        """The friction effects with these inner numbers."""
        if self._effects is not None and np.array_equal(self._effects[0], theta):  # asked for several times at a place
            return self._effects[1]
        effects = list(self.effects)
        for (option, sharing), place in zip(self.variables, theta.reshape(-1, self.data.n_joints), strict=True):
            for i in sharing:
                effects[i] = effects[i].with_option(option.name, option.from_search(place))
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
    ) -> Array:
        """``(1 + variables, rows, columns)``: the columns at some inner numbers, then their changes per unit of each variable's place.

        Those without inner numbers and load are made once; without ``changes`` they stand alone. ``coarse`` makes the others from
        fewer samples, see :attr:`~dynid.estimation.friction.rows.Log.coarse`. Columns of joints that are not asked for may be zero.
        """
        effects = self.effects_at(theta)
        wanted: list[list[str]] = [[] for _ in effects]
        for option, sharing in self.variables if changes else ():
            for i in sharing:
                wanted[i].append(option.name)
        moving = [i for i, effect in enumerate(effects) if _moves(effect)]
        stacked = np.zeros((len(self.data.torque), 0))
        if moving:
            made, few = [], None
            plain = all(log.samples.weight is None for log in self.data.logs)
            alone = plain and all(isinstance(self.effects[i], JointwiseEffect) for i in moving)
            if asked is not None and alone and 0 < 2 * np.count_nonzero(asked) <= len(asked):
                few = np.flatnonzero(asked).tolist()  # making columns of these joints alone saves work
            own = [effects[i] if few is None else effects[i].kept(few) for i in moving]
            for log, m in self.data.motions(loads, coarse=coarse):
                part = m if few is None else m.of_joints(few)
                found = [
                    effect.signals_and_derivatives(part, wanted[i])  # type: ignore[union-attr]
                    for effect, i in zip(own, moving, strict=True)
                ]
                made.append(
                    log.rows(
                        [
                            log.used(part, self.owner[self._parts[i]])
                            for (signals, slopes), i in zip(found, moving, strict=True)
                            for part in (signals, *slopes.values())
                        ]
                    )
                )
            stacked = np.concatenate(made)
            if few is not None:
                whole = np.zeros((len(stacked), stacked.shape[1] // len(few), self.data.n_joints))
                whole[:, :, few] = stacked.reshape(len(stacked), -1, len(few))
                stacked = whole.reshape(len(stacked), -1)
        return self._arranged(stacked, moving, wanted, theta, changes)

    @cached_property
    def _fixed(self) -> dict[int, Array]:
        """Columns of the effects that neither inner numbers nor loads change."""
        return {
            i: np.concatenate(
                [log.rows([log.used(effect.signals(m), self.owner[self._parts[i]])]) for log, m in self.data.motions(None)]
            )
            for i, effect in enumerate(self.effects)
            if not _moves(effect)
        }

    def _arranged(self, stacked: Array, moving: list[int], wanted: list[list[str]], theta: Array, changes: bool) -> Array:
        found = np.zeros((1 + (len(self.variables) if changes else 0), len(self.data.torque), len(self.names)))
        slopes: dict[tuple[int, str], Array] = {}
        first = 0
        for i in moving:
            part = self._parts[i]
            width = part.stop - part.start
            found[0][:, part] = stacked[:, first : first + width]
            first += width
            for name in wanted[i]:
                slopes[i, name] = stacked[:, first : first + width]
                first += width
        for i, fixed in self._fixed.items():
            found[0][:, self._parts[i]] = fixed
        places = theta.reshape(-1, self.data.n_joints)
        for change, (option, sharing), place in zip(found[1:], self.variables, places, strict=False):
            slope = option.slope(option.from_search(place))
            for i in sharing:
                part = self._parts[i]
                change[:, part] = slopes[i, option.name] * slope[self.owner[part]]
        return found

    # Linear solve -----------------------------------------------------------------------------

    def passive_rows(self, theta: Array, loads: Sequence[Array] | None) -> Array:
        """``G x >= 0`` over base parameters and friction values: signs, and friction that drives no joint at its speeds."""
        reach = self._reach
        if loads is not None:
            if self._loaded_reach is None or self._loaded_reach[0] is not loads:  # a search keeps its loads
                most = np.max([np.abs(load).max(axis=0) for load in loads], axis=0)
                self._loaded_reach = loads, FrictionReach(reach.speed, most)
            reach = self._loaded_reach[1]
        G, signs = self._passivity.matrix(self.effects_at(theta), reach, implied=False)[0], self._signs
        whole = np.zeros((len(signs) + len(G), self.data.n_shared + len(self.names)))
        whole[: len(signs), self.data.n_shared :] = signs
        whole[len(signs) :, self.data.n_shared + self._rubbing] = G
        return whole

    @cached_property
    def _reach(self) -> FrictionReach:
        return FrictionReach.of(self.robot, [log.samples for log in self.data.logs])

    @cached_property
    def _signs(self) -> Array:
        """Rows of values that are not negative by themselves."""
        numbers, joints = list(self.robot.driven_numbers), self.robot.driven_joints
        signed = [c.symbol in effect.nonnegative for effect in self.effects for c in effect.columns(numbers, joints)]
        return np.asarray(np.eye(len(self.names))[np.array(signed, dtype=bool)])

    @cached_property
    def _rubbing(self) -> IntArray:
        """Places of the columns that the condition is about."""
        return np.array([self.names.index(name) for name in self._passivity.names], dtype=np.int64)

    @cached_property
    def _passivity(self) -> Passivity:
        return Passivity(self.effects, self.robot.driven_numbers, self.robot.driven_joints)

    def basis_of(self, rows: BoolArray | None = None) -> Basis:
        """Columns of the bodies and of friction that no search changes, over all rows or some of them."""
        still = [self._fixed[i] for i in sorted(self._fixed)] if len(self._still) else []
        columns = np.hstack([np.zeros((len(self.data.torque), 0)), *still])
        return self.data.basis_of(columns, self.incidence[:, self._still], rows)

    @cached_property
    def _basis(self) -> Basis:
        return self.basis_of()

    def coordinates(
        self,
        columns: Array,
        rows: BoolArray | None = None,
        asked: BoolArray | None = None,
        beside: Array | None = None,
    ) -> tuple[Basis, list[Array]]:
        """For every joint, or those asked for, the coordinates of ``[own columns that move | their changes | torque]``, and in what.

        ``beside`` are further columns over all rows, ``(rows, columns, joints)``, whose coordinates stand before those of the torque.
        """
        basis, torque = self._basis, self.data.torque
        if rows is not None:
            basis, columns, torque = self.basis_of(rows), columns[:, rows], torque[rows]
        parts = {}
        for d, entering in enumerate(self._entering_moving):
            if asked is None or asked[d]:
                gain = self.incidence[d, entering]
                further = [] if beside is None else [beside[:, :, d]]
                parts[d] = np.hstack([*(one[:, entering] * gain for one in columns), *further, torque[:, d : d + 1]])
        return basis, basis.coordinates(parts)

    @cached_property
    def _entering_moving(self) -> list[IntArray]:
        """Columns of every joint that may change during a search."""
        return [np.intersect1d(entering, self._moving) for entering in self.entering]

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

    def solve(self, columns: Array, weights: Array, G: Array) -> Solution:
        """Base parameters and passive friction values that fit best, joints counted by their weights.

        ``G`` are the :meth:`passive_rows`.
        """
        coordinates = self.coordinates(columns)[1]
        if not self.apart:
            return self._solution(coordinates, weights, G)[0]
        each = [self._of_joint(d, c, weights[d], G)[0] for d, c in enumerate(coordinates)]
        own = np.zeros(len(self.names))
        for entering, one in zip(self.entering, each, strict=True):
            own[entering] = one.own
        return Solution(own[:0], own, sum(one.cost for one in each), tuple(one.residual[0] for one in each))

    def _solution(self, coordinates: Sequence[Array], weights: Array, G: Array) -> tuple[Solution, Array]:
        """The solution, and a basis of what is left to move where friction is held at its limits."""
        solver = self.solver(coordinates, weights)
        y = np.concatenate([w * c[:, -1] for w, c in zip(weights, coordinates, strict=True)])
        x, self._active, held = solver.passive(solver.solve(y), G, self._active)
        left = y - solver.predicted(x)
        ends = np.cumsum([len(c) for c in coordinates])[:-1]
        n = self.data.n_shared
        return Solution(x[:n], x[n:], float(left @ left), tuple(np.split(left, ends))), held

    def solver(self, coordinates: Sequence[Array], weights: Array) -> Solver:
        """The :meth:`system` factored: columns that do not move once for some weights, those that do beside them."""
        n, blocks = self.data.n_shared, self._basis.blocks
        starts = np.cumsum([0, *(len(c) for c in coordinates)])
        inside = np.concatenate([at + np.arange(len(one)) for at, one in zip(starts, blocks, strict=False)])
        moving = np.zeros((starts[-1], len(self._moving)))
        for at, c, entering, weight in zip(starts, coordinates, self._entering_moving, weights, strict=False):
            moving[at : at + len(c), np.searchsorted(self._moving, entering)] = weight * c[:, : len(entering)]
        if self._factored is None or not np.array_equal(self._factored[0], weights):
            self._factored = weights, *np.linalg.qr(np.vstack([w * one for w, one in zip(weights, blocks, strict=True)]))
        _, Q, R = self._factored
        crossed = Q.T @ moving[inside]
        moving[inside] -= Q @ crossed
        again = Q.T @ moving[inside]
        moving[inside] -= Q @ again
        Q_moving, R_moving = np.linalg.qr(moving)
        Q_still = np.zeros((len(moving), Q.shape[1]))
        Q_still[inside] = Q
        whole = np.block([[R, crossed + again], [np.zeros((len(R_moving), R.shape[1])), R_moving]])
        return Solver(
            np.hstack([Q_still, Q_moving]), whole, np.concatenate([np.arange(n), n + self._still, n + self._moving])
        )

    def _of_joint(self, joint: int, c: Array, weight: float, G: Array) -> tuple[Solution, Array]:
        """The same for a joint that is a problem of its own."""
        own = self.entering[joint]
        mine = G[:, own]
        solver, y = Solver.over(weight * c[:, : len(own)]), weight * c[:, -1]
        x, _, held = solver.passive(solver.solve(y), mine[mine.any(axis=1)])
        left = y - solver.predicted(x)
        return Solution(x[:0], x, float(left @ left), (left,)), held

    def _steps_apart(
        self, coordinates: list[Array], G: Array, weights: Array, asked: BoolArray
    ) -> tuple[Array, Array, Array]:
        """Cost, gradient and Gauss-Newton matrices of the joints asked for, where every joint is a problem of its own."""
        n, n_joints = len(self.variables), self.data.n_joints
        cost, gradient, hessian = np.zeros(n_joints), np.zeros(n * n_joints), np.zeros((n_joints, n, n))
        for d in np.flatnonzero(asked).tolist():
            c, m, places = coordinates[d], len(self.entering[d]), self.places_of(d)
            solution, span = self._of_joint(d, c, weights[d], G)
            changes = [c[:, m * (k + 1) : m * (k + 2)] @ solution.own for k in range(len(self.variables))]
            J = outside(span, weights[d] * np.column_stack(changes))
            cost[d] = solution.cost
            gradient[places] = -2.0 * J.T @ solution.residual[0]
            hessian[d] = 2.0 * J.T @ J
        return cost, gradient, hessian

    def system(self, basis: Basis, coordinates: Sequence[Array], weights: Array) -> Array:
        """Weighted rows of all joints over base parameters and friction values."""
        n, still = self.data.n_shared, np.concatenate([np.arange(self.data.n_shared), self.data.n_shared + self._still])
        rows = []
        for c, block, entering, weight in zip(coordinates, basis.blocks, self._entering_moving, weights, strict=True):
            own = np.zeros((len(c), n + len(self.names)))
            own[: len(block), still] = weight * block
            own[:, n + entering] = weight * c[:, : len(entering)]
            rows.append(own)
        return np.vstack(rows)

    def tangents(self, coordinates: Sequence[Array], own: Array, weights: Array) -> Array:
        """Weighted rows of all joints over the places of the inner numbers: how the prediction changes with them."""
        n, n_variables = self.data.n_joints, len(self.variables)
        rows = []
        for d, (c, entering) in enumerate(zip(coordinates, self._entering_moving, strict=True)):
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
            return start, 0, True

        def at(theta: Array, asked: BoolArray) -> tuple[Array, Array, Array]:
            if self.apart:
                return self._steps_apart(*self._at(theta, loads, coarse, asked), weights, asked)
            coordinates, G = self._at(theta, loads, coarse)
            solution, held = self._solution(coordinates, weights, G)
            J = outside(held, self.tangents(coordinates, solution.own, weights))
            return np.array([solution.cost]), -2.0 * J.T @ np.concatenate(solution.residual), (2.0 * J.T @ J)[None]

        limits = {"tolerance": COARSE_GAIN, "settle": COARSE_STEP} if coarse and self.searched_twice else {}
        low, high = self.bounds()
        return search(at, self.data.n_joints if self.apart else 1, start, low, high, most=most, **limits)

    def _at(
        self, theta: Array, loads: Sequence[Array] | None, coarse: bool, asked: BoolArray | None = None
    ) -> tuple[list[Array], Array]:
        """Coordinates and passive rows at some inner numbers, of all joints or those asked for: they do not depend on weights.

        They are kept for the last places: the next search starts at one.
        """
        wanted = np.ones(self.data.n_joints, dtype=bool) if asked is None else asked
        for known_theta, known_loads, known_coarse, known, found, G in self._places:
            same = known_loads is loads and known_coarse == coarse and np.array_equal(known_theta, theta)
            if same and not (wanted & ~known).any():
                return found, G
        columns = self.columns(theta, loads, coarse=coarse, asked=asked)
        found, G = self.coordinates(columns, asked=wanted)[1], self.passive_rows(theta, loads)
        self._places = [(theta, loads, coarse, wanted.copy(), found, G), *self._places[: _KEPT_PLACES - 1]]
        return found, G

    def forget_places(self) -> None:
        """Let go of what is kept between the searches of one fit: many fits are held beside each other."""
        self._places = []

    def parameters(self, solution: Solution) -> Parameters:
        """All parameters of the robot at a solution: what rows do not show stays as it was."""
        known = self.robot.parameters
        if not self.data.held:
            beta = self.data.base.base_values(self.data.rigid.parameters) + solution.shared
            known = known.updated(base_to_standard(self.data.base, beta, self.data.rigid.parameters).as_dict())
        return known.updated(dict(zip(self.names, solution.own.tolist(), strict=True)))


def _moves(effect: Effect) -> bool:
    """Whether inner numbers or loads change the columns of an effect."""
    return bool(effect.searched_parameters() or effect.loaded)
