"""A robot that runs free: measured torque drives it from measured states, and nothing sets it back until a window ends.

    M(q) a = tau - c(q, v) - g(q) - friction(v),      q(t0), v(t0) as measured

MuJoCo integrates where it can represent the robot and its friction, our own Rosenbrock steps anything else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from dynid.arrays import Array, IntArray, check_shape
from dynid.errors import InputError, UnknownNameError
from dynid.recording.samples import Samples
from dynid.regression.closed_dynamics import inertia_and_bias
from dynid.regression.passive import PassiveEffects, without_passive_effects
from dynid.regression.torque import inverse_dynamics
from dynid.robot.checks import require_simulatable
from dynid.robot.effects import Armature, Coulomb, Coupled, Effect, Motion, Offset, SmoothCoulomb, Viscous
from dynid.robot.model import Robot
from dynid.robot.rotors import effect_gains, is_rotor, rotor_matrix

Engine: TypeAlias = Literal["auto", "mujoco", "own"]
ENGINES: tuple[Engine, ...] = ("auto", "mujoco", "own")

LONGEST_STEP_S = 1e-3
COULOMB_WIDTH = 0.01
"""rad/s or m/s over which our own integration smooths a sharp sign."""

FASTEST = 1e4
"""rad/s or m/s beyond which a motion counts as lost."""

LOAD_ROUNDS = 3
"""Friction that depends on the transmitted torque is found by iteration; it is a small part of that torque."""


class RunawayError(InputError):
    """The model leaves every bound when the measured torque drives it."""


@dataclass(frozen=True, eq=False)
class Windows:
    """Where free runs begin, and how long they last: first samples, steps and their length."""

    starts: IntArray
    n_steps: int
    step_s: float

    @property
    def rows(self) -> IntArray:
        """Samples of every window, ``(windows, steps + 1)``."""
        return np.asarray(self.starts[:, None] + np.arange(self.n_steps + 1), dtype=np.int64)

    def shortened(self, window_s: float) -> Windows:
        """The same beginnings over a shorter time."""
        return replace(self, n_steps=min(self.n_steps, max(1, round(window_s / self.step_s))))


@dataclass(frozen=True, eq=False)
class FreeRun:
    """Position and velocity of every window, ``(windows, steps + 1, joints)``, what integrated them, and why not MuJoCo."""

    position: Array
    velocity: Array
    engine: str
    notes: tuple[str, ...]


def free_run(robot: Robot, samples: Samples, windows: Windows, torque: Array, engine: Engine = "auto") -> FreeRun:
    """Drive the robot by torque from the measured state at the start of every window.

    Args:
        robot: with its present parameters and friction.
        samples: the measured motion.
        windows: where it is set free, and for how long.
        torque: that drives it, a row per sample.
        engine: ``mujoco``, ``own``, or ``auto``: MuJoCo where it can represent the robot.
    """
    first, free = windows.starts, FreeRobot.of(robot, engine)
    position, velocity = free.run(samples.position[first], samples.velocity[first], torque[windows.rows], windows.step_s)
    return FreeRun(position, velocity, "own" if free.model is None else "mujoco", free.notes)


@dataclass(frozen=True, eq=False)
class FreeRobot:
    """A robot ready to run free, any number of times."""

    robot: Robot
    model: Any
    """MuJoCo's, None where our own steps are taken."""
    notes: tuple[str, ...]

    @classmethod
    def of(cls, robot: Robot, engine: Engine = "auto") -> FreeRobot:
        return cls(robot, *_mujoco(robot, engine))

    def run(self, q: Array, v: Array, torque: Array, step_s: float) -> tuple[Array, Array]:
        """Position and velocity of every window from a state, both of the shape of the torque, ``(windows, steps + 1, joints)``."""
        own = self.model is None
        found = (
            _run_own(self.robot, q, v, torque, step_s) if own else _run_mujoco(self.robot, self.model, q, v, torque, step_s)
        )
        _refuse_runaway(self.robot, found[1])
        return found


def check_free_run(robot: Robot, samples: Samples, window_s: float, engine: str = "auto") -> None:
    """Refuse what cannot be set free."""
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


def even_windows(samples: Samples, window_s: float, most: int) -> Windows:
    """Windows of that length side by side, without a gap; beyond ``most`` they are thinned out evenly."""
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
    return Windows(starts, n_steps, step_s)


def _refuse_runaway(robot: Robot, velocity: Array) -> None:
    fastest = float(np.abs(velocity).max())
    if not fastest < FASTEST:  # NaN is not
        raise RunawayError(_runaway(robot, f"speeds up to {fastest:.3g}"))


def _runaway(robot: Robot, why: str) -> str:
    return (
        f"robot '{robot.name}' runs away when it is driven by the measured torque ({why}); "
        "take a shorter window, or check signs and units of the torque"
    )


# Friction -----------------------------------------------------------------------------------------


def smooth_signs(robot: Robot) -> Robot:
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


def friction_of(robot: Robot) -> Callable[[Array, Array, Array], Array]:
    """``friction(q, v, tau)`` over rows, springs with it; where it depends on the transmitted torque, ``tau`` less friction."""
    if robot.loops.rubbing:
        own, passive = friction_of(without_passive_effects(robot)), PassiveEffects(robot)
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


# Engines ------------------------------------------------------------------------------------------


