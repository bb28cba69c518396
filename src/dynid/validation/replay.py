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

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from dynid.arrays import Array, IntArray, check_shape, freeze
from dynid.errors import InputError, UnknownNameError
from dynid.recording.samples import Samples
from dynid.regression.closed_dynamics import inertia_and_bias
from dynid.regression.closed_motion import tree_motion, tree_positions
from dynid.regression.energy import energy_regressor
from dynid.regression.passive import PassiveEffects, without_passive_effects
from dynid.regression.torque import inverse_dynamics
from dynid.robot.checks import require_simulatable
from dynid.robot.effects import Armature, Coulomb, Coupled, Effect, Motion, Offset, SmoothCoulomb, Viscous
from dynid.robot.friction import without_friction
from dynid.robot.model import Robot
from dynid.robot.rotors import effect_gains, is_rotor, rotor_matrix

Engine: TypeAlias = Literal["auto", "mujoco", "own"]
ENGINES: tuple[Engine, ...] = ("auto", "mujoco", "own")

LONGEST_STEP_S = 1e-3
MOST_WINDOWS = 64
"""Windows beyond this many are thinned out evenly: more would hardly change a mean."""

COULOMB_WIDTH = 0.01
"""rad/s or m/s over which our own integration smooths a sharp sign."""

FASTEST = 1e4
"""rad/s or m/s beyond which a motion counts as lost."""

LOAD_ROUNDS = 3
"""Friction that depends on the transmitted torque is found by iteration; it is a small part of that torque."""


class RunawayError(InputError):
    """The model leaves every bound when the measured torque drives it."""


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
    _check(robot, samples, window_s, engine)
    torque = samples.raw_torque if raw else samples.torque
    if torque is None:
        raise InputError(f"samples hold no {'raw ' if raw else ''}torque, so there is nothing to replay")
    starts, n_steps, step_s = _windows(samples, window_s, most_windows)
    rows = starts[:, None] + np.arange(n_steps + 1)
    measured, speed, driven = samples.position[rows], samples.velocity[rows], torque[rows]
    chosen, notes = _engine(robot, engine)
    run = _run_mujoco if chosen == "mujoco" else _run_own
    position, velocity = run(robot, measured[:, 0], speed[:, 0], driven, step_s)
    _refuse_runaway(robot, velocity)
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
    again = _energy(_smooth(robot), position, velocity, driven, step_s)
    return Replay(
        engine=chosen,
        joint_names=robot.joint_names,
        frame=tip,
        window_s=n_steps * step_s,
        starts=freeze(starts, np.int64),
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
        notes=notes,
    )


def _check(robot: Robot, samples: Samples, window_s: float, engine: str) -> None:
    if robot.floating:
        raise InputError(f"robot '{robot.name}' floats; replay needs a fixed base")
    if engine not in ENGINES:
        raise UnknownNameError("engine", engine, ENGINES)
    check_shape("position of the samples", samples.position, (None, robot.n_joints))
    if len(samples) < 2:
        raise InputError(f"replay needs at least 2 samples, got {len(samples)}")
    if not window_s > 0.0:
        raise InputError(f"window is {window_s:g} s, expected a positive number")
    require_simulatable(robot)


def _windows(samples: Samples, window_s: float, most: int) -> tuple[IntArray, int, float]:
    """First samples of windows without a gap, their number of steps, and the step."""
    steps = np.diff(samples.time)
    step_s = float(np.median(steps))
    n_steps = max(1, round(window_s / step_s))
    if len(samples) <= n_steps:
        raise InputError(f"samples last {samples.duration_s:.4g} s, shorter than one window of {window_s:g} s")
    even = np.abs(steps - step_s) <= 0.05 * step_s
    gaps = np.concatenate([[0], np.cumsum(~even)])
    starts = np.arange(0, len(samples) - n_steps, n_steps)
    starts = starts[gaps[starts + n_steps] == gaps[starts]]
    if not len(starts):
        raise InputError(f"samples have no window of {window_s:g} s that is evenly sampled at {1.0 / step_s:.4g} Hz")
    if len(starts) > most:
        starts = starts[np.linspace(0, len(starts) - 1, most).astype(int)]
    return starts, n_steps, step_s


