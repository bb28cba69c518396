"""Motion of a closed robot's whole tree from that of its actuated joints, for all samples at once.

Positions of passive joints solve the closures by Newton steps. The assembly mode is chosen once, by the start position of the
description, and kept: *seeds*, closed positions all over the range of the actuated joints, are reached from the start in small
steps, and every sample begins at its nearest seed with a prediction of first order. Where that is not clearly on the seed's branch
the way from the seed is walked in steps; what cannot be reached is refused with its sample and loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, BoolArray, IntArray, check_finite, check_shape, freeze, frozen_view
from dynid.dynamics.structure import structure_of
from dynid.errors import InputError
from dynid.model.loops import MOST_COEFFICIENTS, Closure, JointTie
from dynid.model.robot import Robot

NEWTON_STEPS = 14
FARTHEST = 0.5
"""rad or m that a Newton step moves a joint at most."""
CLEAR = 0.2
"""rad or m by which a solution may differ from its prediction and still be plainly on the same branch."""
WALK = (8, 64)
"""Steps of the way from a seed where the direct one fails; the second number is tried where the first fails."""
SEEDS = 512
CELLS = 4096
"""Cells of the range of the actuated joints, each with its nearest seed."""
MOST_AXES = 12
"""Actuated joints of loops by which cells are told apart, at most: two cells each make ``CELLS``."""
_ENDLESS = np.pi
"""Range of an actuated joint without limits, to either side of its start."""


@dataclass(frozen=True, eq=False)
class TreeMotion:
    """Positions, velocities and accelerations of all joints of the tree, and ``G = dq_tree / dq_actuated``."""

    position: Array
    velocity: Array
    acceleration: Array
    G: Array
    """``(samples, tree joints, actuated joints)``."""


@dataclass(frozen=True, eq=False)
class Seeds:
    """Closed positions to start from: actuated part, whole tree, and ``G``."""

    actuated: Array
    position: Array
    G: Array


class Closures:
    """The closures of one structure as the compiled loops take them, with the seeds of its branch."""

    def __init__(self, robot: Robot) -> None:
        self.name, self.joint_names, self.loops = robot.name, tuple(j.name for j in robot.joints), robot.loops
        tree, loops = robot.tree, robot.loops
        self.actuated = freeze([self.joint_names.index(name) for name in loops.actuated], np.int64)
        sides = [loop.sides(tree.parent.tolist()) for loop in loops]
        self.residual_loop: list[str] = []
        tree = robot.tree
        self.tree = tree.parent, freeze(tree.rotation.reshape(len(tree.parent), 3, 9)), tree.translation, tree.screw
        self._closures = _closure_tuple(loops.closures, sides, self.residual_loop)
        self._order = _order_tuple(len(robot.joints), self.actuated, sides, self._closures)
        self.passive = self._order[1]
        n, n_passive = len(self.joint_names), len(self.passive)
        if not n_passive:
            raise InputError(f"every joint of robot '{self.name}' is actuated, so its loops have none to close with")
        if n_passive > len(self.residual_loop):
            raise InputError(
                f"robot '{self.name}' has {n} joints and {len(self.residual_loop)} closed components, so at least "
                f"{n - len(self.residual_loop)} joints must be actuated, {len(self.actuated)} are"
            )
        lower, upper = robot.position_limits.T
        start = loops.start[self.actuated]
        self.lower = np.where(np.isfinite(lower), lower, start - _ENDLESS)
        self.upper = np.where(np.isfinite(upper), upper, start + _ENDLESS)
        turns = [
            2.0 * np.pi if joint.kind != "prismatic" and not np.isfinite([joint.q_min, joint.q_max]).all() else 0.0
            for joint in robot.driven_joints
        ]
        self._turn = freeze(turns)
        self._scale = freeze(1.0 / np.maximum(self.upper - self.lower, 1e-9))
        self.seeds = self._grown_seeds()
        within = {joint for between in sides for joint, _ in between}  # joints outside all loops change no passive one
        axes = [k for k, joint in enumerate(self.actuated.tolist()) if joint in within][:MOST_AXES] or [0]
        self._axes = freeze(axes, np.int64)
        self._per_axis = max(2, int(CELLS ** (1.0 / len(axes)) + 1e-9))
        axis = (np.arange(self._per_axis) + 0.5) / self._per_axis
        centres = np.stack(np.meshgrid(*[axis] * len(axes), indexing="ij"), axis=-1).reshape(-1, len(axes))
        places = self.lower[axes] + centres * (self.upper - self.lower)[axes]
        self._near = _nearest_of(places, self.seeds.actuated[:, axes], self._scale[axes])

    # What callers ask --------------------------------------------------------------------------------

    def positions(self, q: Array) -> Array:
        """Positions of the whole tree; a sample that cannot be reached on the branch is refused."""
        found, status, where, size = self.attempt(q)
        bad = np.flatnonzero(status != 0)
        if len(bad):
            self._refuse(int(bad[0]), len(bad), len(q), int(status[bad[0]]), int(where[bad[0]]), float(size[bad[0]]))
        return found

    def attempt(self, q: Array) -> tuple[Array, IntArray, IntArray, Array]:
        """The same with a status per sample (0 where it closed), where it failed and by how much, and no refusal."""
        from dynid.dynamics import loop_kernels as kernel

        index = self._near[self._cell(q)]
        found, predicted, status, where, size = self._stepped(self.seeds, index, q)
        unsure = (status == kernel.OPEN) | (np.abs(found - predicted).max(axis=1) > CLEAR)
        for steps in WALK:
            rows = np.flatnonzero(unsure)
            if not len(rows):
                break
            walked, sure, status[rows], where[rows], size[rows] = self._walked(self.seeds, index[rows], q[rows], steps)
            found[rows] = walked
            unsure[rows] = ~sure
        status[unsure & (status == kernel.CLOSED)] = kernel.OPEN
        return found, status, where, size

    def reachable(self, q: Array) -> BoolArray:
        """Which positions of the actuated joints close on the branch of the description, away from singular poses."""
        found, status, _, _ = self.attempt(np.ascontiguousarray(q))
        good = status == 0
        good[good] = ~self._singular(self._followed(np.ascontiguousarray(found[good]))[1])
        return np.asarray(good)

    def follow(self, position: Array, v: Array | None = None, a: Array | None = None) -> TreeMotion:
        """``G`` at closed positions of the tree, with velocities and accelerations where they are given."""
        from dynid.dynamics import loop_kernels as kernel

        motion, share, least = self._followed(position, v, a)
        bad = np.flatnonzero(self._singular(share))
        if len(bad):
            self._refuse(int(bad[0]), len(bad), len(position), kernel.SINGULAR, int(least[bad[0]]), float(share[bad[0]]))
        return motion

    @staticmethod
    def _singular(share: Array) -> BoolArray:
        from dynid.dynamics import loop_kernels as kernel

        return np.asarray(~(share >= kernel.NEARLY_SINGULAR))

    def _followed(
        self, position: Array, v: Array | None = None, a: Array | None = None
    ) -> tuple[TreeMotion, Array, IntArray]:
        """The same with what tells singular poses: the least pivot as a share of its row, and whose it is."""
        from dynid.dynamics import loop_kernels as kernel

        n, n_tree, n_actuated = len(position), len(self.joint_names), len(self.actuated)
        G = np.zeros((n, n_tree, n_actuated))
        v_tree, a_tree = (np.zeros((n, n_tree)) for _ in range(2))
        share, least = np.ones(n), np.zeros(n, dtype=np.int64)
        still = np.zeros((n, n_actuated))
        given = (position, still if v is None else v, still if a is None else a)
        q, speed, rate = (frozen_view(np.ascontiguousarray(part)) for part in given)  # so that one signature is compiled
        moving = v is not None or a is not None
        kernel.follow(q, speed, rate, self.tree, self._closures, self._order, moving, G, v_tree, a_tree, share, least)
        return TreeMotion(position, v_tree, a_tree, G), share, least

    def _cell(self, q: Array) -> IntArray:
        """Number of the cell of actuated positions that holds each row; outside the range the cell at its edge."""
        axes = self._axes
        share = (q[:, axes] - self.lower[axes]) * self._scale[axes]
        share = np.where(self._turn[axes] > 0.0, share - np.floor(share), share)
        place = np.clip((share * self._per_axis).astype(np.int64), 0, self._per_axis - 1)
        powers = self._per_axis ** np.arange(place.shape[1] - 1, -1, -1)
        return np.asarray(place @ powers, dtype=np.int64)

    # Seeds -------------------------------------------------------------------------------------------

    def _grown_seeds(self) -> Seeds:
        """The start, then positions ever farther from it, each reached in steps from the nearest one before."""
        start = self._closed_start()
        seeds = Seeds(start[:, self.actuated], start, self.follow(start).G)
        rng = np.random.default_rng(0)
        candidates = rng.uniform(self.lower, self.upper, (SEEDS, len(self.actuated)))
        far = np.abs((candidates - seeds.actuated[0]) * self._scale).max(axis=1)
        candidates = candidates[np.argsort(far, kind="stable")]
        first, count = 0, 8
        while first < SEEDS:
            batch = candidates[first : first + count]
            index = _nearest_of(batch, seeds.actuated, self._scale)
            found, sure, status, _, _ = self._walked(seeds, index, batch, WALK[0])
            good = sure & (status == 0)
            if good.any():
                position = np.ascontiguousarray(found[good])
                seeds = Seeds(
                    np.concatenate([seeds.actuated, batch[good]]),
                    np.concatenate([seeds.position, position]),
                    np.concatenate([seeds.G, self.follow(position).G]),
                )
            first, count = first + count, min(2 * count, 128)
        return seeds

    def _closed_start(self) -> Array:
        """The start position with its closures closed; the description's own guess chooses the assembly mode."""
        from dynid.dynamics import loop_kernels as kernel

        q = np.array(self.loops.start, dtype=np.float64)[None]
        status, where, size = self.close(q, 60)
        if status[0] == kernel.SINGULAR:
            self._refuse(0, 1, 1, kernel.SINGULAR, int(where[0]), float(size[0]), "the start position")
        if status[0] != kernel.CLOSED:
            loop = self.residual_loop[int(where[0])]
            raise InputError(
                f"loop '{loop}' of robot '{self.name}' does not close near the start position: {size[0]:.3g} m or rad stay open; "
                "state `start` of its joints nearer to a closed position, and check the loop's frames"
            )
        return q

    def close(self, q: Array, most: int = NEWTON_STEPS) -> tuple[IntArray, IntArray, Array]:
        """Newton steps on positions of the tree in their place, from where they are; status, place and size as in :meth:`attempt`."""
        from dynid.dynamics import loop_kernels as kernel

        status, where, size = np.zeros(len(q), np.int64), np.zeros(len(q), np.int64), np.zeros(len(q))
        kernel.close(q, self.tree, self._closures, self._order, most, FARTHEST, status, where, size)
        return status, where, size

    def _stepped(self, seeds: Seeds, index: IntArray, q: Array) -> tuple[Array, Array, IntArray, IntArray, Array]:
        """From a seed to ``q`` at once: solution, prediction, status."""
        way = q - seeds.actuated[index]
        way -= np.where(self._turn > 0.0, self._turn * np.round(way / np.where(self._turn > 0.0, self._turn, 1.0)), 0.0)
        found = seeds.position[index] + np.matmul(seeds.G[index], way[:, :, None])[:, :, 0]
        found[:, self.actuated] = q
        predicted = found.copy()
        status, where, size = self.close(found)
        return found, predicted, status, where, size

    def _walked(
        self, seeds: Seeds, index: IntArray, q: Array, steps: int
    ) -> tuple[Array, BoolArray, IntArray, IntArray, Array]:
        """The way from seeds to ``q`` in equal steps; whether each step was plainly on the branch."""
        way = q - seeds.actuated[index]
        way -= np.where(self._turn > 0.0, self._turn * np.round(way / np.where(self._turn > 0.0, self._turn, 1.0)), 0.0)
        here = Seeds(q - way, seeds.position[index].copy(), seeds.G[index])
        sure = np.ones(len(q), dtype=bool)
        status = where = np.zeros(len(q), dtype=np.int64)
        size, found = np.zeros(len(q)), here.position
        for k in range(1, steps + 1):
            target = q - way * (1.0 - k / steps)
            found, predicted, status, where, size = self._stepped(here, np.arange(len(q)), target)
            sure &= (status == 0) & (np.abs(found - predicted).max(axis=1) <= CLEAR)
            if k < steps:
                found[~sure] = here.position[~sure]  # stays where it was lost, so that G exists there
                lost = here.actuated[~sure]
                G = np.array(here.G)
                if sure.any():
                    G[sure] = self.follow(np.ascontiguousarray(found[sure])).G
                target[~sure] = lost
                here = Seeds(target, found, G)
        return found, sure, status, where, size

    # Refusals ----------------------------------------------------------------------------------------

    def _refuse(self, sample: int, n: int, of: int, status: int, where: int, size: float, place: str = "") -> None:
        from dynid.dynamics import loop_kernels as kernel

        others = f" (and {n - 1} more of {of})" if n > 1 else ""
        at = place or f"sample {sample}{others}"
        if status == kernel.SINGULAR:
            joint = self.joint_names[where]
            parents = self.tree[0].tolist()
            loops = [loop.name for loop in self.loops if where in dict(loop.sides(parents))]
            raise InputError(
                f"robot '{self.name}' is singular at {at}: the actuated joints do not move passive joint '{joint}' of loop "
                f"'{', '.join(loops)}' in one way; keep away from that pose, or name other actuated joints"
            )
        raise InputError(
            f"robot '{self.name}' cannot reach {at} on its assembly mode: loop '{self.residual_loop[where]}' stays open by "
            f"{size:.3g} m or rad; check the positions of its actuated joints, and `start` in the description"
        )


