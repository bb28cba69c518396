"""Forward validation: the measured torque drives the identified model, and the model should move as the robot did.

    M(q) a = tau - c(q, v) - g(q) - friction(v),      q(t0), v(t0) as measured

An unstable or merely free arm leaves any trajectory when it is driven by torque alone, so the motion is closed over short
windows, each begun from a measured state. What is left at their ends is the drift per joint, and by forward kinematics the
error of the end effector in position and orientation (Gaz and others 2019, supplement IV). The energy that torque puts in
must be found again in the bodies and in friction,

    E(t1) - E(t0) = int (tau - friction) . v dt,

which needs no acceleration and no integration of motion.

Errors of torque grow twice integrated, so one window alone says little: :func:`error_over_horizons` gives the root mean square of
position over joints and time up to growing horizons, of the identified model beside its description.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from dynid.arrays import Array, IntArray, freeze
from dynid.dynamics.closed_chains import tree_motion, tree_positions
from dynid.dynamics.forward_dynamics import inertia_and_bias, is_simulatable
from dynid.dynamics.friction import COULOMB_WIDTH, PassiveEffects, friction_torque, smooth_friction
from dynid.dynamics.inverse_dynamics import inverse_dynamics, transmitted_load
from dynid.dynamics.joint_effects import rotor_matrix
from dynid.dynamics.regressors import energy_regressor
from dynid.errors import InputError, UnknownNameError
from dynid.model.frames import frame_poses
from dynid.model.robot import Robot
from dynid.signals.samples import Samples
from dynid.validation.free_run import (
    LOAD_ROUNDS,
    MOST_WINDOWS,
    Engine,
    FreeRobot,
    RunawayError,
    Windows,
    check_free_run,
    even_windows,
    windows_for,
)


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

    Returns:
        positions ``(windows, samples, joints)`` beside the measured ones, and what they differ by, in rad, m, N m and J.

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
    torque = _driving(robot, samples, torque)
    windows = even_windows(samples, window_s, most_windows)
    rows, n_steps, step_s = windows.rows, windows.n_steps, windows.step_s
    measured, speed, driven = samples.position[rows], samples.velocity[rows], torque[rows]
    free = FreeRobot.of(robot, engine)
    position, velocity = free.run(measured[:, 0], speed[:, 0], driven, step_s)
    tip, body, placement = _end_effector(robot, frame)
    R, p = frame_poses(robot, tree_positions(robot, measured.reshape(-1, robot.n_joints)), body, placement)
    R_hat, p_hat = frame_poses(robot, tree_positions(robot, position.reshape(-1, robot.n_joints)), body, placement)
    shape = measured.shape[:2]
    distance = np.linalg.norm(p_hat - p, axis=1).reshape(shape)
    # |R - R_hat| = 2 sqrt(2) sin(angle / 2), exact for small angles too
    angle = 2.0 * np.arcsin(np.minimum(np.linalg.norm(R_hat - R, axis=(1, 2)) / np.sqrt(8.0), 1.0)).reshape(shape)
    error, expected = position - measured, _expected(robot, samples)
    residual, throughput = _energy(robot, measured, speed, driven, step_s)
    again = _energy(smooth_friction(robot, COULOMB_WIDTH, at_least=True), position, velocity, driven, step_s)
    return Replay(
        engine=free.engine,
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
        notes=free.notes,
    )


def _relative(residual: Array, throughput: Array) -> float:
    size = float(np.linalg.norm(throughput))
    return float(np.linalg.norm(residual)) / size if size > 0.0 else float(np.linalg.norm(residual))


def _load(robot: Robot, samples: Samples) -> Array | None:
    if samples.load is not None or not any(effect.loaded for effect in robot.effects):
        return samples.load
    return transmitted_load(robot, samples)


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
    friction = friction_torque(robot, LOAD_ROUNDS, partial(inertia_and_bias, robot))
    power = ((tau - friction(q, v, tau)) * v).sum(axis=1).reshape(n_windows, n_rows)
    through = np.abs(tau * v).sum(axis=1).reshape(n_windows, n_rows)
    work, size = (step_s * (0.5 * (x[:, 1:] + x[:, :-1])).sum(axis=1) for x in (power, through))
    return energy[n_windows:] - energy[:n_windows] - work, size


# End effector -------------------------------------------------------------------------------------
def _expected(robot: Robot, samples: Samples) -> Array:
    """Torque of the model on the measured motion."""
    return inverse_dynamics(robot, samples.position, samples.velocity, samples.acceleration, _load(robot, samples))


def _driving(robot: Robot, samples: Samples, torque: Array) -> Array:
    """Torque that drives joints; where a measured one is not used, that of the model."""
    return torque if samples.weight is None else np.where(samples.weight == 0.0, _expected(robot, samples), torque)


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


HORIZONS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
FINEST_STEP_S = 2e-3
"""Samples that follow one another faster are thinned to this: a free run of seconds does not feel it, and takes half the time."""


@dataclass(frozen=True)
class HorizonError:
    """Root mean square of position over joints and time up to a horizon, rad or m; None where a model ran away or cannot run."""

    horizon_s: float
    identified: float | None
    description: float | None
    described: bool = True
    """Whether the description has the masses that a free run needs; a DH table may lack them."""

    def texts(self, scale: float = 1.0) -> tuple[str, str]:
        """Both errors in words."""
        own, other = (
            "runs away" if error is None else f"{scale * error:.3g}" for error in (self.identified, self.description)
        )
        return own, other if self.described else "no masses"

    def as_dict(self) -> dict[str, Any]:
        return {"horizon_s": self.horizon_s, "identified": self.identified, "description": self.description}


def error_over_horizons(
    identified: Robot, description: Robot, samples: Samples, most_windows: int = MOST_WINDOWS
) -> tuple[HorizonError, ...]:
    """Both models from the same measured states, over every horizon that fits into the samples.

    A free run over a horizon goes on where that over the shorter one ended, so every model runs once. A description without
    masses, such as a DH table, has no motion of its own and no errors.
    """
    if len(samples) > 1:  # one sample of several where they follow one another faster than a free run needs
        samples = samples[:: max(1, round(FINEST_STEP_S / float(np.median(np.diff(samples.time)))))]
    steps = np.diff(samples.time)
    fitting = [h for h in HORIZONS_S if h <= 0.5 * samples.duration_s and h >= float(np.median(steps))]
    if not fitting:
        raise InputError(f"samples last {samples.duration_s:.3g} s, too short for a free run of {HORIZONS_S[0]:g} s")
    windows = even_windows(samples, fitting[-1], min(most_windows, windows_for(identified)))
    own = _errors(identified, samples, windows, fitting)
    described = is_simulatable(description)
    other = _errors(description, samples, windows, fitting) if described else [None] * len(fitting)
    return tuple(HorizonError(*one, described) for one in zip(fitting, own, other, strict=True))


def _errors(robot: Robot, samples: Samples, windows: Windows, horizons_s: Sequence[float]) -> list[float | None]:
    """The error over each horizon; None for those at which the robot has run away."""
    check_free_run(robot, samples, horizons_s[-1])
    if samples.torque is None:
        raise InputError("samples hold no torque, so there is nothing to replay")
    free, first, torque = FreeRobot.of(robot), windows.starts, _driving(robot, samples, samples.torque)
    q, v, done, squares = samples.position[first], samples.velocity[first], 0, 0.0
    errors: list[float | None] = []
    for horizon_s in horizons_s:
        end = windows.shortened(horizon_s).n_steps
        if end > done:  # on from where the last horizon ended; one that runs away is not followed further
            rows = first[:, None] + np.arange(done, end + 1)
            try:
                position, velocity = free.run(q, v, torque[rows], windows.step_s)
            except RunawayError:
                break
            squares += float(((position - samples.position[rows])[:, 1:] ** 2).sum())
            q, v, done = position[:, -1], velocity[:, -1], end
        errors.append(float(np.sqrt(squares / (len(first) * done * samples.position.shape[1]))))
    return [*errors, *[None] * (len(horizons_s) - len(errors))]