def _refuse_runaway(robot: Robot, velocity: Array) -> None:
    fastest = float(np.abs(velocity).max())
    if not fastest < FASTEST:  # NaN is not
        raise RunawayError(_runaway(robot, f"speeds up to {fastest:.3g}"))


def _runaway(robot: Robot, why: str) -> str:
    return (
        f"robot '{robot.name}' runs away when it is driven by the measured torque ({why}); "
        "take a shorter window, or check signs and units of the torque"
    )


def _relative(residual: Array, throughput: Array) -> float:
    size = float(np.linalg.norm(throughput))
    return float(np.linalg.norm(residual)) / size if size > 0.0 else float(np.linalg.norm(residual))


# Friction -----------------------------------------------------------------------------------------


def _smooth(robot: Robot) -> Robot:
    """The robot with friction that a solver can follow: no sharp sign, no dead zone, no memory of a filter."""

    def smooth(effect: Effect) -> Effect:
        changed: Any = effect
        if isinstance(effect, Coupled):
            return replace(effect, effect=smooth(effect.effect))
        if not hasattr(effect, "smooth_width"):
            return effect
        width = np.maximum(np.atleast_1d(changed.smooth_width), COULOMB_WIDTH)
        options: dict[str, Any] = {"smooth_width": tuple(width.tolist()), "dead_zone": 0.0}
        if hasattr(effect, "smooth_time_s"):
            options["smooth_time_s"] = 0.0
        options["smooth_width"] = options["smooth_width"][0] if len(width) == 1 else options["smooth_width"]
        made = replace(changed, **options)
        assert isinstance(made, Effect)
        return made

    return robot.with_effects([smooth(effect) for effect in robot.effects])


def _friction(robot: Robot) -> Callable[[Array, Array, Array], Array]:
    """``friction(q, v, tau)`` over rows, springs with it; where it depends on the transmitted torque, ``tau`` less friction."""
    if robot.loops.rubbing:
        own, passive = _friction(without_passive_effects(robot)), PassiveEffects(robot)
        return lambda q, v, tau: own(q, v, tau) + passive.at(q, v)
    gains = [(effect, gain) for effect, gain in effect_gains(robot) if effect.is_friction]
    springs = [(effect, gain) for effect, gain in effect_gains(robot) if not effect.is_friction and not is_rotor(effect)]
    rounds = LOAD_ROUNDS if any(effect.loaded for effect, _ in gains) else 1

    def friction(q: Array, v: Array, tau: Array) -> Array:
        still, total = np.zeros_like(v), np.zeros_like(v)
        for _ in range(rounds):
            motion = Motion(q, v, still, tau - total)
            total = np.zeros_like(v)
            for effect, gain in gains:
                total = total + effect.signals(motion) @ gain.T
        for effect, gain in springs:
            total = total + effect.signals(Motion(q, v, still, tau)) @ gain.T
        return total

    return friction


def _load(robot: Robot, samples: Samples) -> Array | None:
    if samples.load is not None or not any(effect.loaded for effect in robot.effects):
        return samples.load
    return inverse_dynamics(without_friction(robot), samples.position, samples.velocity, samples.acceleration)


# Engines ------------------------------------------------------------------------------------------