def closures_of(robot: Robot) -> Closures:
    """The closures of a robot, prepared once for all robots of its structure."""
    return structure_of(robot).once(Closures)


def tree_positions(robot: Robot, q: ArrayLike) -> Array:
    """Positions of all joints of a robot's tree: ``q`` itself for an open chain."""
    array = np.ascontiguousarray(np.atleast_2d(np.asarray(q, dtype=np.float64)))
    if not robot.loops:
        return array
    check_shape("position", array, (None, robot.n_position))
    check_finite("position", array)
    return closures_of(robot).positions(array)


def tree_motion(robot: Robot, q: Array, v: Array, a: Array) -> TreeMotion:
    """Motion of the whole tree under motion of the actuated joints that was checked."""
    closures = closures_of(robot)
    return closures.follow(closures.positions(q), v, a)


def gain_rate(robot: Robot, position: Array, v: Array) -> Array:
    """``dG/dt`` at closed positions of the tree under velocities of the actuated joints, ``(samples, tree, actuated)``.

    The drift ``(dG/dt) v`` is a quadratic form of ``v``; its polar form with a unit velocity gives one column.
    """
    closures = closures_of(robot)
    rate = np.empty((len(position), len(robot.joints), v.shape[1]))
    for k in range(v.shape[1]):
        unit = np.zeros(v.shape[1])
        unit[k] = 1.0
        ahead, behind = (closures.follow(position, v + sign * unit).acceleration for sign in (1.0, -1.0))
        rate[:, :, k] = 0.25 * (ahead - behind)
    return rate


