"""Safe motions of a robot that stands on its feet: the base moves, inverse kinematics keeps the feet where they are.

    shift   the base from side to side and forth and back           squat   up and down
    turn    the base turns about all axes, and joints of no leg      swing   one leg after the other in the air, over the others

A foot on the ground does not move, the point of zero moment stays inside the polygon of the feet on the ground, and forces inside their
friction cone: a motion that would leave them is made smaller. Each begins and ends in one pose at rest: they may follow one another.
What they show is counted as base parameters of the rows that unknown contact forces leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dynid.arrays import Array
from dynid.errors import InputError
from dynid.model.frames import frame_poses, leg_joints
from dynid.model.inertia import mass_com_inertia
from dynid.model.poses import rotation_from_quaternion
from dynid.model.robot import Robot
from dynid.regression.base import reduce_to_base
from dynid.regression.channels import triangle_of
from dynid.regression.factor import factorise
from dynid.regression.floating_rows import Contacts, FloatingRows, Foot, base_states
from dynid.signals.base_motion import BaseMotion
from dynid.signals.samples import Samples

MOTIONS = ("shift", "squat", "turn", "swing")
RATE_HZ = 100.0
BENT = 0.88
"""Height at which the robot stands, of that with the joints of its description at zero."""
SIZES = (1.0, 0.7, 0.5, 0.35, 0.25, 0.15, 0.1)
"""Sizes that a motion is tried with, largest first."""
SLOPE = 0.35
"""Largest horizontal over vertical force, half of what rubber on a floor holds."""
INSIDE = 0.15
"""Least distance of the point of zero moment from the edge of the polygon, of the largest there is."""
SOLE = (0.12, 0.07)
"""Half length and width of a flat foot, of the height of the robot's base."""
STARTS, ROUNDS, DAMPING, REACHED = 60, 60, 1e-4, 1e-4
"""Starts and rounds of the inverse kinematics, its damping, and the distance in m at which a foot is in its place."""


@dataclass(frozen=True, eq=False)
class StandingMotion:
    """A motion on feet, and what it keeps and shows."""

    name: str
    samples: Samples
    """Of the joints, with ``contact`` of the feet."""
    size: float
    """Of the motion that was asked for."""
    inside: float
    """Least distance of the point of zero moment from the edge of the polygon of feet, m."""
    slope: float
    """Largest horizontal over vertical force."""
    known: int
    """Base parameters that its rows determine."""
    information: float
    """Mean of the logarithm (base 10) of the squares of their rows."""


@dataclass(frozen=True, eq=False)
class Stance:
    """A robot that stands: its feet, its joints, and how high its base is."""

    robot: Robot
    feet: tuple[Foot, ...]
    joints: Array
    places: Array
    """Of the feet under a base at the origin, ``(feet, 3)``."""
    turns: Array

    @property
    def height(self) -> float:
        """From the feet to the base, m."""
        return float(-self.places[:, 2].mean())

    @classmethod
    def of(cls, robot: Robot, feet: Sequence[Foot], seed: int = 0) -> Stance:
        """With bent legs: feet below where the description has them, the base lower; the least bent of some solutions."""
        rng, zero = np.random.default_rng(seed), np.zeros((1, robot.n_dof - 6))
        start = cls(robot, tuple(feet), zero[0], *(made[0] for made in _feet(robot, feet, zero)))
        if not start.height > 0.0:
            raise InputError(
                f"feet of robot '{robot.name}' are not below its base with joints at zero, expected a description that stands upright then"
            )
        places = np.array(start.places)
        places[:, 2] *= BENT
        goals, turns = np.tile(places, (STARTS, 1, 1)), np.tile(start.turns, (STARTS, 1, 1, 1))
        legs = sorted({j for foot in feet for j in leg_joints(robot, foot.frame.body)})
        low, high = robot.position_limits.T
        room = np.minimum(0.45, 0.4 * (high - low))  # for joints of no leg to move about where they are
        guesses = np.tile(np.clip(0.0, low + room, high - room), (STARTS, 1))
        guesses[:, legs] = rng.normal(0.0, 0.4, (STARTS, len(legs)))
        tried = _joints_for(robot, start.feet, goals, turns, guesses)
        reached = np.abs(_feet(robot, feet, tried)[0] - places).max(axis=(1, 2)) < REACHED
        good = tried[reached & (tried >= low).all(axis=1) & (tried <= high).all(axis=1)]
        if not len(good):
            raise InputError(
                f"robot '{robot.name}' cannot bend its legs with feet {', '.join(foot.frame.name for foot in feet)} on the ground"
            )
        return cls(robot, start.feet, min(good, key=lambda q: float(np.linalg.norm(q))), places, start.turns)