def _engine(robot: Robot, wanted: Engine) -> tuple[str, tuple[str, ...]]:
    """The engine to use, and why not MuJoCo where it could not be."""
    if wanted == "own":
        return "own", ()
    held = (Viscous, Coulomb, SmoothCoulomb, Offset, Armature)
    others = [effect.name for effect in robot.effects if not isinstance(effect, held)]
    reason = f"it has no friction such as {', '.join(others)}" if others else ""
    if robot.loops:  # MuJoCo holds closures softly, ours are exact
        reason = "its loops are closed by projection on the actuated joints"
    if not reason:
        from dynid.adapters.mujoco import mujoco_model

        try:
            mujoco_model(robot, limits=False)
        except InputError as error:
            reason = str(error)
    if reason and wanted == "mujoco":
        raise InputError(f"robot '{robot.name}' cannot be replayed in MuJoCo: {reason}")
    return ("own", (f"replayed without MuJoCo: {reason}",)) if reason else ("mujoco", ())


def _run_mujoco(robot: Robot, q: Array, v: Array, torque: Array, step_s: float) -> tuple[Array, Array]:
    """MuJoCo's Runge-Kutta steps for all windows at once; torque is held at its middle over each step."""
    import mujoco
    from mujoco import rollout

    from dynid.adapters.mujoco import from_mujoco_force, mujoco_model, mujoco_order, to_mujoco_motion
    from dynid.adapters.mujoco_warnings import mujoco_warnings, with_joint_names

    model = mujoco_model(robot, limits=False)
    n_sub = max(1, int(np.ceil(step_s / LONGEST_STEP_S - 1e-9)))
    model.opt.timestep = step_s / n_sub
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    # dry friction as hard as a step resolves: by default MuJoCo lets it build up over 20 ms
    model.dof_solref[:] = 2.0 * model.opt.timestep, 1.0
    model.dof_solimp[:, :2] = 0.99
    values = robot.parameters.as_dict()
    offset = np.array([values.get(f"{Offset.linear[0].symbol}{number}", 0.0) for number in robot.driven_numbers])
    driving = _between(torque - offset, n_sub)
    n_windows, n_steps = torque.shape[0], torque.shape[1] - 1
    flat = driving.reshape(-1, robot.n_joints)
    applied = to_mujoco_motion(robot, flat, flat, flat)[2].reshape(driving.shape)
    qpos, qvel, _ = to_mujoco_motion(robot, q, v, v)
    working = mujoco.MjData(model)
    physics = mujoco.mjtState.mjSTATE_FULLPHYSICS
    initial = np.empty((n_windows, mujoco.mj_stateSize(model, physics)))
    for k in range(n_windows):
        working.qpos[:], working.qvel[:] = qpos[k], qvel[k]
        mujoco.mj_getState(model, working, initial[k], physics)
    with mujoco_warnings() as said:
        state, _ = rollout.rollout(model, working, initial, applied, control_spec=int(mujoco.mjtState.mjSTATE_QFRC_APPLIED))
    if said:  # MuJoCo set the state back, so that what follows is finite and is no motion of the model
        why = with_joint_names(said[0], [robot.joint_names[k] for k in mujoco_order(robot)[1]])
        raise RunawayError(_runaway(robot, f"MuJoCo: {why}"))
    kept = state[:, n_sub - 1 :: n_sub, 1 : 1 + 2 * robot.n_joints].reshape(n_windows * n_steps, -1)
    moved = (
        from_mujoco_force(robot, kept, part).reshape(n_windows, n_steps, -1)
        for part in (kept[:, : robot.n_joints], kept[:, robot.n_joints :])
    )
    position, velocity = (np.concatenate([first[:, None], rest], axis=1) for first, rest in zip((q, v), moved, strict=True))
    return position, velocity


def _between(torque: Array, n_sub: int) -> Array:
    """``(windows, steps * n_sub, joints)``: torque in the middle of every integration step, linear between samples."""
    middle = (np.arange(n_sub) + 0.5) / n_sub
    left, right = torque[:, :-1, None], torque[:, 1:, None]
    parts = left + middle[:, None] * (right - left)
    return np.ascontiguousarray(parts.reshape(len(torque), -1, torque.shape[2]))


