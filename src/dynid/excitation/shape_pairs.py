"""Shapes on the bodies of a robot and the distances of pairs of them, by coal through Pinocchio.

Shapes are those that the description has for collisions. Meshes are replaced by their convex hulls, which contain them, so that a signed
distance with nearest points exists everywhere. Where a description has no shapes, capsules stand for its bodies: one from each body's
joint to each joint it carries. The radius follows from the inertia: a round bar of radius ``R`` has the second moment ``R^2 / 4``
across its axis. The last body of a chain reaches from its joint through its centre of mass as far again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dynid.arrays import Array, BoolArray, IntArray
from dynid.dynamics.pinocchio_model import pinocchio_model
from dynid.errors import InputError, UnknownNameError
from dynid.io.robots.read import FARTHEST
from dynid.io.robots.shapes import coal_reason, described_solids, has_shapes
from dynid.io.robots.solids import Solid, Solids
from dynid.model.inertia import pseudo_inertia
from dynid.model.robot import Robot

MOST_SHAPES = 40
"""Solids of the robot, at most, for which each is looked at by itself: pairs grow with the square."""

MOST_OBSTACLES = 200
"""Solids of the world, at most."""

RADIUS_M = (0.03, 0.15)
"""Radii of capsules are kept within these: inertias of descriptions are rough."""

MEET_M = 0.01
"""Joints nearer than this are one joint of several axes, m."""

_SHORTEST_M = 0.01

Placed: TypeAlias = tuple[str, int, Any, Any, bool]
"""Owner, number of the joint that moves it, pose in that joint's frame, coal's shape, and whether it is an obstacle."""


@dataclass(frozen=True, eq=False)
class ShapePairs:
    """Convex shapes on the bodies of a Pinocchio model, and the pairs of them whose distances are asked for."""

    model: Any
    geometry: Any
    owners: tuple[str, ...] = ()
    """Link or obstacle of every shape."""
    joints: tuple[int, ...] = ()
    """Number of the joint that moves each, from 1; 0 for the ground."""
    levers: tuple[float, ...] = ()
    """Largest distance of a point of each from the frame of its joint, m."""
    obstacles: tuple[bool, ...] = ()
    """Whether each stands in the world and is no part of the robot: no body at all may touch it."""

    @classmethod
    def on(cls, model: Any, placed: Iterable[Placed] = ()) -> ShapePairs:
        """These shapes on the bodies of a model; no pairs yet."""
        import pinocchio as pin

        return cls(model, pin.GeometryModel())._with(placed)

    def with_solids(self, solids: Iterable[tuple[int, Solid]]) -> ShapePairs:
        """Solids added, each with the number of the joint in whose frame its pose is."""
        import pinocchio as pin

        return self._with(
            (solid.link, joint, pin.SE3(solid.pose), _convex_solid(solid), solid.obstacle) for joint, solid in solids
        )

    def on_body(self, link: str, solid: Solid) -> tuple[int, Solid]:
        """The number of the joint that moves a link, and a solid of the link's frame in the frame of that joint."""
        import pinocchio as pin

        frame = self.model.frames[self.model.getFrameId(link, pin.FrameType.BODY)]
        return int(frame.parentJoint), replace(solid, pose=frame.placement.homogeneous @ solid.pose)

    def _with(self, placed: Iterable[Placed]) -> ShapePairs:
        import pinocchio as pin

        added, levers, geometry = list(placed), list(self.levers), self.geometry.copy()
        for owner, joint, pose, shape, _ in added:
            geometry.addGeometryObject(pin.GeometryObject(f"{owner}_{len(levers)}", joint, pose, shape))
            shape.computeLocalAABB()
            levers.append(float(np.linalg.norm(pose.act(np.array(shape.aabb_center))) + shape.aabb_radius))
        return ShapePairs(
            self.model,
            geometry,
            (*self.owners, *(owner for owner, *_ in added)),
            (*self.joints, *(int(joint) for _, joint, *_ in added)),
            tuple(levers),
            (*self.obstacles, *(obstacle for *_, obstacle in added)),
        )

    @property
    def pairs(self) -> IntArray:
        """The two shapes of every pair, ``(pairs, 2)``."""
        return np.array([(pair.first, pair.second) for pair in self.geometry.collisionPairs], dtype=np.int64).reshape(-1, 2)

    @property
    def outside(self) -> BoolArray:
        """Which pairs are with an obstacle."""
        return np.asarray(np.array(self.obstacles)[self.pairs].any(axis=1))

    def with_pairs(self, pairs: Sequence[tuple[int, int]]) -> ShapePairs:
        """The same shapes with these pairs."""
        import pinocchio as pin

        chosen = self.geometry.copy()
        chosen.removeAllCollisionPairs()
        for first, second in pairs:
            chosen.addCollisionPair(pin.CollisionPair(first, second))
        return replace(self, geometry=chosen)

    def distances(self, positions: Array) -> Array:
        """Signed distance of every pose and pair, ``(poses, pairs)``; negative where shapes overlap."""
        import pinocchio as pin

        working, shapes = self.model.createData(), self.geometry.createData()
        out = np.empty((len(positions), len(self.geometry.collisionPairs)))
        for row, position in enumerate(positions):
            pin.computeDistances(self.model, working, self.geometry, shapes, position)
            out[row] = [result.min_distance for result in shapes.distanceResults]
        return out

    def single_distances(self) -> Callable[[Array, IntArray], Array]:
        """A function of one pose and the numbers of some pairs: their distances alone."""
        import pinocchio as pin

        working, shapes = self.model.createData(), self.geometry.createData()

        def distances(position: Array, pairs: IntArray) -> Array:
            pin.updateGeometryPlacements(self.model, working, self.geometry, shapes, position)
            return np.array([pin.computeDistance(self.geometry, shapes, int(pair)).min_distance for pair in pairs])

        return distances

    def nearest(self) -> Callable[[Array], tuple[Array, Callable[[int], Array], Callable[[], Array]]]:
        """A function of one pose: all distances, what is known of one pair there, and the joints' Jacobian in the base frame.

        Of a pair ``(3, 3)``: the unit normal from its first to its second shape, and the nearest points, in the base frame.
        """
        import pinocchio as pin

        working, shapes = self.model.createData(), self.geometry.createData()

        def at(position: Array) -> tuple[Array, Callable[[int], Array], Callable[[], Array]]:
            pin.computeDistances(self.model, working, self.geometry, shapes, position)
            results = shapes.distanceResults

            def pair(number: int) -> Array:
                result = results[number]
                return np.array([result.normal, result.getNearestPoint1(), result.getNearestPoint2()])

            def jacobian() -> Array:
                J: Array = pin.computeJointJacobians(self.model, working, position)
                return J

            return np.array([result.min_distance for result in results]), pair, jacobian

        return at

    def mean_height_m(self, positions: Array) -> float:
        """Mean height of the moving shapes over these poses, in the base frame, m."""
        import pinocchio as pin

        working, shapes = self.model.createData(), self.geometry.createData()
        moving = [number for number, joint in enumerate(self.joints) if joint != 0]
        heights = []
        for position in positions:
            pin.updateGeometryPlacements(self.model, working, self.geometry, shapes, position)
            heights.append(np.mean([shapes.oMg[number].translation[2] for number in moving]))
        return float(np.mean(heights))

    def lowest_fixed_m(self) -> float | None:
        """Lowest point of the boxes around shapes of the base itself, in its frame, m; None where there is none."""
        bottoms = []
        for joint, obstacle, one in zip(self.joints, self.obstacles, self.geometry.geometryObjects, strict=True):
            if joint == 0 and not obstacle:
                one.geometry.computeLocalAABB()
                half = 0.5 * (np.array(one.geometry.aabb_local.max_) - np.array(one.geometry.aabb_local.min_))
                centre = one.placement.act(np.array(one.geometry.aabb_center))
                bottoms.append(float(centre[2] - np.abs(one.placement.rotation[2]) @ half))
        return min(bottoms, default=None)

    def joint_offsets(self) -> Array:
        """Distance of every joint's frame from the one before it, m."""
        return np.array([float(np.linalg.norm(place.translation)) for place in list(self.model.jointPlacements)[1:]])


