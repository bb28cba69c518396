"""Distances between the shapes of a robot, by coal through Pinocchio.

Meshes are replaced by their convex hulls, which contain them, so that a signed distance with nearest points exists everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid.adapters.solids import Solid
from dynid.adapters.surfaces import Surface, box, capsule, cone, cylinder, ellipsoid
from dynid.arrays import Array, IntArray
from dynid.errors import InputError


@dataclass(frozen=True)
class Shape:
    """One convex shape and the body that carries it."""

    owner: str
    """Link or obstacle."""
    joint: int
    """Number of the joint that moves it, from 1; 0 for the ground."""
    lever: float
    """Largest distance of a point of the shape from the frame of its joint, m."""
    obstacle: bool = False
    """Whether it stands in the world and is no part of the robot: no body at all may touch it."""


@dataclass(frozen=True, eq=False)
class NearPair:
    """One pair of shapes at one pose: unit normal from the first to the second, and the nearest points, in the base frame."""

    normal: Array
    points: tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class ShapePairs:
    """Pairs of shapes on a Pinocchio model whose distances are asked for."""

    model: Any
    geometry: Any
    shapes: tuple[Shape, ...]

    @property
    def pairs(self) -> IntArray:
        """The two shapes of every pair, ``(pairs, 2)``."""
        return np.array([(pair.first, pair.second) for pair in self.geometry.collisionPairs], dtype=np.int64).reshape(-1, 2)

    def with_pairs(self, pairs: Sequence[tuple[int, int]]) -> ShapePairs:
        """The same shapes with these pairs."""
        import pinocchio as pin

        chosen = self.geometry.copy()
        chosen.removeAllCollisionPairs()
        for first, second in pairs:
            chosen.addCollisionPair(pin.CollisionPair(first, second))
        return ShapePairs(self.model, chosen, self.shapes)

    def with_box(self, owner: str, size: Array, pose: Array) -> ShapePairs:
        """A box of the given edge lengths added, fixed to the base frame."""
        import coal
        import pinocchio as pin

        more = self.geometry.copy()
        more.addGeometryObject(pin.GeometryObject(owner, 0, pin.SE3(pose), coal.Box(*size.tolist())))
        return ShapePairs(self.model, more, (*self.shapes, Shape(owner, 0, 0.0, obstacle=True)))

    def with_capsules(self, capsules: Sequence[Capsule]) -> ShapePairs:
        """Capsules added to the bodies of the model."""
        import coal
        import pinocchio as pin

        geometry, shapes = self.geometry.copy(), list(self.shapes)
        for one in capsules:
            along = one.end - one.start
            length = float(np.linalg.norm(along))
            turn = np.eye(3) if length == 0.0 else pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), along).matrix()
            pose = pin.SE3(turn, 0.5 * (one.start + one.end))
            geometry.addGeometryObject(
                pin.GeometryObject(f"{one.owner}_{len(shapes)}", one.joint, pose, coal.Capsule(one.radius, length))
            )
            reach = max(float(np.linalg.norm(one.start)), float(np.linalg.norm(one.end))) + one.radius
            shapes.append(Shape(one.owner, one.joint, reach))
        return ShapePairs(self.model, geometry, tuple(shapes))

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

    def nearest(self) -> Callable[[Array], tuple[Array, Callable[[int], NearPair], Callable[[], Array]]]:
        """A function of one pose: all distances, what is known of one pair there, and the joints' Jacobian in the base frame."""
        import pinocchio as pin

        working, shapes = self.model.createData(), self.geometry.createData()

        def at(position: Array) -> tuple[Array, Callable[[int], NearPair], Callable[[], Array]]:
            pin.computeDistances(self.model, working, self.geometry, shapes, position)
            results = shapes.distanceResults

            def pair(number: int) -> NearPair:
                result = results[number]
                points = np.array(result.getNearestPoint1()), np.array(result.getNearestPoint2())
                return NearPair(np.array(result.normal), points)

            def jacobian() -> Array:
                J: Array = pin.computeJointJacobians(self.model, working, position)
                return J

            return np.array([result.min_distance for result in results]), pair, jacobian

        return at

    def mean_height_m(self, positions: Array) -> float:
        """Mean height of the moving shapes over these poses, in the base frame, m."""
        import pinocchio as pin

        working, shapes = self.model.createData(), self.geometry.createData()
        moving = [number for number, shape in enumerate(self.shapes) if shape.joint != 0]
        heights = []
        for position in positions:
            pin.updateGeometryPlacements(self.model, working, self.geometry, shapes, position)
            heights.append(np.mean([shapes.oMg[number].translation[2] for number in moving]))
        return float(np.mean(heights))

    def lowest_fixed_m(self) -> float | None:
        """Lowest point of the boxes around shapes of the base itself, in its frame, m; None where there is none."""
        lowest = None
        for shape, one in zip(self.shapes, self.geometry.geometryObjects, strict=True):
            if shape.joint != 0 or shape.obstacle:
                continue
            one.geometry.computeLocalAABB()
            half = 0.5 * (np.array(one.geometry.aabb_local.max_) - np.array(one.geometry.aabb_local.min_))
            centre = one.placement.act(np.array(one.geometry.aabb_center))
            bottom = float(centre[2] - np.abs(one.placement.rotation[2]) @ half)
            lowest = bottom if lowest is None else min(lowest, bottom)
        return lowest

    def joint_offsets(self) -> Array:
        """Distance of every joint's frame from the one before it, m."""
        return np.array([float(np.linalg.norm(place.translation)) for place in list(self.model.jointPlacements)[1:]])


