"""Bodies kept apart: self-collision, ground and obstacles, by coal through Pinocchio.

Shapes are the collision elements of the robot's URDF; meshes are replaced by their convex hulls, which hold them, so that a signed
distance with nearest points exists everywhere. With the nearest points ``p_1``, ``p_2`` of a pair and the unit normal ``n`` from
the first to the second,

    d distance / dq = n . (J_2(p_2) - J_1(p_1))

Bodies joined by a joint are never a pair, and neither are bodies that touch in nearly every pose, as hulls around a common axis do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.adapters.pinocchio import pinocchio_model, to_pinocchio_position
from dynid.arrays import Array, IntArray
from dynid.errors import InputError, UnknownNameError
from dynid.excitation.limits import PoseLimit, Pullback
from dynid.robot.model import Robot

ALWAYS = 0.9
"""Pairs closer than allowed in a larger share of random poses are not bodies to be kept apart."""

_STRIDE = 8
"""Along a path all pairs are looked at in every so many poses."""

_RANDOM_POSES = 200
_GROUND = "ground"


@dataclass(frozen=True, eq=False)
class Clearance(PoseLimit):
    """Pairs of shapes and how far apart they are to stay."""

    robot: Robot
    model: Any
    geometry: Any
    pairs: tuple[tuple[str, str], ...]
    """Links or obstacles of every pair."""
    least_m: float
    active_m: float
    """Pairs farther apart than this have no say."""
    notes: tuple[str, ...] = ()

    def distances(self, q: Array) -> Array:
        """Signed distance of every pose and pair, ``(poses, pairs)``; negative where bodies overlap."""
        import pinocchio as pin

        working, shapes = self.model.createData(), self.geometry.createData()
        out = np.empty((len(q), len(self.pairs)))
        for row, position in enumerate(to_pinocchio_position(self.robot, q)):
            pin.computeDistances(self.model, working, self.geometry, shapes, position)
            out[row] = [result.min_distance for result in shapes.distanceResults]
        return out

    def closest(self, q: Array) -> tuple[Array, list[str]]:
        """Smallest distance of every pose, and which pair has it."""
        found = self.distances(q)
        pair = found.argmin(axis=1)
        names = [" - ".join(self.pairs[k]) for k in pair]
        return found[np.arange(len(q)), pair], names

    def smallest(self, q: Array) -> tuple[float, int, str]:
        """Smallest distance along a path of poses, at which of them, and of which pair.

        No point of a body moves farther than the sum of what each joint turns times the longest lever to it, so a distance at one
        pose bounds those at poses nearby: all pairs are looked at in every so many poses, in between those that could be closer.
        """
        import pinocchio as pin

        coarse = np.arange(0, len(q), _STRIDE)
        known = self.distances(q[coarse])
        row, pair = np.unravel_index(int(np.argmin(known)), known.shape)
        best, place, which = float(known[row, pair]), int(coarse[row]), int(pair)
        others = np.setdiff1d(np.arange(len(q)), coarse)
        nearest = np.minimum((others + _STRIDE // 2) // _STRIDE, len(coarse) - 1)
        least = known[nearest] - np.abs(q[others] - q[coarse[nearest]]) @ self._levers.T
        working, shapes = self.model.createData(), self.geometry.createData()
        positions = to_pinocchio_position(self.robot, q)
        for number in np.argsort(least.min(axis=1)):
            near = np.flatnonzero(least[number] < best)
            if not len(near):
                break  # and all that follow are farther still
            at = int(others[number])
            pin.updateGeometryPlacements(self.model, working, self.geometry, shapes, positions[at])
            for k in near:
                distance = pin.computeDistance(self.geometry, shapes, int(k)).min_distance
                if distance < best:
                    best, place, which = float(distance), at, int(k)
        return best, place, " - ".join(self.pairs[which])

    def slacks(self, q: Array, v: Array, a: Array) -> tuple[Array, Pullback]:
        import pinocchio as pin

        working, shapes = self.model.createData(), self.geometry.createData()
        span, n = self.active_m - self.least_m, self.robot.n_joints
        slack = np.ones((len(q), len(self.pairs)))
        near: list[tuple[int, int]] = []
        normals, points, J = [], [], np.zeros((len(q), 6, n))
        for row, position in enumerate(to_pinocchio_position(self.robot, q)):
            pin.computeDistances(self.model, working, self.geometry, shapes, position)
            results = shapes.distanceResults
            distance = np.array([result.min_distance for result in results])
            slack[row] = np.minimum((distance - self.least_m) / span, 1.0)
            if (slack[row] <= 0.0).any():  # nobody asks for slopes where bodies are too close already
                return slack, lambda bar: (np.zeros_like(q), np.zeros_like(q), np.zeros_like(q))
            close = np.flatnonzero(slack[row] < 1.0)
            if len(close):
                J[row] = pin.computeJointJacobians(self.model, working, position)
            for k in close:
                result = results[int(k)]
                near.append((row, int(k)))
                normals.append(np.array(result.normal))
                points.append((np.array(result.getNearestPoint1()), np.array(result.getNearestPoint2())))
        at, pair = (np.array(index, dtype=np.int64) for index in (zip(*near, strict=True) if near else ((), ())))
        slopes = self._slopes(np.reshape(normals, (-1, 3)), np.reshape(points, (-1, 2, 3)), J[at], pair) / span

        def pullback(bar: Array) -> tuple[Array, Array, Array]:
            q_bar = np.zeros((len(q), n))
            np.add.at(q_bar, at, bar[at, pair][:, None] * slopes)
            return q_bar, np.zeros_like(q_bar), np.zeros_like(q_bar)

        return slack, pullback

    def tightened(self, share: float) -> Clearance:
        more = 0.1 * share
        return replace(self, least_m=self.least_m + more, active_m=self.active_m + more)

    def _slopes(self, normal: Array, points: Array, J: Array, pair: IntArray) -> Array:
        """``d distance / dq`` of near pairs: normals, nearest points, Jacobians in the world's frame, and which pairs they are."""
        slope = np.zeros((len(normal), self.robot.n_joints))
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
        n = self.robot.n_joints
        against = np.abs(
            self._moved[:, 0] - self._moved[:, 1]
        )  # a joint that moves both bodies moves none against the other
        if any(joint.kind == "prismatic" for joint in self.robot.joints):
            return np.asarray(1e9 * against)  # levers that grow are not known beforehand: every pose is looked at
        offsets = [float(np.linalg.norm(self.model.jointPlacements[i + 1].translation)) for i in range(n)]
        levers = np.zeros((len(self.geometry.geometryObjects), n))
        for g, shape in enumerate(self.geometry.geometryObjects):
            shape.geometry.computeLocalAABB()
            far = float(
                np.linalg.norm(shape.placement.act(np.array(shape.geometry.aabb_center))) + shape.geometry.aabb_radius
            )
            i = int(shape.parentJoint) - 1
            while i >= 0:
                levers[g, i] = far
                far += offsets[i]
                i = self.robot.joints[i].parent
        sides = np.array([(pair.first, pair.second) for pair in self.geometry.collisionPairs])
        return np.asarray(against * np.maximum(levers[sides[:, 0]], levers[sides[:, 1]]))

    @cached_property
    def _moved(self) -> Array:
        """Which joints move the body on each side of each pair, ``(pairs, 2, joints)``."""
        n = self.robot.n_joints
        carried = np.zeros((n + 1, n))
        for i, joint in enumerate(self.robot.joints):
            carried[i + 1] = carried[joint.parent + 1]
            carried[i + 1, i] = 1.0
        bodies = [int(shape.parentJoint) for shape in self.geometry.geometryObjects]
        return np.array(
            [(carried[bodies[pair.first]], carried[bodies[pair.second]]) for pair in self.geometry.collisionPairs]
        )


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
    """Pairs of bodies of a robot read from URDF that a motion must keep apart.

    Args:
        robot: read from a URDF file with collision elements; locked joints are where they were locked.
        least_m: smallest distance that is allowed.
        active_m: distance below which pairs push each other apart during a design; None for 0.05 m more than the least.
        ground_m: height of a level ground in the base frame; None for no ground.
        obstacles: boxes as (name, sizes x y z, 4x4 pose in the base frame).
        ignore: pairs of link names that need no distance.
        package_dirs: where ``package://`` paths begin; None for the folders around the file.
        seed: of the random poses that tell which pairs always touch.
    """
    if not (np.isfinite(least_m) and least_m >= 0.0):
        raise InputError(f"least clearance is {least_m:g} m, expected zero or a positive number")
    active = least_m + 0.05 if active_m is None else active_m
    if not active > least_m:
        raise InputError(f"clearance acts below {active:g} m but {least_m:g} m is the least, expected more than that")
    model = pinocchio_model(robot)
    geometry, owners = _shapes(robot, model, package_dirs)
    _add_boxes(geometry, owners, ground_m, obstacles)
    pairs = _candidate_pairs(robot, geometry, owners, ignore)
    if not pairs:
        raise InputError(f"robot '{robot.name}' has no two bodies with collision shapes that could touch")
    clearance = _with_pairs(robot, model, geometry, owners, pairs, least_m, active)
    poses = _random_poses(robot, seed)
    touching = (clearance.distances(poses) < least_m).mean(axis=0)
    always = touching > ALWAYS
    if always.all():
        raise InputError(f"all {len(pairs)} pairs of bodies of robot '{robot.name}' touch in nearly every pose")
    if always.any():
        left_out = ", ".join(" - ".join(clearance.pairs[k]) for k in np.flatnonzero(always))
        kept = [pair for pair, drop in zip(pairs, always, strict=True) if not drop]
        note = f"pairs that touch in nearly every pose are not kept apart: {left_out}"
        clearance = replace(_with_pairs(robot, model, geometry, owners, kept, least_m, active), notes=(note,))
    return clearance