def candidate_pairs(
    robot: Robot,
    shapes: ShapePairs,
    ignore: Iterable[tuple[str, str]],
    joined: frozenset[frozenset[str]],
    capsules: bool = False,
) -> list[tuple[int, int]]:
    """Pairs on different bodies that no joint joins, and of every body with every obstacle.

    Capsules that stand for bodies begin at their joints: those that meet in a joint of several axes are neighbours too.
    """
    owners, bodies = shapes.owners, shapes.joints
    ignored = {frozenset(pair) for pair in ignore}
    for name in sorted({name for pair in ignored for name in pair}):
        if name not in owners:
            raise UnknownNameError("link with collision shapes", name, dict.fromkeys(owners))
    above = [0, *(joint.parent + 1 for joint in robot.joints)]
    tied = {frozenset((loop.first.body + 1, loop.second.body + 1)) for loop in robot.loops.framed} if robot.loops else set()
    if capsules:
        for body, offset in enumerate(shapes.joint_offsets(), start=1):
            if offset < MEET_M and above[body] > 0:
                tied.add(frozenset((body, above[above[body]])))
    pairs = []
    for i, j in combinations(range(len(bodies)), 2):
        first, second, names = bodies[i], bodies[j], frozenset((owners[i], owners[j]))
        neighbours = above[first] == second or above[second] == first or names in joined
        neighbours |= frozenset((first, second)) in tied
        obstacle = shapes.obstacles[i] or shapes.obstacles[j]
        if first != second and (obstacle or not neighbours) and names not in ignored:
            pairs.append((i, j))
    return pairs


