"""The experiment of Traversaro and others 2016, section IV, simulated: a body on a force/torque sensor on three shoulder joints.

The true wrench is made here by formulas of its own (yaw, pitch, roll), not by the package's kinematics.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dynid.arrays import Array
from dynid.io.logs.read import write_recording
from dynid.model.inertia import phi_from_mass_com_inertia, spatial_inertia
from dynid.signals.recording import WrenchRecording

RATE_HZ, DURATION_S = 100.0, 60.0
WINDOWS = {10.0: 499, 5.0: 41, 2.0: 21, 1.0: 9, 0.5: 7}
"""Duration of a move, s, and the window of the paper's Savitzky-Golay filter of order 2."""
# Not printed: encoder steps, noise and offsets of the sensor, and the body, 1.85 kg, 12 cm away, as long and thin as the identified ones.
ENCODER_RAD = np.deg2rad(0.01)
NOISE = np.array([0.5, 0.5, 0.5, 0.03, 0.03, 0.03])
OFFSETS = np.array([3.0, -2.0, 1.0, 0.05, -0.04, 0.03])
COM = np.array([0.033, 0.002, 0.111])
INERTIA = np.diag([0.0095, 0.0105, 0.0025])
BODY = phi_from_mass_com_inertia(1.85, COM, INERTIA)
SENSOR_M = np.array([0.0, 0.0, 0.1])
"""The sensor in the last link."""

URDF = """<robot name="shoulder">
  <link name="ground"/>
  {links}
  <link name="ft_sensor"/>
  <joint name="yaw" type="revolute"><parent link="ground"/><child link="link1"/><axis xyz="0 0 1"/>{limit}</joint>
  <joint name="pitch" type="revolute"><parent link="link1"/><child link="link2"/><axis xyz="0 1 0"/>{limit}</joint>
  <joint name="roll" type="revolute"><parent link="link2"/><child link="link3"/><axis xyz="1 0 0"/>{limit}</joint>
  <joint name="mount" type="fixed"><parent link="link3"/><child link="ft_sensor"/><origin xyz="0 0 0.1"/></joint>
</robot>
""".format(
    links="\n  ".join(
        f'<link name="link{k}"><inertial><mass value="1"/>'
        '<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        for k in (1, 2, 3)
    ),
    limit='<limit lower="-3" upper="3" velocity="20" effort="100"/>',
)


@dataclass(frozen=True)
class Path3:
    """Joint positions with two derivatives."""

    q: Array
    v: Array
    a: Array


def moves(move_s: float, rng: np.random.Generator, duration_s: float = DURATION_S) -> Path3:
    """Random point to point moves of least jerk, each of the given duration."""
    t = np.arange(round(duration_s * RATE_HZ)) / RATE_HZ
    goals = rng.uniform(-1.0, 1.0, (int(duration_s / move_s) + 2, 3))
    leg = np.minimum((t / move_s).astype(int), len(goals) - 2)
    s = (t / move_s - leg)[:, None]
    delta = goals[leg + 1] - goals[leg]
    q = goals[leg] + delta * (10 * s**3 - 15 * s**4 + 6 * s**5)
    return Path3(q, delta * 30 * (s**2 - 2 * s**3 + s**4) / move_s, delta * 60 * (s - 3 * s**2 + 2 * s**3) / move_s**2)


def rotation_rates(q: Array) -> Array:
    """``omega = B(q) dq`` in the body, for yaw, pitch and roll."""
    (_, pitch, roll), zero, one = q.T, np.zeros(len(q)), np.ones(len(q))
    rows = [
        [-np.sin(pitch), zero, one],
        [np.sin(roll) * np.cos(pitch), np.cos(roll), zero],
        [np.cos(roll) * np.cos(pitch), -np.sin(roll), zero],
    ]
    return np.moveaxis(np.array(rows), -1, 0)


@dataclass(frozen=True)
class SensorMotion:
    """Angular velocity, proper acceleration and angular acceleration of the sensor, in its own axes."""

    omega: Array
    proper: Array
    alpha: Array


def sensor_motion(path: Path3, gravity: Array | None = None) -> SensorMotion:
    """Motion of the sensor; gravity is that of the base, downward by default."""
    h = 1e-6
    B, dB = rotation_rates(path.q), (rotation_rates(path.q + h * path.v) - rotation_rates(path.q - h * path.v)) / (2.0 * h)
    omega = np.einsum("nij,nj->ni", B, path.v)
    alpha = np.einsum("nij,nj->ni", B, path.a) + np.einsum("nij,nj->ni", dB, path.v)
    down = np.array([0.0, 0.0, -9.81]) if gravity is None else gravity
    fall = np.einsum("nji,j->ni", rotations(path.q), down)
    proper = np.cross(alpha, SENSOR_M) + np.cross(omega, np.cross(omega, SENSOR_M)) - fall
    return SensorMotion(omega, proper, alpha)


def rotations(q: Array) -> Array:
    """``Rz(yaw) Ry(pitch) Rx(roll)``."""

    def turn(angle: Array, i: int, j: int) -> Array:
        R = np.broadcast_to(np.eye(3), (len(angle), 3, 3)).copy()
        R[:, i, i] = R[:, j, j] = np.cos(angle)
        R[:, i, j], R[:, j, i] = -np.sin(angle), np.sin(angle)
        return R

    return turn(q[:, 0], 0, 1) @ turn(q[:, 1], 2, 0) @ turn(q[:, 2], 1, 2)


def true_wrench(motion: SensorMotion, phi: Array = BODY) -> Array:
    """Newton and Euler at the sensor, with the 6x6 inertia: no regressor takes part."""
    M = spatial_inertia(phi)
    still = np.zeros_like(motion.omega)
    momentum = np.hstack([still, motion.omega]) @ M.T
    pushed = np.hstack([motion.proper, motion.alpha]) @ M.T
    return pushed + np.hstack([np.cross(motion.omega, momentum[:, :3]), np.cross(motion.omega, momentum[:, 3:])])


def sensor_log(
    move_s: float,
    seed: int = 0,
    *,
    offsets: Array = OFFSETS,
    noise: Array = NOISE,
    phi: Array = BODY,
    gravity: Array | None = None,
    duration_s: float = DURATION_S,
    drift: Array | None = None,
    encoder_rad: float = ENCODER_RAD,
) -> WrenchRecording:
    """Encoder positions and noisy wrench of moves of one duration."""
    rng = np.random.default_rng(seed)
    path = moves(move_s, rng, duration_s)
    t = np.arange(len(path.q)) / RATE_HZ
    wrench = true_wrench(sensor_motion(path, gravity), phi) + offsets + noise * rng.normal(size=(len(t), 6))
    if drift is not None:
        wrench = wrench + np.outer(t - t.mean(), drift)
    q = np.round(path.q / encoder_rad) * encoder_rad if encoder_rad else path.q
    return WrenchRecording(t, wrench, joint_names=("yaw", "pitch", "roll"), position=q)


def write_shoulder(folder: Path) -> Path:
    """The robot's description."""
    path = folder / "shoulder.urdf"
    path.write_text(URDF)
    return path


def write_log(recording: WrenchRecording, path: Path) -> Path:
    return Path(write_recording(recording, path))
