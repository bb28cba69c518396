"""A written motion held against limits and surroundings by other means than those that designed it.

Position, velocity and acceleration are finite differences of the written table. Open robots are read from their URDF by Pinocchio's own
parser, torque is Pinocchio's, distances are coal's between the meshes as they are (designs use convex hulls, which contain them).
The loops of closed robots are closed by SciPy, pose after pose, and the distances of their capsules are those of segments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from defusedxml import ElementTree
from numpy.typing import NDArray
from scipy.optimize import root

Array = NDArray[np.float64]
STRIDE = 10
"""Every so many rows of the table are looked at for distances."""
STEP = 1e-6
"""Of differences, rad or m."""
NEAR_M = 1e-4
"""Distances of two libraries agree to so much, m."""


@dataclass
class Found:
    """What a check found: how far the worst value is beyond its limit, by name; nothing there where every limit is kept."""

    violations: dict[str, float] = field(default_factory=dict)
    clearance_m: float = np.inf
    """Smallest distance to an obstacle or between links that are to be kept apart."""

    def hold(self, name: str, excess: float, tolerance: float = 0.0) -> None:
        if not excess <= tolerance:
            self.violations[name] = max(float(excess), self.violations.get(name, -np.inf))


@dataclass(frozen=True)
class Stated:
    """What a design says that it keeps."""

    joints: tuple[str, ...]
    acceleration: Array
    fraction: float
    pairs: Mapping[frozenset[str], float]
    """Least distance of pairs of links and obstacles, m."""
    obstacles: Mapping[str, tuple[Array, Array]]
    """Boxes: half edges and 4x4 pose in the base frame."""
    held: Mapping[str, float] = field(default_factory=dict)


def read_table(path: Path) -> tuple[Array, Array]:
    """Time and positions of a written table."""
    table = np.genfromtxt(path, delimiter=",", names=True)
    columns = [name for name in table.dtype.names if name[0] == "q" and name[1:].isdigit()]
    return np.asarray(table["t"]), np.column_stack([table[name] for name in columns])


def differences(time: Array, q: Array) -> tuple[Array, Array, Array]:
    """Position, velocity and acceleration by central differences, without the two ends."""
    step = float(np.diff(time).mean())
    return q[1:-1], (q[2:] - q[:-2]) / (2.0 * step), (q[2:] - 2.0 * q[1:-1] + q[:-2]) / step**2


def hold_kinematics(
    found: Found, motion: tuple[Array, Array, Array], low: Array, high: Array, speed: Array, stated: Stated
) -> None:
    """Ranges, speeds and accelerations; differences of a smooth motion overshoot by less than a thousandth."""
    q, v, a = motion
    with np.errstate(invalid="ignore"):
        found.hold("position", float(np.nanmax(np.maximum(low - q, q - high))), 1e-9)
    found.hold("velocity", float((np.abs(v) - stated.fraction * speed).max()), 1e-3)
    found.hold("acceleration", float((np.abs(a) / stated.acceleration - 1.0).max()), 1e-2)


def check_urdf(path: Path, table: Path, stated: Stated, package_dirs: Sequence[str]) -> Found:
    """A motion of an open robot, or of one whose joints mimic others, from its URDF."""
    import pinocchio as pin

    model = pin.buildModelFromUrdf(str(path))
    geometry = pin.buildGeomFromUrdf(model, str(path), pin.GeometryType.COLLISION, None, list(package_dirs))
    found = Found()
    numbers = [model.getJointId(name) for name in stated.joints]
    motion = differences(*read_table(table))
    limits = _urdf_limits(path)
    low, high, speed, effort = (np.array([limits[name][k] for name in stated.joints]) for k in range(4))
    hold_kinematics(found, motion, low, high, speed, stated)
    mimics = _mimics(path)
    states = [_whole(model, numbers, part, stated.held if k == 0 else {}, mimics, k) for k, part in enumerate(motion)]
    working = model.createData()
    torque = np.array([pin.rnea(model, working, *state) for state in zip(*(part[::STRIDE] for part in states), strict=True)])
    index = [model.idx_vs[number] for number in numbers]
    damping, friction = (np.array([limits[name][k] for name in stated.joints]) for k in (4, 5))
    v = motion[1][::STRIDE]
    whole = torque[:, index] + damping * v + friction * np.sign(v)
    if not set(mimics) - set(stated.held):
        found.hold("torque", float((np.abs(whole) / (stated.fraction * effort)).max()) - 1.0, 1e-2)
    _hold_distances(found, model, geometry, states[0][::STRIDE], stated)
    return found


def _hold_distances(found: Found, model: Any, geometry: Any, positions: Array, stated: Stated) -> None:
    import coal
    import pinocchio as pin

    owners = [model.frames[one.parentFrame].name for one in geometry.geometryObjects]
    for name, (half, pose) in stated.obstacles.items():
        box = pin.GeometryObject(name, 0, pin.SE3(pose), coal.Box(*(2.0 * half)))
        geometry.addGeometryObject(box)
        owners.append(name)
    least, geometry_pairs = [], []
    for i in range(len(owners)):
        for j in range(i):
            pair = frozenset((owners[i], owners[j]))
            if pair in stated.pairs and geometry.geometryObjects[i].parentJoint != geometry.geometryObjects[j].parentJoint:
                least.append(stated.pairs[pair])
                geometry_pairs.append((j, i))
                geometry.addCollisionPair(pin.CollisionPair(j, i))
    # links without shapes in the file are kept apart by capsules, which are not known here
    expected = {pair for pair in stated.pairs if pair <= set(owners)}
    missing = expected - {frozenset((owners[i], owners[j])) for i, j in geometry_pairs}
    found.hold("pairs that were not found", len(missing))
    working, shapes = model.createData(), geometry.createData()
    for position in positions:
        pin.computeDistances(model, working, geometry, shapes, position)
        distance = np.array([result.min_distance for result in shapes.distanceResults])
        found.hold("clearance", float((np.array(least) - distance).max()), NEAR_M)
        found.hold("contact", float(-distance.min()))
        found.clearance_m = min(found.clearance_m, float(distance.min()))


def _whole(
    model: Any, numbers: Sequence[int], part: Array, held: Mapping[str, float], mimics: Mapping[str, Any], order: int
) -> Array:
    """Positions, velocities or accelerations of all joints of Pinocchio's model."""
    values = {model.names[number]: part[:, k] for k, number in enumerate(numbers)}
    values |= {name: np.full(len(part), value) for name, value in held.items()}
    for name, (leader, slope, offset) in mimics.items():
        values[name] = slope * values.get(leader, np.zeros(len(part))) + (offset if order == 0 else 0.0)
    out = np.zeros((len(part), model.nq if order == 0 else model.nv))
    for number in range(1, model.njoints):
        value = values.get(model.names[number], np.zeros(len(part)))
        if order == 0 and model.nqs[number] == 2:
            out[:, model.idx_qs[number]], out[:, model.idx_qs[number] + 1] = np.cos(value), np.sin(value)
        else:
            out[:, (model.idx_qs if order == 0 else model.idx_vs)[number]] = value
    return out