# Shapes of a description --------------------------------------------------------------------------


def described_shapes(robot: Robot, package_dirs: Sequence[str | Path] | None = None) -> tuple[ShapePairs, Solids]:
    """Collision shapes of the robot's URDF, MJCF or SDF file, and what the file says about them.

    Raises:
        InputError: there are none, or they cannot be read; the sentence says why.
    """
    if not has_shapes(robot):
        raise InputError(
            f"robot '{robot.name}' was not read from a .urdf, MJCF or SDF file, the only ones whose collision shapes are used here"
        )
    path = Path(robot.source.path)
    found = described_solids(robot, looks=False, package_dirs=package_dirs)
    obstacles = sum(solid.obstacle for solid in found.solids)
    own = len(found.solids) - obstacles
    if not own:
        why = "; ".join(found.lacking.values())
        raise InputError(why or f"robot file '{path}' describes no shapes of links, so there are none to keep apart")
    if obstacles > MOST_OBSTACLES:
        raise InputError(f"robot file '{path}' has {obstacles} shapes in the world, expected at most {MOST_OBSTACLES}")
    notes = list(found.notes)
    if own > MOST_SHAPES and robot.source.format != "urdf":  # links of URDF files have few
        found = found.by_link()
        notes.append(f"the {own} shapes of the description are many: those of each link count as one convex hull")
    import pinocchio as pin

    model = kinematic_model(robot)
    frames = {frame.name: frame for frame in model.frames if frame.type == pin.FrameType.BODY}
    placed = []  # each solid with the number of the joint that moves it, its pose in the frame of that joint
    for solid in found.solids:
        frame = None if solid.obstacle else frames.get(solid.link)
        pose = solid.pose if frame is None else frame.placement.homogeneous @ solid.pose
        placed.append((0 if frame is None else int(frame.parentJoint), replace(solid, pose=pose)))
    shapes = ShapePairs.on(model).with_solids(placed)
    for owner, lever in zip(shapes.owners, shapes.levers, strict=True):
        if not lever <= FARTHEST:
            raise InputError(
                f"robot file '{path}' has a shape of '{owner}' that reaches {lever:.3g} m, expected at most {FARTHEST:.0e}"
            )
    if found.lacking:
        moved_by = {link.name: link.body + 1 for link in robot.merged} | {link: i + 1 for i, link in enumerate(robot.links)}
        bodies = {moved_by.get(link, 0) for link in found.lacking}
        shapes = shapes.with_solids(one for one in body_capsules(robot, model) if one[0] in bodies)
        notes += [
            f"a capsule of joint frames and inertia stands for link '{link}': {why}" for link, why in found.lacking.items()
        ]
    return shapes, replace(found, notes=tuple(notes))