def _whole(q: Array) -> Array:
    """Positions with a base at the origin."""
    return np.hstack([np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (len(q), 1)), q])


def _feet(robot: Robot, feet: Sequence[Foot], q: Array) -> tuple[Array, Array]:
    """Places ``(n, feet, 3)`` and rotations of the feet under a base at the origin."""
    poses = [frame_poses(robot, _whole(q), foot.frame.body, foot.frame.placement) for foot in feet]
    return np.stack([place for _, place in poses], axis=1), np.stack([turn for turn, _ in poses], axis=1)


def _joints_for(robot: Robot, feet: Sequence[Foot], places: Array, turns: Array, start: Array) -> Array:
    """Joints that bring the feet to places, and flat ones to rotations, by damped Newton steps of all samples at once."""
    q, contacts = np.array(start), Contacts(robot, tuple(feet))
    for _ in range(ROUNDS):
        found, turned = _feet(robot, feet, q)
        parts = []
        for k, foot in enumerate(feet):
            parts.append(places[:, k] - found[:, k])
            if foot.flat:
                parts.append(0.5 * np.cross(turned[:, k], turns[:, k], axis=1).sum(axis=2))
        error = np.hstack(parts)
        if np.abs(error).max() < 1e-10:
            break
        J = contacts.jacobians(_whole(q))[:, :, 6:]
        normal = J @ np.swapaxes(J, 1, 2) + DAMPING * np.eye(J.shape[1])
        step = np.einsum("nrd,nr->nd", J, np.linalg.solve(normal, error[:, :, None])[:, :, 0])
        q += np.clip(step, -0.3, 0.3)
    return q


def standing_motion(stance: Stance, name: str, seconds: float, size: float = 1.0) -> tuple[Samples, Array, Array]:
    """Samples of the joints with contacts, and position and quaternion of the base, of one motion."""
    if name not in MOTIONS:
        raise InputError(f"motion '{name}' is not known, expected {', '.join(MOTIONS)}")
    robot, feet, high = stance.robot, stance.feet, stance.height
    time = np.arange(round(seconds * RATE_HZ) + 1) / RATE_HZ
    calm = size * _smooth(np.clip(np.minimum(time, time[-1] - time), 0.0, 1.0))

    def wave(hz: float) -> Array:
        return np.asarray(calm * (np.sin(2.0 * np.pi * hz * time) + 0.4 * np.sin(2.0 * np.pi * 2.3 * hz * time)))

    n, legs = len(time), {j for foot in feet for j in leg_joints(robot, foot.frame.body)}
    moved, tilt, raised, contact = np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, len(feet), 3)), np.ones((n, len(feet)))
    q = np.tile(stance.joints, (n, 1))
    if name == "shift":
        moved[:, :2] = 0.12 * high * np.column_stack([wave(0.31), wave(0.43)])
    elif name == "squat":
        moved[:, 2] = -0.12 * high * calm + 0.1 * high * wave(0.53)
    elif name == "turn":
        tilt = 0.15 * np.column_stack([wave(0.37), wave(0.29), wave(0.47)])
        for j in set(range(robot.n_dof - 6)) - legs:
            q[:, j] += 0.3 * wave(0.23 + 0.05 * (j % 7))
    else:
        moved, raised, contact = _swings(stance, time, size)
    turn = np.column_stack([np.sin(0.5 * tilt), np.ones(len(time))])
    turn /= np.linalg.norm(turn, axis=1)[:, None]
    R = rotation_from_quaternion(turn[:, [3, 0, 1, 2]])
    places = np.einsum("nji,nfj->nfi", R, stance.places + raised - moved[:, None])
    q = _joints_for(robot, feet, places, np.einsum("nji,fjk->nfik", R, stance.turns), q)
    v = np.gradient(q, time, axis=0)
    return Samples(time, q, v, np.gradient(v, time, axis=0), contact=contact), moved, turn


