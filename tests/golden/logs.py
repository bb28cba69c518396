"""Robots and logs for the golden results, made by formulas of their own: nothing here calls the package.

Numbers are written with fixed decimals, so that the files are the same to the last byte whatever rounds the last digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
GRAVITY = np.array([0.0, 0.0, -9.81])
DRIVE_GAINS = np.array([9.0, 12.0, 8.0])
"""Nm/A of the motors of the logs with current."""
KP, KD, DELAY_S = np.array([300.0, 150.0]), np.array([20.0, 8.0]), 0.012
"""Position control of the logs without torque."""


@dataclass(frozen=True)
class Body:
    """A link with its joint: place and axis in the parent, mass, centre of mass, inertia about it, friction and rotor inertia."""

    joint: str
    origin: tuple[float, float, float]
    axis: tuple[float, float, float]
    mass: float
    com: tuple[float, float, float]
    inertia: tuple[float, float, float]
    viscous: float
    coulomb: float
    offset: float
    armature: float


ARM = (
    Body("base_yaw", (0.0, 0.0, 0.3), (0.0, 0.0, 1.0), 6.0, (0.01, 0.02, 0.05), (0.05, 0.06, 0.04), 3.0, 4.0, 0.3, 0.4),
    Body("shoulder", (0.05, 0.0, 0.1), (0.0, 1.0, 0.0), 4.0, (0.02, -0.01, 0.2), (0.06, 0.05, 0.02), 2.5, 3.5, -0.4, 0.3),
    Body("elbow", (0.0, 0.0, 0.4), (0.0, 1.0, 0.0), 2.0, (0.01, 0.015, 0.15), (0.015, 0.02, 0.006), 1.2, 1.8, 0.2, 0.15),
)
LOAD_KG, LOAD_COM, LOAD_INERTIA = 2.5, np.array([0.03, -0.02, 0.32]), np.diag([0.012, 0.014, 0.008])
TOOL_KG, TOOL_COM, TOOL_INERTIA = 1.85, np.array([0.033, 0.002, 0.111]), np.diag([0.0095, 0.0105, 0.0025])
IMPOSSIBLE_BASE = {
    "Izz1": 0.12, "Ixx2": 0.52, "Ixy2": 0.0, "Ixz2": -0.016, "Iyy2": 0.53, "Iyz2": -0.004, "mx2": 0.08, "mz2": 1.6,
    "Ixx3": 0.05, "Ixy3": 0.0, "Ixz3": -0.003, "Iyy3": 0.03, "Iyz3": -0.004, "mx3": 0.02, "mz3": 0.3,
}  # fmt: skip
"""Rigid base values of the arm, of which those of the last link belong to no body: ``Iyy3 < Ixx3 - Izz3``."""
SENSOR_M = np.array([0.0, 0.0, 0.3])
"""The force/torque sensor in the last link."""


@dataclass(frozen=True)
class Motion:
    """Joint positions with two derivatives over time."""

    t: Array
    q: Array
    v: Array
    a: Array


def fourier(n_joints: int, seconds: float, rate_hz: float, seed: int, size: float = 0.5) -> Motion:
    """Sums of four sines per joint, the lowest with the period of the log."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * rate_hz)) / rate_hz
    w = 2.0 * np.pi / seconds * np.arange(1, 5)
    sine, cosine = (size * rng.uniform(-1.0, 1.0, (4, n_joints)) for _ in range(2))
    s, c = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
    return Motion(t, s @ sine + c @ cosine, (c * w) @ sine - (s * w) @ cosine, -(s * w**2) @ sine - (c * w**2) @ cosine)


@dataclass(frozen=True)
class _Pose:
    """A body in the world: axes, place, joint axis, angular velocity and acceleration, proper acceleration."""

    R: Array
    p: Array
    z: Array
    w: Array
    al: Array
    acc: Array


def turn(axis: Sequence[float], angle: Array) -> Array:
    """Rodrigues' rotation about a unit axis, one for each angle."""
    x, y, z = axis
    K = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle)[:, None, None] * K + (1.0 - np.cos(angle))[:, None, None] * (K @ K)