def _urdf_limits(path: Path) -> dict[str, tuple[float, ...]]:
    """Lowest and highest position, speed, effort, damping and friction of each joint."""
    found = {}
    for joint in ElementTree.parse(path).getroot().findall("joint"):
        limit = joint.find("limit")
        if limit is not None:
            free = joint.get("type") == "continuous"
            low, high = (-np.inf, np.inf) if free else (float(limit.get("lower", 0)), float(limit.get("upper", 0)))
            rubs = joint.find("dynamics")
            losses = [0.0, 0.0] if rubs is None else [float(rubs.get(name, 0)) for name in ("damping", "friction")]
            found[joint.get("name", "")] = (
                low,
                high,
                float(limit.get("velocity", 0)),
                float(limit.get("effort", 0)),
                *losses,
            )
    return found


def _mimics(path: Path) -> dict[str, tuple[str, float, float]]:
    found = {}
    for joint in ElementTree.parse(path).getroot().findall("joint"):
        mimic = joint.find("mimic")
        if mimic is not None:
            found[joint.get("name", "")] = (
                str(mimic.get("joint")), float(mimic.get("multiplier", 1)), float(mimic.get("offset", 0))
            )  # fmt: skip
    return found


def check_closed(robot: Any, table: Path, stated: Stated) -> Found:
    """A motion of a robot with loops: joint poses by the product of exponentials, loops by SciPy, capsules by segments."""
    found = Found()
    motion = differences(*read_table(table))
    joints = {joint.name: joint for joint in robot.joints}
    own = [joints[name] for name in stated.joints]
    low, high, speed = (np.array([getattr(joint, name) for joint in own]) for name in ("q_min", "q_max", "dq_max"))
    hold_kinematics(found, motion, low, high, speed, stated)
    names = [joint.name for joint in robot.joints]
    actuated = [names.index(name) for name in stated.joints]
    passive = [k for k in range(len(names)) if k not in actuated]
    tree = np.array(robot.loops.start, dtype=np.float64)
    for row in motion[0][::STRIDE]:
        tree[actuated] = row
        solved = root(lambda x: _loop_error(robot, tree, passive, x), tree[passive], method="lm", options={"xtol": 1e-13})
        found.hold("loop open", float(np.abs(_loop_error(robot, tree, passive, solved.x)).max()), 1e-8)
        tree[passive] = solved.x
        for k in passive:
            joint = robot.joints[k]
            found.hold("passive range", max(joint.q_min - tree[k], tree[k] - joint.q_max), 1e-6)
        _hold_capsules(found, robot, tree, stated)
    return found