def _swings(stance: Stance, time: Array, size: float) -> tuple[Array, Array, Array]:
    """How the base leans over the other feet, how one foot after the other leaves its place, and which are on the ground."""
    n, count, high = len(time), len(stance.feet), stance.height
    moved, raised, contact = np.zeros((n, 3)), np.zeros((n, count, 3)), np.ones((n, count))
    centre, span = _centre_of_mass(stance.robot, _whole(stance.joints[None]))[0, :2], time[-1] / count
    for k in range(count):
        phase = np.clip(time / span - k, 0.0, 1.0)
        lean, air = np.clip(4.0 * np.minimum(phase, 1.0 - phase), 0.0, 1.0), np.clip(2.0 * phase - 0.5, 0.0, 1.0)
        over = np.delete(stance.places[:, :2], k, axis=0).mean(axis=0) - centre
        moved[:, :2] += _smooth(lean)[:, None] * over
        lift = size * high * np.sin(np.pi * air) ** 2
        raised[:, k] = lift[:, None] * np.column_stack(
            [0.15 * np.sin(4.0 * np.pi * air), 0.08 * np.sin(6.0 * np.pi * air), np.full(n, 0.15)]
        )
        contact[(air > 0.0) & (air < 1.0), k] = 0.0
    return moved, raised, contact


def _smooth(x: Array) -> Array:
    """From 0 to 1 with rest at both ends."""
    return np.asarray(x**3 * (10.0 - 15.0 * x + 6.0 * x**2))


def _centre_of_mass(robot: Robot, q: Array) -> Array:
    """Of the whole robot, in the world of ``q``."""
    total, masses = np.zeros((len(q), 3)), 0.0
    for k, body in enumerate(robot.parameters.inertials):
        mass, com, _ = mass_com_inertia(body)
        placement = np.eye(4)
        placement[:3, 3] = com
        total += mass * frame_poses(robot, q, k, placement)[1]
        masses += float(mass)
    return np.asarray(total / masses)


def support(stance: Stance, samples: Samples, moved: Array, turn: Array) -> tuple[float, float, float]:
    """Least distance of the point of zero moment from the edge of the feet on the ground, the largest there is, and the steepest force."""
    from scipy.spatial import ConvexHull

    com = _centre_of_mass(stance.robot, np.hstack([moved, turn, samples.position]))
    a = np.gradient(np.gradient(com, samples.time, axis=0), samples.time, axis=0)
    up = float(np.linalg.norm(stance.robot.gravity)) + a[:, 2]
    zmp = com[:, :2] - a[:, :2] * ((com[:, 2] + stance.height) / up)[:, None]
    corners = np.array([[x, y] for x in (-1.0, 1.0) for y in (-1.0, 1.0)]) * SOLE * stance.height
    least, most = np.inf, 0.0
    assert samples.contact is not None
    for state in np.unique(samples.contact, axis=0):
        rows = (samples.contact == state).all(axis=1)
        own = [stance.places[k, :2] + (corners if stance.feet[k].flat else np.zeros((1, 2))) for k in np.flatnonzero(state)]
        points = np.vstack([*own, np.zeros((0, 2))])
        if len(points) < 3:
            return -np.inf, 0.0, 0.0
        edges = ConvexHull(points).equations
        least = min(least, float(-(zmp[rows] @ edges[:, :2].T + edges[:, 2]).max()))
        most = max(most, float(-(points.mean(axis=0) @ edges[:, :2].T + edges[:, 2]).max()))
    return least, most, float((np.linalg.norm(a[:, :2], axis=1) / up).max())