@dataclass(frozen=True, eq=False)
class Capsule:
    """A capsule between two points of a body's frame."""

    owner: str
    joint: int
    """Number of the joint that moves it, from 1; 0 for the ground."""
    start: Array
    end: Array
    radius: float


def capsule_shapes(model: Any, capsules: Sequence[Capsule]) -> ShapePairs:
    """Capsules on the bodies of ``model``; no pairs yet."""
    import pinocchio as pin

    return ShapePairs(model, pin.GeometryModel(), ()).with_capsules(capsules)


def urdf_shapes(model: Any, path: Path, package_dirs: Sequence[str]) -> ShapePairs:
    """Collision shapes of a URDF file on the bodies of ``model``, which may have fewer joints than the file; no pairs yet."""
    import pinocchio as pin

    try:
        raw = pin.buildModelFromUrdf(str(path))
        described = pin.buildGeomFromUrdf(raw, str(path), pin.GeometryType.COLLISION, package_dirs=list(package_dirs))
    except (ValueError, RuntimeError) as error:
        raise InputError(f"collision shapes of robot file '{path}' cannot be read: {_reason(error)}") from error
    frames = {frame.name: frame for frame in model.frames if frame.type == pin.FrameType.BODY}
    geometry, shapes = pin.GeometryModel(), []
    for shape in described.geometryObjects:
        here = raw.frames[shape.parentFrame]
        if here.name in frames:
            joint, frame_pose = frames[here.name].parentJoint, frames[here.name].placement
        else:  # the outermost link, which is the ground here
            joint, frame_pose = 0, here.placement
        pose = frame_pose * here.placement.inverse() * shape.placement
        convex = _convex(shape.geometry)
        geometry.addGeometryObject(pin.GeometryObject(shape.name, joint, pose, convex))
        convex.computeLocalAABB()
        lever = float(np.linalg.norm(pose.act(np.array(convex.aabb_center))) + convex.aabb_radius)
        shapes.append(Shape(here.name, int(joint), lever))
    return ShapePairs(model, geometry, tuple(shapes))


def solid_shapes(model: Any, solids: Sequence[Solid]) -> ShapePairs:
    """Solids of links on the bodies of ``model``, meshes made convex; no pairs yet."""
    import pinocchio as pin

    frames = {frame.name: frame for frame in model.frames if frame.type == pin.FrameType.BODY}
    geometry, shapes = pin.GeometryModel(), []
    for number, solid in enumerate(solids):
        joint, pose = 0, pin.SE3(solid.pose)
        if solid.link in frames and not solid.obstacle:
            frame = frames[solid.link]
            joint, pose = int(frame.parentJoint), frame.placement * pose
        convex = _convex_solid(solid)
        geometry.addGeometryObject(pin.GeometryObject(f"{solid.link}_{number}", joint, pose, convex))
        convex.computeLocalAABB()
        lever = float(np.linalg.norm(pose.act(np.array(convex.aabb_center))) + convex.aabb_radius)
        shapes.append(Shape(solid.link, joint, lever, solid.obstacle))
    return ShapePairs(model, geometry, tuple(shapes))


