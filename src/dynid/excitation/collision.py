"""Bodies kept apart: self-collision, ground and obstacles.

Shapes are those that the robot's description has for collisions (``shape_pairs.py``), made convex. With the nearest points ``p_1``,
``p_2`` of a pair and the unit normal ``n`` from the first to the second,

    d distance / dq = n . (J_2(p_2) - J_1(p_1))

Bodies joined by a joint or a loop are never a pair, and neither are bodies that touch in nearly every pose, as hulls around a common
axis do, and bodies between which the description wants no contact. Bodies that are always near each other, as those of a wrist, keep
a smaller distance than asked for, and a note names it. Obstacles are pairs with every body. The joints of a closed robot's tree
follow its actuated ones, ``d distance / dq_actuated = d distance / dq_tree G``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray, freeze
from dynid.dynamics.closed_chains import closures_of, tree_positions
from dynid.dynamics.pinocchio_model import to_pinocchio_position
from dynid.errors import InputError
from dynid.excitation.acceleration_limits import random_poses
from dynid.excitation.gradient import refuse_floating
from dynid.excitation.pose_limits import PoseLimit, Pullback
from dynid.excitation.shape_pairs import ShapePairs, body_capsules, candidate_pairs, capsule_shapes, described_shapes
from dynid.io.robots.solids import Solid, Solids
from dynid.model.robot import Robot

ALWAYS = 0.9
"""Pairs closer than allowed in a larger share of random poses are not bodies to be kept apart."""

MOSTLY = 0.5
"""The same for pairs that nobody chose: convex hulls of neighbours overlap where the bodies themselves do not."""

STANDS_M = 0.05
"""How far a base may reach below the plane on which it stands, m: screws, rough meshes, round hulls."""

SCALE_M = 0.1
"""Distance that counts as the whole of the limit of clearance in its margin, m."""

LEVELS_M = (0.02, 0.01, 0.005, 0.0)
"""Distances that pairs keep which are always nearer than the distance asked for, m."""

SPARE_M = 1e-3
"""Room beyond the distance that a pair keeps: bodies whose distance never changes must not sit on their limit, m."""

_STRIDE = 8
"""Along a path all pairs are looked at in every so many poses."""

_RANDOM_POSES = 200
_GROUND = "ground"


@dataclass(frozen=True, eq=False)
class Clearance(PoseLimit):
    """Pairs of shapes and the distance that they must keep; made by :func:`clearance_of`.

    Args:
        robot: the robot.
        shapes: its collision shapes and the obstacles.
        least_m: smallest distance that is allowed, m.
        notes: sentences for the user.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.collision import Clearance
        >>> Clearance.__dataclass_fields__["least_m"].type
        'float'
    """

    robot: Robot
    shapes: ShapePairs
    least_m: float
    active_m: float
    """Pairs farther apart than this do not push each other."""
    notes: tuple[str, ...] = ()
    needs_m: Array | None = None
    """Distance that each pair keeps, ``(pairs,)``: ``least_m``, or less for bodies that are always near; None for ``least_m``."""

    @cached_property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Links or obstacles of every pair."""
        owners = self.shapes.owners
        return tuple((owners[first], owners[second]) for first, second in self.shapes.pairs)

    @cached_property
    def least(self) -> Array:
        """Distance that each pair keeps, m, ``(pairs,)``."""
        return np.full(len(self.pairs), self.least_m) if self.needs_m is None else self.needs_m

    def distances(self, q: Array) -> Array:
        """Signed distance of every pose and pair, ``(poses, pairs)``; negative where bodies overlap."""
        return self.shapes.distances(model_positions(self.robot, q))

    def worst(self, q: Array, v: Array, a: Array) -> tuple[float, int, str]:
        """Least of what pairs are farther apart than they need along a path, in parts of 0.1 m, at which pose, and of which pair."""
        ((spare, row, pair),) = self._closest(q, [np.arange(len(self.pairs))], self.least)
        return spare / SCALE_M, row, self.name_of(pair)

    def smallest(self, q: Array) -> dict[str, tuple[float, int, int]]:
        """Smallest distance along a path, at which pose and of which pair: to each obstacle by its name, and between links, ``""``."""
        obstacles = np.array(self.shapes.obstacles)
        groups: dict[str, list[int]] = {"": []}
        for k, pair in enumerate(self.shapes.pairs):
            groups.setdefault(next((self.shapes.owners[i] for i in pair if obstacles[i]), ""), []).append(k)
        groups = {name: group for name, group in groups.items() if group}
        found = self._closest(q, [np.array(group) for group in groups.values()], np.zeros(len(self.pairs)))
        return dict(zip(groups, found, strict=True))

    def _closest(self, q: Array, groups: Sequence[IntArray], needs: Array) -> list[tuple[float, int, int]]:
        """Of each group of pairs the least distance beyond ``needs`` along a path, at which pose and of which pair.

        No point of a body moves farther than the sum of what each joint turns times the longest lever to it, so a distance at one
        pose bounds those at poses nearby: all pairs are looked at in every so many poses, in between those that could be closer.
        """
        tree = tree_positions(self.robot, q)
        positions = to_pinocchio_position(self.robot, tree)
        coarse = np.arange(0, len(q), _STRIDE)
        known = self.shapes.distances(positions[coarse]) - needs
        others = np.setdiff1d(np.arange(len(q)), coarse)
        nearest = np.minimum((others + _STRIDE // 2) // _STRIDE, len(coarse) - 1)
        bounds = known[nearest] - np.abs(tree[others] - tree[coarse[nearest]]) @ self._levers.T
        distances_at = self.shapes.single_distances()
        found = []
        for group in groups:
            row, k = np.unravel_index(int(np.argmin(known[:, group])), (len(coarse), len(group)))
            best, place, which = float(known[row, group[k]]), int(coarse[row]), int(group[k])
            least = bounds[:, group]
            for number in np.argsort(least.min(axis=1)):
                near = group[least[number] < best]
                if not len(near):
                    break  # and all that follow are farther still
                at = int(others[number])
                spare = distances_at(positions[at], near) - needs[near]
                closest = int(np.argmin(spare))
                if spare[closest] < best:
                    best, place, which = float(spare[closest]), at, int(near[closest])
            found.append((best, place, which))
        return found

    def slacks(self, q: Array, v: Array, a: Array) -> tuple[Array, Pullback]:
        look = self.shapes.nearest()
        span, n = self.active_m - self.least_m, len(self.robot.joints)
        slack = np.ones((len(q), len(self.pairs)))
        near: list[tuple[int, int]] = []
        found: list[Array] = []
        J = np.zeros((len(q), 6, n))
        tree = tree_positions(self.robot, q)
        for row, position in enumerate(to_pinocchio_position(self.robot, tree)):
            distance, pair_at, jacobian = look(position)
            slack[row] = np.minimum((distance - self.least) / span, 1.0)
            if (slack[row] <= 0.0).any():  # where bodies are too close already the design asks for no slopes
                return slack, lambda bar: (np.zeros_like(q), np.zeros_like(q), np.zeros_like(q))
            close = [int(k) for k in np.flatnonzero(slack[row] < 1.0)]
            if close:
                J[row] = jacobian()
            near += [(row, k) for k in close]
            found += [pair_at(k) for k in close]
        at, pair = np.array(near, dtype=np.int64).reshape(-1, 2).T
        slopes = self._slopes(found, J[at], pair) / span
        if self.robot.loops:
            slopes = np.einsum("kj,kja->ka", slopes, closures_of(self.robot).follow(np.ascontiguousarray(tree)).G[at])

        def pullback(bar: Array) -> tuple[Array, Array, Array]:
            q_bar = np.zeros_like(q)
            np.add.at(q_bar, at, bar[at, pair][:, None] * slopes)
            return q_bar, np.zeros_like(q_bar), np.zeros_like(q_bar)

        return slack, pullback

    def tightened(self, share: float) -> Clearance:
        more = SCALE_M * share
        return replace(self, least_m=self.least_m + more, active_m=self.active_m + more, needs_m=self.least + more)

    def broken(self, q: Array) -> Array:
        if self.robot.loops:
            q = q[closures_of(self.robot).reachable(q)]
        return np.asarray((self.distances(q) <= self.least).mean(axis=0))

    def least_of(self, name: str) -> float:
        """Distance that a pair of this name keeps, m."""
        return float(self.least[[self.name_of(k) for k in range(len(self.pairs))].index(name)])

    def name_of(self, constraint: int) -> str:
        return " - ".join(self.pairs[constraint])

    def place(self, constraint: int) -> str:
        return " and ".join(f"'{name}'" for name in self.pairs[constraint])

    def _slopes(self, found: Sequence[Array], J: Array, pair: IntArray) -> Array:
        """``d distance / dq`` of near pairs, with Jacobians in the base frame and the numbers of the pairs."""
        nearest = np.reshape(found, (-1, 3, 3))
        normal, points = nearest[:, 0], nearest[:, 1:]
        slope = np.zeros((len(found), len(self.robot.joints)))
        for side, sign in ((0, -1.0), (1, 1.0)):
            moved = self._moved[pair, side]  # joints that move this side's body
            rate = np.einsum("kx,kxj->kj", normal, J[:, :3]) + np.einsum(
                "kx,kxj->kj", np.cross(points[:, side], normal), J[:, 3:]
            )
            slope += sign * moved * rate
        return slope

    @cached_property
    def _levers(self) -> Array:
        """How far points of one body of each pair move against the other per unit of each joint, at most, ``(pairs, joints)``."""
        # a joint that moves both bodies moves none against the other
        against = np.abs(self._moved[:, 0] - self._moved[:, 1])
        offsets = self.shapes.joint_offsets()
        for i, joint in enumerate(self.robot.joints):
            if joint.kind == "prismatic":  # what lies beyond it is as much farther away; unknown where it has no range
                offsets[i] += min(max(abs(joint.q_min), abs(joint.q_max)), 1e9)
        levers = np.zeros((len(self.shapes.levers), len(self.robot.joints)))
        for number, (lever, moved_by) in enumerate(zip(self.shapes.levers, self.shapes.joints, strict=True)):
            far, i = lever, moved_by - 1
            while i >= 0:
                levers[number, i] = 1.0 if self.robot.joints[i].kind == "prismatic" else far
                far += offsets[i]
                i = self.robot.joints[i].parent
        sides = self.shapes.pairs
        return np.asarray(against * np.maximum(levers[sides[:, 0]], levers[sides[:, 1]]))

    @cached_property
    def _moved(self) -> Array:
        """Which joints move the body on each side of each pair, ``(pairs, 2, joints)``."""
        n = len(self.robot.joints)
        carried = np.zeros((n + 1, n))
        for i, joint in enumerate(self.robot.joints):
            carried[i + 1] = carried[joint.parent + 1]
            carried[i + 1, i] = 1.0
        return np.asarray(carried[np.array(self.shapes.joints)[self.shapes.pairs]])


def clearance_of(
    robot: Robot,
    *,
    least_m: float = 0.01,
    active_m: float | None = None,
    ground_m: float | None = None,
    obstacles: Iterable[tuple[str, ArrayLike, ArrayLike]] = (),
    ignore: Iterable[tuple[str, str]] = (),
    package_dirs: Sequence[str | Path] | None = None,
    seed: int = 0,
) -> Clearance:
    """Pairs of bodies of a robot read from URDF, MJCF or SDF that a motion must keep apart.

    Args:
        robot: read from a file with shapes for collisions; locked joints are where they were locked.
        least_m: smallest distance that is allowed.
        active_m: distance below which pairs push each other apart during a design; None for 0.05 m more than the least.
        ground_m: height of a level ground in the base frame; None for no ground.
        obstacles: boxes as (name, sizes x y z, 4x4 pose in the base frame).
        ignore: pairs of link names that need no distance.
        package_dirs: where ``package://`` paths begin; None for the folders around the file. Of URDF files only.
        seed: of the random poses that tell which pairs always touch.

    Examples:
        >>> import dynid
        >>> from dynid.excitation.collision import clearance_of
        >>> box = '<collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>'
        >>> body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
        >>> limit = '<limit lower="-1" upper="1" velocity="1" effort="9"/>'
        >>> with open("arm.urdf", "w") as file:
        ...     _ = file.write(
        ...         f'<robot name="arm"><link name="base">{box}</link><link name="arm">{body}{box}</link><joint name="j"'
        ...         f' type="revolute"><parent link="base"/><child link="arm"/><origin xyz="0.3 0 0"/>{limit}</joint></robot>'
        ...     )
        >>> clearance = clearance_of(dynid.read_robot("arm.urdf"), ground_m=-0.5)
        >>> clearance.pairs
        (('arm', 'ground'),)
    """
    _check_distance(least_m)
    refuse_floating(robot)
    shapes, described = described_shapes(robot, package_dirs)
    return _kept_apart(
        robot,
        shapes,
        described,
        least_m,
        active_m=active_m,
        ground_m=ground_m,
        obstacles=obstacles,
        ignore=ignore,
        seed=seed,
    )


def usual_clearance(
    robot: Robot,
    *,
    least_m: float = 0.05,
    ground_m: float | None = 0.0,
    assumed: bool = True,
    around: Sequence[Solid] = (),
    tool: tuple[int, Solid] | None = None,
    seed: int = 0,
) -> tuple[Clearance | None, tuple[str, ...]]:
    """What every motion keeps unless it is told not to: bodies apart from one another, the mounting plane and their surroundings.

    Collision shapes of the description where it has them, else capsules of link frames and inertia. None, with the reason, where
    there are no two bodies that could touch. A level floor of the description is the mounting plane that is assumed.

    Args:
        robot: the robot.
        least_m: smallest distance that is allowed.
        ground_m: height of the mounting plane in the base frame; None for no plane.
        assumed: whether nobody stated that height: it is then kept only where the base stands on it.
        around: obstacles, in the base frame.
        tool: what the robot carries: the number of its body, and the solid in the frame of that body.
        seed: of the random poses that tell which pairs always touch.

    Raises:
        InputError: the check cannot be made, or an obstacle stands where the robot always is.
    """
    _check_distance(least_m)
    refuse_floating(robot)
    told: list[str] = []
    try:
        shapes, described = described_shapes(robot)
    except InputError as error:
        shapes, described = capsule_shapes(robot), Solids(())
        told.append(f"shapes of bodies are guessed, capsules of their joint frames and inertia: {error}")
    masses = robot.parameters.inertials[:, 0]
    if bare := [i for i in range(robot.n_bodies) if i + 1 not in shapes.joints and masses[i] > 0.0]:
        shapes = shapes.with_solids(one for one in body_capsules(robot, shapes.model) if one[0] - 1 in bare)
        links = ", ".join(robot.links[i] for i in bare)
        told.append(f"shapes of these bodies are guessed, capsules of their joint frames and inertia: {links}")
    if assumed and ground_m is not None and described.floor_m not in (None, ground_m):
        ground_m = described.floor_m
        told.append(f"the mounting plane is the floor of the description, at {ground_m:g} m in the base frame")
    if assumed and ground_m is not None and (reason := _not_standing(robot, shapes, ground_m, seed)):
        told.append(f"no mounting plane is kept clear of: {reason}; give its height in the base frame with --ground HEIGHT")
        ground_m = None
    if tool is not None:
        shapes = shapes.with_solids([shapes.on_body(robot.links[tool[0]], tool[1])])
    shapes = shapes.with_solids((0, solid) for solid in around)
    try:
        found = _kept_apart(robot, shapes, described, least_m, ground_m=ground_m, seed=seed, always_above=MOSTLY)
    except NothingApartError as error:
        return None, (*told, f"bodies are not kept apart: {error}")
    return replace(found, notes=(*told, *found.notes)), tuple(told)


def _check_distance(least_m: float) -> None:
    if not (np.isfinite(least_m) and least_m >= 0.0):
        raise InputError(f"least clearance is {least_m:g} m, expected zero or a positive number")


def _not_standing(robot: Robot, shapes: ShapePairs, ground_m: float, seed: int) -> str:
    """Why the base is not taken to stand on the plane; empty where it is."""
    bottom = shapes.lowest_fixed_m()
    if bottom is not None and bottom < ground_m - STANDS_M:
        return f"the base itself reaches down to {bottom:.3g} m"
    height = shapes.mean_height_m(model_positions(robot, random_poses(robot, _RANDOM_POSES, seed)))
    if height < ground_m:
        return f"over random poses the bodies are {height:.3g} m high on average, as those of a robot that hangs or floats"
    return ""


class UncheckedError(InputError):
    """A robot whose clearance cannot be checked."""


class NothingApartError(InputError):
    """A robot without two bodies that could be kept apart."""


def _kept_apart(
    robot: Robot,
    shapes: ShapePairs,
    described: Solids,
    least_m: float,
    *,
    seed: int,
    ground_m: float | None,
    active_m: float | None = None,
    obstacles: Iterable[tuple[str, ArrayLike, ArrayLike]] = (),
    ignore: Iterable[tuple[str, str]] = (),
    always_above: float = ALWAYS,
) -> Clearance:
    """Pairs of these shapes, without those that touch in nearly every pose."""
    active = least_m + 0.05 if active_m is None else active_m
    if not active > least_m:
        raise InputError(f"clearance acts below {active:g} m but {least_m:g} m is the least, expected more than that")
    shapes = _with_obstacles(shapes, ground_m, obstacles)
    owners = shapes.owners
    could_touch = candidate_pairs(robot, shapes, ignore, described.joined, capsules=not described.solids)
    pairs = [(i, j) for i, j in could_touch if frozenset((owners[i], owners[j])) not in described.excluded]
    if not pairs:
        raise NothingApartError(f"robot '{robot.name}' has no two bodies with collision shapes that could touch")
    clearance = Clearance(robot, shapes.with_pairs(pairs), least_m, active)
    distances = clearance.distances(random_poses(robot, _RANDOM_POSES, seed))
    too_often = np.where(clearance.shapes.outside, ALWAYS, always_above)
    needs = np.full(len(pairs), np.nan)
    for level in (least_m, *(level for level in LEVELS_M if level < least_m)):
        fits = np.isnan(needs) & ((distances < level + SPARE_M).mean(axis=0) <= too_often)
        needs[fits] = level
    _refuse_enclosed(clearance, needs, distances)
    always = np.isnan(needs)
    if always.all():
        raise NothingApartError(f"all {len(pairs)} pairs of bodies of robot '{robot.name}' touch in nearly every pose")
    names = [_listed(owners, [pair]) for pair in pairs]
    for name in set(names):  # shapes of one pair of links keep one distance
        same = np.flatnonzero([other == name for other in names])
        needs[same] = np.where(np.isnan(needs[same]), np.nan, np.nanmin(needs[same], initial=np.inf))
    notes = list(described.notes)
    if left_out := [pair for pair in could_touch if pair not in pairs]:
        notes.append(f"pairs that the description excludes from contact are not kept apart: {_listed(owners, left_out)}")
    often = "nearly every pose" if always_above == ALWAYS else "most poses"
    if always.any():
        touch = [pair for pair, drop in zip(pairs, always, strict=True) if drop]
        notes.append(f"pairs that touch in {often} are not kept apart: {_listed(owners, touch)}")
        if far := _no_neighbours(robot, shapes, touch):
            raise UncheckedError(
                f"clearance cannot be checked between {far}, whose shapes overlap in {often} though more than {NEIGHBOURS} joints "
                "lie between them"
            )
    nearer = [pair for pair, need in zip(pairs, needs, strict=True) if need < least_m]
    if far := _no_neighbours(robot, shapes, nearer) or ("" if (needs == least_m).any() else "any two bodies"):
        raise InputError(
            f"a clearance of {1e3 * least_m:g} mm cannot be kept between {far}: they are nearer in {often}; give a smaller --clearance"
        )
    for level in sorted({float(need) for need in needs if need < least_m}, reverse=True):
        near = _listed(owners, [pair for pair, need in zip(pairs, needs, strict=True) if need == level])
        kept_by = f"{1e3 * level:g} mm" if level > 0.0 else "without touching"
        notes.append(f"pairs nearer than {1e3 * least_m:g} mm in {often} are kept apart {kept_by}: {near}")
    kept = [pair for pair, drop in zip(pairs, always, strict=True) if not drop]
    return Clearance(robot, shapes.with_pairs(kept), least_m, active, tuple(notes), freeze(needs[~always]))


def _refuse_enclosed(clearance: Clearance, needs: Array, distances: Array) -> None:
    """Refuse an obstacle of the user's in which a moving body nearly always is."""
    for k in np.flatnonzero(np.isnan(needs) & clearance.shapes.outside):
        pair = clearance.pairs[k]
        obstacle, body = pair if pair[0].startswith(STATED) else pair[::-1]
        if obstacle.startswith(STATED):
            share = (distances[:, k] < 0.0).mean()
            raise InputError(
                f"{obstacle} overlaps link '{body}' in {100.0 * share:.0f} % of random poses, so no motion is clear of it; move it, "
                "or make it smaller"
            )


def _no_neighbours(robot: Robot, shapes: ShapePairs, pairs: Sequence[tuple[int, int]]) -> str:
    """Names of the first pairs of bodies with many joints between them; none of a closed chain, which has such pairs of its own."""
    far = [(i, j) for i, j in pairs if joints_between(robot, shapes.joints[i], shapes.joints[j]) > NEIGHBOURS]
    return "" if robot.loops else _listed(shapes.owners, far[:3])


def joints_between(robot: Robot, first: int, second: int) -> int:
    """Number of joints on the way between two bodies, numbered from 1; 0 is the base."""
    above = []
    for body in (first, second):
        way = [body]
        while way[-1] > 0:
            way.append(robot.joints[way[-1] - 1].parent + 1)
        above.append(way)
    return len(set(above[0]) ^ set(above[1]))


NEIGHBOURS = 3
"""Bodies with at most so many joints between them may overlap in most poses: hulls around a common wrist or shoulder do."""

STATED = "--"
"""How names of obstacles begin that stand on the command line."""


def model_positions(robot: Robot, q: Array) -> Array:
    """Positions of all joints of the tree as Pinocchio takes them."""
    return to_pinocchio_position(robot, tree_positions(robot, q))


def _listed(owners: Sequence[str], pairs: Sequence[tuple[int, int]]) -> str:
    """Names of pairs, each once: links may have several shapes."""
    return ", ".join(dict.fromkeys(f"{owners[i]} - {owners[j]}" for i, j in pairs))


def _with_obstacles(
    shapes: ShapePairs, ground_m: float | None, obstacles: Iterable[tuple[str, ArrayLike, ArrayLike]]
) -> ShapePairs:
    """Ground and boxes added."""
    boxes = []
    if ground_m is not None:
        pose = np.eye(4)
        pose[2, 3] = ground_m - 0.5
        boxes.append((0, Solid(_GROUND, "box", (10.0, 10.0, 0.5), pose, obstacle=True)))
    for name, sizes, where in obstacles:
        size, place = np.asarray(sizes, dtype=np.float64), np.asarray(where, dtype=np.float64)
        if size.shape != (3,) or not (size > 0.0).all() or place.shape != (4, 4):
            raise InputError(
                f"obstacle '{name}' has sizes {size.tolist()} and a pose of shape {place.shape}, expected 3 sizes and 4x4"
            )
        boxes.append((0, Solid(name, "box", tuple((0.5 * size).tolist()), place, obstacle=True)))
    return shapes.with_solids(boxes)