def feasible_positions(robot: Robot, n: int, rng: np.random.Generator) -> Array:
    """Random positions of the actuated joints, within their limits, at which the loops close."""
    closures = closures_of(robot)
    found: list[Array] = []
    count = tried = 0
    while count < n:
        q = rng.uniform(closures.lower, closures.upper, (2 * n + 16, len(closures.actuated)))
        good = q[closures.attempt(q)[1] == 0]
        found.append(good)
        count, tried = count + len(good), tried + len(q)
        if tried > 200 * (count + 1):
            raise InputError(
                f"of {tried} random positions of robot '{robot.name}' within its limits only {count} close its loops; "
                "state position limits of the actuated joints that the mechanism can reach"
            )
    return np.concatenate(found)[:n]


# Tuples of arrays for the compiled loops ------------------------------------------------------------


def _closure_tuple(
    loops: tuple[Closure, ...], sides: list[tuple[tuple[int, int], ...]], names: list[str]
) -> tuple[Any, ...]:
    """Bodies, placements, residuals with kind and axis, joints between the frames, places of the Jacobian's entries, polynomials.

    A tie of joints has no frames: its bodies are the follower and the leader.
    """
    kinds: list[int] = []
    axes: list[int] = []
    row_start, entry_start = [0], [0]
    for loop, between in zip(loops, sides, strict=True):
        if not between:
            raise InputError(f"loop '{loop.name}' has no joint between its frames")
        for kind, axis in _residuals(loop):
            kinds.append(kind)
            axes.append(axis)
        names.extend([loop.name] * (len(kinds) - row_start[-1]))
        entry_start.append(entry_start[-1] + (len(kinds) - row_start[-1]) * len(between))
        row_start.append(len(kinds))
    bodies, placements, polynomials = (
        [],
        np.tile(np.eye(4), (len(loops), 2, 1, 1)),
        np.zeros((len(loops), MOST_COEFFICIENTS)),
    )
    for k, loop in enumerate(loops):
        if isinstance(loop, JointTie):
            bodies.append((loop.follower, loop.leader))
            polynomials[k, : len(loop.coefficients)] = loop.coefficients
        else:
            bodies.append((loop.first.body, loop.second.body))
            placements[k] = loop.first.placement, loop.second.placement
    return (
        freeze(bodies, np.int64),
        freeze(placements),
        freeze(row_start, np.int64),
        freeze(kinds, np.int64),
        freeze(axes, np.int64),
        freeze(np.concatenate([[0], np.cumsum([len(between) for between in sides])]), np.int64),
        freeze([joint for between in sides for joint, _ in between], np.int64),
        freeze([float(sign) for between in sides for _, sign in between]),
        freeze(entry_start, np.int64),
        freeze(polynomials),
    )