def _run_own(robot: Robot, q: Array, v: Array, torque: Array, step_s: float) -> tuple[Array, Array]:
    """Rosenbrock steps of second order (Verwer's ROS2) for all windows at once.

        (1 - g h A) k1 = F(y),   (1 - g h A) k2 = F(y + h k1) - 2 k1,   y += h (3 k1 + k2) / 2

    is of second order for any ``A`` and damps what is stiff in it; ``A`` holds the slope ``D`` of friction,
    ``(1 - g h A)_v = 1 + g h M^-1 D``. Time is sequential, so is the loop over steps.
    """
    moving = _smooth(robot)
    friction = _friction(moving)
    rotors = rotor_matrix(moving)
    n_sub = max(1, int(np.ceil(step_s / LONGEST_STEP_S - 1e-9)))
    h, g = step_s / n_sub, 1.0 - math.sqrt(0.5)
    position, velocity = np.empty((2, *torque.shape))
    position[:, 0], velocity[:, 0] = q, v

    def force(q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
        """``M`` and the torque that is left to accelerate it."""
        if moving.loops:
            M, bias = inertia_and_bias(moving, q, v)
            return M + rotors, tau - bias - friction(q, v, tau)
        # in one call: at rest and without acceleration, with the velocity alone, and with each unit acceleration
        n = q.shape[1]
        speed, unit = np.zeros((n + 2, len(q), n)), np.zeros((n + 2, len(q), n))
        speed[1] = v
        unit[2:] = np.eye(n)[:, None]
        motion = (part.reshape(-1, n) for part in (np.broadcast_to(q, speed.shape), speed, unit))
        torques = inverse_dynamics(moving, *motion, effects=False).reshape(speed.shape)
        M = (torques[2:] - torques[0]).transpose(1, 0, 2) + rotors
        return M, tau - torques[1] - friction(q, v, tau)

    def solved(M: Array, right: Array) -> Array:
        return np.asarray(np.linalg.solve(M, right[..., None])[..., 0], dtype=np.float64)

    def stepped(q: Array, v: Array, k: int) -> tuple[Array, Array]:
        """From one sample to the next."""
        for j in range(n_sub):
            tau0, tau1 = (torque[:, k] + (j + end) / n_sub * (torque[:, k + 1] - torque[:, k]) for end in (0, 1))
            M, left = force(q, v, tau0)
            D = _slope(friction, q, v, tau0)
            stiff = M + g * h * D
            kv1 = solved(stiff, left)
            kq1 = v + g * h * kv1
            q2, v2 = q + h * kq1, v + h * kv1
            M2, left2 = force(q2, v2, tau1)
            kv2 = solved(stiff, np.einsum("nij,nj->ni", M, solved(M2, left2) - 2.0 * kv1))
            kq2 = v2 - 2.0 * kq1 + g * h * kv2
            q, v = q + 0.5 * h * (3.0 * kq1 + kq2), v + 0.5 * h * (3.0 * kv1 + kv2)
        return q, v

    for k in range(torque.shape[1] - 1):
        with np.errstate(over="ignore", invalid="ignore"):  # what runs away within a step is refused after it
            q, v = stepped(q, v, k)
        position[:, k + 1], velocity[:, k + 1] = q, v
        _refuse_runaway(robot, v)
    return position, velocity


def _slope(friction: Callable[[Array, Array, Array], Array], q: Array, v: Array, tau: Array) -> Array:
    """``d friction / dv``, ``(rows, joints, joints)``, by central differences; any slope would do for accuracy."""
    small, n = 1e-3 * COULOMB_WIDTH, v.shape[1]
    steps = small * np.stack([np.eye(n), -np.eye(n)])[:, :, None]
    moved = np.broadcast_to(v, (2, n, *v.shape)) + steps
    rows = (np.broadcast_to(part, moved.shape).reshape(-1, n) for part in (q, moved, tau))
    ahead, behind = friction(*rows).reshape(moved.shape)
    return np.asarray((ahead - behind).transpose(1, 2, 0) / (2.0 * small))


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
    power = ((tau - _friction(robot)(q, v, tau)) * v).sum(axis=1).reshape(n_windows, n_rows)
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