def _shapes(robot: Robot, model: Any, package_dirs: Sequence[str | Path] | None) -> tuple[Any, list[str]]:
    """Collision shapes of the URDF on the bodies of ``model``, convex, and the link of each."""
    import pinocchio as pin

    path = Path(robot.source.path)
    if robot.source.format != "urdf" or path.suffix.lower() != ".urdf":
        raise InputError(f"robot '{robot.name}' was not read from a URDF file, so it has no collision shapes")
    text = path.read_text(encoding="utf-8")
    if "<collision" not in text:
        raise InputError(f"robot file '{path}' has no <collision> element, so there are no shapes to keep apart")
    folders = [str(folder) for folder in package_dirs] if package_dirs is not None else _package_folders(path, text)
    try:
        raw = pin.buildModelFromUrdf(str(path))
        described = pin.buildGeomFromUrdf(raw, str(path), pin.GeometryType.COLLISION, package_dirs=folders)
    except (ValueError, RuntimeError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise InputError(f"collision shapes of robot file '{path}' cannot be read: {reason}") from error
    frames = {frame.name: frame for frame in model.frames if frame.type == pin.FrameType.BODY}
    geometry, owners = pin.GeometryModel(), []
    for shape in described.geometryObjects:
        here = raw.frames[shape.parentFrame]
        link = here.name
        if link in frames:
            joint, frame_pose = frames[link].parentJoint, frames[link].placement
        else:  # the outermost link, which is the ground here
            joint, frame_pose = 0, here.placement
        pose = frame_pose * here.placement.inverse() * shape.placement
        geometry.addGeometryObject(pin.GeometryObject(shape.name, joint, pose, _convex(shape.geometry)))
        owners.append(link)
    return geometry, owners


def _convex(shape: Any) -> Any:
    """The convex hull of a mesh; other shapes are convex already."""
    if not hasattr(shape, "buildConvexHull"):
        return shape
    shape.buildConvexHull(True, "Qt")
    return shape.convex


def _package_folders(path: Path, text: str) -> list[str]:
    """Folders above the file in which the packages it names lie."""
    names = set(re.findall(r"package://([^/\"']+)/", text))
    folders = [folder for folder in path.resolve().parents if any((folder / name).is_dir() for name in names)]
    return [str(folder) for folder in (*folders, path.resolve().parent)]


def _add_boxes(
    geometry: Any, owners: list[str], ground_m: float | None, obstacles: Iterable[tuple[str, ArrayLike, ArrayLike]]
) -> None:
    import coal
    import pinocchio as pin

    boxes: list[tuple[str, Array, Array]] = []
    if ground_m is not None:
        pose = np.eye(4)
        pose[2, 3] = ground_m - 0.5
        boxes.append((_GROUND, np.array([20.0, 20.0, 1.0]), pose))
    for name, sizes, where in obstacles:
        size, place = np.asarray(sizes, dtype=np.float64), np.asarray(where, dtype=np.float64)
        if size.shape != (3,) or not (size > 0.0).all() or place.shape != (4, 4):
            raise InputError(
                f"obstacle '{name}' has sizes {size.tolist()} and a pose of shape {place.shape}, expected 3 sizes and 4x4"
            )
        boxes.append((name, size, place))
    for name, size, place in boxes:
        geometry.addGeometryObject(pin.GeometryObject(name, 0, pin.SE3(place), coal.Box(*size.tolist())))
        owners.append(name)


def _candidate_pairs(
    robot: Robot, geometry: Any, owners: list[str], ignore: Iterable[tuple[str, str]]
) -> list[tuple[int, int]]:
    """Pairs on different bodies that no joint joins."""
    ignored = {frozenset(pair) for pair in ignore}
    for name in sorted({name for pair in ignored for name in pair}):
        if name not in owners:
            raise UnknownNameError("link with collision shapes", name, dict.fromkeys(owners))
    bodies = [int(shape.parentJoint) for shape in geometry.geometryObjects]
    above = [0, *(joint.parent + 1 for joint in robot.joints)]
    pairs = []
    for i in range(len(bodies)):
        for j in range(i + 1, len(bodies)):
            first, second = bodies[i], bodies[j]
            world = 0 in (first, second)
            joined = above[first] == second or above[second] == first
            obstacle = world and _is_obstacle(robot, owners[i] if first == 0 else owners[j])
            if first != second and (not joined or obstacle) and frozenset((owners[i], owners[j])) not in ignored:
                pairs.append((i, j))
    return pairs


def _is_obstacle(robot: Robot, name: str) -> bool:
    """Whether a shape of the world is no link: even the first body must not touch it."""
    fixed = {link.name for link in robot.merged if link.body < 0}
    return name not in fixed and name not in robot.links


def _with_pairs(
    robot: Robot, model: Any, geometry: Any, owners: list[str], pairs: list[tuple[int, int]], least_m: float, active_m: float
) -> Clearance:
    import pinocchio as pin

    chosen = geometry.copy()
    chosen.removeAllCollisionPairs()
    for i, j in pairs:
        chosen.addCollisionPair(pin.CollisionPair(i, j))
    names = tuple((owners[i], owners[j]) for i, j in pairs)
    return Clearance(robot, model, chosen, names, least_m, active_m)


def _random_poses(robot: Robot, seed: int) -> Array:
    low, high = robot.position_limits.T
    low, high = np.where(np.isfinite(low), low, -np.pi), np.where(np.isfinite(high), high, np.pi)
    return np.random.default_rng(seed).uniform(low, high, (_RANDOM_POSES, robot.n_joints))