def _convex_solid(solid: Solid) -> Any:
    """A solid as one of coal's, the convex hull of a mesh."""
    import coal

    if solid.mesh is not None:
        points = coal.StdVec_Vec3s()
        points.extend(list(solid.mesh.vertices))
        try:
            return coal.ConvexBase.convexHull(points, True, "Qt")
        except (RuntimeError, ValueError) as error:
            raise InputError(f"a mesh of link '{solid.link}' has no convex hull: {_reason(error)}") from error
    if solid.kind == "box":
        return coal.Box(*(2.0 * half for half in solid.sizes))
    if solid.kind == "ellipsoid":
        round_all_over = len(set(solid.sizes)) == 1
        return coal.Sphere(solid.sizes[0]) if round_all_over else coal.Ellipsoid(*solid.sizes)
    radius, half = solid.sizes
    made = {"capsule": coal.Capsule, "cylinder": coal.Cylinder, "cone": coal.Cone}[solid.kind]
    return made(radius, 2.0 * half)


def mesh_surface(path: Path, scale: Array) -> Surface:
    """The triangles of a mesh file."""
    import coal

    try:
        surface = _surface(coal.MeshLoader().load(str(path), scale))
    except (ValueError, RuntimeError) as error:
        raise InputError(f"mesh '{path}' cannot be read: {_reason(error)}") from error
    if surface is None or not len(surface.triangles):
        raise InputError(f"mesh '{path}' has no triangles")
    return surface


def _convex(shape: Any) -> Any:
    """The convex hull of a mesh; other shapes are convex already."""
    if not hasattr(shape, "buildConvexHull"):
        return shape
    shape.buildConvexHull(True, "Qt")
    return shape.convex


def urdf_surfaces(path: Path, package_dirs: Sequence[str]) -> list[tuple[str, Surface]]:
    """Surfaces of a URDF file's links in their frames: collision shapes, or visual ones where there are none of those."""
    import pinocchio as pin

    try:
        raw = pin.buildModelFromUrdf(str(path))
        for kind in (pin.GeometryType.COLLISION, pin.GeometryType.VISUAL):
            described = pin.buildGeomFromUrdf(raw, str(path), kind, package_dirs=list(package_dirs))
            if len(described.geometryObjects):
                break
    except (ValueError, RuntimeError) as error:
        raise InputError(f"shapes of robot file '{path}' cannot be read: {_reason(error)}") from error
    found = []
    for shape in described.geometryObjects:
        frame = raw.frames[shape.parentFrame]
        surface = _surface(shape.geometry)
        if surface is not None:
            pose = frame.placement.inverse() * shape.placement
            found.append((frame.name, surface.moved(pose.rotation, pose.translation)))
    return found


def _reason(error: Exception) -> str:
    """What a reader of meshes says, without the place in its own source."""
    text = str(error).strip()
    told = text.rsplit("message:", 1)[-1].strip()
    return next(iter(told.splitlines()), type(error).__name__)


def _surface(shape: Any) -> Surface | None:
    """The triangles of a shape; None for planes, which have no end."""
    import coal

    if isinstance(shape, coal.BVHModelBase):
        triangles = [[t[0], t[1], t[2]] for t in map(shape.tri_indices, range(shape.num_tris))]
        return Surface(np.array(shape.vertices()), np.array(triangles, dtype=np.int64).reshape(-1, 3))
    if isinstance(shape, coal.Box):
        return box(np.array(shape.halfSide))
    if isinstance(shape, coal.Sphere):
        return ellipsoid(np.full(3, shape.radius))
    if isinstance(shape, coal.Ellipsoid):
        return ellipsoid(np.array(shape.radii))
    for kind, made in ((coal.Cylinder, cylinder), (coal.Capsule, capsule), (coal.Cone, cone)):
        if isinstance(shape, kind):
            return made(shape.radius, shape.halfLength)
    return None