def _mujoco(robot: Robot, wanted: Engine) -> tuple[Any, tuple[str, ...]]:
    """MuJoCo's model of the robot, or None where it is not to be used, and why it could not be."""
    if wanted == "own":
        return None, ()
    held = (Viscous, Coulomb, SmoothCoulomb, Offset, Armature)
    others = [effect.label for effect in robot.effects if not isinstance(effect, held)]
    reason = f"it has no place for {', '.join(others)}" if others else ""
    if robot.loops:  # MuJoCo holds closures softly, ours are exact
        reason = "its loops are closed by projection on the actuated joints"
    if not reason:
        from dynid.adapters.mujoco import mujoco_model

        try:
            return mujoco_model(robot, limits=False), ()
        except InputError as error:
            reason = str(error)
    if wanted == "mujoco":
        raise InputError(f"robot '{robot.name}' cannot be replayed in MuJoCo: {reason}")
    return None, (f"replayed without MuJoCo: {reason}",)


def _run_mujoco(robot: Robot, model: Any, q: Array, v: Array, torque: Array, step_s: float) -> tuple[Array, Array]:
    """MuJoCo's Runge-Kutta steps for all windows at once; torque is held at its middle over each step."""
    import mujoco
    from mujoco import rollout

    from dynid.adapters.mujoco import from_mujoco_force, mujoco_order, to_mujoco_motion
    from dynid.adapters.mujoco_warnings import mujoco_warnings, with_joint_names

    n_sub = max(1, int(np.ceil(step_s / LONGEST_STEP_S - 1e-9)))
    model.opt.timestep = step_s / n_sub
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_RK4
    # dry friction as hard as a step resolves: by default MuJoCo lets it build up over 20 ms
    model.dof_solref[:] = 2.0 * model.opt.timestep, 1.0
    model.dof_solimp[:, :2] = 0.99
    model.opt.disableflags |= _unused_by_free_runs(mujoco.mjtDisableBit)
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


def _unused_by_free_runs(bits: Any) -> int:
    """What MuJoCo need not look for in every step: the model is a tree of bodies under applied torque, without shapes or sensors."""
    return int(bits.mjDSBL_CONTACT | bits.mjDSBL_EQUALITY | bits.mjDSBL_ACTUATION | bits.mjDSBL_SENSOR)


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
    moving = smooth_signs(robot)
    friction = friction_of(moving)
    rotors = rotor_matrix(moving)
    n_sub = max(1, int(np.ceil(step_s / LONGEST_STEP_S - 1e-9)))
    h, g = step_s / n_sub, 1.0 - math.sqrt(0.5)
    position, velocity = np.empty((2, *torque.shape))
    position[:, 0], velocity[:, 0] = q, v

    def rigid(q: Array, v: Array) -> tuple[Array, Array]:
        """``M`` and ``c + g``."""
        if moving.loops:
            M, bias = inertia_and_bias(moving, q, v)
            return M + rotors, bias
        # in one call: at rest and without acceleration, with the velocity alone, and with each unit acceleration
        n = q.shape[1]
        speed, unit = np.zeros((n + 2, len(q), n)), np.zeros((n + 2, len(q), n))
        speed[1] = v
        unit[2:] = np.eye(n)[:, None]
        motion = (part.reshape(-1, n) for part in (np.broadcast_to(q, speed.shape), speed, unit))
        torques = inverse_dynamics(moving, *motion, effects=False).reshape(speed.shape)
        return (torques[2:] - torques[0]).transpose(1, 0, 2) + rotors, torques[1]

    def solved(M: Array, right: Array) -> Array:
        return np.asarray(np.linalg.solve(M, right[..., None])[..., 0], dtype=np.float64)

    def stepped(q: Array, v: Array, k: int) -> tuple[Array, Array]:
        """From one sample to the next."""
        for j in range(n_sub):
            tau0, tau1 = (torque[:, k] + (j + end) / n_sub * (torque[:, k + 1] - torque[:, k]) for end in (0, 1))
            M, bias = rigid(q, v)
            rubbing, D = _with_slope(friction, q, v, tau0)
            stiff = M + g * h * D
            kv1 = solved(stiff, tau0 - bias - rubbing)
            kq1 = v + g * h * kv1
            q2, v2 = q + h * kq1, v + h * kv1
            M2, bias2 = rigid(q2, v2)
            a2 = solved(M2, tau1 - bias2 - friction(q2, v2, tau1))
            kv2 = solved(stiff, np.einsum("nij,nj->ni", M, a2 - 2.0 * kv1))
            kq2 = v2 - 2.0 * kq1 + g * h * kv2
            q, v = q + 0.5 * h * (3.0 * kq1 + kq2), v + 0.5 * h * (3.0 * kv1 + kv2)
        return q, v

    for k in range(torque.shape[1] - 1):
        with np.errstate(over="ignore", invalid="ignore"):  # what runs away within a step is refused after it
            q, v = stepped(q, v, k)
        position[:, k + 1], velocity[:, k + 1] = q, v
        _refuse_runaway(robot, v)
    return position, velocity


def _with_slope(friction: Callable[[Array, Array, Array], Array], q: Array, v: Array, tau: Array) -> tuple[Array, Array]:
    """Friction and ``d friction / dv``, ``(rows, joints, joints)``, by central differences; any slope would do for accuracy."""
    small, n = 1e-3 * COULOMB_WIDTH, v.shape[1]
    steps = small * np.concatenate([np.zeros((1, n)), np.eye(n), -np.eye(n)])[:, None]
    moved = v + steps
    rows = (np.broadcast_to(part, moved.shape).reshape(-1, n) for part in (q, moved, tau))
    found = friction(*rows).reshape(moved.shape)
    slope = (found[1 : n + 1] - found[n + 1 :]).transpose(1, 2, 0) / (2.0 * small)
    return found[0], np.asarray(slope)
