"""Bodies kept apart: self-collision, ground and obstacles.

Shapes are those that the robot's description has for collisions (``shape_pairs.py``), made convex. With the nearest points ``p_1``,
``p_2`` of a pair and the unit normal ``n`` from the first to the second,

    d distance / dq = n . (J_2(p_2) - J_1(p_1))

Bodies joined by a joint are never a pair, and neither are bodies that touch in nearly every pose, as hulls around a common axis do, and
bodies between which the description wants no contact. Obstacles are pairs with every body.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dynid.arrays import Array, IntArray
from dynid.dynamics.pinocchio_model import to_pinocchio_position
from dynid.errors import InputError, UnknownNameError
from dynid.excitation.gradient import refuse_floating
from dynid.excitation.pose_limits import PoseLimit, Pullback
from dynid.excitation.shape_pairs import ShapePairs, capsule_shapes, described_shapes
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

    @cached_property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Links or obstacles of every pair."""
        owners = self.shapes.owners
        return tuple((owners[first], owners[second]) for first, second in self.shapes.pairs)

    def distances(self, q: Array) -> Array:
        """Signed distance of every pose and pair, ``(poses, pairs)``; negative where bodies overlap."""
        return self.shapes.distances(to_pinocchio_position(self.robot, q))

    def closest(self, q: Array) -> tuple[Array, list[str]]:
        """Smallest distance of every pose, and which pair has it."""
        found = self.distances(q)
        pair = found.argmin(axis=1)
        names = [self.name_of(k) for k in pair]
        return found[np.arange(len(q)), pair], names

    def smallest(self, q: Array) -> tuple[float, int, str]:
        """Smallest distance along a path of poses, at which of them, and of which pair.

        No point of a body moves farther than the sum of what each joint turns times the longest lever to it, so a distance at one
        pose bounds those at poses nearby: all pairs are looked at in every so many poses, in between those that could be closer.
        """
        coarse = np.arange(0, len(q), _STRIDE)
        known = self.distances(q[coarse])
        row, pair = np.unravel_index(int(np.argmin(known)), known.shape)
        best, place, which = float(known[row, pair]), int(coarse[row]), int(pair)
        others = np.setdiff1d(np.arange(len(q)), coarse)
        nearest = np.minimum((others + _STRIDE // 2) // _STRIDE, len(coarse) - 1)
        least = known[nearest] - np.abs(q[others] - q[coarse[nearest]]) @ self._levers.T
        distances_at = self.shapes.single_distances()
        positions = to_pinocchio_position(self.robot, q)
        for number in np.argsort(least.min(axis=1)):
            near = np.flatnonzero(least[number] < best)
            if not len(near):
                break  # and all that follow are farther still
            at = int(others[number])
            distances = distances_at(positions[at], near)
            closest = int(np.argmin(distances))
            if distances[closest] < best:
                best, place, which = float(distances[closest]), at, int(near[closest])
        return best, place, self.name_of(which)

    def slacks(self, q: Array, v: Array, a: Array) -> tuple[Array, Pullback]:
        look = self.shapes.nearest()
        span, n = self.active_m - self.least_m, self.robot.n_joints
        slack = np.ones((len(q), len(self.pairs)))
        near: list[tuple[int, int]] = []
        found: list[Array] = []
        J = np.zeros((len(q), 6, n))
        for row, position in enumerate(to_pinocchio_position(self.robot, q)):
            distance, pair_at, jacobian = look(position)
            slack[row] = np.minimum((distance - self.least_m) / span, 1.0)
            if (slack[row] <= 0.0).any():  # where bodies are too close already the design asks for no slopes
                return slack, lambda bar: (np.zeros_like(q), np.zeros_like(q), np.zeros_like(q))
            close = [int(k) for k in np.flatnonzero(slack[row] < 1.0)]
            if close:
                J[row] = jacobian()
            near += [(row, k) for k in close]
            found += [pair_at(k) for k in close]
        at, pair = np.array(near, dtype=np.int64).reshape(-1, 2).T
        slopes = self._slopes(found, J[at], pair) / span

        def pullback(bar: Array) -> tuple[Array, Array, Array]:
            q_bar = np.zeros((len(q), n))
            np.add.at(q_bar, at, bar[at, pair][:, None] * slopes)
            return q_bar, np.zeros_like(q_bar), np.zeros_like(q_bar)

        return slack, pullback

    def tightened(self, share: float) -> Clearance:
        more = SCALE_M * share
        return replace(self, least_m=self.least_m + more, active_m=self.active_m + more)

    def broken(self, q: Array) -> Array:
        return np.asarray((self.distances(q) <= self.least_m).mean(axis=0))

    def worst(self, q: Array, v: Array, a: Array) -> tuple[float, int, str]:
        distance, row, pair = self.smallest(q)
        return (distance - self.least_m) / SCALE_M, row, pair

    def name_of(self, constraint: int) -> str:
        return " - ".join(self.pairs[constraint])

    def place(self, constraint: int) -> str:
        return " and ".join(f"'{name}'" for name in self.pairs[constraint])

    def _slopes(self, found: Sequence[Array], J: Array, pair: IntArray) -> Array:
        """``d distance / dq`` of near pairs, with Jacobians in the base frame and the numbers of the pairs."""
        nearest = np.reshape(found, (-1, 3, 3))
        normal, points = nearest[:, 0], nearest[:, 1:]
        slope = np.zeros((len(found), self.robot.n_joints))
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
        if any(joint.kind == "prismatic" for joint in self.robot.joints):
            return np.asarray(1e9 * against)  # levers that grow are not known beforehand: every pose is looked at
        offsets = self.shapes.joint_offsets()
        levers = np.zeros((len(self.shapes.levers), self.robot.n_joints))
        for number, (lever, joint) in enumerate(zip(self.shapes.levers, self.shapes.joints, strict=True)):
            far, i = lever, joint - 1
            while i >= 0:
                levers[number, i] = far
                far += offsets[i]
                i = self.robot.joints[i].parent
        sides = self.shapes.pairs
        return np.asarray(against * np.maximum(levers[sides[:, 0]], levers[sides[:, 1]]))

    @cached_property
    def _moved(self) -> Array:
        """Which joints move the body on each side of each pair, ``(pairs, 2, joints)``."""
        n = self.robot.n_joints
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
    if robot.loops:
        raise InputError(
            f"robot '{robot.name}' has closed loops, for which clearance is not kept yet; design without --clearance"
        )
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
    robot: Robot, *, least_m: float = 0.01, ground_m: float | None = 0.0, assumed: bool = True, seed: int = 0
) -> tuple[Clearance | None, tuple[str, ...]]:
    """What every motion keeps unless it is told not to: bodies apart from one another and from the mounting plane.

    Collision shapes of the description where it has them, else hulls of link frames and inertia. None, with the reason, where
    nothing can be kept apart. A level floor of the description is the mounting plane that is assumed.

    Args:
        robot: the robot.
        least_m: smallest distance that is allowed.
        ground_m: height of the mounting plane in the base frame; None for no plane.
        assumed: whether nobody stated that height: it is then kept only where the base stands on it.
        seed: of the random poses that tell which pairs always touch.
    """
    _check_distance(least_m)
    if robot.loops:
        return None, ("bodies are not kept apart: the robot has closed loops, for which that is not done yet",)
    refuse_floating(robot)
    told: list[str] = []
    try:
        shapes, described = described_shapes(robot)
    except InputError as error:
        shapes, described = capsule_shapes(robot), Solids(())
        told.append(f"bodies are kept apart by capsules of their joint frames and inertia: {error}")
    masses = robot.parameters.inertials[:, 0]
    if bare := [link for i, link in enumerate(robot.links) if i + 1 not in shapes.joints and masses[i] > 0.0]:
        told.append(f"bodies without shapes for collisions are not kept apart: {', '.join(bare)}")
    if assumed and ground_m is not None and described.floor_m not in (None, ground_m):
        ground_m = described.floor_m
        told.append(f"the mounting plane is the floor of the description, at {ground_m:g} m in the base frame")
    if assumed and ground_m is not None and (reason := _not_standing(robot, shapes, ground_m, seed)):
        told.append(f"no mounting plane is kept clear of: {reason}; give its height in the base frame with --ground HEIGHT")
        ground_m = None
    try:
        found = _kept_apart(robot, shapes, described, least_m, ground_m=ground_m, seed=seed, always_above=MOSTLY)
    except NothingApartError as error:
        return None, (*told, f"bodies are not kept apart: {error}")
    return found, tuple(told)


def _check_distance(least_m: float) -> None:
    if not (np.isfinite(least_m) and least_m >= 0.0):
        raise InputError(f"least clearance is {least_m:g} m, expected zero or a positive number")


def _not_standing(robot: Robot, shapes: ShapePairs, ground_m: float, seed: int) -> str:
    """Why the base is not taken to stand on the plane; empty where it is."""
    bottom = shapes.lowest_fixed_m()
    if bottom is not None and bottom < ground_m - STANDS_M:
        return f"the base itself reaches down to {bottom:.3g} m"
    height = shapes.mean_height_m(to_pinocchio_position(robot, _random_poses(robot, seed)))
    if height < ground_m:
        return f"over random poses the bodies are {height:.3g} m high on average, as those of a robot that hangs or floats"
    return ""


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
    could_touch = _candidate_pairs(robot, shapes, ignore, described.joined)
    pairs = [(i, j) for i, j in could_touch if frozenset((owners[i], owners[j])) not in described.excluded]
    if not pairs:
        raise NothingApartError(f"robot '{robot.name}' has no two bodies with collision shapes that could touch")
    clearance = Clearance(robot, shapes.with_pairs(pairs), least_m, active)
    touching = (clearance.distances(_random_poses(robot, seed)) < least_m).mean(axis=0)
    always = touching > np.where(clearance.shapes.outside, ALWAYS, always_above)
    if always.all():
        raise NothingApartError(f"all {len(pairs)} pairs of bodies of robot '{robot.name}' touch in nearly every pose")
    notes = list(described.notes)
    left_out = [pair for pair in could_touch if pair not in pairs]
    if left_out:
        notes.append(f"pairs that the description excludes from contact are not kept apart: {_listed(owners, left_out)}")
    if always.any():
        often = "nearly every pose" if always_above == ALWAYS else "most poses"
        touch = [pair for pair, drop in zip(pairs, always, strict=True) if drop]
        notes.append(f"pairs closer than {least_m:g} m in {often} are not kept apart: {_listed(owners, touch)}")
    kept = [pair for pair, drop in zip(pairs, always, strict=True) if not drop]
    return Clearance(robot, shapes.with_pairs(kept), least_m, active, tuple(notes))


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


def _candidate_pairs(
    robot: Robot, shapes: ShapePairs, ignore: Iterable[tuple[str, str]], joined: frozenset[frozenset[str]]
) -> list[tuple[int, int]]:
    """Pairs on different bodies that no joint joins, and of every body with every obstacle."""
    owners, bodies = shapes.owners, shapes.joints
    ignored = {frozenset(pair) for pair in ignore}
    for name in sorted({name for pair in ignored for name in pair}):
        if name not in owners:
            raise UnknownNameError("link with collision shapes", name, dict.fromkeys(owners))
    above = [0, *(joint.parent + 1 for joint in robot.joints)]
    pairs = []
    for i, j in combinations(range(len(bodies)), 2):
        first, second, names = bodies[i], bodies[j], frozenset((owners[i], owners[j]))
        neighbours = above[first] == second or above[second] == first or names in joined
        obstacle = shapes.obstacles[i] or shapes.obstacles[j]
        if first != second and (obstacle or not neighbours) and names not in ignored:
            pairs.append((i, j))
    return pairs


def _random_poses(robot: Robot, seed: int) -> Array:
    low, high = robot.position_limits.T
    low, high = np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi)
    return np.random.default_rng(seed).uniform(low, high, (_RANDOM_POSES, robot.n_joints))