def apply(R: Array, x: Array) -> Array:
    return np.einsum("nij,...j->ni", R, x) if x.ndim == 1 else np.einsum("nij,nj->ni", R, x)


def poses(arm: Sequence[Body], q: Array, v: Array, a: Array, gravity: Array) -> list[_Pose]:
    """Motion of every link, from the base outward."""
    n = len(q)
    still = np.zeros((n, 3))
    at = _Pose(np.broadcast_to(np.eye(3), (n, 3, 3)), still, still, still, still, still - gravity)
    found = []
    for j, body in enumerate(arm):
        d, z = apply(at.R, np.array(body.origin)), apply(at.R, np.array(body.axis))
        acc = at.acc + np.cross(at.al, d) + np.cross(at.w, np.cross(at.w, d))
        spin = z * v[:, j, None]
        al = at.al + z * a[:, j, None] + np.cross(at.w, spin)
        at = _Pose(at.R @ turn(body.axis, q[:, j]), at.p + d, z, at.w + spin, al, acc)
        found.append(at)
    return found


def wrench(at: _Pose, mass: float, com: Array, inertia: Array) -> tuple[Array, Array, Array]:
    """Force and moment about its centre of mass that move a body, and where that is from the link's origin, in the world."""
    c = apply(at.R, com)
    force = mass * (at.acc + np.cross(at.al, c) + np.cross(at.w, np.cross(at.w, c)))
    I = at.R @ inertia @ np.swapaxes(at.R, 1, 2)
    return force, apply(I, at.al) + np.cross(at.w, apply(I, at.w)), c


def torque(
    arm: Sequence[Body], q: Array, v: Array, a: Array, *, gravity: Array = GRAVITY, load: bool = False, rigid: bool = False
) -> Array:
    """Newton and Euler, inward; with friction and rotor inertia unless ``rigid``, perhaps with the load on the last link."""
    links = poses(arm, q, v, a, gravity)
    f, n = np.zeros((len(q), 3)), np.zeros((len(q), 3))
    tau = np.zeros_like(q)
    for j in reversed(range(len(arm))):
        body, at = arm[j], links[j]
        if j + 1 < len(arm):
            n = n + np.cross(links[j + 1].p - at.p, f)
        held = [(body.mass, np.array(body.com), np.diag(body.inertia))]
        if load and j == len(arm) - 1:
            held.append((LOAD_KG, LOAD_COM, LOAD_INERTIA))
        for mass, com, inertia in held:
            force, moment, c = wrench(at, mass, com, inertia)
            f, n = f + force, n + moment + np.cross(c, force)
        tau[:, j] = np.sum(at.z * n, axis=1)
        if not rigid:
            dry = body.viscous * v[:, j] + body.coulomb * np.sign(v[:, j]) + body.offset
            tau[:, j] += dry + body.armature * a[:, j]
    return tau


def mass_matrix(arm: Sequence[Body], q: Array) -> Array:
    """Columns by unit accelerations without gravity."""
    still = np.zeros_like(q)
    columns = [
        torque(arm, q, still, np.broadcast_to(unit, q.shape), gravity=np.zeros(3), rigid=True) for unit in np.eye(len(arm))
    ]
    return np.stack(columns, axis=2)