def _poses(robot: Any, tree: Array) -> list[Array]:
    from scipy.linalg import expm

    poses: list[Array] = []
    for joint, value in zip(robot.joints, tree, strict=True):
        x, y, z, rx, ry, rz = joint.screw
        twist = np.array([[0.0, -rz, ry, x], [rz, 0.0, -rx, y], [-ry, rx, 0.0, z], [0.0] * 4])
        above = np.eye(4) if joint.parent < 0 else poses[joint.parent]
        poses.append(above @ joint.placement @ expm(twist * value))
    return poses


def _loop_error(robot: Any, tree: Array, passive: Sequence[int], x: Array) -> Array:
    q = tree.copy()
    q[list(passive)] = x
    poses = _poses(robot, q)
    errors: list[float] = []
    for loop in robot.loops.framed:
        first, second = (
            (np.eye(4) if side.body < 0 else poses[side.body]) @ side.placement for side in (loop.first, loop.second)
        )
        seen = np.linalg.inv(first) @ second
        turn = 0.5 * np.array([seen[2, 1] - seen[1, 2], seen[0, 2] - seen[2, 0], seen[1, 0] - seen[0, 1]])
        parts = dict(zip(("x", "y", "z", "rx", "ry", "rz"), (*seen[:3, 3], *turn), strict=True))
        errors += [parts[name] for name in loop.closed]
    for tie in robot.loops.ties:
        errors.append(q[tie.follower] - tie.position(float(q[tie.leader])))
    return np.array(errors)


def energy_rows(robot: Any, q: Array, v: Array) -> tuple[Array, float]:
    """Rows of the energy model between successive points of a robot with loops and no effects, and the widest gap of a loop.

    Passive joints by SciPy, their speeds by the implicit function theorem, speeds of bodies by differences of their poses.
    """
    names = [joint.name for joint in robot.joints]
    actuated = [names.index(name) for name in robot.joint_names]
    passive = [k for k in range(len(names)) if k not in actuated]
    tree, gap, energies = np.array(robot.loops.start, dtype=np.float64), 0.0, []

    def error(x: Array) -> Array:
        return _loop_error(robot, x, passive, x[passive])

    for position, speed in zip(q, v, strict=True):
        tree[actuated] = position
        solved = root(
            lambda x: _loop_error(robot, tree, passive, x),
            tree[passive],
            method="lm",
            options={"xtol": 1e-15, "ftol": 1e-15},
        )
        tree[passive] = solved.x
        gap = max(gap, float(np.abs(error(tree)).max()))
        J = np.column_stack([(error(tree + d) - error(tree - d)) / (2.0 * STEP) for d in STEP * np.eye(len(tree))])
        rate = np.zeros(len(tree))
        rate[actuated] = speed
        rate[passive] = -np.linalg.lstsq(J[:, passive], J[:, actuated] @ speed, rcond=None)[0]
        energies.append(_energies(robot, tree, rate))
    return np.diff(energies, axis=0), gap