def _convex_solid(solid: Solid) -> Any:
    """A solid as one of coal's, the convex hull of a mesh."""
    import coal

    if solid.mesh is not None:
        points = coal.StdVec_Vec3s()
        points.extend(list(solid.mesh.vertices))
        try:
            return coal.ConvexBase.convexHull(points, True, "Qt")
        except (RuntimeError, ValueError) as error:
            raise InputError(f"a mesh of link '{solid.link}' has no convex hull: {coal_reason(error)}") from error
    if solid.kind == "box":
        return coal.Box(*(2.0 * half for half in solid.sizes))
    if solid.kind == "ellipsoid":
        round_all_over = len(set(solid.sizes)) == 1
        return coal.Sphere(solid.sizes[0]) if round_all_over else coal.Ellipsoid(*solid.sizes)
    radius, half = solid.sizes
    made = {"capsule": coal.Capsule, "cylinder": coal.Cylinder, "cone": coal.Cone}[solid.kind]
    return made(radius, 2.0 * half)


# Capsules in place of shapes ----------------------------------------------------------------------


def kinematic_model(robot: Robot) -> Any:
    """The robot in Pinocchio without masses, which distances do not need and descriptions of lumped bodies state in part."""
    return pinocchio_model(robot.with_parameters(dict.fromkeys(robot.parameters.names, 0.0)))


def capsule_shapes(robot: Robot) -> ShapePairs:
    """Capsules around the bodies of a robot, and one from the base to the first joints."""
    model = kinematic_model(robot)
    return ShapePairs.on(model).with_solids(body_capsules(robot, model))


def body_capsules(robot: Robot, model: Any) -> list[tuple[int, Solid]]:
    """The capsules of all bodies, in the frames of the joints of Pinocchio's model; those of the base have the joint 0."""
    offsets = [np.array(place.translation) for place in list(model.jointPlacements)[1:]]
    ends: dict[int, list[Array]] = {i: [] for i in range(-1, robot.n_bodies)}
    for joint, offset in zip(robot.joints, offsets, strict=True):
        ends[joint.parent].append(offset)
    capsules = [(0, capsule_to("base", end, RADIUS_M[0])) for end in ends[-1] if np.linalg.norm(end) > _SHORTEST_M]
    import pinocchio as pin

    frames = {frame.name: frame.placement for frame in model.frames if frame.type == pin.FrameType.BODY}
    for loop in robot.loops.framed if robot.loops else ():  # a link of a closed chain reaches to where it is closed
        for side in (loop.first, loop.second):
            if side.body >= 0:
                ends[side.body].append(frames[robot.links[side.body]].act(np.array(side.placement[:3, 3])))
    for i, phi in enumerate(robot.parameters.inertials):
        if not phi.any() and robot.joints[i].kind == "prismatic" and robot.parameters.inertials.any():
            continue  # a slide without a body: it only lets another one move
        com = frames[robot.links[i]].act(phi[1:4] / phi[0]) if phi[0] > 0.0 else np.zeros(3)
        capsules += [(i + 1, capsule_to(robot.links[i], end, _radius(phi))) for end in ends[i] or [2.0 * com]]
    return capsules


def capsule_to(link: str, end: Array, radius: float) -> Solid:
    """A capsule from the origin of a frame to a point of it."""
    import pinocchio as pin

    length = float(np.linalg.norm(end))
    pose = np.eye(4)
    if length > 0.0:
        pose[:3, :3] = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), end).matrix()
    pose[:3, 3] = 0.5 * end
    return Solid(link, "capsule", (radius, 0.5 * length), pose)


def _radius(phi: Array) -> float:
    """Radius of a round bar with the body's smaller second moments."""
    if not phi[0] > 0.0:
        return RADIUS_M[0]
    com = phi[1:4] / phi[0]
    spread = pseudo_inertia(phi)[:3, :3] / phi[0] - np.outer(com, com)
    smallest = max(float(np.linalg.eigvalsh(spread)[0]), 0.0)
    return float(np.clip(2.0 * np.sqrt(smallest), *RADIUS_M))
