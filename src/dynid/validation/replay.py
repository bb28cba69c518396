"""Forward validation: the measured torque drives the identified model, and the model should move as the robot did.

    M(q) a = tau - c(q, v) - g(q) - friction(v),      q(t0), v(t0) as measured

An unstable or merely free arm leaves any trajectory when it is driven by torque alone, so the motion is closed over short
windows, each begun from a measured state. What is left at their ends is the drift per joint, and by forward kinematics the
error of the end effector in position and orientation (Gaz and others 2019, supplement IV). The energy that torque puts in
must be found again in the bodies and in friction,

    E(t1) - E(t0) = int (tau - friction) . v dt,

which needs no acceleration and no integration of motion.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.arrays import Array, IntArray, freeze
from dynid.errors import InputError, UnknownNameError
from dynid.recording.samples import Samples
from dynid.regression.closed_motion import tree_motion, tree_positions
from dynid.regression.energy import energy_regressor
from dynid.regression.passive import PassiveEffects
from dynid.regression.torque import inverse_dynamics
from dynid.robot.friction import without_friction
from dynid.robot.model import Robot
from dynid.robot.rotors import rotor_matrix
from dynid.validation.free_run import Engine, check_free_run, even_windows, free_run, friction_of, smooth_signs

MOST_WINDOWS = 32
"""Windows beyond this many are thinned out evenly: more would hardly change a mean."""
LEAST_WINDOWS, MANY_JOINTS = 4, 20
"""Windows that are always replayed, and joints from which these are fewer."""


@dataclass(frozen=True, eq=False)
class Replay:
    """How far the model strays from the measured motion, window by window."""

    engine: str
    joint_names: tuple[str, ...]
    frame: str
    """Link whose pose is the end effector's."""
    window_s: float
    starts: IntArray
    """Sample at which each window begins."""
    time: Array
    """``(steps + 1)``: seconds since a window's begin."""
    measured: Array
    """``(windows, steps + 1, joints)``."""
    position: Array
    """The same, replayed."""
    position_drift: Array
    """Per joint, root mean square at the ends of the windows, rad or m."""
    position_rmse: Array
    """Per joint, over all of the windows."""
    torque_error: Array
    """Per joint, mean absolute difference of measured torque and inverse dynamics of the measured motion, N m or N."""
    end_effector_position: Array
    """``(windows, steps + 1)``: distance of replayed and measured end effector, m."""
    end_effector_orientation: Array
    """``(windows, steps + 1)``: angle between them, rad."""
    energy_residual: Array
    """Per window: change of energy less work, of the measured motion, J."""
    energy_throughput: Array
    """Per window: integral of the power's size, J."""
    replayed_energy_error: float
    """Relative energy error of the replayed motion: that of the integration alone."""
    notes: tuple[str, ...] = ()

    @property
    def n_windows(self) -> int:
        return len(self.starts)

    @property
    def energy_error(self) -> float:
        """Relative: energy that the model cannot account for, against the energy that went through the joints."""
        return _relative(self.energy_residual, self.energy_throughput)

    def summary(self) -> dict[str, Any]:
        """The numbers that are quoted, by name."""
        return {
            "engine": self.engine,
            "window_s": self.window_s,
            "n_windows": self.n_windows,
            "frame": self.frame,
            "position_drift": self.position_drift.tolist(),
            "position_rmse": self.position_rmse.tolist(),
            "torque_error": self.torque_error.tolist(),
            "end_effector_position_mean": float(self.end_effector_position.mean()),
            "end_effector_position_max": float(self.end_effector_position.max()),
            "end_effector_orientation_mean": float(self.end_effector_orientation.mean()),
            "end_effector_orientation_max": float(self.end_effector_orientation.max()),
            "energy_error": self.energy_error,
            "notes": list(self.notes),
        }


def replay(
    robot: Robot,
    samples: Samples,
    *,
    window_s: float = 0.1,
    engine: Engine = "auto",
    frame: str | None = None,
    raw: bool = False,
    most_windows: int = MOST_WINDOWS,
) -> Replay:
    """Drive the robot, with its present parameters and friction, by measured torque from measured states.

    Args:
        robot: with the identified parameters.
        samples: measured motion and torque, evenly sampled.
        window_s: length of free motion before it is set back to the measured state, s.
        engine: ``mujoco``, where friction is viscous and Coulomb with an offset; ``own`` integrates any friction
            (second-order Rosenbrock steps, friction taken implicitly); ``auto`` is MuJoCo where it can represent the robot.
        frame: link whose pose counts as the end effector's; None for the last link of the longest chain.
        raw: drive by the torque as recorded instead of the filtered one.
        most_windows: windows beyond this many are thinned out evenly.

    Examples:
        >>> import dynid
        >>> found = dynid.replay(dynid.demo_robot(), dynid.demo_samples()[:100])
        >>> found.n_windows, bool(found.position_drift.max() < 0.1)
        (9, True)
    """
    check_free_run(robot, samples, window_s, engine)
    torque = samples.raw_torque if raw else samples.torque
    if torque is None:
        raise InputError(f"samples hold no {'raw ' if raw else ''}torque, so there is nothing to replay")
    windows = even_windows(samples, window_s, most_windows)
    rows, n_steps, step_s = windows.rows, windows.n_steps, windows.step_s
    measured, speed, driven = samples.position[rows], samples.velocity[rows], torque[rows]
    run = free_run(robot, samples, windows, torque, engine)
    position, velocity = run.position, run.velocity
    tip, body, placement = _end_effector(robot, frame)
    R, p = _pose(robot, body, placement, tree_positions(robot, measured.reshape(-1, robot.n_joints)))
    R_hat, p_hat = _pose(robot, body, placement, tree_positions(robot, position.reshape(-1, robot.n_joints)))
    shape = measured.shape[:2]
    distance = np.linalg.norm(p_hat - p, axis=1).reshape(shape)
    # |R - R_hat| = 2 sqrt(2) sin(angle / 2), exact for small angles too
    angle = 2.0 * np.arcsin(np.minimum(np.linalg.norm(R_hat - R, axis=(1, 2)) / np.sqrt(8.0), 1.0)).reshape(shape)
    error = position - measured
    expected = inverse_dynamics(robot, samples.position, samples.velocity, samples.acceleration, _load(robot, samples))
    residual, throughput = _energy(robot, measured, speed, driven, step_s)
    again = _energy(smooth_signs(robot), position, velocity, driven, step_s)
    return Replay(
        engine=run.engine,
        joint_names=robot.joint_names,
        frame=tip,
        window_s=n_steps * step_s,
        starts=freeze(windows.starts, np.int64),
        time=freeze(step_s * np.arange(n_steps + 1)),
        measured=freeze(measured),
        position=freeze(position),
        position_drift=freeze(np.sqrt((error[:, -1] ** 2).mean(axis=0))),
        position_rmse=freeze(np.sqrt((error**2).mean(axis=(0, 1)))),
        torque_error=freeze(np.abs(torque - expected).mean(axis=0)),
        end_effector_position=freeze(distance),
        end_effector_orientation=freeze(angle),
        energy_residual=freeze(residual),
        energy_throughput=freeze(throughput),
        replayed_energy_error=_relative(*again),
        notes=run.notes,
    )