def within_support(stance: Stance, name: str, seconds: float) -> StandingMotion | None:
    """The largest of a motion that keeps joints, feet and support; None where there is none."""
    (low, high), fastest = stance.robot.position_limits.T, stance.robot.limits("dq_max")
    for size in SIZES:
        samples, moved, turn = standing_motion(stance, name, seconds, size)
        inside, widest, slope = support(stance, samples, moved, turn)
        R = rotation_from_quaternion(turn[:, [3, 0, 1, 2]])
        found = np.einsum("nij,nfj->nfi", R, _feet(stance.robot, stance.feet, samples.position)[0]) + moved[:, None]
        assert samples.contact is not None
        still = np.abs((found - stance.places) * samples.contact[:, :, None]).max() < REACHED
        limits = (
            (samples.position >= low).all()
            and (samples.position <= high).all()
            and (np.abs(samples.velocity) <= fastest).all()
        )
        if still and limits and inside >= INSIDE * widest and slope <= SLOPE:
            known, information = _shown(stance, samples, moved, turn)
            return StandingMotion(name, samples, size, inside, slope, known, information)
    return None


def _shown(stance: Stance, samples: Samples, moved: Array, turn: Array) -> tuple[int, float]:
    """Base parameters that the rows of a motion determine, and the mean logarithm of the squares of their triangle."""
    robot, time = stance.robot, samples.time
    R = rotation_from_quaternion(turn[:, [3, 0, 1, 2]])
    w = 2.0 * np.gradient(turn[:, :3], time, axis=0)
    proper = np.einsum("nji,nj->ni", R, np.gradient(np.gradient(moved, time, axis=0), time, axis=0) - robot.gravity)
    base = BaseMotion(w, proper, np.gradient(w, time, axis=0), quaternion=turn)
    q, v, a = base_states(robot, base, samples.position, samples.velocity, samples.acceleration)
    whole = Samples(time, q, v, a, torque=np.ones((len(q), robot.n_dof)), contact=samples.contact)
    reduction = reduce_to_base(robot)
    regression = factorise(FloatingRows(robot, (whole,), stance.feet))
    rows = np.vstack([regression.channel_matrix(k, reduction)[:, :-1] for k in range(len(regression.factors))])
    pivots = np.linalg.svd(triangle_of(rows), compute_uv=False)
    seen = pivots > 1e-4 * pivots[0]
    return int(np.count_nonzero(seen)), float(np.mean(2.0 * np.log10(pivots[seen])))


def design_on_feet(
    robot: Robot, feet: Sequence[Foot], names: Sequence[str] = MOTIONS, seconds: float = 20.0, seed: int = 0
) -> list[StandingMotion]:
    """The motions that a robot can make on its feet, each as large as support, friction and limits of the joints allow."""
    stance = Stance.of(robot, feet, seed)
    found = [one for one in (within_support(stance, name, seconds) for name in names) if one is not None]
    if not found:
        raise InputError(
            f"robot '{robot.name}' makes none of the motions {', '.join(names)} on its feet within limits and support, expected three feet "
            "or flat ones (--flat-feet), and limits of the joints that allow to bend the legs"
        )
    return found


def in_sequence(motions: Sequence[StandingMotion], rate_hz: float) -> Samples:
    """Motions one after the other, at a rate: all begin and end in one pose at rest."""
    from scipy.interpolate import CubicSpline

    q = np.concatenate([one.samples.position for one in motions])
    path = CubicSpline(np.arange(len(q)) / RATE_HZ, q)
    time = np.arange(int((len(q) - 1) / RATE_HZ * rate_hz + 1e-6) + 1) / rate_hz
    return Samples(time, np.asarray(path(time)), np.asarray(path(time, 1)), np.asarray(path(time, 2)))