def _residuals(loop: Closure) -> list[tuple[int, int]]:
    """Kind and axis of every number that a closure holds at zero."""
    from dynid.dynamics import closure_kernels as kernel

    if isinstance(loop, JointTie):
        return [(kernel.JOINTS, 0)]
    turns = [i for i in range(3) if ("rx", "ry", "rz")[i] in loop.closed]
    found = [(kernel.TRANSLATION, i) for i in range(3) if "xyz"[i] in loop.closed]
    for axis in turns:
        kind = kernel.ALL_TURNS if len(turns) == 3 else kernel.TURN_AFTER_FREE
        if len(turns) == 2 and (axis + 1) % 3 in turns:  # the free axis is the one before it in the cycle
            kind = kernel.TURN_BEFORE_FREE
        found.append((kind, axis))
    return found


def _order_tuple(
    n_joints: int, actuated: IntArray, sides: list[tuple[tuple[int, int], ...]], closures: tuple[Any, ...]
) -> tuple[Any, ...]:
    """Passive joints in an order that leaves the factor few entries, the pattern of that factor, and the workspace."""
    from dynid.dynamics import closure_kernels as kernel

    used = np.zeros(n_joints, dtype=int)
    for between in sides:
        used[[joint for joint, _ in between]] += 1
    loose = [i for i in range(n_joints) if i not in set(actuated.tolist())]
    joints = sorted(loose, key=lambda i: (used[i], i))
    place = {joint: k for k, joint in enumerate(joints)}
    fill = np.eye(len(joints), dtype=bool)
    for between in sides:
        own = [place[joint] for joint, _ in between if joint in place]
        fill[np.ix_(own, own)] = True
    for j in range(len(joints)):  # elimination of column j ties all that it touches
        below = np.flatnonzero(fill[j + 1 :, j]) + j + 1
        fill[np.ix_(below, below)] = True
    passive = np.full(n_joints, -1, dtype=np.int64)
    passive[joints] = np.arange(len(joints))
    n_residuals, n_entries = len(closures[3]), int(closures[8][-1])
    rows = kernel.workspace_rows(n_joints, len(joints), len(actuated), n_residuals, n_entries)
    return freeze(passive, np.int64), freeze(joints, np.int64), actuated, fill, freeze(rows, np.int64)


def _nearest_of(q: Array, seeds: Array, scale: Array) -> IntArray:
    distance = (((q[:, None] - seeds[None]) * scale) ** 2).sum(axis=2)
    return np.asarray(distance.argmin(axis=1), dtype=np.int64)