def windows_for(robot: Robot) -> int:
    """Windows that a robot is replayed over: of a long chain fewer, since a step costs the square of its joints."""
    return max(LEAST_WINDOWS, int(MOST_WINDOWS * min(1.0, (MANY_JOINTS / robot.n_joints) ** 2)))


def _relative(residual: Array, throughput: Array) -> float:
    size = float(np.linalg.norm(throughput))
    return float(np.linalg.norm(residual)) / size if size > 0.0 else float(np.linalg.norm(residual))


def _load(robot: Robot, samples: Samples) -> Array | None:
    if samples.load is not None or not any(effect.loaded for effect in robot.effects):
        return samples.load
    return inverse_dynamics(without_friction(robot), samples.position, samples.velocity, samples.acceleration)


# Energy -------------------------------------------------------------------------------------------


def _energy(robot: Robot, position: Array, velocity: Array, torque: Array, step_s: float) -> tuple[Array, Array]:
    """Per window: change of energy less work, and the integral of the power's size."""
    n_windows, n_rows, n = position.shape
    q, v, tau = (part.reshape(-1, n) for part in (position, velocity, torque))
    ends = np.concatenate([np.arange(n_windows) * n_rows, np.arange(n_windows) * n_rows + n_rows - 1])
    phi = robot.parameters.values[: robot.parameters.n_inertial]
    energy = energy_regressor(robot, q[ends], v[ends]) @ phi
    energy += 0.5 * np.einsum("ni,ij,nj->n", v[ends], rotor_matrix(robot), v[ends])
    if robot.loops.rubbing:
        passive = PassiveEffects(robot)
        motion = tree_motion(robot, q[ends], v[ends], np.zeros_like(v[ends]))
        energy += 0.5 * motion.velocity[:, passive.joints] ** 2 @ passive.rotors
    power = ((tau - friction_of(robot)(q, v, tau)) * v).sum(axis=1).reshape(n_windows, n_rows)
    through = np.abs(tau * v).sum(axis=1).reshape(n_windows, n_rows)
    work, size = (step_s * (0.5 * (x[:, 1:] + x[:, :-1])).sum(axis=1) for x in (power, through))
    return energy[n_windows:] - energy[:n_windows] - work, size


# End effector -------------------------------------------------------------------------------------


def _end_effector(robot: Robot, frame: str | None) -> tuple[str, int, Array]:
    """Name, body and pose in the body of the link asked for, or of the last one of the longest chain."""
    merged = {link.name: (link.body, np.array(link.placement)) for link in robot.merged if link.body >= 0}
    frames = {link: (body, np.eye(4)) for body, link in enumerate(robot.links)} | merged
    if frame is not None:
        if frame not in frames:
            raise UnknownNameError("frame", frame, frames, f"robot '{robot.name}'")
        return frame, *frames[frame]
    depth = np.zeros(robot.n_bodies, dtype=int)
    for i, joint in enumerate(robot.joints):
        depth[i] = 1 + (depth[joint.parent] if joint.parent >= 0 else 0)
    last = int(np.flatnonzero(depth == depth.max())[-1])
    name = next((link.name for link in reversed(robot.merged) if link.body == last), robot.links[last])
    return name, *frames[name]


def _pose(robot: Robot, body: int, placement: Array, q: Array) -> tuple[Array, Array]:
    """Rotations and positions in the world of a frame fixed to a body, for rows of joint positions."""
    tree = robot.tree
    R = np.broadcast_to(placement[:3, :3], (len(q), 3, 3))
    p = np.broadcast_to(placement[:3, 3], (len(q), 3))
    while body >= 0:
        angle = q[:, body]
        c, s = np.cos(angle), np.sin(angle)
        M, P = tree.rotation[body], tree.translation[body]
        turn = M[0] + c[:, None, None] * M[1] + s[:, None, None] * M[2]
        shift = P[0] + c[:, None] * P[1] + s[:, None] * P[2] + angle[:, None] * P[3]
        R, p = turn @ R, np.einsum("nij,nj->ni", turn, p) + shift
        body = int(tree.parent[body])
    return R, p