def urdf(arm: Sequence[Body], *, broken: bool = False) -> str:
    """The description; ``broken`` gives the last link an inertia that no body has."""
    parts = ['<robot name="golden_arm">', '<link name="ground"/>']
    parent = "ground"
    for k, body in enumerate(arm):
        xx, yy, zz = body.inertia
        if broken and k == len(arm) - 1:
            zz = 2.0 * (xx + yy)
        x, y, z = body.com
        parts += [
            (
                f'<link name="{body.joint}_link"><inertial><origin xyz="{x} {y} {z}"/><mass value="{body.mass}"/>'
                f'<inertia ixx="{xx}" iyy="{yy}" izz="{zz}" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            ),
            (
                f'<joint name="{body.joint}" type="revolute"><parent link="{parent}"/><child link="{body.joint}_link"/>'
                f'<origin xyz="{" ".join(map(str, body.origin))}"/><axis xyz="{" ".join(map(str, body.axis))}"/>'
                '<limit lower="-2.8" upper="2.8" velocity="6" effort="150"/></joint>'
            ),
        ]
        parent = f"{body.joint}_link"
    parts += [
        '<link name="ft_sensor"/>',
        (
            f'<joint name="mount" type="fixed"><parent link="{parent}"/><child link="ft_sensor"/>'
            f'<origin xyz="{" ".join(map(str, SENSOR_M))}"/></joint>'
        ),
        "</robot>",
    ]
    return "\n".join(parts) + "\n"


def write(path: Path, columns: dict[str, Array], decimals: int = 6) -> Path:
    """A CSV file with fixed decimals; minus zero is zero."""
    values = np.round(np.column_stack(list(columns.values())), decimals) + 0.0
    np.savetxt(path, values, delimiter=",", header=",".join(columns), comments="", fmt=f"%.{decimals}f")
    return path


def numbered(name: str, values: Array) -> dict[str, Array]:
    return {f"{name}{k + 1}": values[:, k] for k in range(values.shape[1])}


def torque_log(path: Path, arm: Sequence[Body], seed: int, *, seconds: float = 6.0, load: bool = False) -> Path:
    """Positions, velocities and noisy torque at 200 Hz."""
    motion = fourier(len(arm), seconds, 200.0, seed)
    noise = np.random.default_rng(1000 + seed).normal(size=(3, *motion.q.shape))
    tau = torque(arm, motion.q, motion.v, motion.a, load=load) + 0.05 * noise[0]
    q, dq = motion.q + 1e-5 * noise[1], motion.v + 1e-3 * noise[2]
    return write(path, {"t": motion.t, **numbered("q", q), **numbered("dq", dq), **numbered("tau", tau)})


def current_log(path: Path, arm: Sequence[Body], seed: int, *, load: bool = False) -> Path:
    """Motor current in place of torque."""
    motion = fourier(len(arm), 8.0, 200.0, seed, 0.6)
    tau = torque(arm, motion.q, motion.v, motion.a, load=load)
    current = tau / DRIVE_GAINS + 0.02 * np.random.default_rng(2000 + seed).normal(size=tau.shape)
    columns = {"t": motion.t, **numbered("q", motion.q), **numbered("dq", motion.v), **numbered("i", current)}
    return write(path, columns)


def pose_table(path: Path, arm: Sequence[Body]) -> Path:
    """Inertia matrix (lower triangle) and gravity vector at 40 poses."""
    q = np.round(np.random.default_rng(5).uniform(-2.5, 2.5, (40, len(arm))), 6)
    still = np.zeros_like(q)
    M, g = mass_matrix(arm, q), torque(arm, q, still, still, rigid=True)
    lower = {f"M{i + 1}{j + 1}": M[:, i, j] for i in range(len(arm)) for j in range(i + 1)}
    return write(path, {**numbered("q", q), **lower, **numbered("g", g)}, 9)


def sensor_log(path: Path, arm: Sequence[Body], seed: int, *, own_motion: bool = False) -> Path:
    """Wrench of the tool at the sensor, with joint positions or with the motion that the sensor feels itself."""
    motion = fourier(len(arm), 10.0, 100.0, seed, 0.9)
    last = poses(arm, motion.q, motion.v, motion.a, GRAVITY)[-1]
    d = apply(last.R, SENSOR_M)
    at = replace(last, acc=last.acc + np.cross(last.al, d) + np.cross(last.w, np.cross(last.w, d)))
    force, moment, c = wrench(at, TOOL_KG, TOOL_COM, TOOL_INERTIA)
    inward = np.swapaxes(at.R, 1, 2)
    felt = np.hstack([apply(inward, force), apply(inward, moment + np.cross(c, force))])
    noise = np.random.default_rng(3000 + seed).normal(size=felt.shape) * [0.05, 0.05, 0.05, 0.003, 0.003, 0.003]
    felt = felt + noise + [3.0, -2.0, 1.0, 0.05, -0.04, 0.03]
    columns = {"t": motion.t} | dict(zip(("fx", "fy", "fz", "mx", "my", "mz"), felt.T, strict=True))
    if not own_motion:
        return write(path, columns | numbered("q", motion.q))
    for name, values in (("w", at.w), ("a", at.acc), ("alpha", at.al)):
        columns |= dict(zip((f"{name}x", f"{name}y", f"{name}z"), apply(inward, values).T, strict=True))
    return write(path, columns)


def plane_dynamics(arm: Sequence[Body], q: Array, v: Array) -> tuple[Array, Array]:
    """Mass matrix and the torque of gravity and speed of two links that turn about y, written out."""
    one, two = arm
    length, x1, z1, x2, z2 = two.origin[2], one.com[0], one.com[2], two.com[0], two.com[2]
    I1, I2 = one.inertia[1] + one.mass * (x1**2 + z1**2), two.inertia[1] + two.mass * (x2**2 + z2**2)
    s, c = np.sin(q[1]), np.cos(q[1])
    across, slope = two.mass * length * (z2 * c - x2 * s), -two.mass * length * (x2 * c + z2 * s)
    coupled = I2 + across
    M = np.array([[I1 + two.mass * length**2 + I2 + 2.0 * across, coupled], [coupled, I2]])
    lean = np.sin(q[0]), np.cos(q[0]), np.sin(q[0] + q[1]), np.cos(q[0] + q[1])
    far = two.mass * (x2 * lean[3] + z2 * lean[2])
    near = one.mass * (x1 * lean[1] + z1 * lean[0]) + two.mass * length * lean[0]
    speed = np.array([slope * (2.0 * v[0] * v[1] + v[1] ** 2), -slope * v[0] ** 2])
    return M, speed + GRAVITY[2] * np.array([near + far, far])


def position_log(path: Path, arm: Sequence[Body], seed: int) -> Path:
    """Commands and encoder positions of two joints under delayed position control, simulated in steps of 1 ms."""
    n, step, rate_hz, seconds = len(arm), 1e-3, 200.0, 5.0
    command = fourier(n, seconds, rate_hz, seed, 0.25)
    stamps = np.arange(round(seconds / step)) * step
    late = np.maximum(np.searchsorted(command.t, stamps - DELAY_S + 1e-9, side="right") - 1, 0)
    friction = {
        name: np.array([getattr(body, name) for body in arm]) for name in ("viscous", "coulomb", "offset", "armature")
    }
    q, v, held = command.q[0].copy(), np.zeros(n), []
    for k in late:
        held.append(q.copy())
        push = KP * (command.q[k] - q) - KD * v
        push = push - friction["viscous"] * v - friction["coulomb"] * np.tanh(v / 0.02) - friction["offset"]
        M, rest = plane_dynamics(arm, q, v)
        v = v + step * np.linalg.solve(M + np.diag(friction["armature"]), push - rest)
        q = q + step * v
    every = round(1.0 / (rate_hz * step))
    count = 2.0 * np.pi / 2**14
    seen = np.round(np.array(held)[::every] / count) * count
    joints = [body.joint for body in arm]
    columns = {f"q.{name}": seen[:, j] for j, name in enumerate(joints)}
    columns |= {f"q_cmd.{name}": command.q[:, j] for j, name in enumerate(joints)}
    return write(path, {"t": command.t} | columns)


def motion(path: Path, arm: Sequence[Body], seed: int) -> Path:
    """A motion for a controller: two seconds from rest to rest, since its speed starts and ends at zero."""
    t = np.arange(201) / 100.0
    turns = 2.0 * np.pi / 2.0 * np.arange(1, len(arm) + 1)
    size = np.random.default_rng(seed).uniform(0.2, 0.5, len(arm))
    q, v, a = (1.0 - np.cos(np.outer(t, turns))), np.sin(np.outer(t, turns)) * turns, np.cos(np.outer(t, turns)) * turns**2
    columns = numbered("q", size * q) | numbered("dq", size * v) | numbered("ddq", size * a)
    return write(path, {"t": t} | columns)