def _energies(robot: Any, tree: Array, rate: Array) -> Array:
    """Energy of every body per unit of its mass, first moments and inertia about its frame."""
    row: list[float] = []
    states = (tree, tree + STEP * rate, tree - STEP * rate)
    for pose, after, before in zip(*(_poses(robot, state) for state in states), strict=True):
        seen = pose[:3, :3].T @ ((after - before) / (2.0 * STEP))[:3]
        v, w = seen[:, 3], 0.5 * np.array([seen[2, 1] - seen[1, 2], seen[0, 2] - seen[2, 0], seen[1, 0] - seen[0, 1]])
        row += [0.5 * v @ v - robot.gravity @ pose[:3, 3], *(np.cross(v, w) - pose[:3, :3].T @ robot.gravity)]
        row += [0.5 * w[0] ** 2, w[0] * w[1], 0.5 * w[1] ** 2, w[0] * w[2], w[1] * w[2], 0.5 * w[2] ** 2]
    return np.array(row)


def _hold_capsules(found: Found, robot: Any, tree: Array, stated: Stated) -> None:
    """Capsules by pairs of segments, in the frames of Pinocchio's joints, which are where the design states them."""
    import pinocchio as pin

    shapes = stated.held["shapes"]  # type: ignore[index]
    model = shapes.model
    working = model.createData()
    turns = [[np.cos(x), np.sin(x)] if model.nqs[k + 1] == 2 else [x] for k, x in enumerate(tree)]
    pin.forwardKinematics(model, working, np.concatenate(turns))
    ends, radii = [], []
    for one in shapes.geometry.geometryObjects:
        place = working.oMi[one.parentJoint] * one.placement
        capsule = type(one.geometry).__name__ == "Capsule"
        half = one.geometry.halfLength if capsule else 0.0
        ends.append([place.act(np.array([0.0, 0.0, sign * half])) for sign in (-1.0, 1.0)] if capsule else None)
        radii.append(one.geometry.radius if capsule else 0.0)
    for i, j in shapes.pairs:
        pair = frozenset((shapes.owners[i], shapes.owners[j]))
        if ends[i] is None or ends[j] is None:
            (box,) = [k for k in (i, j) if ends[k] is None]
            other = j if box == i else i
            half, pose = stated.obstacles[shapes.owners[box]]
            distance = segment_box(ends[other][0], ends[other][1], half, pose) - radii[other]
        else:
            distance = segment_distance(*ends[i], *ends[j]) - radii[i] - radii[j]
        found.hold("clearance", stated.pairs[pair] - distance, 1e-3)
        found.hold("contact", -distance)
        found.clearance_m = min(found.clearance_m, distance)


def segment_distance(a: Array, b: Array, c: Array, d: Array) -> float:
    """Distance of two segments: at the foot of the common normal, or with one end of them."""
    u, v, w = b - a, d - c, a - c
    system = np.array([[u @ u, -u @ v], [-u @ v, v @ v]])
    candidates = []
    if abs(np.linalg.det(system)) > 1e-12:
        s, t = np.linalg.solve(system, [-u @ w, v @ w])
        if 0.0 <= s <= 1.0 and 0.0 <= t <= 1.0:
            candidates.append(float(np.linalg.norm(w + s * u - t * v)))
    for point, start, way in ((a, c, v), (b, c, v), (c, a, u), (d, a, u)):
        length = way @ way
        share = np.clip((point - start) @ way / length, 0.0, 1.0) if length > 0.0 else 0.0
        candidates.append(float(np.linalg.norm(point - start - share * way)))
    return min(candidates)


def segment_box(a: Array, b: Array, half: Array, pose: Array) -> float:
    """Distance of a segment from a box, at 200 points of it."""
    points = a + np.linspace(0.0, 1.0, 200)[:, None] * (b - a)
    out = np.abs((points - pose[:3, 3]) @ pose[:3, :3]) - half
    return float((np.linalg.norm(np.maximum(out, 0.0), axis=1) + np.minimum(out.max(axis=1), 0.0)).min())
